"""Answers are neither kept for, nor compared with, those of a test that asks or grades in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

MODULE = """
import functools
import re
import pytest
import rules
from rules import right
{values}
{fixture}
@pytest.mark.adaptive_eval("toy.jsonl", budget=20, stop="budget")
def test_toy(item, model{taken}):
    text = model.generate(item.prompt)
    assert {check}
@pytest.mark.adaptive_gate("toy", at_least=0.1)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
RULES = """
from deeper import FEW, same
def right(text): return same(text)
class Rule:
    def __init__(self, word): self.word = word
    def holds(self, text): return text == self.word
def rule(word): return lambda text: text == word
"""
DEEPER = "FEW = {few}\ndef same(text): return text {operator} 'right'\n"
FIXTURE = "@pytest.fixture\ndef judge(): return lambda text: text {operator} 'right'\n"


def asked_anew(lab: Any, first: dict[str, str], second: dict[str, str], run: Callable[[], object]) -> bool:
    """Whether a run of `second` asks all, after one of `first` that was ended early."""
    lab.bank()
    lab.toy(fault="if n == 10: pytest.exit('stop')")
    for kind in (first, second):
        given = {
            "values": "",
            "fixture": "",
            "taken": "",
            "check": "right(text)",
            "few": "[]",
            "operator": "==",
            **kind,
        }
        lab.tests(MODULE.format(**{**given, "fixture": given["fixture"].format(**given)}))
        lab.tests(RULES, name="rules")
        lab.tests(DEEPER.format(**given), name="deeper")
        run()
        lab.toy()
    kept = [bool(answer.get("resumed")) for answer in lab.record["interviews"][0]["administrations"]]
    assert sum(kept) in (0, 9)
    return not any(kept)


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("base", "first", "second"),
    [
        ({"check": "WORD.match(text)"}, {"values": "WORD = re.compile('r')"}, {"values": "WORD = re.compile('r|w')"}),
        (
            {"check": "text in ANY['x']"},
            {"values": "ANY = {'x': ['right']}"},
            {"values": "ANY = {'x': ['right', 'w']}"},
        ),
        ({"check": "RULE.holds(text)"}, {"values": "RULE = rules.Rule('right')"}, {"values": "RULE = rules.Rule('r')"}),
        ({"check": "of(text)"}, {"values": "of = rules.rule('right')"}, {"values": "of = rules.rule('r')"}),
        ({"check": "text not in rules.FEW"}, {"few": "[]"}, {"few": "['x']"}),
        ({}, {"operator": "=="}, {"operator": "!="}),
        ({"check": "rules.right(text)"}, {"operator": "=="}, {"operator": "!="}),
        ({"fixture": FIXTURE, "taken": ", judge", "check": "judge(text)"}, {"operator": "=="}, {"operator": "!="}),
    ],
)
def test_what_judges_is_part_of_the_interview(
    lab: Any, base: dict[str, str], first: dict[str, str], second: dict[str, str]
) -> None:
    assert asked_anew(lab, {**base, **first}, {**base, **second}, lab.run)


@pytest.mark.slow
def test_what_stayed_the_same_is_not_asked_anew(lab: Any) -> None:
    given = {
        "values": "WORD, SEEN = re.compile('r'), {'x', 'y'}\nRULE = rules.Rule(functools.partial(rules.rule, 'x'))",
        "fixture": FIXTURE,
        "taken": ", judge, tmp_path",
        "check": "(WORD, SEEN, RULE, right, rules) and judge(text) and tmp_path",
    }
    assert not asked_anew(lab, given, given, lab.spawn)  # in another process sets have another order


def test_the_model_is_known_by_its_identity(lab: Any) -> None:
    lab.bank()
    lab.tests()
    lab.toy(fault="if n == 10: pytest.exit('stop')")
    lab.run()
    lab.toy(setup="'another line'")
    assert lab.run().ret == 0
    assert sum(bool(answer.get("resumed")) for answer in lab.record["interviews"][0]["administrations"]) == 9
