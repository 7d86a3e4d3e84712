"""Gates that declare their conditions by marks, and gates whose conditions only their bodies know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation import gate_keys, read_gate
from pytest_adaptive_eval.gates.condition import Condition

INTERVIEW = """
import pytest

FLOOR = 0.5
FLOORS = {"toy": 0.5}

@pytest.mark.adaptive_eval("toy.jsonl", budget=100)
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.fixture
def floor():
    return FLOOR
"""
#: Spellings of one gate by marks.
MARKED = {
    "literal": """
@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
""",
    "share": """
@pytest.mark.adaptive_gate("toy", at_least="50%")
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
""",
    "constant": """
@pytest.mark.adaptive_gate("toy", at_least=FLOOR)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
""",
    "dict": """
@pytest.mark.adaptive_gate("toy", at_least=FLOORS["toy"])
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
""",
    "helper": """
def accurate(name):
    return pytest.mark.adaptive_gate(name, at_least=FLOORS[name])

def judge(results):
    assert results.verdicts

@accurate("toy")
def test_gate(adaptive_eval):
    judge(adaptive_eval)
""",
    "loop": """
def test_gate(adaptive_eval):
    for verdict in adaptive_eval.verdicts:
        assert verdict

for name, least in FLOORS.items():
    test_gate = pytest.mark.adaptive_gate(name, at_least=least)(test_gate)
""",
    "parametrize": """
@pytest.mark.parametrize("name", [pytest.param("toy", marks=pytest.mark.adaptive_gate("toy", at_least=0.5))])
def test_gate(adaptive_eval, name):
    assert adaptive_eval.verdicts
""",
    "class": """
@pytest.mark.adaptive_gate("toy", at_least=0.5)
class TestGates:
    def test_gate(self, adaptive_eval):
        assert adaptive_eval.verdicts
""",
}
#: The same gate in bodies.
BODIES = {
    "literal": """
def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.5)
""",
    "share": """
def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least("50%")
""",
    "constant": """
def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(FLOOR)
""",
    "dict": """
def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(FLOORS["toy"])
""",
    "helper": """
def judge(result):
    assert result.accuracy.at_least(0.5)

def test_gate(adaptive_eval):
    judge(adaptive_eval["toy"])
""",
    "loop": """
def test_gate(adaptive_eval):
    for name, least in FLOORS.items():
        assert adaptive_eval[name].accuracy.at_least(least)
""",
    "parametrize": """
@pytest.mark.parametrize("least", [0.5])
def test_gate(adaptive_eval, least):
    assert adaptive_eval["toy"].accuracy.at_least(least)
""",
    "fixture": """
def test_gate(adaptive_eval, floor):
    assert adaptive_eval["toy"].accuracy.at_least(floor)
