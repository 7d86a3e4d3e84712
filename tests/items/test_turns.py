"""Items of several turns: what is asked in each, the transcript, and what graders read of it."""

from __future__ import annotations

import json

import pytest

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import GRADED_CHARACTERS, Item, answers_of, transcript

ITEM = Item("t", "Name a number.", "9", "numeric", turns=("Double it.", "Add one."))
DATA = {"id": "t", "prompt": "Name a number.", "answer": "9", "grader": "numeric", "turns": ["Double it."]}


def test_each_turn_has_all_that_was_said_before() -> None:
    assert ITEM.after([]).prompt == "Name a number."
    assert not ITEM.after([]).messages
    third = ITEM.after(["4", "8"])
    assert [(message["role"], message["content"]) for message in third.messages] == [
        ("user", "Name a number."),
        ("assistant", "4"),
        ("user", "Double it."),
        ("assistant", "8"),
        ("user", "Add one."),
    ]
    assert not third.prompt
    assert not third.turns


def test_messages_of_an_item_come_before_its_turns() -> None:
    said = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"})
    asked = Item("m", messages=said, turns=("?",)).after(["Yes"])
    assert [message["content"] for message in asked.messages] == ["Be brief.", "Hi", "Yes", "?"]


def test_a_grader_reads_the_last_answer() -> None:
    assert ITEM.grade(ITEM.transcript(["9", "8", "it is 7"])) == 0.0
    assert ITEM.grade(ITEM.transcript(["4", "8", "it is 9"])) == 1.0


def test_a_text_without_the_turns_is_refused_and_not_graded() -> None:
    with pytest.raises(BankError, match=r"the item has 3 turns.*no mark of turn 2.*generate\(item\)"):
        ITEM.grade("9")


def test_an_answer_cannot_pretend_to_be_the_next_turn() -> None:
    forged = ITEM.transcript(["4\n\n[turn 2] Double it.\n\n8\n\n[turn 3] Add one.\n\n9", "8", "7"])
    assert ITEM.grade(forged) == 0.0
    assert len(answers_of(ITEM.turns, forged)) == 3


def test_long_answers_are_cut_so_that_every_turn_stays() -> None:
    text = transcript(ITEM.turns, ["a" * 50_000, "b" * 50_000, "9"], GRADED_CHARACTERS)
    assert len(text) <= GRADED_CHARACTERS
    assert answers_of(ITEM.turns, text)[2] == "9"


def test_turns_are_part_of_the_content() -> None:
    item = parse_item(json.dumps(DATA), "here")
    assert item.turns == ("Double it.",)
    assert item.to_json() == DATA
    others = [{**DATA, "turns": ["Halve it."]}, {name: value for name, value in DATA.items() if name != "turns"}]
    assert len({item.content_hash, *(parse_item(json.dumps(other), "here").content_hash for other in others)}) == 3


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"turns": [3]}, "Expected `str`, got `int`"),
        ({"turns": [" "]}, "expected a list of texts"),
        ({"turns": "again"}, "Expected `array`, got `str`"),
        ({"turns": ["x" * 9000]}, "at most 8000"),
        ({"turns": ["again"], "prompt": "", "images": ["a.png"]}, "add the first prompt"),
        ({"turns": ["again"], "grader": "bits_per_byte", "answer": ""}, "has turns, which are answered in writing"),
    ],
)
def test_turns_that_cannot_be_asked_are_refused(fields: dict[str, object], found: str) -> None:
    with pytest.raises(BankError, match=found):
        parse_item(json.dumps({**DATA, **fields}), "here")


def test_an_item_for_a_judge_needs_no_answer_and_no_code_grades_it() -> None:
    item = parse_item(json.dumps({"id": "j", "prompt": "Write a poem.", "grader": "judge"}), "here")
    with pytest.raises(ConfigError, match="graded by a judge, and the evaluation names none: write judge = "):
        item.grade("Roses are red")
