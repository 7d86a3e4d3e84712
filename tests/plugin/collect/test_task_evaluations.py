"""Generated tasks in pytest: a climb level by level, or a population that other policies draw from."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval import Item, write_bank
from pytest_adaptive_eval.evaluation.sources import recorded_banks
from pytest_adaptive_eval.records.run_record import RunRecord

#: Adds numbers of up to so many digits.
MODEL = """
import re
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Adder:
    identity = SubjectIdentity("adder", "hash{digits}")

    def generate(self, prompt):
        a, b = map(int, re.findall("[0-9]+", prompt))
        return str(a + b) if len(str(a)) <= {digits} else "0"

@pytest.fixture(scope="module")
def model():
    return Adder()
"""
GUESSER = """
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Guesser:
    identity = SubjectIdentity("guesser", "hash")

    def generate(self, prompt):
        return "0"

@pytest.fixture(scope="module")
def model():
    return Guesser()
"""
TEST = """
import pytest

@pytest.mark.adaptive_eval(task="addition"{more})
def test_adding(item, model):
    assert item.grade(model.generate(item.prompt))
"""


def project(lab: Any, digits: int = 2, more: str = "", gate: str = "") -> None:
    lab.pytester.makeconftest(MODEL.format(digits=digits))
    lab.tests(TEST.format(more=more) + gate)


def asked(lab: Any) -> list[str]:
    (interview,) = lab.record["interviews"]
    return [a["item"] for a in interview["administrations"]]


def test_a_climb_ends_at_the_level_that_is_failed(lab: Any) -> None:
    project(lab)
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    first = [f"addition-1-{k}" for k in (*range(8), 10**9, 9)]  # the ninth question repeats another
    assert asked(lab) == [*first, *(f"addition-{level}-{k}" for level in (2, 3) for k in range(10))]
    assert [a["score"] for a in interview["administrations"]] == [1.0] * 20 + [0.0] * 10
    assert (interview["stop"], interview["stop_sentence"]) == ("LEVEL", "a level was failed")
    assert interview["administrations"][0]["reason"] == "the next of its level"


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 5])
def test_a_climb_ends_at_the_last_level(lab: Any, levels: int) -> None:
    project(lab, 9, f", levels={levels}, queries=4")
    assert lab.run().ret == 0
    assert len(asked(lab)) == 4 * levels
    assert lab.record["interviews"][0]["stop"] == "EXHAUSTED"


@pytest.mark.slow
def test_a_seed_gives_every_model_the_same_questions(lab: Any) -> None:
    project(lab, 3, ", queries=3, seed=7")
    assert lab.run().ret == 0
    first = asked(lab)
    assert first[0] == "addition-1-21"
    project(lab, 1, ", queries=3, seed=7")
    assert lab.run().ret == 0
    assert asked(lab) == first[: len(asked(lab))]
    assert lab.run("--adaptive-eval-seed=8").ret == 0
    assert not set(asked(lab)) & set(first)


@pytest.mark.slow
def test_one_question_is_replayed_by_its_id(lab: Any) -> None:
    project(lab)
    result = lab.run("test_it.py::test_adding[addition-2-5]", "-v")
    result.assert_outcomes(passed=1)
    assert lab.run("test_it.py::test_adding[addition-3-5]").ret == 1
    assert lab.run("test_it.py::test_adding[addition-3-99]").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_other_policies_draw_from_the_levels_as_from_a_bank(lab: Any) -> None:
    gate = (
        "\n@pytest.mark.adaptive_gate('addition', at_least=0.2)\n"
        "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    )
    project(lab, 3, ", policy='decide', levels=5, queries=40, budget=60", gate)
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    assert interview["size"] == 200
    assert {found["category"] for found in interview["categories"]} == {f"level {n}" for n in range(1, 6)}
    assert lab.outcomes() == [("test_gate", "PASS")]


def test_a_plugin_brings_a_task(lab: Any) -> None:
    project(lab)
    lab.tests(TEST.format(more="").replace('"addition"', '"echo"').replace("item.prompt)", "'3 + 4')"))
    (lab.path / "conftest.py").write_text(
        (lab.path / "conftest.py").read_text() + "\nfrom pytest_adaptive_eval.tasks import Question, TaskFamily\n"
        "def draw(rng, level):\n"
        "    return Question('Say 7.', '7')\n"
        "def pytest_adaptive_eval_task_families(config):\n"
        "    return [TaskFamily('echo', 'nothing', 3, 0.5, draw, 'exact')]\n"
    )
    assert lab.run().ret == 0
    assert len(asked(lab)) == 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", levels=99", "the task 'addition' has levels 1 to "),
        (", queries=0", "queries is 0, expected a whole number of at least 1"),
        (", stop_at=1.0", "stop_at is 1.0, expected an accuracy in [0, 1)"),
        (", budget=5", "budget does not go with a ladder, which is asked level by level: remove it; set queries"),
        (", policy='decide', stop_at=0.1", "stop_at goes with the policy 'ladder'"),
        (", settle=True", "unknown setting 'settle'"),
        (", width=1.0", "unknown setting 'width'"),
        (", stop='budget'", "stop is 'budget', expected \"decision\" or the width of the area's interval"),
        (", stop=0", "the width is 0.0, expected a number of levels above 0"),
        (", stop=0.5, stop_at=0.2", "stop_at does not go with stop = 0.5, for which all levels are asked"),
        (", bank='no.bank'", "no bank at"),
    ],
)
def test_mistakes(lab: Any, more: str, message: str) -> None:
    project(lab, 2, more)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in " ".join(result.stderr.str().split())


def test_more_mistakes(lab: Any) -> None:
    project(lab)
    lab.bank()
    for text, message in (
        ('task="adding"', "task 'adding' is not known; "),
        (
            'bank="toy.jsonl", policy="ladder"',
            "the policy 'ladder' administers the levels of a task",
        ),
        ('bank="toy.jsonl", levels=3', "levels goes with a task, and there is none"),
        ("", "bank is missing"),
    ):
        lab.tests(TEST.format(more="").replace('task="addition"', text))
        assert message in " ".join(lab.run().stderr.str().split())


def test_toml_knows_ladders(lab: Any) -> None:
    lab.pytester.makeconftest(MODEL.format(digits=2))
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\ntask = "addition"\nqueries = 5\n')
    assert lab.run().ret == 0
    assert len(asked(lab)) == 15
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\nkind = "ladder"\nbank = "toy.jsonl"\n')
    assert "unknown setting 'kind'" in lab.run().stderr.str()


def climb_of(lab: Any, said: str, more: str) -> dict[str, Any]:
    """The record of a climb of `counting` by a model that always says the same."""
    lab.pytester.makeconftest(MODEL.format(digits=2) + SAID.format(said=said))
    lab.tests(TEST.format(more=more).replace("addition", "counting"))
    lab.run()
    (interview,) = lab.record["interviews"]
    return dict(interview)


SAID = """
@pytest.fixture(scope="module")
def model():
    class Same:
        def generate(self, prompt):
            return {said!r}
    return Same()
