"""Gates: interviews end when they are decided, and what a gate asks for is known before the first question."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

#: An interview of the default policy, and a gate.
TOY = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", budget={budget}{more})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", {gate})
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
#: The interview alone.
INTERVIEW = TOY.partition("\n@pytest.mark.adaptive_gate")[0]

#: A second subject, of which so many of ten are right.
OLD = """
class Old(Toy):
    identity = SubjectIdentity("old", "another")
    def generate(self, prompt):
        log("old.txt", prompt)
        return "right" if int(prompt.split()[-1]) % 10 < {tenths} else "wrong"

@pytest.fixture(scope="module")
def old():
    return Old()
"""


def write(
    lab: Any, gate: str, *, budget: Any = 100, more: str = "", n: int = 300, head: str = "", tail: str = ""
) -> None:
    """Bank, interview and one gate; the model is written by `lab.toy`."""
    lab.bank(n=n)
    lab.tests(head + TOY.format(gate=gate, budget=repr(budget), more=more) + tail)


def interview(lab: Any, name: str = "toy") -> dict[str, Any]:
    (found,) = [i for i in lab.record["interviews"] if i["name"] == name]
    return dict(found)


def sentence(lab: Any, gate: int = 0) -> str:
    return str(lab.record["gates"][gate]["verdict"]["sentence"])


# -- the end of an interview ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tenths", "target", "outcome"), [(9, 0.5, "PASS"), (5, 0.9, "FAIL"), (10, 0.6, "PASS"), (0, 0.2, "FAIL")]
)
def test_a_decided_interview_ends_and_the_run_says_so(lab: Any, tenths: int, target: float, outcome: str) -> None:
    write(lab, f"at_least={target}")
    lab.toy(tenths)
    result = lab.run()
    assert result.ret == (outcome != "PASS")
    assert lab.outcomes() == [("test_gate", outcome)]
    found = interview(lab)
    asked = found["asked"]
    assert asked < 60
    assert len(lab.asked) == len(set(lab.asked)) == asked == found["scored"]
    assert (found["stop"], found["stop_sentence"]) == ("DECISION", "every gate is decided")
    assert found["accuracy"]["method"] == "anytime-valid"
    assert f"{asked} of 300 items, anytime-valid" in sentence(lab)
    relation = ">=" if outcome == "PASS" else "<"
    assert f"] {relation} .{10 * target:.0f}0 required, 95 %" in sentence(lab)
    result.stdout.fnmatch_lines([f"toy      toy * {asked} of 300 * every gate is decided"])
    result.stdout.re_match_lines([rf"test_it.py [+-]{{{asked}}}\.[.F] +\[100%\]"])


@pytest.mark.slow
def test_it_stops_no_sooner_than_every_gate_is_decided(lab: Any) -> None:
    lengths = {}
    for name, conditions in {
        "easy": [0.3],
        "hard": [0.75],
        "both": [0.3, 0.75],
    }.items():
        lab.bank(n=300)
        lab.toy(9)
        gates = "".join(
            f"\n@pytest.mark.adaptive_gate('toy', at_least={least})\n"
            f"def test_gate_{i}(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
            for i, least in enumerate(conditions)
        )
        lab.tests(INTERVIEW.format(budget="'100%'", more=", batch=1") + gates)
        assert lab.run().ret == 0
        lengths[name] = interview(lab)["asked"]
        assert lab.outcomes() == [(f"test_gate_{i}", "PASS") for i in range(len(conditions))]
        assert [c["value"] for c in interview(lab)["conditions"]] == conditions
        assert len([g for g in lab.record["gates"] if g["interview"] == "toy"]) == len(conditions)
    assert lengths["easy"] < lengths["hard"] == lengths["both"]


def test_what_is_not_decided_asks_the_whole_budget(lab: Any) -> None:
    write(lab, "at_least=0.89", budget=40)
    lab.toy(9)
    result = lab.run()
    assert result.ret == 1
    assert (interview(lab)["asked"], interview(lab)["stop"]) == (40, "BUDGET")
    assert sentence(lab).startswith("INCONCLUSIVE accuracy .")
    assert "] against .89 required, 95 %, 40 of 300 items, anytime-valid; the estimate is so near" in sentence(lab)


@pytest.mark.slow
def test_a_budget_of_all_settles_what_is_near(lab: Any) -> None:
    write(lab, "at_least=0.9", budget="100%", n=100)
    lab.toy(9)
    assert lab.run().ret == 0
    assert interview(lab)["asked"] > 80
    write(lab, "at_least=0.91", budget="100%", n=100)
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.slow
def test_stop_budget_asks_all_and_looks_once(lab: Any) -> None:
    write(lab, "at_least=0.5", budget=60, more=", stop='budget'")
    lab.toy(9)
    result = lab.run()
    assert result.ret == 0
    assert (interview(lab)["asked"], interview(lab)["stop"]) == (60, "BUDGET")
    assert "exact uniform" in sentence(lab)
    result.stdout.no_fnmatch_line("*chance of a verdict*")


# -- what is said before the first question -------------------------------------------------------


def told_before(lab: Any) -> list[str]:
    """The lines of a run, each with those that go on from it."""
    return lab.run().stdout.str().replace("\n    ", " ").split("\n")


@pytest.mark.slow
def test_each_gate_states_its_chance_and_a_small_budget_is_warned_of(lab: Any) -> None:
    write(lab, "at_least=0.6", budget=16)
    lab.toy(9)
    line = (
        r"adaptive-eval: toy: accuracy >= \.60: (\d+)% chance of a verdict within (\d+) of 300 questions if the truth "
        r"is 10 points away, (\d+) expected(.*)"
    )
    lines = [found for text in told_before(lab) if (found := re.fullmatch(line, text))]
    assert len(lines) == 1
    small, budget, expected, warning = lines[0].groups()
    assert (int(small) < 50, budget) == (True, "16")
    found = re.fullmatch(
        r"\. WARNING: less likely than not; an even chance needs budget = (\d+), and four in five budget = (\d+)",
        warning,
    )
    assert found
    half, most = map(int, found.groups())
    assert 16 < half < most <= 300
    write(lab, "at_least=0.6", budget=most)
    lines = [found for text in told_before(lab) if (found := re.fullmatch(line, text))]
    assert len(lines) == 1
    assert 75 <= int(lines[0][1]) <= 85
    assert (lines[0][2], lines[0][3], lines[0][4]) == (str(most), expected, "")


@pytest.mark.slow
def test_the_chance_is_told_before_collection_is_left(lab: Any) -> None:
    write(lab, "at_least=0.6")
    lab.toy(9)
    result = lab.run("--collect-only")
    result.stdout.fnmatch_lines(["collected 2 items", "adaptive-eval: toy: accuracy >= .60: *% chance of a verdict*"])
    assert lab.asked == []
    lab.run("-k", "test_toy").stdout.no_fnmatch_line("*chance of a verdict*")  # there is no gate


# -- what stays open ------------------------------------------------------------------------------


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("how", ["fail", "warn", "pass"])
def test_what_stays_open_fails_warns_or_passes(lab: Any, how: str) -> None:
    write(lab, f"at_least=0.89, on_inconclusive='{how}'", budget=24)
    lab.toy(9)
    result = lab.run("-Wdefault")
    assert result.ret == (how == "fail")
    assert lab.outcomes() == [("test_gate", "INCONCLUSIVE")]
    assert lab.record["exit_status"] == (how == "fail")
    assert ("let through by on_inconclusive = " in sentence(lab)) == (how != "fail")
    assert lab.record["gates"][0]["verdict"]["on_inconclusive"] == how
    result.assert_outcomes(passed=1 + (how != "fail"), failed=int(how == "fail"), warnings=int(how == "warn"))
    if how == "warn":
        result.stdout.fnmatch_lines(
            ["test_it.py::test_gate", "*AdaptiveEvalWarning: INCONCLUSIVE accuracy * against .89 required*"]
        )
    text = result.stdout.str()
    assert "INCONCLUSIVE" in text
    # it lets through nothing else
    lab.toy(1, identity='"toy", "worse"')
    assert lab.run("-Wdefault").ret == 1
    assert lab.outcomes() == [("test_gate", "FAIL")]
    lab.toy(fault="raise OSError('down')")
    assert lab.run("-Wdefault").ret == 1
    assert lab.outcomes() == [("test_gate", "ERROR")]


@pytest.mark.slow
def test_toml_says_what_stays_open_does(lab: Any) -> None:
    lab.bank(n=300)
    lab.toy(9)
    (lab.path / "adaptive-eval.toml").write_text(
        """
        [[eval]]
        bank = "toy.jsonl"
        budget = 24
        [[eval.gate]]
        at_least = 0.89
        on_inconclusive = "pass"
        [[eval.gate]]
        at_least = 0.91
        """
    )
    assert lab.run().ret == 1
    assert [gate["verdict"]["outcome"] for gate in lab.record["gates"]] == ["INCONCLUSIVE"] * 2
    lab.run().assert_outcomes(passed=2, failed=1)


# -- fixed form -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_fixed_form_is_the_same_for_all_models_and_seeds(lab: Any) -> None:
    write(lab, "at_least=0.5", budget=50, more=", policy='fixed-form'")
    forms = []
    for tenths, args in ((9, ()), (6, ()), (9, ("--adaptive-eval-seed=4",)), (10, ("--adaptive-eval-seed=5",))):
        lab.toy(tenths, identity=f'"toy-{tenths}", "hash-{tenths}"')
        lab.run(*args)
        found = interview(lab)
        assert (found["asked"], found["stop"]) == (50, "BUDGET")
        assert f"toy-{tenths}" == found["subject"]["name"]
        assert "a fixed form, drawn once: all checkpoints get the same items" in sentence(lab)
        assert "exact uniform" in sentence(lab)
        forms.append([a["item"] for a in found["administrations"]])
    assert all(form == forms[0] for form in forms)
    write(lab, "at_least=0.5", budget=50, more=", policy='fixed-form', seed=3")
    lab.run()
    assert [a["item"] for a in interview(lab)["administrations"]] != forms[0]


# -- comparison with a baseline -------------------------------------------------------------------


def answers(lab: Any, right: Any, n: int = 300, name: str = "old.csv") -> None:
    """Recorded scores of a subject called old, right where `right` says so."""
    header = ",".join(f"q{i}" for i in range(n))
    (lab.path / name).write_text(f"subject,{header}\nold,{','.join(str(int(right(i))) for i in range(n))}\n")


@pytest.mark.parametrize(("tenths", "outcome"), [(9, "PASS"), (10, "PASS"), (7, "FAIL")])
def test_not_worse_than_recorded_answers(lab: Any, tenths: int, outcome: str) -> None:
    write(lab, "not_worse_than='old.csv', margin=0.1", budget="100%")
    lab.toy(tenths)
    answers(lab, lambda i: i % 10 < 9)
    result = lab.run()
    assert result.ret == (outcome != "PASS")
    assert lab.outcomes() == [("test_gate", outcome)]
    assert interview(lab)["asked"] < 200
    assert interview(lab)["stop"] == "DECISION"
    assert sentence(lab).startswith(f"{outcome} accuracy less that of old.csv ")
    assert " -.10 required, 95 %" in sentence(lab)
    told = " ".join(result.stdout.str().split())
    assert re.search(
        r"toy: accuracy less that of old.csv >= -.10: \d+% chance of a verdict within 300 of .* as good", told
    )


@pytest.mark.slow
def test_the_baseline_of_the_flag_is_a_record_and_its_draws_are_followed(lab: Any) -> None:
    write(lab, "not_worse_than='baseline', margin=0.1", budget=200)
    lab.toy(9, identity='"first", "hash"')
    lab.tests(
        "import pytest\n@pytest.mark.adaptive_eval('toy.jsonl', budget=180, seed=7)\n"
        "def test_toy(item, model):\n    assert item.grade(model.generate(item.prompt))\n"
    )
    first = ("--adaptive-eval-record=first.json", "-k", "test_toy")
    assert lab.run(*first).ret == 0
    drawn = [a["item"] for a in interview(lab)["administrations"]]
    assert len(drawn) == 180
    gate = "\n@pytest.mark.adaptive_gate('toy', not_worse_than='{}', margin=0.1)\n"
    gate += "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    path = lab.path / "test_it.py"
    path.write_text(path.read_text() + gate.format("baseline"))
    for tenths, outcome in ((9, "PASS"), (10, "PASS"), (6, "FAIL")):
        lab.toy(tenths, identity=f'"next", "{tenths}"')
        for more in ((), ("--adaptive-eval-seed=5",)):
            assert lab.run("--adaptive-eval-baseline=first.json", *more).ret == (outcome != "PASS")
            assert lab.outcomes() == [("test_gate", outcome)]
            asked = [a["item"] for a in interview(lab)["administrations"]]
            assert asked == drawn[: len(asked)]
            assert len(asked) < 180
    lab.ini("adaptive_eval_baseline = first.json")
    assert lab.run().ret == 1
    path.write_text(path.read_text().replace("'baseline'", "'first.json'"))
    lab.ini("")
    assert lab.run().ret == 1
    assert sentence(lab).startswith("FAIL accuracy less that of first.json ")


def test_a_baseline_of_few_answers_says_so_before_and_after(lab: Any) -> None:
    write(lab, "at_least=0.5", budget=150)
    lab.toy(9, identity='"first", "hash"')
    assert lab.run("--adaptive-eval-record=first.json").ret == 0
    held = interview(lab)["asked"]
    assert held < 40
    write(lab, "not_worse_than='baseline', margin=0.02", budget=150)
    lab.toy(9, identity='"next", "other"')
    result = lab.run("--adaptive-eval-baseline=first.json")
    assert result.ret == 1
    short = f"the baseline first holds answers to only {held} of 300 items, and no others can be compared: record it"
    told = " ".join(result.stdout.str().split())
    assert re.search(
        rf" 0% chance of a verdict within {held} of 300 .*; {short} .*\. WARNING: less .*in both runs", told
    )
    assert interview(lab)["asked"] == held
    assert interview(lab)["stop_sentence"] == "the baseline holds answers to no more items"
    assert sentence(lab).startswith("INCONCLUSIVE accuracy less that of baseline .000 [")
    assert f" {held} of 300 items, anytime-valid; {short} over more of the bank" in sentence(lab)
    assert "would probably decide" not in sentence(lab)


@pytest.mark.slow
def test_not_worse_than_another_evaluation_of_the_run(lab: Any) -> None:
    lab.bank(n=300)
    lab.toy(9, more=OLD.format(tenths=9))
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_gate("new", not_worse_than="old", margin=0.1)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        @pytest.mark.adaptive_eval("toy.jsonl", name="new", budget="100%")
        def test_new(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval("toy.jsonl", name="old", budget=250)
        def test_old(item, old):
            assert item.grade(old.generate(item.prompt))
        """
    )
    result = lab.run("-v")
    assert result.ret == 0, result.stdout.str()
    assert lab.outcomes() == [("test_gate", "PASS")]
    # the baseline is asked first, in full, since no gate of its own ends it
    assert [i["name"] for i in lab.record["interviews"]] == ["old", "new"]
    old, new = (interview(lab, name) for name in ("old", "new"))
    assert (old["asked"], new["stop"]) == (250, "DECISION")
    drawn = [a["item"] for a in old["administrations"]]
    assert [a["item"] for a in new["administrations"]] == drawn[: new["asked"]]
    # a gate alone brings both
    assert lab.run("-k", "test_gate").ret == 0
    assert [i["name"] for i in lab.record["interviews"]] == ["old", "new"]
    lab.toy(6, more=OLD.format(tenths=9), identity='"toy", "regressed"')
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.slow
def test_toml_compares_two_evaluations(lab: Any) -> None:
    lab.bank(n=200)
    lab.tests("", name="conftest")
    answers(lab, lambda i: i % 10 < 9, 200)
    answers(lab, lambda i: i % 10 < 8, 200, "new.csv")
    text = """
        [[eval]]
        name = "new"
        bank = "toy.jsonl"
        model = "replay:new.csv"
        budget = "100%"
        [[eval.gate]]
        not_worse_than = "base"
        margin = {margin}
        [[eval]]
        name = "base"
        bank = "toy.jsonl"
        model = "replay:old.csv"
        budget = "100%"
        """
    for margin, outcome in ((0.2, "PASS"), (0.05, "FAIL")):
        (lab.path / "adaptive-eval.toml").write_text(text.format(margin=margin))
        assert lab.run().ret == (outcome != "PASS")
        assert lab.outcomes() == [(f"new-accuracy[not-worse-than-{margin:g}-base]", outcome)]
        assert interview(lab, "base")["asked"] == 200
        assert interview(lab, "new")["asked"] < 200


