"""Interviews and gates are run once, in the process and the thread that collected them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pytest_adaptive_eval.records.run_record import RunRecord

#: A test loop of another plugin, which runs the items in `places` by `call(item, nextitem)`.
LOOP = """
import os, threading
import pytest

def call(item, nextitem):
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)

def in_thread(item, nextitem):
    thread = threading.Thread(target=call, args=(item, nextitem))
    thread.start()
    thread.join()

def in_process(item, nextitem):
    if (child := os.fork()) == 0:
        call(item, nextitem)
        os._exit(0)
    os.waitpid(child, 0)

def twice(item, nextitem):
    call(item, item)
    call(item, nextitem)

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    for n, item in enumerate(session.items):
        nextitem = session.items[n + 1] if n + 1 < len(session.items) else None
        ({how} if {which} else call)(item, nextitem)
    return True
"""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["True", "'gate' in item.name", "'toy' in item.name"])
@pytest.mark.parametrize(
    "how",
    [
        "in_thread",
        pytest.param("in_process", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")),
        "twice",
    ],
)
def test_loop_that_repeats_or_moves_tests_fails_the_run(project: Any, how: str, which: str) -> None:
    (project.path / "loop_plugin.py").write_text(LOOP.format(how=how, which=which))
    result = project.spawn("-p", "loop_plugin")
    assert result.ret not in (0, pytest.ExitCode.INTERNAL_ERROR)
    sentences = {
        "in_thread": "another plugin runs this test in another thread",
        "in_process": "no result from",  # the child's report is lost with it
        "twice": "another plugin runs this test for a second time",
    }
    assert sentences[how] in result.stdout.str()
    assert len(project.asked) == (0 if how != "twice" and "gate" not in which else 30)
    for record in project.records:
        assert not RunRecord.from_json(record).promote
        assert sum(len(interview["administrations"]) for interview in record["interviews"]) == len(project.asked)


def test_gate_that_takes_the_fixture_in_a_thread_fails(project: Any) -> None:
    project.tests(
        """
        import threading
        import pytest

        @pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))

        def test_gate(adaptive_eval):
            assert adaptive_eval["toy"].accuracy.at_least(0.5)

        def test_dynamic(request):
            faults = []
            def judge():
                try:
                    request.getfixturevalue("adaptive_eval")
                except Exception as error:
                    faults.append(error)
            thread = threading.Thread(target=judge)
            thread.start()
            thread.join()
            assert not faults, faults[0]
        """
    )
    result = project.run()
    assert result.ret == 1
    assert "another plugin runs this test in another thread" in result.stdout.str()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_report_of_a_forked_test_says_what_is_wrong(project: Any) -> None:
    loop = LOOP.replace("os._exit(0)", "item.session._setupstate.teardown_exact(None); os._exit(0)")
    report = """
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if os.getpid() != PARENT:
        with open("child.txt", "a") as file:
            print(report.when, report.outcome, report.longreprtext, file=file)

PARENT = os.getpid()
"""
    (project.path / "loop_plugin.py").write_text(loop.format(how="in_process", which="True") + report)
    assert project.spawn("-p", "loop_plugin").ret != 0
    told = "\n".join(project.lines("child.txt"))
    assert "setup failed" in told
    assert "test_it.py::test_gate: another plugin runs this test in another process; interviews and gates are" in told
    assert "passed" not in told.replace("teardown passed", "")


def test_file_that_is_collected_twice_is_asked_once_or_refused(project: Any) -> None:
    result = project.run("--keep-duplicates", "test_it.py", "test_it.py")
    assert result.ret != 0
    assert len(project.asked) in (0, 30)
