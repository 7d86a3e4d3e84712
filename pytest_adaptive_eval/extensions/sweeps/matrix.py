"""The matrix of a sweep, for its table and its page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

from pytest_adaptive_eval.extensions.sweeps.cells import Cell, CellEnd, EvaluationFile, SweptModel
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.text import number
from pytest_adaptive_eval.ties import first_largest

#: Outcomes of a cell from the worst to the best.  A cell without a gate has none of them.
_WORST = (Outcome.ERROR, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
GLYPHS = {"PASS": "✓", "FAIL": "✕", "INCONCLUSIVE": "?", "ERROR": "!", "none": "–", "waiting": "·"}
#: One-sided confidence of the intervals along training steps.
_CONFIDENCE = 0.95


def state_of(end: CellEnd | None) -> str:
    """Return the worst outcome of a cell's gates, ``none`` without a gate, ``waiting`` before its end."""
    if end is None or end.died:
        return "waiting"
    if not end.finished:
        return "ERROR"
    outcomes = {str(gate.get("outcome")) for gate in end.gates}
    return next((outcome.value for outcome in _WORST if outcome.value in outcomes), "none")


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the matrix: one checkpoint on one evaluation file, with all seeds.

    Args:
        cells: Cells with their ends, one per seed.
    """

    cells: tuple[tuple[Cell, CellEnd | None], ...]
    state: str

    @property
    def text(self) -> str:
        """The first evaluation's estimate, the mean over seeds; empty without one."""
        estimates = [
            value
            for _, end in self.cells
            if end is not None and end.interviews and (value := end.interviews[0].get("estimate")) is not None
        ]
        return number(sum(estimates) / len(estimates), 2) if estimates else ""

    @property
    def facts(self) -> str:
        """Sentences of the gates and reasons, of all seeds."""
        texts = []
        for cell, end in self.cells:
            if end is not None and not end.died:
                sentences = [end.reason] if end.reason else [str(gate.get("sentence")) for gate in end.gates]
                prefix = f"seed {cell.seed}: " if len(self.cells) > 1 else ""
                texts.append(prefix + ("; ".join(sentences) or "no gate"))
        return " | ".join(texts)


class CurvePoint(NamedTuple):
    """Mean estimate of one checkpoint over the seeds, with its interval."""

    checkpoint: str
    step: int
    estimate: float
    low: float
    high: float


class Curve(NamedTuple):
    """Estimates of one evaluation along the training steps of one training run."""

    evaluation: str
    measure: str
    training_run: str
    points: tuple[CurvePoint, ...]


class Best(NamedTuple):
    """The checkpoint that did best in one evaluation or in all."""

    evaluation: str
    checkpoint: str
    reason: str


class Cost(NamedTuple):
    """Cost of all cells together."""

    questions: int
    calls: float
    tokens: float
    flops: float
    seconds: float
    gpu_seconds: float
    lost: int


