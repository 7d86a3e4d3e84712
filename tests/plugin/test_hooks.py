"""The hooks, as implemented by a plugin that is installed on its own."""

from __future__ import annotations

import json
import shutil
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).parent / "sample_plugin"


@pytest.fixture
def sample(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project into whose environment the sample plugin is installed."""
    about = tomllib.loads((SAMPLE / "pyproject.toml").read_text())["project"]
    site = lab.path / "site"
    info = site / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir(parents=True)
    shutil.copy(SAMPLE / "sample_plugin.py", site)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    entries = about["entry-points"]["pytest11"].items()
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(f"{k} = {v}\n" for k, v in entries))
    monkeypatch.syspath_prepend(site)
    lab.autoload = True
    lab.tests("", "conftest")
    (lab.path / "twelve.count").write_text("12")
    (lab.path / "adaptive-eval.toml").write_text(
        """
        [[eval]]
        name = "plain"
        bank = "twelve.count"
        model = "parrot:yes"
        selector = "first"
        floor = 0.1
        budget = 6
        stop = "budget"
        [[eval.gate]]
        at_least = 0.1

        [[eval]]
        name = "veto"
        bank = "twelve.count"
        model = "parrot:yes"
        budget = 12
        stop = "budget"
        [[eval.gate]]
        at_least = 0.5
        """
    )
    return lab


def test_all_hooks(sample: Any) -> None:
    result = sample.run("-v")
    assert result.ret == 1
    plain, veto = sample.record["interviews"]
    assert plain["subject"]["name"] == "parrot-yes"
    assert plain["bank"]["name"] == "twelve"
    assert plain["policy"]["selector"] == "first"
    asked = [a["item"] for a in plain["administrations"]]
    assert len(set(asked) & {f"n{i}" for i in range(7)}) >= 5
    assert (veto["policy"]["selector"], veto["asked"]) == ("random", 12)
    verdicts = [(gate["name"], gate["verdict"]["outcome"]) for gate in sample.record["gates"]]
    assert verdicts[1] == ("veto-accuracy[at-least-0.5]", "FAIL")
    assert sample.record["gates"][1]["verdict"]["notes"][-1] == "vetoed by sample"
    result.stdout.fnmatch_lines(["*vetoed by sample", "FAIL *veto-accuracy*"])
    assert json.loads((sample.path / "sample.json").read_text()) == [outcome for _, outcome in verdicts]
    assert (sample.path / "closed.txt").read_text() == "yes"


def test_without_the_plugin_its_names_are_unknown(sample: Any) -> None:
    result = sample.run("-p", "no:sample")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *twelve.count*"])


@pytest.mark.slow
def test_a_selector_by_marker_and_a_subject_by_flag(sample: Any) -> None:
    (sample.path / "adaptive-eval.toml").unlink()
    sample.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("twelve.count", selector="first", policy="estimate", budget=3)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert sample.run("--adaptive-eval-model=parrot:no").ret == 0
    (interview,) = sample.record["interviews"]
    assert [a["item"] for a in interview["administrations"]] == ["n0", "n1", "n2"]
    assert interview["subject"]["name"] == "parrot-no"


def test_a_report_that_fails_hides_nothing(project: Any) -> None:
    project.toy(more="def pytest_adaptive_eval_report(record): raise KeyError('mine')")
    result = project.run()
    assert result.ret == 1
    assert project.outcomes() == [("test_gate", "PASS")]
    result.stdout.fnmatch_lines(["PASS  test_gate: *", "adaptive-eval: a plugin's report failed: KeyError: 'mine'"])


def test_a_report_that_fails_leaves_a_mistake_of_the_user_as_the_exit_status(project: Any) -> None:
    project.toy(more="def pytest_adaptive_eval_report(record): raise KeyError('mine')")
    project.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=5)
        def test_toy(item, model):
            return item.grade(model.generate(item.prompt))
        """
    )
    assert project.run().ret == pytest.ExitCode.USAGE_ERROR
    assert project.record["exit_status"] == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("pytest_adaptive_eval_verdict(verdict): return True", "a plugin made True of a verdict*"),
        ("pytest_adaptive_eval_verdict(verdict): raise KeyError('mine')", "KeyError: 'mine'"),
    ],
)
def test_a_verdict_that_is_none_fails_the_gate(project: Any, hook: str, message: str) -> None:
    project.toy(more=f"def {hook}")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"E *{message}"])
    assert project.outcomes() == [("test_gate", "ERROR")]


def test_a_bank_that_is_none(project: Any) -> None:
    project.toy(more="def pytest_adaptive_eval_items(path): return 3")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *: a plugin made 3 of *toy.jsonl, and pytest_adaptive_eval_items gives *"])


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("maker", "problem"),
    [
        ("return 5", "a plugin gave 5, expected an object with name, mode ('top' or 'proportional'), *"),
        ("return Mine", "a plugin gave <class 'conftest.Mine'>, expected an object *"),
        ("Mine.mode = 'best'; return Mine()", "a plugin gave *, expected an object with name, mode *"),
        ("Mine.value = -1.0; return Mine()", "its criterion must be finite and at least 0 for every item"),
        ("Mine.value = float('nan'); return Mine()", "its criterion must be finite and at least 0 for every item"),
        ("Mine.value = float('inf'); return Mine()", "its criterion must be finite and at least 0 for every item"),
        ("Mine.shape = (60,); return Mine()", "its criterion has shape (60,), expected (subjects, items), which is *"),
    ],
)
def test_a_selector_that_is_none(project: Any, maker: str, problem: str) -> None:
    selector = f"""
        import numpy as np
        class Mine:
            name, mode, needs_calibration, value, shape = "mine", "proportional", False, 1.0, None
            def criterion(self, view):
                return np.full(self.shape or view.probability.shape, self.value)
        def pytest_adaptive_eval_selector(name):
            {maker}
        """
    project.toy(more=selector)
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace('"toy.jsonl"', '"toy.jsonl", selector="mine"'))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join((result.stdout.str() + result.stderr.str()).split())
    assert fnmatch(said, f"*selector 'mine': {problem.replace('[', '[[]')}*")
    assert "PASS" not in said


@pytest.mark.slow
def test_a_selector_may_give_any_array(project: Any) -> None:
    project.toy(
        more="""
        import numpy as np
        class Mine:
            name, mode, needs_calibration = "mine", "proportional", False
            def criterion(self, view):
                return np.broadcast_to(np.arange(len(view.bank)), view.probability.shape)
        def pytest_adaptive_eval_selector(name):
            return Mine()
        """
    )
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace('"toy.jsonl"', '"toy.jsonl", selector="mine"'))
    assert project.run().ret == 0
    (gate,) = project.record["gates"]
    assert "uncalibrated bank" in gate["verdict"]["notes"], "the draws are not uniform"
