"""How a peer assessment is led: rounds, thresholds, and the lists that tasks and judgments are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.studies.peers.scoring import MEAN, MEDIAN, RETRIES, ROUNDS

__all__ = ["CRITERIA", "DIFFICULTIES", "TOPICS", "Difficulty", "PeerSettings"]


@dataclass(frozen=True, slots=True)
class Difficulty:
    """A level of difficulty and how often it is drawn.

    Parameters
    ----------
    name : str
    share : float
        Above 0; shares are taken relative to their sum.
    """

    name: str
    share: float = 1.0


#: As in the paper's appendix.
TOPICS = (
    "math",
    "current news",
    "creative writing",
    "logic",
    "grammar",
    "coding",
    "history",
    "general culture",
    "science",
    "technology",
)
DIFFICULTIES = (Difficulty("very difficult", 0.6), Difficulty("difficult", 0.3), Difficulty("standard", 0.1))
CRITERIA = ("correctness", "clarity", "relevance", "structure and grammar", "depth")


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """What is asked, how often, and how it is scored; the defaults are the paper's.

    Parameters
    ----------
    mode : {"reliability", "paper"}
        Which rule weighs the votes on tasks, and whose scores are the result's.
    topics, criteria : sequence of str
        What tasks are about, drawn uniformly, and what answers are judged by.
    difficulties : sequence of Difficulty
    rounds : int
        Rounds, accepted or not.
    retries : int
        Attempts at a task in a round, each by a new generator.
    mean, median : float
        Weighted mean and median of the votes that a task must reach.
    judge : str, optional
        Name of the only model whose votes and judgments count: the single-judge ablation, in mode ``paper``.
    seed : int
        Of generators, topics and difficulties.
    task_tokens, answer_tokens, rank_tokens : int
        Caps on replies, reasoning included.

    Raises
    ------
    ConfigError
        A value is out of its range, a list is empty or names something twice.
    """

    mode: Literal["reliability", "paper"] = "reliability"
    topics: Sequence[str] = TOPICS
    difficulties: Sequence[Difficulty] = DIFFICULTIES
    criteria: Sequence[str] = CRITERIA
    rounds: int = ROUNDS
    retries: int = RETRIES
    mean: float = MEAN
    median: float = MEDIAN
    judge: str | None = None
    seed: int = 0
    task_tokens: int = 512
    answer_tokens: int = 1024
    rank_tokens: int = 512

    def __post_init__(self) -> None:
        if self.mode not in ("reliability", "paper"):
            raise ConfigError(f"mode is {self.mode!r}, expected 'reliability' or 'paper'")
        if self.judge is not None and self.mode != "paper":
            raise ConfigError(f"judge is {self.judge!r} and mode {self.mode!r}: a single judge is of mode 'paper'")
        for name in ("topics", "criteria"):
            _check_list(name, getattr(self, name))
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "difficulties", tuple(self.difficulties))
        _check_list("difficulties", [one.name for one in self.difficulties])
        for one in self.difficulties:
            if not 0.0 < one.share < float("inf"):
                raise ConfigError(f"the share of difficulty {one.name!r} is {one.share!r}, expected a number above 0")
        for name in ("rounds", "retries", "task_tokens", "answer_tokens", "rank_tokens"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, expected a number of at least 1")
        for name in ("mean", "median"):
            if not 1.0 <= getattr(self, name) <= 5.0:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, expected a number from 1 to 5, as votes are")
        if self.seed < 0:
            raise ConfigError(f"seed is {self.seed!r}, expected a number of at least 0")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)


def _check_list(name: str, values: Sequence[str]) -> None:
    if isinstance(values, str) or not values or not all(isinstance(v, str) and v.strip() for v in values):
        raise ConfigError(f"{name} is {values!r}, expected a list of at least one name")
    if len(set(values)) < len(values):
        raise ConfigError(f"{name} is {list(values)!r}: each name may stand there once")
