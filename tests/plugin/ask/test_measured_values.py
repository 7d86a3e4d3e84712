"""Values of answers beside their scores: where they come from, that they stay with their call, and gates on them."""

from __future__ import annotations

import json
import re

import pytest

SAMPLES = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, samples={samples})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", metric="{metric}", at_least=0.3)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
#: Every third answer to a question whose number ends in 8 or 9 is right.
SAMPLING = "if number % 10 > 7 and n % 3: return 'wrong'"
FIELDS = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=40, stop="budget")
def test_toy(item, model):
    text = model.generate(item.prompt)
    number = int(item.prompt.split()[-1])
    {record}
    assert item.grade(text)

@pytest.mark.adaptive_gate("toy", metric="latency", within=2.0, at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def measures(record):
    answers = record["interviews"][0]["administrations"]
    return {answer["item"]: answer["measures"] for answer in answers}


def test_items_right_in_some_samples_are_listed_with_their_estimates(lab):
    lab.bank()
    lab.toy(10, fault=SAMPLING, identity='"toy", "hash", {"temperature": 1.0}')
    lab.tests(SAMPLES.format(samples=3, metric="pass^2"))
    result = lab.run("--adaptive-eval-html=page.html", "--adaptive-eval-junit=gates.xml")
    interview = lab.record["interviews"][0]
    right: dict[str, list[bool]] = {}
    for answer in interview["administrations"]:
        right.setdefault(answer["item"], []).append(answer["score"] == 1.0)
    assert interview["flaky"] == [item for item, found in right.items() if len(set(found)) == 2]
    assert {int(item[1:]) % 10 for item in interview["flaky"]} <= {8, 9}
    estimates = interview["item_estimates"]["pass^2"]
    assert estimates == pytest.approx({item: {3: 1.0, 2: 1 / 3}.get(sum(found), 0.0) for item, found in right.items()})
    asked = interview["asked"]
    result.stdout.fnmatch_lines([f"flaky: right in one answer and not in another: toy: * of {asked} (*)"])
    page = (lab.path / "page.html").read_text("utf-8")
    assert "Answers by item" in page
    assert f'name="flaky" value="{", ".join(interview["flaky"])}"' in (lab.path / "gates.xml").read_text("utf-8")


@pytest.mark.parametrize("metric", ["pass^3", "pass@3"])
def test_fewer_samples_than_a_metric_needs_are_refused_at_collection(lab, metric):
    lab.bank()
    lab.toy()
    lab.tests(SAMPLES.format(samples=2, metric=metric))
    result = lab.run()
    assert result.ret == 4
    said = " ".join(result.stderr.str().split())
    assert f"{metric}.at_least(0.3): each item is asked 2 times, expected samples of at least 3: write samples" in said
    assert lab.asked == []


def test_fields_of_a_test_are_judged_and_recorded(lab):
    lab.bank()
    lab.toy()
    lab.tests(FIELDS.format(record="item.record(latency=number % 10)"))
    lab.run("--junitxml=questions.xml")
    assert lab.outcomes() == [("test_gate", "FAIL")]
    (verdict,) = [gate["verdict"] for gate in lab.record["gates"]]
    assert verdict["metric"] == "share of latency within 2"
    assert verdict["condition"] == {
        "metric": "latency", "kind": "at_least", "value": 0.5, "within": 2.0,
    }  # fmt: skip
    for item, values in measures(lab.record).items():
        assert values["latency"] == int(item[1:]) % 10
    assert 'name="latency" value="9"' in (lab.path / "questions.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("item.record(latency=-1)", "item.record(latency=-1): expected a finite number of at least 0"),
        ("item.record(latency=float('inf'))", "item.record(latency=inf): expected a finite number"),
        ("item.record(accuracy=1)", "item.record(accuracy=1): accuracy is a metric of scores; choose another name"),
    ],
)
@pytest.mark.fast_rows(1)
def test_values_that_no_gate_could_read_are_refused(lab, record, said):
    lab.bank()
    lab.toy()
    lab.tests(FIELDS.format(record=record))
    lab.run()
    answers = lab.record["interviews"][0]["administrations"]
    assert {answer["score"] for answer in answers} == {None}
    assert said in answers[0]["detail"]


