"""The interface of models, under evaluation or working for the run."""

from __future__ import annotations

import abc
import contextlib
import hashlib
import json
import math
import operator
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.api_keys import without_keys
from pytest_adaptive_eval.errors import BankError, ConfigError, Unscored
from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.items.item import INFRASTRUCTURE, Item, Response, Status, canonical_json, cut_text
from pytest_adaptive_eval.models.caps import Cap


@dataclass(frozen=True, slots=True)
class Usage:
    """Cost of calls; supports ``+`` and ``-``.

    Args:
        prompt_tokens, completion_tokens, reasoning_tokens: Reasoning tokens are among the completion tokens.
        seconds: Wall time during which at least one call was open, retries included. Of calls at the same time each has
            the time since the one before it ended, so sums count no second twice.
        flops: Estimate: twice the number of parameters per token read or written; 0 if the size is unknown.
        money: What the log of a harness says that its items cost, in its currency; 0 if it does not.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    money: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(operator.add, _counts(self), _counts(other)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*map(operator.sub, _counts(self), _counts(other)))

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return asdict(self)


#: The fields of a `Usage`, in order.
_counts = operator.attrgetter(*(field.name for field in fields(Usage)))


@dataclass(frozen=True, slots=True)
class Completion:
    """Reply of a model to one request.

    Args:
        text: Raw answer, without the prompt and without reasoning that the model marks.
        status: ``ok`` if the model ended its answer by itself. Without text and score it becomes ``empty``.
        score: Score of an answer whose text is unknown, such as a recorded score.
        detail: Reason for a status other than ok.
        likelihood: Log-likelihoods that the answer follows from, see `items.likelihood.LikelihoodResult`; empty for
            others.
        cost: Cost of this answer, zero if unknown; without the time that a call of several answers took together.
        reused: Whether an earlier run got the answer.
        reasoning: Reasoning before the answer, if the model shows it.
        request: What was sent, see `sent_request`; empty if unknown, as for texts that are rated.
        measures: What is known of the answer beside its score: ``seconds`` of its own call, ``cost`` in the currency of
            a harness's log, ``input_tokens``, ``output_tokens``, ``steps``.
        steps: Messages of an agent, as its log has them.
        own_score: Whether the score belongs to the answer, such as a harness's, and no later run grades otherwise.
    """

    text: str
    status: Status = Status.OK
    score: float | None = None
    detail: str = ""
    likelihood: Mapping[str, Any] = field(default_factory=dict, hash=False)
    cost: Usage = field(default_factory=Usage, compare=False)
    reused: bool = field(default=False, compare=False)
    reasoning: str = field(default="", compare=False, repr=False)
    request: str = field(default="", compare=False, repr=False)
    measures: Mapping[str, float] = field(default_factory=dict, compare=False)
    own_score: bool = field(default=False, compare=False)
    steps: tuple[AgentStep, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.status is Status.OK and self.unread:
            object.__setattr__(self, "status", Status.EMPTY)

    @property
    def unread(self) -> bool:
        """Whether it lacks an answer to grade: a fault of the infrastructure, or neither a text nor a score."""
        return self.status in INFRASTRUCTURE or (self.score is None and not self.text.strip())

    def response(self, item: Item) -> Response:
        """Return the response to an item by its known score, or its grader."""
        status = self.status
        score = self.score
        detail = self.detail
        if score is None and not self.unread:
            try:
                score = item.grade(self.text)
            except Unscored as fault:
                status = Status(fault.status)
                detail = fault.detail
        return Response.of(status, score, self.text, detail)


TIMED_OUT = "timed out"  #: Measure of an answer that the model did not give in time, 1 where it is there.
REQUEST_CHARACTERS = 20_000  #: Characters of a request that are kept.
_EMBEDDED = re.compile(r"(;base64,)[A-Za-z0-9+/=]+")


def sent_request(text: str) -> str:
    """Return a request as it was sent, without keys and the content of files, cut to the length that is kept."""
    bare = _EMBEDDED.sub(r"\1[...]", text)
    cut = without_keys(bare[:REQUEST_CHARACTERS])
    more = len(bare) - REQUEST_CHARACTERS
    if more > 0:
        return f"{cut}\n[{more} more characters]"
    return cut


#: Messages of a chat, as a template or a server takes them.
Chat = list[dict[str, Any]]
#: Takes the index and the completion of an item as soon as it is known.
Arrived = Callable[[int, Completion], object]


@dataclass(frozen=True, slots=True)
class SubjectIdentity:
    """Identity of a model: everything that its answers depend on.

    Args:
        name: Name for people, such as the folder's name or the recorded subject's id.
        checkpoint: Hash of everything that determines the model. Empty if unknown; then no answer of an earlier run is
            reused.
        decoding: Every decoding setting that can change an answer (JSON values).
        environment: Device, dtype and library versions. They are recorded and do not belong to the identity.
        hashes_files: Whether this package made `checkpoint` from the model's files. Else a person or a server stated
            it, and two models may have the same one.
    """

    name: str
    checkpoint: str = ""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    hashes_files: bool = False

    @property
    def samples(self) -> bool | None:
        """Whether decoding samples, by the settings and the request fields in ``extra``; None if they do not say."""
        extra = self.decoding.get("extra")
        settings = {**self.decoding, **(extra if isinstance(extra, Mapping) else {})}
        temperature = settings.get("temperature")
        chosen = settings.get("do_sample")
        if chosen is False or temperature == 0:
            return False
        if chosen is True or (isinstance(temperature, int | float) and temperature > 0):
            return True
        return None

    @property
    def decoding_hash(self) -> str:
        """First 16 hex digits of SHA-256 over the decoding settings, which must be JSON data.

        Raises:
            ConfigError: The settings are not JSON data.
        """
        try:
            text = json.dumps(dict(self.decoding), sort_keys=True)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the decoding settings of {self.name!r} are not JSON data ({error}): use texts, numbers, lists, dicts"
            ) from None
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def with_caps(self, caps: Collection[int]) -> SubjectIdentity:
        """Return the identity with the caps that its answers had, a list if they differ; itself without any."""
        if not caps:
            return self
        max_tokens: int | list[int] = sorted(caps)
        if len(caps) == 1:
            max_tokens = min(caps)
        return replace(self, decoding={**self.decoding, "max_tokens": max_tokens})

    def to_json(self) -> dict[str, Any]:
        """Return the fields and the decoding hash as JSON data."""
        return {**asdict(self), "decoding_hash": self.decoding_hash}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat.

    Args:
        root: Folder that must contain the images.
    """

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[str, ...] = ()
    root: str = ""


