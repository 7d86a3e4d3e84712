"""Names that several modules of the plugin share, and how a run with a mistake is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

TOML_NAME, TOML_SUFFIX = "adaptive-eval.toml", ".eval.toml"  #: Names of the files that need no Python.
MARKER = "adaptive_eval"  #: Marker of interviews, and fixture of gates.
GATE_MARKER = "adaptive_gate"  #: Marker of the conditions of gates.
SUITE_MARKER = "adaptive_suite"  #: Marker that is gone, see `gone`.
MISSING_BASELINE = ("warn", "record", "fail")  #: Actions for a missing baseline.
REFUSAL = "adaptive_eval_refusal"  #: Where a worker of xdist leaves a usage error for its controller.
MOST_BYTES = 1_000_000_000  #: Size from which on that file of one's own machine begins anew.
ATTACHED = "adaptive_eval"  #: Attribute of a report that carries records to the controller.
PARAMETER = "aeval:"  #: Start of the parameter id of placeholders; a bank's name follows.
PROPERTY = "adaptive_eval"  #: Property with the score in reports of questions.
CHANGE_PROPERTY = "since_last_run"  #: Property of an evaluation's report with the change of its level.
DETAILS = ("position", "propensity", "predicted", "status")  #: Further properties of a question's report.


def is_eval_file(path: Path) -> bool:
    """Return whether a file holds evaluations in TOML."""
    return path.name == TOML_NAME or path.name.endswith(TOML_SUFFIX)


def refuse(config: pytest.Config, items: list[pytest.Item], message: str) -> None:
    """End the run for a mistake of the user that collection brought to light: exit code 4.

    A worker of xdist cannot end the run: it hands the message to its controller and runs nothing.
    """
    from pytest_adaptive_eval.text import guard

    message = guard(message)
    if hasattr(config, "workeroutput"):
        config.workeroutput[REFUSAL] = message.encode("utf-8", "replace").decode()
        items.clear()
    else:
        raise pytest.UsageError(message)
