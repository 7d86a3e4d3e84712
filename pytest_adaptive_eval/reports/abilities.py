"""What a page says of abilities in parts: all subjects beside the one interviewed, and the items that tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.records.run_record import InterviewRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.pictures import Thumbnail, thumbnail
from pytest_adaptive_eval.reports.plots import mirrored_bars, stacked_bars
from pytest_adaptive_eval.reports.typed import as_number, as_numbers
from pytest_adaptive_eval.text import number

if TYPE_CHECKING:
    from pytest_adaptive_eval.irt.multimodal import FormatScale
    from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["Extreme", "Parts", "parted"]

#: Subjects in the picture, spread over the ranking where there are more, and items at either end.
_SUBJECTS, _ITEMS = 30, 4
_TEXT, _NAME = 400, 60


@dataclass(frozen=True, slots=True)
class Extreme:
    """An item that needs all its modalities much, or little; `facts` tells its gain and its difficulty by part."""

    name: str
    text: str
    pictures: list[Thumbnail]
    facts: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The section of one interview.

    Parameters
    ----------
    picture : Markup
        The abilities of all subjects, stacked.
    legend : list of (Markup, str)
    highest, lowest : list of Extreme
        Items by what all modalities together add to the best smaller format.
    separations : list of dict
        How items known to be of low quality differ from the others, each with a picture of both distributions where
        the bank has them.
    """

    picture: Markup
    legend: list[tuple[Markup, str]]
    highest: list[Extreme]
    lowest: list[Extreme]
    separations: list[dict[str, str | Markup]]


def parted(key: str, interview: InterviewRecord, bank: ItemBank | None) -> Parts | None:
    """The section, where the interview was held in formats and its bank is at hand unchanged."""
    parts = words.in_parts(interview)
    if not parts or bank is None or bank.in_formats is None or not interview.theta:
        return None
    if bank.content_hash != interview.bank.get("content_hash") or len(interview.theta) != len(parts):
        return None
    scale = bank.in_formats
    names = [*bank.subjects, str(interview.subject.get("name") or "this subject")]
    theta: list[list[float]] = scale.abilities([*scale.standings.tolist(), interview.theta]).tolist()
    order = sorted(range(len(names)), key=lambda n: -sum(theta[n]))
    shown = _spread(order, len(names) - 1)
    rows = [(clean_html(names[n], _NAME), theta[n], n == len(names) - 1) for n in shown]
    legend = [(tag("svg", tag("rect", class_=f"part p{k}", width=12, height=12), viewBox="0 0 12 12"), part)
              for k, part in enumerate(parts)]  # fmt: skip
    gains: list[float] = scale.gains.tolist()
    needy = sorted(range(len(gains)), key=lambda n: -gains[n])
    places = _places(bank)
    return Parts(
        stacked_bars(f"{key}-parts", rows, parts),
        legend,
        [_extreme(bank, scale, places, n, gains[n]) for n in needy[:_ITEMS]],
        [_extreme(bank, scale, places, n, gains[n]) for n in needy[::-1][:_ITEMS]],
        [_separation(given) for given in scale.report.get("separations", [])],
    )


def _spread(order: list[int], own: int) -> list[int]:
    """Places of the best and the worst, some between, and always one's own."""
    if len(order) <= _SUBJECTS:
        return order
    step = (len(order) - 1) / (_SUBJECTS - 2)
    at = {round(n * step) for n in range(_SUBJECTS - 1)} | {order.index(own)}
    return [order[n] for n in sorted(at)]


def _places(bank: ItemBank) -> list[int]:
    """The first pair of each item: pairs of one item follow one another, its default format first."""
    return [n for n, name in enumerate(bank.ids) if "@" not in name or name.rpartition("@")[2] != bank.categories[n]]


def _extreme(bank: ItemBank, scale: FormatScale, places: Sequence[int], item: int, gain: float) -> Extreme:
    difficulty = f"gain {number(gain, 2)}; difficulty: " + ", ".join(
        f"{part} {number(float(value), 2)}"
        for part, value in zip(scale.items.modalities.parts, scale.items.difficulty[item], strict=True)
    )
    try:
        asked = bank.items[places[item]]
    except (AdaptiveEvalError, IndexError):
        return Extreme("", "The bank's texts are not to be had.", [], difficulty)
    text = asked.prompt or " ".join(str(message.get("content")) for message in asked.messages)
    pictures = [thumbnail(name, asked.root) for name in asked.images[:1]]
    return Extreme(clean_html(asked.id, _NAME), clean_html(text, _TEXT), pictures, difficulty)


def _separation(given: Any) -> dict[str, str | Markup]:
    told = given if isinstance(given, dict) else {}
    return {
        "name": clean_html(told.get("name"), _NAME),
        "picture": _distributions(told),
        **{
            name: _shown(as_number(told.get(name)), 1e-3 if name == "p" else None)
            for name in ("original", "low", "p", "wasserstein", "auc")
        },
    }


def _shown(value: float | None, least: float | None) -> str:
    if value is None:
        return "-"
    return f"<{number(least, 3)}" if least is not None and value < least else number(value, 3)


def _distributions(told: dict[str, Any]) -> Markup | str:
    counts = told.get("counts")
    lists = [told.get("edges"), *counts] if isinstance(counts, list | tuple) else []
    known = [[x for x in as_numbers(some) or [] if x is not None] for some in lists]
    if len(known) != 3:
        return ""
    edges, others, low = known
    if not len(others) == len(low) == len(edges) - 1 > 0 or min(*others, *low) < 0:
        return ""
    return mirrored_bars(edges, others, low, f"distributions of {clean_html(told.get('name'), _NAME)}")
