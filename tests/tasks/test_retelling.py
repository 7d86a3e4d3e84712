"""Paraphrases among irrelevant sentences: which answers state the facts, and what others cost."""

from __future__ import annotations

import pytest

from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.retelling import KEPT, by_facts

FACTS = [("mirror", "tower"), ("lantern", "attic")]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("The mirror was found under the tower.\nIn the attic, the lantern fell.", 1.0),
        ("1. Under the tower: the Mirror.\n2. attic, lantern", 1.0),
        ("Here is what I found:\n\nThe mirror, at the tower. The lantern was in the attic. I hope that helps!", 1.0),
        ("The mirror was under the tower.", 0.5),
        ("The mirror was under the tower. The mirror was under the tower.", 0.5),
        ("The mirror was in the attic.\nThe lantern was under the tower.", 0.0),
        ("The mirror was under the tower, and the lantern was in the attic.", 0.0),
        ("The mirror was under the tower.\nThe lantern was in the attic.\nThe kettle was in the barn.", 0.5),
        ('{"answer": "The mirror was under the tower.\\nThe lantern was in the attic."}', 1.0),
        ("Not the kettle in the barn.\n\nThe mirror was under the tower.\nThe lantern was in the attic.", 1.0),
        ("", 0.0),
    ],
)
def test_facts_count_and_other_sentences_cost(text: str, score: float) -> None:
    mark = by_facts(FACTS)(text, None)
    assert mark.score == score
    assert bool(mark.why) == (score < 1.0)


def test_faults_are_named() -> None:
    mark = by_facts(FACTS)("The mirror was under the tower.\nThe kettle was in the barn.", None)
    assert mark.why == "missing: lantern and attic; other sentences: 1"


@pytest.mark.parametrize("level", [1, 4, 10])
def test_whoever_retells_everything_has_nothing(level: int) -> None:
    family = FAMILIES["retelling"]
    question = family.question(level, 3)
    text = question.prompt.partition("\n\n")[0]
    assert text.count(".") == KEPT * (level + 1)
    item = family.item(level, 3)
    assert item.grade(text) == 0.0
    assert item.grade(question.answer) == 1.0
