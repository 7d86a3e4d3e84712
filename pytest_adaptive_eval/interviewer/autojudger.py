"""AutoJudger: an interviewer picks each question among a few that suit the ability and differ from all earlier ones.

The method is that of the paper (Ding et al. 2025, arXiv 2505.21389), with errors of its released code fixed: abilities
have a prior, first items count within the budget, an empty window widens and never offers a question twice, and every
fallback is counted.

With a profile it refines abilities by dimension, after the abstract of the paper's version at ACL 2026 (A2-Judger):
they are estimated together, see `irt.profile`, and candidates are of the dimension whose ability is least certain. The
estimator and this order are ours.
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
from pytest_adaptive_eval.interviewer.closeness import difficulty_distance, semantic_distance
from pytest_adaptive_eval.interviewer.deterministic import DeterministicInterviewer, categories_of
from pytest_adaptive_eval.interviewer.difficulty import Difficulty, Sight, relate, why_unscaled
from pytest_adaptive_eval.interviewer.embeddings import Embedder
from pytest_adaptive_eval.interviewer.first import FirstItems, by_cluster, by_difficulty
from pytest_adaptive_eval.interviewer.interviewer import Candidate, Choice, Interviewer, Memory, MemoryTable
from pytest_adaptive_eval.interviewer.profile import DimensionProfile
from pytest_adaptive_eval.interviewer.retrieval import Distances, Retrieval, best, within
from pytest_adaptive_eval.irt.profile import estimate_profile
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.types import Array, Bools, Ints


@dataclass(frozen=True, slots=True, eq=False)
class AutoJudger:
    """Selector by an interviewer; `open` begins an interview.

    Args:
        embeddings: Positions of the questions, which define their distances; a callable gets the bank.
        interviewer: Picks among the candidates; `DeterministicInterviewer` when omitted.
        first: First questions: at the centres of clusters, evenly by difficulty (by cluster without difficulties), or
            drawn for each subject.
        count: Number of first questions, part of the budget.
        restarts: Restarts of k-means.
        responses: Shape (S, n). Scores of calibration subjects: the restart that ranks them best is used. Without them
            it is the one with the tightest clusters.
        window: Predicted scores of suitable questions.
        retrieval: Order in which candidates are taken from the window.
        agent: If false, no interviewer picks: a question is drawn in the window in proportion to its proximity.
        visual, memory: Whether the interviewer sees images, and the memory table.
        difficulty: Source of difficulties: the bank's calibration, or none, which means no window and no difficulties
            in prompts.
        profile: Estimate abilities by category, the bank's or the interviewer's own, and take candidates from the least
            certain one. It needs an agent, memory, and difficulties; a bank that is not calibrated, or has several
            ability dimensions, has no profile.
        seed: Seed of k-means; draws use the session's seeds.

    Raises:
        ConfigError: A setting is out of range.
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
    profile: bool = False
    seed: int = 0
    name: str = "autojudger"
    needs_calibration: bool = False

    def __post_init__(self) -> None:
        for setting, choices in (("first", FirstItems), ("retrieval", Retrieval), ("difficulty", Difficulty)):
            value = getattr(self, setting)
            if value not in get_args(choices):
                raise ConfigError(f"autojudger: {setting} is {value!r}, expected one of {', '.join(get_args(choices))}")
        for setting, least in (("count", 0), ("restarts", 1), ("candidates", 1)):
            check_count(f"autojudger: {setting}", getattr(self, setting), least)
        if self.window is not None and not 0.0 <= self.window[0] < self.window[1] <= 1.0:
            raise ConfigError(f"autojudger: window is {self.window!r}, expected two chances such as (0.2, 0.8)")
        if self.profile and not (self.agent and self.memory and self.difficulty == "irt"):
            raise ConfigError(
                f"autojudger: profile is true with agent {self.agent}, memory {self.memory} and difficulty "
                f"{self.difficulty!r}, expected True, True and 'irt': change them, or leave profile out"
            )

    @property
    def mode(self) -> Literal["top", "proportional"]:
        """Return ``top`` to ask the picked question, or ``proportional`` to draw without an interviewer."""
        if self.agent:
            return "top"
        return "proportional"

    def criterion(self, view: View) -> Array:
        """Return the proximity of each difficulty to the ability, shape (S, n), for use without an interview."""
        if why_unscaled(self.difficulty, view.bank):
            return np.ones(view.probability.shape)
        return relate(view).proximity

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> AutoJudgerInterview:
        """Begin one interview per seed; raise ConfigError if the embeddings do not fit the bank."""
        return AutoJudgerInterview(self, bank, seeds)

    def points(self, bank: ItemBank) -> NDArray[Any]:
        """Return the embeddings of a bank's items, shape (n, d)."""
        source = self.embeddings
        if isinstance(source, Embedder):
            points = np.asarray(source.embed(bank))
        elif callable(source):
            points = np.asarray(source(bank))
        else:
            points = np.asarray(source)
        if points.ndim != 2 or len(points) != len(bank) or not np.isfinite(points).all():
            raise ConfigError(
                f"autojudger: embeddings of shape {points.shape} for the {len(bank)} items of bank {bank.name!r}; "
                "expected a row of finite numbers per item"
            )
        return points

    def to_json(self) -> dict[str, Any]:
        """Return all settings that affect the choice of items, with hashes in place of arrays."""
        data = {}
        for f in fields(self):
            if f.name not in ("name", "needs_calibration"):
                data[f.name] = getattr(self, f.name)
        if self.window is not None:
            data["window"] = list(self.window)
        if isinstance(self.embeddings, Embedder):
            data["embeddings"] = self.embeddings.name
        else:
            data["embeddings"] = _identify(self.embeddings)
        if self.responses is not None:
            data["responses"] = _identify(self.responses)
        interviewer = self.interviewer or DeterministicInterviewer()
        data["interviewer"] = interviewer.name
        return data


