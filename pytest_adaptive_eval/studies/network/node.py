"""The conversations of one node: its questions, their answers level by level, and what the supervisor says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.studies.network import prompts
from pytest_adaptive_eval.studies.network.engine import Answering, Asking, Call, Conversation, Result
from pytest_adaptive_eval.studies.network.items import LevelItems
from pytest_adaptive_eval.studies.network.node_result import NodeResult, PanelMember
from pytest_adaptive_eval.studies.network.roles import Dialogue, Directive, Exchange, Review
from pytest_adaptive_eval.studies.network.topology import Network, Node, Supervision
from pytest_adaptive_eval.subjects.base import Completion
from pytest_adaptive_eval.subjects.foreign import Unranked, one_line, read_rank
from pytest_adaptive_eval.tasks.content import Malformed, content_of, written_item
from pytest_adaptive_eval.tasks.family import TaskFamily

__all__ = ["ContentFilter", "Interview", "blank", "review"]

Array = NDArray[np.float64]
#: Gives the reason why a text must not be shown or passed on; an empty one where nothing is wrong.
ContentFilter = Callable[[str], str]
#: Caps on replies of interviewers, and of supervisors.
QUESTION_TOKENS, REVIEW_TOKENS = 512, 256
#: Exchanges that a node's record keeps, in all and of each level.
KEPT, KEPT_A_LEVEL = 40, 3

Found = TypeVar("Found")
#: A part of a conversation.
Part = Generator[Sequence[Call], list[Result], Found]


@dataclass(slots=True)
class _Question:
    """An item with where it came from."""

    item: Item
    source: str
    flagged: str = ""


def blank(network: Network, node: Node) -> NodeResult:
    """The result of a node that was not held."""
    family = isinstance(node.task, TaskFamily)
    return NodeResult(
        node.name,
        node.task.name,
        node.task.knob if isinstance(node.task, TaskFamily) else "difficulty of the bank's items",
        node.group or node.name,
        "task" if family else "bank",
        node.levels,
        node.queries,
        node.stop_at,
        network.weights()[node.name],
        node.opens_at,
        node.after,
        node.interviewer,
        node.questions,
    )


class Interview:
    """The interview of a node.

    Parameters
    ----------
    network : Network
    node : Node
    items : LevelItems
        What code asks.
    dialogues : sequence of Dialogue
        Of earlier nodes, as far as they are passed on.
    content_filter : callable, optional
    """

    def __init__(
        self,
        network: Network,
        node: Node,
        items: LevelItems,
        dialogues: Sequence[Dialogue] = (),
        content_filter: ContentFilter | None = None,
    ) -> None:
        self.network, self.node, self.items = network, node, items
        self.dialogues = tuple(dialogues)
        self.content_filter = content_filter or (lambda _: "")
        self.counts: Counter[str] = Counter()
        self.scores: list[list[float]] = []
        self.rounds: list[tuple[int, int]] = []
        self.exchanges: list[Exchange] = []
        self.asked: list[Item] = []  # with answers, for the supervisor
        self.reviews: list[Review] = []
        self.to_review: list[tuple[Item, str]] = []
        self.seen: list[str] = []  # questions so far
        self.members: list[list[list[float]]] = [[] for _ in range(len(node.panel) + 2)]  # by member, question, cycle

    def hold(self) -> Conversation[tuple[NodeResult, list[tuple[Item, str]]]]:
        """All rounds; ends with what they found, and the exchanges that the supervisor is to review."""
        start = 1
        for round_ in range(self.network.rounds):
            level, records = start, [self._record(n, *one) for n, one in enumerate(self.rounds)]
            while True:
                scores = yield from self._level(round_, level, records)
                while len(self.scores) < level:
                    self.scores.append([])
                self.scores[level - 1] += scores
                failed = self.node.climb.side(np.array(scores)) < 0
                if failed or level == self.node.levels:
                    break
                level += 1
            self.rounds.append((start, level))
            start = max(level - failed, 1)
        return self._result(), self.to_review

    def _record(self, number: int, first: int, last: int) -> str:
        return f"Round {number + 1}: levels {first} to {last} were asked."

    def _level(self, round_: int, level: int, records: Sequence[str]) -> Part[list[float]]:
        questions = yield from self._questions(round_, level, records)
        items = [question.item for question in questions]
        place = (self.node.name, round_, level)
        names = (self.network.interviewee, *self.node.panel)
        calls: list[Call] = [
            Answering(name, "panel" if n else "interviewee", (*place, 0), tuple(items)) for n, name in enumerate(names)
        ]
        answers = yield calls
        said = [answers]
        for cycle in range(1, self.node.cycles + 1):
            answers = yield [
                Answering(name, "panel" if n else "interviewee", (*place, cycle), self._heard(n, items, said, cycle))
                for n, name in enumerate(names)
            ]
            said.append([self._settled(items, before, after) for before, after in zip(said[-1], answers, strict=True)])
        scores = [self._score(item, done) for item, done in zip(items, said[-1][0], strict=True)]
        if self.node.panel:
            self._debate(items, said)
        self._keep(level, questions, said[-1][0], scores)
        return [np.nan if score is None else score for score in scores]

    # Questions

    def _questions(self, round_: int, level: int, records: Sequence[str]) -> Part[list[_Question]]:
        """The questions of a level, none of which waits for an interviewer any more."""
        count = self.node.queries
        if not self.node.interviewer:
            return [_Question(self.items.item(level, round_, k), "code") for k in range(count)]
        made: list[_Question | None] = [None] * count
        tries = [0] * count
        why: list[Directive | None] = [None] * count
        left = list(range(count))
        while left:
            for k in left:  # what code refuses is written again at once, while the interviewer is in memory
                while made[k] is None and tries[k] <= self.network.retries:
                    place = (self.node.name, round_, level, k, tries[k])
                    self.counts["directives"] += tries[k] > 0
                    found = yield from self._write(place, self.items.item(level, round_, k), records, why[k])
                    tries[k] += 1
                    made[k], why[k] = (None, found) if isinstance(found, Directive) else (found, None)
            fresh = [k for k in left if made[k] is not None]
            refused = yield from self._reviewed(fresh, made, (round_, level))
            for k, directive in refused.items():
                made[k], why[k] = None, directive
            left = [k for k in refused if tries[k] <= self.network.retries]
        self.counts["fallbacks"] += made.count(None)
        return [one or _Question(self.items.item(level, round_, k), "fallback") for k, one in enumerate(made)]

    def _write(
        self, place: tuple[str | int, ...], coded: Item, records: Sequence[str], directive: Directive | None
    ) -> Part[_Question | Directive]:
        """One attempt at a question by the interviewer."""
        family, level = self.node.task, int(coded.meta["level"])
        assert isinstance(family, TaskFamily)
        content, rephrased = content_of(family), self.node.questions == "rephrased"
        number, attempt = int(place[3]) + 1, int(place[4]) + 1
        if rephrased:
            told = prompts.rephrase(coded.prompt, directive, attempt)
        else:
            more = (self.seen, self.dialogues, records, directive)
            told = prompts.write(content, family.knob, level, *more, number=(number, attempt, self.network.seed))
        self.counts["attempts"] += 1
        ((reply,),) = yield [Asking(self.node.interviewer, "interviewer", place, told, QUESTION_TOKENS)]
        if reply.status is not Status.OK or not reply.text.strip():
            return self._refuse("silent", "no question came")
        text, claim = prompts.read_question(reply.text, content.whole)
        if why := self.content_filter(text):
            return self._refuse("filter", f"it was flagged: {one_line(why)}")
        try:
            item = written_item(family, level, f"w{place[1]}x{place[3]}x{place[4]}", text)
        except Malformed as error:
            return self._refuse(error.kind, str(error))
        if rephrased:
            if (item.prompt, item.answer) != (coded.prompt, coded.answer):
                return self._refuse("format", "it does not ask the same")
            item = replace(coded, id=item.id, prompt=one_line(text, prompts.READ_CHARACTERS), custom=_graded_as(coded))
        if claim:
            self.counts["claims"] += 1
            self.counts["wrong_claims"] += item.grade(claim) < 1.0
        if (asked := " ".join(item.prompt.split())) in self.seen:
            return self._refuse("repeat", "it was asked before")
        self.seen.append(asked)
        return _Question(item, self.node.questions)

    def _refuse(self, kind: str, why: str) -> Directive:
        self.counts[kind] += 1
        return Directive(kind, why)

    def _reviewed(
        self, fresh: Sequence[int], made: Sequence[_Question | None], place: tuple[int, int]
    ) -> Part[dict[int, Directive]]:
        """Questions that the supervisor refuses, of those just made."""
        one, family = self.network.supervision, self.node.task
        if one is None or not fresh:
            return {}
        assert isinstance(family, TaskFamily)
        demand = f"level {place[1]} ({family.knob}), {content_of(family).demand(place[1])}"
        items = [question.item for k in fresh if (question := made[k]) is not None]
        replies = yield [
            Asking(
                one.model,
                "supervisor",
                (self.node.name, *place, item.id),
                prompts.review_question(one.scheme, family.name, demand, item.prompt),
                REVIEW_TOKENS,
            )
            for item in items
        ]
        found: dict[int, Directive] = {}
        for k, item, (reply,) in zip(fresh, items, replies, strict=True):
            self.reviews.append(_read_review(one, "question", item.id, reply, self.counts))
            if self.reviews[-1].refused:
                found[k] = self._refuse("review", "the supervisor found a fault in it")
        return found

    # Answers

    def _heard(
        self, listener: int, items: Sequence[Item], said: Sequence[list[Result]], cycle: int
    ) -> tuple[Item, ...]:
        """The questions as a member of the panel hears them again."""
        names = (self.network.interviewee, *self.node.panel)
        speakers = [
            n
            for n in range(len(names))
            if n != listener and (not self.node.edges or (names[n], names[listener]) in self.node.edges)
        ]
        shown = [[self._shown(done) for done in answers] for answers in said[-1]]
        return tuple(
            prompts.heard(item, [shown[n][k] for n in speakers], shown[listener][k], cycle)
            for k, item in enumerate(items)
        )

    def _shown(self, done: Completion) -> str:
        """An answer as others may hear it."""
        return "(no answer)" if done.status is not Status.OK or self.content_filter(done.text) else done.text

    @staticmethod
    def _settled(items: Sequence[Item], before: Result, after: Result) -> Result:
        """Where a second answer has not the form of an answer, the first one stands, but not for a fault of the run."""
        return [
            new if new.status.infrastructure or (new.status is Status.OK and item.readable(new.text)) else old
            for item, old, new in zip(items, before, after, strict=True)
        ]

    def _score(self, item: Item, done: Completion) -> float | None:
        """By code; None where there is nothing to score."""
        self.counts["answers"] += 1
        if done.status is Status.OK:
            try:
                return done.score if done.score is not None else item.grade(done.text)
            except Unscored as error:
                done = Completion(done.text, Status(error.status))
        self.counts["unscored"] += 1
        self.counts["faults"] += done.status.infrastructure
        return None

    def _debate(self, items: Sequence[Item], said: Sequence[list[Result]]) -> None:
        """What each member had right before and after each cycle, and what the most of them said."""
        for k, item in enumerate(items):
            for n in range(len(said[0])):
                self.members[n].append([_graded(item, cycle[n][k]) for cycle in said])
            most = [_plurality([cycle[n][k] for n in range(len(said[0]))]) for cycle in said]
            self.members[-1].append([_graded(item, done) for done in most])

    def _keep(
        self, level: int, questions: Sequence[_Question], answers: Result, scores: Sequence[float | None]
    ) -> None:
        for k, (question, done, score) in enumerate(zip(questions, answers, scores, strict=True)):
            flagged = self.content_filter(done.text) if done.text else ""
            self.counts["flagged_answers"] += bool(flagged)
            kept = Exchange.of(question.item, level, question.source, done, score)
            if flagged:
                kept = kept.without_texts(f"flagged: {one_line(flagged)}")
            if k < KEPT_A_LEVEL and len(self.exchanges) < KEPT:
                self.exchanges.append(kept)
            if self.network.supervision and k < self.network.supervision.exchanges and not flagged:
                self.to_review.append((question.item, done.text))

    def _result(self) -> NodeResult:
        return replace(
            blank(self.network, self.node),
            opened=True,
            scores=tuple(np.array(level, dtype=np.float64) for level in self.scores),
            rounds=tuple(self.rounds),
            counts={name: count for name, count in self.counts.items() if count},
            exchanges=tuple(self.exchanges),
            reviews=tuple(self.reviews),
            panel=self._members(),
        )

    def _members(self) -> tuple[PanelMember, ...]:
        if not self.node.panel:
            return ()
        names = (self.network.interviewee, *self.node.panel, "the most")
        out = []
        for name, rows in zip(names, self.members, strict=True):
            table = np.array(rows)
            known = ~np.isnan(table)
            means = [float(c[k].mean()) if k.any() else None for c, k in zip(table.T, known.T, strict=True)]
            first, last = table[:, 0], table[:, -1]
            out.append(PanelMember(name, tuple(means), int((first < last).sum()), int((first > last).sum())))
        return tuple(out)


def review(
    supervision: Supervision, node: NodeResult, exchanges: Sequence[tuple[Item, str]]
) -> Conversation[NodeResult]:
    """Have a node's exchanges reviewed; ends with the node as it is then."""
    replies = yield [
        Asking(
            supervision.model,
            "supervisor",
            (node.name, "exchange", n),
            prompts.review_exchange(supervision.scheme, node.task, item.prompt, answer),
            REVIEW_TOKENS,
        )
        for n, (item, answer) in enumerate(exchanges)
    ]
    counts = Counter(node.counts)
    found = [
        _read_review(supervision, "exchange", item.id, reply, counts)
        for (item, _), (reply,) in zip(exchanges, replies, strict=True)
    ]
    return replace(node, counts=dict(counts), reviews=(*node.reviews, *found))


