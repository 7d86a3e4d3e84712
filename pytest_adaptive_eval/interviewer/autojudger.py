"""AutoJudger: an interviewer picks each question among a few that suit the ability and are unlike all asked before.

The method is that of the paper (Ding et al. 2025, arXiv 2505.21389), with what
its released code gets wrong mended: abilities have a prior, first items count
within the budget, an empty window widens and never offers a question twice, and
every fallback is counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import View
from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.interviewer.deterministic import DeterministicInterviewer, categories_of
from pytest_adaptive_eval.interviewer.difficulty import Difficulty, Sight, scale_of
from pytest_adaptive_eval.interviewer.embeddings import Embedder
from pytest_adaptive_eval.interviewer.first import FirstItems, by_cluster, by_difficulty
from pytest_adaptive_eval.interviewer.interviewer import Candidate, Choice, Interviewer
from pytest_adaptive_eval.interviewer.memory import Memory, MemoryTable
from pytest_adaptive_eval.interviewer.retrieval import Distances, Retrieval, best, within
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

__all__ = ["AutoJudger", "Interview"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class AutoJudger:
    """The settings of an interview; `open` begins one.

    Parameters
    ----------
    embeddings : array (n, d), Embedder, or callable
        What makes two questions near or far; a callable takes the bank.
    interviewer : Interviewer, optional
        Who picks among the candidates; `DeterministicInterviewer` when omitted.
    first : {"cluster", "difficulty", "random", "none"}
        The first questions: from the middles of clusters, evenly by
        difficulty (by cluster where none is known), or drawn for each subject.
    count : int
        First questions, part of the budget.
    restarts : int
        Of k-means.
    responses : array, shape (S, n), optional
        Of known subjects; the restart is kept that ranks them best.  Without, that of the tightest clusters.
    window : (low, high) or None
        Chances of a right answer that are neither too easy nor too hard.
    retrieval : {"farthest", "nearest-difficulty", "random"}
        How candidates are found in the window.
    candidates : int
    agent : bool
        Off, nobody picks: a question is drawn in the window, in proportion to how near its difficulty is.
    visual, memory : bool
        Whether the interviewer sees images, and the table of what was asked.
    difficulty : {"irt", "annotated", "none"}
        By the bank's calibration; by ``meta.difficulty`` or ``meta.level`` of
        the items; or not at all, with no window, and nothing shown.
    seed : int
        Of k-means; draws go by the session's seeds.

    Raises
    ------
    ConfigError
        A setting is not one of these.
    """

    embeddings: NDArray[Any] | Embedder | Callable[[ItemBank], NDArray[Any]]
    interviewer: Interviewer | None = None
    first: FirstItems = "cluster"
    count: int = 10
    restarts: int = 50
    responses: Array | None = None
    window: tuple[float, float] | None = (0.2, 0.8)
    retrieval: Retrieval = "farthest"
    candidates: int = 5
    agent: bool = True
    visual: bool = True
    memory: bool = True
    difficulty: Difficulty = "irt"
    seed: int = 0
    name: str = "autojudger"
    needs_calibration: bool = False

    def __post_init__(self) -> None:
        for setting, known in (("first", FirstItems), ("retrieval", Retrieval), ("difficulty", Difficulty)):
            if (value := getattr(self, setting)) not in get_args(known):
                raise ConfigError(f"autojudger: {setting} is {value!r}, expected one of {', '.join(get_args(known))}")
        for setting, least in (("count", 0), ("restarts", 1), ("candidates", 1)):
            check_count(f"autojudger: {setting}", getattr(self, setting), least)
        if self.window is not None and not 0.0 <= self.window[0] < self.window[1] <= 1.0:
            raise ConfigError(f"autojudger: window is {self.window!r}, expected two chances such as (0.2, 0.8)")

    @property
    def mode(self) -> Literal["top", "proportional"]:
        """Ask what was picked; without an agent, draw."""
        return "top" if self.agent else "proportional"

    def criterion(self, view: View) -> Array:
        """Nearness of each difficulty to the ability: all that can be said before an interview."""
        scale, _ = scale_of(self.difficulty, view.bank, len(view.theta))
        return np.ones(view.probability.shape) if scale is None else scale.see(view).proximity

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> Interview:
        """Begin interviews of as many subjects as there are seeds.

        Raises
        ------
        ConfigError
            The embeddings do not fit the bank.
        """
        return Interview(self, bank, seeds)

    def points(self, bank: ItemBank) -> NDArray[Any]:
        """The embeddings of a bank's items, shape (n, d)."""
        given = self.embeddings
        if isinstance(given, Embedder):
            given = given.embed(bank)
        elif callable(given):
            given = given(bank)
        found = np.asarray(given)
        if found.ndim != 2 or len(found) != len(bank) or not np.isfinite(found).all():
            raise ConfigError(
                f"autojudger: embeddings of shape {found.shape} for the {len(bank)} items of bank {bank.name!r}; "
                "expected a row of finite numbers an item"
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """Everything that decides which items are asked; arrays by a hash of their content."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name not in ("name", "needs_calibration"):
                out[f.name] = list(value) if isinstance(value, tuple) else value
        given = self.embeddings
        out["embeddings"] = given.name if isinstance(given, Embedder) else _named(given)
        out["interviewer"] = self.interviewer.name if self.interviewer is not None else DeterministicInterviewer().name
        out["responses"] = None if self.responses is None else _named(self.responses)
        return out


def _named(given: Any) -> str:
    if callable(given):
        return str(getattr(given, "__qualname__", type(given).__qualname__))
    array = np.ascontiguousarray(given)
    return f"{'x'.join(map(str, array.shape))} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


class Interview:
    """AutoJudger in the course of one session; see `cat.selection.SelectorSession`.

    Parameters
    ----------
    settings : AutoJudger
    bank : ItemBank
    seeds : sequence of SeedSequence, one a subject
    """

    needs_calibration = False

    def __init__(self, settings: AutoJudger, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> None:
        self.settings, self.bank = settings, bank
        self.name, self.mode = settings.name, settings.mode
        # apart from the streams that the session draws from
        self._rngs = [
            np.random.default_rng(np.random.SeedSequence(s.entropy, spawn_key=(*s.spawn_key, 1))) for s in seeds
        ]
        points = settings.points(bank)
        self._scale, self._unscaled = scale_of(settings.difficulty, bank, len(seeds))
        self._distances = Distances(points, len(seeds))
        self._first, self._opening = self._begin(points)
        self._remembers = settings.agent and settings.memory
        self._categories: dict[int, tuple[str, ...]] = {}  # as far as they are known, by position
        self._interviewer = settings.interviewer or self._deterministic(points)
        self._who = self._interviewer.name  # a model is loaded here, before the first question
        self._memories = [Memory() for _ in seeds]
        self._unsorted: list[tuple[int, int, float]] = []  # answers whose categories are not asked for yet
        self._known: dict[str, None] = {}  # names of categories, in the order in which they came up
        self._rated: tuple[int, Array] | None = None
        self._reasons: list[dict[int, str]] = [{} for _ in seeds]
        self._chosen = self._widened = self._fallbacks = 0

    def _begin(self, points: NDArray[Any]) -> tuple[Ints, str]:
        """The first items of every subject, (S, count), and the reason to ask them."""
        s, n, subjects = self.settings, len(self.bank), len(self._rngs)
        count = 0 if s.first == "none" else min(s.count, n)
        among = f"chosen because it is one of the first {count} questions, "
        if s.first == "random" or not count:
            drawn = [rng.permutation(n)[:count] for rng in self._rngs]
            return np.array(drawn, dtype=np.int64), among + "which were drawn uniformly"
        if s.first == "difficulty" and self._scale is not None:
            found, how = by_difficulty(self._scale.difficulty, count), "which are spread evenly over the difficulties"
        else:
            found = by_cluster(points, count, restarts=s.restarts, responses=s.responses, seed=s.seed)
            how = f"each from the middle of one of {count} groups of questions that are alike"
        return np.tile(found, (subjects, 1)), among + how

    def _deterministic(self, points: NDArray[Any]) -> Interviewer:
        """The interviewer by code; the categories are found where it is to balance them."""
        if not self._remembers:
            return DeterministicInterviewer()
        items = [self._item(i) for i in range(len(self.bank))]
        self._categories = dict(enumerate(categories_of(items, points)))
        return DeterministicInterviewer({item.id: self._categories[i] for i, item in enumerate(items)})

    def _item(self, position: int) -> Item:
        bank = self.bank
        if len(bank.items):
            item = bank.items[position]
        else:  # without texts there may be categories all the same
            own = bank.categories[position] if len(bank.categories) else ""
            item = Item(str(bank.ids[position]), category=(own,) if own else ())
        return item if self.settings.visual else replace(item, images=())

    def criterion(self, view: View) -> Array:
        """First items, the choice, the other candidates, the window by retrieval, and the rest by difficulty, in turn.

        Without an agent: first items, then proximity in the window and 0 outside.
        """
        t = view.asked.shape[1]
        if self._rated is None or self._rated[0] != t:  # the interviewer is asked once a question
            self._rated = (t, self._rate(view))
        return self._rated[1].copy()

    def _rate(self, view: View) -> Array:
        s, shape, t = self.settings, view.probability.shape, view.asked.shape[1]
        self._reasons = [{} for _ in self._rngs]
        left = np.ones(shape, dtype=bool)
        np.put_along_axis(left, view.asked, False, axis=1)
        sight = None if self._scale is None else self._scale.see(view)
        near = np.ones(shape) if sight is None else sight.proximity
        p = near if sight is None else sight.probability
        inside, widened = within(p, None if sight is None else s.window, left)
        opening = t < self._first.shape[1]
        if not opening:
            self._widened += int((widened > 0).sum())
        if not s.agent:
            ratings = np.where(inside, near, 0.0)
            if opening:
                ratings *= 1e-9  # drawn only when a batch has room behind the last first item
        else:
            key = self._key(near, t)
            ratings = np.where(inside, 1.0 + np.minimum(key, _top(key)) / (2.0 * _top(key)), 0.5 * near)
        if opening:
            self._open(ratings, left)
            return ratings
        if not s.agent:
            self._drawn(inside, sight)
            return ratings
        self._sort()
        for subject, found in enumerate(best(key, inside, s.candidates)):
            self._choose(subject, found, sight, ratings[subject])
        return ratings

    def _key(self, near: Array, t: int) -> NDArray[Any]:
        """What candidates are retrieved by, (S, n), at least 0; before the first question all are equally far."""
        if self.settings.retrieval == "nearest-difficulty":
            return near
        if self.settings.retrieval == "random" or t == 0:
            return np.stack([rng.random(near.shape[1]) for rng in self._rngs])
        return self._distances.nearest

    def _open(self, ratings: Array, left: Bools) -> None:
        """Put the first items left in front."""
        for subject, items in enumerate(self._first):
            own = items[left[subject, items]]
            ratings[subject, own] = 4.0 + np.arange(len(own), 0, -1) / len(own) if self.mode == "top" else 1.0
            self._reasons[subject] = dict.fromkeys(own.tolist(), self._opening)

    def _choose(self, subject: int, found: Ints, sight: Sight | None, ratings: Array) -> None:
        """Let the interviewer pick, and put the choice in front and the other candidates behind it."""
        ability = None if sight is None or sight.ability is None else float(sight.ability[subject])
        offered = [self._candidate(subject, int(i), sight) for i in found]
        table = self._memories[subject].table if self.settings.memory else MemoryTable()
        choice = self._interviewer.choose(offered, table, ability)
        if not 0 <= choice.index < len(offered):
            choice = Choice(0, choice.reason, f"{self._who} chose number {choice.index} of {len(offered)}")
        self._chosen += 1
        self._fallbacks += bool(choice.fallback)
        ratings[found] = 2.0 + np.arange(len(found), 0, -1) / len(found)
        ratings[found[choice.index]] = 4.0
        self._reasons[subject] = {
            int(i): f"chosen because it is number {place} of the candidates by retrieval ({self.settings.retrieval})"
            for place, i in enumerate(found, 1)
        }
        self._reasons[subject][int(found[choice.index])] = choice.reason

    def _candidate(self, subject: int, position: int, sight: Sight | None) -> Candidate:
        item = self._item(position)
        b = float("nan") if self._scale is None else float(self._scale.difficulty[position])
        return Candidate(
            position,
            item,
            self._categories.get(position, item.category[-1:]),
            None if np.isnan(b) else b,
            None if sight is None else float(sight.probability[subject, position]),
            float(np.sqrt(self._distances.nearest[subject, position])),
        )

    def _drawn(self, inside: Bools, sight: Sight | None) -> None:
        """Reasons of draws without an agent."""
        text = "drawn in the window of suitable difficulty, nearer ones more often"
        if sight is None:
            text = "drawn uniformly, since " + self._unscaled
        self._reasons = [dict.fromkeys(np.flatnonzero(row).tolist(), text) for row in inside]

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Remember what was asked, and move the distances."""
        self._distances.told(items)
        if self._scale is not None:
            self._scale.told(items, scores)
        if self._remembers:
            for subject, (own, given) in enumerate(zip(items.tolist(), scores.tolist(), strict=True)):
                self._unsorted += [(subject, item, score) for item, score in zip(own, given, strict=True)]

    def _sort(self, ask: bool = True) -> None:
        """Sort what was asked into categories, all new questions in one call, before the table is needed."""
        fresh = list(dict.fromkeys(i for _, i, _ in self._unsorted if i not in self._categories))
        if fresh and ask:
            named = self._interviewer.categorise([self._item(i) for i in fresh], list(self._known))
            self._categories.update(zip(fresh, named, strict=True))
        for subject, item, score in self._unsorted:
            if item not in self._categories:
                continue
            self._known.update(dict.fromkeys(self._categories[item]))
            b = float("nan") if self._scale is None else float(self._scale.difficulty[item])
            known, scored = (None if np.isnan(value) else value for value in (b, score))
            self._memories[subject].add(self._categories[item], known, scored)
        self._unsorted = [entry for entry in self._unsorted if entry[1] not in self._categories]

    def reason(self, subject: int, item: int) -> str:
        """Why it was picked, or is next to what was; empty for what the interview did not bring up."""
        return self._reasons[subject].get(item, "")

    def close(self) -> None:
        """Let the interviewer go."""
        self._interviewer.close()

    def account(self) -> dict[str, Any]:
        """Who interviewed, by what settings, and how often it was not as planned."""
        self._sort(ask=False)
        s, scaled = self.settings, self._scale is not None
        window = "off" if s.window is None else f"{s.window[0]:g} to {s.window[1]:g}"
        return {
            "interviewer": dict(self._interviewer.account()) if s.agent else None,
            "embeddings": s.to_json()["embeddings"],
            "first": s.first,
            "window": window if scaled else f"off: {self._unscaled}",
            "widened": self._widened,
            "chosen": self._chosen,
            "fallbacks": self._fallbacks,
            "notes": list(getattr(s.embeddings, "notes", ())),
            "memory": [memory.table.to_json() for memory in self._memories],
        }


def _top(key: NDArray[Any]) -> Array:
    """The largest finite key of each subject, shape (S, 1), or 1 where that is 0."""
    largest = np.where(np.isfinite(key), key, 0.0).max(axis=1, keepdims=True)
    return np.asarray(np.where(largest > 0, largest, 1.0), dtype=np.float64)
