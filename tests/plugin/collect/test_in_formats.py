"""Items asked in formats inside pytest: what the subject is given, abilities in parts, gates on a part."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval import Item, write_bank
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.irt.multimodal import FormatScale, Modalities, MultimodalItems, Population

#: Reads its questions, or answers what it is not shown as well.
MODEL = """
from pathlib import Path
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Model:
    identity = SubjectIdentity("{kind}", "hash {kind}")

    def generate(self, prompt):
        with Path(__file__).with_name("asked.txt").open("a") as file:
            file.write((prompt or "nothing") + "\\n")
        number = int(prompt.split()[-1]) if prompt else 0
        reads = "{kind}" == "reader" and bool(prompt) and number % 10
        return "right" if reads or ("{kind}" == "guesser" and not prompt) else "wrong"

@pytest.fixture(scope="module")
def model():
    return Model()
"""
TOML = """
[[eval]]
bank = "toy.bank"
formats = "all"
budget = "60%"

[[eval.gate]]
metric = "ability.text"
at_least = 0.0
"""
PYTHON = """
import pytest

@pytest.mark.adaptive_eval("toy.bank", formats=["text", "none"], budget="60%")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", metric="ability.text", at_least=0.0)
def test_reads(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def project(lab: Any, kind: str, *, scaled: bool = True, n: int = 60) -> None:
    """Items that can be asked with their text and without it."""
    rng = np.random.default_rng(5)
    modalities = Modalities(("text",))
    difficulty = np.column_stack([rng.uniform(2.0, 4.0, n), rng.uniform(0.5, 1.5, n)])
    items = MultimodalItems(modalities, "m2", 4.0, rng.uniform(0.5, 1.2, (n, 2)), difficulty)
    scale = FormatScale(items, Population(np.array([-0.5, -0.5]), 0.6 * np.eye(2), 4.0), rng.normal(size=(6, 2)))
    write_bank(
        lab.path / "toy.bank",
        [Item(f"q{i}", f"question {i}", "right", formats=("text", "none"), category=("easy",)) for i in range(n)],
        discrimination=np.ones(n),
        intercept=np.zeros(n),
        subjects=[f"s{i}" for i in range(6)],
        in_formats=scale if scaled else None,
    )
    lab.pytester.makeconftest(MODEL.format(kind=kind))


def test_what_is_not_in_the_format_is_not_shown(lab: Any) -> None:
    project(lab, "reader")
    (lab.path / "toy.eval.toml").write_text(TOML)
    lab.run().assert_outcomes(passed=2)
    (interview,) = lab.record["interviews"]
    asked = interview["administrations"]
    assert len(asked) == 72 == len(lab.asked)
    shown = {"text": [a for a in asked if a["format"] == "text"], "none": [a for a in asked if a["format"] == "none"]}
    assert sorted(lab.asked) == sorted(
        [f"question {a['item'][1:]}" for a in shown["text"]] + ["nothing"] * len(shown["none"])
    )
    assert all(a["item"].endswith("@none") for a in shown["none"])
    assert len({a["item_hash"] for a in asked}) == 72
    assert interview["bank"]["formats"] == ["text", "none"]
    assert interview["bank"]["parts"] == ["base", "text"]
    assert [c["category"] for c in interview["categories"]] == ["none", "text"]


@pytest.mark.slow
def test_who_reads_passes_and_who_guesses_fails(lab: Any) -> None:
    verdicts = {}
    for kind in ("reader", "guesser"):
        project(lab, kind) if kind == "reader" else lab.pytester.makeconftest(MODEL.format(kind=kind))
        (lab.path / "toy.eval.toml").write_text(TOML)
        result = lab.run("--adaptive-eval-fresh")
        verdicts[kind] = lab.outcomes()
    assert verdicts == {
        "reader": [("toy-ability.text[at-least-0]", "PASS")],
        "guesser": [("toy-ability.text[at-least-0]", "FAIL")],
    }
    result.stdout.fnmatch_lines(
        ["*base * text -*", "*parts of ability are in standard deviations of the bank's subjects*"]
    )


def test_a_gain_states_its_chance_before_the_first_question(lab: Any) -> None:
    project(lab, "reader", scaled=False)
    (lab.path / "toy.eval.toml").write_text(TOML.replace('"ability.text"', '"gain"').replace("0.0", "0.3"))
    told = " ".join(lab.run().stdout.str().split())
    assert re.search(
        r"adaptive-eval: toy: gain >= \.30: \d+% chance of a verdict within 72 of 120 questions if the truth is 10 "
        r"points away, \d+ expected\. WARNING: less likely than not",
        told,
    )
    assert lab.outcomes() == [("toy-gain[at-least-0.3]", "PASS")]


@pytest.mark.slow
def test_compare_tells_the_change_of_each_part(lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    project(lab, "reader")
    (lab.path / "toy.eval.toml").write_text(TOML)
    lab.run()
    lab.pytester.makeconftest(MODEL.format(kind="guesser"))
    lab.run("--adaptive-eval-fresh")
    old, new = (f".adaptive-eval/runs/{record['run']}.json" for record in lab.records)
    capsys.readouterr()
    assert main(["history", "--compare", old, new, "--json", "c.json"]) == 0
    told = capsys.readouterr().out
    (found,) = json.loads((lab.path / "c.json").read_text())["evaluations"]
    assert list(found["parts"]) == ["base", "text"]
    before, after = (record["interviews"][0] for record in lab.records)
    for n, (name, part) in enumerate(found["parts"].items()):
        assert (part["before"], part["after"]) == (before["theta"][n], after["theta"][n])
        assert f"  ability.{name} " in told
    assert found["parts"]["text"]["high"] < 0.0


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("-n2",)], ids=["alone", "n2"])
def test_a_gate_in_python_plans_for_the_part(lab: Any, more: tuple[str, ...]) -> None:
    project(lab, "reader")
    lab.tests(PYTHON)
    lab.run_with(more, *(["-p", "xdist"] if more else []))
    assert lab.outcomes() == [("test_reads", "PASS")]
    (interview,) = lab.record["interviews"]
    assert interview["conditions"] == [{"metric": "ability.text", "kind": "at_least"}]
    assert len(interview["theta"]) == 2
    assert interview["asked"] == 72


