"""Items that flicker: right in one run and wrong in another, for one checkpoint and one decoding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord

#: Score from which an answer counts as right.
RIGHT = 0.5


@dataclass
class Flicker:
    """Answers of one subject to one item over several runs.

    Args:
        right, answers: Runs whose answer was right, and all runs with a score.
        texts: The latest right and the latest wrong answer, as far as they were kept.
    """

    evaluation: str
    item: str
    subject: str
    right: int = 0
    answers: int = 0
    texts: list[str] = field(default_factory=lambda: ["", ""])

    @property
    def flickers(self) -> bool:
        """Whether some answers were right and some wrong."""
        return 0 < self.right < self.answers

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {
            "evaluation": self.evaluation,
            "item": self.item,
            "subject": self.subject,
            "right": self.right,
            "answers": self.answers,
            "latest_right": self.texts[0],
            "latest_wrong": self.texts[1],
        }


def flickering(interviews: Iterable[tuple[RunRecord, InterviewRecord]]) -> list[Flicker]:
    """Return the items whose answers changed between runs, the most even first.

    Only runs of the same checkpoint, decoding and item text are compared, so that the checkpoint did not change.

    Args:
        interviews: Oldest first, with their administrations.
    """
    found: dict[tuple[str, ...], Flicker] = {}
    for _, interview in interviews:
        subject = interview.subject
        who = str(subject.get("checkpoint") or subject.get("name") or ""), str(subject.get("decoding_hash") or "")
        for asked in interview.administrations:
            if asked.score is None or asked.sample:
                continue
            key = (interview.name, asked.item, asked.item_hash, *who)
            entry = found.setdefault(key, Flicker(interview.name, asked.item, str(subject.get("name") or "")))
            right = asked.score >= RIGHT
            entry.right += right
            entry.answers += 1
            entry.texts[0 if right else 1] = asked.text
    return sorted(
        (entry for entry in found.values() if entry.flickers),
        key=lambda entry: (-min(entry.right, entry.answers - entry.right) / entry.answers, -entry.answers, entry.item),
    )
