"""Conversations of one node: questions, answers level by level, and reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network import prompts
from pytest_adaptive_eval.extensions.studies.network.engine import AgentCall, Conversation, Result, Role
from pytest_adaptive_eval.extensions.studies.network.node_result import (
    Dialogue,
    Directive,
    Exchange,
    NodeResult,
    PanelMember,
    Review,
)
from pytest_adaptive_eval.extensions.studies.network.topology import Network, Node, Supervision
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import UNANSWERED, Item, Response, Status
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.judging import Unranked, one_line, read_rank
from pytest_adaptive_eval.tasks.bank import guess_floors, task_bank
from pytest_adaptive_eval.tasks.family import Malformed, Question, TaskFamily, content_of, written_item
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Array, Ints


def bank_levels(bank: ItemBank, levels: int | None, where: str) -> list[Ints]:
    """Return the positions of a bank's items by level, the easiest level first.

    A calibrated bank is split by difficulty into levels of the same size. An uncalibrated one is split by its items'
    ``meta.level``; items without it are one level.

    Raises:
        ConfigError: The bank has fewer levels.
    """
    if bank.calibrated:
        most = len(bank)
        content = f"the items of the bank {bank.name!r}"
    else:
        labels = _labels(bank, where)
        most = len(set(labels))
        content = f"the different meta.level of the items in the bank {bank.name!r}, which is not calibrated"
    if levels is not None and not 1 <= levels <= most:
        raise ConfigError(f"{where}: levels is {levels!r}, expected 1 to {most}, the number of {content}")
    if bank.calibrated:
        ordered = tie_ranks(bank.difficulty).argsort(kind="stable")
        return [np.sort(part) for part in np.array_split(ordered, levels or 1)]
    level_of_item = np.array(labels)
    return [np.flatnonzero(level_of_item == label) for label in sorted(set(labels))[:levels]]


def _labels(bank: ItemBank, where: str) -> list[int]:
    """Return ``meta.level`` of each item, 1 where it is missing."""
    labels = [item.meta.get("level", 1) for item in bank.items]
    for label in labels:
        if type(label) is not int:
            raise ConfigError(
                f"{where}: an item of the bank {bank.name!r} has meta.level {label!r:.40}, expected a number"
            )
    return labels


class LevelItems:
    """Questions of a node by level, round and number, all different within a level.

    Attributes:
        guess: Expected score of a guess by level.
    """

    def __init__(self, network: Network, node: Node, pictures: Path | None = None) -> None:
        self._queries = node.queries
        position = network.nodes.index(node)
        self._order: list[Sequence[int]]
        if isinstance(node.task, TaskFamily):
            per_level = node.queries * network.rounds
            seed = network.seed * len(network.nodes) + position
            self._bank = task_bank(node.task, queries=per_level, levels=node.levels, seed=seed, pictures=pictures)
            self._order = [range(level * per_level, (level + 1) * per_level) for level in range(node.levels)]
            self.guess = guess_floors(node.task, node.levels)
        else:
            self._bank = node.task
            rng = np.random.default_rng([network.seed, position])
            parts = bank_levels(node.task, node.levels, f"{network.where}: node {node.name!r}")
            self._order = [rng.permutation(part).tolist() for part in parts]
            self.guess = tuple(self._expected_guess(part) for part in self._order)

    def _expected_guess(self, items: Sequence[int]) -> float:
        """Return the mean share of one choice; an item without choices is not guessed."""
        chances = 0.0
        for n in items:
            choices = len(self._bank.items[n].choices)
            if choices:
                chances += 1.0 / choices
        return chances / len(items)

    def item(self, level: int, round_: int, number: int) -> Item:
        """Return a question; levels count from 1, rounds and numbers from 0."""
        index = self._order[level - 1][round_ * self._queries + number]
        item: Item = self._bank.items[index]
        return item


#: Exchanges in a node's record, in all and of each level and round.
RECORDED, RECORDED_A_LEVEL = 40, 3
#: Questions in a row of a node that its interviewer can fail to write before code sets the rest. A supervisor is
#: given up after as many tries: it refused `PATIENCE` questions in a row with all their repetitions.
PATIENCE = 5

#: Questions with answers that the supervisor is to review.
Exchanges = Sequence[tuple[Item, str]]

Value = TypeVar("Value")
#: Section of a conversation.
Section = Generator[Sequence[AgentCall], list[Result], Value]


@dataclass(slots=True)
class _Question:
    """Item with its source, see `Exchange`."""

    item: Item
    source: str


@dataclass(slots=True)
class _Draft:
    """Question that an interviewer is to write, with the reason why the last attempt was refused."""

    coded: Item
    number: int
    question: _Question | None = None
    attempts: int = 0
    directive: Directive | None = None


def blank(network: Network, node: Node) -> NodeResult:
    """Return the result of a node that was not run."""
    knob = "difficulty of the bank's items"
    kind = "bank"
    if isinstance(node.task, TaskFamily):
        knob = node.task.knob
        kind = "task"
    return NodeResult(
        node.name,
        node.task.name,
        knob,
        node.group or node.name,
        kind,
        node.levels,
        node.queries,
        node.stop_at,
        network.weights()[node.name],
        node.opens_at,
        node.after,
        node.interviewer,
        node.questions,
    )


@dataclass(slots=True)
class NodeInterview:
    """Interview of a node."""

    network: Network
    node: Node
    items: LevelItems
    dialogues: Sequence[Dialogue] = ()
    counts: Counter[str] = field(default_factory=Counter)
    scores: list[list[float]] = field(default_factory=list)  # by level
    rounds: list[tuple[int, int]] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    answered: list[Exchange] = field(default_factory=list)  # all of them
    reviews: list[Review] = field(default_factory=list)
    to_review: list[tuple[Item, str]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)  # questions by the interviewer so far
    unset: int = 0  # questions in a row that the interviewer could not write
    refusals: int = 0  # of questions in a row by the supervisor
    panel_scores: list[list[list[float]]] = field(init=False)  # by member, question and cycle

    def __post_init__(self) -> None:
        self.panel_scores = [[] for _ in range(len(self.node.panel) + 2)]

    @property
    def interviewees(self) -> tuple[str, ...]:
        """Names of all that answer, the subject under evaluation first."""
        return (self.network.interviewee, *self.node.panel)

    def run(self) -> Conversation[tuple[NodeResult, Exchanges]]:
        """Run all rounds, and return the result with the exchanges that the supervisor is to review."""
        start = 1
        for round_ in range(self.network.rounds):
            level = start
            asked: list[Array] = []
            climb = replace(self.node.climb, guess=self.items.guess[start - 1 :])
            records = []
            for n, (low, high) in enumerate(self.rounds, 1):
                records.append(f"Round {n}: levels {low} to {high} were asked.")
            while True:
                scores = yield from self._level(round_, level, records)
                while len(self.scores) < level:
                    self.scores.append([])
                self.scores[level - 1] += scores
                asked.append(np.array(scores, dtype=np.float64))
                failed = climb.side(asked[-1]) < 0 or climb.guessed(asked) > 0
                if failed or level == self.node.levels:
                    break
                level += 1
            self.rounds.append((start, level))
            start = max(level - failed, 1)
        return self._result(), self.to_review

    def _level(self, round_: int, level: int, records: Sequence[str]) -> Section[list[float]]:
        questions = yield from self._questions(round_, level, records)
        items = [question.item for question in questions]
        position = (self.node.name, round_, level)
        answers = yield self._calls(position, 0, [tuple(items)] * len(self.interviewees))
        answers_by_cycle = [answers]
        for cycle in range(1, self.node.cycles + 1):
            before = answers_by_cycle[-1]
            prompts_ = []
            for n in range(len(self.interviewees)):
                prompts_.append(self._heard(n, items, before, cycle))
            after = yield self._calls(position, cycle, prompts_)
            readable = []
            for old, new in zip(before, after, strict=True):
                readable.append(_last_readable(items, old, new))
            answers_by_cycle.append(readable)
        final = answers_by_cycle[-1][0]
        scores = []
        for item, completion in zip(items, final, strict=True):
            scores.append(self._response(item, completion).score)
        if self.node.panel:
            self._score_panel(items, answers_by_cycle)
        self._record(level, questions, final, scores)
        return [np.nan if score is None else score for score in scores]

    def _score_panel(self, items: Sequence[Item], answers_by_cycle: Sequence[Sequence[Result]]) -> None:
        """Add the scores of each member and of the most frequent answers."""
        for k, item in enumerate(items):
            by_cycle = []
            for answers in answers_by_cycle:
                of_item = [result[k] for result in answers]
                by_cycle.append([*of_item, _plurality(of_item)])
            for scores, by_member in zip(self.panel_scores, zip(*by_cycle, strict=True), strict=True):
                scores.append([self._score(item, answer) for answer in by_member])

    def _calls(
        self, position: tuple[str, int, int], cycle: int, items: Sequence[tuple[Item, ...]]
    ) -> Sequence[AgentCall]:
        calls = []
        role: Role = "interviewee"
        for name, questions in zip(self.interviewees, items, strict=True):
            calls.append(AgentCall(name, role, (*position, cycle), items=questions))
            role = "panel"  # the first is the subject under evaluation
        return calls

    # Questions

    def _questions(self, round_: int, level: int, records: Sequence[str]) -> Section[list[_Question]]:
        coded = []
        for k in range(self.node.queries):
            coded.append(self.items.item(level, round_, k))
        if not self.node.interviewer:
            return [_Question(item, "code") for item in coded]
        drafts = [_Draft(item, k) for k, item in enumerate(coded)]
        pending = drafts
        while pending:
            for draft in pending:  # code refuses at once, while the interviewer is in memory
                yield from self._write_question(draft, (round_, level), records)
            written = [draft for draft in pending if draft.question]
            yield from self._review_drafts(written, (round_, level))
            pending = list(filter(self._is_open, pending))
        questions = []
        for draft in drafts:
            if draft.question is None:
                self.counts["fallbacks"] += 1
                questions.append(_Question(draft.coded, "fallback"))
            else:
                questions.append(draft.question)
        return questions

    def _write_question(self, draft: _Draft, position: tuple[int, int], records: Sequence[str]) -> Section[None]:
        """Let the interviewer attempt a question until code accepts it."""
        while self._is_open(draft):
            self.counts["directives"] += draft.attempts > 0
            yield from self._write((self.node.name, *position, draft.number, draft.attempts), draft, records)
        self._judge_interviewer(draft)

    def _is_open(self, draft: _Draft) -> bool:
        """Return whether the interviewer gets another attempt at a question."""
        given_up = self.unset >= PATIENCE or self.counts["supervisor_given_up"] > 0
        return draft.question is None and draft.attempts <= self.network.retries and not given_up

    def _judge_interviewer(self, draft: _Draft) -> None:
        """Give the interviewer up at this node once it could write none of `PATIENCE` questions in a row."""
        if draft.attempts and self.unset < PATIENCE:
            if draft.question is None:
                self.unset = self.unset + 1
            else:
                self.unset = 0
            self.counts["given_up"] += self.unset == PATIENCE

    def _write(self, position: tuple[str, int, int, int, int], draft: _Draft, records: Sequence[str]) -> Section[None]:
        """Let the interviewer attempt a question, and set the draft's question or directive."""
        family = self.node.task
        coded = draft.coded
        assert isinstance(family, TaskFamily)
        number = position[3] + 1
        attempt = draft.attempts + 1
        if self.node.questions == "rephrased":
            messages = prompts.rephrase(coded.prompt, draft.directive, attempt)
        else:
            context = (self.written, self.dialogues, records, draft.directive)
            answered = self.answered if self.network.responses else ()
            messages = prompts.write(
                content_of(family),
                family.knob,
                position[2],
                *context,
                number=(number, attempt, self.network.seed),
                answered=answered,
            )
        draft.attempts += 1
        self.counts["attempts"] += 1
        ((reply,),) = yield [AgentCall(self.node.interviewer, "interviewer", position, messages)]
        try:
            item = self._read_question(family, coded, f"w{position[1]}x{position[3]}x{position[4]}", reply)
        except Malformed as error:
            draft.directive = self._refusal(error.kind, str(error))
        else:
            draft.question = _Question(item, self.node.questions)

    def _read_question(self, family: TaskFamily, coded: Item, name: str, reply: Completion) -> Item:
        """Return the question in an interviewer's reply; raise `Malformed` if it cannot be used."""
        if reply.status is not Status.OK or not reply.text.strip():
            raise Malformed("silent", "no question came")
        text, claim = prompts.read_question(reply.text, content_of(family).whole)
        item = written_item(family, int(coded.meta["level"]), name, text)
        if self.node.questions == "rephrased":
            if (item.prompt, item.answer) != (coded.prompt, coded.answer):
                raise Malformed("format", "it does not ask the same")
            prompt = family.with_form(Question(one_line(text, prompts.READ_CHARACTERS))).prompt
            item = replace(coded, id=item.id, prompt=prompt, custom=lambda _, answer: coded.grade(answer))
        if claim:
            self.counts["claims"] += 1
            self.counts["wrong_claims"] += item.grade(claim) < 1.0
        prompt = " ".join(item.prompt.split())
        if prompt in self.written:
            raise Malformed("repeat", "it was asked before")
        self.written.append(prompt)
        return item

    def _refusal(self, kind: str, why: str) -> Directive:
        self.counts[kind] += 1
        return Directive(kind, why)

    def _review_drafts(self, drafts: Sequence[_Draft], position: tuple[int, int]) -> Section[None]:
        """Let the supervisor review new questions, no more than it may refuse in a row, and reset refused drafts."""
        supervision = self.network.supervision
        if supervision is None:
            return
        waiting = list(drafts)
        while waiting and not self.counts["supervisor_given_up"]:
            together = self._most_refusals - self.refusals
            yield from self._review(supervision, waiting[:together], position)
            waiting = waiting[together:]
        for draft in waiting:  # code asks what nobody reviews any more
            self.counts["unreviewed"] += draft.question is not None
            draft.question = None

    def _review(self, supervision: Supervision, drafts: Sequence[_Draft], position: tuple[int, int]) -> Section[None]:
        """Let the supervisor review new questions, and reset the drafts that it refuses."""
        family = self.node.task
        assert isinstance(family, TaskFamily)
        demand = f"level {position[1]} ({family.knob}), {content_of(family).demand(position[1])}"
        items = [draft.question.item for draft in drafts if draft.question]
        calls = []
        for item in items:
            messages = prompts.review_question(supervision.scheme, family.name, demand, item.prompt)
            calls.append(AgentCall(supervision.model, "supervisor", (self.node.name, *position, item.id), messages))
        replies = yield calls
        for draft, item, (reply,) in zip(drafts, items, replies, strict=True):
            opinion = _read_review(supervision, "question", item.id, reply, self.counts)
            self.reviews.append(opinion)
            self._judge_supervisor(opinion)
            if opinion.refused:
                draft.question = None
                draft.directive = self._refusal("review", "the supervisor found a fault in it")

    @property
    def _most_refusals(self) -> int:
        """Refusals in a row at which the supervisor is given up."""
        return PATIENCE * (self.network.retries + 1)

    def _judge_supervisor(self, review: Review) -> None:
        """Give the supervisor up at this node once it refused as many attempts in a row as `PATIENCE` questions get."""
        if review.refused:
            self.refusals = self.refusals + 1
        else:
            self.refusals = 0
        if self.refusals == self._most_refusals:
            self.counts["supervisor_given_up"] = 1

    # Answers

    def _heard(self, listener: int, items: Sequence[Item], answers: Sequence[Result], cycle: int) -> tuple[Item, ...]:
        """Return the questions with the answers that a member of the panel hears."""
        names = self.interviewees
        edges = self.node.edges
        others = []
        for speaker, name in enumerate(names):
            is_heard = not edges or (name, names[listener]) in edges
            if speaker != listener and is_heard:
                others.append(speaker)
        texts = []
        for result in answers:
            texts.append([self._passed_on(answer) for answer in result])
        questions = []
        for k, item in enumerate(items):
            heard = [texts[n][k] for n in others]
            questions.append(prompts.heard(item, heard, texts[listener][k], cycle))
        return tuple(questions)

    def _passed_on(self, answer: Completion) -> str:
        """Return what others read of an answer."""
        if answer.unread:
            return "(no answer)"
        return answer.text

    def _response(self, item: Item, completion: Completion) -> Response:
        response = completion.response(item)
        self.counts["answers"] += 1
        self.counts["unscored"] += response.score is None
        self.counts["faults"] += response.status.infrastructure
        if response.status in UNANSWERED:
            self.counts[response.status.value] += 1
        return response

    def _score(self, item: Item, completion: Completion) -> float:
        score = completion.response(item).score
        if score is None:
            return np.nan
        return score

    def _record(
        self, level: int, questions: Sequence[_Question], answers: Result, scores: Sequence[float | None]
    ) -> None:
        supervision = self.network.supervision
        for k, (question, completion, score) in enumerate(zip(questions, answers, scores, strict=True)):
            exchange = Exchange.of(question.item, level, question.source, completion, score)
            self.answered.append(exchange)
            if k < RECORDED_A_LEVEL and len(self.exchanges) < RECORDED:
                self.exchanges.append(exchange)
            if supervision and k < supervision.exchanges:
                self.to_review.append((question.item, completion.text))

    def _result(self) -> NodeResult:
        panel = []
        if self.node.panel:
            for name, scores in zip((*self.interviewees, "the most"), self.panel_scores, strict=True):
                panel.append(PanelMember.of(name, np.array(scores)))
        messages = 0
        if self.node.interviewer:
            messages = len(self.dialogues)
        return replace(
            blank(self.network, self.node),
            opened=True,
            scores=tuple(np.array(level, dtype=np.float64) for level in self.scores),
            rounds=tuple(self.rounds),
            guess=tuple(self.items.guess),
            messages=messages,
            counts={name: count for name, count in self.counts.items() if count},
            exchanges=tuple(self.exchanges),
            reviews=tuple(self.reviews),
            panel=tuple(panel),
        )


