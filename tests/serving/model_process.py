"""A process that serves chat models on loopback: ``python model_process.py PORT LOG [MODEL ...]``.

It appends ``start PID`` to LOG when it starts and ``chat`` for each chat. It answers every chat with "right".
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fake_server import JsonServer, completion


def main(port: int, log: Path, models: list[str]) -> None:
    """Serve until the process is ended."""
    lock = threading.Lock()

    def note(line: str) -> None:
        with lock, log.open("a") as file:
            file.write(f"{line}\n")

    def answer(body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        note("chat")
        return completion(body["model"], "right"), 200

    with JsonServer(models, answer, port):
        note(f"start {os.getpid()}")
        threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or ["m"])
