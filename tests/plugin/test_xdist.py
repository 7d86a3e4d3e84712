"""The same results with workers, and no fault of theirs ends in a pass."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

pytest.importorskip("xdist")

#: Three interviews, gates on one and on all.
SUITE = """
import pytest

@pytest.mark.adaptive_eval("one.jsonl", budget=8, stop="budget")
def test_one(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_eval("two.jsonl", budget=8, stop="budget")
def test_two(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_eval("three.jsonl", budget=8, stop="budget")
def test_three(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("one", at_least=0.3)
def test_gate_one(adaptive_eval):
    assert adaptive_eval.verdicts

def test_gate_all(adaptive_eval):
    for name in ("three", "one", "two"):
        assert adaptive_eval[name].accuracy.at_least(0.4)

@pytest.mark.adaptive_gate("two", at_least=0.999)
def test_gate_two(adaptive_eval):
    assert adaptive_eval.verdicts

def test_plain():
    pass
"""


@pytest.fixture
def suite(lab: Any) -> Any:
    for name in ("one", "two", "three"):
        lab.bank(name)
    lab.toy()
    lab.tests(SUITE)
    return lab


@pytest.mark.slow
def test_the_same_with_any_number_of_workers(suite: Any, comparable: Any) -> None:
    suite.run()
    alone = comparable(suite.record)
    for args in (("-n0",), ("-n2", "-v"), ("-n2", "--dist=loadgroup")):
        result = suite.spawn(*args)
        assert result.ret == 1, args
        assert comparable(suite.record) == alone, args
        result.assert_outcomes(passed=6, failed=1)
        result.stdout.fnmatch_lines(["*100%?*", "PASS  test_gate_all (three): *", "FAIL  test_gate_two (two): *"])
    assert suite.journals == []


#: Notes in how many threads a worker computes.
THREADS = "log('threads.txt', os.environ.get('OMP_NUM_THREADS'))"


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["loadscope", "loadfile", "worksteal"])
def test_other_distributions(project: Any, monkeypatch: pytest.MonkeyPatch, dist: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    project.toy(setup=THREADS)
    assert project.spawn("-n2", f"--dist={dist}").ret == 0
    assert project.outcomes() == [("test_gate", "PASS")]
    assert len(project.asked) == 30
    assert project.lines("threads.txt") == ["3"], "what the user says holds"


@pytest.mark.slow
def test_more_workers_than_items(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    project.toy(setup=THREADS)
    result = project.spawn("-n4")
    assert result.ret == 0
    result.stdout.re_match_lines([r"[+-]{30}\.\. +\[100%\]"])
    assert project.lines("threads.txt") == [str(max(1, len(os.sched_getaffinity(0)) // 4))]


@pytest.mark.slow
def test_a_selection_and_the_last_failed(suite: Any) -> None:
    suite.spawn("-n2", "-k", "gate_two").assert_outcomes(passed=1, failed=1)
    assert [i["name"] for i in suite.record["interviews"]] == ["two"]
    assert suite.record["deselected"] == ["test_it.py::test_gate_one", "test_it.py::test_gate_all"]
    suite.spawn("-n2", "--lf").assert_outcomes(passed=1, failed=1)
    assert suite.outcomes() == [("test_gate_two", "FAIL")]


@pytest.mark.slow
def test_an_interview_that_a_worker_left_goes_on(project: Any) -> None:
    project.toy(fault="if n == 12: os.kill(os.getpid(), signal.SIGKILL)")
    assert project.spawn("-n1").ret == 1
    assert len(project.journals) == 1
    project.toy()
    assert project.run().ret == 0
    assert len(project.asked) == 31


FAULTS: dict[str, dict[str, Any]] = {
    "a lone surrogate in exceptions": {"fault": "raise OSError('\\ud800')"},
    "a lone surrogate in a warning": {"fault": "import warnings; warnings.warn('\\ud800')", "tenths": 0},
    "a property that is no JSON": {
        "tenths": 0,
        "more": """
        @pytest.fixture(autouse=True)
        def attach(request):
            request.node.user_properties.append((object(), {1, 2, object()}))
            request.node.user_properties.append(("text \\ud800", "text \\ud800"))
        """,
    },
    "a worker that is killed": {"fault": "if n == 3: os.kill(os.getpid(), signal.SIGKILL)"},
    "a worker that ends with status 0": {"fault": "if n == 3: os._exit(0)"},
    "an error in the plugin": {
        "more": """
        from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
        AskingLoop._take = lambda self, test: 1 / 0
        """
    },
    "an error where results are published": {
        "more": """
        from pytest_adaptive_eval.plugin.exchange import ResultExchange
        ResultExchange.publish = ResultExchange.plan = lambda self, *args: None
        from pytest_adaptive_eval.gates.result import SessionResult
        SessionResult.to_json = lambda self: 1 / 0
        """
    },
    "all answers are errors": {"fault": "raise OSError('down')"},
    "three errors in a row": {"fault": "if n > 20: raise OSError('down')"},
    "a full disk": {
        "more": """
        import sqlite3
        class Full(sqlite3.Connection):
            def execute(self, sql, *values):
                if "INTO completions" in sql and values[0][0] != "probe":
                    raise sqlite3.OperationalError("database or disk is full")
                return super().execute(sql, *values)
        connect = sqlite3.connect
        sqlite3.connect = lambda *args, **kwargs: connect(*args, **{"factory": Full, **kwargs})
        """
    },
    "a wrong checkpoint": {
        "setup": "from pytest_adaptive_eval.errors import CheckpointError\nraise CheckpointError('torn: save it again')"
    },
}

#: Of these nothing can be known but that they were.
LOST = [
    "a worker that is killed",
    "a worker that ends with status 0",
    "an error in the plugin",
    "an error where results are published",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "workers"),
    [*((what, "-n2") for what in FAULTS), *((what, "-n1") for what in LOST)],  # nobody else is there to tell of these
)
def test_faults_never_pass(project: Any, what: str, workers: str) -> None:
    project.toy(**FAULTS[what])
    start = time.monotonic()
    result = project.spawn(workers, "--adaptive-eval-record=record.json", "-Wdefault", timeout=100)
    assert result.ret != 0
    assert time.monotonic() - start < 60, "it waited for what never came"
    if (project.path / "record.json").exists():
        assert ("test_gate", "PASS") not in project.outcomes()
        assert project.record["exit_status"] != 0
    if what not in LOST:
        assert project.outcomes() == [("test_gate", "FAIL" if FAULTS[what].get("tenths") == 0 else "ERROR")]
        assert not project.record["missing"]
    if what in ("a full disk", "a wrong checkpoint"):
        assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_mistakes_are_told(lab: Any) -> None:
    (lab.path / "toy.jsonl").write_text("")
    lab.toy()
    lab.tests()
    result = lab.spawn("-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: */toy.jsonl: no items*"])
    assert not (lab.path / ".adaptive-eval").exists()


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_told(project: Any) -> None:
    (project.path / ".adaptive-eval").write_text("in the way")
    result = project.spawn("-n1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *.adaptive-eval: cannot be written: *"])


@pytest.mark.slow
def test_exit_first(project: Any) -> None:
    project.toy(tenths=0)
    assert project.spawn("-n1", "-x").ret in (1, 2)  # xdist says interrupted when a failure stops it
    assert project.record["interviews"][0]["asked"] == 30
    assert project.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.slow
def test_workers_of_a_plugin_that_is_named_by_its_module(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_adaptive_eval.plugin.entry")
    result = project.spawn("-p", "xdist.plugin", "-n2")
    assert result.ret == 0
    assert "no evaluation was found" not in result.stdout.str()
