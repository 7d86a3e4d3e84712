"""Every test runs in CI: the fast ones, and the slow ones in shards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("n", range(10))
def test_table(n):
    pass

@pytest.mark.slow
def test_slow():
    pass

def test_fast():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers =\n    slow\n    fast_rows(n)\n")
    pytester.makepyfile(TESTS)
    return pytester


@pytest.mark.parametrize(("selected", "passed"), [("not slow", 3), ("slow", 9), ("", 12)])
def test_rows_of_a_table_are_fast_or_slow(project: pytest.Pytester, selected: str, passed: int) -> None:
    result = project.runpytest_inprocess("-m", selected, "-v")
    result.assert_outcomes(passed=passed, deselected=12 - passed)
    assert ("test_table[5]" in result.stdout.str()) == (selected != "slow"), "the fast rows lie evenly apart"


def test_shards_run_each_test_once(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = []
    for shard in (1, 2, 3):
        monkeypatch.setenv("ADAPTIVE_EVAL_CI_SHARD", f"{shard}/3")
        passed += re.findall(r"::(\S+) PASSED", project.runpytest_inprocess("-m", "slow", "-v").stdout.str())
    assert len(passed) == len(set(passed)) == 9


def test_ci_runs_all_shards_of_the_slow_tests() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    shards = re.findall(r"marked: slow, shard: (\d+)/(\d+)", workflow)
    assert [(str(n), str(len(shards))) for n in range(1, len(shards) + 1)] == shards
    assert re.search(r"marked: not slow, shard: 1/1", workflow)
    if not (ROOT / ".ci" / "run").exists():
        pytest.skip("needs .ci/run, which a source distribution lacks: test in a clone")
    assert "pytest -n 2 -m slow" in (ROOT / ".ci" / "run").read_text("utf-8")
