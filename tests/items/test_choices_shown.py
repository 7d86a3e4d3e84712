"""Questions list their choices, whatever wrote the bank."""

from __future__ import annotations

import json

import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cli.bank_faults import warnings
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.items.presentation import PLAIN, Example, Presentation, presented, with_choices

STONES = ("flint", "slate", "chalk")
LISTED = "\n\nA. flint\nB. slate\nC. chalk"


def asked(prompt="Which stone?", choices=STONES, grader="choice", **more):
    return with_choices(Item("q", prompt, answer="A", grader=grader, choices=choices, **more))


@pytest.mark.parametrize(
    ("prompt", "choices", "shown"),
    [
        ("Which stone?", STONES, LISTED),
        ("Which stone: flint, slate or chalk?", STONES, ""),
        ("Which?\n(A) Flint\n(B)  slate\n(C) chalk", STONES, ""),
        ("Which stone is flinty, slate or chalk?", STONES, LISTED),  # a choice within a word
        ("How many are 3 and 30?", ("3", "30"), ""),
        ("How many are 13?", ("1", "3"), "\n\nA. 1\nB. 3"),
        ("题目：选哪个？甲还是乙", ("甲", "乙"), ""),
        ("", STONES, ""),
    ],
)
def test_choices_follow_a_prompt_that_lacks_the_text_of_one(prompt, choices, shown):
    assert asked(prompt, choices).prompt == prompt + shown


def test_choices_belong_to_the_last_turn_or_message():
    assert asked(turns=("And now?",)).turns == (f"And now?{LISTED}",)
    chat = ({"role": "system", "content": "Be short."}, {"role": "user", "content": "Which stone?"})
    assert [message["content"] for message in asked("", messages=chat).messages] == [
        "Be short.",
        f"Which stone?{LISTED}",
    ]
    parts = ({"role": "user", "content": [{"type": "text", "text": "Which?"}]},)
    assert asked("", messages=parts).messages[0]["content"][1] == {"type": "text", "text": LISTED.strip()}


@pytest.mark.parametrize(
    "more", [{"meta": {"choices_shown": False}}, {"grader": "yesno"}, {"likelihood": ChoiceLikelihood()}]
)
def test_items_may_leave_their_choices_out(more):
    assert asked(**more).prompt == "Which stone?"


def test_banks_of_any_kind_ask_with_choices_and_keep_their_hash(tmp_path):
    path = tmp_path / "items.jsonl"
    rows: list[dict[str, object]] = [
        {"id": f"q{n}", "prompt": f"Which stone {n}?", "choices": STONES, "answer": "B"} for n in range(3)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bank = read_bank(path)
    shown = presented(bank, None)
    assert [item.prompt for item in shown.items] == [f"Which stone {n}?{LISTED}" for n in range(3)]
    assert shown.content_hash == bank.content_hash
    assert shown.items[1].grade("B. slate") == 1
    rows[0]["meta"] = {"choices_shown": "no"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BankError, match=r"meta\.choices_shown is 'no', expected true or false"):
        read_bank(path)


def test_examples_list_their_choices_as_questions_do_and_a_template_decides_itself():
    examples = (Example("Which wood?", ("oak", "ash"), "ash"),)
    item = Item("q", "Which stone?", answer="A", grader="choice", choices=STONES)
    plain = Presentation(examples=examples).present(item).prompt
    assert plain == f"Which wood?\n\nA. oak\nB. ash\nash\n\nWhich stone?{LISTED}"
    own = Presentation("Q: {prompt}\nA:", examples).present(item).prompt
    assert own == "Q: Which stone?\nA:"


@pytest.mark.parametrize(
    ("template", "prompt", "more", "hidden"),
    [
        ("Q: {prompt}\nA:", "Which stone?", {}, True),
        ("Q: {prompt}\n{choices}\nA:", "Which stone?", {}, False),
        ("Q: {prompt}\nA:", "Flint, slate or chalk?", {}, False),
        ("Q: {prompt}\nA:", "Which stone?", {"meta": {"choices_shown": False}}, False),
        (PLAIN, "Which stone?", {}, False),
    ],
)
def test_a_template_that_leaves_choices_out_is_seen(template, prompt, more, hidden):
    item = Item("q", prompt, answer="A", grader="choice", choices=STONES, **more)
    assert Presentation(template).hides_choices(item) is hidden
    assert not Presentation(template, likelihood=ChoiceLikelihood()).hides_choices(item)


@pytest.mark.parametrize(
    ("key", "more", "warned"),
    [
        ("B", {}, True),
        ("yes", {}, True),
        ("1,250", {}, True),
        ("slate", {"choices": STONES}, True),
        ("slate", {}, False),
        ("12 May 1990", {}, False),
        ("B", {"grader": "choice", "choices": STONES}, False),
    ],
)
def test_a_check_warns_of_keys_that_another_grader_reads(key, more, warned, tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps({"id": "q", "prompt": "?", "answer": key, "grader": "exact", **more}))
    assert any("of the grader 'exact' that are letters" in text for text in warnings(read_bank(path))) is warned
