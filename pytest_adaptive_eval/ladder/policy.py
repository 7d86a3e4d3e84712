"""Ladder policies: administer level by level until a level is failed, or the levels that narrow the area most.

Both are selectors that depend on the earlier scores. Each gives its stopping rule, and the intervals of the area and of
the last level that its answers allow. A bank of levels holds `queries` items of each level, from the easiest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selection import SelectorSession, View
from pytest_adaptive_eval.cat.stopping import SessionProgress, StoppingRule, StopReason
from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints

if TYPE_CHECKING:
    from pytest_adaptive_eval.inference.interval import Interval
    from pytest_adaptive_eval.ladder.result import Ladder
    from pytest_adaptive_eval.ladder.schedule import Schedule


SETTLING_BATCH = 5  #: Batch size, in items, if a level may end early.
SETTLING_CONFIDENCE = 0.95  #: Confidence for ending a level early.
LADDER = "ladder"  #: Name of the policy for a bank of levels.


def by_level(items: Ints, scores: Array, queries: int) -> list[Array]:
    """Return the scores by level, up to the hardest administered level, each in the order of the level's items.

    Args:
        items: Shape (t,). Positions in a bank of `queries` items per level.
        scores: Shape (t,). In [0, 1]; NaN marks a missing score.
        queries: Items per level.
    """
    if not len(items):
        return []
    order = np.argsort(items, kind="stable")
    level = items[order] // queries
    return [scores[order][level == n] for n in range(int(level[-1]) + 1)]


def _in_bank_order(view: View) -> Array:
    """Return ratings that fall along the bank, shape (S, n)."""
    return np.tile(np.linspace(1.0, 0.5, view.probability.shape[1]), (len(view.asked), 1))


@dataclass(frozen=True, slots=True)
class Climb:
    """Policy that administers level by level in full, until a level's accuracy is at most `stop_at` (MACEval).

    Args:
        queries: Items per level.
        stop_at: Accuracy in [0, 1) that fails a level.
        settle: End a level as soon as anytime-valid bets decide whether its accuracy is above `stop_at`. The number of
            items then depends on the answers, so the area has no interval.
        guess: Expected score of a guess by level, from the first level on. The ladder ends when its last levels are not
            distinguishable from guessing, see `ladder.guessing`.
    """

    queries: int = 10
    stop_at: float = 0.0
    settle: bool = False
    guess: tuple[float, ...] = ()
    name: str = "climb"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = False
    derived: ClassVar[tuple[str, ...]] = ("guess",)  #: Settings that follow from the task.

    def __post_init__(self) -> None:
        check_count("queries", self.queries)
        if not 0.0 <= self.stop_at < 1.0:
            raise ConfigError(f"stop_at is {self.stop_at!r}, expected an accuracy in [0, 1)")
        object.__setattr__(self, "guess", tuple(self.guess))

    @property
    def batch(self) -> int:
        """Items administered together: a whole level, or fewer if a level may end early."""
        if self.settle:
            return min(SETTLING_BATCH, self.queries)
        return self.queries

    @property
    def paired(self) -> bool:
        """True if every level is administered in full."""
        return not self.settle

    def criterion(self, view: View) -> Array:
        """Return ratings that fall along the bank, shape (S, n)."""
        return _in_bank_order(view)

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> SelectorSession:
        """Start the selection, see `selection.StatefulSelector`."""
        return _Climbing(self, len(bank), len(seeds))

    def side(self, scores: Array) -> int:
        """Return 1 for a passed level, -1 for a failed one, 0 for an unfinished one."""
        if self.settle:
            from pytest_adaptive_eval.ladder.result import Settled

            decided = Settled(self.stop_at, SETTLING_CONFIDENCE).side(scores.tolist())
            if decided:
                return decided
        if len(scores) < self.queries:
            return 0
        scored = scores[~np.isnan(scores)]
        if scored.sum() > self.stop_at * len(scored):
            return 1
        return -1

    def ladder(self, scores: Sequence[Array], cap: int) -> Ladder:
        """Return a ladder of this policy from its scores by level."""
        from pytest_adaptive_eval.ladder.result import Ladder

        return Ladder(tuple(scores), cap, stop_at=self.stop_at, alike=max(self.guessed(scores), 1))

    def guessed(self, scores: Sequence[Array]) -> int:
        """Return the number of last levels that are not distinguishable from guessing, else 0, from scores by level."""
        from pytest_adaptive_eval.ladder.guessing import guessed_levels

        if self.guess:
            return guessed_levels(scores, self.guess)
        return 0

    def stopping_rule(self, count: int) -> StoppingRule:
        """Return a rule that stops at the first failed level, at guessing, and when the last level is passed."""
        return _LevelFailed(self, count // self.queries)

    @property
    def area_fault(self) -> str:
        """Reason why the answers do not measure the area; empty if they do."""
        if self.settle:
            return 'auc needs all questions of each level, and stop = "decision" leaves some out: remove it'
        return ""

    @property
    def last_level_fault(self) -> str:
        """Reason why the answers do not measure the last level; always empty."""
        return ""

    def floors(self, levels: int) -> list[float]:
        """Return the expected score of a guess at each of the first levels; an empty list if it is 0."""
        return list(self.guess[:levels])

    def area(self, ladder: Ladder, confidence: float) -> Interval:
        """Return the area, see `Ladder.interval`, or raise a ConfigError, see `area_fault`."""
        if self.area_fault:
            raise ConfigError(self.area_fault)
        return ladder.interval(confidence)

    def last(self, ladder: Ladder, confidence: float) -> Interval:
        """Return the last level, see `ladder.result.last_above` and `ladder.result.last_settled`."""
        from pytest_adaptive_eval.ladder.result import last_above, last_settled

        if self.settle:
            return last_settled(ladder, self.stop_at, confidence)
        return last_above(ladder, self.stop_at, confidence)

    def to_json(self) -> Mapping[str, Any]:
        """Return all settings, by name; without `guess` if a guess scores nothing."""
        settings = _settings(self)
        guess = settings.pop("guess")
        if guess:
            return {**settings, "guess": list(guess)}
        return settings


@dataclass(frozen=True, slots=True)
class AdaptiveClimb:
    """Policy that administers the levels that narrow the area's interval most, until it reaches its target width.

    Args:
        queries: Items per level in the bank.
        width: Target width between the two one-sided 95 % bounds, in levels.
        guess: Expected score of a guess.
    """

    queries: int = 50
    width: float = 1.0
    guess: float = 0.0
    name: str = "adaptive-climb"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = False

    def __post_init__(self) -> None:
        check_count("queries", self.queries)
        if not 0.0 < self.width < np.inf:
            raise ConfigError(f"the width is {self.width!r}, expected a number of levels above 0 such as 1.0")

    @property
    def batch(self) -> int:
        """Items administered together."""
        return 10

    @property
    def paired(self) -> bool:
        """Always False: the levels of each subject depend on its answers."""
        return False

    def criterion(self, view: View) -> Array:
        """Return ratings that fall along the bank, shape (S, n)."""
        return _in_bank_order(view)

    def schedule(self, cap: int, confidence: float = 0.95) -> Schedule:
        """Return the schedule over `cap` levels."""
        from pytest_adaptive_eval.ladder.schedule import Schedule

        return Schedule(cap, self.width, confidence, self.guess)

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> SelectorSession:
        """Start the selection, see `selection.StatefulSelector`."""
        return _Scheduled(self, len(bank), len(seeds))

    def stopping_rule(self, count: int) -> StoppingRule:
        """Return a rule that stops when the interval is narrow enough."""
        return _Narrow(self, self.schedule(count // self.queries))

    def ladder(self, scores: Sequence[Array], cap: int) -> Ladder:
        """Return a ladder of this policy from its scores by level."""
        from pytest_adaptive_eval.ladder.result import Ladder

        return Ladder(tuple(scores), cap)

    def floors(self, levels: int) -> list[float]:
        """Return the expected score of a guess at each of the first levels; an empty list if it is 0."""
        if self.guess:
            return [self.guess] * levels
        return []

    def area(self, ladder: Ladder, confidence: float) -> Interval:
        """Return the area, see `Schedule.interval`."""
        scores = [level.tolist() for level in ladder.scores]
        return self.schedule(ladder.cap, confidence).interval(scores)

    @property
    def area_fault(self) -> str:
        """Reason why the answers do not measure the area; always empty."""
        return ""

    @property
    def last_level_fault(self) -> str:
        """Reason why the answers do not measure the last level."""
        return "last_level needs a climb, and width selects levels for the area: remove width"

    def last(self, ladder: Ladder, confidence: float) -> Interval:  # noqa: ARG002
        """Raise `ConfigError`: the answers do not measure the last level."""
        raise ConfigError(self.last_level_fault)

    def to_json(self) -> Mapping[str, Any]:
        """Return all settings, by name."""
        return _settings(self)


#: Default policy for a bank of levels.
LADDER_POLICY = Policy(selector=Climb(), floor=0.0, budget="100%", batch=Climb().batch, stop="level")


def levelled(name: str, settings: Mapping[str, Any]) -> Climb | AdaptiveClimb:
    """Return the ladder policy that a record names."""
    if name == AdaptiveClimb().name:
        return AdaptiveClimb(**settings)
    return Climb(**settings)


def _settings(ladder_policy: Climb | AdaptiveClimb) -> dict[str, Any]:
    settings = asdict(ladder_policy)
    for name in ("name", "mode", "needs_calibration"):
        del settings[name]
    return settings


class _LevelScores:
    """Scores of every subject by level, the shared part of both selectors."""

    mode: Literal["top", "proportional"] = "top"
    needs_calibration = False

    def __init__(self, ladder_policy: Climb | AdaptiveClimb, size: int, subjects: int) -> None:
        self.name = ladder_policy.name
        self._queries = ladder_policy.queries
        self._size = size
        self._cap = size // ladder_policy.queries
        self._scores: list[list[list[float]]] = [[[] for _ in range(self._cap)] for _ in range(subjects)]

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Append the scores to their levels, see `selection.SelectorSession`."""
        for levels, subject_items, subject_scores in zip(self._scores, items.tolist(), scores.tolist(), strict=True):
            for item, score in zip(subject_items, subject_scores, strict=True):
                levels[item // self._queries].append(score)

    def account(self) -> Mapping[str, Any]:
        """Return an empty mapping, since no model is called."""
        return {}

    def close(self) -> None:
        """Do nothing, since no resource is open."""


class _Climbing(_LevelScores):
    def __init__(self, climb: Climb, size: int, subjects: int) -> None:
        super().__init__(climb, size, subjects)
        self._climb = climb

    def criterion(self, view: View) -> Array:  # noqa: ARG002  unused: stored scores determine the order
        """Return ratings that fall along the unfinished levels, shape (S, n)."""
        value = np.tile(np.linspace(1.0, 0.5, self._size), (len(self._scores), 1))
        for row, levels in zip(value, self._scores, strict=True):
            for n, level in enumerate(levels):
                if not level:
                    break
                if self._climb.side(np.array(level)):
                    row[n * self._queries : (n + 1) * self._queries] = 0.0
        return value

    def reason(self, subject: int, item: int) -> str:  # noqa: ARG002
        """Return the reason for an item, see `selection.SelectorSession`."""
        return "the next of its level"


class _Scheduled(_LevelScores):
    def __init__(self, climb: AdaptiveClimb, size: int, subjects: int) -> None:
        super().__init__(climb, size, subjects)
        self._schedule = climb.schedule(self._cap)
        self._batch = climb.batch

    def criterion(self, view: View) -> Array:  # noqa: ARG002  unused: stored scores determine the order
        """Return ratings that fall along the items of the scheduled levels, shape (S, n)."""
        value = np.zeros((len(self._scores), self._size))
        for row, levels in zip(value, self._scores, strict=True):
            counts = [len(level) for level in levels]
            for rank, level in enumerate(self._schedule.ask(levels, self._batch, self._queries)):
                n = level - 1
                row[n * self._queries + counts[n]] = 1.0 - 0.5 * rank / self._batch
                counts[n] += 1
        return value

    def reason(self, subject: int, item: int) -> str:
        """Return the reason for an item, see `selection.SelectorSession`."""
        level = item // self._queries
        if len(self._scores[subject][level]) < 2:
            return "one of the first of its level"
        return f"one more answer at level {level + 1} narrows the area most"


@dataclass(frozen=True, slots=True)
class _LevelFailed:
    climb: Climb
    cap: int

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the stop reason of each subject, see `StoppingRule`."""
        logs = progress.logs()
        out: list[StopReason | None] = []
        for items, scores in zip(logs.items, logs.scores, strict=True):
            levels = by_level(items, scores, self.climb.queries)
            sides = []
            for level in levels:
                if len(level):
                    sides.append(self.climb.side(level))
            out.append(self._reason(levels, sides))
        return out

    def _reason(self, levels: Sequence[Array], sides: Sequence[int]) -> StopReason | None:
        if -1 in sides:
            return StopReason.LEVEL
        if not sides or sides[-1] <= 0:
            return None
        if len(levels) == self.cap:
            return StopReason.PASSED
        if self.climb.guessed(levels):
            return StopReason.GUESSING
        return None


@dataclass(frozen=True, slots=True)
class _Narrow:
    climb: AdaptiveClimb
    schedule: Schedule

    def check(self, progress: SessionProgress) -> Sequence[StopReason | None]:
        """Return the stop reason of each subject, see `StoppingRule`."""
        logs = progress.logs()
        out: list[StopReason | None] = []
        for items, scores in zip(logs.items, logs.scores, strict=True):
            levels = by_level(items, scores, self.climb.queries)
            by_all_levels: list[list[float]] = [[] for _ in range(self.schedule.levels)]
            for level, scores_of_level in zip(by_all_levels, levels, strict=False):
                level += scores_of_level.tolist()
            next_levels = self.schedule.ask(by_all_levels, 1, self.climb.queries)
            out.append(None if next_levels else StopReason.WIDTH)
        return out
