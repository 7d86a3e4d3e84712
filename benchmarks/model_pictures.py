"""MACEval's pictures over several models, from the records of their runs, of a merge or of a sweep.

``python -m benchmarks.model_pictures RECORD.json ... [--output FOLDER]`` reads ladders and networks, and writes SVG:

- ``curves-TASK.svg`` (Fig. 5): accuracy at each level, a line for each model;
- ``tasks.svg`` (Fig. 6): Pearson correlation of the areas of each two tasks over the models;
- ``levels.svg`` (Fig. 7): last level against the area under the accuracies, a point for each model and task;
- ``energies.svg`` (Fig. 10): energy of each network and model with its interval.

It prints the order of the models in each of them, and the Pearson correlation of Fig. 7. Of two results of one model
and one task, the later file counts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from pytest_adaptive_eval.extensions.studies.report_sections.network import NetworkAccount
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import EvaluationRecord

#: Okabe and Ito's colours for colour-blind readers. The ninth model and later ones repeat them with dashed lines and
#: hollow points.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00")
#: Edges of the plane of a picture with axes, in pixels.
LEFT, RIGHT, TOP, BOTTOM = 60, 490, 56, 350
#: Height of a bar with its gap, side of a cell, height of a line of the legend, and width of a letter, in pixels.
BAR, CELL, ROW, LETTER = 26, 64, 18, 7
SHARES = (0, 0.25, 0.5, 0.75, 1)  #: Ticks of an axis from 0 to 1.


@dataclass(frozen=True)
class Curve:
    """Result of one model at one task: accuracy by level from 1, its area, and the last level above the limit."""

    model: str
    task: str
    accuracies: tuple[float, ...]
    area: float
    last_level: int


@dataclass(frozen=True)
class Found:
    """Curves by task and model, energies by network and model; models by their mean area, the best first."""

    curves: Mapping[str, Mapping[str, Curve]]
    energies: Mapping[str, Mapping[str, Interval]]
    models: Sequence[str]

    @property
    def tasks(self) -> list[str]:
        """Tasks in the order of the records."""
        return list(self.curves)


def read(paths: Iterable[Path]) -> Found:
    """Return the ladders and networks of records."""
    curves: dict[str, dict[str, Curve]] = {}
    energies: dict[str, dict[str, Interval]] = {}
    for path in paths:
        for evaluation in read_run(path).evaluations:
            for curve in _curves(evaluation):
                curves.setdefault(curve.task, {})[curve.model] = curve
            if evaluation.kind == "network" and not evaluation.void:
                energy = msgspec.convert(dict(evaluation.account), NetworkAccount).energy
                energies.setdefault(evaluation.evaluation_name, {})[evaluation.subject.name] = energy
    climbed = [model for by_model in curves.values() for model in by_model]
    networked = [model for by_model in energies.values() for model in by_model]
    models = sorted(dict.fromkeys(climbed + networked), key=lambda model: -_mean_area(curves, model))
    return Found(curves, energies, models)


def _curves(evaluation: EvaluationRecord) -> Iterator[Curve]:
    """Yield the ladder of an interview, or those of a network's nodes."""
    model, levels = evaluation.subject.name, evaluation.levels
    if evaluation.void:
        return
    if levels and levels.auc and levels.last_level is not None and None not in levels.accuracy:
        accuracies = tuple(float(share) for share in levels.accuracy if share is not None)
        yield Curve(model, evaluation.evaluation_name, accuracies, levels.auc.estimate, levels.last_level)
    elif evaluation.kind == "network":
        for node in msgspec.convert(dict(evaluation.account), NetworkAccount).nodes:
            if node.opened and node.area:
                accuracies = tuple(_mean(level) for level in node.scores)
                name = f"{evaluation.evaluation_name}: {node.name}"
                yield Curve(model, name, accuracies, node.area.estimate, node.last)


def _mean(scores: Sequence[float | None]) -> float:
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if known else math.nan


def _mean_area(curves: Mapping[str, Mapping[str, Curve]], model: str) -> float:
    areas = [by_model[model].area for by_model in curves.values() if model in by_model]
    return math.fsum(areas) / len(areas) if areas else 0.0


