"""Levels of series that the user accepted after a drop, in a small file in the folder of a history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import read_regular

#: Name of the file: a line of JSON per level.  It is not a record, whose names end in ``.json``.
FILE = "accepted-levels.jsonl"


@dataclass(frozen=True, slots=True)
class AcceptedLevel:
    """Accepted level of one series, which begins with a run.

    Args:
        evaluation, metric, category: As of a `drift.Series`.
        run, started: Id and start of the run.
    """

    evaluation: str
    metric: str
    category: str
    run: str
    started: str

    @property
    def series(self) -> tuple[str, str, str]:
        """Evaluation, metric and category."""
        return self.evaluation, self.metric, self.category


def accepted_levels(folder: Path) -> list[AcceptedLevel]:
    """Return the accepted levels of a history's folder, oldest decision first; none without the file.

    Raises:
        ConfigError: A line is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return []
    levels = []
    for n, line in enumerate(read_regular(path).decode("utf-8", "replace").splitlines(), 1):
        try:
            level = AcceptedLevel(**json.loads(line))
        except (ValueError, TypeError):
            level = None
        if level is None or not all(isinstance(value, str) for value in asdict(level).values()):
            raise ConfigError(
                f"{path}, line {n}: expected an accepted level as `history --drift --accept RUN` writes it; "
                "remove the line"
            )
        levels.append(level)
    return levels


def accept_levels(folder: Path, levels: Sequence[AcceptedLevel]) -> Path:
    """Add accepted levels to the file of a history's folder, and return its path."""
    path = folder / FILE
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(level)) + "\n" for level in levels)
    return path