"""


@pytest.mark.slow
def test_a_guesser_is_not_asked_to_the_last_level(lab: Any) -> None:
    interview = climb_of(lab, "5", ", queries=20")
    assert interview["stop"] == "GUESSING"
    assert interview["asked"] <= 160
    floors = interview["levels"]["guess"]
    assert len(floors) == len(interview["levels"]["accuracy"])
    assert f"({sum(floors):.2f} by guessing)".replace("(0.", "(.") in lab.run().stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize("said", ["I am not sure", "I don't know.", "Das weiß ich nicht: keine Ahnung"])
def test_an_answer_that_is_not_sure_is_wrong(lab: Any, said: str) -> None:
    interview = climb_of(lab, said, ", queries=10")
    assert (interview["stop"], interview["error"]) == ("LEVEL", "")
    assert interview["levels"]["accuracy"] == [0.0]


@pytest.mark.slow
def test_answers_without_sense_void_a_climb(lab: Any) -> None:
    assert "hold no answer at all" in climb_of(lab, "## ## ##", ", queries=10")["error"]


def gated(keys: str) -> str:
    mark = f'@pytest.mark.adaptive_gate("addition", {keys})'
    return f"\n{mark}\ndef test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("asked_for", "outcome"),
    [
        ("metric='auc', at_least=2.0", "PASS"),
        ("metric='auc', at_least=3.1", "INCONCLUSIVE"),
        ("metric='auc', at_least=5.0", "FAIL"),
        ("metric='last_level', at_least=3", "PASS"),
        ("metric='last_level', at_least=4", "INCONCLUSIVE"),  # ten wrong answers do not show that none would be right
    ],
)
def test_gates_on_the_area_and_the_last_level(lab: Any, asked_for: str, outcome: str) -> None:
    project(lab, 3, ", levels=6, queries=20", gated(asked_for))
    assert lab.run().ret == (outcome != "PASS")
    assert lab.outcomes() == [("test_gate", outcome)]
    (interview,) = lab.record["interviews"]
    levels = interview["levels"]
    assert levels["accuracy"] == [1.0, 1.0, 1.0, 0.0]
    assert (levels["auc"]["estimate"], levels["last_level"], levels["cap"]) == (3.0, 3, 6)
    assert levels["auc"]["low"] < 3.0 < levels["auc"]["high"]
    assert interview["accuracy"] is None
    assert f"AUC 3.00 [{levels['auc']['low']:.2f}" in lab.run().stdout.str()


@pytest.mark.slow
def test_the_area_is_compared_with_a_baseline_on_the_same_questions(lab: Any) -> None:
    more = ", levels=6, queries=20"
    project(lab, 3, more)
    assert lab.run("--adaptive-eval-record=base.json").ret == 0
    paired = gated("metric='auc', not_worse_than='base.json', margin=0.5")
    for digits, outcome in ((3, "PASS"), (4, "PASS"), (1, "FAIL")):
        project(lab, digits, more, paired)
        assert lab.run().ret == (outcome != "PASS")
        assert lab.outcomes() == [("test_gate", outcome)]
    sentence = lab.record["gates"][0]["verdict"]["sentence"]
    assert sentence.startswith("FAIL auc less that of base.json -2.000 [")
    again = lab.run("--adaptive-eval-seed=1")  # other questions
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    assert "changed since the baseline was recorded" in again.stderr.str()


@pytest.mark.slow
def test_workers_and_toml_judge_climbs_too(lab: Any) -> None:
    lab.pytester.makeconftest(MODEL.format(digits=3))
    (lab.path / "adaptive-eval.toml").write_text(
        '[[eval]]\ntask = "addition"\nlevels = 6\n[[eval.gate]]\nmetric = "auc"\nat_least = 1.5\n'
    )
    assert lab.spawn("-n2").ret == 0
    assert [gate["verdict"]["outcome"] for gate in lab.record["gates"]] == ["PASS"]


def test_pictures_without_pillow_are_a_usage_error(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\ntask = "grid"\nmodel = "table:95"\nlevels = 2\n')
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *tasks with pictures need pillow, which is not installed: pip install pillow"])
    assert not lab.records


def test_metrics_that_do_not_go_together(lab: Any) -> None:
    lab.bank()
    project(lab, gate=gated("at_least=0.2"))
    lab.run().stderr.fnmatch_lines(["ERROR: *gate on auc or last_level, or draw from the task*"])
    project(lab, more=", policy='decide', levels=5", gate=gated("metric='auc', at_least=2.0"))
    assert "auc is of a task that is climbed" in lab.run().stderr.str()
    for text, message in (
        ("metric='auc', rank_within=3", "auc has no such condition"),
        ("metric='last_level', not_worse_than='x', margin=0.5", "last_level has no such condition"),
        ("metric='auc', not_worse_than='x', margin=-1.0", "expected a number of levels above 0 such as 0.5"),
    ):
        project(lab, gate=gated(text))
        result = lab.run()
        assert message in " ".join((result.stdout.str() + result.stderr.str()).split())


@pytest.mark.slow
def test_a_level_may_be_settled_before_all_of_it_is_asked(lab: Any) -> None:
    project(lab, 3, ", levels=6, queries=40, stop_at=0.5, stop='decision'", gated("metric='last_level', at_least=3"))
    assert lab.run().ret == 0
    assert len(asked(lab)) == 40  # ten a level
    (interview,) = lab.record["interviews"]
    assert (interview["stop"], interview["levels"]["last_level"]) == ("LEVEL", 3)
    assert interview["levels"]["asked"] == [10] * 4
    assert interview["levels"]["auc"] is None
    assert "last level 3" in lab.run().stdout.str()
    project(lab, 3, ", levels=6, stop='decision'", gated("metric='auc', at_least=2.0"))
    assert 'stop = "decision" leaves some out: remove it' in lab.run().stderr.str()


@pytest.mark.slow
def test_a_width_asks_where_the_area_profits(lab: Any) -> None:
    project(lab, 3, ", levels=10, stop=0.8", gated("metric='auc', at_least=2.5"))
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    levels = interview["levels"]
    assert interview["stop_sentence"] == "the interval of the area reached its target width"
    assert levels["auc"]["high"] - levels["auc"]["low"] <= 0.8
    assert len(levels["asked"]) == 10
    assert sum(levels["asked"]) == interview["asked"] < 200
    reasons = {a["reason"] for a in interview["administrations"]}
    assert "one of the first of its level" in reasons
    assert lab.outcomes() == [("test_gate", "PASS")]
    again = lab.run("--adaptive-eval-record=base.json")
    assert again.ret == 0
    project(lab, 3, ", levels=10, stop=0.8", gated("metric='auc', not_worse_than='base.json', margin=0.5"))
    assert "question by question, on levels that were asked in full" in " ".join(lab.run().stdout.str().split())


def test_a_task_stands_on_the_scale_of_a_bank(lab: Any) -> None:
    slopes, rises = np.full(30, 1.5), np.repeat([3.0, 0.0, -3.0], 10)
    items = [Item(f"addition-{n // 10 + 1}-{n % 10}", f"What is {n} + 1?", str(n + 1)) for n in range(30)]
    write_bank(lab.path / "known.bank", items, discrimination=slopes, intercept=rises)
    more = ", size='small', bank='known.bank', policy='decide', levels=3, queries=60, budget=90, stop='budget'"
    project(lab, 2, more, gated("metric='ability', at_least=-1.5"))
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    scale = json.loads((lab.path / "known.bank" / "bank.json").read_text())["scale"]
    assert interview["bank"]["scale"] == scale
    assert interview["bank"]["calibrated"]
    assert 0.0 < interview["theta"][0] < 2.0  # two levels of three
    assert lab.outcomes() == [("test_gate", "PASS")]
    project(lab, 2, ", bank='known.bank', name='climbed', size='small'")
    assert lab.run().ret == 0  # a climb, with an ability besides
    assert lab.record["interviews"][0]["theta"] is not None


def test_pixels_set_the_size_of_a_tasks_pictures(lab: Any) -> None:
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow")
    lab.pytester.makeconftest(GUESSER)
    lab.tests(
        "import pytest\n"
        + "".join(
            f'''
@pytest.mark.adaptive_eval(task="grid", name="{name}", levels=1, queries=1{setting})
def test_{name}(item, model):
    assert item.grade(model.generate(item.prompt))
'''
            for name, setting in (("usual", ""), ("small", ", size=48"), ("large", ", size=500"))
        )
    )
    assert lab.run().ret == 0
    record = RunRecord.from_json(lab.record)
    banks = recorded_banks(record, [])
    assert {one.name: one.bank.content_hash for one in record.interviews} == {
        name: bank.content_hash for name, bank in banks.items()
    }
    sizes = {}
    for path in (lab.path / ".adaptive-eval" / "pictures").iterdir():
        with image.open(path) as drawn:
            sizes[path.name] = drawn.size
    assert sizes == {"grid-1-0.png": (48, 48), "grid-1-0.448.png": (448, 448), "grid-1-0.500.png": (500, 500)}


@pytest.mark.slow
def test_prompts_say_the_form_of_the_answer_unless_they_are_terse(lab: Any) -> None:
    lab.pytester.makeconftest(GUESSER)
    lab.tests(
        "import pytest\n"
        + "".join(
            f'''
@pytest.mark.adaptive_eval(task="addition", name="{name}", levels=1, queries=4{setting})
def test_{name}(item, model):
    assert item.grade(model.generate(item.prompt))
'''
            for name, setting in (("full", ""), ("terse", ", size='small'"))
        )
    )
    assert lab.run().ret == 0
    record = RunRecord.from_json(lab.record)
    prompts = {name: [bank.items[n].prompt for n in range(4)] for name, bank in recorded_banks(record, []).items()}
    assert all(prompt.endswith("? End with `Answer: <number>`.") for prompt in prompts["full"])
    assert prompts["terse"] == [prompt.removesuffix(" End with `Answer: <number>`.") for prompt in prompts["full"]]
    hashes = {one.name: one.bank.content_hash for one in record.interviews}
    assert hashes == {name: bank.content_hash for name, bank in recorded_banks(record, []).items()}


def test_a_small_form_that_a_task_lacks_is_a_usage_error(lab: Any) -> None:
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\ntask = "blur"\nmodel = "table:95"\nsize = "small"\n')
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *size is 48: pictures of the task 'blur' have 448 to 2048 pixels a side*"])


def test_pixels_that_a_task_lacks_are_a_usage_error(lab: Any) -> None:
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\ntask = "grid"\nmodel = "table:95"\nsize = 20\n')
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *size is 20: pictures of the task 'grid' have 448 to 2048 pixels a side, *"])
