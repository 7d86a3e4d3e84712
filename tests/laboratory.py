"""A laboratory: a small project with a bank, a toy model and runs of pytest in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import junit_xml  # noqa: F401
import numpy as np
import pytest
from scipy.special import logsumexp, stdtrit

import pytest_adaptive_eval.extensions.exports.trackers
import pytest_adaptive_eval.models.kinds.checkpoint
import pytest_adaptive_eval.models.kinds.endpoint
import pytest_adaptive_eval.plugin.activation
import pytest_adaptive_eval.plugin.report.drift
import pytest_adaptive_eval.records.history
import pytest_adaptive_eval.records.trend
import pytest_adaptive_eval.reports.junit
import pytest_adaptive_eval.reports.terminal
from pytest_adaptive_eval import CompletionStore, Item, write_bank
from pytest_adaptive_eval.irt.prediction import Predictor

# What is loaded here is loaded once: an in-process run forgets the modules that it loads, and numpy must not be
# loaded twice.  scipy loads parts of itself when they are first used, and so does xdist.
logsumexp(np.zeros(2)), stdtrit(3.0, 0.5)
with contextlib.suppress(ImportError):
    import xdist.remote
    import xdist.workermanage  # noqa: F401

    import pytest_adaptive_eval.plugin.xdist  # noqa: F401

#: An evaluation that asks its whole budget, and a gate that a model with 9 of 10 right passes.
EVAL = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""

CONFTEST = """
import os, signal, sys
from pathlib import Path
import pytest
from pytest_adaptive_eval import SubjectIdentity, Unscored

HERE = Path(__file__).parent

def log(name, text):
    with (HERE / name).open("a") as file:
        file.write(f"{{text}}\\n")

class Toy:
    identity = SubjectIdentity({identity})
    n = 0

    def generate(self, prompt):
        number = int(prompt.split()[-1])
        self.n += 1
        n = self.n
        log("asked.txt", number)
{fault}
        return "right" if number % 10 < {tenths} else "wrong"