def pearson(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Pearson's correlation; NaN of fewer than three pairs, or where one side is the same for all."""
    x, y = np.array(first, dtype=float), np.array(second, dtype=float)
    if len(x) < 3 or not np.ptp(x) or not np.ptp(y):
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def task_correlations(found: Found) -> np.ndarray:
    """Return the correlation of the areas of each two tasks over their common models, shape (T, T)."""
    table = np.full((len(found.tasks), len(found.tasks)), math.nan)
    for row, first in enumerate(found.tasks):
        for column, second in enumerate(found.tasks):
            common = [model for model in found.models if model in found.curves[first] and model in found.curves[second]]
            areas = [[found.curves[task][model].area for model in common] for task in (first, second)]
            table[row, column] = pearson(*areas)
    return table


def level_correlation(found: Found) -> float:
    """Return the correlation of last level and area over all models and tasks."""
    curves = [curve for by_model in found.curves.values() for curve in by_model.values()]
    return pearson([curve.last_level for curve in curves], [curve.area for curve in curves])


# Drawing


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "#222", turn: int = 0) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" transform="rotate({turn} {x:.1f} {y:.1f})"'
    return f'<text {place} fill="{colour}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#ddd", width: float = 1, dashes: str = "") -> str:
    style = f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes or "none"}"'
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" {style} fill="none"/>'


def _point(x: float, y: float, found: Found, model: str) -> str:
    colour = _colour(found, model)
    fill = "#fff" if _repeats(found, model) else colour
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="2"/>'


def _svg(parts: Sequence[str], title: str, width: float, height: float) -> str:
    width = max(width, LEFT + 9 * len(title))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
    style = 'font-family="sans-serif" font-size="12"'
    ground = f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    heading = f'<text x="16" y="20" font-size="14" font-weight="bold" fill="#222">{escape(title)}</text>'
    return "\n".join([f"{head} {style}><title>{escape(title)}</title>", ground, heading, *parts, "</svg>\n"])


def _length(names: Iterable[str]) -> int:
    """Return the width of the longest name, in pixels."""
    return LETTER * max(map(len, names))


def _colour(found: Found, model: str) -> str:
    return COLOURS[found.models.index(model) % len(COLOURS)]


def _repeats(found: Found, model: str) -> bool:
    """Return whether an earlier model has the same colour."""
    return found.models.index(model) >= len(COLOURS)


def _with_legend(parts: Sequence[str], found: Found, title: str) -> str:
    """Return a picture with axes, and the names of the models at its right."""
    legend = []
    for n, model in enumerate(found.models):
        y = TOP + ROW * n
        legend += [_point(RIGHT + 24, y, found, model), _text(RIGHT + 34, y + 4, model)]
    height = max(BOTTOM, TOP + ROW * len(found.models)) + 50
    return _svg([*parts, *legend], title, RIGHT + 50 + _length(found.models), height)


class _Plane:
    """A plane with axes, whose largest values lie at the right and the upper end."""

    def __init__(self, most_x: float, most_y: float) -> None:
        self.most_x, self.most_y = max(most_x, 1e-9), max(most_y, 1e-9)

    def x(self, value: float) -> float:
        return LEFT + (RIGHT - LEFT) * value / self.most_x

    def y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / self.most_y

    def axes(self, ticks_x: Sequence[float], ticks_y: Sequence[float], name_x: str, name_y: str) -> list[str]:
        """Return grid lines with their numbers, and the names of both axes."""
        parts = []
        for tick in ticks_y:
            parts += [_line(LEFT, self.y(tick), RIGHT, self.y(tick))]
            parts += [_text(LEFT - 8, self.y(tick) + 4, f"{tick:g}", "end")]
        parts += [_text(self.x(tick), BOTTOM + 18, f"{tick:g}", "middle") for tick in ticks_x]
        return [*parts, _text((LEFT + RIGHT) / 2, BOTTOM + 38, name_x, "middle"), _text(16, TOP - 14, name_y)]


def curves_picture(found: Found, task: str) -> str:
    """Return accuracy by level at one task, a line for each model."""
    by_model = found.curves[task]
    most = max(len(curve.accuracies) for curve in by_model.values())
    plane = _Plane(most, 1.0)
    parts = plane.axes(range(1, most + 1), SHARES, "level", "accuracy")
    for model in (model for model in found.models if model in by_model):
        places = [(plane.x(level), plane.y(value)) for level, value in enumerate(by_model[model].accuracies, 1)]
        known = [place for place in places if not math.isnan(place[1])]
        dashes = "6 4" if _repeats(found, model) else ""
        parts += [_line(*start, *end, _colour(found, model), 2, dashes) for start, end in pairwise(known)]
        parts += [_point(*place, found, model) for place in known]
    return _with_legend(parts, found, task)