def test_the_gate_of_a_void_baseline_is_an_error(lab: Any) -> None:
    lab.bank(n=100)
    lab.toy(9, more=OLD.format(tenths=9).replace("return", "raise OSError('down')\n        return", 1))
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", name="new", budget=40)
        def test_new(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval("toy.jsonl", name="old", budget=40)
        def test_old(item, old):
            assert item.grade(old.generate(item.prompt))
        @pytest.mark.adaptive_gate("new", not_worse_than="old", margin=0.1)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    assert lab.run().ret != 0
    assert lab.outcomes() == [("test_gate", "ERROR")]
    assert "the baseline 'old' gave no answers to compare with: " in interview(lab, "new")["error"]
    assert lab.asked == []


@pytest.fixture
def compared(lab: Any) -> Any:
    """A record of a first checkpoint, and a gate that compares the next with it."""
    write(lab, "not_worse_than='first.json', margin=0.1", more=", stop='budget'")
    text = (lab.path / "test_it.py").read_text()
    lab.toy(9, identity='"first", "hash", {"temperature": 0}')
    lab.tests(text.partition("\n@pytest.mark.adaptive_gate")[0])
    assert lab.run("--adaptive-eval-record=first.json").ret == 0
    lab.tests(text)
    lab.toy(9, identity='"next", "other", {"temperature": 0}')
    return lab


def refused(lab: Any, *messages: str) -> None:
    asked = len(lab.asked)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = " ".join((result.stderr.str() + result.stdout.str()).split())
    for message in messages:
        assert message in output
    assert len(lab.asked) <= asked + 1


def test_a_baseline_that_is_the_same_is_taken(compared: Any) -> None:
    assert compared.run().ret == 0
    assert compared.outcomes() == [("test_gate", "PASS")]


def test_a_changed_bank_is_refused(compared: Any) -> None:
    path = compared.path / "toy.jsonl"
    path.write_text(path.read_text().replace('question 7"', 'question 7 7"'))
    refused(
        compared,
        "test_gate: ",
        "first.json: interview 'toy': the bank 'toy' changed since the baseline was recorded (content hash ",
        "record the baseline again",
    )


def test_changed_decoding_is_refused(compared: Any) -> None:
    compared.toy(9, identity='"next", "other", {"temperature": 1}')
    refused(
        compared,
        "first.json: interview 'toy': the decoding settings changed since the baseline was recorded (hash ",
        "so the results are not comparable: record the baseline again",
    )


@pytest.mark.slow
def test_a_changed_budget_or_seed_is_no_changed_prompt(compared: Any) -> None:
    path = compared.path / "test_it.py"
    path.write_text(path.read_text().replace("budget=100", "seed=4, budget=90"))
    assert compared.run().ret == 0
    assert compared.outcomes() == [("test_gate", "PASS")]


@pytest.mark.slow
def test_a_changed_prompt_is_refused(compared: Any) -> None:
    path = compared.path / "test_it.py"
    path.write_text(path.read_text().replace("generate(item.prompt)", "generate('Well: ' + item.prompt)"))
    refused(
        compared,
        "first.json: interview 'toy': the test asks 1 of 1 common item otherwise, such as 'q",
        "the prompts changed since the baseline was recorded, so the results are not comparable: record the baseline",
    )


@pytest.mark.slow
def test_prompts_with_a_random_part_are_not_compared(compared: Any) -> None:
    path = compared.path / "test_it.py"
    drawn = path.read_text().replace("generate(item.prompt)", "generate(f'{random.random()}: {item.prompt}')")
    path.write_text("import random\n" + drawn)
    assert compared.run().ret == 0
    assert {entry["request"] for entry in compared.record["interviews"][0]["administrations"]} == {"unknown"}


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("not_worse_than='none.csv', margin=0.1", "none.csv: name another evaluation of the run, a run's record, or"),
        ("not_worse_than='some.csv', margin=0.1", "has scores on 2 of 300 items that were not drawn at random"),
        ("not_worse_than='other.csv', margin=0.1", "it has no answer to any item of the bank 'toy'"),
        ("not_worse_than='broken.json', margin=0.1", "broken.json"),
        ("not_worse_than='old.csv', margin=0.0", "margin is 0.0, expected a share of the bank in (0, 1)"),
        ("at_least=1.5", "accuracy.at_least(1.5): an accuracy lies in [0, 1]"),
        ("at_least=60", 'accuracy.at_least(60): an accuracy lies in [0, 1]; for 60 % write 0.6 or "60%"'),
        ("at_least=0.5, confidence=95", "confidence is 95"),
        ("at_least=0.5, on_inconclusive='skip'", "on_inconclusive is 'skip', expected fail, warn or pass"),
        ("rank_within=3", "has no reference subjects to rank among"),
        ("above='old'", "has no reference subjects to rank among"),
    ],
)
def test_mistakes_are_told_before_the_first_question(lab: Any, gate: str, message: str) -> None:
    write(lab, gate)
    lab.toy(9)
    answers(lab, lambda i: i % 10 < 9)
    (lab.path / "some.csv").write_text("subject,q1,q2\nold,1,0\n")
    (lab.path / "other.csv").write_text("subject,a,b\nold,1,0\n")
    (lab.path / "broken.json").write_text("{")
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(result.errlines) < 12, "no traceback"
    output = " ".join(result.stderr.str().split())
    assert "ERROR: test_it.py::test_gate: " in output
    assert message in output
    assert lab.asked == []
    assert not (lab.path / ".adaptive-eval").exists()


