"""Fixture checkpoints as real networks: energy of an early and a late one, loads, a served interviewer, coverage.

``python -m benchmarks.network_energy [--seeds 10]`` interviews text-early and text-late in a line, a star, a tree and a
hybrid network with a panel, with questions by code, and prints energies and in how many seeds the late one is ahead;
then the same with a coded interviewer that claims a wrong answer to half of its questions.

``--loads`` holds one network with all roles played by real checkpoints, with room for one, two and all of them in
memory. ``--transformers PATH`` has the checkpoint ``interviewer`` write questions and supervise in this process and
behind ``transformers serve`` on loopback (PATH is that command), and compares. ``--coverage`` simulates interviewees
with random curves and counts how often the bounds hold. ``--thresholds`` gates interviewees of equal accuracy on all
levels with the threshold at their energy, and prints the shares of PASS and FAIL, 2 000 networks per cell;
``--networks``, ``--nodes``, ``--accuracies`` and ``--questions`` choose other numbers and cells.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import torch

from benchmarks.interviewer_served import server
from benchmarks.network_agents import CodedAgent, writer
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.node_result import NodeResult
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult, energy, energy_difference
from pytest_adaptive_eval.ladder.policy import Climb
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel
from pytest_adaptive_eval.models.endpoint.model import EndpointModel
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.store import CompletionStore

CHECKPOINTS = Path(__file__).resolve().parent.parent / "fixtures" / "checkpoints"
ADDITION, OPERATIONS = (
    {"task": "addition", "size": "small", "levels": 5},
    {"task": "operations", "size": "small", "levels": 8},
)
COUNTING, ORDER = (
    {"task": "counting", "size": "small", "levels": 8},
    {"task": "post_order", "size": "small", "levels": 8},
)
UNSCRAMBLE = {"task": "unscramble", "size": "small", "levels": 6}
TOPOLOGIES: dict[str, list[dict[str, Any]]] = {
    "line": [ADDITION, OPERATIONS],
    "star": [ADDITION, OPERATIONS, COUNTING, ORDER, UNSCRAMBLE],
    "tree": [
        ADDITION,
        {**OPERATIONS, "after": "addition", "opens_at": 0.5},
        {**ORDER, "after": "operations", "opens_at": 1.0},
        {**UNSCRAMBLE, "after": "addition", "opens_at": 0.5},
    ],
    "hybrid": [
        COUNTING,
        {**ADDITION, "after": "counting"},
        {**OPERATIONS, "after": ["counting", "addition"]},
        {**UNSCRAMBLE, "after": "counting", "panel": ["text-mid"], "cycles": 1},
    ],
}
NAMES = ("text-early", "text-late")
WRITABLE = ("addition", "operations", "counting", "post_order")


def subject(name: str) -> TransformersModel:
    """A checkpoint as an interviewee."""
    return TransformersModel.load(CHECKPOINTS / name, device="cpu", max_tokens=16, batch_size=32)


def pool(capacity: int | None = None, **more: Any) -> ModelPool:
    """The checkpoints, and agents besides."""
    loaders: dict[str, Any] = {name: (lambda name=name: subject(name)) for name in (*NAMES, "text-mid")}
    loaders["interviewer"] = lambda: TransformersModel.load(CHECKPOINTS / "interviewer", device="cpu")
    return ModelPool(loaders | more, capacity)


def told(result: NetworkResult) -> str:
    """Energy with bounds, and each node."""
    found = result.energy
    nodes = ", ".join(f"{node.name} {node.ladder if node.opened else 'closed'}" for node in result.nodes)
    return f"{found.estimate:.3f} [{found.low:.3f}, {found.high:.3f}] ({nodes})"


def compare(seeds: int, held: ModelPool, interviewer: str = "") -> None:
    """Early and late in each topology."""
    for topology, nodes in TOPOLOGIES.items():
        ahead = sure = wrong = claims = 0
        energies: list[list[float]] = []
        for seed in range(100, 100 + seeds):
            asked = [{**n, "interviewer": interviewer if n["task"] in WRITABLE else ""} for n in nodes]
            data = {"topology": topology, "seed": seed, "node": asked}
            early, late = (hold_network(read_network(data, name), held) for name in NAMES)
            energies.append([early.energy.estimate, late.energy.estimate])
            ahead += early.energy.estimate < late.energy.estimate
            sure += energy_difference(late, early).low > 0
            claims += sum(node.counts.get("claims", 0) for result in (early, late) for node in result.nodes)
            wrong += sum(node.counts.get("wrong_claims", 0) for result in (early, late) for node in result.nodes)
            if seed == 100:
                print(f"{topology}, seed 100: early {told(early)}; late {told(late)}")
        means = np.mean(energies, axis=0)
        print(
            f"{topology}: late ahead in {ahead} of {seeds} seeds, surely (95 %) in {sure}; mean energy early "
            f"{means[0]:.3f}, late {means[1]:.3f}" + (f"; {wrong} of {claims} claims wrong" if claims else ""),
            flush=True,
        )


def loads() -> None:
    """One network with real checkpoints in all roles and little memory."""
    nodes = [
        {**ADDITION, "levels": 3, "interviewer": "interviewer"},
        {**OPERATIONS, "levels": 3, "interviewer": "interviewer"},
        {**UNSCRAMBLE, "levels": 3, "panel": ["text-mid"], "cycles": 1},
    ]
    data = {"topology": "hybrid", "queries": 4, "retries": 0, "supervisor": "interviewer", "node": nodes}
    kept = CompletionStore()
    for capacity in (None, 2, 1):
        begun = time.perf_counter()
        result = hold_network(
            read_network(data, "text-late"), pool(capacity), replies=kept if capacity is None else None
        )
        print(
            f"room for {capacity or 'all'}: {sum(result.loads.values())} loads {dict(result.loads)}, "
            f"{time.perf_counter() - begun:.1f} s, energy {told(result)}",
            flush=True,
        )
    again = hold_network(read_network(data, "text-late"), pool(1), replies=kept)
    print(f"all known: {again.recalled} of {len(kept)} calls recalled, loads {dict(again.loads)} to see who they are")


def served(command: str) -> None:
    """The interviewer checkpoint in two roles, here and on a server."""
    nodes = [{**node, "levels": 2, "interviewer": "interviewer"} for node in (ADDITION, OPERATIONS)]
    data = {"topology": "star", "queries": 5, "retries": 1, "supervisor": "interviewer", "node": nodes}
    network = read_network(data, "text-late")
    with server(command) as url:
        agent: dict[str, Callable[[], Any]] = {
            "interviewer": lambda: EndpointModel.load(url, str(CHECKPOINTS / "interviewer"))
        }
        far = ModelPool({"text-late": lambda: subject("text-late"), **agent}, 1, remote=["interviewer"])
        for name, held in (("in process", pool(1)), ("served", far)):
            begun = time.perf_counter()
            result = hold_network(network, held, concurrency=4)
            asked = sum(node.usage["interviewer"].calls + node.usage["supervisor"].calls for node in result.nodes)
            counts = [dict(node.counts) for node in result.nodes]
            print(
                f"{name}: {told(result)}; {asked} calls to the agent, loads {dict(result.loads)}, "
                f"{time.perf_counter() - begun:.1f} s; counts {counts}",
                flush=True,
            )


def coverage(draws: int) -> None:
    """How often the bounds of an energy hold."""
    cap, weights = 6, np.array([0.4, 0.3, 0.2, 0.1])
    for queries in (5, 10, 20, 50):
        rng = np.random.default_rng(queries)
        held = np.zeros(3)
        for _ in range(draws):
            truth, nodes = 0.0, []
            for n, weight in enumerate(weights):
                curve = 1.0 / (1.0 + np.exp(rng.uniform(0.7, 3.0) * (np.arange(1, cap + 1) - rng.uniform(0, cap + 1))))
                truth += float(weight * curve.sum() / cap)
                nodes.append(node_of(n, queries, float(weight), climbed(rng, curve, queries), cap))
            found = energy(nodes)
            held += [found.low <= truth, found.high >= truth, found.high - found.low]
        low, high, width = held / draws
        print(f"{queries} queries: low holds {low:.3f}, high {high:.3f}, mean width {width:.3f}", flush=True)


def node_of(number: int, queries: int, weight: float, scores: list[Any], cap: int = 6) -> NodeResult:
    """A node of a task that was asked by code."""
    plain = (str(number), "", "", "", "task", cap, queries, 0.0, weight, 0.0, (), "", "code", True)
    return NodeResult(*plain, scores=tuple(scores))


def climbed(rng: np.random.Generator, accuracies: Any, queries: int) -> list[Any]:
    """Scores of the levels of one climb."""
    levels: list[Any] = []
    for accuracy in accuracies:
        levels.append((rng.random(queries) < accuracy).astype(float))
        if Climb(queries).side(levels[-1]) < 0:
            break
    return levels


def thresholds(networks: int, nodes: list[int], accuracies: list[float], questions: list[int]) -> None:
    """Wrong verdicts where the threshold is the energy."""
    for count, accuracy, queries in product(nodes, accuracies, questions):
        rng, wrong = np.random.default_rng([count, queries]), np.zeros(2)
        for _ in range(networks):
            curves = (climbed(rng, [accuracy] * 6, queries) for _ in range(count))
            found = energy([node_of(n, queries, 1.0 / count, levels) for n, levels in enumerate(curves)])
            wrong += [found.low >= accuracy, found.high < accuracy]
        passed, failed = wrong / networks
        cell = f"{count:>2} nodes, accuracy {accuracy}, {queries:>2} questions"
        print(f"{cell}: PASS {passed:.3f}, FAIL {failed:.3f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--loads", action="store_true")
    parser.add_argument("--transformers", default="")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--thresholds", action="store_true")
    parser.add_argument("--networks", type=int, default=2000)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 3, 8, 16])
    parser.add_argument("--accuracies", type=float, nargs="+", default=[0.5, 0.9, 0.98])
    parser.add_argument("--questions", type=int, nargs="+", default=[5, 10, 50])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.thresholds:
        thresholds(options.networks, options.nodes, options.accuracies, options.questions)
        return
    if options.coverage:
        coverage(2000)
    elif options.loads:
        loads()
    elif options.transformers:
        served(options.transformers)
    else:
        compare(options.seeds, pool())
        compare(options.seeds, pool(liar=lambda: CodedAgent("liar", writer(wrong=0.5))), "liar")


if __name__ == "__main__":
    main()
