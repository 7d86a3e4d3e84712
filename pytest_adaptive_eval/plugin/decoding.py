"""Check whether another run of a subject may give other answers, so that its decoding noise must be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.evaluation import Evaluation
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.run_record import Administration, InterviewRecord
from pytest_adaptive_eval.text import counted


class DecodingCheck:
    """Evidence that another run would give other answers.

    Args:
        folder: The run folder.
        prompt: Hash of the code that determines the prompts.

    Attributes:
        reason: Reason why another run may give other answers; empty without evidence.
    """

    def __init__(self, folder: Path, evaluation: Evaluation, identity: SubjectIdentity, prompt: str) -> None:
        self._by_default = evaluation.repeat is None
        self._samples = identity.samples
        self.reason = "decoding samples" if self._samples else ""
        self._earlier: InterviewRecord | None = None
        if not self._samples and identity.checkpoint and (self._by_default or not evaluation.decodings):
            self._earlier = _latest(folder, evaluation, identity, prompt)
            if self._earlier is not None and (self._earlier.decoding_noise or {}).get("variance"):
                self.reason = "an earlier run of this checkpoint gave different answers to the same item"

    def add_repeats(self, evaluation: Evaluation, answers: Sequence[Administration]) -> Evaluation:
        """Return the evaluation, with repeated items if these answers differ from those of an earlier run."""
        if self._earlier is None or self.reason:
            return evaluation
        earlier = {_administration_key(entry): (entry.text, entry.score) for entry in self._earlier.administrations}
        both = [
            (earlier[key], (answer.text, answer.score))
            for answer in answers
            if (key := _administration_key(answer)) in earlier
        ]
        scored = [(old, new) for old, new in both if old[1] is not None and new[1] is not None]
        if differ := sum(old != new for old, new in scored):
            self.reason = (
                f"an earlier run of this checkpoint answered {differ} of {counted(len(scored), 'item')} differently"
            )
            return replace(evaluation, repeat=None).for_subject(samples=True) if self._by_default else evaluation
        return evaluation

    def notes(self, noise: DecodingNoise | None, *, whole: bool) -> list[str]:
        """Return notes for readers of any verdict.

        Args:
            noise: None if it was not measured.
            whole: Whether the whole bank was asked, so that nothing but the noise is uncertain.
        """
        if noise is not None:
            if not self.reason or self._samples:
                return []
            # a cause that varies between runs, such as a server, need not vary within one
            return [self.reason + (": another run may decide otherwise" if noise.variance == 0 else "")]
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


def _latest(folder: Path, evaluation: Evaluation, identity: SubjectIdentity, prompt: str) -> InterviewRecord | None:
    """Read the latest interview, not void, of the same checkpoint, decoding, bank and test, with its answers."""
    if not (folder / "runs").is_dir():
        return None
    from pytest_adaptive_eval.records.history import History

    history = History(folder)
    same = (identity.checkpoint, identity.decoding_hash, evaluation.bank.content_hash, prompt)
    for run, record in reversed(list(history.interviews())):
        if not record.error and same == (
            record.subject.get("checkpoint"),
            record.subject.get("decoding_hash"),
            record.bank.get("content_hash"),
            record.extra.get("prompt", ""),
        ):
            try:
                whole = history.whole(run.run)
            except JournalError:  # removed or damaged meanwhile
                return None
            return next((other for other in whole.interviews if other.nodeid == record.nodeid), None)
    return None


def _administration_key(entry: Administration) -> tuple[str, str, str, int]:
    return entry.item, entry.item_hash, entry.format, entry.sample
