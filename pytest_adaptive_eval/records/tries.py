"""Earlier runs of the same gate on the same checkpoint, which a PASS after several tries has to name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord
from pytest_adaptive_eval.text import counted

#: Span in which runs of one gate count as tries of it.
_SPAN = timedelta(days=1)


def earlier_tries(run: RunRecord, history: Iterable[RunRecord]) -> list[str]:
    """Return a sentence for each gate that passed after other outcomes for the same checkpoint within a day.

    The error rate of a verdict holds for one run. Of several, with other seeds or budgets, the best is chosen.

    Args:
        history: Runs before it, oldest first.
    """
    began = datetime.fromisoformat(run.started)
    recent = [r for r in history if r.run != run.run and began - _SPAN <= datetime.fromisoformat(r.started) < began]
    before = [(key, gate, interview) for earlier in recent for key, gate, interview in _keyed(earlier)]
    sentences = []
    for key, gate, _ in _keyed(run):
        tries = [(other, interview) for other_key, other, interview in before if other_key == key]
        if gate.verdict.get("outcome") == Outcome.PASS and any(
            t.verdict.get("outcome") != Outcome.PASS for t, _ in tries
        ):
            told = ", ".join(f"{other.verdict.get('outcome')} ({_settings(interview)})" for other, interview in tries)
            sentences.append(
                f"{gate.name} passed after {counted(len(tries), 'other run')} of it for this checkpoint within a day: "
                f"{told}; the error rate holds for one run, so decide by the first or name a seed and a budget once"
            )
    return sentences


def _keyed(run: RunRecord) -> Iterator[tuple[tuple[Any, ...], GateRecord, InterviewRecord]]:
    """Yield the gates on interviews of an identified checkpoint, with what two runs of one gate have in common."""
    interviews = {name: interview for interview in run.interviews for name in (interview.nodeid, interview.name)}
    for gate in run.gates:
        interview, verdict = interviews.get(gate.interview), gate.verdict
        checkpoint = interview.subject.get("checkpoint") if interview is not None else None
        if interview is not None and checkpoint:
            found = (gate.nodeid, verdict.get("metric"), verdict.get("requirement"), checkpoint)
            yield (*found, interview.bank.get("content_hash")), gate, interview


def _settings(interview: InterviewRecord) -> str:
    policy: Mapping[str, Any] = interview.policy
    return f"seed {policy.get('seed', '?')}, {interview.asked} of {counted(interview.size, 'item')}"
