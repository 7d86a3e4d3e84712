"""Settings and TOML files: what is read, and how mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks import write_bank
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.evaluation import Context, EvalSpec, GatePlan, Settings, read_toml
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import DEFAULT_CHANCE, outlooks
from pytest_adaptive_eval.inference.design import GATE_FLOOR
from pytest_adaptive_eval.items.item import Item


@pytest.fixture
def banks(tmp_path: Path) -> Path:
    items = [Item(id=f"q{i}", prompt=f"{i}?", answer=str(i)) for i in range(40)]
    (tmp_path / "plain.items.jsonl").write_text("".join(json.dumps(i.to_json()) + "\n" for i in items))
    write_bank(tmp_path / "good.bank", items, discrimination=[1.0] * 40, intercept=[0.0] * 40)
    return tmp_path


def settings(root: Path, **more: object) -> Settings:
    return Settings(root=root, folder=root / ".adaptive-eval", **more)  # type: ignore[arg-type]


def test_defaults_decide_with_logged_chances(banks: Path) -> None:
    built = EvalSpec({"bank": "good.bank"}, "t.py:1", banks).build(settings(banks))
    assert (built.name, built.budget, built.seed, built.notes) == ("good", 8, 0, ())
    assert (built.policy.selector.name, built.policy.stop) == ("spread", "decision")
    assert not built.policy.design_based


def test_an_uncalibrated_bank_is_drawn_uniformly(banks: Path) -> None:
    built = EvalSpec({"bank": "plain.items.jsonl"}, "t.py:1", banks).build(settings(banks))
    assert built.name == "plain"
    assert built.policy.selector.name == "random"
    assert built.notes == ("uncalibrated bank, uniform draws",)


def test_flags_come_before_what_is_written(banks: Path) -> None:
    spec = EvalSpec({"bank": "good.bank", "budget": 10, "seed": 3}, "t.py:1", banks)
    assert spec.build(settings(banks)).budget == 10
    assert spec.build(settings(banks)).seed == 3
    assert spec.build(settings(banks, budget="50%", seed=9)).budget == 20
    assert spec.build(settings(banks, budget="50%", seed=9)).seed == 9


def test_each_evaluation_draws_from_its_own_stream(banks: Path) -> None:
    streams = {
        EvalSpec({"bank": "good.bank", "name": name, "seed": seed}, "t", banks).build(settings(banks)).stream
        for name in ("a", "b")
        for seed in (0, 1)
    }
    assert len(streams) == 4


def test_one_category_of_a_bank_is_named_after_its_file(tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "prompt": "?", "answer": "x", "category": ["größe" if n < 3 else "b"]} for n in range(5)]
    for name in ("toy.jsonl", "a#b.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def built(bank: str) -> tuple[str, int]:
        evaluation = EvalSpec({"bank": bank}, "t", tmp_path).build(settings(tmp_path))
        return evaluation.name, len(evaluation.bank)

    assert (built("toy.jsonl"), built("toy.jsonl#größe")) == (("toy", 5), ("toy-größe", 3))
    assert (built("a#b.jsonl"), built("a#b.jsonl#b")) == (("a#b", 5), ("a#b-b", 2))
    for bank, name in (("toy.jsonl#c", "c"), ("toy.jsonl#", "")):
        with pytest.raises(ConfigError, match=f"t: bank 'toy' has no category '{name}'; it has größe, b"):
            built(bank)


def test_a_bank_is_looked_up_beside_the_file_and_then_at_the_root(banks: Path) -> None:
    inner = banks / "inner"
    inner.mkdir()
    assert EvalSpec({"bank": "good.bank"}, "t", inner).build(settings(banks)).bank.name == "good"
    with pytest.raises(ConfigError, match="no bank at") as caught:
        EvalSpec({"bank": "none.bank"}, "t", inner).build(settings(banks))
    assert str(inner / "none.bank") in str(caught.value)
    assert str(banks / "none.bank") in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "bank is missing"),
        ({"bank": "good.bank", "colour": 1}, "unknown setting 'colour'; known are name, bank"),
        ({"bank": "good.bank", "polcy": "decide"}, "unknown setting 'polcy'; did you mean 'policy'?"),
        ({"bank": "good.bank", "budget": None}, "budget is None, expected a whole number or text"),
        ({"bank": "good.bank", "seed": -1}, "seed is -1, expected a whole number of at least 0"),
        ({"bank": "good.bank", "formats": ["text", 3]}, "formats 2 is 3, expected text"),
        ({"bank": "good.bank", "interview": {"window": [0.2]}}, "interview.window is [0.2], expected a list of 2"),
        (
            {"bank": "good.bank", "interview": {"mode": "rates"}},
            "interview.mode is 'rates', expected 'rate' or 'reply'",
        ),
        ({"bank": 3}, "bank is 3, expected text"),
        ({"bank": "good.bank", "budget": 0.5}, "a share is written in quotes"),
        ({"bank": "good.bank", "budget": 0}, "a count lies in 1 ... 40"),
        ({"bank": "good.bank", "budget": 41}, "a count lies in 1 ... 40"),
        ({"bank": "good.bank", "budget": "0%"}, "expected a share above 0%"),
        ({"bank": "good.bank", "budget": True}, "budget is True"),
        ({"bank": "good.bank", "selector": "best"}, "selector 'best' is not known; known are maximum-information"),
        ({"bank": "plain.items.jsonl", "selector": "spread"}, "needs a calibrated bank"),
        ({"bank": "good.bank", "policy": "guess"}, "policy 'guess' is not known"),
        ({"bank": "good.bank", "floor": 2.0}, "floor is 2.0"),
        ({"bank": "good.bank", "batch": 0}, "batch is 0"),
    ],
)
def test_mistakes_say_where_and_what(banks: Path, data: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EvalSpec(data, "t.py:7: test_it", banks).build(settings(banks))
    assert str(caught.value).startswith("t.py:7: test_it: ")
    assert message in str(caught.value)


def test_a_broken_bank_names_itself(banks: Path) -> None:
    (banks / "bad.jsonl").write_text("{}\n")
    with pytest.raises(BankError, match=r"bad\.jsonl:1"):
        EvalSpec({"bank": "bad.jsonl"}, "t.py:1", banks).build(settings(banks))


@pytest.mark.parametrize(
    ("policy", "selector", "estimator"),
    [
        ("autojudger-paper", "autojudger", "bisection"),
        ("a2-judger", "autojudger", "map-wide"),
        ("irt-paper", "nearest-difficulty", "pseudo-items"),
        ("m3irt-paper", "maximum-information", "mle"),
    ],
)
def test_the_policy_of_a_paper_has_its_estimator_and_draws_nothing_uniformly(
    banks: Path, policy: str, selector: str, estimator: str
) -> None:
    built = EvalSpec({"bank": "good.bank", "policy": policy}, "t.py:1", banks).build(settings(banks)).policy
    assert (built.selector.name, built.estimator.name, built.floor, built.budget) == (selector, estimator, 0.0, "5%")
    for name, value in (("selector", "spread"), ("stop", "decision")):
        with pytest.raises(ConfigError, match=f"{name} does not go with the policy of a paper"):
            EvalSpec({"bank": "good.bank", "policy": policy, name: value}, "t.py:1", banks).build(settings(banks))


def test_a_custom_selector_is_taken_from_whoever_provides_it(banks: Path) -> None:
    from dataclasses import replace

    from pytest_adaptive_eval.cat.selectors import SELECTORS, Spread

    spread = SELECTORS["spread"]
    assert isinstance(spread, Spread)
    mine = replace(spread, name="mine")
    spec = EvalSpec({"bank": "good.bank", "selector": "mine"}, "t.py:1", banks)
    assert spec.build(settings(banks), Context(selector={"mine": mine}.get)).policy.selector is mine


TOML = """\
[[eval]]
bank = "good.bank"
budget = "20%"

