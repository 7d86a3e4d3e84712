"""Shortest paths through a weighted graph that the question lists edge by edge."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Sequence

from pytest_adaptive_eval.tasks.family import Question, TaskFamily

__all__ = ["PATH_DENSITY", "PATH_NODES", "Edge", "path_question", "shortest", "size"]

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: Nodes of the graphs that grow denser.
FIXED_NODES = 11
#: A wide range of lengths, so that no single answer is often right.
SHORTEST_EDGE, LONGEST_EDGE = 10, 99

Edge = tuple[str, str, int]


def shortest(edges: Iterable[Edge], start: str, end: str) -> int:
    """Length of a shortest path, by Dijkstra's algorithm (1959).

    Raises
    ------
    ValueError
        No path joins the two.
    """
    beside: dict[str, list[tuple[str, int]]] = {}
    for a, b, length in edges:
        beside.setdefault(a, []).append((b, length))
        beside.setdefault(b, []).append((a, length))
    done: set[str] = set()
    queue = [(0, start)]
    while queue:
        far, node = heapq.heappop(queue)
        if node == end:
            return far
        if node not in done:
            done.add(node)
            for other, length in beside.get(node, ()):
                heapq.heappush(queue, (far + length, other))
    raise ValueError(f"no path joins {start} and {end}")


def path_question(edges: Sequence[Edge], start: str, end: str) -> Question:
    """How long the shortest way between two towns is.

    Raises
    ------
    ValueError
        No path joins them.
    """
    roads = ", ".join(f"{a}-{b} {length}" for a, b, length in edges)
    prompt = (
        f"Roads join towns, each with its length: {roads}. How long is the shortest way from {start} to {end}? "
        "End with the number."
    )
    return Question(prompt, str(shortest(edges, start, end)))


def size(family: str, level: int) -> tuple[int, int]:
    """Towns and roads of a level: about three roads a town where towns grow, as only the size is to matter."""
    if family == "path_nodes":
        n = level + 3
        return n, min(3 * n // 2, n * (n - 1) // 2)
    fewest, most = FIXED_NODES - 1, FIXED_NODES * (FIXED_NODES - 1) // 2
    return FIXED_NODES, fewest + (most - fewest) * level // 9


def _question(rng: random.Random, nodes: Sequence[str], edges: int) -> Question:
    """A connected graph: a random tree, and further edges between nodes that have none."""
    joined = [(rng.choice(nodes[:i]), nodes[i]) for i in range(1, len(nodes))]
    tree = set(joined)
    others = [(a, b) for i, b in enumerate(nodes) for a in nodes[:i] if (a, b) not in tree]
    joined += rng.sample(others, edges - len(joined))
    rng.shuffle(joined)
    weighted = [(a, b, rng.randrange(SHORTEST_EDGE, LONGEST_EDGE + 1)) for a, b in joined]
    start, end = rng.sample(nodes, 2)
    return path_question(weighted, start, end)


def _by(family: str) -> Callable[[random.Random, int], Question]:
    def draw(rng: random.Random, level: int) -> Question:
        nodes, edges = size(family, level)
        return _question(rng, rng.sample(LABELS, nodes), edges)

    return draw


PATH_NODES = TaskFamily("path_nodes", "towns, level + 3", 20, 0.02, _by("path_nodes"), "numeric", max_tokens=2048)
PATH_DENSITY = TaskFamily(
    "path_density", "roads among 11 towns, 10 + 5 * level", 9, 0.03, _by("path_density"), "numeric", max_tokens=2048
)
