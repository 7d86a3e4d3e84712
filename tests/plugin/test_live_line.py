"""The line that shows how far an interview is, on terminals alone."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.plugin.progress import LiveRow, Progress, QuestionProgress

termios = pytest.importorskip("termios", reason="needs a pseudo-terminal")

#: Plugins that change nothing here and cost time.
ALONE = ("-p", "no:hypothesispytest", "-p", "no:anyio", "-p", "no:cacheprovider")


class Reporter:
    """As much of pytest's reporter and of its writer as a line needs."""

    __module__ = "_pytest.terminal"
    isatty, fullwidth, width_of_current_line = True, 60, 0

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write_raw(self, text: str, *, flush: bool) -> None:
        assert flush
        self.texts.append(text)


def config(reporter: Any, **options: Any) -> Any:
    return SimpleNamespace(
        pluginmanager=SimpleNamespace(getplugin=lambda name: reporter, hasplugin=lambda name: True),
        get_verbosity=lambda: options.get("verbosity", 0),
        getoption=lambda name, default=None: options.get(name, default),
        getini=lambda name: options.get(name, False),
        get_terminal_writer=lambda: reporter,
        stash=pytest.Stash(),
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
    monkeypatch.setattr("pytest_adaptive_eval.plugin.progress.clock.elapsed", lambda: float(next(clock)))
    reporter = Reporter()
    line = QuestionProgress(config(reporter), "toy", 20, 22)
    line.count(10)
    line.estimate(session(10))
    assert reporter.texts[0] == "\n\r\x1b[2Ktoy: question 10 of 20, at most 0:20 left"
    assert re.fullmatch(
        r"\r\x1b\[2Ktoy: question 10 of 20, 1\.00 \[\.\d\d, 1\.00\], at most 0:\d\d left", reporter.texts[1]
    )
    line.end()
    assert reporter.texts[2:] == ["\r\x1b[2K\x1b[A"]


def test_the_erased_line_leaves_the_cursor_behind_the_status_above() -> None:
    reporter = Reporter()
    reporter.width_of_current_line = 14
    line = QuestionProgress(config(reporter), "toy", 20, 22)
    line.count(1)
    line.end()
    line.end()
    assert reporter.texts[1:] == ["\r\x1b[2K\x1b[A\x1b[14C"]


def test_a_narrow_terminal_loses_words_and_never_a_part_of_one() -> None:
    reporter = Reporter()
    line = QuestionProgress(config(reporter), "interviewed", 282, 310)
    line.count(49)
    line.estimate(session(10))
    assert re.search(r"Kinterviewed: 49 of 282, 1\.00 \[\.\d\d, 1\.00\], at most 0:00 left$", reporter.texts[-1])
    assert not any("…" in text for text in reporter.texts)
    reporter.fullwidth = 24
    line = QuestionProgress(config(reporter), "interviewed", 282, 310)
    line.count(283)
    assert reporter.texts[-1].endswith("interviewed: 283 of 310")


@pytest.mark.parametrize(
    "options",
    [
        {"verbosity": 1},
        {"verbosity": -1},
        {"numprocesses": 2},
        {"capture": "no"},
        {"setupshow": True},
        {"usepdb": True},
        {"log_cli": True},
    ],
)
def test_other_runs_have_none(options: dict[str, Any]) -> None:
    reporter = Reporter()
    line = QuestionProgress(config(reporter, **options), "toy", 20, 22)
    line.count(1)
    line.estimate(session(1))
    line.end()
    assert reporter.texts == []


class Plain(Reporter):
    """A reporter that writes to a log."""

    isatty = False

    def ensure_newline(self) -> None:
        self.texts.append("\n")

    def write_line(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.parametrize(("whole", "shown"), [(3, [1, 2, 3]), (20, [*range(1, 20, 2), 20]), (25, [*range(1, 26, 3)])])
def test_steps_are_some_lines_where_none_can_be_drawn_over(whole: int, shown: list[int]) -> None:
    reporter = Plain()
    progress = Progress(config(reporter), "council", lines=10)
    for done in range(1, whole + 1):
        for _ in range(2):  # a step in several parts is one line
            progress(done, whole, f"round {done}")
    progress.end()
    assert reporter.texts[1::2] == [f"adaptive-eval: council: round {done}" for done in shown]
    assert set(reporter.texts[::2]) == {"\n"}


def test_a_quiet_run_shows_no_steps() -> None:
    reporter = Plain()
    Progress(config(reporter, verbosity=-1), "council", lines=10)(1, 1, "round 1")
    assert reporter.texts == []


@pytest.mark.parametrize("verbosity", [0, 1])
def test_steps_are_drawn_over_on_a_terminal(verbosity: int) -> None:
    reporter = Reporter()
    progress = Progress(config(reporter, verbosity=verbosity), "council", lines=10)
    progress(1, 2, "round 1 of 2")
    progress(2, 2, "round 2 of 2")
    progress.end()
    assert reporter.texts == [
        "\n\r\x1b[2Kadaptive-eval: council: round 1 of 2",
        "\r\x1b[2Kadaptive-eval: council: round 2 of 2",
        "\r\x1b[2K\x1b[A",
    ]


class Interrupted(Reporter):
    """Ctrl-C arrives as soon as something was written."""

    def write_raw(self, text: str, *, flush: bool) -> None:
        super().write_raw(text, flush=flush)
        raise KeyboardInterrupt


def test_ctrl_c_while_the_terminal_writes_leaves_no_line_and_erases_no_other() -> None:
    reporter = Interrupted()
    row = LiveRow(reporter)
    with pytest.raises(KeyboardInterrupt):
        row.draw("toy: question 8 of 30")
    with pytest.raises(KeyboardInterrupt):
        row.erase()
    row.erase()
    assert "".join(reporter.texts) == "\n\r\x1b[2Ktoy: question 8 of 30\r\x1b[2K\x1b[A"


def test_a_log_has_signs(project: Any) -> None:
    assert any("+++" in line for line in project.run().outlines)


TESTS = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

def test_ordinary():
    pass

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=20, stop="budget", name="again")
def test_again(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.99)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts

@pytest.mark.adaptive_gate("again", at_least=0.5)
def test_other_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def in_terminal(lab: Any, columns: int, *args: str) -> str:
    """Return what a run writes to a terminal."""
    own, its = os.openpty()
    termios.tcsetwinsize(own, (40, columns))
    command = [sys.executable, "-m", "pytest", *ALONE, "--adaptive-eval", "--color=no", *args]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "CI")}
    run = subprocess.Popen(command, cwd=lab.path, env=environment, stdin=its, stdout=its, stderr=its)
    os.close(its)
    parts = []
    with contextlib.suppress(OSError):  # the end of a terminal
        while part := os.read(own, 65536):
            parts.append(part)
    run.wait(60)
    os.close(own)
    return b"".join(parts).decode().replace("\r\n", "\n")


