"""Items of a bank, their grading, and responses to them."""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.errors import BankError, Unscored
from pytest_adaptive_eval.items.graders.kind import GraderKind, grader_kinds
from pytest_adaptive_eval.items.likelihood import TEXT_SCORINGS, Continuation, LikelihoodResult, LikelihoodScoring
from pytest_adaptive_eval.items.reading.choice import choice_of
from pytest_adaptive_eval.text import similar
from pytest_adaptive_eval.worker import WorkerFault

#: Characters of all further prompts together, so that a transcript keeps room for the answers.
MOST_CHARACTERS = 8000

_MARK = re.compile(r"\[(?=turn \d)")


def later_turns(turns: Sequence[str]) -> str:
    """Return the further prompts, each behind its mark; empty without any."""
    return "".join(_marked(number, prompt) for number, prompt in enumerate(turns, 2))


def transcript(turns: Sequence[str], answers: Sequence[str], characters: int) -> str:
    """Return answers, one more than `turns`, as one text: the first, then each prompt behind its mark and its own.

    Answers are cut, each to the same length, where the text would have more than `characters`.
    """
    limit = (characters - len(later_turns(turns))) // len(answers)
    cut = [_MARK.sub("(", answer)[:limit] for answer in answers]
    parts = []
    for number, (prompt, answer) in enumerate(zip(turns, cut[1:], strict=True), 2):
        parts.append(_marked(number, prompt) + answer)
    return cut[0] + "".join(parts)


def answers_of(turns: Sequence[str], text: str) -> list[str]:
    """Return the answers of a transcript, one more than `turns`; raise ValueError for another text."""
    answers = []
    for number, prompt in enumerate(turns, 2):
        answer, mark, text = text.partition(_marked(number, prompt))
        if not mark:
            raise ValueError(
                f"the item has {len(turns) + 1} turns, and the text is not its transcript (no mark of turn {number}): "
                "ask the item itself, as model.generate(item), and grade all that it returns"
            )
        answers.append(answer)
    return [*answers, text]


def _marked(number: int, prompt: str) -> str:
    return f"\n\n[turn {number}] {prompt}\n\n"


Grader = Callable[["Item", str], float]

#: Return the JSON text over which an item's content is hashed.
canonical_json = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode

#: Key of ``meta`` of items that are known to be of low quality.
LOW_QUALITY = "low_quality"

#: Number of characters of an answer that are graded, so that a long completion
#: cannot stall a grader.
GRADED_CHARACTERS = 20_000
#: Note in journals and records in place of the rest of a longer answer.
_CUT = re.compile(r"\n\[([0-9]{1,18}) more characters were neither graded nor kept\]")


#: What an answer counts as that is empty, refused or truncated: graded as it is, and wrong where none is read; or
#: without a score.


class Status(enum.StrEnum):
    """Status of an administration: what the subject did, or what the infrastructure did, which has no score."""

    OK = "ok"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    EMPTY = "empty"
    TIMEOUT = "timeout"
    ERROR = "error"
    SANDBOX_ERROR = "sandbox_error"
    NOT_RUN = "not_run"
    NOT_AWAITED = "not_awaited"
    NOT_RECORDED = "not_recorded"

    @property
    def infrastructure(self) -> bool:
        """Whether the run is at fault, not the subject."""
        return self in INFRASTRUCTURE

    @property
    def fault(self) -> bool:
        """Whether it counts towards the faults that end a run; a score that a finished log lacks does not."""
        return self.infrastructure and self not in (Status.NOT_AWAITED, Status.NOT_RECORDED)


#: Statuses for which the run is at fault, not the subject.
INFRASTRUCTURE = (
    *(Status.TIMEOUT, Status.ERROR, Status.SANDBOX_ERROR, Status.NOT_RUN),
    *(Status.NOT_AWAITED, Status.NOT_RECORDED),
)
#: Statuses of answers that a subject did not finish or did not give, and their words.
UNANSWERED = {Status.EMPTY: "empty", Status.REFUSED: "refused", Status.TRUNCATED: "cut at the cap"}


def unanswered_sentence(statuses: Mapping[str, int]) -> str:
    """Return the counts of missing answers by status: ``10 of 40 empty, 3 refused``; empty without any."""
    counts = []
    for status, words in UNANSWERED.items():
        if count := statuses.get(status, 0):
            counts.append(f"{count} {words}")
    return ", ".join(counts).replace(" ", f" of {sum(statuses.values())} ", 1)


def cut_text(text: str) -> str:
    """Return the graded part of an answer, which is stored, and a line with the length of the rest, only once."""
    if len(text) <= GRADED_CHARACTERS or _rest(text):
        return text
    more = len(text) - GRADED_CHARACTERS
    return f"{text[:GRADED_CHARACTERS]}\n[{more} more characters were neither graded nor kept]"


def length_note(text: str) -> str:
    """Return a sentence on the length of an answer that `cut_text` cut; empty for any other."""
    if not (more := _rest(text)):
        return ""
    return f"the answer has {GRADED_CHARACTERS + more} characters: the first {GRADED_CHARACTERS} were graded and kept"


