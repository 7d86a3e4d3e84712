"""Interviewer by a language model, which sorts questions into categories and chooses the next one."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.interviewer import prompts
from pytest_adaptive_eval.interviewer.interviewer import (
    UNKNOWN,
    Candidate,
    Categories,
    Choice,
    Difficulties,
    MemoryTable,
)
from pytest_adaptive_eval.interviewer.parsing import Unreadable, read_assignment, read_categories, read_choice
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Message, Model, Usage
from pytest_adaptive_eval.ties import first_largest

T = TypeVar("T")

#: Category of a question that the model did not sort.
OTHER = "other"
#: Most questions in one prompt for sorting.
SORTED_AT_ONCE = 20
#: Unusable replies in a row after which the model is not asked to choose, or to sort, any more.
PATIENCE = 5


class AgentInterviewer:
    """Interviewer by an agent.

    The agent sees candidates ordered by content hash, so their order in the call has no effect. After an unusable reply
    the agent gets one more attempt. Then code takes the most distant candidate, or the category `OTHER`, and counts the
    fallback by its kind: ``no-json``, ``no-choice``, ``outside``, ``no-category``, ``unsorted`` (missing in the first
    sorting), ``given-up``, or the status of a call. An agent that fails `PATIENCE` times in a row to choose, or to
    sort, is given up: code does it from then on.

    Args:
        mode: Choose by the likelihood of a yes to each candidate, which needs an agent that rates, or by JSON. Ratings
            mention pictures without showing them.
        difficulty: See `pytest_adaptive_eval.interviewer.prompts.PromptForm`.
        sort_candidates: Whether the agent also sorts candidates. Prompts then state how often their categories were
            tested, which models fail to look up. It costs a call per new candidate.
        max_tokens: Limit on a reply, including reasoning; the cap of the agent by default.

    Raises:
        ConfigError: The agent does not rate.
    """

    def __init__(
        self,
        agent: Model,
        *,
        mode: Literal["rate", "reply"] = "rate",
        memory: bool = True,
        difficulty: Literal["irt", "none"] = "irt",
        images: bool = True,
        sort_candidates: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        if mode == "rate" and not agent.rates:
            raise ConfigError(
                f"mode is 'rate', and the agent {agent.identity.name!r} gives no likelihoods; set mode to 'reply', or "
                "use a local checkpoint"
            )
        self.agent = agent
        self.mode = mode
        self.form = prompts.PromptForm(memory, difficulty, images, counts=sort_candidates)
        self.max_tokens = max_tokens
        self._categories: dict[str, tuple[str, ...]] = {}  # by content hash
        self._usage = Usage()
        self._fallbacks: Counter[str] = Counter()  # of choices
        self._unsorted: Counter[str] = Counter()  # of categories
        self._in_a_row: Counter[str] = Counter()  # unusable replies by task
        self._problem = ""
        self._asked_again = self._recalled = self._hidden_images = 0

    @property
    def name(self) -> str:
        """Name of agent and mode with the start of the checkpoint hash, by which policies are compared."""
        identity = self.agent.identity
        details: list[str] = [self.mode]
        if identity.checkpoint:
            details.append(identity.checkpoint[:12])
        return f"{identity.name} ({', '.join(details)})"

    def categorise(
        self, items: Sequence[Item], existing: Sequence[str], difficulties: Difficulties = UNKNOWN
    ) -> Categories:
        """Return the categories of each item.  The first items share prompts; each later one has its own."""
        new = {item.content_hash: item for item in items if item.content_hash not in self._categories}
        if len(new) > 1 and not existing:
            assignment = self._sort_first(list(new.values()), difficulties)
            self._categories.update(zip(new, assignment, strict=True))
        names = dict.fromkeys(existing)
        sorted_items = []
        for item in items:
            categories = self._categories.get(item.content_hash) or self._sort_one(item, list(names), difficulties)
            self._categories[item.content_hash] = categories
            names.update(dict.fromkeys(categories))
            sorted_items.append(categories)
        return sorted_items

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """Return the agent's choice, or the most distant candidate if it made none."""
        order = sorted(range(len(candidates)), key=lambda i: (candidates[i].item.content_hash, candidates[i].position))
        offered = [candidates[i] for i in order]
        items = [candidate.item for candidate in offered]
        if self.form.counts:
            difficulties = {candidate.item.id: candidate.difficulty for candidate in offered}
            categories = self.categorise(items, [row.name for row in memory.rows], difficulties)
            offered = [replace(candidate, categories=c) for candidate, c in zip(offered, categories, strict=True)]
        choose = self._reply
        if self.mode == "rate":
            choose = self._rate
            items = []  # ratings show no pictures
        try:
            with self._attempt("choose", items):
                index, reason = choose(offered, memory, ability)
        except Unreadable as error:
            self._fallbacks[error.kind] += 1
            index = int(first_largest([candidate.distance for candidate in offered]))
            reason = f"chosen because it is the farthest candidate; {self.agent.identity.name} made no choice"
            return Choice(order[index], f"{reason} ({error.problem})", error.kind)
        return Choice(order[index], reason)

    def account(self) -> Mapping[str, Any]:
        """Return the agent, its settings, costs and fallbacks, for the record."""
        identity = self.agent.identity
        return {
            "name": self.name,
            "model": identity.name,
            "checkpoint": identity.checkpoint,
            "mode": self.mode,
            "memory": self.form.memory,
            "difficulty": self.form.difficulty,
            "images": self.form.images,
            "sort_candidates": self.form.counts,
            "usage": self._usage.to_json(),
            "recalled": self._recalled,
            "asked_again": self._asked_again,
            "images_not_shown": self._hidden_images,
            "fallbacks": dict(sorted(self._fallbacks.items())),
            "category_fallbacks": dict(sorted(self._unsorted.items())),
            "problem": self._problem,
        }

    def close(self) -> None:
        """Close the agent."""
        self.agent.close()

    @contextlib.contextmanager
    def _attempt(self, task: str, items: Sequence[Item] = ()) -> Iterator[None]:
        """Count the unusable replies to a task; raise Unreadable after too many in a row.

        Args:
            items: Questions whose pictures the agent is shown.
        """
        if self._in_a_row[task] >= PATIENCE:
            raise Unreadable("given-up", f"its {PATIENCE} replies before could not be used")
        try:
            yield
        except Unreadable as error:
            self._in_a_row[task] += 1
            problem = error.problem
            if self.form.images and any(item.images for item in items):
                problem += "; set visual = false in [eval.interview] if it reads no pictures"
            self._problem = self._problem or problem
            raise
        self._in_a_row[task] = 0

    def _rate(self, offered: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> tuple[int, str]:
        if self.form.images:
            self._hidden_images += sum(len(candidate.item.images) for candidate in offered)
        messages, continuations = prompts.rate(offered, memory, ability, self.form)
        preference = self.agent.prefer(messages, continuations, prompts.LABEL)
        self._count(preference.usage, reused=preference.reused)
        scores = list(preference.scores)
        finite = len(scores) == len(offered) and all(map(math.isfinite, scores))
        if preference.status is not Status.OK or not finite:
            kind = preference.status
            if kind is Status.OK:
                kind = Status.ERROR
            detail = preference.detail or "its ratings are not finite numbers, one per candidate"
            raise Unreadable(kind.value, prompts.one_line(detail, 200))
        if len(scores) == 1:
            return 0, f"chosen because {self.agent.identity.name} was given no other"
        second, best = sorted(scores)[-2:]
        return scores.index(best), (
            f"chosen because {self.agent.identity.name} rated it highest of {len(scores)} "
            f"(log-likelihood {best:.2f}, the next {second:.2f})"
        )

    def _reply(self, offered: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> tuple[int, str]:
        ids = [candidate.item.id for candidate in offered]
        messages = prompts.recommend(offered, memory, ability, self.form)
        index, think = self._ask(messages, prompts.CHOICE_SCHEMA, lambda text: read_choice(text, ids))
        if think:
            grounds = f": {think}"
        else:
            grounds = " and did not say why"
        return index, f"chosen because {self.agent.identity.name} picked it{grounds}"

    def _sort_first(self, items: Sequence[Item], difficulties: Difficulties) -> Categories:
        categories: Categories = []
        for start in range(0, len(items), SORTED_AT_ONCE):
            names = list(dict.fromkeys(name for names in categories for name in names))
            categories += self._sort_batch(items[start : start + SORTED_AT_ONCE], names, difficulties)
        return categories

    def _sort_batch(self, items: Sequence[Item], existing: Sequence[str], difficulties: Difficulties) -> Categories:
        ids = [item.id for item in items]
        messages = prompts.sort_first(items, existing, self.form, difficulties)
        schema = prompts.assignment_schema(len(items))
        try:
            with self._attempt("sort", items):
                categories = self._ask(messages, schema, lambda text: read_assignment(text, ids, existing))
        except Unreadable as error:
            self._unsorted[error.kind] += len(items)
            return [(OTHER,)] * len(items)
        self._unsorted["unsorted"] += sum(not names for names in categories)
        self._unsorted += Counter()  # drops a zero
        return [names or (OTHER,) for names in categories]

    def _sort_one(self, item: Item, existing: Sequence[str], difficulties: Difficulties) -> tuple[str, ...]:
        messages = prompts.sort_one(item, existing, self.form, difficulties)
        try:
            with self._attempt("sort", [item]):
                return self._ask(messages, prompts.CATEGORY_SCHEMA, lambda text: read_categories(text, existing))
        except Unreadable as error:
            self._unsorted[error.kind] += 1
            return (OTHER,)

    def _ask(self, messages: Sequence[Message], schema: Mapping[str, Any], read: Callable[[str], T]) -> T:
        """Return the parsed reply, a second one if the first is unusable."""
        reply = self._replied(messages, schema)
        try:
            return _read(reply, read)
        except Unreadable as error:
            if reply.status.infrastructure:
                raise
            self._asked_again += 1
            return _read(self._replied(prompts.ask_again(messages, reply.text, error.problem), schema), read)

    def _replied(self, chat: Sequence[Message], schema: Mapping[str, Any]) -> Completion:
        reply = self.agent.ask(list(chat), max_tokens=self.max_tokens, schema=schema)
        self._count(reply.cost, reused=reply.reused)
        return reply

    def _count(self, cost: Usage, *, reused: bool) -> None:
        self._recalled += reused
        self._usage += Usage() if reused else cost


def _read(reply: Completion, read: Callable[[str], T]) -> T:
    """Return what a reply says; raise Unreadable if there is none."""
    if reply.status is not Status.OK:
        raise Unreadable(reply.status.value, prompts.one_line(reply.detail, 200) or "no reply")
    return read(reply.text)
