"""A watched evaluation: an alarm warns or fails the run, and every run says what changed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from laboratory import Lab

CHANGE = re.compile(r"toy: accuracy \.\d+ (to \.\d+, errors|as in run)")


def cases(lab: Lab, name: str) -> dict[str, ElementTree.Element]:
    root = ElementTree.parse(lab.path / name).getroot()
    return {case.get("name", ""): case for case in root.iter("testcase")}


def properties(lab: Lab, name: str) -> dict[str, str]:
    root = ElementTree.parse(lab.path / name).getroot()
    return {entry.get("name", ""): entry.get("value", "") for entry in root.iter("property")}


def nights(lab: Lab, action: str, *args: str, workers: tuple[str, ...] = ()) -> list[pytest.RunResult]:
    """A good night, one alike, and one of a model that fell."""
    lab.bank()
    lab.tests(lab_tests(action))
    results = []
    for tenths in (9, 9, 3):
        lab.toy(tenths=tenths, identity=f"'toy', 'checkpoint-{tenths}'")
        flags = ("--junitxml=j.xml", "--adaptive-eval-junit=g.xml", *args)
        results.append(lab.run_with(workers, *workers, *flags))
    return results


def lab_tests(action: str) -> str:
    drift = f", drift={action!r}" if action else ""
    return f"""
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget"{drift})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""


def test_an_alarm_fails_the_run_in_a_test_of_its_own(lab: Lab) -> None:
    first, second, third = nights(lab, "fail")
    assert [result.ret for result in (first, second, third)] == [0, 0, 1]
    states = [record["interviews"][0]["drift"]["state"] for record in lab.records]
    assert states == ["unknown", "none", "alarm"]
    first.stdout.fnmatch_lines(["*unknown whether a level fell*"])
    assert CHANGE.search(" ".join(second.outlines))
    third.stdout.fnmatch_lines(["FAILED test_it.py::toy-drift - accuracy of toy fell*"])
    third.assert_outcomes(passed=1, failed=1)
    for name, case in (("j.xml", "toy-drift"), ("g.xml", "drift")):
        (failure,) = cases(lab, name)[case].iter("failure")
        assert "accuracy of toy fell from" in failure.get("message", "")
        assert properties(lab, name)["drift"] == "alarm"
        assert properties(lab, name)["since_last_run"].startswith("accuracy .")
    assert lab.record["exit_status"] == 1


def test_a_warning_and_an_evaluation_that_is_not_watched_let_the_run_pass(lab: Lab) -> None:
    *_, third = nights(lab, "fail", "--adaptive-eval-drift=warn")  # the flag wins
    assert third.ret == 0
    third.stdout.fnmatch_lines(["WARNING: toy: accuracy of toy fell from*"])
    assert not list(cases(lab, "j.xml")["toy-drift"].iter("failure"))


@pytest.mark.slow
def test_without_the_setting_a_run_only_says_what_changed(lab: Lab) -> None:
    *_, third = nights(lab, "")
    assert third.ret == 0
    assert CHANGE.search(" ".join(third.outlines))
    assert "toy-drift" not in cases(lab, "j.xml")
    assert "drift" not in cases(lab, "g.xml")


@pytest.mark.slow
def test_workers_hand_the_watched_evaluations_to_their_controller(lab: Lab) -> None:
    *_, third = nights(lab, "fail", workers=("-n2",))
    assert third.ret == 1
    assert list(cases(lab, "j.xml")["toy-drift"].iter("failure"))


@pytest.mark.slow
def test_an_ini_setting_watches_and_a_wrong_one_is_refused(lab: Lab) -> None:
    lab.ini("adaptive_eval_drift = fail\n")
    assert nights(lab, "")[-1].ret == 1
    lab.ini("adaptive_eval_drift = loud\n")
    result = lab.spawn()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*adaptive_eval_drift is 'loud', expected warn or fail*"])


@pytest.mark.slow
def test_a_damaged_file_of_accepted_levels_fails_a_watched_run(lab: Lab) -> None:
    first, *_ = nights(lab, "fail")
    assert first.ret == 0
    (lab.path / ".adaptive-eval" / "accepted-levels.jsonl").write_text("no JSON\n")
    lab.toy(tenths=9, identity="'toy', 'another'")
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*earlier runs cannot be compared with:*accepted-levels.jsonl, line 1*"])


def test_a_run_says_which_junit_report_is_for_which_ci(lab: Lab) -> None:
    lab.project()
    said = "give Jenkins and GitLab the report of --adaptive-eval-junit=FILE"
    assert said in " ".join(" ".join(lab.run("--junitxml=j.xml").outlines).split())
    both = lab.run("--junitxml=j.xml", "--adaptive-eval-junit=g.xml", "--adaptive-eval-seed=1")
    assert said not in " ".join(" ".join(both.outlines).split())