@dataclass(frozen=True, slots=True)
class Preference:
    """Ratings of continuations by a model.

    Args:
        scores: Log-likelihood of the label after each candidate, in nats; NaN if `status` is not ok.
    """

    scores: tuple[float, ...]
    status: Status = Status.OK
    detail: str = ""
    usage: Usage = field(default_factory=Usage)
    reused: bool = field(default=False, compare=False)


class RequestLog:
    """Requests that the body of one test makes, of whichever subject.

    A request that is repeated within one administration gets the same completion again, so a retry cannot exchange
    an answer. A subject whose decoding samples refuses the second one.

    Args:
        given: Returns the completion of a request's content in place of asking; None where subjects are asked.
        complete: Returns the completion of an item by a subject; by default `Model.complete_anew`.

    Attributes:
        repeated: Name of a sampling subject that got the same request twice; empty if none did.
        taken: Completions that subjects gave, in order.
        replies: Content and reply of each request, in order, also of models of users whose calls are seen.
        sent: Requests, in order, as items.
    """

    #: Log of the test body that runs now; a body may ask from several threads.
    current: ClassVar[RequestLog | None] = None
    #: Most requests that get a given completion: a test may repeat a request until an answer suits it.
    MOST_GIVEN = 20

    def __init__(
        self,
        prepared: Callable[[Hashable], Completion] | None = None,
        complete: Callable[[Model, Item], Completion] | None = None,
    ) -> None:
        self._prepared = prepared
        self.count = 0
        self.repeated = ""
        self._complete = Model.complete_anew if complete is None else complete
        self.taken: list[tuple[Model, Completion]] = []
        self.replies: list[tuple[Hashable, Completion]] = []
        self.sent: list[Item] = []
        self._requested: list[tuple[Any, ...]] = []
        self._completions: dict[tuple[Any, ...], Completion] = {}

    @staticmethod
    def sees(model: object) -> bool:
        """Return whether a log gets the requests to a model: to a `Model` whose class answers `complete` alone."""
        return isinstance(model, Model) and all(
            getattr(type(model), name) is getattr(Model, name) for name in ("generate", "score", "complete")
        )

    @contextlib.contextmanager
    def active(self) -> Iterator[RequestLog]:
        """Answer and record the requests in this context."""
        outer, RequestLog.current = RequestLog.current, self
        try:
            yield self
        finally:
            RequestLog.current = outer

    def note(self, request: Item) -> None:
        """Count a request that a model got otherwise."""
        self._requested.append(_key(request))

    def other_than(self, item: Item) -> str | None:
        """Return a hash of the requests, whatever the draw; None if none is known, empty if it is the item as it is."""
        if not self._requested:
            return None
        asked: dict[tuple[Any, ...], None] = {}
        for requested in self._requested:
            asked[requested[:-1]] = None
        if len(asked) == 1 and _key(item)[:-1] in asked:
            return ""
        named = []
        for key in asked:
            named.append((*key[:-1], [path.rpartition("/")[2] for path in key[-1]]))
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]

    def asks(self, item: Item) -> bool | None:
        """Return whether one of the requests was an item as it is; None if no subject was asked."""
        if self._requested:
            return _key(item) in self._requested
        return None

    def next_given(self, content: Hashable = None) -> Completion | None:
        """Count a request and return its given completion, if there is one; raise NoFurtherAnswer after too many.

        Without `content`, each request is another one.
        """
        self.count += 1
        if self._prepared is None:
            return None
        if self.count > self.MOST_GIVEN:
            raise NoFurtherAnswer
        return self._prepared(self.count if content is None else content)

    def complete(self, subject: Model, item: Item) -> Completion:
        """Return a subject's completion of an item, asked for once; raise ConfigError if it samples and was asked."""
        content = _key(item)
        self._requested.append(content)
        self.sent.append(item)
        prepared = self.next_given(content)
        if prepared is not None:
            return prepared
        key = (id(subject), item.likelihood is not None, *content)
        if (completion := self._completions.get(key)) is None:
            completion = self._completions[key] = self._complete(subject, item)
        elif subject.identity.samples:
            self.repeated = subject.identity.name
            raise ConfigError(repeated_request(self.repeated))
        self.taken.append((subject, completion))
        self.replies.append((content, completion))
        return completion