def _identify(source: Any) -> str:
    """Return the name of a callable, or shape and hash of an array."""
    if callable(source):
        return str(getattr(source, "__qualname__", type(source).__qualname__))
    array = np.ascontiguousarray(source)
    shape = "x".join(map(str, array.shape))
    digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
    return f"{shape} {digest}"


class AutoJudgerInterview:
    """Interview within one session, see `cat.selection.SelectorSession`.

    Args:
        seeds: One per subject.
    """

    needs_calibration = False

    def __init__(self, settings: AutoJudger, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> None:
        self.settings = settings
        self.bank = bank
        self.name = settings.name
        self.mode = settings.mode
        self._rngs = []
        for seed in seeds:
            # separate from the streams of the session
            own_seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1))
            self._rngs.append(np.random.default_rng(own_seed))
        points = settings.points(bank)
        self._unscaled = why_unscaled(settings.difficulty, bank)
        self._profiles = settings.profile and not self._unscaled and bank.dimensions == 1
        self._distances = Distances(points, len(seeds))
        self._first, self._opening = self._begin(points)
        self._remembers = settings.agent and settings.memory
        self._categories: dict[int, tuple[str, ...]] = {}  # by position, as far as sorted
        self._interviewer = settings.interviewer or self._deterministic(points)
        # a model sees categories of its own, by which its memory is kept, and never the bank's
        self._by_code = isinstance(self._interviewer, DeterministicInterviewer)
        self._interviewer_name = self._interviewer.name  # loads a model, before the first question
        self._memories = [Memory() for _ in seeds]
        self._unsorted: list[tuple[int, int, float]] = []  # subject, item and score, before the item has categories
        self._category_names: dict[str, None] = {}  # in order of first use
        self._ratings: tuple[int, Array] | None = None  # after that many questions
        self._reasons: list[dict[int, str]] = [{} for _ in seeds]
        self._chosen = self._widened = self._fallbacks = 0
        self._asked = np.empty((len(seeds), 0), dtype=np.int64)
        self._scores = np.empty((len(seeds), 0))
        self._abilities = np.empty((len(seeds), 0))  # at the choice of each item, NaN where unknown
        self._ability = np.full(len(seeds), np.nan)

    def _begin(self, points: NDArray[Any]) -> tuple[Ints, str]:
        """Return the first items of every subject, shape (S, count), and the reason for them."""
        s = self.settings
        n = len(self.bank)
        subjects = len(self._rngs)
        count = 0
        if s.first != "none":
            count = min(s.count, n)
        reason = f"chosen because it is one of the first {count} questions, "
        if s.first == "random" or not count:
            drawn = [rng.permutation(n)[:count] for rng in self._rngs]
            return np.array(drawn, dtype=np.int64), reason + "which were drawn uniformly"
        if s.first == "difficulty" and not self._unscaled:
            items = by_difficulty(self.bank.difficulty, count)
            reason += "which are spread evenly over the difficulties"
        else:
            items = by_cluster(points, count, restarts=s.restarts, responses=s.responses, seed=s.seed)
            reason += f"each from the middle of one of {count} groups of similar questions"
        return np.tile(items, (subjects, 1)), reason

    def _deterministic(self, points: NDArray[Any]) -> Interviewer:
        """Return the interviewer by code, with categories if it is to balance them."""
        if not self._remembers:
            return DeterministicInterviewer()
        items = [self._item(i) for i in range(len(self.bank))]
        self._categories = dict(enumerate(categories_of(items, points)))
        return DeterministicInterviewer({item.id: self._categories[i] for i, item in enumerate(items)})

    def _item(self, position: int) -> Item:
        bank = self.bank
        if len(bank.items):
            item = bank.items[position]
        else:  # a bank without texts may have categories
            category = ""
            if len(bank.categories):
                category = bank.categories[position]
            path = (category,) if category else ()
            item = Item(str(bank.ids[position]), category=path)
        if self.settings.visual:
            return item
        return replace(item, images=())

    def criterion(self, view: View) -> Array:
        """Return ratings, shape (S, n), which rank first items, the choice, other candidates, the window, and the rest.

        Without an interviewer: first items, then proximity in the window and 0 outside.
        """
        t = view.asked.shape[1]
        if self._ratings is None or self._ratings[0] != t:  # one call of the interviewer per question
            self._ratings = (t, self._rate(view))
        return self._ratings[1].copy()

    def _rate(self, view: View) -> Array:
        s = self.settings
        shape = view.probability.shape
        t = view.asked.shape[1]
        self._reasons = [{} for _ in self._rngs]
        available = np.ones(shape, dtype=bool)
        np.put_along_axis(available, view.asked, False, axis=1)
        first = t < self._first.shape[1]
        sight = None
        profiles: list[DimensionProfile] = []
        window = None
        near = p = np.ones(shape)
        if not self._unscaled:
            deviation = None
            if self._profiles and t and not first:
                self._sort()
                profiles = [self._profile(subject) for subject in range(len(self._rngs))]
                deviation = np.stack([profile.deviation for profile in profiles])
            sight = relate(view, deviation)
            window = s.window
            near = sight.proximity
            p = sight.probability
            if sight.ability is not None:
                self._ability = sight.ability
        inside, widened = within(p, window, available)
        if not first:
            self._widened += int((widened > 0).sum())
        if not s.agent:
            ratings = np.where(inside, near, 0.0)
            if first:
                ratings *= 1e-9  # drawn only if a batch reaches past the first items
                self._rate_first(ratings, available)
            else:
                self._explain_draws(inside, sight)
            return ratings
        for row, profile in zip(inside, profiles, strict=False):
            row &= profile.least_certain(row)
        order = self._retrieval_order(near, t)
        top = _top(order)
        ratings = np.where(inside, 1.0 + np.minimum(order, top) / (2.0 * top), 0.5 * near)
        if first:
            self._rate_first(ratings, available)
            return ratings
        self._sort()
        for subject, positions in enumerate(best(order, inside, s.candidates)):
            self._choose(subject, positions, sight, ratings[subject], *profiles[subject : subject + 1])
        return ratings

    def _retrieval_order(self, near: Array, t: int) -> Array:
        """Return the key by which candidates are retrieved, shape (S, n), at least 0."""
        if self.settings.retrieval == "nearest-difficulty":
            return near
        if self.settings.retrieval == "random" or t == 0:  # before the first question all distances are infinite
            return np.stack([rng.random(near.shape[1]) for rng in self._rngs])
        return self._distances.nearest

    def _rate_first(self, ratings: Array, available: Bools) -> None:
        """Give the remaining first items the highest ratings."""
        for subject, items in enumerate(self._first):
            remaining = items[available[subject, items]]
            ratings[subject, remaining] = 1.0
            if self.mode == "top":
                ratings[subject, remaining] = 4.0 + np.arange(len(remaining), 0, -1) / len(remaining)
            self._reasons[subject] = dict.fromkeys(remaining.tolist(), self._opening)

    def _choose(
        self,
        subject: int,
        positions: Ints,
        sight: Sight | None,
        ratings: Array,
        profile: DimensionProfile | None = None,
    ) -> None:
        """Let the interviewer pick, and give the choice and then the other candidates the highest ratings."""
        ability = None
        if sight is not None and sight.ability is not None:
            ability = float(sight.ability[subject])
        offered = [self._candidate(subject, int(i), sight) for i in positions]
        table = MemoryTable()
        if self.settings.memory:
            table = self._memories[subject].table
        grounds = ""
        if profile is not None:
            table = table.with_abilities(profile.abilities)
            name = profile.name_of(int(positions[0]))
            least_certain, error = profile.abilities[name]
            grounds = f"; the ability in {name} is the least certain, {least_certain:.1f} ± {error:.1f}"
            if self._by_code:  # a model reads the abilities of all categories in the table
                ability = least_certain
        choice = self._interviewer.choose(offered, table, ability)
        if not 0 <= choice.index < len(offered):
            choice = Choice(0, choice.reason, f"{self._interviewer_name} chose number {choice.index} of {len(offered)}")
        self._chosen += 1
        self._fallbacks += bool(choice.fallback)
        ratings[positions] = 2.0 + np.arange(len(positions), 0, -1) / len(positions)
        chosen = int(positions[choice.index])
        ratings[chosen] = 4.0
        reasons = {}
        for number, i in enumerate(positions.tolist(), 1):
            reasons[i] = (
                f"chosen because it is number {number} of the candidates by retrieval ({self.settings.retrieval})"
            )
        reasons[chosen] = choice.reason + grounds
        self._reasons[subject] = reasons

    def _difficulty(self, position: int) -> float | None:
        if self._unscaled:
            return None
        b = float(self.bank.difficulty[position])
        if np.isnan(b):
            return None
        return b

    def _candidate(self, subject: int, position: int, sight: Sight | None) -> Candidate:
        item = self._item(position)
        categories = item.category[-1:] if self._by_code else ()
        probability = None
        if sight is not None:
            probability = float(sight.probability[subject, position])
        distance = float(np.sqrt(self._distances.nearest[subject, position]))
        return Candidate(
            position,
            item,
            self._categories.get(position, categories),
            self._difficulty(position),
            probability,
            distance,
        )

    def _explain_draws(self, inside: Bools, sight: Sight | None) -> None:
        """Set the reasons of draws without an interviewer."""
        text = "drawn in the window of suitable difficulty, nearer ones more often"
        if sight is None:
            text = "drawn uniformly, since " + self._unscaled
        self._reasons = [dict.fromkeys(np.flatnonzero(row).tolist(), text) for row in inside]

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Update distances, abilities and memory after questions with items and scores (S, k)."""
        self._distances.record_items(items)
        self._asked = np.hstack([self._asked, items])
        self._scores = np.hstack([self._scores, scores])
        abilities = np.repeat(self._ability[:, None], items.shape[1], axis=1)
        self._abilities = np.hstack([self._abilities, abilities])
        if self._remembers:
            for subject, (row, row_scores) in enumerate(zip(items.tolist(), scores.tolist(), strict=True)):
                for item, score in zip(row, row_scores, strict=True):
                    self._unsorted.append((subject, item, score))

    def _sort(self, ask: bool = True) -> None:
        """Sort administered items into categories, all new ones in one call, and add them to the memories."""
        unsorted = dict.fromkeys(item for _, item, _ in self._unsorted)
        new = [item for item in unsorted if item not in self._categories]
        if new and ask:
            items = [self._item(position) for position in new]
            difficulties = {item.id: self._difficulty(position) for item, position in zip(items, new, strict=True)}
            categories = self._interviewer.categorise(items, list(self._category_names), difficulties)
            self._categories.update(zip(new, categories, strict=True))
        remaining = []
        for subject, item, score in self._unsorted:
            names = self._categories.get(item)
            if names is None:
                remaining.append((subject, item, score))
                continue
            self._category_names.update(dict.fromkeys(names))
            if np.isnan(score):
                known_score = None
            else:
                known_score = score
            self._memories[subject].add(names, self._difficulty(item), known_score)
        self._unsorted = remaining

    def _profile(self, subject: int) -> DimensionProfile:
        """Return a subject's abilities by category. An unsorted question has the category of its closest asked one."""
        bank = self.bank
        names = tuple(dict.fromkeys(name for names in self._categories.values() for name in names))
        columns = {name: column for column, name in enumerate(names)}
        membership = np.zeros((len(bank), len(names)))
        for item, categories in self._categories.items():
            for name in set(categories):
                membership[item, columns[name]] = 1.0 / len(set(categories))
        unsorted = np.asarray(~membership.any(axis=1))
        asked = self._asked[subject]
        is_sorted = ~unsorted[asked]  # a question that was asked last may not be sorted yet
        asked = asked[is_sorted]
        membership[unsorted] = membership[self._distances.closest[subject, unsorted]]
        guessing = None if bank.asymptote is None else bank.asymptote[asked]
        estimate = estimate_profile(
            self._scores[subject][is_sorted],
            bank.discrimination[asked, 0],
            bank.intercept[asked],
            guessing,
            membership[asked],
        )
        return DimensionProfile(names, membership, estimate)

    def _tables(self) -> list[MemoryTable]:
        """Return the memory of every subject, with its profile."""
        tables = []
        for subject, memory in enumerate(self._memories):
            table = memory.table
            if self._profiles and table.rows:
                table = table.with_abilities(self._profile(subject).abilities)
            tables.append(table)
        return tables

    def _difficulty_distances(self) -> list[float | None]:
        """Return each subject's distance of ability and difficulty past the first items; None if unknown."""
        if self._unscaled:
            return [None] * len(self._asked)
        past = np.s_[:, self._first.shape[1] :]
        difficulties = self.bank.difficulty[self._asked[past]]
        distances = []
        for difficulty, ability in zip(difficulties, self._abilities[past], strict=True):
            distances.append(_number(difficulty_distance(difficulty, ability)))
        return distances

    def reason(self, subject: int, item: int) -> str:
        """Return the reason for the rating of a candidate; empty for other items."""
        return self._reasons[subject].get(item, "")

    def close(self) -> None:
        """Close the interviewer."""
        self._interviewer.close()

    def account(self) -> dict[str, Any]:
        """Return the interviewer, its settings and counts of deviations, for the record."""
        self._sort(ask=False)
        s = self.settings
        if self._unscaled:
            window = f"off: {self._unscaled}"
        elif s.window is None:
            window = "off"
        else:
            window = f"{s.window[0]:g} to {s.window[1]:g}"
        interviewer = None
        if s.agent:
            interviewer = dict(self._interviewer.account())
        notes = list(getattr(s.embeddings, "notes", ()))
        if s.profile and not self._profiles:
            reason = self._unscaled or f"the bank has {self.bank.dimensions} ability dimensions"
            notes.append(f"abilities by category are not estimated: {reason}")
        distances = [semantic_distance(self._distances.points(row)) for row in self._asked]
        return {
            "interviewer": interviewer,
            "embeddings": s.to_json()["embeddings"],
            "embedding_flops": getattr(s.embeddings, "flops", 0.0),
            "first": s.first,
            "window": window,
            "widened": self._widened,
            "chosen": self._chosen,
            "fallbacks": self._fallbacks,
            "notes": notes,
            "semantic_distance": list(map(_number, distances)),
            "difficulty_distance": self._difficulty_distances(),
            "memory": [table.to_json() for table in self._tables()],
        }


def _number(value: float) -> float | None:
    if np.isnan(value):
        return None
    return round(value, 6)


def _top(key: Array) -> Array:
    """Return the largest finite key of each subject, shape (S, 1), or 1 if it is 0."""
    largest = np.where(np.isfinite(key), key, 0.0).max(axis=1, keepdims=True)
    return np.asarray(np.where(largest > 0, largest, 1.0))
