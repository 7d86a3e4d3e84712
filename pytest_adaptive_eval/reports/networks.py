"""A network drawn: who is interviewed, the nodes with what they found, and the edges between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.text import clean_terminal

__all__ = ["network_lines", "network_picture"]

#: Of a box, and between boxes.
WIDTH, HEIGHT, ACROSS, DOWN = 190, 78, 60, 18
#: Characters of a name that fit into a box.
NAME = 26


def _columns(nodes: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Nodes by the length of the longest way to them."""
    depth: dict[str, int] = {}
    for _ in nodes:  # a way has no more edges than there are nodes
        for node in nodes:
            depth[node["name"]] = 1 + max((depth.get(name, 0) for name in node["after"]), default=0)
    columns: list[list[Mapping[str, Any]]] = [[] for _ in range(max(depth.values(), default=0))]
    for node in nodes:
        columns[depth[node["name"]] - 1].append(node)
    return columns


def _found(node: Mapping[str, Any]) -> str:
    """What a node found, as MACEval tells it, with bounds: ``2.1/3 of 5 (1.4 to 3.8)``."""
    area = node["area"]
    if area is None:
        return "closed"
    told = f"{area['estimate']:.3f}".rstrip("0").rstrip(".")
    return f"{told}/{node['last']} of {node['levels']} ({area['low']:.1f} to {area['high']:.1f})"


def _asks(node: Mapping[str, Any]) -> str:
    return f"{node['questions']} by {node['interviewer']}" if node["interviewer"] else "questions by code"


def network_picture(data: Mapping[str, Any]) -> Markup:
    """An SVG of a network: ways go from left to right, from the interviewee to the last nodes.

    Parameters
    ----------
    data : mapping
        As `studies.network.result.NetworkResult.to_json` gives it.  All names are cleaned and escaped.
    """
    columns = [[], *_columns(data["nodes"])]
    rows = max(1, *(len(column) for column in columns))
    height = rows * (HEIGHT + DOWN) + DOWN
    places: dict[str, tuple[int, float]] = {}
    for n, column in enumerate(columns):
        for k, node in enumerate(column):
            places[node["name"]] = (n * (WIDTH + ACROSS) + 10, (k + 0.5) * height / len(column) - HEIGHT / 2)
    start = (10, height / 2 - HEIGHT / 2)
    energy = data["energy"]
    parts = []
    for column in columns:
        for node in column:
            for name in node["after"] or [None]:
                parts.append(_edge(places[name] if name is not None else start, places[node["name"]], node))
    told = f"energy {energy['estimate']:.3f} ({energy['low']:.3f} to {energy['high']:.3f})"
    parts.append(_box(start, [data["interviewee"], told, _supervised(data)], "interviewee", True))
    for column in columns:
        for node in column:
            others = ", ".join(member["name"] for member in node["panel"][1:-1])
            lines = [node["name"], _found(node), _asks(node), f"with {others}" if others else f"task {node['task']}"]
            parts.append(_box(places[node["name"]], lines, "node", node["opened"]))
    width = len(columns) * (WIDTH + ACROSS) - ACROSS + 20
    summary = f"{data['topology']} network of {len(data['nodes'])} nodes; {told}"
    return tag(
        "svg",
        tag("title", summary),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height:.0f}",
        width=width,
        height=round(height),
        role="img",
        class_="network",
        font_family="sans-serif",
    )


def _supervised(data: Mapping[str, Any]) -> str:
    return f"supervised by {data['supervisor']}" if data["supervisor"] else "no supervisor"


def _edge(one: tuple[int, float], other: tuple[int, float], node: Mapping[str, Any]) -> Markup:
    x1, y1, x2, y2 = one[0] + WIDTH, one[1] + HEIGHT / 2, other[0], other[1] + HEIGHT / 2
    line = tag(
        "path",
        d=f"M{x1:.0f} {y1:.0f}C{x1 + 30:.0f} {y1:.0f} {x2 - 30:.0f} {y2:.0f} {x2:.0f} {y2:.0f}",
        fill="none",
        stroke="currentColor",
        stroke_dasharray=None if node["opened"] else "4 3",
    )
    share = tag(
        "text", f"{node['weight']:.2f}", x=float(x2 - 4), y=y2 - 5, font_size=10, text_anchor="end", fill="currentColor"
    )
    return tag("g", line, share, class_="edge")


def _box(place: tuple[int, float], lines: Sequence[str], kind: str, open_: bool) -> Markup:
    x, y = place
    frame = tag(
        "rect",
        x=float(x),
        y=y,
        width=WIDTH,
        height=HEIGHT,
        rx=6,
        fill="none",
        stroke="currentColor",
        stroke_width=2 if kind == "interviewee" else 1,
        stroke_dasharray=None if open_ else "4 3",
    )
    texts = [
        tag(
            "text",
            _cut(line),
            tag("title", line),
            x=x + 8.0,
            y=y + 18 + 17 * n,
            font_size=13 if n == 0 else 11,
            font_weight="bold" if n == 0 else None,
            fill="currentColor",
        )
        for n, line in enumerate(lines)
    ]
    return tag("g", frame, *texts, class_=kind)


def _cut(text: str) -> str:
    shown = " ".join(clean_html(text).split())
    return shown if len(shown) <= NAME + 6 else f"{shown[: NAME + 5]}…"


def network_lines(data: Mapping[str, Any], width: int = 100) -> list[str]:
    """The same for a terminal: one line a node, indented by the length of the way to it."""
    energy = data["energy"]
    head = (
        f"{data['interviewee']}: energy {energy['estimate']:.3f} ({energy['low']:.3f} to {energy['high']:.3f}), "
        f"{data['topology']} of {len(data['nodes'])}"
    )
    lines = [clean_terminal(head, width)]
    for depth, column in enumerate(_columns(data["nodes"])):
        for node in column:
            after = f" after {', '.join(node['after'])}" if node["after"] else ""
            told = f"{node['name']}: {_found(node)}, weight {node['weight']:.2f}, {_asks(node)}{after}"
            lines.append("  " * (depth + 1) + clean_terminal(told, width - 2 * (depth + 1)))
    return lines