@pytest.mark.slow
def test_the_same_seed_asks_the_same(lab: Any) -> None:
    project(lab, "reader")
    (lab.path / "toy.eval.toml").write_text(TOML)
    lab.run("--adaptive-eval-fresh")
    lab.run("--adaptive-eval-fresh")
    first, second = ([a["item"] for a in r["interviews"][0]["administrations"]] for r in lab.records)
    assert first == second


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("toml", "scaled", "message"),
    [
        (TOML.replace("ability.text", "ability.image"), True, "has no part of ability 'image'; it has base, text"),
        (TOML.replace("ability.text", "ability"), True, "has abilities in parts: use ability.base, ability.text"),
        (TOML, False, "has no part of ability 'text'; it has none: set formats, on a bank that was calibrated"),
        (TOML.replace('"all"', '["text", "image"]'), True, "no item of the bank 'toy' has the format 'image'"),
        (TOML.replace('"toy.bank"\nformats = "all"', '"toy.bank"'), True, "has no part of ability 'text'"),
        (
            '[[eval]]\ntask = "addition"\nformats = "all"\n',
            True,
            "formats needs pictures, and the task 'addition' has none",
        ),
        ('[[eval]]\ntask = "grid"\nformats = "all"\n', True, "formats does not go with a ladder: write policy"),
    ],
)
def test_mistakes_are_found_before_the_first_question(lab: Any, toml: str, scaled: bool, message: str) -> None:
    project(lab, "reader", scaled=scaled)
    (lab.path / "toy.eval.toml").write_text(toml)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])
    assert lab.asked == []


@pytest.mark.slow
def test_without_parameters_pairs_are_drawn_uniformly(lab: Any) -> None:
    project(lab, "reader", scaled=False)
    (lab.path / "toy.eval.toml").write_text('[[eval]]\nbank = "toy.bank"\nformats = "all"\nbudget = 30\n')
    lab.run().assert_outcomes(passed=1)
    (interview,) = lab.record["interviews"]
    assert interview["theta"] is None
    assert interview["administrations"][0]["propensity"] == pytest.approx(1 / 120)


PLAIN = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=20)
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""


def test_questions_to_items_marked_as_low_quality_are_counted(lab: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    rows = [{**row, "meta": {"low_quality": "shuffled"}} if n < 15 else row for n, row in enumerate(lab.items())]
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lab.toy()
    lab.tests(PLAIN)
    assert lab.run("--adaptive-eval-html=page.html").ret == 0
    (interview,) = lab.record["interviews"]
    marked = sum(int(answer["item"].removeprefix("q")) < 15 for answer in interview["administrations"])
    share = f"{marked / 20:.3f}".lstrip("0")
    sentence = f"{marked} of 20 questions ({share}) went to items marked low_quality, which are .250 of the bank"
    assert sentence in interview["notes"]
    assert sentence in (lab.path / "page.html").read_text()
