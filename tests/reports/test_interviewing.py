"""The page's section on the interviewer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.records.parts import Costs, InterviewerRecord
from pytest_adaptive_eval.reports.interview import interviewer_facts


def facts(**account: Any) -> dict[str, str]:
    recorded = InterviewerRecord.of({"chosen": 4, **account})
    record: Any = SimpleNamespace(interviewer=recorded, asked=14, costs=Costs())
    return {name: value for name, value in interviewer_facts(record).items() if value}


def test_distances_of_the_questions_are_shown() -> None:
    assert facts(semantic_distance=[1.234], difficulty_distance=[0.456])["questions"] == (
        "1.23 apart on average by the embeddings (semantic distance); difficulties 0.46 logits from the ability, past "
        "the first questions"
    )
    assert facts(semantic_distance=[1.234], difficulty_distance=[None])["questions"].endswith("(semantic distance)")


def test_operations_of_embeddings_are_shown() -> None:
    assert facts(embeddings="clip", embedding_flops=1.5e12)["embeddings"] == "clip, 1.5e+12 FLOPs"
    assert facts(embeddings="categories")["embeddings"] == "categories"


@pytest.mark.parametrize(
    "account", [{}, {"semantic_distance": [None]}, {"semantic_distance": [], "difficulty_distance": []}]
)
def test_unknown_distances_are_left_out(account: dict[str, Any]) -> None:
    assert "questions" not in facts(**account)