def repeated_request(name: str) -> str:
    """Return the sentence on a sampling subject that got the same request twice for one question."""
    return (
        f"{name!r} got the same request twice for one question, and its decoding samples: the second answer would "
        "replace the one that counts; ask once, or write samples=N to ask every item N times"
    )


class NoFurtherAnswer(BaseException):
    """End of a test body that asks on and on; no `Exception`, which such a test may catch."""


class Model(abc.ABC):
    """A model: one under evaluation, an interviewer, a judge, a supervisor or a member of a panel.

    A subclass has an `identity` and answers batches of items. One that rates texts in chats has `prefer` too. Tests
    call `generate` for the text, or `score`, which also works for recorded scores. Both raise `Unscored` without an
    answer. A truncated answer is graded as it is.

    Attributes:
        sample: Index of the draw, from 0, while an item is administered repeatedly. `answer` finds it in the item's
            ``meta["sample"]``.
        varies: Whether a repeated administration may bring another answer.
        rates_texts: Whether `answer` scores items by the likelihoods of texts, see `items.item.Item.continuations`.
        cap: Cap on answers, which an evaluation may replace while it runs; None where nothing caps them.
        shared_batch: Number of questions that one call answers at once, whatever interviews they are of; 0 where the
            interviews of a run share no calls. Completions of a subject that shares calls have their cost.
        waits_apart: Whether `begin` returns before the answers are there, and several threads may `ask` at once.
        gathers: Whether all questions of one `begin` are answered by one call, see `call_size`.
        asks_twice: Whether it asks an item a second time by itself before it gives a fault.
        shares_by_flag: Whether runs share its answers only where a flag says so, see `no_reuse`.
    """

    cap: Cap | None = None
    sample = 0
    varies = True
    rates_texts = False
    waits_apart = False
    gathers = False
    asks_twice = False
    shares_by_flag = False

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse a call of the model itself."""
        raise TypeError("a model is not called by itself: write model.generate(item.prompt), which returns the text")

    @property
    def shared_batch(self) -> int:
        """See the class."""
        return 0

    def __init__(self, identity: SubjectIdentity) -> None:
        self.identity = identity

    @property
    def usage(self) -> Usage:
        """Cost of all answers so far; zero if unknown."""
        return Usage()

    @property
    def no_reuse(self) -> str:
        """Reason why answers may not take the place of asking in other runs; empty if they may."""
        if not self.identity.checkpoint:
            return "nothing identifies the model (its identity has no checkpoint hash)"
        if self.identity.samples:
            return "decoding samples"
        if self.identity.samples is None and self.varies:
            return "the model does not say that it decodes greedily; give its identity a temperature of 0"
        return ""

    @property
    def warnings(self) -> list[str]:
        """Warnings about the model's answers for whoever promotes it; empty for most models."""
        return []

    @property
    def rates(self) -> bool:
        """Whether `prefer` works: likelihoods are available and plausible."""
        return False

    def prepare_chats(self) -> None:
        """Raise ConfigError or CheckpointError if the model holds no chats."""
        return

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - no answer to an item has one
        draw: int = 0,
    ) -> Completion:
        """Return the reply to a chat, with its cost.  A fault is a status.

        Args:
            max_tokens: Cap on the reply, by default the model's own.
            schema: JSON schema of the reply, which a model may ignore.
            draw: Number of the request among equal ones. A model that samples draws again for each number, and a greedy
                one may give one reply to all.
        """
        if any(message.images for message in messages):
            return Completion("", Status.ERROR, detail=f"{self.identity.name!r} is shown no pictures in a chat")
        chat = tuple({"role": message.role, "content": message.text} for message in messages)
        capped = {} if max_tokens is None else {"max_tokens": max_tokens}
        return self.answer([Item("", "", messages=chat, meta={**capped, **({"sample": draw} if draw else {})})])[0]

    def prefer(
        self,
        messages: Sequence[Message],  # noqa: ARG002 - see `rates`
        candidates: Sequence[str],
        label: str,
    ) -> Preference:
        """Return the log-likelihood of `label` as the reply to the chat, with each candidate added on its own."""
        detail = f"{self.identity.name!r} gives no likelihood of {label!r}"
        return Preference((math.nan,) * len(candidates), Status.ERROR, detail)

    @abc.abstractmethod
    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order.  A fault of one item is a status, not an exception."""

    def request(self, item: Item) -> bytes:
        """Return what goes out for an item: all that its answer rests on beside the model, as bytes.

        A stored answer is taken for a request with equal bytes.  By default they have all of an item that a model may
        read.
        """
        return item_request(item, self.cap)

    @property
    def opening(self) -> Mapping[str, Any]:
        """Form of requests that the model found out, as JSON data; empty where it asks in one form."""
        return {}

    def resume(self, opening: Mapping[str, Any]) -> None:  # noqa: B027 - most models ask in one form
        """Ask in the form that an earlier run of the same settings found out, see `opening`."""

    def call_size(self, expected: int) -> int:  # noqa: ARG002 - only subjects that gather decide
        """Return how many questions the next call of a subject that gathers holds; 0 while no call may begin.

        Args:
            expected: Number of further questions that the verdict is expected to need.
        """
        return self.shared_batch

    def forget(self, interview: str) -> None:  # noqa: B027 - most models keep no files of calls
        """Use no result that an earlier run of an interview has left in files of its calls."""

    def form(self, items: Sequence[Item]) -> Mapping[str, Any]:  # noqa: ARG002 - most models ask in one form
        """Return decoding settings that depend on the items, such as whether their schemas are sent, for the record."""
        return {}

    def prepare(self, items: Sequence[Item]) -> None:  # noqa: ARG002 - most subjects take every question
        """Raise ConfigError if the subject cannot answer the items of an interview; called before the first of them."""
        return

    def answer_each(self, items: Sequence[Item], arrived: Arrived) -> list[Completion]:
        """Answer like `answer`, and call `arrived` with index and completion of each item as soon as it is known."""
        completions = self.answer(items)
        for index, completion in enumerate(completions):
            arrived(index, completion)
        return completions

    def begin(
        self,
        draws: Sequence[tuple[Item, int]],
        arrived: Arrived,
        keep: Arrived | None = None,
        interviews: Sequence[str] = (),  # noqa: ARG002 - only subjects that keep files of calls note them
    ) -> Callable[[], object]:
        """Have items answered, each with the index of its draw.

        Texts have the stored length.

        Args:
            arrived: Called with the index and the completion of each, in the calling thread: now, or later by
                `take_arrived`.
            keep: Called before it, perhaps from another thread, as soon as a completion of a subject that waits apart
                is there: the calling thread may be busy, and a run may be killed meanwhile. It returns False for what
                could not be written.
            interviews: Name of the interview of each draw.

        Returns:
            A function that breaks off what has not arrived. A subject that gathers ends its call once the function was
            called for each of its questions without an answer.
        """
        items = [drawn(item, sample) for item, sample in draws]
        begun = clock.elapsed()
        waiting_apart = list[int]()
        together = list[int]()

        def settle(index: int, completion: Completion) -> None:
            arrived(index, _finished(completion))

        def settle_together(index: int, completion: Completion) -> None:
            arrived(together[index], self._timed(completion, begun))

        def keep_apart(index: int, completion: Completion) -> None:
            if keep is not None:
                keep(waiting_apart[index], _finished(completion))

        for index, item in enumerate(items):
            if self.waits_apart and not item.turns and item.likelihood is None:
                waiting_apart.append(index)
            else:
                together.append(index)
        cancel: Callable[[], object] = lambda: None  # noqa: E731
        if waiting_apart:
            cancel = self._send(
                [items[n] for n in waiting_apart],
                lambda n, completion: settle(waiting_apart[n], completion),
                keep_apart,
            )
        if together:
            self._answer_turns([items[n] for n in together], settle_together)
        return cancel

    def _send(self, items: Sequence[Item], arrived: Arrived, keep: Arrived) -> Callable[[], object]:
        """Begin to answer items; return a function that breaks off.

        `keep` is called at once for each completion, and `take_arrived` calls `arrived`.
        """
        raise NotImplementedError

    def take_arrived(self, *, wait: bool) -> None:  # noqa: ARG002 - only subjects that wait apart have any
        """Call `arrived` for the answers of `begin` that are there; `wait` for one that has begun, if none is."""
        return

    def wake(self) -> None:
        """End a wait of `take_arrived` in another thread; only for subjects that wait apart."""
        raise NotImplementedError

    def _answer_turns(self, items: Sequence[Item], arrived: Arrived) -> list[Completion]:
        """Answer items; items with turns take several calls, each after the answers to the one before."""
        replies: list[list[Completion]] = [[] for _ in items]
        waiting = list(range(len(items)))
        while waiting:
            asked = [items[n].after([c.text for c in replies[n]]) if items[n].turns else items[n] for n in waiting]

            def note(waiting_index: int, completion: Completion, waiting: Sequence[int] = waiting) -> None:
                n = waiting[waiting_index]
                if (whole := _whole(items[n], [*replies[n], completion])) is not None:
                    arrived(n, whole)

            for n, completion in zip(waiting, self.answer_each(asked, note), strict=True):
                replies[n].append(completion)
            waiting = [n for n in waiting if _whole(items[n], replies[n]) is None]
        return [whole for n, item in enumerate(items) if (whole := _whole(item, replies[n])) is not None]

    def generate(self, prompt: Item | str, images: Sequence[str] = ()) -> str:
        """Return the answer to an item or to a bare prompt.

        Raises:
            Unscored: The answer is empty, or it failed.
            ConfigError: Only the score of the answer is known, or the prompt is empty.
        """
        prompt = getattr(prompt, "item", prompt)  # a test's `item` wraps that of the bank
        if prompt == "" and not images:
            raise ConfigError("the prompt is empty, as of an item with messages or a system text: ask the item itself")
        if isinstance(prompt, Item):
            item = prompt
        else:
            item = Item(id="", prompt=str(prompt), images=tuple(images))
        completion = self.complete(item)
        if completion.score is not None and not completion.text:
            raise ConfigError(
                f"item {item.id!r}: {self.identity.name!r} returns a score without a text; "
                "write `item.score(model.score(item))` instead of grading `model.generate(...)`"
            )
        return completion.text

    def score(self, item: Item) -> float:
        """Return the recorded score of an answer, or the item's grade, in [0, 1]; raise Unscored if there is none."""
        # a test's `item` wraps that of the bank
        asked = item
        item = getattr(item, "item", item)
        completion = self.complete(item)
        if completion.score is None:
            return float(asked.grade(completion.text))
        if not 0.0 <= completion.score <= 1.0:
            raise Unscored(Status.ERROR.value, f"the score is {completion.score!r}, expected a number in [0, 1]")
        if asked is not item:
            asked.graded = completion.score  # type: ignore[attr-defined]  # the wrapper reads it
        return completion.score

    def close(self) -> None:  # noqa: B027 - most models hold nothing
        """Release memory and devices."""

    def complete(self, item: Item) -> Completion:
        """Return the whole completion of an item; raise Unscored if the answer is empty, or it failed."""
        item = drawn(item, self.sample)
        log = RequestLog.current
        if log is None:
            completion = self.complete_anew(item)
        else:
            completion = log.complete(self, item)
        if completion.unread:
            raise Unscored(completion.status.value, completion.detail, completion.text)
        return completion

    def complete_anew(self, item: Item) -> Completion:
        """Ask for the completion of an item."""
        begun = clock.elapsed()
        return self._timed(self._answer_turns([item], lambda _index, _completion: None)[0], begun)

    def _timed(self, completion: Completion, begun: float) -> Completion:
        """Return the completion of a call that began at a time, with its seconds unless they are known.

        A recorded answer has no call, and a call that failed is the fault of the run.
        """
        if not self.varies or completion.status.infrastructure:
            return _finished(completion)
        seconds = {"seconds": clock.elapsed() - begun}
        return _finished(replace(completion, measures={**seconds, **completion.measures}))


