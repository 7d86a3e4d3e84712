"""Run pytest until the starting process ends.

``python -m pytest_adaptive_eval.extensions.sweeps.cell_process DESCRIPTOR ARGUMENT ...`` runs pytest with the
arguments. The descriptor is the read end of a pipe whose write end the starter holds: the system closes it when the
starter is killed, and the process group of this process then ends. The cell's journal holds all answers by then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_starter(descriptor: int) -> None:
    """Wait until the write end of a pipe is closed, then end the process group that this process leads."""
    while os.read(descriptor, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    import pytest

    descriptor = int(sys.argv.pop(1))
    os.set_inheritable(descriptor, False)
    threading.Thread(target=end_with_starter, args=(descriptor,), daemon=True).start()
    sys.exit(pytest.main(sys.argv[1:]))
