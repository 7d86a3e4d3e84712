"""Answers that are wrong for an item, what they have in common, and the keys that requests hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.plugin.ask.common_answers import CommonAnswers
from pytest_adaptive_eval.plugin.ask.donors import Donor, Donors
from pytest_adaptive_eval.plugin.ask.leaked_keys import LeakedKeys
from pytest_adaptive_eval.plugin.ask.replies import given_texts, giving, holds, without

LETTERS = [Item(letter, f"Which one, {letter}?", letter) for letter in "ABCD"]
ALL = "The options are A, B, C and D."


@pytest.mark.parametrize(
    ("text", "key", "held"),
    [
        ("The answer is B.", "A", False),
        ("The answer is A.", "A", True),
        ("a dog", "A", False),
        ("It is 12.", "1", False),
        ("It is 12, not 1.", "1", True),
        ("It is PARIS!", "Paris", True),
        ("Parisian", "Paris", False),
        ("x^2 + 1", "x^2", True),
        ("东京都", "东京", True),
        ("anything", " ", False),
    ],
)
def test_a_text_holds_a_key_as_a_whole_word(text: str, key: str, held: bool) -> None:
    assert holds(text, key) is held


def test_keys_are_taken_out_within_words_too() -> None:
    assert without("The answer is 12, not 1.", ["1"]) == "The answer is 2, not ."
    assert without("Paris, pARis", ["paris", "Paris, France"]) == ", "


def test_each_request_gets_its_own_reply_or_that_of_its_place_or_the_last() -> None:
    give = giving([("first", Completion("1")), ("second", Completion("2"))])
    assert [give(content).text for content in ("second", "other", "other", "third", "first")] == [
        "2",
        "2",
        "2",
        "2",
        "1",
    ]


def test_the_best_answer_to_a_question_with_another_key_is_given() -> None:
    donors = Donors(LETTERS)
    donors.add(LETTERS[0], ("It is A",), 1.0)
    donors.add(LETTERS[1], ("It is C",), 0.0)  # wrong there, and perhaps right elsewhere
    donors.add(LETTERS[2], (" ",), 1.0)
    found = donors.answer_for(LETTERS[3])
    assert found is not None
    assert found.texts == ("It is A",)
    assert Donors(LETTERS[:1]).answer_for(LETTERS[0]) is None
    assert Donors(LETTERS[:1]).key_for(LETTERS[0]) is None


def test_an_answer_without_the_key_has_to_be_wrong() -> None:
    donor = Donor(given_texts("A B"), "the answer to 'x'")
    bare = donor.without_key_of(LETTERS[0])
    assert bare is not None
    assert bare.texts == (" B",)
    assert donor.without_key_of(LETTERS[1]) is not None
    assert Donor(given_texts("A"), "").without_key_of(LETTERS[0]) is None


@pytest.mark.parametrize(
    ("keys", "texts", "tells_apart", "unsound"),
    [
        ("ABC", [ALL, ALL, ALL], True, True),
        ("ABC", [ALL, ALL.lower(), f" {ALL}\n"], True, True),
        ("ABC", [ALL, ALL, ALL], False, False),  # a test that does not know its keys has other faults
        ("AAAA", [ALL] * 4, True, False),
        ("AABB", [ALL] * 4, True, False),  # of a bank with four keys
        ("ABC", ["A", "B", "C"], True, False),
        ("ABC", ["A"] * 3, True, False),  # right for one of them, by its grader
        ("ABCB", ["A"] * 4, True, True),  # graders refuse it for three others
    ],
)
def test_one_answer_that_is_right_for_several_keys(
    keys: str, texts: list[str], tells_apart: bool, unsound: bool
) -> None:
    common, found = CommonAnswers(LETTERS), ""
    for number, (key, text) in enumerate(zip(keys, texts, strict=True)):
        found = found or common.add(Item(f"q{number}", "?", key), (text,), lambda _other: tells_apart)
    assert bool(found) is unsound
    assert not unsound or f"of {len(keys)} items' own graders refuse it" in found


@pytest.mark.parametrize(
    ("reply_to", "unsound"),
    [
        (lambda item: item.prompt, True),
        (lambda item: f"You ask: {item.prompt.upper()}\nI list them: {ALL}", True),
        (lambda item: f"{item.prompt} {item.answer}", False),
        (lambda item: f"Of {item.prompt[10:]} it is none", False),
    ],
)
def test_answers_that_repeat_the_question_are_one_answer(reply_to: Any, unsound: bool) -> None:
    items = [Item(str(n), f"Which one of word{n}, {ALL}?", f"word{n}") for n in range(4)]
    common = CommonAnswers(items)
    found = [common.add(item, (reply_to(item),), lambda _other: True) for item in items]
    assert any(found) is unsound


def test_the_question_of_an_item_gets_the_key_of_another_one() -> None:
    items = [Item(str(n), f"{n} + 1?", str(n + 1), meta={"of": n}) for n in range(3)]
    changed = Donors(items).with_other_key(items[0], ["It follows 0."])
    assert changed is not None
    assert (changed.prompt, changed.answers, changed.meta) == (items[0].prompt, ("2",), {"of": 1})
    assert changed.id not in {item.id for item in items}  # a test may keep what it has seen
    assert Donors(items[:1]).with_other_key(items[0], ["It follows 0."]) is None


def test_two_keys_suffice_on_a_bank_of_two() -> None:
    items = [Item(str(n), "?", key) for n, key in enumerate(["yes", "no", "yes"])]
    common = CommonAnswers(items)
    found = [common.add(item, ("yes or no",), lambda _other: True) for item in items]
    assert [bool(sentence) for sentence in found] == [False, False, True]


@pytest.mark.parametrize(
    ("request_of", "noted"),
    [
        (lambda item: f"{item.prompt} Hint: {item.answer}", True),
        (lambda item: f"{item.prompt} One of A, B, C, D", False),
        (lambda item: item.prompt, False),
        (lambda item: f"{item.prompt.upper()} A hint", False),
    ],
)
def test_requests_with_the_key_of_their_own_item_are_noted(request_of: Any, noted: bool) -> None:
    leaks = LeakedKeys()
    for item in LETTERS:
        named = Item(item.id, "Which letter is it?", item.answer)
        sent = Item("", request_of(named))
        leaks.look(named, SimpleNamespace(sent=[sent], replies=[(1, Completion(sent.prompt))]))  # type: ignore[arg-type]
    assert bool(leaks.note()) is noted
