"""Responses of many subjects to many items, for calibration and backtests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.types import Array, Bools

if TYPE_CHECKING:
    from pytest_adaptive_eval.irt.multimodal import Modalities

ROUNDED = 5.1e-4  #: Largest difference of a stated accuracy from that of the samples: tools round to three digits.


def _duplicate(names: Sequence[str]) -> str | None:
    """Return the first duplicate name, or None."""
    earlier = set()
    for name in names:
        if name in earlier:
            return name
        earlier.add(name)
    return None


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """Data of a log on an item, besides the scores.

    Args:
        prompt: Empty if there are only messages.
        messages: A chat, as of `Item`.
        answers: Accepted answers; of a question with choices the text or the letter of one.
        images: Contents of files, data URLs, or paths of files.
        names: Other ids of the item in the log, by their field, such as ``doc.id``.
    """

    prompt: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    choices: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    images: tuple[Any, ...] = ()
    category: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


class Reply(NamedTuple):
    """One answer of a subject to an item, with its logged score in [0, 1], NaN where missing.

    Args:
        measures: See `models.base.Completion`.
    """

    subject: str
    text: str
    score: float
    steps: Sequence[AgentStep] = ()
    measures: Mapping[str, float] = {}


class Stated(NamedTuple):
    """Totals that a log states of one part, such as a task, and what the part holds.

    Args:
        where: File, and task in it, for messages.
        samples, planned: Number of samples in the log, and of those the run was to have; None if the log does not say.
        status: How the run ended, if not as planned; empty otherwise.
        accuracy, measured: Mean score as the log states it, and of its samples; None if the log does not say.
        contradictions: What else it states that its samples are not.
        doubt: What it lacks where the rest is whole; empty if nothing.
    """

    subject: str
    where: str
    samples: int
    planned: int | None = None
    status: str = ""
    accuracy: float | None = None
    measured: float | None = None
    contradictions: Sequence[str] = ()
    doubt: str = ""

    @property
    def fault(self) -> str:
        """Reason why the part is not whole, with both figures; empty if nothing says so."""
        if self.status:
            ended = f" ({self.status})"
        else:
            ended = ""
        if self.planned is not None and self.samples < self.planned:
            return f"{self.where}: {self.samples} of {self.planned} planned samples{ended}"
        if self.status:
            return f"{self.where}: the run did not end as planned{ended}"
        if self.contradictions:
            return f"{self.where}: {self.contradictions[0]}"
        if self.accuracy is None or self.measured is None or abs(self.accuracy - self.measured) <= ROUNDED:
            return ""
        return (
            f"{self.where}: it states an accuracy of {self.accuracy:.4f}, and its samples have {self.measured:.4f} "
            f"({self.samples} samples)"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Responses:
    """Scores of S subjects on n items.

    Args:
        subjects: Unique names of the models or checkpoints.
        scores: Shape (S, n). In [0, 1]; NaN for a missing score.
        families: Training run or model family of each subject; subjects of one family are never split between fitting
            and testing. By default each subject is a family.
        questions: By item, if the log has its text.
        weights: Shape (S,). Number of subjects that each one counts for in a fit and its checks; one each when omitted.
        administered: Shape (S, n). Whether the subject's log has an item, with a score or without; unknown when
            omitted.
        replies: Answers by item: a few, or all if the reader was asked for texts.
        stated: What the logs say about themselves, for `check_whole`.

    Raises:
        ResponsesError: Nothing in it, unequal lengths, a duplicate name, or a value outside [0, 1].
    """

    subjects: tuple[str, ...]
    items: tuple[str, ...]
    scores: Array
    families: tuple[str, ...] = ()
    source: str = "responses"
    questions: Mapping[str, LoggedQuestion] = field(default_factory=dict)
    weights: Array | None = None
    administered: Bools | None = None
    replies: Mapping[str, Sequence[Reply]] = field(default_factory=dict)
    stated: tuple[Stated, ...] = ()

    def __post_init__(self) -> None:
        for name in ("subjects", "items", "families"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "families", self.families or self.subjects)
        scores = np.array(self.scores, dtype=np.float64)
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        check_faults(self._faults(), self.source, ResponsesError)

    def _faults(self) -> Iterator[str]:
        """Yield what is wrong with the names and the scores."""
        scores = self.scores
        shape = (len(self.subjects), len(self.items))
        if scores.shape != shape or len(self.families) != len(self.subjects):
            families = len(self.families)
            yield f"{shape[0]} subjects, {shape[1]} items and {families} families for scores of shape {scores.shape}"
        if not scores.size:
            yield "no responses; expected at least one subject and one item"
        for axis, names in (("subject", self.subjects), ("item", self.items)):
            twice = _duplicate(names)
            if twice is not None:
                yield f"duplicate {axis} {twice!r}; make the names unique"
        with np.errstate(invalid="ignore"):
            bad = np.argwhere((scores < 0) | (scores > 1))
        if len(bad):
            s, i = bad[0]
            yield (
                f"subject {self.subjects[s]!r} has {scores[s, i]:g} on item {self.items[i]!r}, expected a score in "
                f"[0, 1] or nothing; {len(bad)} values are so"
            )

    def check_whole(self, subject: str, *, partial: bool) -> list[str]:
        """Return a warning for each part of the subject's log that is not whole.

        Raises:
            ResponsesError: There is such a part, and `partial` is false; the message has both figures.
        """
        parts = [part for part in self.stated if part.subject == subject]
        faults = [part.fault for part in parts if part.fault]
        if faults and not partial:
            if len(faults) > 1:
                more = f", and {len(faults) - 1} more parts"
            else:
                more = ""
            raise ResponsesError(
                f"{faults[0]}{more}: the log is not whole; finish the run, or judge what there is with --partial "
                "(partial = true in model_options)"
            )
        warnings = []
        for fault in faults:
            warnings.append(f"a log that is not whole was judged: {fault}")
        return [*warnings, *(f"{part.where}: {part.doubt}" for part in parts if part.doubt)]

    def scores_of(self, subject: str) -> dict[str, float]:
        """Return the scores of the items that the subject's log has by item, NaN where missing."""
        row = self.subjects.index(subject)
        scores = zip(self.items, self.scores[row].tolist(), strict=True)
        if self.administered is None:
            return dict(scores)
        return {item: score for (item, score), asked in zip(scores, self.administered[row], strict=True) if asked}

    @property
    def observed(self) -> float:
        """Share of the matrix that has a score."""
        return float((~np.isnan(self.scores)).mean())

    def of(self, subjects: ArrayLike) -> Responses:
        """Return the responses of the subjects at the given positions, in that order."""
        rows = np.asarray(subjects, dtype=np.int64)
        return Responses(
            tuple(self.subjects[s] for s in rows),
            self.items,
            self.scores[rows],
            tuple(self.families[s] for s in rows),
            self.source,
            weights=None if self.weights is None else self.weights[rows],
            administered=None if self.administered is None else self.administered[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class FormatResponses:
    """Scores of S subjects on n items, each administered in up to F formats.

    Args:
        subjects: Unique names of the models or checkpoints.
        scores: Shape (S, n, F). In [0, 1]; NaN for a missing score.
        families: As in `Responses`.

    Raises:
        ResponsesError: Nothing in it, unequal lengths, a duplicate name, or a value outside [0, 1].
    """

    subjects: tuple[str, ...]
    items: tuple[str, ...]
    modalities: Modalities
    scores: Array
    families: tuple[str, ...] = ()
    source: str = "responses"

    def __post_init__(self) -> None:
        formats = self.modalities.formats
        scores = np.array(self.scores, dtype=np.float64)
        if scores.shape != (len(self.subjects), len(self.items), len(formats)):
            raise ResponsesError(
                f"{self.source}: {len(self.subjects)} subjects, {len(self.items)} items and {len(formats)} formats for "
                f"scores of shape {scores.shape}"
            )
        pairs = tuple(f"{item} in {name}" for item in self.items for name in formats)
        whole = Responses(self.subjects, pairs, scores.reshape(len(scores), -1), self.families, self.source)
        scores.setflags(write=False)  # Responses has checked them
        for name in ("subjects", "items"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "families", whole.families)
        object.__setattr__(self, "scores", scores)

    def at(self, items: ArrayLike) -> FormatResponses:
        """Return the responses to the items at the given positions, or where a mask is true, in that order."""
        positions = np.arange(len(self.items))[np.asarray(items)]
        selected = tuple(self.items[i] for i in positions)
        return FormatResponses(
            self.subjects, selected, self.modalities, self.scores[:, positions], self.families, self.source
        )

    @property
    def whole(self) -> Responses:
        """Responses to the items in their fullest format."""
        full = self.modalities.fullest
        return Responses(self.subjects, self.items, self.scores[:, :, full], self.families, self.source)
