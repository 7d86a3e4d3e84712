"""What a peer assessment found: scores, judges, topics, the matrix of judgments, convergence and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.ranks import RankDistribution
from pytest_adaptive_eval.studies.peers.reliability import Reliability, part_qualities
from pytest_adaptive_eval.studies.peers.scoring import Agreement, PaperScores, agreement
from pytest_adaptive_eval.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.subjects.base import SubjectIdentity, Usage

__all__ = ["Assessment", "Attempt", "Round"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a task.

    Parameters
    ----------
    generator : int
        Place of the model that set it.
    topic, difficulty : str
    task : str
        Empty where none came.
    votes : tuple of (int or None)
        By model.
    accepted : bool
    problem : str
        Why it was not even voted on; empty where it was.
    """

    generator: int
    topic: str
    difficulty: str
    task: str = ""
    votes: tuple[int | None, ...] = ()
    accepted: bool = False
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "generator": self.generator,
            "topic": self.topic,
            "difficulty": self.difficulty,
            "task": self.task,
            "votes": list(self.votes),
            "accepted": self.accepted,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    Parameters
    ----------
    attempts : tuple of Attempt
        At least one; where a task was accepted, the last.
    answers : tuple of (str or None)
        By model, cleaned; None where there is none, and empty where no task was accepted.
    """

    attempts: tuple[Attempt, ...]
    answers: tuple[str | None, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether there was a task to answer."""
        return self.attempts[-1].accepted

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"attempts": [one.to_json() for one in self.attempts], "answers": list(self.answers)}


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """The one account of a peer assessment.

    Parameters
    ----------
    models : tuple of SubjectIdentity
        In the order of all rows and columns; names are unique.
    settings : PeerSettings
    rounds : tuple of Round
    judgments : array, shape (T, n, n)
        By round, judge and contestant; NaN where there is none.
    paper : PaperScores
        By AutoBench's rule, whatever the mode.
    reliability : Reliability or None
        None where nothing can be compared: `fault` says why.
    changes : array, shape (T,)
        L1 norm of the change of the weights that the next task is voted on with, by the mode's own rule.
    missing : mapping
        Replies that were of no use: counts by model, by role (``task``, ``vote``, ``answer``, ``judgment``), by kind.
    usage : mapping of str to tuple of Usage
        By role, for each model; what was recalled from an earlier run is counted as it cost then.
    recalled : int
        Replies that were known from an earlier run.
    fault : str
        Why there are no scores by the mode; empty where there are.
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
        """Of the models."""
        return tuple(model.name for model in self.models)

    @property
    def accepted(self) -> int:
        """Rounds with a task."""
        return sum(one.accepted for one in self.rounds)

    @property
    def scores(self) -> Array:
        """By the mode, about 1 to 5, shape (n,); NaN where not known."""
        if self.fault:
            return np.full(len(self.models), np.nan)
        if self.settings.mode == "reliability" and self.reliability is not None:
            return self.reliability.qualities
        return self.paper.scores

    @property
    def missing_share(self) -> float:
        """Share of the wanted judgments that are missing, in rounds with a task; NaN without one."""
        held = [one.accepted for one in self.rounds]
        return float(np.isnan(self.judgments[held]).mean()) if any(held) else float("nan")

    @property
    def total(self) -> Usage:
        """What all replies cost."""
        return sum((one for each in self.usage.values() for one in each), Usage())

    def ranks(self) -> tuple[RankDistribution, ...] | None:
        """Probabilities of ranks, 1 the best; None where the model of reliability was not fitted."""
        return None if self.reliability is None else self.reliability.ranks(seed=self.settings.seed)

    def heatmap(self) -> tuple[Array, NDArray[np.int64]]:
        """Mean judgment by judge and contestant, NaN where there is none, and the counts, shape (n, n) each."""
        known = np.isfinite(self.judgments)
        counts = known.sum(axis=0)
        sums = np.where(known, self.judgments, 0.0).sum(axis=0)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts

    def agreement(self, reference: Mapping[str, float]) -> Agreement:
        """Rank correlations of the scores with reference scores by model, such as a coded truth, where both are."""
        return self._agreement(self.scores, reference)

    def judge_agreement(self, reference: Mapping[str, float]) -> tuple[Agreement, ...]:
        """Likewise of each judge's mean judgments, those of itself left out."""
        means = self.heatmap()[0]
        means[np.diag_indices(len(means))] = np.nan
        return tuple(self._agreement(row, reference) for row in means)

    def _agreement(self, scores: Array, reference: Mapping[str, float]) -> Agreement:
        other = np.array([reference.get(name, np.nan) for name in self.names])
        both = np.isfinite(scores) & np.isfinite(other)
        return agreement(scores[both], other[both])

    def topics(self) -> dict[str, tuple[int, Array, Array]]:
        """By topic with a task, in the order of the settings: tasks, scores by the mode, and their standard errors.

        Mode ``paper`` has no errors: they are NaN.
        """
        of = [one.attempts[-1].topic if one.accepted else "" for one in self.rounds]
        out = {}
        for topic in self.settings.topics:
            taken = np.array([name == topic for name in of])
            if not taken.any():
                continue
            if self.settings.mode == "reliability" and self.reliability is not None:
                found, errors = part_qualities(self.judgments[taken], self.reliability)
            else:
                rows = self.paper.rounds[taken]
                known = np.isfinite(rows)
                counts = known.sum(axis=0)
                sums = np.where(known, rows, 0.0).sum(axis=0)
                found = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
                errors = np.full(len(self.models), np.nan)
            out[topic] = (int(taken.sum()), found, errors)
        return out

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: everything, texts included."""
        means, counts = self.heatmap()
        return {
            "mode": self.settings.mode,
            "models": [model.to_json() for model in self.models],
            "settings": self.settings.to_json(),
            "fault": self.fault,
            "scores": _told(self.scores),
            "accepted": self.accepted,
            "contestants": self._contestants(),
            "judges": self._judges(),
            "paper": self.paper.to_json(),
            "changes": _told(self.changes),
            "topics": {
                topic: {"tasks": tasks, "scores": _told(found), "errors": _told(errors)}
                for topic, (tasks, found, errors) in self.topics().items()
            },
            "judgments": {"mean": [_told(row) for row in means], "count": counts.tolist()},
            "rounds": [
                {**one.to_json(), "judgments": [_told(row) for row in matrix] if one.accepted else []}
                for one, matrix in zip(self.rounds, self.judgments, strict=True)
            ],
            "missing": {name: {role: dict(kinds) for role, kinds in of.items()} for name, of in self.missing.items()},
            "missing_share": _told(np.array([self.missing_share]))[0],
            "usage": {
                "total": self.total.to_json(),
                **{role: [one.to_json() for one in each] for role, each in self.usage.items()},
            },
            "recalled": self.recalled,
        }

    def _contestants(self) -> list[dict[str, Any]]:
        ranks = self.ranks()
        if self.reliability is None or ranks is None:
            return []
        out: list[dict[str, Any]] = []
        for j, rank in enumerate(ranks):
            known = bool(np.isfinite(self.reliability.qualities[j]))
            out.append(
                {
                    "quality": self.reliability.interval(j).to_json() if known else None,
                    "error": float(self.reliability.errors[j]) if known else None,
                    "rank": {"mean": rank.mean, "interval": rank.interval()} if known else None,
                    "rank_probabilities": rank.probabilities.tolist(),
                }
            )
        return out

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
        told = {name: _told(values) for name, values in columns.items()}
        return [
            {**{name: values[i] for name, values in told.items()}, "flags": list(fit.flags.words(i))}
            for i in range(len(self.models))
        ]


def _told(values: Array) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in np.asarray(values, dtype=np.float64).tolist()]