def review(supervision: Supervision, node: NodeResult, exchanges: Exchanges) -> Conversation[NodeResult]:
    """Let the supervisor review a node's exchanges, and return the node with the reviews."""
    calls = []
    for n, (item, answer) in enumerate(exchanges):
        messages = prompts.review_exchange(supervision.scheme, node.task, item.prompt, answer)
        calls.append(AgentCall(supervision.model, "supervisor", (node.name, "exchange", n), messages))
    replies = yield calls
    counts = Counter(node.counts)
    reviews = []
    for (item, _), (reply,) in zip(exchanges, replies, strict=True):
        reviews.append(_read_review(supervision, "exchange", item.id, reply, counts))
    return replace(node, counts=dict(counts), reviews=(*node.reviews, *reviews))


def _read_review(supervision: Supervision, subject: Any, item: str, reply: Completion, counts: Counter[str]) -> Review:
    opinion = Review(subject, item)
    if reply.status is Status.OK and supervision.scheme == "yes-no":
        opinion = replace(opinion, fault=prompts.read_fault(reply.text))
    elif reply.status is Status.OK:
        with suppress(Unranked):
            opinion = replace(opinion, rating=read_rank(reply.text))
    counts["reviews"] += 1
    counts["unread"] += opinion.unread
    return opinion


def _last_readable(items: Sequence[Item], before: Result, after: Result) -> Result:
    """Return new answers, or the ones before where they are unreadable; faults of the run stay."""
    readable = []
    for item, old, new in zip(items, before, after, strict=True):
        is_readable = not new.unread and item.readable(new.text)
        is_kept = is_readable or new.status.infrastructure
        readable.append(new if is_kept else old)
    return readable


def _plurality(answers: Sequence[Completion]) -> Completion:
    """Return the most frequent answer, of several the first; the first completion if nobody answered."""
    alike: dict[str, list[Completion]] = {}
    for answer in answers:
        if not answer.unread:
            text = " ".join(answer.text.split()).casefold()
            alike.setdefault(text, []).append(answer)
    most_frequent = max(alike.values(), key=len, default=answers)  # the first of several
    return most_frequent[0]