def test_a_field_that_no_test_records_is_an_error_with_what_was_measured(lab):
    lab.bank()
    lab.toy()
    lab.tests(FIELDS.format(record="item.record(latncy=1)"))
    lab.run()
    (verdict,) = [gate["verdict"] for gate in lab.record["gates"]]
    assert verdict["outcome"] == "ERROR"
    assert verdict["notes"][0] == "no answer has a value of latency; the run measured latncy, seconds"


def test_stored_answers_keep_their_seconds_and_the_fields_of_their_own_run(lab):
    lab.bank()
    lab.toy(fault="if n > 24 and not (HERE / 'again').exists(): raise RuntimeError")
    lab.tests(FIELDS.format(record="item.record(latency=5.0)"))
    lab.run()
    first = {item: values for item, values in measures(lab.record).items() if values}
    (lab.path / "again").touch()
    lab.tests(FIELDS.format(record="item.record(latency=0.001)"))  # as a clock says of a stored answer
    lab.run()
    again = measures(lab.record)
    assert len(lab.asked) == 40 + 3  # three in a row failed
    assert (len(first), len(again)) == (24, 40)
    for item, values in again.items():
        if item in first:
            assert values == first[item]
        else:
            assert values["latency"] == 0.001


def test_fields_that_were_not_recorded_when_the_answers_came_are_missing(lab):
    lab.bank()
    lab.toy()
    lab.tests(FIELDS.format(record="pass"))
    lab.run()
    lab.tests(FIELDS.format(record="item.record(latency=0.001)"))
    lab.run()
    (verdict,) = [gate["verdict"] for gate in lab.record["gates"]]
    assert verdict["outcome"] == "ERROR"
    assert any(note.startswith("stored answers lack latency, which the test records now") for note in verdict["notes"])
    lab.run("--adaptive-eval-fresh")
    assert lab.outcomes() == [("test_gate", "PASS")]


def lab_text(gate):
    """Tests that record a latency of 3, with another gate."""
    text = FIELDS.format(record="item.record(latency=3.0)").replace("budget=40", "budget=60")
    return re.sub(r'metric="latency".*\)', f"{gate})", text)


def test_a_loss_of_time_is_judged_against_a_record_that_measured_it(lab):
    lab.bank()
    lab.toy()
    lab.tests(FIELDS.format(record="item.record(latency=1.0)").replace("budget=40", "budget=60"))
    lab.run("--adaptive-eval-record=old.json")
    gate = 'metric="{}", not_worse_than="old.json", margin={}, {}'
    for metric, margin, bound, outcome in (
        ("latency", 0.5, "cap=10.0", "FAIL"),
        ("latency", 2.5, "cap=10.0", "PASS"),
        ("latency", 0.5, "within=2.0", "FAIL"),
    ):
        lab.tests(lab_text(gate.format(metric, margin, bound)))
        lab.run("--adaptive-eval-fresh")
        assert lab.outcomes() == [("test_gate", outcome)]
    lab.tests(lab_text(gate.format("steps", 0.5, "within=2.0")))
    result = lab.run("--adaptive-eval-fresh")
    assert result.ret == 4
    assert "has no answer with a value of steps for this gate: record it" in " ".join(result.stderr.str().split())


SERVED = """
[[eval]]
bank = "toy.jsonl"
model = "{url}#m"
model_options = {{ revision = "1" }}
budget = 30
stop = "budget"
price = {{ prompt = 1000000, completion = 2000000 }}

[[eval.gate]]
metric = "output_tokens"
cap = 10
at_most = 4

[[eval.gate]]
metric = "cost"
within = 13
at_least = "60%"

[[eval.gate]]
metric = "seconds"
within = 60
at_least = "60%"
"""


