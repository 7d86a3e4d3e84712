"""Ways to ask a bank of levels: one level after the other until one is failed, or where the area profits most.

Both are selectors that remember the answers, and both know when to stop and what
their answers say of the area and of the last level.  A bank of levels holds
`queries` items of each, level by level from the easiest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import SelectorSession, View
from pytest_adaptive_eval.cat.session import Policy
from pytest_adaptive_eval.cat.stopping import Progress, StoppingRule, StopReason
from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank

if TYPE_CHECKING:
    from pytest_adaptive_eval.inference.interval import Interval
    from pytest_adaptive_eval.ladder.result import Ladder
    from pytest_adaptive_eval.ladder.schedule import Schedule

__all__ = ["LADDER", "LADDER_POLICY", "AdaptiveClimb", "Climb", "by_level", "levelled"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Questions asked together where a level may be settled before all of it is asked.
SETTLING_BATCH = 5
#: Of the bets that settle a level.
SETTLING_CONFIDENCE = 0.95
#: Name of the policy for a bank of levels.
LADDER = "ladder"


def by_level(items: Ints, scores: Array, queries: int) -> list[Array]:
    """Scores by level, from the easiest to the hardest asked, each in the order of its questions.

    Parameters
    ----------
    items : array of int, shape (t,)
        Positions in a bank of `queries` items a level.
    scores : array, shape (t,)
        NaN where there is none.
    queries : int
    """
    if not len(items):
        return []
    order = np.argsort(items, kind="stable")
    level = items[order] // queries
    return [scores[order][level == n] for n in range(int(level[-1]) + 1)]


@dataclass(frozen=True, slots=True)
class Climb:
    """All questions of a level, then those of the next, until a level's accuracy is at most `stop_at` (MACEval).

    Parameters
    ----------
    queries : int
        Questions a level.
    stop_at : float
        In [0, 1).
    settle : bool
        Leave a level as soon as bets, which may be looked at at any moment, tell on
        which side of `stop_at` its accuracy lies.  The number of questions then
        depends on the answers, so that the area cannot be told.
    """

    queries: int = 10
    stop_at: float = 0.0
    settle: bool = False
    name: str = "climb"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = False

    def __post_init__(self) -> None:
        check_count("queries", self.queries)
        if not 0.0 <= self.stop_at < 1.0:
            raise ConfigError(f"stop_at is {self.stop_at!r}, expected an accuracy in [0, 1)")

    @property
    def batch(self) -> int:
        """A whole level, or a few questions where it may be settled before."""
        return min(SETTLING_BATCH, self.queries) if self.settle else self.queries

    @property
    def paired(self) -> bool:
        """Whether every level is asked in full."""
        return not self.settle

    def criterion(self, view: View) -> Array:
        """Falls along the bank."""
        return np.tile(np.linspace(1.0, 0.5, view.probability.shape[1]), (len(view.asked), 1))

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> SelectorSession:
        """See `selection.StatefulSelector`."""
        return _Climbing(self, len(bank), len(seeds))

    def side(self, scores: Array) -> int:
        """1 where a level is passed, -1 where it is failed, 0 where it goes on."""
        if self.settle:
            from pytest_adaptive_eval.ladder.result import Settled

            if found := Settled(self.stop_at, SETTLING_CONFIDENCE).side(scores.tolist()):
                return found
        if len(scores) < self.queries:
            return 0
        scored = scores[~np.isnan(scores)]
        return 1 if scored.sum() > self.stop_at * len(scored) else -1

    def stopping_rule(self, count: int) -> StoppingRule:
        """Stop at the first level that is failed, and when the last one is passed."""
        return _LevelFailed(self, count // self.queries)

    @property
    def area_fault(self) -> str:
        """Reason why the answers do not measure the area; empty if they do."""
        return "auc needs all questions of each level, and settle leaves some out: remove settle" * self.settle

    @property
    def last_level_fault(self) -> str:
        """Reason why the answers do not measure the last level; always empty."""
        return ""

    def area(self, ladder: Ladder, confidence: float) -> Interval:
        """Return the area, see `Ladder.interval`.

        Raises
        ------
        ConfigError
            See `area_fault`.
        """
        if self.area_fault:
            raise ConfigError(self.area_fault)
        return ladder.interval(confidence)

    def last(self, ladder: Ladder, confidence: float) -> Interval:
        """See `ladder.result.last_above` and `ladder.result.last_settled`."""
        from pytest_adaptive_eval.ladder.result import last_above, last_settled

        return (last_settled if self.settle else last_above)(ladder, self.stop_at, confidence)

    def to_json(self) -> Mapping[str, Any]:
        """All settings."""
        return _settings(self)


@dataclass(frozen=True, slots=True)
class AdaptiveClimb:
    """Questions of the levels that narrow the area's interval most, until it is as narrow as wanted.

    Parameters
    ----------
    queries : int
        Questions a level that there are.
    width : float
        Wanted distance of the bounds of 95 % to each side, in levels.
    guess : float
        The family's guess floor.
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
            raise ConfigError(f"width is {self.width!r}, expected a number of levels above 0 such as 1.0")

    @property
    def batch(self) -> int:
        """Questions asked together."""
        return 10

    @property
    def paired(self) -> bool:
        """Never: each subject is asked where it profits most."""
        return False

    def criterion(self, view: View) -> Array:
        """Falls along the bank."""
        return np.tile(np.linspace(1.0, 0.5, view.probability.shape[1]), (len(view.asked), 1))

    def schedule(self, cap: int, confidence: float = 0.95) -> Schedule:
        """What steers, on `cap` levels."""
        from pytest_adaptive_eval.ladder.schedule import Schedule

        return Schedule(cap, self.width, confidence, self.guess)

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> SelectorSession:
        """See `selection.StatefulSelector`."""
        return _Scheduled(self, len(bank), len(seeds))

    def stopping_rule(self, count: int) -> StoppingRule:
        """Stop when the interval is narrow enough."""
        return _Narrow(self, self.schedule(count // self.queries))

    def area(self, ladder: Ladder, confidence: float) -> Interval:
        """See `Schedule.interval`."""
        return self.schedule(ladder.cap, confidence).interval([level.tolist() for level in ladder.scores])

    @property
    def area_fault(self) -> str:
        """Reason why the answers do not measure the area; always empty."""
        return ""

    @property
    def last_level_fault(self) -> str:
        """Reason why the answers do not measure the last level."""
        return "last_level needs a climb, and width asks where the area profits most: remove width"

    def last(self, ladder: Ladder, confidence: float) -> Interval:  # noqa: ARG002
        """Raise `ConfigError`: the answers do not measure the last level."""
        raise ConfigError(self.last_level_fault)

    def to_json(self) -> Mapping[str, Any]:
        """All settings."""
        return _settings(self)


#: The policy for a bank of levels, unless its settings say otherwise.
LADDER_POLICY = Policy(selector=Climb(), floor=0.0, budget="100%", batch=Climb().batch, stop="level")


def levelled(name: str, settings: Mapping[str, Any]) -> Climb | AdaptiveClimb:
    """The way that a record names."""
    return (AdaptiveClimb if name == AdaptiveClimb().name else Climb)(**settings)


def _settings(way: Climb | AdaptiveClimb) -> dict[str, Any]:
    return {k: v for k, v in asdict(way).items() if k not in ("name", "mode", "needs_calibration")}


class _Remembering:
    """What both have: the scores of every subject by level."""

    mode: Literal["top", "proportional"] = "top"
    needs_calibration = False

    def __init__(self, way: Climb | AdaptiveClimb, size: int, subjects: int) -> None:
        self.name = way.name
        self._queries, self._size, self._cap = way.queries, size, size // way.queries
        self._scores: list[list[list[float]]] = [[[] for _ in range(self._cap)] for _ in range(subjects)]

    def record_scores(self, items: Ints, scores: Array) -> None:
        """See `selection.SelectorSession`."""
        for mine, asked, given in zip(self._scores, items.tolist(), scores.tolist(), strict=True):
            for item, score in zip(asked, given, strict=True):
                mine[item // self._queries].append(score)

    def account(self) -> Mapping[str, Any]:
        """Nothing besides the questions."""
        return {}

    def close(self) -> None:
        """Nothing was loaded."""


class _Climbing(_Remembering):
    def __init__(self, way: Climb, size: int, subjects: int) -> None:
        super().__init__(way, size, subjects)
        self._way = way

    def criterion(self, view: View) -> Array:  # noqa: ARG002  what was asked tells
        """Falls along the levels that are not done."""
        value = np.tile(np.linspace(1.0, 0.5, self._size), (len(self._scores), 1))
        for row, mine in zip(value, self._scores, strict=True):
            for n, level in enumerate(mine):
                if not level:
                    break
                if self._way.side(np.array(level)):
                    row[n * self._queries : (n + 1) * self._queries] = 0.0
        return value

    def reason(self, subject: int, item: int) -> str:  # noqa: ARG002
        """See `selection.SelectorSession`."""
        return "the next of its level"


class _Scheduled(_Remembering):
    def __init__(self, way: AdaptiveClimb, size: int, subjects: int) -> None:
        super().__init__(way, size, subjects)
        self._schedule, self._batch = way.schedule(self._cap), way.batch

    def criterion(self, view: View) -> Array:  # noqa: ARG002  what was asked tells
        """Falls along the questions of the levels that the schedule wants."""
        value = np.zeros((len(self._scores), self._size))
        for row, mine in zip(value, self._scores, strict=True):
            used = [len(level) for level in mine]
            wanted = self._schedule.ask(mine, self._batch, self._queries)
            for rank, level in enumerate(wanted):
                row[(level - 1) * self._queries + used[level - 1]] = 1.0 - 0.5 * rank / self._batch
                used[level - 1] += 1
        return value

    def reason(self, subject: int, item: int) -> str:
        """See `selection.SelectorSession`."""
        level = item // self._queries
        if len(self._scores[subject][level]) < 2:
            return "one of the first of its level"
        return f"one more answer at level {level + 1} narrows the area most"


@dataclass(frozen=True, slots=True)
class _LevelFailed:
    way: Climb
    cap: int

    def check(self, progress: Progress) -> Sequence[StopReason | None]:
        """See `StoppingRule`."""
        logs = progress.logs()
        out: list[StopReason | None] = []
        for items, scores in zip(logs.items, logs.scores, strict=True):
            levels = by_level(items, scores, self.way.queries)
            sides = [self.way.side(level) for level in levels if len(level)]
            passed = len(levels) == self.cap and sides[-1] > 0
            out.append(StopReason.LEVEL if -1 in sides else StopReason.PASSED if passed else None)
        return out


@dataclass(frozen=True, slots=True)
class _Narrow:
    way: AdaptiveClimb
    schedule: Schedule

    def check(self, progress: Progress) -> Sequence[StopReason | None]:
        """See `StoppingRule`."""
        logs = progress.logs()
        out: list[StopReason | None] = []
        for items, scores in zip(logs.items, logs.scores, strict=True):
            levels = by_level(items, scores, self.way.queries)
            levels += [np.empty(0)] * (self.schedule.levels - len(levels))
            done = not self.schedule.ask([level.tolist() for level in levels], 1, self.way.queries)
            out.append(StopReason.WIDTH if done else None)
        return out