def _whole(item: Item, replies: Sequence[Completion]) -> Completion | None:
    """Return the completion of an item from its turns' completions so far; None before the last turn."""
    last = replies[-1]
    if last.unread or last.score is not None or not item.turns:
        return last
    if len(replies) <= len(item.turns):
        return None
    cost = sum((completion.cost for completion in replies), Usage())
    first = next((completion for completion in replies if completion.status is not Status.OK), last)
    measures = summed_measures([completion.measures for completion in replies])
    text = item.transcript([completion.text for completion in replies])
    return replace(first, text=text, cost=cost, measures=measures)


def summed_measures(measures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of what is known of several calls by name."""
    sums: dict[str, float] = {}
    for of_call in measures:
        for name, value in of_call.items():
            sums[name] = sums.get(name, 0.0) + value
    return sums


def _finished(completion: Completion) -> Completion:
    """Return the completion with its text cut to the stored length, and its tokens among its measures."""
    cost = completion.cost
    tokens = {}
    if cost.tokens:
        tokens = {"input_tokens": float(cost.prompt_tokens), "output_tokens": float(cost.completion_tokens)}
    return replace(completion, text=cut_text(completion.text), measures={**tokens, **completion.measures})


def drawn(item: Item, sample: int) -> Item:
    """Return the item for draw `sample`."""
    if sample:
        return replace(item, meta={**item.meta, "sample": sample})
    return item


#: Fields of an item that are not asked.  The grader's name says how likelihoods are read, which has a field of its own.
_UNASKED = ("id", "answer", "grader", "category", "formats", "images", "likelihood")


def item_request(item: Item, cap: Cap | None) -> bytes:
    """Return all of an item that a model may read, with the cap on its answer; pictures count by their content."""
    data = {}
    for name, value in item.to_json().items():
        if name not in _UNASKED:
            data[name] = value
    data["meta"] = {name: value for name, value in item.meta.items() if name != "sample"}
    data["images"] = picture_hashes(item)
    if item.likelihood is None:
        data["likelihood"] = None
    else:
        data["likelihood"] = item.likelihood.to_json()
    if item.grader == "schema":
        data["schema"] = list(item.answers)
    else:
        data["schema"] = None
    if cap is None or item.likelihood is not None:
        data["max_tokens"] = None
    else:
        data["max_tokens"] = cap.of(item)
    return canonical_json(data).encode("ascii")


def picture_hashes(item: Item) -> list[str]:
    """Return the hash of each picture's content, empty for a file that cannot be read."""
    return list(map(picture_hash, item.image_paths))


def picture_hash(path: str) -> str:
    """Return the hash of a picture's content, empty for a file that cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # the subject says what is wrong
        return ""


def asks_alike(item: Item, request: Item) -> bool:
    """Return whether a request is that of an item, or its bare prompt, whatever the draw."""
    return request.id in ("", item.id) and _key(item)[:-1] == _key(request)[:-1]


def _key(item: Item) -> tuple[Any, ...]:
    """Return the content that a subject reads, with the index of the draw last."""
    if item.messages:
        messages = json.dumps([dict(m) for m in item.messages], sort_keys=True)
    else:
        messages = ""
    images = item.image_paths if item.images else ()
    if item.tools:
        tools = json.dumps([dict(tool) for tool in item.tools], sort_keys=True)
    else:
        tools = ""
    return item.prompt, messages, item.turns, tools, images, item.meta.get("sample", 0)


def sample_of(item: Item) -> int:
    """Return the index of the draw, from the item's ``meta``; raise BankError if it is not a whole number."""
    sample = item.meta.get("sample", 0)
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise BankError(f"item {item.id!r}: meta.sample is {sample!r}, expected a whole number")
    return sample


def added(messages: Sequence[Message], candidate: str) -> list[Message]:
    """Return the chat with a candidate added to the user's last message."""
    if messages and messages[-1].role == "user":
        return [*messages[:-1], replace(messages[-1], text=messages[-1].text + candidate)]
    return [*messages, Message("user", candidate)]
