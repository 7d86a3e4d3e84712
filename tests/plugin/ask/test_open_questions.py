"""The open questions of an interview and what is sent next, without pytest, models, threads or clocks."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.plugin.ask.open_questions import (
    LEAST,
    NEXT_STATES,
    OpenQuestion,
    OpenQuestions,
    Prospect,
    QuestionState,
    known_scores,
)
from pytest_adaptive_eval.records.run_record import Administration

RIGHT = Completion("right")


def drawn(count: int) -> OpenQuestions:
    """Questions that were drawn and not sent."""
    questions = OpenQuestions()
    for index in range(count):
        administration = Administration(index + 1, str(index), "hash")
        questions.add(OpenQuestion(index, 0, Item(str(index), "?"), administration))
    return questions


def at(questions: OpenQuestions, index: int) -> OpenQuestion:
    found = questions.find(index, 0)
    assert found is not None
    return found


@pytest.mark.parametrize("state", QuestionState)
def test_only_the_moves_of_the_table_are_allowed(state: QuestionState) -> None:
    for following in QuestionState:
        question = at(drawn(1), 0)
        question.state = state
        if following in NEXT_STATES[state]:
            question.move(following)
            assert question.state is following
        else:
            with pytest.raises(ValueError, match=f"{state.value} cannot become {following.value}"):
                question.move(following)


def test_the_first_drawn_questions_are_sent_next() -> None:
    questions = drawn(6)
    questions.send(at(questions, 0), 0.0)
    questions.arrive(at(questions, 1), RIGHT)
    assert [question.index for question in questions.next_to_send(3, limit=10)] == [2, 3, 4]
    assert [question.index for question in questions.next_to_send(3, limit=4)] == [2, 3]
    assert questions.next_to_send(3, limit=2) == []
    assert questions.next_to_send(-1, limit=10) == []


def test_an_answer_of_this_run_that_no_test_used_is_not_needed_and_a_stored_one_cost_nothing() -> None:
    questions, cancelled = drawn(5), list[int]()
    for index in (0, 1, 2):
        questions.send(at(questions, index), 0.0)
        at(questions, index).cancel = lambda index=index: cancelled.append(index)  # type: ignore[misc]
    questions.arrive(at(questions, 2), RIGHT)
    questions.arrive(at(questions, 3), RIGHT)  # from the journal
    assert questions.abandon() == 3
    assert cancelled == [0, 1]
    assert (questions.abandon(), questions.waiting, list(questions)) == (0, 0, [])


def test_a_failed_call_leaves_its_questions_to_be_asked_again() -> None:
    questions = drawn(3)
    for index in (0, 1):
        questions.send(at(questions, index), 0.0)
    questions.arrive(at(questions, 1), RIGHT)
    questions.fail()
    assert [question.state for question in questions] == [
        QuestionState.DRAWN,
        QuestionState.ARRIVED,
        QuestionState.DRAWN,
    ]
    assert (questions.begun, questions.waiting) == (1, 0)


def test_a_question_that_was_not_awaited_is_broken_off() -> None:
    questions, cancelled = drawn(1), list[str]()
    question = at(questions, 0)
    questions.send(question, 0.0)
    question.cancel = lambda: cancelled.append("call")
    questions.tell(question)
    assert (cancelled, questions.waiting, questions.begun) == (["call"], 0, 1)


def test_a_score_stays_known_until_the_session_has_it() -> None:
    questions = drawn(3)
    questions.arrive(at(questions, 0), RIGHT)
    at(questions, 0).score = 1.0
    questions.tell(at(questions, 0))
    assert known_scores(list(questions)) == [1.0]
    assert [question.index for question in questions.next_to_send(3, limit=10)] == [1, 2]
    questions.forget_told()
    assert (questions.find(0, 0), questions.begun, questions.abandon()) == (None, 1, 0)


@given(st.lists(st.sampled_from(["send", "arrive", "tell", "fail"]), max_size=40))
def test_the_counts_are_those_of_the_states(moves: list[str]) -> None:
    questions, told = drawn(12), 0
    for move in moves:
        wanted = {"send": QuestionState.DRAWN, "arrive": QuestionState.SENT, "tell": QuestionState.ARRIVED}.get(move)
        first = next((question for question in questions if question.state is wanted), None)
        if move == "fail":
            questions.fail()
        elif first is None:
            continue
        elif move == "send":
            questions.send(first, 0.0)
        elif move == "arrive":
            questions.arrive(first, RIGHT)
        else:
            questions.tell(first)
            told += 1
    questions.forget_told()
    states = [question.state for question in questions]
    assert questions.waiting == states.count(QuestionState.SENT)
    assert questions.begun == told + sum(state is not QuestionState.DRAWN for state in states)


def limit(
    prospect: Prospect, *, told: int, begun: int, waiting: int, needed: int, share: float = 0.25, least: int = LEAST
) -> int:
    return prospect.limit(scored=told, begun=begun, waiting=waiting, share=share, least=least, forecast=lambda: needed)


def test_a_share_of_the_questions_in_prospect_is_asked_ahead() -> None:
    prospect = Prospect()
    assert limit(prospect, told=0, begun=0, waiting=0, needed=40) == 10
    assert limit(prospect, told=0, begun=9, waiting=8, needed=1000) == 10  # one answer is no news
    assert limit(prospect, told=8, begun=10, waiting=2, needed=40) == 16
    assert limit(Prospect(), told=0, begun=0, waiting=0, needed=40, share=1.0) == 40
    assert limit(Prospect(), told=0, begun=0, waiting=0, needed=0) == LEAST
    assert limit(Prospect(), told=20, begun=20, waiting=0, needed=21, share=1.0, least=8) == 28


@given(st.integers(0, 50), st.lists(st.integers(0, 3), max_size=30))
def test_slow_answers_do_not_make_more_necessary(needed: int, arrivals: list[int]) -> None:
    prospect, begun, waiting, limits = Prospect(), 0, 0, list[int]()
    for count in arrivals:
        waiting = max(0, waiting - count)
        limits.append(limit(prospect, told=0, begun=begun, waiting=waiting, needed=needed))
        waiting += max(0, limits[-1] - begun)
        begun = max(begun, limits[-1])
    assert all(before <= after for before, after in pairwise(limits))
    assert all(most <= needed + LEAST for most in limits)


def test_scores_end_at_the_last_known_one() -> None:
    questions = drawn(4)
    at(questions, 1).score = 1.0
    scores = known_scores([None, *questions])
    assert len(scores) == 3
    assert math.isnan(scores[0])
    assert scores[2] == 1.0
    assert known_scores([None, at(questions, 0)]) == []