def test_banks_and_baselines_that_do_not_go_together(lab: Any) -> None:
    lab.bank("one", 60)
    lab.bank("two", 50)
    lab.toy(9)
    tests = """
        import pytest
        @pytest.mark.adaptive_eval("one.jsonl")
        def test_one(item, model): pass
        @pytest.mark.adaptive_eval("{bank}.jsonl", name="other")
        def test_other(item, model): pass
        @pytest.mark.adaptive_gate("one", not_worse_than="other", margin=0.1)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    lab.tests(tests.format(bank="two"))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_gate: the evaluations 'one' and 'other' ask different questions: *"])
    lab.tests(
        tests.format(bank="one").replace("test_gate", "test_first")
        + "\n        @pytest.mark.adaptive_gate('other', not_worse_than='test_it.py::test_one[aeval:one]', margin=.1)\n"
        + "        def test_gate(adaptive_eval): assert adaptive_eval.verdicts"
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_*: *are each other's baseline"])
    assert lab.asked == []


# -- with workers ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_with_workers(lab: Any, comparable: Any) -> None:
    pytest.importorskip("xdist")
    lab.bank(n=200)
    lab.bank("more", n=200)
    lab.toy(9, more=OLD.format(tenths=9))
    answers(lab, lambda i: i % 10 < 9, 200)
    lab.tests(
        """
        import pytest
        LEAST = 0.5
        @pytest.mark.adaptive_eval("toy.jsonl", name="new", budget="100%")
        def test_new(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval("toy.jsonl", name="old", budget=150)
        def test_old(item, old):
            assert item.grade(old.generate(item.prompt))
        @pytest.mark.adaptive_eval("more.jsonl", budget="40%")
        def test_more(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("new", not_worse_than="old", margin=0.1)
        def test_paired(adaptive_eval):
            assert adaptive_eval.verdicts
        @pytest.mark.adaptive_gate("more", at_least=LEAST)
        def test_recorded(adaptive_eval):
            assert adaptive_eval.verdicts
        @pytest.mark.adaptive_gate("more", at_least=0.89, on_inconclusive="pass")
        def test_open(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    lab.run("-p", "no:xdist")
    alone = comparable(lab.record)
    assert lab.record["exit_status"] == 0, json.dumps(lab.record["gates"], indent=1)
    for args in (("-n2",), ("-n1",)):
        result = lab.spawn(*args)
        assert result.ret == 0
        assert comparable(lab.record) == alone
        result.assert_outcomes(passed=6)
        said = " ".join(result.stdout.str().split())
        assert "PASS test_paired (new)" in said
        assert "accuracy less that of" in said


@pytest.mark.slow
def test_a_decided_interview_ends_on_a_worker_too(lab: Any) -> None:
    pytest.importorskip("xdist")
    write(lab, "at_least=0.5", budget=16)
    lab.toy(9)
    lab.run("-p", "no:xdist")
    chance = [line for line in lab.run("-p", "no:xdist").outlines if "chance of a verdict" in line]
    result = lab.spawn("-n2")
    assert [line for line in result.outlines if "chance of a verdict" in line] == chance
    assert interview(lab)["stop"] == "DECISION"


@pytest.mark.slow
def test_a_selection_by_the_marker_takes_gates_along(project: Any) -> None:
    (project.path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    (project.path / "adaptive-eval.toml").write_text(
        '[[eval]]\nbank = "toy.jsonl"\nname = "written"\n[[eval.gate]]\nat_least = 0.99\n'
    )
    assert project.run("-m", "adaptive_eval").ret == 1
    assert project.outcomes() == [("written-accuracy[at-least-0.99]", "FAIL"), ("test_gate", "PASS")]
    asked = len(project.asked)
    result = project.run("-m", "not adaptive_eval")
    assert (result.ret, len(project.asked)) == (0, asked)
    result.assert_outcomes(passed=1, deselected=4)


def test_a_threshold_below_guessing_is_asked_until_the_subject_is_told_from_a_guesser(lab: Any) -> None:
    choices = {"choices": ["right", "wrong", "none", "all"], "meta": {"choices_shown": False}}
    items = [{**item, **choices, "grader": "exact"} for item in lab.items(200)]
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    lab.toy(tenths=4)
    (lab.path / "adaptive-eval.toml").write_text(
        '[[eval]]\nbank = "toy.jsonl"\nbudget = "100%"\n[[eval.gate]]\nat_least = 0.15\n'
    )
    lines = " ".join(lab.run().stdout.str().split())
    assert "adaptive-eval: WARNING: toy: guessing scores .250, and PASS needs an accuracy above that too" in lines
    (gate,) = lab.record["gates"]
    assert gate["verdict"]["outcome"] == "PASS"
    assert gate["verdict"]["interval"]["low"] >= 0.25
    assert gate["verdict"]["asked"] < 200
