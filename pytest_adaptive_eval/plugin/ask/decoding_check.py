"""Evidence that another run would give other answers: a model that samples, and answers of earlier runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.evaluation import Interview
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_record import UNKNOWN, Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.text import counted


class DecodingCheck:
    """Evidence that another run would give other answers.

    Args:
        whose: Whose answers these are, see `EvaluationRecord.whose`.

    Attributes:
        reason: The evidence in words; empty without any.
    """

    def __init__(self, history: History | None, evaluation: Interview, identity: SubjectIdentity, whose: str) -> None:
        self._by_default = evaluation.repeat is None
        self._samples = identity.samples
        self.reason = "decoding samples" if self._samples else ""
        self._earlier: EvaluationRecord | None = None
        measures_noise = not self._by_default and evaluation.decodings(evaluation.repeat) > 0
        if not self._samples and identity.checkpoint and not measures_noise:
            self._earlier = _latest(history, evaluation, whose)
            noise = self._earlier.decoding_noise if self._earlier is not None else None
            if noise is not None and noise.variance:
                self.reason = "an earlier run of this checkpoint gave different answers to the same item"

    def finds_changes(self, answers: Sequence[Administration]) -> bool:
        """Return whether answers differ from an earlier run's, and by default items are then asked again.

        The model's texts are compared.  What a test makes of them may change without a change of the model.
        """
        if self._earlier is None or self.reason:
            return False
        requests = self._earlier.requests
        earlier = {entry.place: entry for entry in self._earlier.administrations}
        compared = changed = 0
        for answer in answers:
            before = earlier.get(answer.place)
            is_same_request = answer.request == requests.get(answer.place, UNKNOWN) != UNKNOWN
            if before is None or not is_same_request or not (before.said and answer.said):
                continue
            compared += 1
            if before.said != answer.said:
                changed += 1
        if not changed:
            return False
        self.reason = f"an earlier run of this checkpoint answered {changed} of {counted(compared, 'item')} differently"
        return self._by_default

    def notes(self, noise: DecodingNoise | None, *, whole: bool) -> list[str]:
        """Return notes for readers of any verdict; of a `whole` bank nothing but the noise is uncertain."""
        if noise is not None:
            if not self.reason or self._samples:
                return []
            if noise.variance == 0:  # a cause that varies between runs, such as a server, need not vary within one
                return [f"{self.reason}: another run may decide otherwise"]
            return [self.reason]
        if self.reason:
            return [
                f"{self.reason}, and the noise was not measured: another run may decide otherwise; remove repeat = 0, "
                "or set samples"
            ]
        if whole and self._samples is None:
            return [
                "the model does not say how it decodes: where it samples, another run may decide otherwise; set "
                "repeat, or give its identity a temperature"
            ]
        return []


def earlier_interviews(
    history: History | None, evaluation: Interview, whose: str
) -> Iterator[tuple[RunRecord, EvaluationRecord]]:
    """Yield the interviews, not void, of the same subject and bank with their runs, latest first."""
    if history is None or not whose:
        return
    for run, record in reversed(list(history.evaluations())):
        is_same = record.whose == whose and record.bank.content_hash == evaluation.bank.content_hash
        if is_same and not (record.error or run.copied_from):
            yield run, record


def _latest(history: History | None, evaluation: Interview, whose: str) -> EvaluationRecord | None:
    """Return the latest of the earlier interviews with its answers, None without any."""
    for run, record in earlier_interviews(history, evaluation, whose):
        assert history is not None
        try:
            whole = history.whole(run.run)
        except JournalError:  # removed or damaged meanwhile
            return None
        for other in whole.interviews:
            if other.nodeid == record.nodeid:
                return other
        return None
    return None