""",
}
TOML = """
[[eval]]
bank = "toy.jsonl"
budget = 100
[[eval.gate]]
at_least = 0.5
"""
MARK = '@pytest.mark.adaptive_gate("toy", at_least=0.5)'


@pytest.fixture
def toy(lab: Any) -> Any:
    """A bank, and a model with 9 of 10 right."""
    lab.bank(n=300)
    lab.toy(9)
    return lab


def ask(lab: Any, text: str) -> list[str]:
    """Run the interview with a gate, which passes, and return the questions."""
    before = len(lab.asked)
    lab.tests(INTERVIEW + text)
    assert lab.run().ret == 0
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]
    return list(lab.asked[before:])


def run(lab: Any, gate: str) -> tuple[pytest.RunResult, str]:
    """Run the interview with a gate, and return the result and its output in one line."""
    lab.tests(INTERVIEW + gate)
    result = lab.run()
    return result, " ".join((result.stdout.str() + result.stderr.str()).split())


@pytest.mark.slow
def test_all_spellings_of_a_declared_gate_ask_the_same_questions(toy: Any) -> None:
    asked = {spelling: ask(toy, text) for spelling, text in MARKED.items()}
    (toy.path / "test_it.py").unlink()
    (toy.path / "adaptive-eval.toml").write_text(TOML)
    before = len(toy.asked)
    assert toy.run().ret == 0
    asked["TOML"] = toy.asked[before:]
    assert {spelling: questions == asked["literal"] for spelling, questions in asked.items()} == dict.fromkeys(
        asked, True
    )
    assert len(asked["literal"]) < 40
    (interview,) = toy.record["interviews"]
    assert interview["stop"] == "DECISION"
    assert [condition["value"] for condition in interview["conditions"]] == [0.5]


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("spelling", BODIES)
def test_a_condition_of_the_body_asks_the_whole_budget_after_a_warning(toy: Any, spelling: str) -> None:
    toy.tests(INTERVIEW + BODIES[spelling])
    result = toy.run("-q")
    assert result.ret == 0
    assert len(toy.asked) == 100
    name = f"test_gate{'[0.5]' * (spelling == 'parametrize')}"
    warning = (
        f"toy: the condition of {name} is in the test's body, which runs after the interview: it asks its whole "
        'budget, 100 questions. To stop at the verdict, put @pytest.mark.adaptive_gate("toy", at_least=...) on the '
        "test, and `assert adaptive_eval.verdicts` into it"
    )
    told = " ".join(result.stdout.str().split())
    assert told.index(f"adaptive-eval: WARNING: {warning}") < told.index("++++")
    (interview,) = toy.record["interviews"]
    assert warning.removeprefix("toy: ") in interview["notes"]
    (gate,) = toy.record["gates"]
    assert f"; write {MARK} to stop at the verdict" in gate["verdict"]["sentence"]


def test_the_mark_that_a_verdict_names_asks_fewer_questions(toy: Any) -> None:
    ask(toy, BODIES["helper"])
    mark = toy.record["gates"][0]["verdict"]["sentence"].partition("write ")[2].partition(" to stop")[0]
    gate = f"{mark}\ndef test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    assert ask(toy, gate) == ask(toy, MARKED["literal"])


def test_no_warning_where_no_mark_would_save_a_question(toy: Any) -> None:
    toy.tests(INTERVIEW.replace("budget=100", "budget=30, stop='budget'") + BODIES["helper"])
    assert "WARNING" not in toy.run().stdout.str()
    assert len(toy.asked) == 30


def test_every_mark_of_a_test_is_judged_in_the_order_of_the_marks(toy: Any) -> None:
    marks = "".join(
        f'@pytest.mark.adaptive_gate("toy", {keys})\n'
        for keys in ("at_least=0.5, confidence=0.9", 'at_least=0.6, on_inconclusive="pass"')
    )
    _, told = run(toy, f"{marks}def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n    assert 0")
    assert "1 failed" in told
    conditions = toy.record["interviews"][0]["conditions"]
    assert conditions == [
        {"metric": "accuracy", "kind": "at_least", "value": 0.5, "confidence": 0.9},
        {"metric": "accuracy", "kind": "at_least", "value": 0.6, "on_inconclusive": "pass"},
    ]
    verdicts = [gate["verdict"] for gate in toy.record["gates"]]
    assert [verdict["condition"]["value"] for verdict in verdicts[:2]] == [0.5, 0.6]


def test_the_failing_verdict_is_in_the_assertion(toy: Any) -> None:
    other = '@pytest.mark.adaptive_gate("toy", at_least=0.97)\n'
    result, told = run(toy, f"{MARK}\n{other}def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n")
    assert result.ret == 1
    assert toy.outcomes() == [("test_gate", "PASS"), ("test_gate", "FAIL")]
    assert "assert FAIL accuracy ." in told
    assert "< .97 required" in told


#: Bodies of a gate with two marks, of which the second fails.
UNREAD = {
    "empty": "pass",
    "repr": "repr(adaptive_eval.verdicts)",
    "length": "assert len(adaptive_eval.verdicts) == 2",
    "is": "assert adaptive_eval.verdicts is not None",
    "one of two": "assert adaptive_eval.verdicts[0]",
    "result": 'assert adaptive_eval["toy"].asked',
}


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("body", UNREAD)
@pytest.mark.parametrize(("least", "outcome"), [(0.4, "PASS"), (0.97, "FAIL")])
def test_a_gate_that_does_not_read_its_verdicts_fails(toy: Any, body: str, least: float, outcome: str) -> None:
    marks = f'{MARK}\n@pytest.mark.adaptive_gate("toy", at_least={least})\n'
    result, told = run(toy, f"{marks}def test_gate(adaptive_eval):\n    {UNREAD[body]}\n")
    assert result.ret == 1
    judged = ".verdicts" in UNREAD[body] and outcome == "FAIL"
    assert (
        "the test did not read the verdicts of its marks: write `assert adaptive_eval.verdicts` into it" in told
    ) is (not judged)
    assert ("(1 of 2 verdicts do not hold)" in told) is judged


@pytest.mark.parametrize("body", ["assert adaptive_eval.verdicts or True", "bool(adaptive_eval.verdicts)"])
def test_a_verdict_that_does_not_hold_fails_whatever_the_body_does(toy: Any, body: str) -> None:
    mark = '@pytest.mark.adaptive_gate("toy", at_least=0.97)\n'
    result, told = run(toy, f"{mark}def test_gate(adaptive_eval):\n    {body}\n")
    assert result.ret == 1
    assert toy.outcomes() == [("test_gate", "FAIL")]
    assert "FAIL accuracy" in told


def test_one_of_several_marks_may_suffice(toy: Any) -> None:
    other = '@pytest.mark.adaptive_gate("toy", at_least=0.97)\n'
    body = "def test_gate(adaptive_eval):\n    assert adaptive_eval.any_of(*adaptive_eval.verdicts)\n"
    result, _ = run(toy, f"{MARK}\n{other}{body}")
    assert result.ret == 0
    assert toy.outcomes() == [("test_gate", "PASS")]


TAIL = "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
#: Gates with a mistake, and what is said of them before the first question.
MISTAKES = {
    "no name": ("@pytest.mark.adaptive_gate(at_least=0.5)\n" + TAIL, "expected the name of one evaluation"),
    "two arguments": ('@pytest.mark.adaptive_gate("toy", 0.5)\n' + TAIL, "has the arguments ('toy', 0.5), expected"),
    "no condition": (
        '@pytest.mark.adaptive_gate("toy")\n' + TAIL,
        "a gate has one condition of at_least, at_most, not_worse_than, rank_within, above; found none",
    ),
    "two conditions": (
        '@pytest.mark.adaptive_gate("toy", at_least=0.5, above="x")\n' + TAIL, "found at_least and above"
    ),
    "unknown name": (
        '@pytest.mark.adaptive_gate("toys", at_least=0.5)\n' + TAIL, "not among the collected evaluations"
    ),
    "unknown key": (
        '@pytest.mark.adaptive_gate("toy", at_last=0.5)\n' + TAIL,
        "test_it.py::test_gate: unknown setting 'at_last'; did you mean 'at_least'?",
    ),
    "wrong type": (
        '@pytest.mark.adaptive_gate("toy", at_least=...)\n' + TAIL, "at_least is Ellipsis, expected a number"
    ),
    "no margin": (
        '@pytest.mark.adaptive_gate("toy", not_worse_than="baseline")\n' + TAIL,
        "test_it.py::test_gate: not_worse_than and margin go together",
    ),
    "out of range": (f"{MARK[:-4]}1.5)\n{TAIL}", "accuracy.at_least(1.5): an accuracy lies in [0, 1]"),
    "twice": (f"{MARK}\n{MARK}\n{TAIL}", "test_it.py::test_gate: two marks adaptive_gate are the same: remove one"),
    "no fixture": (f"{MARK}\ndef test_gate():\n    pass\n", "give it the argument `adaptive_eval`, and write `assert"),
    "an interview": (
        f"pytestmark = pytest.mark.adaptive_gate('toy', at_least=0.5)\n{TAIL}", "asks questions and cannot judge"
    ),
}  # fmt: skip


@pytest.mark.fast_rows(3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_marks_are_refused_before_the_first_question(toy: Any, mistake: str) -> None:
    gate, message = MISTAKES[mistake]
    result, told = run(toy, gate)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in told
    assert toy.asked == []


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (
            f'{MARK}\ndef test_gate(adaptive_eval):\n    assert adaptive_eval["toy"].accuracy.at_least(0.4)\n',
            'write @pytest.mark.adaptive_gate("toy", at_least=0.4) on the test, and read adaptive_eval.verdicts',
        ),
        (TAIL, 'the test has none: put @pytest.mark.adaptive_gate("name", at_least=0.6) on it'),
        (
            BODIES["literal"].replace("at_least(0.5)", 'not_worse_than("old.csv", margin=0.1)'),
            """put @pytest.mark.adaptive_gate("toy", not_worse_than='old.csv', margin=0.1) on the test""",
        ),
    ],
    ids=["a mark and a body", "no mark", "a baseline that is not known"],
)
def test_what_the_interview_could_not_know_is_refused_with_the_mark_to_write(toy: Any, gate: str, message: str) -> None:
    result, told = run(toy, gate)
    assert result.ret == 1
    assert message in told
    assert [outcome for _, outcome in toy.outcomes()] == ["ERROR"]


def test_a_mark_that_is_gone_is_refused_with_what_to_write(toy: Any) -> None:
    toy.tests(f"{INTERVIEW}@pytest.mark.adaptive_suite(at_least=1){MARKED['literal']}")
    result = toy.run("--strict-markers")
    told = " ".join((result.stdout.str() + result.stderr.str()).split())
    assert result.ret == 4
    assert "test_gate: adaptive_suite is gone: write a gate for each requirement that must hold" in told


# -- which evaluations a gate waits for ---------------------------------------------------------------


TWO = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", name="{name}", budget=20)
def test_{name}(item, model):
    assert item.grade(model.generate(item.prompt))
"""


