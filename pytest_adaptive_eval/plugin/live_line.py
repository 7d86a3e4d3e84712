"""A line on a terminal that shows how far an interview is, in place of a sign for each answer.

Logs, workers of xdist, and runs with ``-v`` or ``-q`` have none.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.betting import anytime_valid
from pytest_adaptive_eval.inference.sampling import mean_of_draws
from pytest_adaptive_eval.text import clean_terminal, columns, number

__all__ = ["LiveLine", "shows_live"]

#: Seconds between two drawings, and confidence of each bound of the interval.
EVERY, CONFIDENCE = 0.1, 0.95
#: Columns of an evaluation's name.
NAME = 30


def shows_live(config: pytest.Config) -> bool:
    """Return whether this process writes to a terminal that a live line may be drawn on."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or config.get_verbosity() != 0 or hasattr(config, "workerinput"):
        return False
    progress = config.getoption("numprocesses", None) or config.getoption("dist", "no") not in ("no", None)
    # other reporters draw lines of their own
    return bool(reporter.isatty and type(reporter).__module__ == "_pytest.terminal" and not progress)


class LiveLine:
    """The line of one interview.

    Parameters
    ----------
    config : pytest.Config
    name : str
        Name of the evaluation.
    budget : int
        Most questions of the interview, without those that are asked again.
    questions : int
        Most questions with those.
    """

    def __init__(self, config: pytest.Config, name: str, budget: int, questions: int) -> None:
        self._reporter: Any = config.pluginmanager.getplugin("terminalreporter") if shows_live(config) else None
        self._name = clean_terminal(name, NAME, keep_end=True)
        self._budget, self._questions = budget, questions
        self._begun, self._drawn, self._asked = time.monotonic(), 0.0, 0
        self._estimate = ""
        if self._reporter is not None:
            self._reporter.write_line("")

    def estimate(self, session: Session) -> None:
        """Take the estimate of a session and its interval, as far as the draws give one."""
        if self._reporter is None or not session.asked:
            return
        log = session.log()
        try:
            middle = mean_of_draws(log)
            interval = anytime_valid(log, middle, CONFIDENCE)
        except EstimationError:  # the items were not drawn
            return
        self._estimate = f", {number(middle, 2)} [{number(interval.low, 2)}, {number(interval.high, 2)}]"
        self._draw()

    def count(self, asked: int) -> None:
        """Take the number of questions asked so far."""
        self._asked = asked
        if self._reporter is not None and time.monotonic() - self._drawn >= EVERY:
            self._draw()

    def end(self) -> None:
        """Leave the line as it stands, with the time that was needed."""
        if self._reporter is not None:
            self._draw(f"{_duration(time.monotonic() - self._begun)} in all")
            self._reporter.currentfspath = None  # the next status begins a line

    def _draw(self, rest: str = "") -> None:
        self._drawn = time.monotonic()
        most = self._budget if self._asked <= self._budget else self._questions
        if not rest and self._asked:
            left = (self._drawn - self._begun) / self._asked * max(most - self._asked, 0)
            rest = f"at most {_duration(left)} left"
        count, time_told = f"{self._asked} of {most}", f", {rest}" if rest else ""
        forms = (
            f"{self._name}: question {count}{self._estimate}{time_told}",
            f"{self._name}: {count}{self._estimate}{time_told}",
            f"{self._name}: {count}{self._estimate}",
            f"{self._name}: {count}",
        )
        writer = self._reporter._tw  # has no public method to write over a line
        room = writer.fullwidth - 1
        text = next((form for form in forms if columns(form) <= room), count)
        writer.write(f"\r\x1b[2K{clean_terminal(text, room)}", flush=True)


def _duration(seconds: float) -> str:
    """Return ``0:07`` or ``1:02:03``."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
