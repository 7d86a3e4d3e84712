"""The frame of all figures: axes, ticks, lines and the texts of numbers on them.

Colours, fonts and widths of lines are given by classes, so that a page's rules and themes apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from pytest_adaptive_eval.reports.markup import Markup, svg, tag
from pytest_adaptive_eval.text import number

Span = tuple[float, float]

#: Size of a figure and its margins: left, right, top, bottom.  On a phone the text grows to 17 units; it still fits.
WIDTH, _HEIGHT = 560.0, 300.0
_MARGINS = (44.0, 56.0, 30.0, 46.0)
#: Distance of two lines of text.
LINE = 18.0
#: Ticks of an axis from 0 to 1.
SHARES = (0, 0.25, 0.5, 0.75, 1)


class Frame:
    """Pair of axes with the positions of values, grid lines and labels.

    Args:
        x, y: Lowest and highest value of the horizontal and of the vertical axis.
        size: Width and height.
        margins: Left, right, top, bottom.
    """

    def __init__(self, x: Span, y: Span, size: Span = (WIDTH, _HEIGHT), margins: Sequence[float] = _MARGINS) -> None:
        self.width, self.height = size
        self.left, self.right = margins[0], self.width - margins[1]
        self.top, self.bottom = margins[2], self.height - margins[3]
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        """Return the horizontal position of a value, within the frame."""
        return self.left + (self.right - self.left) * position_in(value, self._x)

    def y(self, value: float) -> float:
        """Return the vertical position of a value, within the frame."""
        return self.bottom - (self.bottom - self.top) * position_in(value, self._y)

    def grid(self, ticks: Iterable[float], label: Callable[[float], str]) -> list[Markup]:
        """Return horizontal lines with their labels."""
        parts = []
        for tick in ticks:
            y = self.y(tick)
            parts.append(tag("line", class_="grid", x1=self.left, x2=self.right, y1=y, y2=y))
            parts.append(tag("text", label(tick), class_="end", x=self.left - 7, y=y + 4))
        return parts

    def below(self, ticks: Iterable[tuple[float, str]], name: str) -> list[Markup]:
        """Return the horizontal axis with its name, and labels at horizontal positions."""
        parts = [self.axis()]
        for x, label in ticks:
            parts.append(tag("line", class_="axis", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 4))
            parts.append(tag("text", label, class_="mid", x=x, y=self.bottom + 18))
        middle = (self.left + self.right) / 2
        return [*parts, tag("text", name, class_="mid name", x=middle, y=self.height - 6)]

    def axis(self) -> Markup:
        """Return the line of the horizontal axis."""
        return tag("line", class_="axis", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom)

    def above(self, name: str) -> Markup:
        """Return the name of the vertical axis, at the top."""
        return tag("text", name, class_="name", x=0, y=14)

    def counts(self, n: int) -> list[tuple[float, str]]:
        """Return ticks at whole numbers from 1 to `n`, as positions and labels."""
        whole = [round(tick) for tick in ticks_in((1, max(n, 2)), 8) if tick == round(tick) and 1 <= tick <= n]
        whole = [1, *(tick for tick in whole if self.x(tick) - self.x(1) > 36)]
        return [(self.x(tick), str(tick)) for tick in whole]

    def picture(self, key: str, title: str, description: str, parts: Iterable[Markup]) -> Markup:
        """Return the drawing of all parts, see `svg`."""
        return svg(key, title, description, (self.width, self.height), *parts)


def position_in(value: float, span: Span) -> float:
    """Return the position of a value in a range, from 0 at its low end to 1 at its high end."""
    low, high = span
    return min(max((value - low) / (high - low), 0.0), 1.0)


def span_of(values: Iterable[float], least: float) -> Span:
    """Return the range of values with a margin, at least `least` wide."""
    sequence = list(values)
    low, high = min(sequence), max(sequence)
    margin = max(0.06 * (high - low), (least - (high - low)) / 2)
    return low - margin, high + margin


def ticks_in(span: Span, most: int = 6) -> list[float]:
    """Return round numbers within a range, about `most` of them or fewer."""
    low, high = span
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * n for n in (1, 2, 5, 10) if (high - low) / (power * n) <= most)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def minus(text: str) -> str:
    """Return the text of a number with a typographic minus sign."""
    return text.replace("-", "−")


def signed_label(value: float) -> str:
    """Return the label of a number that may be negative."""
    return minus(f"{round(value, 6) + 0.0:g}")


def share_label(value: float) -> str:
    """Return the label of an accuracy: 0, .25, 1."""
    return f"{value:.0f}" if value in (0, 1) else number(value, 2)


def path(points: Iterable[Span], class_: str) -> Markup:
    """Return a line through points."""
    return tag("path", class_=class_, d="M" + _joined(points))


def band(upper: Iterable[Span], lower: Sequence[Span]) -> Markup:
    """Return the area between two lines."""
    return tag("path", class_="band", d=f"M{_joined([*upper, *reversed(lower)])}Z")


def _joined(points: Iterable[Span]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def whisker(x: float, low: float, high: float, cap: float = 4.0) -> Markup:
    """Return a vertical interval with a cap of half-width `cap` at each end."""
    d = f"M{x - cap:.1f} {low:.1f}h{2 * cap:g}M{x:.1f} {low:.1f}V{high:.1f}M{x - cap:.1f} {high:.1f}h{2 * cap:g}"
    return tag("path", class_="whisker", d=d)
