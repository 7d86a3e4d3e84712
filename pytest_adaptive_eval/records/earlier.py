"""The earlier run whose answers predict an interview's answers, from a record, a history or recorded answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from pytest_adaptive_eval.claims.earlier import EarlierAnswers
from pytest_adaptive_eval.errors import BaselineError, JournalError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.baseline import Recorded, answers_in, as_baseline_error, find_recorded, interview_in
from pytest_adaptive_eval.records.parts import Part, PredictionRecord
from pytest_adaptive_eval.records.run_record import UNKNOWN, Administration, EvaluationRecord, RunRecord, knows_weights

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.history import History

FEWEST = 30  #: Fewest answers with which a run of the history predicts.


class EarlierRun(Part):
    """Scores of an earlier run on items of a bank, chosen before the first question.

    Args:
        source: Where they are from, for the record.
        scores: By item id of the bank.
        requests: What its tests asked, by item id; empty if unknown.
        checkpoint, decoding: Hashes of its subject and of the decoding settings; empty if unknown.
    """

    source: PredictionRecord
    scores: dict[str, float]
    requests: dict[str, str] = {}
    checkpoint: str = ""
    decoding: str = ""

    @classmethod
    def of(cls, source: PredictionRecord, scores: dict[str, float], **facts: Any) -> EarlierRun:
        """Create with the number of the answers, and the hash of their pairs of item and score."""
        pairs = json.dumps(sorted(scores.items()))
        digest = hashlib.sha256(pairs.encode()).hexdigest()[:16]
        return cls(replace(source, hash=digest, answers=len(scores)), scores, **facts)

    def on(self, bank: ItemBank) -> EarlierAnswers:
        """Return the scores in the bank's order."""
        scores = [self.scores.get(str(item), np.nan) for item in bank.ids]
        return EarlierAnswers(self.source.label, np.array(scores, dtype=np.float64))

    def stream(self, seed: int) -> int:
        """Return the seed of the draws from that of an interview without predictions, see `claims.earlier`."""
        return int.from_bytes(hashlib.sha256(f"{seed}:{self.source.hash}".encode()).digest()[:8])

    def refusal(self, candidate: SubjectIdentity, decoding: str) -> str:
        """Return why the run says nothing about a candidate with this hash of decoding settings; empty if it does."""
        if self.is_of(candidate.checkpoint) and knows_weights(candidate):
            return "it is the candidate itself"
        if self.decoding and decoding and self.decoding != decoding:
            return f"its decoding settings were others (hash {self.decoding}, here {decoding})"
        return ""

    def is_of(self, checkpoint: str) -> bool:
        """Return whether the run is known to be of a checkpoint."""
        return bool(checkpoint) and self.checkpoint == checkpoint

    def asked_otherwise(self, asked: Administration) -> bool:
        """Return whether the run's test asked an item otherwise."""
        before = self.requests.get(asked.item, UNKNOWN)
        return UNKNOWN not in (before, asked.request) and before != asked.request


def read_earlier(spec: str, folders: Sequence[Path], bank: ItemBank, evaluation: str) -> EarlierRun:
    """Return the earlier run that a text names; parameters as of `baseline.read_baseline`.

    Raises:
        BaselineError: It cannot be read, or has no answer to the bank's items.
    """
    with as_baseline_error():
        recorded = find_recorded(spec, folders, bank, evaluation)
        if recorded.record is None:
            earlier = _of_answers(recorded, bank)
        else:
            interview = interview_in(recorded.source, recorded.record, bank, evaluation)
            earlier = earlier_run(recorded.record, interview, bank)
    if not earlier.scores:
        raise BaselineError(
            f"{recorded.source}: it has no score of an item of the bank {bank.name!r}: name another run"
        )
    return replace(earlier, source=replace(earlier.source, path=recorded.shown))


def newest_of_another(history: History, nodeid: str, bank: ItemBank, checkpoint: str) -> EarlierRun | None:
    """Return the newest run of a history by another subject that has `FEWEST` answers; None without any.

    Args:
        nodeid: Test of the interview.
        checkpoint: Hash of the candidate; empty if unknown.
    """
    for run, brief in reversed(list(history.evaluations())):
        if brief.nodeid != nodeid or brief.bank.name != bank.name or brief.scored < FEWEST:
            continue
        if brief.error or run.copied_from or (checkpoint and brief.subject.checkpoint == checkpoint):
            continue
        try:
            whole = history.whole(run.run)
        except JournalError:  # removed or damaged meanwhile
            continue
        interview = next(entry for entry in whole.interviews if entry.nodeid == nodeid)
        earlier = earlier_run(whole, interview, bank)
        if len(earlier.scores) >= FEWEST:
            return earlier
    return None


def earlier_run(run: RunRecord, interview: EvaluationRecord, bank: ItemBank) -> EarlierRun:
    """Return an interview's scores by the items of a bank; raise BaselineError if it is void.

    Items are joined by the hash of id and content, or by id where the record has none and the bank is the same.
    """
    if interview.error:
        raise BaselineError(f"the interview {interview.name!r} is void ({interview.error}): name another run")
    items = {str(item.id): item for item in bank.items}
    same_bank = interview.bank.content_hash == bank.content_hash
    by_id = False
    scores: dict[str, float] = {}
    requests: dict[str, str] = {}
    for asked in interview.by_item():
        item = items.get(asked.item)
        if item is None or asked.score is None:
            continue
        if asked.item_hash:
            joins = asked.item_hash == item.content_hash
        else:
            joins = same_bank
            by_id |= same_bank
        if joins:
            scores[asked.item], requests[asked.item] = asked.score, asked.request
    subject = interview.subject
    source = PredictionRecord(subject.name or interview.name, run.run, run.started, by_id=by_id)
    hashes = {"checkpoint": subject.checkpoint, "decoding": subject.decoding_hash}
    return EarlierRun.of(source, scores, requests=requests, **hashes)


def _of_answers(recorded: Recorded, bank: ItemBank) -> EarlierRun:
    """Return recorded answers, which are joined by id."""
    identity, scores = answers_in(recorded, bank)
    score_by_item = {
        str(item): score for item, score in zip(bank.ids, scores.tolist(), strict=True) if not isnan(score)
    }
    return EarlierRun.of(PredictionRecord(identity.name, by_id=True), score_by_item, checkpoint=identity.checkpoint)