def _rest(text: str) -> int:
    """Return the number of characters that `cut_text` removed."""
    match = _CUT.fullmatch(text, GRADED_CHARACTERS)
    if match:
        return int(match[1])
    return 0


@dataclass(frozen=True, slots=True)
class Response:
    """Outcome of administering one item.

    Args:
        score: In [0, 1]; None for a fault of the infrastructure.
        text: Raw completion, if known.
        detail: Reason for a missing score, or a note of the grader.
    """

    status: Status
    score: float | None = None
    text: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if self.status is Status.OK if self.score is None else self.status.infrastructure:
            raise ValueError(f"a response with status {self.status.value!r} cannot have score {self.score!r}")
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f"a score lies in [0, 1], not {self.score!r}")

    @classmethod
    def of(cls, status: Status, score: float | None, text: str, detail: str) -> Response:
        """Return the response to an answer; a `score` of None is wrong, but for a fault of the infrastructure."""
        if status.infrastructure:
            return cls(status, None, text, detail)
        return cls(status, 0.0 if score is None else score, text, detail)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a bank.

    Args:
        id: Unique in its bank: ASCII, short, without ``::``, brackets or spaces.
        prompt: Text that the subject reads. Empty only if `messages` is given.
        answer: Expected answer, in the form of the grader; the first of a list of accepted ones.
        grader: A name of `pytest_adaptive_eval.items.graders.kind.grader_kinds`, ``python:module:function`` (only from
            trusted modules), ``task`` for a generated item that its task family grades, or ``bits_per_byte`` for a text
            that is scored by its likelihood.
        images: Image files, relative to the bank's folder.
        choices: Alternatives of a multiple-choice item, in the order A, B, C, ...
        category: From the broadest to the finest.
        formats: Formats in which the item can be administered, such as ``image+text``, ``text``, ``image``, ``none``;
            the first is the default.
        messages: A chat, as ``{"role": ..., "content": ...}``, instead of `prompt`.
        meta: Further data: ``max_tokens`` caps the answer, ``level`` and ``seed`` identify a generated item,
            ``tolerance`` is for the numeric grader, ``answer_expression`` and ``marked_prompt`` are for variants.
        custom: Resolved function of a ``python:``, ``code`` or ``task`` grader.
        root: Folder that `images` are relative to; not part of the item's content.
        likelihood: How log-likelihoods score the item; None if its grader scores what a model writes.
        turns: Further prompts of the user, each asked after the answer to the one before. A grader reads the last
            answer, and a judge all of them.
        tools: Tools that the subject may call, as ``{"type": "function", "function": {"name", "description",
            "parameters"}}`` with a JSON Schema. Calls are text of the answer; nothing is executed.
    """

    id: str
    prompt: str = ""
    answer: str = ""
    grader: str = "exact"
    images: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    formats: tuple[str, ...] = ("text",)
    messages: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    custom: Grader | None = None
    root: str = ""
    likelihood: LikelihoodScoring | None = None
    others: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    plain: Item | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        answers: Any = self.answer
        if not isinstance(answers, str):  # a list of accepted answers
            first, *others = answers or ("",)
            object.__setattr__(self, "answer", first)
            object.__setattr__(self, "others", tuple(others))

    @property
    def answers(self) -> tuple[str, ...]:
        """Accepted answers; a single empty text if nothing is expected."""
        return (self.answer, *self.others)

    @property
    def expected(self) -> str:
        """Accepted answers as a text."""
        return " or ".join(self.answers)

    @property
    def image_paths(self) -> tuple[str, ...]:
        """Paths of the image files, joined to the bank's folder."""
        if not self.images:  # most items: read several times a question
            return ()
        return tuple(f"{self.root}/{name}" if self.root else name for name in self.images)

    @property
    def task(self) -> str:
        """Task family of a generated item, whose id is ``task-level-seed``."""
        return self.id.partition("-")[0]

    def grade(self, text: str) -> float:
        """Return the score of an answer, in [0, 1]; of an item with turns, of its transcript.  A blank one is wrong."""
        text = str(text)[:GRADED_CHARACTERS]
        if self.turns and getattr(self.custom, "reads", "") != "transcript":
            try:
                text = answers_of(self.turns, text)[-1]
            except ValueError as error:
                raise BankError(f"item {self.id!r}: {error}") from None
        if not text.strip():
            return 0.0
        if self.custom is not None:
            returned = self.custom(self, text)
            try:
                score = float(returned)
            except (TypeError, ValueError, OverflowError):
                raise BankError(
                    f"item {self.id!r}: its grader {self.grader!r} gave {type(returned).__name__}, expected a number "
                    "in [0, 1]"
                ) from None
        else:
            try:
                score = self._kind().grade(self, text)
            except (TimeoutError, WorkerFault) as error:
                raise Unscored(Status.ERROR.value, f"item {self.id!r}: {error}", text) from None
            except ValueError as error:
                raise BankError(f"item {self.id!r}: {error}") from None
        if not 0.0 <= score <= 1.0:
            raise BankError(f"item {self.id!r}: its grader {self.grader!r} gave {score!r}, expected a number in [0, 1]")
        return score

    def after(self, answers: Sequence[str]) -> Item:
        """Return the item that asks the turn after these answers, with the earlier turns as its messages."""
        messages: list[Mapping[str, Any]] = [*self.messages] or [{"role": "user", "content": self.prompt}]
        for answer, prompt in zip(answers, self.turns, strict=False):
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": prompt}]
        if not answers:
            return replace(self, turns=())
        return replace(self, prompt="", messages=tuple(messages), turns=())

    def transcript(self, answers: Sequence[str]) -> str:
        """Return the answers to all turns as the stored and graded text."""
        return transcript(self.turns, answers, GRADED_CHARACTERS)

    def _kind(self) -> GraderKind:
        """Return the kind of grader; raise BankError if no kind has the name."""
        kinds = grader_kinds()
        if self.grader in kinds:
            return kinds[self.grader]
        if self.grader == "task":
            raise BankError(
                f"item {self.id!r} is graded by its task family {self.task!r}, which is not known here; if it is of a "
                "plugin, install or load that"
            )
        raise BankError(
            f"item {self.id!r}: grader {self.grader!r} is not known; {similar(self.grader, kinds)}use one of "
            f"{', '.join(kinds)} or "
            "python:module:function from a trusted module"
        )

    @property
    def continuations(self) -> list[Continuation]:
        """Texts whose log-likelihoods score the item, empty for one that is graded; may raise BankError."""
        if self.likelihood is None:
            return []
        if self.turns:
            raise BankError(f"item {self.id!r} has turns, which are answered in writing: it has no likelihoods")
        if problem := self.likelihood.check(self.prompt, self.choices):
            raise BankError(f"item {self.id!r} has {problem}")
        return self.likelihood.continuations(self.prompt, self.choices)

    def likelihood_result(self, logs: Sequence[float]) -> LikelihoodResult:
        """Return the result from the log-likelihoods of `continuations`, in nats."""
        assert self.likelihood is not None
        return self.likelihood.result(self.prompt, self.choices, logs)

    def readable(self, text: str) -> bool:
        """Return whether a text has the form of an answer, as its grader reads it."""
        text = str(text)[:GRADED_CHARACTERS]
        kinds = grader_kinds()
        if self.grader in kinds:
            return kinds[self.grader].readable(self, text)
        return bool(text.strip())

    def in_format(self, name: str) -> Item:
        """Return the item in the format `name`; ``none`` has neither image nor text."""
        if name not in self.formats:
            raise BankError(f"item {self.id!r} has no format {name!r}, only {', '.join(self.formats)}")
        modalities = set(name.split("+"))
        item = self
        if "image" not in modalities:
            item = replace(item, images=())
        if "text" not in modalities:
            item = replace(item, prompt="", messages=(), turns=())
        return item

    def to_json(self) -> dict[str, Any]:
        """Return the item as a JSON object, without fields that have their default."""
        out: dict[str, Any] = {"id": self.id}
        for name in ("prompt", "answer", "grader"):
            if getattr(self, name):
                if name == "answer" and self.others:
                    out[name] = list(self.answers)
                else:
                    out[name] = getattr(self, name)
        for name in ("images", "choices", "category", "messages", "turns", "tools"):
            if getattr(self, name):
                out[name] = [dict(v) if isinstance(v, Mapping) else v for v in getattr(self, name)]
        if self.formats != ("text",):
            out["formats"] = list(self.formats)
        if self.meta:
            out["meta"] = dict(self.meta)
        if self.likelihood is not None and self.grader not in TEXT_SCORINGS:  # else the grader tells it
            out["likelihood"] = self.likelihood.to_json()
        return out

    @property
    def content_hash(self) -> str:
        """First 16 hex digits of SHA-256 over everything that is administered and graded."""
        return hash_of_content(canonical_json(self.to_json()).encode("ascii"))


def hash_of_content(canonical: bytes) -> str:
    """Return the content hash of an item with this canonical JSON, see `Item.content_hash`."""
    return hashlib.sha256(canonical).hexdigest()[:16]


def named_choice(item: Item) -> int | None:
    """Return the index of the choice that an item's first answer names, any letter's if it lists none; or None."""
    named = choice_of(item.answer, item.choices)
    if named is not None and len(named) == 1:
        return named[0]
    return None


def items_naming(items: Sequence[Item], *names: str) -> Iterator[Item]:
    """Yield the items that may have one of these texts, such as a field's name; not all of a file are parsed."""
    find = getattr(items, "places_naming", None)
    if find is None:
        return iter(items)
    return (items[position] for position in find(names))


def items_by_likelihood(items: Sequence[Item]) -> list[Item]:
    """Return the items that are scored by the likelihoods of texts, see `Item.likelihood`."""
    return [item for item in items_naming(items, *TEXT_SCORINGS) if item.likelihood is not None]