def _read_review(supervision: Supervision, subject: Any, item: str, reply: Completion, counts: Counter[str]) -> Review:
    counts["reviews"] += 1
    fault: bool | None = None
    rating: int | None = None
    if reply.status is Status.OK:
        if supervision.scheme == "yes-no":
            fault = prompts.read_fault(reply.text)
        else:
            try:
                rating = read_rank(reply.text)
            except Unranked:
                rating = None
    counts["unread"] += fault is None and rating is None
    return Review(subject, item, fault, rating)


def _graded_as(coded: Item) -> Callable[[Item, str], float]:
    """A question in other words is graded as the one that it says."""
    return lambda _, text: coded.grade(text)


def _graded(item: Item, done: Completion) -> float:
    """The score, NaN where there is none."""
    if done.status is not Status.OK:
        return float("nan")
    try:
        return done.score if done.score is not None else item.grade(done.text)
    except Unscored:
        return float("nan")


def _plurality(answers: Sequence[Completion]) -> Completion:
    """What the most said, of as many the first."""
    told = [" ".join(done.text.split()).casefold() if done.status is Status.OK else None for done in answers]
    counts = Counter(text for text in told if text is not None)
    if not counts:
        return answers[0]
    best = max(counts.values())
    return answers[next(n for n, text in enumerate(told) if text is not None and counts[text] == best)]