def tasks_picture(found: Found) -> str:
    """Return the correlation of the areas of each two tasks as a table of colours."""
    table, names = task_correlations(found), _length(found.tasks)
    left, top, side = names + 30, 36, CELL * len(found.tasks)
    parts = []
    for row, task in enumerate(found.tasks):
        parts.append(_text(left - 8, top + CELL * (row + 0.5) + 4, task, "end"))
        parts.append(_text(left + CELL * (row + 0.5), top + side + 12, task, "end", turn=-40))
        for column, value in enumerate(table[row]):
            x, y = left + CELL * column, top + CELL * row
            shade = "#eee" if math.isnan(value) else _shade(float(value))
            parts.append(f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" fill="{shade}"/>')
            shown = "-" if math.isnan(value) else f"{round(value, 2) + 0.0:.2f}"
            parts.append(_text(x + CELL / 2, y + CELL / 2 + 4, shown, "middle", "#fff" if abs(value) > 0.6 else "#222"))
    return _svg(parts, "Pearson correlation of areas", left + side + 16, top + side + 20 + 0.65 * names)


def _shade(value: float) -> str:
    """Return white for 0, blue for 1 and orange for -1."""
    end = (0, 114, 178) if value > 0 else (213, 94, 0)
    red, green, blue = (round(255 + (channel - 255) * min(abs(value), 1.0)) for channel in end)
    return f"#{red:02x}{green:02x}{blue:02x}"


def levels_picture(found: Found) -> str:
    """Return last level against area, a point for each model and task."""
    curves = [curve for by_model in found.curves.values() for curve in by_model.values()]
    most_x = max(max(curve.last_level for curve in curves), 1)
    most_y = max(math.ceil(max(curve.area for curve in curves)), 1)
    plane = _Plane(most_x, most_y)
    parts = plane.axes(range(most_x + 1), range(most_y + 1), "last level", "area")
    parts += [_point(plane.x(one.last_level), plane.y(one.area), found, one.model) for one in curves]
    return _with_legend(parts, found, f"Last level and area, Pearson {level_correlation(found):.2f}")


def energies_picture(found: Found) -> str:
    """Return the energy of each network and model as bars with intervals, the highest first."""
    rows = _energy_rows(found)
    left = _length(f"{model}, {network}" for network, model, _ in rows) + 30
    bottom = TOP + BAR * len(rows)

    def x(value: float) -> float:
        return left + (RIGHT - LEFT) * max(value, 0.0)

    parts = [_line(x(tick), TOP, x(tick), bottom) for tick in SHARES]
    parts += [_text(x(tick), bottom + 18, f"{tick:g}", "middle") for tick in SHARES]
    for n, (network, model, interval) in enumerate(rows):
        y, length = TOP + BAR * n, x(interval.estimate) - left
        parts.append(_text(left - 8, y + BAR / 2 + 4, f"{model}, {network}", "end"))
        parts.append(
            f'<rect x="{left}" y="{y + 4}" width="{length:.1f}" height="{BAR - 8}" fill="{_colour(found, model)}" '
            'opacity=".75"/>'
        )
        parts.append(_line(x(interval.low), y + BAR / 2, x(interval.high), y + BAR / 2, "#222", 1.5))
        parts.append(_text(x(interval.high) + 6, y + BAR / 2 + 4, f"{interval.estimate:.2f}"))
    return _svg(parts, "Network energy", x(1) + 50, bottom + 30)


def _energy_rows(found: Found) -> list[tuple[str, str, Interval]]:
    rows = [
        (network, model, interval)
        for network, by_model in found.energies.items()
        for model, interval in by_model.items()
    ]
    return sorted(rows, key=lambda row: (row[0], -row[2].estimate))


def pictures(found: Found) -> dict[str, str]:
    """Return all pictures by file name."""
    drawn = {}
    for task in found.tasks:
        name = "".join(letter if letter.isalnum() else "-" for letter in task)
        drawn[f"curves-{name}.svg"] = curves_picture(found, task)
    if found.tasks:
        drawn |= {"tasks.svg": tasks_picture(found), "levels.svg": levels_picture(found)}
    if found.energies:
        drawn["energies.svg"] = energies_picture(found)
    return drawn


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pictures, and print the order of the models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD.json")
    parser.add_argument("--output", type=Path, default=Path("pictures"), metavar="FOLDER", help="(%(default)s)")
    options = parser.parse_args(arguments)
    found = read(options.records)
    if not found.models:
        parser.error("the records have neither a ladder nor a network with results")
    options.output.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures(found).items():
        (options.output / name).write_text(picture, encoding="utf-8")
        print(options.output / name)
    for task, by_model in found.curves.items():
        ordered = sorted(by_model.values(), key=lambda curve: -curve.area)
        print(f"{task}:", ", ".join(f"{one.model} {one.area:.2f}/{one.last_level}" for one in ordered))
    for network, model, interval in _energy_rows(found):
        print(f"{network} (energy): {model} {interval.in_words(2)}")
    if found.tasks:
        print(f"last level and area: Pearson {level_correlation(found):.3f}")


if __name__ == "__main__":
    main()
