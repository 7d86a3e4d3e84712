"""Twins of bank items, and the arithmetic that their answers follow by."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item, unmarked
from pytest_adaptive_eval.tasks.twin import evaluate, has_twin, twin, twin_bank


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-v1 + +v2", -13),
        ("v1 / v2", Fraction(20, 7)),
        ("v1 // v2 + v1 % v2", 8),
        ("-v1 // v2", -3),
        ("v2 ** 3 - v2 ** -1", Fraction(343) - Fraction(1, 7)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1e-3", Fraction(1, 1000)),
        (" v1\t", 20),
    ],
)
def test_arithmetic_is_exact(expression: str, value: Fraction) -> None:
    assert evaluate(expression, {"v1": Fraction(20), "v2": Fraction(7)}) == value


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "not an arithmetic expression"),
        ("1 +", "not an arithmetic expression"),
        ("v1; v1", "not an arithmetic expression"),
        ("v1 = 2", "not an arithmetic expression"),
        ("__import__('os').system('id')", "which is not arithmetic"),
        ("v1.numerator", "which is not arithmetic"),
        ("abs(v1)", "which is not arithmetic"),
        ("(lambda: 1)()", "which is not arithmetic"),
        ("[v1][0]", "which is not arithmetic"),
        ("'7'", "which is not arithmetic"),
        ("True", "which is not arithmetic"),
        ("1j", "which is not arithmetic"),
        ("v1 if v1 else 2", "which is not arithmetic"),
        ("v1 < 3", "which is not arithmetic"),
        ("v1 @ v1", "which is not arithmetic"),
        ("(v1 := 3)", "which is not arithmetic"),
        ("~v1", "which is not arithmetic"),
        ("v3", "it names 'v3'; the marked values are v1"),
        ("os", "it names 'os'"),
        ("v1 / (v1 - 20)", "divides by zero"),
        ("v1 % 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("v1 ** 0.5", "the exponent 1/2: whole numbers up to 64"),
        ("9 ** 9 ** 9", "the exponent 387420489"),
        ("2 ** 65", "the exponent 65"),
        ("(9 ** 60) ** 60", "grows beyond bounds"),
        ("1e400", "grows beyond bounds"),
        ("1 + " * 200 + "1", "it has 801 characters, at most 300"),
        ("(" * 250 + "1", "not an arithmetic expression"),
        ("-" * 299 + "1", None),
    ],
)
def test_nothing_else_is_evaluated(expression: str, why: str | None) -> None:
    if why is None:
        assert evaluate(expression, {}) == -1
        return
    with pytest.raises(ValueError, match=re.escape(why)):
        evaluate(expression, {"v1": Fraction(20)})


@given(st.text(alphabet="v12+-*/%() .e", max_size=40))
def test_any_text_is_a_number_or_refused(expression: str) -> None:
    try:
        found = evaluate(expression, {"v1": Fraction(3), "v2": Fraction(5)})
    except ValueError:
        return
    assert isinstance(found, Fraction)


def item(prompt: str, answer: str, expression: str | None = None, **more: str) -> Item:
    meta = {} if expression is None else {"answer_expression": expression}
    return Item("i", prompt, answer, **{"grader": "numeric", **more}, meta=meta)  # type: ignore[arg-type]


CAKES = item(
    "One baker frosts a cake in <20> seconds, another in <30> seconds. How many do both frost in <5> minutes?",
    "25",
    "v3 * 60 / v1 + v3 * 60 / v2",
)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_a_twin_keeps_the_question_and_changes_the_values(seed: int) -> None:
    other = twin(CAKES, seed)
    values = re.fullmatch(
        r"One baker frosts a cake in ([1-9]\d) seconds, another in ([1-9]\d) seconds\. How many do both frost in "
        r"([1-9]) minutes\?",
        other.prompt,
    )
    assert values
    a, b, c = map(int, values.groups())
    assert (a, b, c) != (20, 30, 5)
    assert int(other.answer) * a * b == 60 * c * (a + b)
    assert other.answer != "25"
    assert other.grade(f"It is {other.answer}.") == 1.0
    assert other.id == f"i~{seed}"
    assert dict(other.meta) == {"twin_of": "i", "seed": seed}
    assert twin(CAKES, seed) == other


def test_the_subject_reads_no_marks() -> None:
    assert unmarked(CAKES.prompt) == (
        "One baker frosts a cake in 20 seconds, another in 30 seconds. How many do both frost in 5 minutes?"
    )
    assert unmarked("<n=3> and <-2.50> and <x> and 1 < 2 > 1") == "3 and -2.50 and <x> and 1 < 2 > 1"


def test_named_values_are_drawn_once() -> None:
    one = item(
        "<n=12> boxes of <7> each. Of the <n=12> boxes two are lost. How many things are left?", "70", "(n - 2)*v1"
    )
    for seed in range(20):
        numbers = re.findall(r"\d+", twin(one, seed).prompt)
        assert numbers[0] == numbers[2]
        assert twin(one, seed).answer == str((int(numbers[0]) - 2) * int(numbers[1]))


def test_digits_signs_and_points_are_kept() -> None:
    one = item("Add <-4>, <0.35>, <12.5> and <100>.", "108.85", "v1 + v2 + v3 + v4")
    for seed in range(20):
        other = twin(one, seed)
        assert re.fullmatch(r"Add -[1-9]?\d, 0\.\d[1-9], [1-9]\d\.[1-9] and [1-9]\d\d\.", other.prompt)
        assert re.fullmatch(r"\d+(\.\d\d?)?", other.answer)
        numbers = re.findall(r"-?\d+(?:\.\d+)?", other.prompt)
        assert Fraction(other.answer) == sum(map(Fraction, numbers))


def test_answers_keep_their_sign_and_roundness() -> None:
    less = item("<3> less <8>?", "-5", "v1 - v2")
    assert all(int(twin(less, seed).answer) < 0 for seed in range(20))
    whole = item("<12> shared by <4>?", "3", "v1 / v2")
    assert all(twin(whole, seed).answer.isdecimal() for seed in range(20))
    part = item("<10> shared by <3>?", "10/3", "v1 / v2")
    assert {"/" in twin(part, seed).answer for seed in range(30)} == {True, False}


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (item("<3> less <8>?", "-5"), "has no twin: meta.answer_expression is missing"),
        (item("3 less 8?", "-5", "v1 - v2"), "has no twin: a marked value such as <20> in the prompt is missing"),
        (item("<3> less <8>?", "5", "v1 - v2"), "gives -5 for the values in the prompt, the answer is 5"),
        (item("<3> less <8>?", "five", "v1 - v2"), "cannot be used: Invalid literal"),
        (item("<3> less <8>?", "-5", "v1 - v3"), "cannot be used: it names 'v3'; the marked values are v1, v2"),
        (item("<3> less <8>?", "-5", "v1 - v2", grader="contains"), "its grader is 'contains'"),
        (item("<3> by <3>?", "1", "v1 // v1"), "no other values of as many digits give an answer of its kind"),
    ],
)
def test_items_without_a_twin(one: Item, why: str) -> None:
    with pytest.raises(BankError, match=re.escape(why)):
        twin(one, 1)


def test_which_items_have_a_twin() -> None:
    assert has_twin(CAKES)
    assert not has_twin(item("3 less 8?", "-5", "v1 - v2"))
    assert not has_twin(item("<3> less <8>?", "-5"))


def test_a_bank_of_twins_has_the_same_places() -> None:
    items = [replace(CAKES, id="a"), replace(CAKES, id="plain", meta={}), replace(CAKES, id="b")]
    whole = ItemBank(
        "math", [i.id for i in items], items, np.array([1.0, 2.0, 3.0]), np.zeros(3), categories=["x", "y", "z"]
    )
    written, redrawn = twin_bank(whole, "written", 3), twin_bank(whole, "redrawn", 3)
    assert list(written.ids) == ["a", "b"]
    assert list(redrawn.ids) == ["a~3", "b~3"]
    assert redrawn.items[1] == twin(items[2], 3)
    for part in (written, redrawn):
        np.testing.assert_equal(part.discrimination[:, 0], [1.0, 3.0])
        assert list(part.categories) == ["x", "z"]
        assert part.report["twins"]["of"] == whole.content_hash
    hashes = {whole.content_hash, written.content_hash, redrawn.content_hash}
    assert len(hashes | {twin_bank(whole, "redrawn", 4).content_hash}) == 4
    assert twin_bank(whole, "written", 4).content_hash == written.content_hash
    with pytest.raises(ConfigError, match="values is 'new', expected 'written' or 'redrawn'"):
        twin_bank(whole, "new", 0)
    with pytest.raises(BankError, match="so none has a twin"):
        twin_bank(whole.some([1], "plain"), "written", 0)
