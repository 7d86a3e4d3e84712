"""Task families of shortest paths through a weighted graph, which the question lists edge by edge."""

from __future__ import annotations

import heapq
import random
import re
from collections.abc import Callable, Iterable, Sequence

from pytest_adaptive_eval.tasks.family import Content, Malformed, Question, TaskFamily, check_level, only_match

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: Nodes of the graphs of ``path_density``.
FIXED_NODES = 11
#: A wide range of lengths: no constant answer is often right.
SHORTEST_EDGE, LONGEST_EDGE = 10, 99

Edge = tuple[str, str, int]
#: Returns the numbers of towns and roads of a level.
Size = Callable[[int], tuple[int, int]]


def shortest(edges: Iterable[Edge], start: str, end: str) -> int:
    """Return the length of a shortest path, by Dijkstra's algorithm (1959); raise ValueError if there is none."""
    neighbours: dict[str, list[tuple[str, int]]] = {}
    for a, b, length in edges:
        neighbours.setdefault(a, []).append((b, length))
        neighbours.setdefault(b, []).append((a, length))
    visited = set()
    queue = [(0, start)]
    while queue:
        distance, node = heapq.heappop(queue)
        if node == end:
            return distance
        if node not in visited:
            visited.add(node)
            for other, length in neighbours.get(node, ()):
                heapq.heappush(queue, (distance + length, other))
    raise ValueError(f"no path joins {start} and {end}")


def _path_question(edges: Sequence[Edge], start: str, end: str) -> Question:
    roads = ", ".join(f"{a}-{b} {length}" for a, b, length in edges)
    prompt = f"Roads join towns, each with its length: {roads}. How long is the shortest way from {start} to {end}?"
    return Question(prompt, str(shortest(edges, start, end)))


def _draw_question(rng: random.Random, towns: int, roads: int) -> Question:
    """Draw a connected graph: a random tree, and further edges between nodes that have none."""
    nodes = rng.sample(LABELS, towns)
    joined = [(rng.choice(nodes[:i]), nodes[i]) for i in range(1, len(nodes))]
    tree = set(joined)
    others = []
    for i, b in enumerate(nodes):
        for a in nodes[:i]:
            if (a, b) not in tree:
                others.append((a, b))
    joined += rng.sample(others, roads - len(joined))
    rng.shuffle(joined)
    weighted = [(a, b, rng.randrange(SHORTEST_EDGE, LONGEST_EDGE + 1)) for a, b in joined]
    start, end = rng.sample(nodes, 2)
    return _path_question(weighted, start, end)


_ROAD = re.compile(r"\b([A-Z]) ?- ?([A-Z]):? ?(\d{1,4})\b")
_PATH = re.compile(r"\bfrom ([A-Z]) to ([A-Z])\b")


def _family(name: str, knob: str, levels: int, guess_floor: float, size: Size) -> TaskFamily:
    """Create a family from the numbers of towns and roads of each level."""

    def demand(level: int) -> str:
        towns, roads = size(level)
        return f"{towns} towns, each named by another capital letter, and {roads} roads of lengths from 10 to 99"

    def read(text: str, level: int, _: random.Random) -> Question:
        start, end = only_match(_PATH, text, "start and end")
        roads = [(a, b, int(length)) for a, b, length in _ROAD.findall(text)]
        towns: set[str] = set()
        joined = set()
        for a, b, _length in roads:
            towns |= {a, b}
            if a != b:
                joined.add(frozenset((a, b)))
        if len(joined) < len(roads) or start == end or not {start, end} <= towns:
            raise Malformed("format", "the roads do not make a map that has the start and the end")
        in_range = all(SHORTEST_EDGE <= length <= LONGEST_EDGE for *_, length in roads)
        check_level((len(towns), len(roads)) == size(level) and in_range, demand(level))
        try:
            return _path_question(roads, start, end)
        except ValueError as error:
            raise Malformed("format", str(error)) from None

    form = "Roads join towns, each with its length: A-B 25, B-C 31. How long is the shortest way from A to C?"
    return TaskFamily(
        name,
        knob,
        levels,
        guess_floor,
        lambda rng, level: _draw_question(rng, *size(level)),
        "numeric",
        content=Content(form, demand, read),
        form="End with `Answer: <number>`.",
    )


def _growing_size(level: int) -> tuple[int, int]:
    """Return towns and roads: three roads for two towns at every size."""
    towns = level + 3
    return towns, min(3 * towns // 2, towns * (towns - 1) // 2)


FAMILIES = (
    _family("path_nodes", "towns, level + 3", 20, 0.02, _growing_size),
    _family(
        "path_density", "roads among 11 towns, 10 + 5 * level", 9, 0.03, lambda level: (FIXED_NODES, 10 + 5 * level)
    ),
)
