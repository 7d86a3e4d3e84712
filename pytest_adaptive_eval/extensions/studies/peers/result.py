"""Result of a peer assessment: scores, judges, topics, judgments, convergence and cost."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from pytest_adaptive_eval.errors import ConfigError, EstimationError
from pytest_adaptive_eval.extensions.studies.peers.reliability import Reliability, fit_reliability, part_qualities
from pytest_adaptive_eval.extensions.studies.peers.scoring import PaperScores, paper_scores
from pytest_adaptive_eval.extensions.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.inference.ranks import RankDistribution
from pytest_adaptive_eval.models.base import SubjectIdentity, Usage
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.types import Array, Ints


@dataclass(frozen=True, slots=True)
class Attempt:
    """Attempt at a task.

    Args:
        generator: Position of the model that set it.
        task: Empty if the model set none.
        problem: Reason for a missing vote, else empty.
    """

    generator: int
    topic: str
    difficulty: str
    task: str = ""
    votes: tuple[int | None, ...] = ()
    accepted: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Round:
    """Task cycle of a panel.

    Args:
        attempts: At least one. An accepted task is the last.
        answers: Cleaned answers by model, None where missing; empty if no task was accepted.
    """

    attempts: tuple[Attempt, ...]
    answers: tuple[str | None, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether a task was accepted."""
        return self.attempts[-1].accepted


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """Result of a peer assessment.

    Args:
        models: In the order of all rows and columns; names are unique.
        judgments: Shape (T, n, n). Scores by round, judge and contestant; NaN where missing.
        paper: Scores by AutoBench's rule, in both modes.
        reliability: None if nothing can be compared; `fault` has the reason.
        changes: Shape (T,). L1 norm of the change of the weights for votes on the next task, by the mode's rule.
        missing: Counts of unusable replies by model, by role (``task``, ``vote``, ``answer``, ``judgment``), by kind.
        usage: Usage by role and model; a recalled reply counts with its original cost.
        fault: Reason for missing scores by the mode's rule, else empty.
    """

    models: tuple[SubjectIdentity, ...]
    settings: PeerSettings
    rounds: tuple[Round, ...]
    judgments: Array
    paper: PaperScores
    reliability: Reliability | None
    changes: Array
    missing: Mapping[str, Mapping[str, Mapping[str, int]]]
    usage: Mapping[str, tuple[Usage, ...]]
    recalled: int = 0
    fault: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(model.name for model in self.models)

    @property
    def accepted(self) -> int:
        """Number of rounds with an accepted task."""
        return sum(cycle.accepted for cycle in self.rounds)

    @property
    def scores(self) -> Array:
        """Scores by the mode's rule, about 1 to 5, shape (n,); NaN where unknown."""
        if self.fault:
            return np.full(len(self.models), np.nan)
        if self.settings.mode == "reliability" and self.reliability is not None:
            return self.reliability.qualities
        return self.paper.scores

    @property
    def weights(self) -> Array:
        """Weights of the judges by the mode's rule, which sum to 1, shape (n,); NaN where the rule gives none."""
        if self.settings.judge is not None:
            return np.array([float(name == self.settings.judge) for name in self.names])
        if self.settings.mode == "paper":
            return np.asarray(self.paper.weights[-1])
        if self.reliability is not None:
            return self.reliability.weights
        return np.full(len(self.models), np.nan)

    @property
    def missing_share(self) -> float:
        """Share of missing judgments in rounds with an accepted task; NaN without such rounds."""
        accepted = [cycle.accepted for cycle in self.rounds]
        if not any(accepted):
            return float("nan")
        judges = [self.settings.judge in (None, name) for name in self.names]
        return float(np.isnan(self.judgments[accepted][:, judges]).mean())

    def absent_topics(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the topics that no attempt drew, and the topics without an accepted task."""
        drawn: set[str] = set()
        used: set[str] = set()
        for cycle in self.rounds:
            drawn.update(attempt.topic for attempt in cycle.attempts)
            if cycle.accepted:
                used.add(cycle.attempts[-1].topic)
        topics = self.settings.topics
        not_drawn = tuple(topic for topic in topics if topic not in drawn)
        not_used = tuple(topic for topic in topics if topic in drawn - used)
        return not_drawn, not_used

    @property
    def total(self) -> Usage:
        """Cost of all replies."""
        return sum(self.by_role.values(), Usage())

    @property
    def by_role(self) -> dict[str, Usage]:
        """Cost of the replies of each role, over all models."""
        return {role: sum(usages, Usage()) for role, usages in self.usage.items()}

    @property
    def by_member(self) -> list[tuple[str, str, Usage]]:
        """Role, model and cost of the replies of each."""
        rows = []
        for role, usages in self.usage.items():
            for name, usage in zip(self.names, usages, strict=True):
                rows.append((role, name, usage))
        return rows

    def ranks(self) -> tuple[RankDistribution, ...] | None:
        """Return the probabilities of ranks, 1 is best; None if the model of reliability was not fitted."""
        if self.reliability is None:
            return None
        return self.reliability.ranks(seed=self.settings.seed)

    def heatmap(self) -> tuple[Array, Ints]:
        """Return mean judgments by judge and contestant, NaN where missing, and their counts, shape (n, n) each."""
        return _mean_and_count(self.judgments)

    def topics(self) -> dict[str, tuple[int, Array, Array]]:
        """Return, by topic with an accepted task, the number of tasks, the scores and their standard errors.

        Topics are in the order of the settings. In mode ``paper`` the errors are NaN.
        """
        topics = np.array([cycle.attempts[-1].topic if cycle.accepted else "" for cycle in self.rounds])
        by_topic = {}
        for topic in self.settings.topics:
            rounds = topics == topic
            if not rounds.any():
                continue
            if self.settings.mode == "reliability" and self.reliability is not None:
                scores, errors = part_qualities(self.judgments[rounds], self.reliability)
            else:
                scores, _ = _mean_and_count(self.paper.rounds[rounds])
                errors = np.full(len(self.models), np.nan)
            by_topic[topic] = (int(rounds.sum()), scores, errors)
        return by_topic

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data with all texts; see `from_json`."""
        means, counts = self.heatmap()
        topics = {}
        for topic, (count, scores, errors) in self.topics().items():
            topics[topic] = {"tasks": count, "scores": scores, "errors": errors}
        rounds = []
        for cycle, matrix in zip(self.rounds, self.judgments, strict=True):
            judgments = matrix if cycle.accepted else []
            rounds.append(plain(cycle) | {"judgments": judgments})
        data = {
            "mode": self.settings.mode,
            "models": self.models,
            "settings": self.settings,
            "fault": self.fault,
            "scores": self.scores,
            "accepted": self.accepted,
            "contestants": self._contestants(),
            "judges": self._judges(),
            "weights": self.weights,
            "paper": self.paper.to_json(),
            "changes": self.changes,
            "topics": topics,
            "judgments": {"mean": means, "count": counts},
            "rounds": rounds,
            "missing": self.missing,
            "missing_share": self.missing_share,
            "usage": {"total": self.total, **self.usage},
            "recalled": self.recalled,
        }
        return {name: plain(value) for name, value in data.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Assessment:
        """Create from the data of `to_json`; scores are computed from the judgments again.

        Raises:
            ConfigError: The data is not that of an assessment.
        """
        try:
            return cls._from_json(data)
        except (LookupError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise ConfigError(
                f"this is not the data of Assessment.to_json ({type(error).__name__}: {error}): give the account of a "
                "study of the kind peers"
            ) from None

    @classmethod
    def _from_json(cls, data: Mapping[str, Any]) -> Assessment:
        models = msgspec.convert(data["models"], tuple[SubjectIdentity, ...])
        settings = PeerSettings.from_json(data["settings"])
        rounds = msgspec.convert(data["rounds"], tuple[Round, ...])
        unjudged = np.full((len(models), len(models)), np.nan).tolist()
        matrices = [np.array(cycle["judgments"] or unjudged, dtype=np.float64) for cycle in data["rounds"]]
        judgments = np.array(matrices)
        judge = None
        fit = None
        if settings.judge is not None:
            judge = [model.name for model in models].index(settings.judge)
        else:
            with suppress(EstimationError):
                fit = fit_reliability(judgments)
        usage = {role: costs for role, costs in data["usage"].items() if role != "total"}
        accepted = [cycle.accepted for cycle in rounds]
        return cls(
            models,
            settings,
            rounds,
            judgments,
            paper_scores(judgments, accepted, judge=judge),
            fit,
            np.array(data["changes"], dtype=np.float64),
            data["missing"],
            msgspec.convert(usage, dict[str, tuple[Usage, ...]]),
            data["recalled"],
            data["fault"],
        )

    def _contestants(self) -> list[dict[str, Any]]:
        ranks = self.ranks()
        fit = self.reliability
        if fit is None or ranks is None:
            return []
        rows: list[dict[str, Any]] = []
        for j, rank in enumerate(ranks):
            row: dict[str, Any] = {"quality": None, "error": None, "rank": None}
            if np.isfinite(fit.qualities[j]):
                row["quality"] = fit.interval(j)
                row["error"] = float(fit.errors[j])
                row["rank"] = {"mean": rank.mean, "interval": rank.interval()}
            rows.append({**row, "rank_probabilities": rank.probabilities})
        return rows

    def _judges(self) -> list[dict[str, Any]]:
        fit = self.reliability
        if fit is None:
            return []
        columns = {
            "bias": fit.biases,
            "scale": fit.scales,
            "scale_error": fit.scale_errors,
            "noise": fit.noises,
            "liking": fit.likings,
            "weight": fit.weights,
            "slope": fit.flags.slopes,
            "slope_bound": fit.flags.slope_bounds,
            "self_excess": fit.flags.excess,
            "self_p_value": fit.flags.p_values,
            "partiality": fit.flags.partiality,
        }
        rows = []
        for i in range(len(self.models)):
            row: dict[str, Any] = {name: float(values[i]) for name, values in columns.items()}
            row["flags"] = fit.flags.words(i)
            rows.append(row)
        return rows


def _mean_and_count(values: Array) -> tuple[Array, Ints]:
    """Return mean and count of the finite values over the first axis; the mean is NaN without values."""
    finite = np.isfinite(values)
    counts = finite.sum(axis=0)
    sums = np.where(finite, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts
