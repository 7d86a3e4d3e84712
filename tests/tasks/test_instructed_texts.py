"""Rules on texts, and families over a user's own."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.instructions import by_rules
from pytest_adaptive_eval.tasks.rules import (
    COUNTED,
    FORMAL,
    REQUIRED_WORDS,
    Rule,
    draw_rules,
    sentences_in,
    words_in,
)
from tests.tasks.solvers import written

seeds = st.integers(0, 10**9)


def test_what_counts_as_words_and_sentences() -> None:
    assert words_in("It's one, two-three (4) fünf_6!") == ["It", "s", "one", "two", "three", "fünf"]
    assert sentences_in('One. Two? "Three!" (Four.) 3.5 is no end, nor is a.b... but this is.') == 6
    assert sentences_in("no end") == 0


def one(name: str, text: str, seed: int = 0) -> tuple[str, bool]:
    rule = {**COUNTED, **FORMAL}[name](random.Random(seed), ["lantern", "basket"])
    return rule.text, rule.holds(text)


@pytest.mark.parametrize(
    ("name", "build", "spoil"),
    [
        ("words", lambda n: "no " * n, lambda n: "no " * (n + 1)),
        ("sentences", lambda n: "No. " * n, lambda n: "No. " * (n - 1)),
        ("lines", lambda n: "no\n\n" * n, lambda n: "no\n" * (n + 1)),
        ("commas", lambda n: "no, " * n, lambda n: "no, " * (n + 1)),
        ("questions", lambda n: "no? " * n, lambda n: "no? " * (n + 1)),
        ("brackets", lambda n: "(no) " * n, lambda n: "(no) " * n + ")"),
        ("semicolons", lambda n: "no; " * n, lambda n: "no; " * (n - 1)),
        ("initials", lambda n: "So yes " * n, lambda n: "so " * (n + 1)),
        ("long", lambda n: "everything goes " * n, lambda n: "anything99 " * n),
        ("repeat", lambda n: "Basket, " * n, lambda n: "baskets " * n),
    ],
)
def test_counted_rules(name, build, spoil) -> None:
    for seed in range(5):
        text, _ = one(name, "", seed)
        wanted = int(re.findall(r"\d+", text)[0])
        assert one(name, build(wanted), seed)[1], text
        assert not one(name, spoil(wanted), seed)[1], text
        assert not one(name, "", seed)[1]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("first", "Basket of no use", "the basket"),
        ("fourth", "no, no (no) basket no", "no no no no basket"),
        ("last", "no basket.", "basket no."),
        ("capitals", "A BASKET, I say", "A BASKET IS here"),
        ("quoted", 'the "Basket Lantern" here', "the basket lantern here"),
    ],
)
def test_formal_rules(name: str, good: str, bad: str) -> None:
    assert one(name, good)[1]
    assert not one(name, bad)[1]
    assert not one(name, "")[1]


@given(seeds)
def test_rules_never_exclude_each_other(seed: int) -> None:
    rng = random.Random(seed)
    rules = draw_rules(rng, rng.randint(1, len(FORMAL)), FORMAL, avoid=True)
    asked = "\n".join(f"{i}. {rule.text}" for i, rule in enumerate(rules, 1))
    text = written(asked)
    assert all(rule.holds(text) for rule in rules), asked + text
    avoided = re.findall(r"the letter (\w) does not stand in it", asked)
    assert len(rules) > 1 or not avoided
    assert all(letter not in text for letter in avoided)


def test_required_words_fit_the_other_rules() -> None:
    assert max(map(len, REQUIRED_WORDS)) <= 9  # short enough for simple texts, and for "ten letters or more"
    assert len(set(REQUIRED_WORDS)) == len(REQUIRED_WORDS)


RULES = [Rule("it has an a", lambda text: "a" in text), Rule("it has a b", lambda text: "b" in text)]


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Sure! Here is the text:\n\n{}",
        "{}\n\nLet me know if you would like me to change it!",
        "1. I plan it.\n2. I count.\n\nNow I write.\n\n{}\n\nI hope this helps!",
        "```\n{}\n```",
        "Here it is:\n```text\n{}\n```\nEnjoy!",
        "<answer>{}</answer>",
        '{{"reasoning": "one, two, three", "answer": "{}"}}',
        "$$\\boxed{{\\text{{{}}}}}$$",
        "\\begin{{quote}}\n{}\n\\end{{quote}}",
    ],
)
def test_what_stands_around_the_text_is_no_fault(around: str) -> None:
    rules = [Rule("three words", lambda text: len(words_in(text)) == 3), Rule("an e", lambda text: "e" in text)]
    judge = by_rules(rules, partial=False)
    assert judge(around.format("Kettle, ticket; tortoise."), None).score == 1.0
    assert judge(around.format("Kettle, ticket; tortoise, basket."), None).score == 0.0


def test_all_rules_or_the_fraction() -> None:
    strict, partial = by_rules(RULES, partial=False), by_rules(RULES, partial=True)
    assert strict("ab", None).score == partial("ab", None).score == 1.0
    assert (strict("a", None).score, partial("a", None).score) == (0.0, 0.5)
    assert strict("a", None).why == partial("a", None).why == "broken: it has a b"
    assert strict(" ", None).score == partial(" ", None).score == 0.0
    fenced = by_rules([Rule("short", lambda text: text == "ab")], partial=False)
    assert fenced("```text\nab\n```", None).score == 1.0


def test_text_families_are_judged_by_rules_alone() -> None:
    for name in ("instructions", "writing"):
        item = FAMILIES[name].item(3, 1)
        assert item.answer == ""
        assert FAMILIES[name].verify(item, "no").why.startswith("broken: ")
