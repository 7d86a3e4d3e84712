"""Rounds of a peer assessment: a task is set and voted on, all models answer it, and all judge all answers.

A round makes its calls in four phases: the task, all votes, all answers, and all judgments. The calls of a phase are
sorted by model, which loads each model at most once per phase. They are independent, so `Asking` may make them in any
order and concurrently.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.extensions.studies.peers import tasks
from pytest_adaptive_eval.extensions.studies.peers.reliability import Reliability, fit_reliability
from pytest_adaptive_eval.extensions.studies.peers.result import Assessment, Attempt, Round
from pytest_adaptive_eval.extensions.studies.peers.scoring import accepts, paper_scores
from pytest_adaptive_eval.extensions.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion, Message, Model, Usage
from pytest_adaptive_eval.models.judging import Unranked, clean, read_rank
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.request_keys import draw_number
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.types import Array

Role = Literal["task", "vote", "answer", "judgment"]
ROLES: tuple[Role, ...] = ("task", "vote", "answer", "judgment")
#: Accepted tasks before votes are weighted by the judges' reliability.
FIRST_ROUNDS = 3
#: Attempts without any task, or votes without any rank, after which a panel is given up.
PATIENCE = 5


@dataclass(frozen=True, slots=True)
class MemberCall:
    """Chat with a model of the panel.

    Args:
        position: Round, attempt, and the judged contestant (0 in other roles).
    """

    agent: Model
    model: int
    role: Role
    position: tuple[int, int, int]
    messages: tuple[Message, ...]
    max_tokens: int | None

    def make(self) -> Completion:
        """Return the model's reply."""
        draw = draw_number(self.role, self.position)
        return self.agent.ask(self.messages, max_tokens=self.max_tokens, draw=draw)


#: Makes calls, and yields the index of each with its reply, in any order, as soon as it arrives.
Asking = Callable[[Sequence[MemberCall]], Iterable[tuple[int, Completion]]]


def one_by_one(calls: Sequence[MemberCall]) -> Iterator[tuple[int, Completion]]:
    """Make calls in their order."""
    for index, call in enumerate(calls):
        yield index, call.make()


def assess(
    agents: Sequence[Model],
    settings: PeerSettings | None = None,
    *,
    replies: CompletionStore | None = None,
    asking: Asking = one_by_one,
) -> Assessment:
    """Run a peer assessment.

    Args:
        agents: Panel of at least three models with unique names; they stay open.
        replies: Kept replies. With the replies of an interrupted assessment the result is the same as without the
            interruption.

    Raises:
        ConfigError: There are too few models, two have one name, or the single judge is not in the panel.
    """
    if replies is None:
        replies = CompletionStore()
    panel = [RecordedModel(agent, replies) for agent in agents]
    return _Run(panel, settings or PeerSettings(), asking).run()


