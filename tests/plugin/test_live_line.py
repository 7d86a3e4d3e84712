"""The line that shows how far an interview is, on terminals alone."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.plugin.live_line import LiveLine


class Reporter:
    """As much of pytest's reporter as a line needs."""

    __module__ = "_pytest.terminal"
    isatty, currentfspath = True, "file.toml"

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._tw = SimpleNamespace(fullwidth=60, write=lambda text, flush: self.texts.append(text))

    def write_line(self, text: str) -> None:
        self.texts.append(text)


def config(reporter: Any, **options: Any) -> Any:
    return SimpleNamespace(
        pluginmanager=SimpleNamespace(getplugin=lambda name: reporter),
        get_verbosity=lambda: options.get("verbosity", 0),
        getoption=lambda name, default: options.get(name, default),
    )


def session(asked: int) -> Session:
    bank = ItemBank.uncalibrated("b", [Item(f"i{n}") for n in range(100)])
    session = Session(bank, Policy(SELECTORS["random"], floor=0.0, budget=20, batch=asked))
    proposal = session.ask()
    assert proposal is not None
    session.tell(np.ones(proposal.items.shape))
    return session


def test_number_estimate_interval_and_time_are_drawn_over_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("pytest_adaptive_eval.plugin.live_line.time.monotonic", lambda: float(next(clock)))
    reporter = Reporter()
    line = LiveLine(config(reporter), "toy", 20, 22)
    line.count(10)
    line.estimate(session(10))
    line.end()
    assert reporter.texts[0] == ""
    assert all(text.startswith("\r\x1b[2K") for text in reporter.texts[1:])
    assert reporter.texts[1].endswith("toy: question 10 of 20, at most 0:20 left")
    assert re.search(r"question 10 of 20, 1\.00 \[\.\d\d, 1\.00\], at most \d:\d\d left$", reporter.texts[2])
    assert re.search(r"1\.00\], \d:\d\d in all$", reporter.texts[-1])
    assert reporter.currentfspath is None


def test_a_narrow_terminal_loses_words_and_never_a_part_of_one() -> None:
    reporter = Reporter()
    line = LiveLine(config(reporter), "interviewed", 282, 310)
    line.count(49)
    line.estimate(session(10))
    line.end()
    assert re.search(r"K?interviewed: 49 of 282, 1\.00 \[\.\d\d, 1\.00\], 0:00 in all$", reporter.texts[-1])
    assert not any("…" in text for text in reporter.texts)
    reporter._tw.fullwidth = 24
    line.count(283)
    line.end()
    assert reporter.texts[-1].endswith("interviewed: 283 of 310")


@pytest.mark.parametrize("options", [{"verbosity": 1}, {"verbosity": -1}, {"numprocesses": 2}])
def test_other_runs_have_none(options: dict[str, Any]) -> None:
    reporter = Reporter()
    line = LiveLine(config(reporter, **options), "toy", 20, 22)
    line.count(1)
    line.estimate(session(1))
    line.end()
    assert reporter.texts == []


def test_a_log_has_signs(project: Any) -> None:
    assert any("+++" in line for line in project.run().outlines)
