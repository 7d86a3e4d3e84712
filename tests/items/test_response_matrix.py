"""Response matrices: what they hold, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses


def make(**change):
    given = {"subjects": ["m1", "m2", "m3"], "items": ["x", "y"], "scores": [[1.0, 0.0], [0.5, np.nan], [0.0, 1.0]]}
    return Responses(**{**given, **change})


def test_what_is_given_is_kept():
    scores = np.array([[1.0, 0.0], [0.5, np.nan], [0.0, 1.0]])
    responses = make(scores=scores)
    scores[0, 0] = 0.25
    assert responses.scores[0, 0] == 1
    assert (responses.subjects, responses.items) == (("m1", "m2", "m3"), ("x", "y"))
    assert responses.families == responses.subjects
    assert responses.observed == pytest.approx(5 / 6)
    with pytest.raises(ValueError, match="read-only"):
        responses.scores[0, 0] = 0.0


def test_some_subjects_in_another_order():
    some = make(families=["f", "g", "f"]).of([2, 0])
    assert (some.subjects, some.families, some.items) == (("m3", "m1"), ("f", "f"), ("x", "y"))
    np.testing.assert_array_equal(some.scores, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[1.0, 0.0]]}, r"3 subjects, 2 items and 3 families for scores of shape \(1, 2\)"),
        ({"families": ["f", "g"]}, "3 subjects, 2 items and 2 families"),
        ({"subjects": ["m1", "m2", "m1"]}, "duplicate subject 'm1'"),
        ({"items": ["x", "x"]}, "duplicate item 'x'"),
        ({"scores": [[1, 0], [2.5, 0], [0, -1]]}, "'m2' has 2.5 on item 'x'.*2 values"),
        ({"scores": [[1, 0], [0, np.inf], [0, 1]]}, "'m2' has inf on item 'y'.*1 values"),
        ({"items": [], "scores": np.empty((3, 0))}, "no responses"),
        ({"subjects": [], "scores": np.empty((0, 2))}, "no responses"),
    ],
)
def test_what_is_no_matrix_of_responses_is_refused(change, message):
    with pytest.raises(ResponsesError, match=f"table.csv: .*{message}"):
        make(source="table.csv", **change)
