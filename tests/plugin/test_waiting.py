"""A gate that waits for another worker's interview is not timed while it waits."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xdist")
pytest.importorskip("pytest_timeout")

#: A model that needs 2.4 s for the 30 questions of the interview, and .08 s for each.
SLOW = "import time; time.sleep(0.08)"


@pytest.fixture(autouse=True)
def with_timeouts(lab: Any) -> None:
    """Let the runs load pytest-timeout."""
    lab.autoload = True


@pytest.mark.slow
@pytest.mark.parametrize(("method", "func_only"), [("signal", "false"), ("thread", "false"), ("signal", "true")])
def test_a_gate_may_wait_longer_than_its_timeout(project: Any, method: str, func_only: str) -> None:
    project.ini(f"timeout = 1\ntimeout_method = {method}\ntimeout_func_only = {func_only}\nfaulthandler_timeout = 1")
    project.toy(fault=SLOW)
    result = project.spawn("-n2")
    assert result.ret == 0
    assert project.outcomes() == [("test_gate", "PASS")]
    assert "Timeout" not in result.stderr.str(), "faulthandler writes the stacks of a test that takes too long"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_gate_that_takes_too_long_itself_is_no_pass(project: Any, method: str) -> None:
    project.ini(f"timeout = 1\ntimeout_method = {method}")
    path = project.path / "test_it.py"
    path.write_text(
        path.read_text().replace(
            "    assert adaptive_eval", "    import time; time.sleep(30)\n    assert adaptive_eval"
        )
    )
    result = project.spawn("-n2")
    assert result.ret != 0
    assert ("test_gate", "PASS") not in project.outcomes()


@pytest.mark.slow
def test_an_interview_may_wait_for_its_baseline(lab: Any) -> None:
    lab.ini("timeout = 1\nfaulthandler_timeout = 1")
    lab.bank("toy")
    lab.toy(fault=SLOW)
    lab.tests("""
        import pytest

        @pytest.mark.adaptive_eval("toy.jsonl", name="old", budget=30, stop="budget")
        def test_old(item, model):
            assert item.grade(model.generate(item.prompt))

        @pytest.mark.adaptive_eval("toy.jsonl", name="new", budget=30, stop="budget")
        def test_new(item, model):
            assert item.grade(model.generate(item.prompt))

        @pytest.mark.adaptive_gate("new", not_worse_than="old", margin=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """)
    result = lab.spawn("-n2")
    assert result.ret == 0
    assert lab.outcomes() == [("test_gate", "PASS")]
    assert "Timeout" not in result.stderr.str()