def test_a_gate_waits_for_what_its_marks_name_and_brings_it_along(toy: Any) -> None:
    gate = MARKED["literal"].replace('"toy"', '"z"')
    toy.tests("import pytest\n" + gate, name="test_a")
    toy.tests(TWO.format(name="y"), name="test_y")
    toy.tests(TWO.format(name="z"), name="test_z")
    assert toy.run("-k", "test_gate").ret == 0
    assert [interview["name"] for interview in toy.record["interviews"]] == ["z"]
    assert toy.run().ret == 0
    assert toy.outcomes() == [("test_gate", "PASS")]


def test_a_gate_without_marks_waits_for_its_file_and_reads_nothing_else(toy: Any) -> None:
    gate = "def test_gate(adaptive_eval):\n    assert adaptive_eval[{!r}].accuracy.at_least(0.3)\n"
    toy.tests(TWO.format(name="z"), name="test_z")
    toy.tests(gate.format("y") + TWO.format(name="y"), name="test_a")
    assert toy.run("-k", "test_gate").ret == 0
    assert [interview["name"] for interview in toy.record["interviews"]] == ["y"]
    toy.tests(gate.format("z") + TWO.format(name="y"), name="test_a")
    result = toy.run()
    assert result.ret == 1
    assert "adaptive_eval['z']: test_a.py::test_gate waits for y only: name all that it reads" in result.stdout.str()


