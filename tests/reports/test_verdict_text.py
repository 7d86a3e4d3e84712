"""The sentence of a verdict, and the command that comes next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from made import changed

from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports.verdict_text import Step, next_steps, verdict_text


def judged(make: SimpleNamespace, outcome: str, condition: dict[str, Any], bounds: tuple[float, float, float]) -> Any:
    """A gate on an interval (low, estimate, high)."""
    low, estimate, high = bounds
    gate = make.gate(outcome, condition=condition)
    gate.verdict = changed(gate.verdict, metric="score of cat", interval=make.interval(estimate, low, high))
    return gate


CAT = "score of cat: "
GATE = "pytest --adaptive-eval tests/test_eval.py::test_promotion"


def paired(margin: float, metric: str = "accuracy") -> dict[str, Any]:
    return {"metric": metric, "kind": "not_worse_than", "name": "main", "value": margin}


def least(value: float, metric: str = "accuracy") -> dict[str, Any]:
    return {"metric": metric, "kind": "at_least", "value": value}


@pytest.mark.parametrize(
    ("condition", "bounds", "sentence"),
    [
        (paired(0.1), (-0.362, -0.195, -0.113), "20 points below main, between 11 and 36; 10 are allowed"),
        (paired(0.1), (-0.362, -0.195, -0.101), "20 points below main, between 10.1 and 36.2; 10 are allowed"),
        (paired(0.05), (-0.03, 0.02, 0.08), "2 points above main, between 3 below and 8 above; 5 below are allowed"),
        (paired(0.05), (-0.08, -0.01, 0.03), "1 point below main, between 8 below and 3 above; 5 below are allowed"),
        (paired(0.05), (0.01, 0.02, 0.03), "2 points above main, between 1 and 3; 5 below are allowed"),
        (
            paired(0.2, "score"),
            (-0.9, -0.5, -0.31),
            "0.50 points below main in score, between 0.31 and 0.90; 0.2 are allowed",
        ),
        (least(0.6), (0.603, 0.75, 0.867), "75 % right, between 60.3 % and 86.7 %; at least 60 % required"),
        (least(0.6), (0.75, 0.75, 0.75), "75 % right; at least 60 % required"),
        (paired(0.1), (0.0, 0.0, 0.0), "0 points from main; 10 are allowed"),
        (paired(0.1), (-0.2, -0.2, -0.2), "20 points below main; 10 are allowed"),
        (least(0.605), (0.6, 0.75, 0.867), "75 % right, between 60 % and 87 %; at least 60.5 % required"),
        (paired(0.01), (-0.2, -0.1, -0.05), "10 points below main, between 5 and 20; 1 is allowed"),
        (least(0.5, "auc"), (0.6, 1.0, 1.4), f"{CAT}1.0 levels, between 0.60 and 1.40; at least 0.5 required"),
        (least(0.3, "energy"), (0.589, 0.675, 0.751), f"{CAT}68 %, between 59 % and 75 %; at least 30 % required"),
        (least(3.5, "score"), (3.952, 4.058, 4.164), f"{CAT}4.1 points, between 4.0 and 4.2; at least 3.5 required"),
        (
            least(3.5, "score"),
            (3.498, 4.058, 4.164),
            f"{CAT}4.1 points, between 3.498 and 4.164; at least 3.5 required",
        ),
        (
            {**least(0.03, "other"), "kind": "at_most"},
            (0.011, 0.0213, 0.04),
            f"{CAT}0.021, between 0.011 and 0.040; at most 0.03 allowed",
        ),
        (least(0.0, "ability"), (-1.0, 0.5, 2e6), "ability 0.5"),
    ],
)
def test_a_verdict_is_one_sentence_whose_numbers_differ_from_the_limit_as_they_do_in_truth(
    make: SimpleNamespace, condition: dict[str, Any], bounds: tuple[float, float, float], sentence: str
) -> None:
    gate = judged(make, "FAIL", condition, bounds)
    if condition["metric"] == "ability":
        gate.verdict = changed(gate.verdict, metric="ability", stated=sentence)
    text = verdict_text(make.record(gates=[gate]), gate)
    assert text.sentence == sentence
    assert text.sentence.startswith(text.quantity or text.number)


def test_a_baseline_is_called_by_its_subject_unless_that_is_the_model_itself(make: SimpleNamespace) -> None:
    gate = judged(make, "FAIL", {**paired(0.1), "name": "baseline"}, (-0.4, -0.2, -0.15))
    for subject, called in (("step-3000", "step-3000"), ("vlm-2b-step-4000", "the baseline"), ("", "the baseline")):
        record = make.record([make.interview(baselines={"baseline": {"subject": subject}})], [gate])
        assert verdict_text(record, gate).rest.startswith(f"below {called}, ")


def run_of(make: SimpleNamespace, gate: Any, **interview: Any) -> RunRecord:
    record: RunRecord = make.record([make.interview(**interview)], [gate])
    record.exit_status = 1
    return record


def wrong(count: int) -> list[Administration]:
    return [Administration(n, f"q-{n}", "h", score=0.0) for n in range(count)]


COMPARE = "adaptive-eval history --compare 'old/main run.json' 20310506T070809000Z"
FAILED = "pytest --adaptive-eval --adaptive-eval-failed=20310506T070809000Z"
SOURCE = {"path": "old/main run.json", "lost": ["q-1"], "common": 9}


@pytest.mark.parametrize(
    ("outcome", "interview", "text", "command"),
    [
        ("FAIL", {"administrations": wrong(2)}, "ask the 2 wrongly answered questions again", FAILED),
        (
            "FAIL",
            {"administrations": wrong(2), "baselines": {"main": SOURCE}},
            "wrongly answered questions again, 1 of them lost",
            FAILED,
        ),
        (
            "FAIL",
            {"administrations": wrong(2), "baselines": {"main": {**SOURCE, "lost": ["q-0", "q-1"]}}},
            "ask the 2 lost questions again",
            FAILED,
        ),
        ("FAIL", {"baselines": {"main": SOURCE}}, "compare", COMPARE),
        ("FAIL", {}, "read the answers", "adaptive-eval report 20310506T070809000Z --html report.html"),
        ("INCONCLUSIVE", {}, "raise the budget", "pytest --adaptive-eval --adaptive-eval-budget=192"),
        ("INCONCLUSIVE", {"statuses": {"ok": 90, "timeout": 6}}, "the 6 questions without a score", GATE),
        ("ERROR", {}, "correct what the verdict names", GATE),
    ],
)
def test_the_next_step_follows_from_what_was_found(
    make: SimpleNamespace, outcome: str, interview: dict[str, Any], text: str, command: str
) -> None:
    gate = judged(make, outcome, paired(0.1), (-0.4, -0.2, -0.15))
    (step,) = next_steps(run_of(make, gate, **interview))
    assert text in step.text
    assert step.command == command


def test_an_undecided_gate_on_the_whole_bank_does_not_ask_for_a_larger_budget(make: SimpleNamespace) -> None:
    gate = make.gate("INCONCLUSIVE")
    gate.verdict = changed(gate.verdict, asked=640)
    (step,) = next_steps(run_of(make, gate, asked=640, bank={"name": "mmmu", "path": "b.jsonl", "size": 640}))
    assert step.command == "adaptive-eval plan b.jsonl --margin 0.1"


def test_equal_steps_are_named_once_and_those_of_failed_gates_first(make: SimpleNamespace) -> None:
    gates = [make.gate(), make.gate("FAIL", name="a"), make.gate("FAIL", name="b")]
    record = make.record(gates=gates)
    assert next_steps(record) == [
        Step("read the answers", "adaptive-eval report 20310506T070809000Z --html report.html")
    ]


def test_a_promoted_run_says_how_a_script_promotes(make: SimpleNamespace) -> None:
    record = make.record()
    record.exit_status = 0
    (step,) = next_steps(record)
    assert step.command == "adaptive-eval report 20310506T070809000Z --exit-code"


def test_a_step_of_some_evaluations_names_them(make: SimpleNamespace) -> None:
    gates = [make.gate("FAIL"), make.gate("FAIL"), make.gate("ERROR")]
    for gate, name in zip(gates, ("first", "second", "third"), strict=True):
        gate.interview = name
    repair, read = next_steps(make.record(gates=gates))
    assert repair.text.startswith("third: correct what the verdict names")
    assert read.text == "first, second: read the answers"


def test_a_promotion_by_opinion_alone_is_not_the_first_thing_to_do(make: SimpleNamespace) -> None:
    record = make.record()
    record.exit_status = 0
    record.interviews[0].opinion = True
    (step,) = next_steps(record)
    assert step.text.startswith("add a gate on a bank or a task, or promote the checkpoint on models' opinion")


def test_an_alarm_on_the_evaluation_is_a_step(make: SimpleNamespace) -> None:
    record = make.record()
    record.exit_status = 0
    for name, count in (("mmmu", 2), ("another", 1)):
        series = Series(name, "mmmu", "b", "s", "accuracy", "", ())
        steps = next_steps(record, [Alarm(series, 0, 0, None, 0.5, 0.4, "fell")] * 2)
        assert len(steps) == count
    both = [Series("mmmu", "mmmu", "b", "s", "accuracy", category, ()) for category in ("", "art")]
    *_, step = next_steps(record, [Alarm(series, 0, 0, None, 0.5, 0.4, "fell") for series in both])
    assert step.text == "look at the alarms on accuracy of mmmu, accuracy of mmmu in art"
