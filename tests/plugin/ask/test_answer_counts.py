"""What answers say about a model and its items, without a run of pytest."""

from __future__ import annotations

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.items.item import Response, Status
from pytest_adaptive_eval.plugin.ask.answer_counts import AnswerCounts, Answered


def choice(*choices: str) -> Item:
    return Item("c", "Which?", "A", "choice", choices=choices)


def counted(*answers: tuple[Item, Response], read: bool = True) -> AnswerCounts:
    return AnswerCounts(Answered(item, response, read=read) for item, response in answers)


def right(text: str = "A") -> Response:
    return Response(Status.OK, 1.0, text)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([choice("a", "b")], 0.5),
        ([choice("a", "b"), choice("a", "b", "c", "d")], 0.375),
        ([choice("a", "b"), Item("e", "?", "7")], None),
        ([], None),
    ],
)
def test_guessing_is_the_mean_share_of_one_choice(items: list[Item], expected: float | None) -> None:
    assert counted(*((item, right()) for item in items)).constant.guessing == expected


def test_guessing_counts_an_item_once_however_often_it_is_asked() -> None:
    two, four = choice("a", "b"), choice("a", "b", "c", "d")
    again = Answered(four, right(), first=False)
    assert AnswerCounts([Answered(two, right()), Answered(four, right()), again]).constant.guessing == 0.375


@pytest.mark.parametrize(("unreadable", "readable", "ends"), [(2, 1, True), (1, 1, False), (0, 2, False)])
def test_an_interview_ends_when_more_than_half_of_the_answers_have_no_form(
    unreadable: int, readable: int, ends: bool
) -> None:
    item = choice("red", "blue")
    answers = [right("##")] * unreadable + [right("A")] * readable
    said = counted(*((item, answer) for answer in answers)).too_many_unreadable()
    assert said.startswith(f"{unreadable} of {unreadable + readable} answers hold no answer" if ends else "")
    assert bool(said) is ends


@pytest.mark.parametrize(("holding", "others", "told"), [(2, 1, True), (2, 2, False), (3, 2, True), (2, 0, False)])
def test_the_expected_answer_in_most_wrong_answers_is_told(holding: int, others: int, told: bool) -> None:
    item = Item("a", "Where?", "Paris", "exact")
    texts = ["It is Paris, I think."] * holding + ["It is Rome."] * others
    said = counted(*((item, Response(Status.OK, 0.0, text)) for text in texts)).unread_answers()
    found = f"the expected answer is in {holding} of {holding + others} wrong answers: use grader "
    assert said.startswith(found) if told else not said


def test_an_answer_that_the_test_did_not_pass_on_is_not_unreadable() -> None:
    item = choice("red", "blue")
    assert not counted(*[(item, right(""))] * 3, read=False).too_many_unreadable()
    assert not counted(*[(item, right("##"))] * 3, read=False).too_many_unreadable()
    assert counted(*[(item, right(""))] * 3).too_many_unreadable()
