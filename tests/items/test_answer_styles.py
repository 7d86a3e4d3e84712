"""Answers in the styles of models: right ones are read, wrong ones in the same words are not taken for right."""

from __future__ import annotations

from pytest_adaptive_eval import Item
from tests.items.answer_styles import Case, cases

CASES = cases()


def misread(some: list[Case]) -> list[Case]:
    return [
        case
        for case in some
        if (Item("i", "", case.answer, case.grader, choices=case.choices).grade(case.text) == 1.0) != case.right
    ]


def test_there_are_enough_cases_of_each_sort() -> None:
    for right, least in ((True, 400), (False, 200)):
        for held in (True, False):
            assert sum(case.right == right and case.held == held for case in CASES) >= least / 2


def test_answers_in_the_styles_that_the_reader_was_built_with() -> None:
    assert [str(case) for case in misread([case for case in CASES if not case.held])] == []


def test_answers_in_the_styles_that_were_set_aside() -> None:
    held = [case for case in CASES if case.held]
    wrongly = misread(held)
    refused, accepted = (sum(case.right == right for case in wrongly) for right in (True, False))
    assert refused <= 0.005 * sum(case.right for case in held), [str(case) for case in wrongly if case.right]
    assert accepted <= 0.015 * sum(not case.right for case in held), [str(case) for case in wrongly if not case.right]
