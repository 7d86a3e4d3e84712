"""The two forms of prompts: with the form of the answer, and terse."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.tasks import FAMILIES, Question, TaskFamily
from pytest_adaptive_eval.tasks.bank import task_bank
from pytest_adaptive_eval.tasks.difficulty import level_parameters
from pytest_adaptive_eval.tasks.family import written_item

BANKS = Path(__file__).resolve().parents[2] / "fixtures" / "banks"
IN_WORDS = {name: family for name, family in FAMILIES.items() if not family.pictorial}


def test_every_prompt_says_what_form_the_answer_takes() -> None:
    for name, family in FAMILIES.items():
        prompt = family.question(2, 3).prompt
        assert prompt.endswith((family.form, "End with `Answer: <letter>`.", "End with `Answer: <number>`.")), name
    assert FAMILIES["addition"].question(1, 0).prompt == "What is 6 + 9? End with `Answer: <number>`."
    assert FAMILIES["parsing"].question(1, 0).prompt.endswith("\n\nEnd with `Answer: <fields>`.")


@pytest.mark.parametrize("name", IN_WORDS)
def test_a_terse_prompt_has_no_form_and_its_answers_are_marked(name: str) -> None:
    family = IN_WORDS[name]
    item, full = family.in_terse_form().item(2, 3), family.item(2, 3)
    assert family.form not in item.prompt
    assert "terse" not in item.meta
    assert full.meta["terse"] is False
    assert item.content_hash != full.content_hash
    if item.answer and not name.startswith("code"):
        for each in (item, full):
            assert each.grade(each.answer) == family.grade(each, each.answer) == 1.0


def test_items_without_a_form_of_the_answer_are_those_of_earlier_banks() -> None:
    bank = read_bank(BANKS / "text.bank")
    for name in ("counting", "addition", "operations", "post_order", "unscramble"):
        item = FAMILIES[name].in_terse_form().item(2, 1)
        (stored,) = (one for one in bank.items if one.id == item.id)
        assert stored.prompt == item.prompt
        assert FAMILIES[name].verify(stored, item.answer).score == 1.0


def test_a_terse_family_does_not_mark_items_with_a_form() -> None:
    item = FAMILIES["addition"].item(1, 0)
    with pytest.raises(BankError, match="does not ask what addition draws for its id"):
        FAMILIES["addition"].in_terse_form().verify(item, item.answer)


def test_a_family_with_one_form_alone_has_no_terse_one() -> None:
    mine = TaskFamily("say", "none", 1, 0.0, lambda rng, level: Question("Say 7.", "7"))
    with pytest.raises(ConfigError, match=r"prompts of the task 'say' have one form: remove it$"):
        mine.in_terse_form()
    assert dict(mine.item(1, 0).meta) == {"level": 1, "seed": 0}
    assert mine.has_form(Item("say-1-0", "Say 7."))


def test_a_bank_of_a_task_says_that_its_prompts_have_a_form() -> None:
    full, terse = (task_bank(FAMILIES["counting"], queries=2, levels=2, terse=terse) for terse in (False, True))
    assert full.report["task"] == {"levels": 2, "queries": 2, "seed": 0, "terse": False}
    assert terse.report["task"] == {"levels": 2, "queries": 2, "seed": 0}
    assert full.content_hash != terse.content_hash


def test_difficulties_come_from_prompts_of_the_same_form() -> None:
    bank, family = read_bank(BANKS / "text.bank"), FAMILIES["addition"]
    terse = family.in_terse_form()
    assert (
        level_parameters(bank, "addition", 3, same_form=terse.has_form) == level_parameters(bank, "addition", 3)
    ).all()
    with pytest.raises(BankError, match=r"0 levels of the task 'addition' in the form that is asked \(setting size"):
        level_parameters(bank, "addition", 3, same_form=family.has_form)


def test_a_runner_is_kept_in_the_terse_form() -> None:
    runner = object()
    mine = dataclasses.replace(FAMILIES["counting"], runner=runner)  # type: ignore[arg-type]  # it is not called
    assert mine.in_terse_form().runner is runner


def test_a_written_question_ends_with_the_form_of_the_answer() -> None:
    item = written_item(FAMILIES["addition"], 2, "w", "Add 12 + 34 please")
    assert item.prompt == "What is 12 + 34? End with `Answer: <number>`."
    assert written_item(FAMILIES["addition"].in_terse_form(), 2, "w", "12 + 34").prompt == "What is 12 + 34?"


def test_comprehension_lists_the_words_to_choose_from() -> None:
    for seed in range(20):
        question = FAMILIES["comprehension"].question(3, seed)
        (listed,) = (line for line in question.prompt.split("\n") if "Choose one of these: " in line)
        assert question.answer in listed
        assert listed.partition("these: ")[2].count(", ") == 19


def test_shuffled_letters_are_no_word() -> None:
    family = FAMILIES["unscramble"]
    for seed in range(300):
        for level in (1, 2, 3):
            item = family.item(level, seed)
            mixed = item.prompt.split()[3]
            assert sorted(mixed) == sorted(item.answer)
            assert mixed not in (item.answer, *item.others)


def test_values_of_expressions_stay_within_their_limit_with_both_brackets_and_precedence() -> None:
    family = FAMILIES["operations"]
    prompts = [family.question(level, random.Random(level).randrange(99)).prompt for level in range(1, 41)]
    assert any("(" in prompt for prompt in prompts)
    assert any(" + " in prompt and " * " in prompt and "(" not in prompt for prompt in prompts)
    assert len(prompts[-1]) > 3 * len(prompts[0])
