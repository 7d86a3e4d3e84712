"""What a subject is: something that answers items and says who it is."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import BankError, ConfigError, Unscored
from pytest_adaptive_eval.items.item import Item, Status, cut_text

__all__ = ["Completion", "Subject", "SubjectIdentity", "Usage", "cap_and_sample"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer.

    Parameters
    ----------
    text : str
        Raw, without the prompt.
    status : Status
        ``ok`` when the subject ended its answer by itself.
    score : float or None
        Only when the source knows the score and not the text (recorded scores).
    detail : str
        What happened when the status is not ok.
    """

    text: str
    status: Status = Status.OK
    score: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SubjectIdentity:
    """Who answers, as far as the answers depend on it.

    Parameters
    ----------
    name : str
        For people: the folder's name, the recorded subject's id.
    checkpoint : str
        Hash of everything that makes the model; empty when unknown, and then
        no answer is ever taken from an earlier run.
    decoding : mapping
        Every decoding setting that can change an answer (JSON values).
    environment : mapping
        Device, dtype, library versions: recorded, and no part of the identity.
    """

    name: str
    checkpoint: str = ""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def samples(self) -> bool | None:
        """Whether decoding samples, by `decoding`; None where it does not say.

        ``extra`` holds settings that are sent to a server after ours, and replace them.
        """
        extra = self.decoding.get("extra")
        settings = {**self.decoding, **(extra if isinstance(extra, Mapping) else {})}
        temperature, chosen = settings.get("temperature"), settings.get("do_sample")
        if chosen is False or temperature == 0:
            return False
        if chosen is True or (isinstance(temperature, int | float) and temperature > 0):
            return True
        return None

    @property
    def decoding_hash(self) -> str:
        """First 16 hex digits of SHA-256 over the decoding settings.

        Raises
        ------
        ConfigError
            They are no JSON data.
        """
        try:
            text = json.dumps(dict(self.decoding), sort_keys=True)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the decoding settings of {self.name!r} are no JSON data ({error}): give texts, numbers, lists, dicts"
            ) from None
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return {**asdict(self), "decoding_hash": self.decoding_hash}


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost; sums and differences by ``+`` and ``-``.

    Parameters
    ----------
    calls : int
    prompt_tokens, completion_tokens, reasoning_tokens : int
        Reasoning tokens are part of the completion's.
    seconds : float
        Waited for, those of retries included.
    flops : float
        Estimated: twice the parameters for each token read or written; 0 where the size is unknown.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    flops: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, Any]:
        """For records."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


class Subject(abc.ABC):
    """A model under evaluation.

    A subclass has an `identity` and answers batches of items.  Tests call
    `generate`, which gives the text, or `score`, which also works where only
    scores were recorded; both raise `Unscored` when there is no answer.

    Attributes
    ----------
    sample : int
        Which draw of an answer is asked for, from 0, while an item is asked
        repeatedly; an item reaches `answer` with it as ``meta["sample"]``.
    varies : bool
        Whether asking again may bring another answer.
    """

    sample = 0
    varies = True

    def __init__(self, identity: SubjectIdentity) -> None:
        self.identity = identity
        # By what is read and then by item: a bare prompt finds the answer to the item it came from.
        self._ready: dict[tuple[Any, ...], dict[str, Completion]] = {}

    @property
    def usage(self) -> Usage:
        """What its answers cost so far; nothing where that is not known."""
        return Usage()

    @abc.abstractmethod
    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """One completion an item, in order.  A fault of one item is a status, not an exception."""

    def prepare(self, items: Sequence[Item]) -> None:  # noqa: ARG002 - most subjects take every question
        """Look at the questions of an interview before the first is asked.

        Raises
        ------
        ConfigError
            The subject cannot answer questions of their kind.
        """
        return

    def answer_each(self, items: Sequence[Item], arrived: Callable[[int, Completion], object]) -> list[Completion]:
        """Answer as `answer` does, and hand on each completion with its place among `items` as soon as it is there.

        A subject whose answers come one by one overrides this.
        """
        completions = self.answer(items)
        for place, completion in enumerate(completions):
            arrived(place, completion)
        return completions

    def prefetch(
        self,
        items: Sequence[Item],
        samples: Sequence[int] = (),
        arrived: Callable[[int, Completion], object] | None = None,
    ) -> None:
        """Answer a batch in one call, so that `generate` and `score` find the answers ready.

        Parameters
        ----------
        items : sequence of Item
        samples : sequence of int
            Which draw each is, see `sample`; the first when omitted.
        arrived : callable, optional
            Gets each new completion, with its place among `items`, as soon as it is there; may be called from
            another thread, while this one waits.
        """
        drawn = [_drawn(item, sample) for item, sample in zip(items, samples, strict=True)] if samples else list(items)
        fresh = [place for place, item in enumerate(drawn) if item.id not in self._ready.get(_key(item), {})]
        if not fresh:
            return
        asked = [drawn[place] for place in fresh]
        if arrived is None:
            completions = self.answer(asked)
        else:
            completions = self.answer_each(asked, lambda n, completion: arrived(fresh[n], _cut(completion)))
        for item, completion in zip(asked, completions, strict=True):
            self._ready.setdefault(_key(item), {})[item.id] = _cut(completion)

    def restore(self, item: Item, sample: int, completion: Completion) -> None:
        """Have the completion of an earlier run ready, as `prefetch` does with new ones."""
        item = _drawn(item, sample)
        self._ready.setdefault(_key(item), {})[item.id] = completion

    def generate(self, prompt: Item | str, images: Sequence[str] = ()) -> str:
        """Give the answer to an item or to a bare prompt.

        Raises
        ------
        Unscored
            The answer was truncated, refused, empty or could not be had.
        ConfigError
            Only the score of the answer is known.
        """
        prompt = getattr(prompt, "item", prompt)  # what a test gets as `item` wraps the bank's
        item = prompt if isinstance(prompt, Item) else Item(id="", prompt=str(prompt), images=tuple(images))
        completion = self.complete(item)
        if completion.score is not None and not completion.text:
            raise ConfigError(
                f"item {item.id!r}: {self.identity.name!r} knows the score of its answer and not the text; "
                "write `item.score(model.score(item))` instead of grading `model.generate(...)`"
            )
        return completion.text

    def score(self, item: Item) -> float:
        """Give the score of an answer, in [0, 1]: as recorded, or else as the item grades the text.

        Raises
        ------
        Unscored
            The answer was truncated, refused, empty or could not be had, or its recorded score is none.
        """
        asked, item = item, getattr(item, "item", item)  # what a test gets as `item` wraps the bank's
        completion = self.complete(item)
        if completion.score is None:
            return float(asked.grade(completion.text))
        if not 0.0 <= completion.score <= 1.0:
            raise Unscored(Status.ERROR.value, f"the score is {completion.score!r}, and a score lies in [0, 1]")
        if asked is not item:
            asked.graded = completion.score  # type: ignore[attr-defined]  # so that the test must ask what it is
        return completion.score

    def close(self) -> None:
        """Give back memory and devices."""
        self._ready.clear()

    def complete(self, item: Item) -> Completion:
        """Give the whole answer to an item.

        Raises
        ------
        Unscored
            The answer was truncated, refused, empty or could not be had.
        """
        item = _drawn(item, self.sample)
        completion = self._take(item) or _cut(self.answer([item])[0])
        if completion.status is not Status.OK:
            raise Unscored(completion.status.value, completion.detail, completion.text)
        return completion

    def _take(self, item: Item) -> Completion | None:
        """Take the prefetched answer, once; for a bare prompt only when all items that read it agree."""
        waiting = self._ready.get(_key(item), {})
        name = item.id if item.id or len(set(waiting.values())) != 1 else next(iter(waiting))
        completion = waiting.pop(name, None)
        if not waiting:
            self._ready.pop(_key(item), None)
        return completion


def _cut(completion: Completion) -> Completion:
    """The completion with as much of its text as is kept."""
    text = cut_text(completion.text)
    return completion if text is completion.text else replace(completion, text=text)


def _drawn(item: Item, sample: int) -> Item:
    """The item as a subject is asked it for a further draw."""
    return replace(item, meta={**item.meta, "sample": sample}) if sample else item


def _key(item: Item) -> tuple[Any, ...]:
    messages = json.dumps([dict(m) for m in item.messages], sort_keys=True) if item.messages else ""
    return item.prompt, messages, item.image_paths, item.meta.get("sample", 0)


def cap_and_sample(item: Item, max_tokens: int) -> tuple[int, int]:
    """How long the answer to an item may be, in tokens, and which of its samples it is, by its meta.

    Raises
    ------
    BankError
        One of them is no whole number.
    """
    cap, sample = item.meta.get("max_tokens", max_tokens), item.meta.get("sample", 0)
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise BankError(f"item {item.id!r}: meta.sample is {sample!r}, expected a whole number")
    try:
        check_count("meta.max_tokens", cap)
    except ConfigError as error:
        raise BankError(f"item {item.id!r}: {error}") from None
    return cap, sample