def test_a_gate_without_marks_in_a_file_of_its_own_waits_for_all(toy: Any) -> None:
    toy.tests("def test_gate(adaptive_eval):\n    assert adaptive_eval['z'].accuracy.at_least(0.3)\n", name="test_a")
    toy.tests(TWO.format(name="y"), name="test_y")
    toy.tests(TWO.format(name="z"), name="test_z")
    assert toy.run("-k", "test_gate").ret == 0
    assert [interview["name"] for interview in toy.record["interviews"]] == ["y", "z"]


@pytest.mark.slow
def test_marks_hold_on_workers(toy: Any) -> None:
    pytest.importorskip("xdist")
    alone = ask(toy, MARKED["literal"])
    toy.tests(INTERVIEW + MARKED["literal"])
    assert toy.spawn("-n2").ret == 0
    assert toy.outcomes() == [("test_gate", "PASS")]
    assert sorted(toy.asked[len(alone) :]) == sorted(alone)
    toy.tests(INTERVIEW + BODIES["helper"])
    result = toy.spawn("-n2")
    result.stdout.fnmatch_lines(["adaptive-eval: WARNING: toy: the condition of test_gate is in the test's body*"])


def test_last_failed_runs_a_marked_gate_with_its_interview(toy: Any) -> None:
    other = '@pytest.mark.adaptive_gate("toy", at_least=0.97)\ndef test_other(adaptive_eval):\n'
    run(toy, f"{MARKED['literal']}\n{other}    assert adaptive_eval.verdicts\n")
    result = toy.run("--lf", "-p", "cacheprovider")
    assert result.ret == 1
    assert toy.outcomes() == [("test_other", "FAIL")]


def test_a_run_without_the_flag_skips_marked_tests(toy: Any) -> None:
    toy.tests(INTERVIEW + MARKED["literal"] + f"{MARK}\ndef test_bare():\n    assert 0\n")
    toy.run(active=False).assert_outcomes(skipped=3)