def test_tokens_cost_and_seconds_of_a_server_are_measured_and_stay_with_stored_answers(lab):
    pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
    from fake_server import JsonServer, completion

    sent = []

    def answer(body, _headers):
        if "question" in json.dumps(body):
            sent.append(body)
        return completion("m", "right", usage={"prompt_tokens": 7, "completion_tokens": 3}), 200

    lab.bank()
    with JsonServer(["m"], answer) as running:
        (lab.path / "adaptive-eval.toml").write_text(SERVED.format(url=running.url))
        lab.run("--adaptive-eval-reuse=answers.sqlite")
        first = measures(lab.record)
        lab.run("--adaptive-eval-reuse=answers.sqlite")
    assert len(sent) == 30
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS", "PASS", "PASS"]
    for values in first.values():
        assert {**values, "seconds": 1.0} == {"input_tokens": 7, "output_tokens": 3, "cost": 13.0, "seconds": 1.0}
        assert 0.0 < values["seconds"] < 60.0
    assert measures(lab.record) == first


def test_a_time_out_of_the_model_is_above_any_bound(lab):
    lab.bank()
    lab.pytester.makeconftest(
        """
        import pytest
        from pytest_adaptive_eval import CallableModel

        def answer(prompt):
            if int(prompt.split()[-1]) % 20 == 0:
                raise TimeoutError("slow")
            return "right"

        @pytest.fixture(scope="module")
        def model():
            return CallableModel(answer, "toy", checkpoint="1")
        """
    )
    text = SAMPLES.format(samples=1, metric="seconds").replace("at_least=0.3", "within=1e6, at_least=0.99")
    lab.tests(text.replace("budget=30", 'budget=60, stop="budget"'))
    lab.run()
    late = {item for item, values in measures(lab.record).items() if values == {"timed out": 1.0}}
    assert {int(item[1:]) % 20 for item in late} == {0}
    (verdict,) = [gate["verdict"] for gate in lab.record["gates"]]
    assert len(late) == 3
    assert verdict["outcome"] == "FAIL"
    assert verdict["interval"]["high"] < 0.99
    assert not any("without a value" in note for note in verdict["notes"])


OWN_MODEL = """
import pytest
from pytest_adaptive_eval import Completion, Model, SubjectIdentity

class Own(Model):
    def answer(self, items):
        return [Completion("right") for _ in items]

@pytest.fixture(scope="module")
def model():
    return Own(SubjectIdentity("own", "hash", {"temperature": 0}))
"""


def test_answers_of_other_runs_keep_the_fields_that_were_recorded_when_they_came(lab):
    lab.bank()
    lab.pytester.makeconftest(OWN_MODEL)
    runs = []
    for latency in (5.0, 0.001):
        lab.tests(FIELDS.format(record=f"item.record(latency={latency})"))
        lab.run("--adaptive-eval-reuse=answers.sqlite")
        runs.append(lab.record["interviews"][0]["administrations"])
    assert [{answer["reused"] for answer in answers} for answers in runs] == [{False}, {True}]
    assert {answer["measures"]["latency"] for answer in runs[1]} == {5.0}
    first, again = ({answer["item"]: answer["measures"]["seconds"] for answer in answers} for answers in runs)
    assert again == first


@pytest.mark.parametrize(
    ("more", "selector"), [("", "random"), (", floor=0.4", "spread"), (", policy='decide'", "spread")]
)
@pytest.mark.fast_rows(1)
def test_draws_are_uniform_where_no_gate_is_on_scores(lab, more, selector):
    lab.calibrated()
    lab.toy()
    text = FIELDS.format(record="item.record(latency=1.0)").replace("toy.jsonl", "toy.bank")
    lab.tests(text.replace(', stop="budget"', more))
    lab.run()
    interview = lab.record["interviews"][0]
    assert interview["policy"]["selector"] == selector
    assert any(
        "drawn uniformly, since no gate is on their scores" in n for n in lab.record["gates"][0]["verdict"]["notes"]
    ) == (more == "")