[[eval.gate]]
at_least = 0.5

[[ eval.gate ]]
metric = "ability"
at_least = -1
confidence = 0.9

[[eval]]  # a second one
bank = "plain.items.jsonl"
name = "second"
model = "replay:a.csv#m"
"""


def test_a_toml_file_gives_evaluations_gates_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "adaptive-eval.toml"
    path.write_text(TOML)
    first, second = read_toml(path).evaluations
    assert (first.spec.name, first.spec.lines.line, first.spec.table.model) == ("good", 1, None)
    assert [(g.condition, g.lines.line) for g in first.gates] == [
        (Condition("accuracy", "at_least", 0.5), 5),
        (Condition("ability", "at_least", -1, confidence=0.9), 8),
    ]
    assert [g.name for g in first.gates] == ["accuracy-at-least-0.5", "ability-at-least--1"]
    assert (second.spec.name, second.spec.lines.line, second.gates) == ("second", 13, ())
    assert second.spec.table.model == "replay:a.csv#m"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1" + "0" * 5000, "not readable as TOML"),
        ("[[eval]]\nbank = 'a'\nbudget = 1" + "0" * 30, "budget is too large: numbers in TOML have 64 bits"),
        ("x = ", "not readable as TOML"),
        ("", "no evaluation"),
        ("[eval]\nbank = 'a'", "no evaluation"),
        ("[other]\n", ":1: unknown table 'other'; write evaluations as [[eval]]"),
        (
            "[[eval]]\nbank = 'a'\n[[gate]]\nat_least = 1",
            "and a gate below its evaluation as [[eval.gate]]",
        ),
        (
            "[[eval]]\nbank = 'a'\n[[suite]]\nname = 'both'\nat_least = 1",
            ":3: suite is gone: write a gate for each requirement that must hold",
        ),
        ("[suite]\nat_least = 1", ":1: suite is gone: write a gate for each"),
        ("[[eval]]\nname = 'x'", ":1: bank is missing"),
        ("[[eval]]\nbank = 'a'\nspeed = 3", ":3: unknown setting 'speed'"),
        ("[[eval]]\nbank = 'a'\nkind = 'crowd'", ":3: kind 'crowd' is not known"),
        ("[[eval]]\nbank = 'a'\nname = 'a[b]'", "cannot name a test"),
        ("[[eval]]\nbank = 'a'\nname = 'a::b'", "cannot name a test"),
        ("[[eval]]\nbank = 'a'\n[[eval]]\nbank = 'b/a'", ":3: two evaluations have the name 'a'"),
        (
            "[[eval]]\nbank = 'a'\n[[eval.gate]]\nmetric = 'accuracy'",
            ":3: a gate has one condition of at_least, at_most, not_worse_than, rank_within, above; found none",
        ),
        (
            "[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 0.5\nmargin = 0.1",
            ":5: not_worse_than and margin go together",
        ),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nnot_worse_than = 'b'", ":4: not_worse_than and margin go together"),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 0.5\nabove = 'b'", "found at_least and above"),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 0.5\nprobability = 0.9", "probability does not go with"),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nrank_within = 2\nprobability = 0.9", "probability does not go with"),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 3", ":4: accuracy.at_least(3): an accuracy lies in [0, 1]"),
        (
            "[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 'x'",
            ":4: accuracy.at_least('x'): expected a number such as 0.6",
        ),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = .5", "not readable as TOML"),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 0.5\nmetric = 'speed'", ":5: metric 'speed'"),
        ("[[eval]]\nbank = 'a'\n[[eval.gate]]\nat_least = 0.5\nconfidence = 95", ":5: confidence is 95"),
        (
            '[[eval]]\nbank = \'a\'\nsystem = """\n[[eval]]\nbudget = 1\n"""\nformats = [\n \'text\'\n]\nbudget = 0.5',
            ":10: budget is 0.5, expected a whole number or text",
        ),
        (
            "[[eval]]\nbank = 'a'\n[eval.interview]\ncount = 1\n\"window\" = [1]",
            ":5: interview.window is [1], expected a list of 2",
        ),
        ("[[eval]]\nbank = 'a'\ninterview.first = 'none'\ninterview.count = -1", ":4: interview.count is -1"),
        ("[[eval]]\nbank = 'a'\n[[eval]]\nbank = 'b'\nseed = -1", ":5: seed is -1"),
        ("eval = [\n{bank = 'a', seed = -1}]", ":1: seed is -1"),
        ("[[eval]]\nbank = 'a'\n" + 2 * "[[eval.gate]]\nat_least = 0.5\n", "two gates of 'a' are the same"),
    ],
)
def test_mistakes_in_a_toml_file_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.eval.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


GATES = [
    [Condition("accuracy", "at_least", 0.7)],
    [Condition("accuracy", "at_least", 0.9), Condition("accuracy", "at_least", 0.5)],
]


@pytest.mark.fast_rows(4)
@pytest.mark.parametrize("gates", GATES, ids=["one", "two"])
@pytest.mark.parametrize(
    "written",
    [
        {},
        {"selector": "information"},
        {"selector": "maximum-information"},
        {"selector": "spread"},
        {"selector": "variance"},
        {"selector": "nearest-difficulty"},
        {"selector": "stratified"},
        {"selector": "random"},
        {"selector": "information", "floor": 0.2},
        {"selector": "information", "batch": 4},
        {"selector": "information", "samples": 2},
        {"selector": "information", "repeat": 2},
        {"selector": "information", "must_pass": ["q1"]},
    ],
    ids=lambda written: "-".join(map(str, written.values())) or "nothing",
)
def test_the_budget_that_gates_need_is_kept_whatever_the_selector(
    tmp_path: Path, written: dict[str, Any], gates: list[Condition]
) -> None:
    items = [Item(id=f"q{i}", prompt=f"{i}?", answer=str(i)) for i in range(200)]
    write_bank(tmp_path / "good.bank", items, discrimination=[1.0] * 200, intercept=[0.8] * 200)
    built = EvalSpec({"bank": "good.bank", **written}, "t.py:1", tmp_path).build(settings(tmp_path))
    judged = built.for_gates(GatePlan(gates))
    assert judged.budget == judged.policy.budget
    assert judged.budget > built.budget
    drawn = judged.budget - len(judged.must_pass)
    for gate in gates:
        assert min(outlook.chance(drawn) for outlook in outlooks(gate, judged.bank, judged.policy)) >= DEFAULT_CHANCE
    assert judged.policy.floor >= GATE_FLOOR or judged.policy.selector.name == "random"
    given = EvalSpec({"bank": "good.bank", "budget": 30, **written}, "t.py:1", tmp_path).build(settings(tmp_path))
    assert given.for_gates(GatePlan(gates)).budget == 30