def screen(written: str) -> list[str]:
    """Return the rows that a terminal of endless height and width shows of a text."""
    rows, y, x = [""], 0, 0
    for part in re.findall(r"\x1b\[[\d;]*[A-Za-z]|.", written, re.DOTALL):
        match part:
            case "\n":
                y, x = y + 1, 0
                rows += [""] * (y == len(rows))
            case "\r":
                x = 0
            case "\x1b[2K":
                rows[y] = ""
            case "\x1b[A":
                y -= 1
            case _ if forward := re.fullmatch(r"\x1b\[(\d+)C", part):
                x += int(forward[1])
            case _:
                rows[y] = rows[y][:x].ljust(x) + part + rows[y][x + len(part) :]
                x += len(part)
    return rows


@pytest.fixture
def shown(lab: Any) -> Any:
    """A project with two interviews and an ordinary test between."""
    lab.bank()
    lab.toy()
    lab.tests(TESTS)
    return lab


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 120])
def test_a_terminal_shows_the_line_and_keeps_no_trace_of_it(shown: Any, columns: int) -> None:
    written = in_terminal(shown, columns)
    assert re.search(r"\x1b\[2Ktoy: (question )?\d+ of 30", written)
    assert re.search(r"\x1b\[2Kagain: (question )?\d+ of 20", written)
    rows = screen(written)
    assert not any(re.search(r"\d of [23]0(,|$)", row) for row in rows)
    status = rows.index(f"test_it.py ...F.{'[100%]':>{columns - 17}}")
    assert (rows[status - 1], rows[status + 1]) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 120])
def test_the_verdict_of_a_failed_gate_is_as_wide_as_the_terminal(shown: Any, columns: int) -> None:
    gate = '[[eval.gate]]\nmetric = "accuracy"\nat_least = 0.99\nconfidence = 0.9\n'
    (shown.path / "adaptive-eval.toml").write_text(f'[[eval]]\nbank = "toy.jsonl"\nbudget = 8\n{gate}')
    rows = screen(in_terminal(shown, columns, "adaptive-eval.toml"))
    start = next(n for n, row in enumerate(rows) if row.startswith("___") and "toy-accuracy" in row)
    verdict = rows[start + 1 : next(n for n, row in enumerate(rows) if "= adaptive evaluation" in row)]
    assert columns - 25 < max(map(len, verdict)) <= columns


@pytest.mark.slow
def test_an_interrupted_run_keeps_no_trace_of_the_line(shown: Any) -> None:
    shown.toy(fault="if n == 12: os.kill(os.getpid(), signal.SIGINT)")
    written = in_terminal(shown, 80)
    assert re.search(r"toy: question \d+ of 30", written)
    rows = screen(written)
    assert not any("of 30" in row for row in rows)
    assert rows[rows.index("test_it.py ") + 1] == ""


@pytest.mark.slow
def test_a_warning_stands_on_a_line_of_its_own(shown: Any) -> None:
    shown.toy(
        fault="import logging; n != 20 or logging.getLogger('pytest_adaptive_eval').warning('the server is late')"
    )
    rows = screen(in_terminal(shown, 80))
    assert "adaptive-eval: the server is late" in rows
    assert not any("of 30" in row for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-s", "-q", "-v", "--setup-show", "--log-cli-level=INFO"])
def test_other_output_is_not_drawn_over(shown: Any, option: str) -> None:
    shown.toy(fault="print('answered', n)")
    written = in_terminal(shown, 80, option)
    assert "\x1b[2K" not in written
    assert ("answered 7" in written) is (option == "-s")


@pytest.mark.slow
def test_lines_of_workers_begin_below_the_count_of_workers(shown: Any) -> None:
    pytest.importorskip("xdist", reason="workers need pytest-xdist (extra xdist)")
    shown.tests(TESTS.replace(', budget=30, stop="budget"', ""))
    rows = screen(in_terminal(shown, 80, "-n2"))
    assert any(row.startswith("adaptive-eval: toy: ") for row in rows)