class _Run:
    def __init__(self, agents: Sequence[Model], settings: PeerSettings, asking: Asking) -> None:
        self.agents = tuple(agents)
        self.settings = settings
        self.asking = asking
        self.n = len(self.agents)
        self.names = [agent.identity.name for agent in self.agents]
        settings.check_panel(self.names)
        self.judge: int | None = None
        #: Positions of the models that vote and judge.
        self.judges: Sequence[int] = range(self.n)
        if settings.judge is not None:
            self.judge = self.names.index(settings.judge)
            self.judges = (self.judge,)
        self.recalled = 0
        self.usage: dict[Role, list[Usage]] = {role: [Usage()] * self.n for role in ROLES}
        self.unusable: defaultdict[tuple[str, Role], Counter[str]] = defaultdict(Counter)  # replies by kind of fault
        self.attempts: list[Attempt] = []
        self.rounds: list[Round] = []
        self.judgments: list[Array] = []
        self.accepted_tasks: set[str] = set()
        self.tasks_by_topic: defaultdict[str, list[str]] = defaultdict(list)
        self.weights = np.full(self.n, 1.0 / self.n)

    @property
    def accepted(self) -> list[bool]:
        """Whether the task of each round was accepted."""
        return [cycle.accepted for cycle in self.rounds]

    def run(self) -> Assessment:
        changes = []
        for number in range(self.settings.rounds):
            before = self.weights
            self._round(number)
            if self.rounds[-1].accepted:
                self._update_weights()
            changes.append(float(np.abs(self.weights - before).sum()))
            if self._unworkable():
                break
        judgments = np.array(self.judgments)
        judgments.setflags(write=False)
        fit, fault = self._fit(judgments)
        unusable: dict[str, dict[str, dict[str, int]]] = {}
        for (name, role), kinds in sorted(self.unusable.items()):
            unusable.setdefault(name, {})[role] = dict(sorted(kinds.items()))
        return Assessment(
            tuple(agent.identity for agent in self.agents),
            self.settings,
            tuple(self.rounds),
            judgments,
            paper_scores(judgments, self.accepted, judge=self.judge),
            fit,
            np.array(changes),
            unusable,
            {role: tuple(usages) for role, usages in self.usage.items()},
            self.recalled,
            fault,
        )

    def _fit(self, judgments: Array) -> tuple[Reliability | None, str]:
        """Return the fitted model of reliability, and the reason for missing scores, if any."""
        fit = None
        fault = ""
        if self.judge is None:  # a single judge cannot be compared with others
            try:
                fit = fit_reliability(judgments)
                if not np.isfinite(fit.qualities).any():
                    fault = "the judges agree on nothing: qualities cannot be estimated"
            except EstimationError as error:
                fault = str(error)
        if not any(self.accepted):
            fault = self._unworkable() or f"no task was accepted in {counted(len(self.rounds), 'round')}"
        elif self.settings.mode == "paper":
            has_judgments = np.isfinite(judgments).any()
            fault = "" if has_judgments else "no judgments"
        return fit, fault

    def _unworkable(self) -> str:
        """Return why further attempts cannot succeed, or ''."""
        votes: list[int | None] = []
        for attempt in self.attempts:
            votes += attempt.votes
        if len(self.attempts) >= PATIENCE and not any(attempt.task for attempt in self.attempts):
            lacking = "usable task"
        elif len(votes) >= PATIENCE and not any(votes):
            lacking = "readable vote"
        else:
            return ""
        return f"given up in round {len(self.rounds)} of {self.settings.rounds}, without a {lacking} so far"

    def _round(self, number: int) -> None:
        """Attempt a task up to `retries` times; the first accepted task is answered and judged."""
        rng = np.random.default_rng([self.settings.seed, number])  # a round's draws depend on no other round
        attempts: list[Attempt] = []
        for n in range(self.settings.retries):
            attempt = self._attempt(number, n, rng)
            attempts.append(attempt)
            self.attempts.append(attempt)
            if attempt.accepted or self._unworkable():
                break
        matrix = np.full((self.n, self.n), np.nan)
        answers: list[str | None] = []
        if attempt.accepted:
            position = (number, len(attempts) - 1)
            answers = self._answers(attempt.task, position)
            self._judge(attempt.task, position, answers, matrix)
        self.rounds.append(Round(tuple(attempts), tuple(answers)))
        self.judgments.append(matrix)

    def _answers(self, task: str, position: tuple[int, int]) -> list[str | None]:
        """Return what judges read of each model's answer, None where it is missing."""
        messages = tasks.answer_task(task)
        calls = [self._call(i, "answer", (*position, 0), messages) for i in range(self.n)]
        answers: list[str | None] = []
        for text in self._texts(calls, answers=True):
            if text is None:
                answers.append(None)
            else:
                answers.append(clean(text, tasks.ANSWER_CHARACTERS))
        return answers

    def _judge(self, task: str, position: tuple[int, int], answers: Sequence[str | None], matrix: Array) -> None:
        """Write the judgments of all answers into a matrix by judge and contestant."""
        calls = []
        for i in self.judges:
            for j, answer in enumerate(answers):
                if answer is not None:
                    messages = tasks.rate_answer(task, answer, self.settings.criteria)
                    calls.append(self._call(i, "judgment", (*position, j), messages))
        for call, rank in zip(calls, self._ranks(calls), strict=True):
            if rank is not None:
                matrix[call.model, call.position[2]] = rank

    def _attempt(self, number: int, attempt: int, rng: np.random.Generator) -> Attempt:
        """Let a random model set a task, and the panel vote on it."""
        settings = self.settings
        generator = int(rng.integers(self.n))
        shares = np.array([difficulty.share for difficulty in settings.difficulties])
        index = int(rng.choice(len(shares), p=shares / shares.sum()))
        difficulty = settings.difficulties[index].name
        topic = self._topic(number, rng)
        drawn = Attempt(generator, topic, difficulty)
        position = (number, attempt, 0)
        earlier = self.tasks_by_topic[topic] if settings.mode == "reliability" else ()
        request = tasks.set_task(topic, difficulty, earlier)
        (text,) = self._texts([self._call(generator, "task", position, request)])
        task = tasks.read_task(text or "")
        if text is not None and not task:
            self._count_unusable(generator, "task", "no-task")
        if not task:
            return replace(drawn, problem="no task came")
        self.tasks_by_topic[topic].append(task)
        normalized = " ".join(task.casefold().split())
        if normalized in self.accepted_tasks:
            self._count_unusable(generator, "task", "repeat")
            if settings.mode == "reliability":  # the paper's rule votes on a repeated task
                return replace(drawn, task=task, problem="it was asked before")
        votes = self._votes(position, tasks.rate_task(task, topic, difficulty))
        accepted = self._accepts(votes, generator)
        if accepted:
            self.accepted_tasks.add(normalized)
        return replace(drawn, task=task, votes=votes, accepted=accepted)

    def _topic(self, number: int, rng: np.random.Generator) -> str:
        """Return the topic of a round: topics are dealt, so each comes once in as many rounds as there are topics.

        The paper's rule draws the topic of each attempt.
        """
        topics = self.settings.topics
        if self.settings.mode == "paper":
            return topics[int(rng.integers(len(topics)))]
        deal, position = divmod(number, len(topics))
        order = np.random.default_rng([self.settings.seed, deal, len(topics)]).permutation(len(topics))
        return topics[int(order[position])]

    def _votes(self, position: tuple[int, int, int], messages: Sequence[Message]) -> tuple[int | None, ...]:
        """Return the vote of each model, None where there is none."""
        votes: list[int | None] = [None] * self.n
        calls = [self._call(i, "vote", position, messages) for i in self.judges]
        for i, rank in zip(self.judges, self._ranks(calls), strict=True):
            votes[i] = rank
        return tuple(votes)

    def _accepts(self, votes: Sequence[int | None], generator: int) -> bool:
        """Return whether votes accept the task of a model."""
        values = np.array(votes, dtype=np.float64)  # NaN for None
        weights = self.weights
        if self.judge is not None:
            weights = np.eye(self.n)[self.judge]
        if self.settings.mode == "reliability":  # the vote of the task's own model does not count
            weights = np.where(np.arange(self.n) == generator, 0.0, weights)
        return accepts(values, weights, mean=self.settings.mean, median=self.settings.median)

    def _update_weights(self) -> None:
        judgments = np.array(self.judgments)
        if self.settings.mode == "paper":
            self.weights = paper_scores(judgments, self.accepted, judge=self.judge).weights[-1]
        elif sum(self.accepted) >= FIRST_ROUNDS:
            with suppress(EstimationError):  # too many judgments are missing so far
                self.weights = fit_reliability(judgments).weights

    def _call(self, model: int, role: Role, position: tuple[int, int, int], messages: Sequence[Message]) -> MemberCall:
        settings = self.settings
        limit = {"task": settings.task_tokens, "answer": settings.answer_tokens}.get(role, settings.rank_tokens)
        return MemberCall(self.agents[model], model, role, position, tuple(messages), limit)

    def _replies(self, calls: Sequence[MemberCall]) -> list[Completion]:
        """Return the reply to each call."""
        replies = dict(self.asking(calls))
        self.recalled += sum(reply.reused for reply in replies.values())
        return [replies.get(n, Completion("", Status.NOT_RUN)) for n in range(len(calls))]

    def _texts(self, calls: Sequence[MemberCall], *, answers: bool = False) -> list[str | None]:
        """Return the texts of replies; None for missing ones.  All that are not ok are counted.

        Answers are missing by a fault of the infrastructure alone; tasks and ranks must be whole.
        """
        texts: list[str | None] = []
        for call, reply in zip(calls, self._replies(calls), strict=True):
            self.usage[call.role][call.model] += reply.cost
            if reply.status is not Status.OK:
                self._count_unusable(call.model, call.role, reply.status.value)
            is_lost = reply.status is not Status.OK
            if answers:
                is_lost = reply.status.infrastructure
            if is_lost:
                texts.append(None)
            elif reply.text.strip():
                texts.append(reply.text)
            else:
                texts.append(tasks.NO_ANSWER)
        return texts

    def _ranks(self, calls: Sequence[MemberCall]) -> list[int | None]:
        ranks: list[int | None] = []
        for call, text in zip(calls, self._texts(calls), strict=True):
            rank = None
            if text is not None:
                try:
                    rank = read_rank(text)
                except Unranked as error:
                    self._count_unusable(call.model, call.role, error.kind)
            ranks.append(rank)
        return ranks

    def _count_unusable(self, model: int, role: Role, kind: str) -> None:
        self.unusable[self.names[model], role][kind] += 1
