"""The rounds of a peer assessment: a task is set and voted on, all models answer it, and all judge all answers.

A round asks in four phases: one task, then all votes, all answers, and all judgments, the calls of a phase sorted by
model, so that a model that has to be loaded is loaded once a phase.  No call of a phase depends on another
of it, so `Asking` may answer them in any order and at once.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import ConfigError, EstimationError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.studies.peers import tasks
from pytest_adaptive_eval.studies.peers.reliability import LEAST, fit_reliability
from pytest_adaptive_eval.studies.peers.result import Assessment, Attempt, Round
from pytest_adaptive_eval.studies.peers.scoring import accepts, paper_scores
from pytest_adaptive_eval.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.subjects.agent import Agent, Message, Reply
from pytest_adaptive_eval.subjects.base import Usage
from pytest_adaptive_eval.subjects.foreign import Unranked, clean, read_rank

__all__ = ["ROLES", "Asking", "Call", "assess", "one_by_one"]

Array = NDArray[np.float64]
Role = Literal["task", "vote", "answer", "judgment"]
ROLES: tuple[Role, ...] = ("task", "vote", "answer", "judgment")
#: Votes on tasks are weighed alike until so many rounds tell judges apart.
FIRST_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Call:
    """One thing to ask a model.

    Parameters
    ----------
    agent : Agent
    model : int
        Its place in the panel.
    role : {"task", "vote", "answer", "judgment"}
    place : tuple of int
        Round, attempt, and the contestant that is judged (else 0).
    messages : tuple of Message
    max_tokens : int
    """

    agent: Agent
    model: int
    role: Role
    place: tuple[int, int, int]
    messages: tuple[Message, ...]
    max_tokens: int

    @property
    def key(self) -> str:
        """Hash of who is asked what, and where: two rounds may ask the same, and mean to hear something new."""
        identity = self.agent.identity
        who = [identity.name, identity.checkpoint, identity.decoding_hash]
        told = [[message.role, message.text] for message in self.messages]
        return hashlib.sha256(json.dumps([who, self.role, self.place, told, self.max_tokens]).encode()).hexdigest()


#: Asks calls, and gives the place of each with its reply, in any order, as soon as it is there.
Asking = Callable[[Sequence[Call]], Iterable[tuple[int, Reply]]]


def one_by_one(calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
    """Ask calls in their order."""
    for place, call in enumerate(calls):
        yield place, call.agent.ask(call.messages, max_tokens=call.max_tokens)


def assess(
    agents: Sequence[Agent],
    settings: PeerSettings | None = None,
    *,
    replies: MutableMapping[str, str] | None = None,
    asking: Asking = one_by_one,
) -> Assessment:
    """Hold a peer assessment.

    Parameters
    ----------
    agents : sequence of Agent
        The panel, at least three, their names unique; they stay open.
    settings : PeerSettings, optional
    replies : mutable mapping of str to str, optional
        Replies by a hash of the agent and all it was asked.  With those of an interrupted assessment it goes on to the
        same result.  Calls that failed for no fault of the model's are not kept.
    asking : Asking
        How calls are made.

    Raises
    ------
    ConfigError
        There are too few agents, two have one name, or the single judge is none of them.
    """
    return _Run(agents, settings or PeerSettings(), {} if replies is None else replies, asking).hold()


class _Run:
    def __init__(
        self, agents: Sequence[Agent], settings: PeerSettings, replies: MutableMapping[str, str], asking: Asking
    ) -> None:
        self.agents, self.settings, self.asking = tuple(agents), settings, asking
        self.n, self.names = len(self.agents), [agent.identity.name for agent in self.agents]
        if self.n < LEAST:
            raise ConfigError(f"a panel of {self.n} models, expected at least {LEAST}: name more models")
        for name, count in Counter(self.names).items():
            if count > 1:
                raise ConfigError(f"{count} models of the panel are called {name!r}: give each a name of its own")
        if settings.judge is not None and settings.judge not in self.names:
            raise ConfigError(f"the judge {settings.judge!r} is none of the panel: {', '.join(self.names)}")
        self.judge = None if settings.judge is None else self.names.index(settings.judge)
        self.replies = replies
        self.recalled = 0
        self.usage: dict[Role, list[Usage]] = {role: [Usage()] * self.n for role in ROLES}
        self.missing: defaultdict[tuple[str, Role], Counter[str]] = defaultdict(Counter)
        self.rounds: list[Round] = []
        self.judgments: list[Array] = []
        self.seen: set[str] = set()  # tasks that were answered
        self.asked: defaultdict[str, list[str]] = defaultdict(list)  # all tasks, by topic
        self.weights = np.full(self.n, 1.0 / self.n)

    def hold(self) -> Assessment:
        changes = []
        for number in range(self.settings.rounds):
            before = self.weights
            self._round(number)
            if self.rounds[-1].accepted:
                self._weigh()
            changes.append(float(np.abs(self.weights - before).sum()))
        judgments, accepted = np.array(self.judgments), [one.accepted for one in self.rounds]
        judgments.setflags(write=False)
        fit, fault = None, ""
        try:
            fit = fit_reliability(judgments)
            if not np.isfinite(fit.qualities).any():
                fault = "the judges agree on nothing: no quality can be told"
        except EstimationError as error:
            fault = str(error)
        if not any(accepted):
            fault = f"no task was accepted in {len(accepted)} rounds"
        elif self.settings.mode == "paper":
            fault = "" if np.isfinite(judgments).any() else "there is no judgment"
        return Assessment(
            tuple(agent.identity for agent in self.agents),
            self.settings,
            tuple(self.rounds),
            judgments,
            paper_scores(judgments, accepted, judge=self.judge),
            fit,
            np.array(changes),
            self._missing(),
            {role: tuple(each) for role, each in self.usage.items()},
            self.recalled,
            fault,
        )

    def _round(self, number: int) -> None:
        """Up to `retries` attempts at a task; the first that is accepted is answered and judged."""
        rng = np.random.default_rng([self.settings.seed, number])  # so that a round's draws depend on no other
        attempts: list[Attempt] = []
        while len(attempts) < self.settings.retries and not (attempts and attempts[-1].accepted):
            attempts.append(self._attempt(number, len(attempts), rng))
        if not attempts[-1].accepted:
            self.rounds.append(Round(tuple(attempts)))
            self.judgments.append(np.full((self.n, self.n), np.nan))
            return
        task, place = attempts[-1].task, (number, len(attempts) - 1)
        found = self._ask([self._call(i, "answer", (*place, 0), tasks.answer_task(task)) for i in range(self.n)])
        answers = [None if text is None else clean(text, tasks.ANSWER_CHARACTERS) for text in found]
        calls = [
            self._call(i, "judgment", (*place, j), tasks.rate_answer(task, answer, self.settings.criteria))
            for i in range(self.n)
            for j, answer in enumerate(answers)
            if answer is not None
        ]
        matrix = np.full((self.n, self.n), np.nan)
        for call, rank in zip(calls, self._ranks(calls), strict=True):
            if rank is not None:
                matrix[call.model, call.place[2]] = rank
        self.rounds.append(Round(tuple(attempts), tuple(answers)))
        self.judgments.append(matrix)

    def _attempt(self, number: int, attempt: int, rng: np.random.Generator) -> Attempt:
        settings = self.settings
        generator = int(rng.integers(self.n))
        shares = np.array([one.share for one in settings.difficulties])
        difficulty = settings.difficulties[int(rng.choice(len(shares), p=shares / shares.sum()))].name
        topic = settings.topics[int(rng.integers(len(settings.topics)))]
        drawn = Attempt(generator, topic, difficulty)
        place = (number, attempt, 0)
        earlier = self.asked[topic] if settings.mode == "reliability" else ()
        (text,) = self._ask([self._call(generator, "task", place, tasks.set_task(topic, difficulty, earlier))])
        task = tasks.read_task(text or "")
        if text is not None and not task:
            self._miss(generator, "task", "no-task")
        if not task:
            return replace(drawn, problem="no task came")
        self.asked[topic].append(task)
        repeated = " ".join(task.casefold().split())
        if repeated in self.seen:
            self._miss(generator, "task", "repeat")
            if settings.mode == "reliability":  # the paper votes on it like on any other
                return replace(drawn, task=task, problem="it was asked before")
        message = tasks.rate_task(task, topic, difficulty)
        votes = self._ranks([self._call(i, "vote", place, message) for i in range(self.n)])
        values = np.array([np.nan if vote is None else vote for vote in votes], dtype=np.float64)
        weights = self.weights if self.judge is None else np.eye(self.n)[self.judge]
        if settings.mode == "reliability":  # nobody's opinion of its own work counts
            weights = np.where(np.arange(self.n) == generator, 0.0, weights)
        accepted = accepts(values, weights, mean=settings.mean, median=settings.median)
        if accepted:
            self.seen.add(repeated)
        return replace(drawn, task=task, votes=tuple(votes), accepted=accepted)

    def _weigh(self) -> None:
        """Weights for the votes on the next task."""
        accepted = [one.accepted for one in self.rounds]
        judgments = np.array(self.judgments)
        if self.settings.mode == "paper":
            self.weights = paper_scores(judgments, accepted, judge=self.judge).weights[-1]
        elif sum(accepted) >= FIRST_ROUNDS:
            try:
                self.weights = fit_reliability(judgments).weights
            except EstimationError:  # too much is missing as yet
                return

    def _call(self, model: int, role: Role, place: tuple[int, int, int], messages: Sequence[Message]) -> Call:
        settings = self.settings
        cap = {"task": settings.task_tokens, "answer": settings.answer_tokens}.get(role, settings.rank_tokens)
        return Call(self.agents[model], model, role, place, tuple(messages), cap)

    def _ask(self, calls: Sequence[Call]) -> list[str | None]:
        """The texts of replies, None for those of no use, which are counted."""
        found: list[Reply | None] = [_recalled(self.replies.get(call.key)) for call in calls]
        open_ = [place for place, reply in enumerate(found) if reply is None]
        self.recalled += len(calls) - len(open_)
        for at, reply in self.asking([calls[place] for place in open_]) if open_ else ():
            call = calls[open_[at]]
            found[open_[at]] = reply
            if not reply.status.infrastructure:
                self.replies[call.key] = _kept(reply)
        texts: list[str | None] = []
        for call, given in zip(calls, found, strict=True):
            reply = given or Reply("", Status.NOT_RUN)
            self.usage[call.role][call.model] += reply.usage
            problem = reply.status.value if reply.status is not Status.OK else ""
            if not problem and not reply.text.strip():
                problem = Status.EMPTY.value
            if problem:
                self._miss(call.model, call.role, problem)
            texts.append(None if problem else reply.text)
        return texts

    def _ranks(self, calls: Sequence[Call]) -> list[int | None]:
        ranks: list[int | None] = []
        for call, text in zip(calls, self._ask(calls), strict=True):
            try:
                ranks.append(None if text is None else read_rank(text))
            except Unranked as error:
                self._miss(call.model, call.role, error.kind)
                ranks.append(None)
        return ranks

    def _miss(self, model: int, role: Role, kind: str) -> None:
        self.missing[self.names[model], role][kind] += 1

    def _missing(self) -> dict[str, dict[str, dict[str, int]]]:
        out: dict[str, dict[str, dict[str, int]]] = {}
        for (name, role), kinds in sorted(self.missing.items()):
            out.setdefault(name, {})[role] = dict(sorted(kinds.items()))
        return out


def _kept(reply: Reply) -> str:
    return json.dumps({"text": reply.text, "status": reply.status.value, "usage": reply.usage.to_json()})


def _recalled(text: str | None) -> Reply | None:
    """A reply of an earlier run; one that cannot be read is asked for anew."""
    if text is None:
        return None
    try:
        found = json.loads(text)
        said, status, usage = found["text"], Status(found["status"]), Usage(**found["usage"])
    except (ValueError, TypeError, KeyError):
        return None
    return Reply(said, status, usage=usage) if isinstance(said, str) else None
