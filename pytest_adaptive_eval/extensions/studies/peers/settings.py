"""Settings of a peer assessment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pytest_adaptive_eval.checks import check_count, check_faults
from pytest_adaptive_eval.extensions.studies.peers.reliability import LEAST
from pytest_adaptive_eval.extensions.studies.peers.scoring import MEAN, MEDIAN, RETRIES, ROUNDS
from pytest_adaptive_eval.text import counted


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Level of difficulty with its share of draws.

    Args:
        share: Above 0, relative to the sum of all shares.
    """

    name: str
    share: float = 1.0


#: Topics of the paper's appendix.
TOPICS = (
    "math", "current news", "creative writing", "logic", "grammar", "coding", "history", "general culture", "science",
    "technology",
)  # fmt: skip
DIFFICULTIES = (Difficulty("very difficult", 0.6), Difficulty("difficult", 0.3), Difficulty("standard", 0.1))
#: Sampling of the paper's models: temperature and top_p.
PAPER_SAMPLING: Mapping[str, float] = {"temperature": 0.8, "top_p": 0.9}
CRITERIA = ("correctness", "clarity", "relevance", "structure and grammar", "depth")


def _are_names(values: Sequence[Any]) -> bool:
    """Return whether values are a list of at least one name, each of them once."""
    if isinstance(values, str) or not values:
        return False
    named = all(isinstance(value, str) and value.strip() for value in values)
    return named and len(set(values)) == len(values)


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Settings of tasks, rounds and scores, see `PanelTable`; the defaults are the paper's.

    Args:
        seed: Seed of the models that set tasks, topics and difficulties.
        task_tokens, answer_tokens, rank_tokens: Limits on replies, including reasoning; the cap of each model by
            default.

    Raises:
        ConfigError: A value is out of range, or a list is empty or has duplicates.
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
    task_tokens: int | None = None
    answer_tokens: int | None = None
    rank_tokens: int | None = None

    def __post_init__(self) -> None:
        check_faults(self._faults())
        for name in ("topics", "criteria", "difficulties"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("rounds", "retries"):
            check_count(name, getattr(self, name))
        for name in ("task_tokens", "answer_tokens", "rank_tokens"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_count("seed", self.seed, least=0)

    def _faults(self) -> Iterator[str]:
        if self.mode not in ("reliability", "paper"):
            yield f"mode is {self.mode!r}, expected 'reliability' or 'paper'"
        if self.judge is not None and self.mode != "paper":
            yield f"judge is {self.judge!r} and mode {self.mode!r}: a single judge is of mode 'paper'"
        names = [difficulty.name for difficulty in self.difficulties]
        for key, values in (("topics", self.topics), ("criteria", self.criteria), ("difficulties", names)):
            if not _are_names(values):
                yield f"{key} is {values!r}, expected a list of at least one name, each name once"
        for difficulty in self.difficulties:
            if not 0.0 < difficulty.share < float("inf"):
                yield f"the share of difficulty {difficulty.name!r} is {difficulty.share!r}, expected a number above 0"
        for name in ("mean", "median"):
            if not 1.0 <= getattr(self, name) <= 5.0:
                yield f"{name} is {getattr(self, name)!r}, expected a number from 1 to 5, as votes are"

    def check_panel(self, names: Sequence[str]) -> None:
        """Raise a ConfigError unless models of these names make a panel."""
        check_faults(self._panel_faults(names), "the panel")

    def _panel_faults(self, names: Sequence[str]) -> Iterator[str]:
        if len(names) < LEAST:
            yield f"{counted(len(names), 'model')}, expected at least {LEAST}: name more under peers = [...]"
        for name in names:
            if names.count(name) > 1:
                yield f"{names.count(name)} models are called {name!r}: rename one of them"
        if self.judge is not None and self.judge not in names:
            yield f"the judge {self.judge!r} is none of the panel: expected one of {', '.join(names)}"

    @property
    def sampling(self) -> Mapping[str, float]:
        """Default options of the panel's models: the paper's in mode ``paper``, else none."""
        if self.mode == "paper":
            return PAPER_SAMPLING
        return {}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data; see `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PeerSettings:
        """Create from the data of `to_json`."""
        difficulties = [Difficulty(**difficulty) for difficulty in data["difficulties"]]
        return cls(**{**data, "difficulties": difficulties})
