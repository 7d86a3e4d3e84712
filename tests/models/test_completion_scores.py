"""Scores of completions: what a model did has one, whatever its status; what the infrastructure did has none."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion

#: Graders, an answer, a text that is right, one that holds no answer, and one that breaks off behind a right answer.
GRADERS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "exact": ({"answer": "right"}, "right", "hm", "right"),
    "numeric": ({"answer": "12", "grader": "numeric"}, "The answer is 12.", "So we", "The answer is 12. As a che"),
    "math": ({"answer": "12", "grader": "math"}, "\\boxed{12}", "So we", "\\boxed{12} is wh"),
    "choice": ({"answer": "B", "grader": "choice", "choices": ("a", "b")}, "B", "Hm", "The answer is B. Becau"),
    "function": ({"custom": lambda _, text: float("12" in text)}, "12", "hm", "12 and"),
    "unreadable": ({"custom": lambda *_: _unreadable()}, "", "hm", ""),
}
SILENT = (Status.EMPTY, Status.REFUSED, Status.TRUNCATED)


def _unreadable() -> float:
    raise Unscored("refused", "it holds no answer")


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("grader", GRADERS)
def test_the_score_of_a_completion_by_status_and_grader(grader: str, status: Status) -> None:
    fields, right, unread, cut = GRADERS[grader]
    item = Item("i", "?", **fields)
    for text, score in ((right, 1.0), (unread, 0.0), (cut, 1.0), ("", 0.0)):
        response = Completion(text, status).response(item)
        blank_is_empty = not text and status is Status.OK
        expected = None if status.infrastructure else score
        assert response.score == (0.0 if grader == "unreadable" and expected == 1.0 else expected), text
        assert response.text == text
        if grader != "unreadable":
            assert response.status is (Status.EMPTY if blank_is_empty else status)


def test_a_fault_of_a_grader_is_no_wrong_answer() -> None:
    def fails(*_: object) -> float:
        raise Unscored("sandbox_error", "no sandbox")

    for status in (Status.OK, *SILENT):
        response = Completion("x", status).response(Item("i", custom=fails))
        assert (response.status, response.score, response.detail) == (Status.SANDBOX_ERROR, None, "no sandbox")


def test_a_partial_number_of_a_cut_answer_is_graded_as_that_of_a_whole_one() -> None:
    item = Item("i", "?", "45", "numeric")
    for text in ("First 3 x 15 = 45", "First 3 x 15 = 45, and then 45 + 7 = 5"):
        scores = {Completion(text, status).response(item).score for status in (Status.OK, Status.TRUNCATED)}
        assert len(scores) == 1
