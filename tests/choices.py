"""Choices of all kinds by disturbed inputs; ``python tests/choices.py`` prints them by undisturbed ones as JSON.

The inputs have many exact ties: copies of items, difficulties on both sides of an ability, points on a grid.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.prediction import form_orders
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import Cluster, MaximumInformation, NearestDifficulty, cluster_order
from pytest_adaptive_eval.extensions.papers.format_backtests import anchors
from pytest_adaptive_eval.extensions.papers.subsets import evolved, item_total
from pytest_adaptive_eval.extensions.studies.network.node import bank_levels
from pytest_adaptive_eval.inference.clusters import clusters, residual_factors, response_factors
from pytest_adaptive_eval.inference.rank_correlation import kendall_tau, rank_correlation, ranking_accuracy
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.deterministic import DeterministicInterviewer, categories_of
from pytest_adaptive_eval.interviewer.first import by_cluster, by_difficulty
from pytest_adaptive_eval.interviewer.interviewer import Candidate, MemoryTable
from pytest_adaptive_eval.interviewer.retrieval import Distances, best, within
from pytest_adaptive_eval.irt.estimation import MLE
from pytest_adaptive_eval.irt.multimodal import Modalities, MultimodalItems, Population
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview, Rule
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.schedule import Schedule
from pytest_adaptive_eval.ties import tie_ranks

Array = NDArray[np.float64]
Disturb = Callable[[Array], Array]
N, SUBJECTS = 96, 6


def inputs(seed: int) -> tuple[Array, Array, Array, Array]:
    """Return points (N, 5), slopes and difficulties (N,), and scores (SUBJECTS, N), with a copy of each third item."""
    rng = np.random.default_rng(seed)
    of = np.where(np.arange(N) % 3 == 2, np.arange(N) - 1, np.arange(N))  # the item that each one is a copy of
    points = rng.integers(-2, 3, (N, 5))[of] / 10.0 + 0.05
    slopes, difficulty = rng.choice([0.7, 1.0, 1.3], N)[of], rng.integers(-4, 5, N)[of] / 3.0
    ability = np.linspace(-1.5, 1.5, SUBJECTS)[:, None]
    scores = (rng.random((SUBJECTS, N))[:, of] < 1.0 / (1.0 + np.exp(-slopes * (ability - difficulty)))).astype(float)
    return points, slopes, difficulty, scores


def choices(seed: int, disturb: Disturb = lambda values: values) -> dict[str, Any]:
    """Return what is chosen, by name of the choice; `disturb` returns the inputs in which it changed last digits."""
    exact, a, b, scores = inputs(seed)
    points, slopes, difficulty = disturb(exact), disturb(a), disturb(b)
    categories = [f"topic {n % 4}" for n in range(N)]
    items = [Item(f"q{n}", "?", category=(category,)) for n, category in enumerate(categories)]
    bank = ItemBank("b", [item.id for item in items], items, slopes, -slopes * difficulty)
    return {
        **_clusters(seed, points, scores, disturb),
        **_interviewers(seed, bank, items, points, scores, disturb),
        **_interviews(seed, bank, scores),
        **_calibrations(seed, bank, points, scores, disturb),
    }


def _clusters(seed: int, points: Array, scores: Array, disturb: Disturb) -> dict[str, Any]:
    found = clusters(points, 7, seed)
    factors = residual_factors(disturb(scores))
    return {
        "clusters": (found.items, found.label),
        "of single precision": clusters(points.astype(np.float32), 7, seed).items,
        "of residual factors": clusters(factors, 9, seed).items,
        "of response factors": clusters(response_factors(disturb(scores)), 9, seed).items,
        "first by the tightest clusters": by_cluster(points, 8, restarts=6, seed=seed),
        "first by ranking": by_cluster(factors, 8, restarts=6, seed=seed, responses=disturb(scores)),
    }


def _interviewers(
    seed: int, bank: ItemBank, items: list[Item], points: Array, scores: Array, disturb: Disturb
) -> dict[str, Any]:
    distances = Distances(points, 2)
    distances.record_items(np.array([[seed % N, 5], [9, 2]]))
    p = disturb(np.round(bank.probability(np.array([[-0.5], [0.5]])), 1))
    inside, widened = within(p, (0.2, 0.8), np.ones(p.shape, dtype=bool))
    nearest = np.sqrt(distances.nearest[0])
    offered = [Candidate(n, items[n], items[n].category, 0.0, float(p[0, n]), float(nearest[n])) for n in (9, 5, 8, 7)]
    chosen = DeterministicInterviewer().choose(offered, MemoryTable(), 0.0)
    found = {
        "window": (inside, widened),
        "retrieval": [row.tolist() for row in best(distances.nearest, inside, 6)],
        "among candidates": (chosen.index, chosen.reason),
        "groups": categories_of([Item(f"q{n}", "?") for n in range(N)], points),
        "first by difficulty": by_difficulty(bank.difficulty, 7),
    }
    for name, settings in {
        "farthest": {},
        "nearest difficulty": {"retrieval": "nearest-difficulty", "first": "difficulty"},
        "by proximity": {"agent": False},
    }.items():
        embeddings = points if name != "farthest" else residual_factors(disturb(scores))
        judger = AutoJudger(embeddings, count=4, restarts=3, **settings)  # type: ignore[arg-type]
        found[f"autojudger, {name}"] = replay(bank, Policy(judger, 0.0, budget=20), scores, seed=seed).answers[0]
    return found


def _interviews(seed: int, bank: ItemBank, scores: Array) -> dict[str, Any]:
    found: dict[str, Any] = {"clusters of a budget": cluster_order(bank, 12)}
    policies = {
        "top with a floor": Policy(MaximumInformation(), 0.2, budget=8, estimator=MLE()),
        **{s.name: Policy(s, 0.0, budget=30) for s in (MaximumInformation(), NearestDifficulty(), Cluster())},
        **{name: POLICIES[name] for name in ("estimate", "decide")},
    }
    for name, policy in policies.items():
        found[name] = replay(bank, policy, scores, seed=seed).answers[0]
    return found


def _calibrations(seed: int, bank: ItemBank, points: Array, scores: Array, disturb: Disturb) -> dict[str, Any]:
    rows = disturb(inputs(seed)[0].T.copy())
    means = disturb(scores[:, :7].mean(axis=1)), scores.mean(axis=1)
    answered = [[float(x) for x in scores[row, :4]] for row in range(4)]
    found = {
        "form": form_orders(rows, disturb(np.full(N, 0.2)), np.ones((1, len(rows)))),
        "anchors": anchors(points, 9, seed)[0],
        "item totals": tie_ranks(-item_total(disturb(scores))).argsort(kind="stable"),
        "evolved": evolved(disturb(scores), 6, np.random.default_rng(seed)),
        "levels": [part.tolist() for part in bank_levels(bank, 5, "")],
        "levels of a schedule": Schedule(4, 0.1).ask([disturb(np.array(row)).tolist() for row in answered], 6),
        "agreement": [round(agree(*means), 9) for agree in (ranking_accuracy, rank_correlation, kendall_tau)],
    }
    for rule in ("fisher", "d-optimal"):
        for whole in (False, True):
            found[f"formats, {rule}, whole {whole}"] = _in_formats(rule, whole, disturb)
    return found


def _in_formats(rule: Rule, whole: bool, disturb: Disturb) -> list[int]:
    """Return the item-format pairs of an interview on items of which each has a copy."""
    rng, modalities = np.random.default_rng(3), Modalities()
    shape = (6, len(modalities.parts))
    a, b = (np.repeat(rng.integers(1, 4, shape) / 4.0, 2, axis=0) for _ in range(2))
    items = MultimodalItems(modalities, "m3", 4.0, disturb(a), disturb(b))
    prior = Population(np.full(shape[1], -1.0), np.eye(shape[1]), items.bound)
    talk = FormatInterview(items, prior, rule, whole)
    while len(pairs := talk.ask(20 - talk.calls)) and talk.calls < 20:
        talk.tell((pairs % 3 > 0).astype(float))
    return talk.pairs.tolist()


def plain(value: Any) -> Any:
    """Return arrays and objects as JSON values."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


if __name__ == "__main__":
    sys.stdout.write(json.dumps(plain([choices(seed) for seed in range(2)])))
