"""Items that must pass whatever the accuracy: one wrong answer fails every gate of the interview.

They are asked first, with probability 1. Their scores are facts, to which no confidence applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_adaptive_eval.gates.condition import with_note
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.text import counted, number

QUOTED, NAMED = 80, 3  #: Characters of a quoted answer, and number of items that a sentence names.


@dataclass(frozen=True, slots=True)
class MustPassAnswer:
    """Lowest score of the answers to an item that must pass; None if one is missing and none is wrong."""

    item: str
    score: float | None
    text: str = ""

    @property
    def wrong(self) -> bool:
        """Whether an answer was not fully right."""
        return self.score is not None and self.score < 1.0

    @property
    def failed(self) -> bool:
        """Whether an answer was wrong or has no score."""
        return self.wrong or self.score is None

    @property
    def sentence(self) -> str:
        """The item and what happened, such as ``refund-1 answered "yes"``."""
        text = " ".join(self.text.split())
        quoted = f'"{text[:QUOTED]}{"..." * (len(text) > QUOTED)}"'
        if self.score is None:
            return f"{self.item} has no score ({text[:QUOTED] or 'not asked'})"
        if self.score:
            partly = f", score {number(self.score, 2)}"
        else:
            partly = ""
        if text:
            return f"{self.item} answered {quoted}{partly}"
        return f"{self.item} was answered wrong{partly}"


def must_pass_sentence(answers: Sequence[MustPassAnswer]) -> str:
    """Return how the items that must pass were answered; empty without such items."""
    if not answers:
        return ""
    wrong = [answer for answer in answers if answer.wrong]
    failed = wrong or [answer for answer in answers if answer.failed]
    if not failed:
        return f"{len(answers)} of {counted(len(answers), 'must-pass item')} right"
    verb = "wrong" if failed[0].wrong else "without a score"
    if len(failed) > NAMED:
        more = f" and {len(failed) - NAMED} more"
    else:
        more = ""
    named = ", ".join(answer.sentence for answer in failed[:NAMED])
    return f"{len(failed)} of {counted(len(answers), 'must-pass item')} {verb}: {named}{more}"


def with_must_pass(verdict: Verdict, judge: Callable[[Verdict], Verdict], answers: Sequence[MustPassAnswer]) -> Verdict:
    """Return a verdict with the items that must pass: FAIL if one is wrong, else ERROR if one has no score.

    A void interview stays an ERROR.

    Args:
        verdict: Verdict without an outcome.
        judge: Returns the verdict by the metric. If only items that must pass were asked and one failed, nothing is
            left to judge.
    """
    sentence = must_pass_sentence(answers)
    if not any(answer.failed for answer in answers):
        judged = judge(verdict)
        if sentence:
            return replace(judged, notes=(*judged.notes, sentence))
        return judged
    if any(answer.wrong for answer in answers):
        outcome = Outcome.FAIL
    else:
        outcome = Outcome.ERROR
    if verdict.asked <= len(answers):
        return replace(verdict, outcome=outcome, stated=sentence)
    judged = judge(verdict)
    if judged.outcome is Outcome.ERROR:
        return judged
    failed = replace(judged, outcome=outcome, stated=sentence, notice=False, decided_after=None)
    return with_note(failed, f"without them {judged.outcome.value}: {judged.claim}")
