"""A language model as interviewer: it sorts questions into categories, and chooses the next one."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.interviewer import prompts
from pytest_adaptive_eval.interviewer.interviewer import Candidate, Choice
from pytest_adaptive_eval.interviewer.memory import MemoryTable
from pytest_adaptive_eval.interviewer.parsing import Unreadable, read_assignment, read_categories, read_choice
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.subjects.agent import Agent, Message
from pytest_adaptive_eval.subjects.base import Usage

__all__ = ["OTHER", "AgentInterviewer"]

T = TypeVar("T")

#: Category of a question that the model could not sort.
OTHER = "other"
#: Questions sorted by one prompt, when several are to be.
SORTED_AT_ONCE = 20


class AgentInterviewer:
    """An interviewer led by an agent.

    Candidates are put before the agent in an order of their own, by content
    hash, so that the order in which they are handed in changes nothing.  A reply
    that cannot be used is told so and asked for once more; then code takes the
    most distant candidate, or the category `OTHER`, and the fallback is counted
    by its kind: ``no-json``, ``no-choice``, ``outside``, ``no-category``,
    ``unsorted`` (left out of the first sorting), or the status of a call.

    Parameters
    ----------
    agent : Agent
    mode : {"rate", "reply"}
        Choose by the likelihood of a yes to each candidate, which needs an agent that rates, or by JSON.
        Rating tells of pictures and does not show them.
    memory : bool
        Show the memory table.
    difficulty : {"irt", "annotated", "none"}
        See `pytest_adaptive_eval.interviewer.prompts.Form`.
    images : bool
        Show pictures.
    sort_candidates : bool
        Have the agent sort the candidates too, each once, so that code can tell it how often their categories were
        tested, which models are bad at looking up.  Costs a call for each question that was never a candidate before.
    max_tokens : int
        Cap on a reply, reasoning included.
    decisions : mutable mapping of str to str, optional
        Decisions by a hash of agent and prompt; give one to keep them.

    Raises
    ------
    ConfigError
        A setting is not known, or the agent does not rate.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        mode: Literal["rate", "reply"] = "rate",
        memory: bool = True,
        difficulty: Literal["irt", "annotated", "none"] = "irt",
        images: bool = True,
        sort_candidates: bool = False,
        max_tokens: int = 512,
        decisions: MutableMapping[str, str] | None = None,
    ) -> None:
        if mode not in ("rate", "reply"):
            raise ConfigError(f"mode is {mode!r}, expected 'rate' or 'reply'")
        if mode == "rate" and not agent.rates:
            raise ConfigError(
                f"mode is 'rate', and the agent {agent.identity.name!r} gives no likelihoods; set mode to 'reply', or "
                "use a local checkpoint"
            )
        self.agent = agent
        self.mode = mode
        self.form = prompts.Form(memory, difficulty, images, counts=sort_candidates)
        self.max_tokens = max_tokens
        self._decisions: MutableMapping[str, str] = {} if decisions is None else decisions
        self._categories: dict[str, tuple[str, ...]] = {}  # of items sorted so far, by content hash
        self._usage = Usage()
        self._fallbacks: Counter[str] = Counter()
        self._asked_again = self._recalled = self._unseen = 0

    @property
    def name(self) -> str:
        """The agent's, how it chooses, and the beginning of its checkpoint's hash: policies are compared by it."""
        identity = self.agent.identity
        return f"{identity.name} ({', '.join(filter(None, (self.mode, identity.checkpoint[:12])))})"

    def categorise(self, items: Sequence[Item], known: Sequence[str]) -> list[tuple[str, ...]]:
        """Categories of each item: several first ones by one prompt, later ones each by their own."""
        fresh = list({item.content_hash: item for item in items if item.content_hash not in self._categories}.values())
        if len(fresh) > 1 and not known:
            self._categories.update(zip((item.content_hash for item in fresh), self._first(fresh), strict=True))
        names = dict.fromkeys(known)
        out = []
        for item in items:
            own = self._categories.get(item.content_hash) or self._sorted(item, list(names))
            self._categories[item.content_hash] = own
            names.update(dict.fromkeys(own))
            out.append(own)
        return out

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """The agent's choice, or the most distant candidate where it made none."""
        if not candidates:
            raise ValueError("there is no candidate to choose from")
        order = sorted(range(len(candidates)), key=lambda i: (candidates[i].item.content_hash, candidates[i].position))
        offered = [candidates[i] for i in order]
        if self.form.counts:
            named = self.categorise([one.item for one in offered], [row.name for row in memory.rows])
            offered = [replace(one, categories=names) for one, names in zip(offered, named, strict=True)]
        try:
            place, reason = (self._rate if self.mode == "rate" else self._reply)(offered, memory, ability)
        except Unreadable as error:
            self._fallbacks[error.kind] += 1
            place = max(range(len(offered)), key=lambda i: offered[i].distance)
            reason = f"chosen because it is the farthest candidate; {self.agent.identity.name} made no choice"
            return Choice(order[place], f"{reason} ({error.problem})", error.kind)
        return Choice(order[place], reason)

    def account(self) -> Mapping[str, Any]:
        """Who chose and how, what it cost, and what went wrong."""
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
            **self._usage.to_json(),
            "recalled": self._recalled,
            "asked_again": self._asked_again,
            "images_not_shown": self._unseen,
            "fallbacks": dict(sorted(self._fallbacks.items())),
        }

    def close(self) -> None:
        """Give back what the agent holds."""
        self.agent.close()

    def _rate(self, offered: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> tuple[int, str]:
        if self.form.images:
            self._unseen += sum(len(candidate.item.images) for candidate in offered)
        messages, continuations = prompts.rate(offered, memory, ability, self.form)
        key = self._key(messages, *continuations, prompts.LABEL)
        scores = self._recall(key, lambda text: _scores(text, len(offered)))
        if scores is None:
            preference = self.agent.prefer(messages, continuations, prompts.LABEL)
            self._usage += preference.usage
            scores = list(preference.scores)
            if preference.status is not Status.OK:
                raise Unreadable(preference.status.value, prompts.one_line(preference.detail, 200))
            if len(scores) != len(offered) or not all(math.isfinite(score) for score in scores):
                raise Unreadable(Status.ERROR.value, "its ratings are not finite numbers, one a candidate")
            self._decisions[key] = json.dumps(scores)
        place = max(range(len(scores)), key=scores.__getitem__)
        if len(scores) == 1:
            return place, f"chosen because {self.agent.identity.name} was given no other"
        second = max(scores[:place] + scores[place + 1 :])
        return place, (
            f"chosen because {self.agent.identity.name} rated it highest of {len(scores)} "
            f"(log-likelihood {scores[place]:.2f}, the next {second:.2f})"
        )

    def _reply(self, offered: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> tuple[int, str]:
        ids = [candidate.item.id for candidate in offered]
        messages = prompts.recommend(offered, memory, ability, self.form)
        place, think = self._asked(messages, prompts.CHOICE_SCHEMA, lambda text: read_choice(text, ids))
        grounds = f": {think}" if think else " and did not say why"
        return place, f"chosen because {self.agent.identity.name} picked it{grounds}"

    def _first(self, items: Sequence[Item]) -> list[tuple[str, ...]]:
        out: list[tuple[str, ...]] = []
        for start in range(0, len(items), SORTED_AT_ONCE):
            part = items[start : start + SORTED_AT_ONCE]
            known = list(dict.fromkeys(name for names in out for name in names))
            out += self._assigned(part, known)
        return out

    def _assigned(self, items: Sequence[Item], known: Sequence[str]) -> list[tuple[str, ...]]:
        ids = [item.id for item in items]
        messages = prompts.sort_first(items, known, self.form)
        schema = prompts.assignment_schema(len(items))
        try:
            found = self._asked(messages, schema, lambda text: read_assignment(text, ids, known))
        except Unreadable as error:
            self._fallbacks[error.kind] += len(items)
            return [(OTHER,)] * len(items)
        self._fallbacks["unsorted"] += sum(not names for names in found)
        self._fallbacks += Counter()  # drops a zero
        return [names or (OTHER,) for names in found]

    def _sorted(self, item: Item, known: Sequence[str]) -> tuple[str, ...]:
        messages = prompts.sort_one(item, known, self.form)
        try:
            return self._asked(messages, prompts.CATEGORY_SCHEMA, lambda text: read_categories(text, known))
        except Unreadable as error:
            self._fallbacks[error.kind] += 1
            return (OTHER,)

    def _asked(self, messages: Sequence[Message], schema: Mapping[str, Any], read: Callable[[str], T]) -> T:
        """What is read from a reply: one known from before, a new one, or a second one when the first is of no use."""
        key = self._key(messages, json.dumps(schema, sort_keys=True), str(self.max_tokens))
        known = self._recall(key, read)
        if known is not None:
            return known
        chat = list(messages)
        for last in (False, True):
            reply = self.agent.ask(chat, max_tokens=self.max_tokens, schema=schema)
            self._usage += reply.usage
            try:
                if reply.status is not Status.OK:
                    raise Unreadable(reply.status.value, prompts.one_line(reply.detail, 200) or "there was no reply")
                found = read(reply.text)
            except Unreadable as error:
                if last or reply.status.infrastructure:
                    raise
                self._asked_again += 1
                chat = prompts.ask_again(messages, reply.text, error.problem)
            else:
                self._decisions[key] = reply.text
                return found
        raise AssertionError("the second reply is returned, or its fault raised")

    def _recall(self, key: str, read: Callable[[str], T]) -> T | None:
        """A decision made before; one that cannot be read is made anew."""
        if key not in self._decisions:
            return None
        try:
            found = read(self._decisions[key])
        except ValueError:
            return None
        self._recalled += 1
        return found

    def _key(self, messages: Sequence[Message], *more: str) -> str:
        """Hash of the agent and of everything that it reads."""
        identity = self.agent.identity
        who = [identity.name, identity.checkpoint, identity.decoding_hash]
        told = [[message.role, message.text, list(message.images), message.root] for message in messages]
        return hashlib.sha256(json.dumps([who, told, more]).encode()).hexdigest()


def _scores(text: str, count: int) -> list[float]:
    scores = json.loads(text)
    if not isinstance(scores, list) or len(scores) != count or not all(isinstance(x, float) for x in scores):
        raise ValueError("these are no scores")
    return scores
