"""Draw the pictures of the concept pages into ``docs/images``: ``python docs/_build/drawings.py``.

They illustrate ideas and show no measurements.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "images"
BLUE, ORANGE, GREY, INK = "#2166ac", "#c2570c", "#8a8a8a", "#222222"
WIDTH = 640


def text(x: float, y: float, words: str, *, color: str = INK, anchor: str = "start") -> str:
    """Return a text whose baseline begins, ends or is centred at a point."""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">{words}</text>'


def line(points: Iterable[tuple[float, float]], color: str, *, width: float = 2, dashes: str = "none") -> str:
    """Return a line through points."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    stroke = f'stroke="{color}" stroke-width="{width}" stroke-dasharray="{dashes}"'
    return f'<polyline points="{joined}" fill="none" {stroke}/>'


def disc(x: float, y: float, color: str, radius: float = 5) -> str:
    """Return a filled disc."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>'


def picture(title: str, height: int, parts: Iterable[str]) -> str:
    """Return an SVG file with a white background, which a dark page can show."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="14">'
    ground = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([head, f"<title>{title}</title>", ground, *parts, "</svg>", ""])


def verdicts() -> str:
    """Draw four intervals and a threshold."""
    parts = [
        line([(330, 34), (330, 190)], INK, dashes="5 4"),
        text(330, 24, "threshold .60", anchor="middle"),
        text(150, 210, "lower accuracy", color=GREY),
        text(620, 210, "higher accuracy", color=GREY, anchor="end"),
    ]
    for row, (name, low, high, color) in enumerate(
        [
            ("PASS", 360, 480, BLUE),
            ("FAIL", 180, 300, ORANGE),
            ("INCONCLUSIVE", 260, 400, GREY),
            ("PASS", 336, 600, BLUE),
        ]
    ):
        y = 60 + 38 * row
        parts += [line([(low, y), (high, y)], color, width=6), disc((low + high) / 2, y, color, 7)]
        parts.append(text(20, y + 5, name, color=color))
    return picture("An interval above the threshold is PASS, one below is FAIL", 225, parts)


def item_curves() -> str:
    """Draw the chance of a right answer along the ability, for three items."""

    def x(ability: float) -> float:
        return 70 + (ability + 4) * 65

    def y(chance: float) -> float:
        return 210 - 180 * chance

    parts = [
        line([(70, 30), (70, 210), (590, 210)], INK, width=1),
        line([(70, y(0.5)), (590, y(0.5))], GREY, dashes="3 4"),
    ]
    parts += [text(60, y(value) + 5, label, anchor="end") for value, label in ((0, "0"), (0.5, ".5"), (1, "1"))]
    parts += [text(x(value), 230, f"{value}", anchor="middle") for value in range(-4, 5, 2)]
    parts.append(text(330, 252, "ability, in logits", anchor="middle"))
    for slope, difficulty, color, label, place in (
        (1.0, -1.5, BLUE, "easy", (150, 75)),
        (1.0, 1.5, ORANGE, "hard", (470, 145)),
        (3.0, 0.0, INK, "separates sharply", (368, 78)),
    ):
        steps = [step / 10 for step in range(-40, 41)]
        parts.append(line([(x(a), y(1 / (1 + math.exp(-slope * (a - difficulty))))) for a in steps], color))
        parts.append(text(*place, label, color=color))
    return picture("Chance of a right answer along the ability, for three items", 265, parts)


def wealth() -> str:
    """Draw the wealth of a gambler who bets that an accuracy is above .60, where it is .80."""
    draws, rng, fortune, path = 60, random.Random(10), 1.0, [1.0]
    while len(path) <= draws and fortune < 20:
        right = rng.random() < 0.8
        fortune *= 1 + 0.8 * ((1.0 if right else 0.0) - 0.6)
        path.append(fortune)

    def at(draw: int, value: float) -> tuple[float, float]:
        return 70 + draw * 520 / draws, 200 - 150 * (math.log10(value) + 0.5) / (math.log10(20) + 0.5)

    parts = [line([(70, 30), (70, 210), (590, 210)], INK, width=1)]
    parts += [
        line([at(0, 20), at(draws, 20)], INK, dashes="5 4"),
        text(590, at(0, 20)[1] - 8, "PASS at 20", anchor="end"),
    ]
    parts += [
        line([at(0, 1), at(draws, 1)], GREY, dashes="2 4"),
        text(590, at(0, 1)[1] + 18, "start", color=GREY, anchor="end"),
    ]
    parts += [
        line([at(draw, value) for draw, value in enumerate(path)], BLUE),
        disc(*at(len(path) - 1, path[-1]), BLUE),
    ]
    parts += [text(62, at(0, value)[1] + 5, f"{value}", anchor="end") for value in (1, 20)]
    parts += [text(20, 20, "wealth"), text(330, 232, "questions drawn", anchor="middle")]
    return picture("A gambler's wealth rises until it reaches 20", 245, parts)


def networks() -> str:
    """Draw the four topologies of networks."""
    shapes = {
        "line": [(20, 60), (60, 60), (100, 60)],
        "star": [(60, 60), (20, 30), (100, 30), (20, 90), (100, 90)],
        "tree": [(60, 25), (25, 60), (95, 60), (10, 95), (45, 95)],
        "hybrid": [(15, 60), (60, 25), (60, 95), (105, 60)],
    }
    edges = {
        "line": [(0, 1), (1, 2)],
        "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
        "tree": [(0, 1), (0, 2), (1, 3), (1, 4)],
        "hybrid": [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)],
    }
    parts = []
    for column, (name, nodes) in enumerate(shapes.items()):
        left = 20 + column * 155
        parts += [line([(left + nodes[i][0], nodes[i][1]) for i in edge], GREY) for edge in edges[name]]
        parts += [disc(left + a, b, ORANGE if name == "star" and not i else BLUE, 9) for i, (a, b) in enumerate(nodes)]
        parts.append(text(left + 60, 130, name, anchor="middle"))
    return picture("Four topologies: line, star, tree and hybrid", 145, parts)


DRAWINGS = {"verdicts.svg": verdicts, "item-curves.svg": item_curves, "wealth.svg": wealth, "networks.svg": networks}

if __name__ == "__main__":
    for name, draw in DRAWINGS.items():
        (FOLDER / name).write_text(draw(), "utf-8")
