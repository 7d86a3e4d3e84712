"""The page's section on ability components: all calibration subjects and the tested one, and the items of each end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.plots import mirrored_bars, stacked_bars
from pytest_adaptive_eval.reports.questions import Thumbnail, thumbnail
from pytest_adaptive_eval.text import number

if TYPE_CHECKING:
    from pytest_adaptive_eval.irt.multimodal import FormatScale
    from pytest_adaptive_eval.items.bank import ItemBank

_SUBJECTS, _ITEMS = 30, 4  #: Most subjects in the picture, and items at either end.
_TEXT, _NAME = 400, 60


@dataclass(frozen=True, slots=True)
class Extreme:
    """Item with a very high or low gain; `facts` holds its gain and its difficulty by component.

    Components that lie at a bound for most items are left out.
    """

    name: str
    text: str
    pictures: list[Thumbnail]
    facts: str


@dataclass(frozen=True, slots=True)
class Parts:
    """Section of one interview.

    Args:
        highest, lowest: Items by the gain of all modalities over the best smaller format.
        separations: Differences of items known to be of low quality from the others, each with a picture of both
            distributions where the bank has them.
    """

    picture: Markup
    legend: list[tuple[Markup, str]]
    highest: list[Extreme]
    lowest: list[Extreme]
    separations: list[dict[str, str | Markup]]


class SeparationRow(msgspec.Struct):
    """Difference of items known to be of low quality from the others, as a bank's report has it."""

    name: str = ""
    original: float | None = None
    low: float | None = None
    p: float | None = None
    wasserstein: float | None = None
    auc: float | None = None
    edges: list[float] | None = None
    counts: list[list[float]] | None = None


T = TypeVar("T")


def _reported(data: Any, default: T) -> T:
    """Return a part of a bank's report; the default for a damaged one."""
    try:
        return msgspec.convert(data, type(default))
    except msgspec.ValidationError:
        return default


def parted(key: str, interview: EvaluationRecord, bank: ItemBank | None) -> Parts | None:
    """Return the section, None for an interview without formats, or without its unchanged bank."""
    parts = words.in_parts(interview)
    if not parts or bank is None or bank.in_formats is None or bank.content_hash != interview.bank.content_hash:
        return None
    if interview.theta is None or len(interview.theta) != len(parts):
        return None
    scale = bank.in_formats
    names = [*bank.subjects, interview.subject.name or "this subject"]
    tested = len(names) - 1
    theta: list[list[float]] = scale.abilities([*scale.standings.tolist(), interview.theta]).tolist()
    order = sorted(range(len(names)), key=lambda n: -sum(theta[n]))
    rows = [(clean_html(names[n], _NAME), theta[n], n == tested) for n in _spread(order, tested)]
    samples = [tag("rect", class_=f"part p{k}", width=12, height=12) for k in range(len(parts))]
    gains: list[float] = scale.gains.tolist()
    by_gain = sorted(range(len(gains)), key=lambda n: -gains[n])
    at_bound = _at_bound(scale).get("ability", {})
    labels = [f"{part}, at a bound for {100 * at_bound[part]:.0f} %" if part in at_bound else part for part in parts]
    return Parts(
        stacked_bars(f"{key}-parts", rows, parts),
        [(tag("svg", sample, viewBox="0 0 12 12"), label) for sample, label in zip(samples, labels, strict=True)],
        [_extreme(bank, scale, n, gains[n]) for n in by_gain[:_ITEMS]],
        [_extreme(bank, scale, n, gains[n]) for n in by_gain[::-1][:_ITEMS]],
        [_separation(_reported(data, SeparationRow())) for data in scale.report.get("separations", [])],
    )


def _spread(order: list[int], tested: int) -> list[int]:
    """Return the best and the worst subject, evenly spaced ones between them, and always the tested one."""
    if len(order) <= _SUBJECTS:
        return order
    step = (len(order) - 1) / (_SUBJECTS - 2)
    ranks = {round(n * step) for n in range(_SUBJECTS - 1)} | {order.index(tested)}
    return [order[rank] for rank in sorted(ranks)]


def _at_bound(scale: FormatScale) -> dict[str, dict[str, float]]:
    """Return the parts that say nothing because most of their values lie at a bound, see `parts_at_bound`."""
    from pytest_adaptive_eval.irt.multimodal import parts_at_bound

    try:
        shares = msgspec.convert(scale.report.get("at_bound", {}), dict[str, list[float]])
    except msgspec.ValidationError:
        shares = {}
    return parts_at_bound(scale.items.modalities.parts, shares)


def _extreme(bank: ItemBank, scale: FormatScale, item: int, gain: float) -> Extreme:
    hidden = _at_bound(scale).get("difficulty", {})
    difficulties = [
        f"{part} {number(float(value), 2)}"
        for part, value in zip(scale.items.modalities.parts, scale.items.difficulty[item], strict=True)
        if part not in hidden
    ]
    facts = f"gain {number(gain, 2)}" + (f"; difficulty: {', '.join(difficulties)}" if difficulties else "")
    # pairs of one item follow one another, and the first one has its default format
    first_pairs = [
        n for n, name in enumerate(bank.ids) if "@" not in name or name.rpartition("@")[2] != bank.categories[n]
    ]
    try:
        content = bank.items[first_pairs[item]]
    except (AdaptiveEvalError, IndexError):
        return Extreme("", "The bank's texts are not available.", [], facts)
    text = content.prompt or " ".join(str(message.get("content")) for message in content.messages)
    pictures = [thumbnail(name, content.root) for name in content.images[:1]]
    return Extreme(clean_html(content.id, _NAME), clean_html(text, _TEXT), pictures, facts)


def _separation(separation: SeparationRow) -> dict[str, str | Markup]:
    numbers = ("original", "low", "p", "wasserstein", "auc")
    cells = {name: words.number_or_dash(getattr(separation, name)) for name in numbers}
    if separation.p is not None and separation.p < 1e-3:
        cells["p"] = f"<{number(1e-3)}"
    return {"name": clean_html(separation.name, _NAME), "picture": _distributions(separation), **cells}


def _distributions(separation: SeparationRow) -> Markup | str:
    """Return the drawing of both distributions; an empty text for a damaged report."""
    edges, counts = separation.edges, separation.counts
    if edges is None or counts is None or len(counts) != 2 or not all(map(math.isfinite, edges)):
        return ""
    others, low = counts
    if not len(others) == len(low) == len(edges) - 1 > 0 or min(*others, *low) < 0:
        return ""
    return mirrored_bars(edges, others, low, f"distributions of {clean_html(separation.name, _NAME)}")