@pytest.mark.parametrize(
    "condition",
    [
        Condition("accuracy", "at_least", 0.6),
        Condition("ability", "at_least", -1.5, confidence=0.9),
        Condition("accuracy", "at_least", 0.7, method="like-questions"),
        Condition("accuracy", "not_worse_than", 0.02, "baseline", on_inconclusive="warn"),
        Condition("accuracy", "rank_within", 3, confidence=0.9),
        Condition("accuracy", "above", name="old"),
    ],
    ids=lambda condition: condition.label,
)
def test_the_keys_of_a_condition_make_the_same_condition(condition: Condition) -> None:
    keys = gate_keys(condition)
    assert read_gate(keys, "x", None) == condition
    assert json.loads(json.dumps(keys)) == keys


def test_keys_that_are_no_table_are_refused() -> None:
    with pytest.raises(ConfigError, match="x: a gate has one condition of"):
        read_gate({}, "x", None)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ({"at_least": "60%"}, 0.6),
        ({"at_least": " 99.9 %"}, 0.999),
        ({"metric": "gain", "at_least": "5%"}, 0.05),
        ({"not_worse_than": "old", "margin": "2%"}, 0.02),
    ],
)
def test_a_share_is_a_number_or_percent(keys: dict[str, Any], value: float) -> None:
    assert read_gate(keys, "x", None).value == value


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"at_least": "60"}, "accuracy.at_least('60'): expected a number such as 0.6, or a share such as \"60%\""),
        ({"at_least": "160%"}, "accuracy.at_least(1.6): an accuracy lies in [0, 1]"),
        ({"metric": "ability", "at_least": "60%"}, "ability.at_least('60%'): ability is not a share: write a number"),
        ({"metric": "auc", "not_worse_than": "old", "margin": "2%"}, "auc is not a share: write a number without %"),
        ({"rank_within": "60%"}, "rank_within is '60%', expected a whole number"),
    ],
)
def test_a_text_that_is_no_share_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_gate(keys, "x", None)
    assert message in str(caught.value)


SUMS = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
@pytest.mark.parametrize("language", ["german", "english"])
def test_sums(item, model, language):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate({name!r}, at_least={target})
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


@pytest.mark.parametrize("name", ["toy[*]", "test_sums[*]", "toy[*man]", "toy[*]x"])
def test_a_pattern_judges_all_evaluations_of_such_a_name(lab: Any, name: str) -> None:
    lab.bank()
    lab.toy()
    lab.tests(SUMS.format(name=name, target=0.5))
    result = lab.run()
    judged = {"toy[*]": 2, "test_sums[*]": 2, "toy[*man]": 1}
    if name not in judged:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*not among the collected evaluations (toy*english*, toy*german*)*"])
        return
    assert lab.outcomes() == [("test_gate", "PASS")] * judged[name]


def test_a_gate_may_name_the_function_of_an_evaluation(lab: Any) -> None:
    lab.project()
    source = (lab.path / "test_it.py").read_text()
    lab.tests(source.replace('adaptive_gate("toy"', 'adaptive_gate("test_toy"'))
    lab.run()
    assert lab.outcomes() == [("test_gate", "PASS")]


def test_a_name_of_an_evaluation_wins_over_that_of_a_function(lab: Any) -> None:
    lab.project()
    source = (lab.path / "test_it.py").read_text()
    other = source.partition("@pytest.mark.adaptive_gate")[0].partition("@")[2].replace("test_toy", "test_other")
    other = "\n@" + other.replace('bank="toy.jsonl"', 'bank="toy.jsonl", name="test_toy"')
    lab.tests(source.replace('adaptive_gate("toy"', 'adaptive_gate("test_toy"') + other)
    lab.run()
    assert [gate["interview"] for gate in lab.record["gates"]] == ["test_toy"]


def test_a_question_without_a_mark_says_what_to_write(lab: Any) -> None:
    lab.project()
    lab.tests((lab.path / "test_it.py").read_text() + "\ndef test_forgotten(item):\n    pass\n")
    result = lab.run()
    result.stdout.fnmatch_lines(["*test_forgotten*the test takes the argument item and has no mark*"])
    assert "fixtures.py" not in result.stdout.str(), "no code of the plugin"