@pytest.fixture(scope="{scope}")
def model():
    log("loaded.txt", os.getpid())
{setup}
    yield Toy()
{more}
"""


def plugins(args: Sequence[str]) -> list[str]:
    """Return the flags that load this plugin, and xdist for workers: autoload is off, since others cost time here."""
    if not any(re.fullmatch(r"-n\d", arg) for arg in args):
        return ["-p", "adaptive_eval"]
    pytest.importorskip("xdist", reason="workers need pytest-xdist (extra xdist)")
    return ["-p", "adaptive_eval", "-p", "xdist"]


class Lab:
    """A project to run pytest in."""

    #: Whether its runs load all installed plugins.
    autoload = False

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester, self.path = pytester, pytester.path
        self.ini("")

    def ini(self, text: str) -> None:
        """More settings; warnings are errors in the project too, and the summary has all details."""
        details = "" if "adaptive_eval_details" in text else "adaptive_eval_details = true\n"
        # a text may go on with filters
        self.pytester.makeini("[pytest]\n" + details + "filterwarnings = error\n" + text)

    def items(self, n: int = 60) -> list[dict[str, Any]]:
        return [{"id": f"q{i}", "prompt": f"question {i}", "answer": "right"} for i in range(n)]

    def bank(self, name: str = "toy", n: int = 60) -> Path:
        """A plain bank."""
        path = self.path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(item) + "\n" for item in self.items(n)))
        return path

    def calibrated(
        self, name: str = "toy", n: int = 60, dimensions: int = 1, predictor: Predictor | None = None, **more: Any
    ) -> Path:
        """A bank folder with parameters."""
        rng = np.random.default_rng(7)
        write_bank(
            self.path / f"{name}.bank",
            [Item(**item) for item in self.items(n)],
            discrimination=rng.uniform(0.6, 1.8, (n, dimensions)),
            intercept=rng.normal(size=n),
            predictor=predictor,
            **more,
        )
        return self.path / f"{name}.bank"

    def toy(
        self,
        tenths: int = 9,
        *,
        fault: str = "",
        setup: str = "",
        more: str = "",
        scope: str = "module",
        identity: str = '"toy", "hash"',
    ) -> None:
        """A conftest with a model that has so many of ten right; `fault` runs before each answer, `n` counts them."""
        text = CONFTEST.format(
            tenths=tenths,
            fault=textwrap.indent(textwrap.dedent(fault), " " * 8),
            setup=textwrap.indent(textwrap.dedent(setup), " " * 4),
            more=textwrap.dedent(more),
            scope=scope,
            identity=identity,
        )
        self.pytester.makeconftest(text)

    def tests(self, text: str = EVAL, name: str = "test_it") -> Path:
        path = self.path / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        return path

    def project(self, **toy: Any) -> None:
        """Bank, model, evaluation and gate."""
        self.bank()
        self.toy(**toy)
        self.tests()

    def mistake(self, result: pytest.RunResult, written: str) -> str:
        """Return what a run wrote to stderr, with LINE for a line of ``adaptive-eval.toml`` with this text."""
        before, _, _ = (self.path / "adaptive-eval.toml").read_text().partition(written or "\0")
        first = before.count("\n") + 1
        lines = "|".join(str(line) for line in range(first, first + written.count("\n") + 1))
        shown = " ".join(result.stderr.str().split())
        return re.sub(rf"(?<=adaptive-eval\.toml:)({lines})(?=:)", "LINE", shown)

    def run(self, *args: str, active: bool = True, logging: bool = False) -> pytest.RunResult:
        """A run in this process, without pytest's logging, which looks at every logger there is before each test."""
        flags = ["--adaptive-eval"] if active else []
        flags += [] if logging else ["-p", "no:logging"]
        self._forget_compiled()
        with self._alone(args) as loaded:
            return self.pytester.runpytest_inprocess(*loaded, *flags, *args, no_reraise_ctrlc=True)

    def spawn(self, *args: str, timeout: float = 120) -> pytest.RunResult:
        """A run in a process of its own, as xdist and faults that kill need."""
        self._forget_compiled()
        with self._alone(args) as loaded:
            return self.pytester.runpytest_subprocess(*loaded, "--adaptive-eval", *args, timeout=timeout)

    @contextlib.contextmanager
    def _alone(self, args: Sequence[str]) -> Iterator[list[str]]:
        """Let pytest load no plugins of the environment, unless the test says which, and give the flags for those."""
        with pytest.MonkeyPatch.context() as environment:
            if self.autoload or "PYTEST_DISABLE_PLUGIN_AUTOLOAD" in os.environ:
                yield []
            else:
                environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
                yield plugins(args)

    def _forget_compiled(self) -> None:
        """Delete compiled modules: one of the same length, written within the same second, counts as unchanged."""
        for folder in self.path.rglob("__pycache__"):
            shutil.rmtree(folder)

    def run_with(self, workers: Sequence[str], *args: str) -> pytest.RunResult:
        """A run in this process, or in one of its own where `workers` asks xdist for some."""
        return self.spawn(*workers, *args) if workers else self.run(*args)

    def lines(self, name: str) -> list[str]:
        path = self.path / name
        return path.read_text().splitlines() if path.exists() else []

    @property
    def asked(self) -> list[str]:
        """Questions that the model answered, in order, over all runs."""
        return self.lines("asked.txt")

    @property
    def records(self) -> list[dict[str, Any]]:
        """All records, from the earliest."""
        return [json.loads(path.read_text()) for path in sorted(self.path.glob(".adaptive-eval/runs/*.json"))]

    @property
    def record(self) -> dict[str, Any]:
        """The record of the latest run."""
        return self.records[-1]

    def record_without(self, *names: str) -> Any:
        """The record of the latest run without the fields of these names, at any depth."""

        def rest(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: rest(entry) for name, entry in value.items() if name not in names}
            return [rest(entry) for entry in value] if isinstance(value, list) else value

        return rest(self.record)

    @property
    def journals(self) -> list[Path]:
        return sorted(self.path.glob(".adaptive-eval/journal/*.sqlite"))

    @property
    def kept(self) -> int:
        """Number of answers in the journals."""
        count = 0
        for path in self.journals:
            with CompletionStore(path) as store:
                count += len(store)
        return count

    def outcomes(self) -> list[tuple[str, str]]:
        """Name and outcome of the gates of the latest record."""
        return [(gate["name"], gate["verdict"]["outcome"]) for gate in self.record["gates"]]


@pytest.fixture
def lab(pytester: pytest.Pytester) -> Lab:
    return Lab(pytester)


@pytest.fixture
def project(lab: Lab) -> Lab:
    """A laboratory with bank, model, evaluation and gate."""
    lab.project()
    return lab


def stripped(record: dict[str, Any], *more: str) -> dict[str, Any]:
    """A record without what differs between two runs that found the same."""
    drop = {"run", "started", "seconds", "measures", "drift", *more}  # what earlier runs say is of other runs
    return {
        key: [stripped(v, *more) if isinstance(v, dict) else v for v in value] if isinstance(value, list) else value
        for key, value in record.items()
        if key not in drop
    }


@pytest.fixture(scope="session")
def comparable() -> Any:
    """`stripped`, for tests."""
    return stripped