class Matrix:
    """All cells of a sweep with their ends.

    Args:
        ends: By key, of the cells that ended.
    """

    def __init__(self, cells: Sequence[Cell], ends: Mapping[str, CellEnd], gpus: int = 0) -> None:
        self.ends, self.gpus = ends, gpus
        self.checkpoints: list[SweptModel] = list(dict.fromkeys(cell.checkpoint for cell in cells))
        self.evaluations: list[EvaluationFile] = list(dict.fromkeys(cell.evaluation for cell in cells))
        self._entries: dict[tuple[str, str], list[Cell]] = {}
        for cell in cells:
            self._entries.setdefault((cell.checkpoint.name, cell.evaluation.name), []).append(cell)
        self.states = Counter(state_of(ends.get(cell.key)) for cell in cells)

    def entry(self, checkpoint: SweptModel, evaluation: EvaluationFile) -> Entry:
        """Return one entry of the matrix."""
        cells = self._entries.get((checkpoint.name, evaluation.name), [])
        pairs = tuple((cell, self.ends.get(cell.key)) for cell in cells)
        states = [state_of(end) for _, end in pairs]
        order = ["ERROR", "FAIL", "INCONCLUSIVE", "waiting", "PASS", "none"]
        return Entry(pairs, min(states, key=order.index) if states else "waiting")

    def _interviews(self, checkpoint: SweptModel) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
        interviews: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for evaluation in self.evaluations:
            for cell in self._entries.get((checkpoint.name, evaluation.name), []):
                end = self.ends.get(cell.key)
                for interview in end.interviews if end is not None and end.finished else ():
                    interviews.setdefault((evaluation.name, str(interview.get("name"))), []).append(interview)
        return interviews

    def curves(self) -> list[Curve]:
        """Return the estimates along training steps, of training runs with at least two checkpoints."""
        points: dict[tuple[str, str, str], list[CurvePoint]] = {}
        for checkpoint in self.checkpoints:
            if checkpoint.step is None:
                continue
            for (file, name), interviews in self._interviews(checkpoint).items():
                title = name if name == file else f"{file}: {name}"
                measure = str(interviews[0].get("measure"))
                if interval := _mean_interval(interviews):
                    point = CurvePoint(checkpoint.name, checkpoint.step, *interval)
                    points.setdefault((title, measure, checkpoint.training_run), []).append(point)
        return [
            Curve(*key, tuple(sorted(curve_points, key=lambda point: point.step)))
            for key, curve_points in points.items()
            if len({point.step for point in curve_points}) > 1
        ]

    def best(self) -> list[Best]:
        """Return the best checkpoint of all evaluations together, then that of each.

        All together, it is the one with most passed gates, and among these the highest mean of the estimates, each
        standardised over the checkpoints. Checkpoints with an unfinished evaluation are excluded.
        """
        estimates: dict[tuple[str, str], dict[str, float]] = {}
        for checkpoint in self.checkpoints:
            for key, interviews in self._interviews(checkpoint).items():
                if interval := _mean_interval(interviews):
                    estimates.setdefault(key, {})[checkpoint.name] = interval[0]
        choices = []
        if overall := self._best_of_all(estimates):
            choices.append(overall)
        for (file, name), values in estimates.items():
            if len(values) > 1:
                best = list(values)[int(first_largest(list(values.values())))]
                title = name if name == file else f"{file}: {name}"
                choices.append(Best(title, best, f"{number(values[best], 2)}, the highest of {len(values)}"))
        return choices

    def _best_of_all(self, estimates: Mapping[tuple[str, str], Mapping[str, float]]) -> Best | None:
        whole = [c.name for c in self.checkpoints if all(c.name in values for values in estimates.values())]
        if len(whole) < 2 or not estimates:
            return None
        passed: Counter[str] = Counter()
        gates: Counter[str] = Counter()
        for (name, _), cells in self._entries.items():
            for gate in (gate for cell in cells if cell.key in self.ends for gate in self.ends[cell.key].gates):
                gates[name] += 1
                passed[name] += gate.get("outcome") == Outcome.PASS.value
        scores = dict.fromkeys(whole, 0.0)
        for values in estimates.values():
            mean = sum(values[name] for name in whole) / len(whole)
            spread = math.sqrt(sum((values[name] - mean) ** 2 for name in whole) / len(whole))
            for name in whole:
                scores[name] += (values[name] - mean) / spread / len(estimates) if spread else 0.0
        most = max(passed[name] for name in whole)
        candidates = [name for name in whole if passed[name] == most]
        best = candidates[int(first_largest([scores[name] for name in candidates], 1.0))]
        reason = f"{passed[best]} of {gates[best]} gates passed; its estimates lie {number(scores[best], 2)} standard "
        return Best("all evaluations", best, reason + f"deviations above the mean of {len(whole)} checkpoints")

    def cost(self) -> Cost:
        """Return the cost of the cells."""
        ends = [end for end in self.ends.values() if not end.died]
        interviews = [interview for end in ends for interview in end.interviews]

        def total(name: str) -> float:
            return sum(float(interview.get(name) or 0) for interview in interviews)

        seconds = sum(end.seconds for end in ends)
        lost = sum(end.attempts - 1 for end in ends)
        return Cost(
            int(total("asked")), total("calls"), total("tokens"), total("flops"), seconds, seconds * self.gpus, lost
        )


def _mean_interval(interviews: Sequence[Mapping[str, Any]]) -> tuple[float, float, float] | None:
    """Return the mean estimate over seeds, and its interval as if the seeds shared their questions."""
    estimated = [interview for interview in interviews if isinstance(interview.get("estimate"), int | float)]
    if not estimated:
        return None
    bounds = [_interval(interview) for interview in estimated]
    estimate, low, high = (sum(values) / len(values) for values in zip(*bounds, strict=True))
    return estimate, low, high


def _interval(interview: Mapping[str, Any]) -> tuple[float, float, float]:
    estimate = float(interview["estimate"])
    low, high, error = interview.get("low"), interview.get("high"), interview.get("error")
    if isinstance(low, int | float) and isinstance(high, int | float):
        return estimate, float(low), float(high)
    half = NormalDist().inv_cdf(_CONFIDENCE) * float(error) if isinstance(error, int | float) else 0.0
    return estimate, estimate - half, estimate + half
