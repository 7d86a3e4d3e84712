"""The figures of a page as inline SVG, and their numbers, from the record of one interview.

The shape of a mark carries its meaning, and colour repeats it. Classes give colours, fonts and widths of lines, to
which a page's rules apply. Non-finite values of a damaged record count as absent.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from pytest_adaptive_eval.gates.condition import find_metric
from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markup import Markup, svg, tag
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import number

Span = tuple[float, float]

#: Size of a figure and its margins: left, right, top, bottom.  On a phone the text grows to 17 units; it still fits.
_WIDTH, _HEIGHT = 560.0, 300.0
_MARGINS = (44.0, 56.0, 30.0, 46.0)
SHARES = (0, 0.25, 0.5, 0.75, 1)  #: Ticks of an axis from 0 to 1.


class Frame:
    """Pair of axes, given by the lowest and highest values, with the positions of values, grid lines and labels."""

    def __init__(self, x: Span, y: Span, size: Span = (_WIDTH, _HEIGHT), margins: Sequence[float] = _MARGINS) -> None:
        self.width, self.height = size
        self.left = margins[0]
        self.right = self.width - margins[1]
        self.top = margins[2]
        self.bottom = self.height - margins[3]
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
    low = min(sequence)
    high = max(sequence)
    margin = max(0.06 * (high - low), (least - (high - low)) / 2)
    return low - margin, high + margin


def ticks_in(span: Span, most: int = 6) -> list[float]:
    """Return round numbers within a range, about `most` of them or fewer."""
    low, high = span
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * n for n in (1, 2, 5, 10) if (high - low) / (power * n) <= most)
    # an end that is a multiple of the step but for rounding has its tick
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def minus(text: str) -> str:
    """Return the text of a number with a typographic minus sign."""
    return text.replace("-", "−")


def signed_label(value: float) -> str:
    """Return the label of a number that may be negative."""
    return minus(f"{round(value, 6) + 0.0:g}")


def share_label(value: float) -> str:
    """Return the label of an accuracy: 0, .25, 1."""
    if value in (0, 1):
        return f"{value:.0f}"
    return number(value, 2)


def path(points: Iterable[Span], class_: str, **attributes: str) -> Markup:
    """Return a line through points."""
    pairs = [f"{x:.1f} {y:.1f}" for x, y in points]
    return tag("path", class_=class_, d="M" + "L".join(pairs), **attributes)


def whisker(x: float, low: float, high: float, cap: float = 4.0) -> Markup:
    """Return a vertical interval with a cap of half-width `cap` at each end."""
    left = x - cap
    width = 2 * cap
    low_cap = f"M{left:.1f} {low:.1f}h{width:g}"
    high_cap = f"M{left:.1f} {high:.1f}h{width:g}"
    return tag("path", class_="whisker", d=f"{low_cap}M{x:.1f} {low:.1f}V{high:.1f}{high_cap}")


_BINS, _PER_BIN = 8, 6  #: Bins of a response curve, and fewest answers in each.


class Kind(enum.StrEnum):
    """Result of a question, as a page distinguishes them."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"
    NONE = "none"


def kind_of(asked: Administration) -> Kind:
    """Return the result of one administration."""
    score = plottable(asked.score)
    if score is None:
        return Kind.NONE
    if score >= 1.0:
        return Kind.RIGHT
    if score <= 0.0:
        return Kind.WRONG
    return Kind.PARTLY


class Share(NamedTuple):
    """Share right at a level or in a bin, which is `at` on the axis, with its interval and the predicted share."""

    at: float
    label: str
    asked: int
    right: float
    low: float
    high: float
    predicted: float | None = None


def difficulty_bins(interview: EvaluationRecord) -> tuple[list[Share], list[float]]:
    """Return the share right by difficulty, in bins of equally many answers, with the bins' edges.

    Both are empty with too few answers.
    """
    rows = []
    for asked in interview.by_item():
        difficulty, score, predicted = map(plottable, (asked.difficulty, asked.score, asked.predicted))
        if difficulty is not None and score is not None and predicted is not None:
            rows.append((difficulty, score, predicted))
    rows.sort()
    count = min(_BINS, len(rows) // _PER_BIN)
    if count < 2:
        return [], []
    z = NormalDist().inv_cdf(words.confidence(interview))
    bins = []
    edges = [rows[0][0]]
    for k in range(count):
        start = round(k * len(rows) / count)
        stop = round((k + 1) * len(rows) / count)
        difficulties, scores, predictions = zip(*rows[start:stop], strict=True)
        n = len(scores)
        right = sum(scores) / n
        label = f"difficulty {difficulties[0]:.2f} to {difficulties[-1]:.2f}"
        bins.append(Share(k + 1, label, n, right, *_wilson(right, n, z), sum(predictions) / n))
        next_difficulty = rows[min(stop, len(rows) - 1)][0]
        edges.append((difficulties[-1] + next_difficulty) / 2)
    return bins, edges


def level_shares(accuracies: Sequence[float | None], asked: Sequence[int], confidence: float) -> list[Share]:
    """Return the accuracy of each level that was asked, with its own interval."""
    z = NormalDist().inv_cdf(confidence)
    shares = []
    for level, (right, count) in enumerate(zip(accuracies, asked, strict=False), 1):
        if right is not None and count >= 1 and 0.0 <= right <= 1.0:
            shares.append(Share(level, f"level {level}", count, right, *_wilson(right, count, z)))
    return shares


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return the interval of a share of `n` (Wilson 1927)."""
    share = min(max(share, 0.0), 1.0)
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


_PANEL, _PANEL_MARGINS = (280.0, 140.0), (44.0, 42.0, 12.0, 26.0)  #: Size and margins of a history's panel.
_BAR, _BAR_MARGIN = 160.0, 4.0  #: Width of a bar in a table, and of its margins.


def bins_plot(bins: Sequence[Share], edges: Sequence[float], key: str) -> Markup:
    """Draw the share right and the predicted share in bins of rising difficulty, equally wide."""
    ticks = []
    for k, value in enumerate(edges):
        ticks.append((k + 0.5, _difficulty_label(value)))
    return _shares_plot(bins, ticks, ("Share right by difficulty", "difficulty, logits"), key)


def levels_plot(levels: Sequence[Share], half: float | None, key: str) -> Markup:
    """Draw the accuracy by level of a ladder, and the level at which it crosses one half."""
    every = max(1, math.ceil(len(levels) / 12))
    ticks = [(share.at, f"{share.at:g}") for share in levels[::every]]
    return _shares_plot(levels, ticks, ("Share right by level", "level"), key, half)


_DASHES = ("none", "8 3", "2 3", "9 3 2 3")  #: Dashes of the lines of several subjects, beside their numbers.


def levels_of_subjects(subjects: Sequence[Sequence[Share]], key: str) -> Markup:
    """Draw the accuracy by level of several subjects, each as a line that ends with its number, from 1."""
    first = min(shares[0].at for shares in subjects)
    last = max(shares[-1].at for shares in subjects)
    frame = Frame((first - 0.5, last + 0.5), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid(SHARES, share_label)]
    descriptions = []
    ends: list[tuple[float, float]] = []
    for n, shares in enumerate(subjects):
        line = [(frame.x(share.at), frame.y(share.right)) for share in shares]
        parts.append(path(line, "line", stroke_dasharray=_DASHES[n % len(_DASHES)]))
        parts += [tag("circle", class_="point", cx=x, cy=y, r=3) for x, y in line]
        ends.append(line[-1])
        x, y = line[-1]
        offset = 7 + 11 * (ends.count(line[-1]) - 1)
        parts.append(tag("text", str(n + 1), class_="value", x=x + offset, y=y + 4))
        values = ", ".join(number(share.right, 2) for share in shares)
        descriptions.append(f"{n + 1}: {values}")
    every = max(1, math.ceil((last - first + 1) / 12))
    levels = range(int(first), int(last) + 1, every)
    parts += frame.below([(frame.x(level), str(level)) for level in levels], "level")
    return frame.picture(key, "Share right by level and subject", "; ".join(descriptions), parts)


def _shares_plot(
    shares: Sequence[Share],
    ticks: Sequence[tuple[float, str]],
    names: tuple[str, str],
    key: str,
    crossing: float | None = None,
) -> Markup:
    """Draw shares with their intervals; `names` has the title and the horizontal axis."""
    frame = Frame((shares[0].at - 0.5, shares[-1].at + 0.5), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid(SHARES, share_label)]
    if crossing is not None:
        x = frame.x(crossing)
        parts.append(tag("line", class_="required", x1=x, x2=x, y1=frame.top, y2=frame.bottom))
    descriptions = []
    line = []
    for share in shares:
        x = frame.x(share.at)
        parts.append(whisker(x, frame.y(share.low), frame.y(share.high)))
        parts.append(tag("circle", class_="point", cx=x, cy=frame.y(share.right), r=4))
        described = f"{share.label}: {number(share.right, 2)} right of {share.asked}"
        on_line = share.right
        if share.predicted is not None:
            on_line = share.predicted
            y = frame.y(share.predicted)
            parts.append(tag("rect", class_="forecast", x=x - 4, y=y - 4, width=8, height=8))
            described += f", {number(share.predicted, 2)} predicted"
        line.append((x, frame.y(on_line)))
        descriptions.append(described)
    parts.append(path(line, "line" if shares[0].predicted is None else "predicted"))
    title, axis = names
    parts += frame.below([(frame.x(at), label) for at, label in ticks], axis)
    return frame.picture(key, title, "; ".join(descriptions), parts)


def _difficulty_label(value: float) -> str:
    """Return a difficulty, without digits beyond 10: items that hardly discriminate reach the thousands."""
    if abs(value) < 10:
        return signed_label(round(value, 1))
    if value > 0:
        return ">10"
    return "<−10"


def interval_bar(
    low: float, estimate: float, high: float, span: Span = (0.0, 1.0), target: float | None = None
) -> Markup:
    """Draw an interval on a scale, as a decoration of its numbers."""
    middle = 9.0

    def x(value: float) -> float:
        return _BAR_MARGIN + (_BAR - 2 * _BAR_MARGIN) * position_in(value, span)

    width = max(x(high) - x(low), 1.0)
    parts = [
        tag("line", class_="track", x1=x(span[0]), x2=x(span[1]), y1=middle, y2=middle),
        tag("rect", class_="range", x=x(low), y=middle - 3, width=width, height=6, rx=3),
        tag("circle", class_="point", cx=x(estimate), cy=middle, r=4),
    ]
    height = 2 * middle
    if target is not None:
        height += 14
        label_x = min(max(x(target), 22.0), _BAR - 22)
        parts.append(tag("line", class_="target", x1=x(target), x2=x(target), y1=1, y2=17))
        parts.append(tag("text", f"≥ {number(target, 2)}", class_="mid asked", x=label_x, y=height - 3))
        if label_x > 50:
            parts.append(tag("text", _end_label(span[0]), x=4, y=height - 3))
        if label_x < _BAR - 50:
            parts.append(tag("text", _end_label(span[1]), class_="end", x=_BAR - 4, y=height - 3))
    return tag("svg", *parts, class_="bar", viewBox=f"0 0 {_BAR:g} {height:g}", aria_hidden="true")


def difference_bar(low: float, estimate: float, high: float, span: Span) -> Markup:
    """Draw a difference beside 0; in a column of one span, bars are a forest plot."""

    def x(value: float) -> float:
        return _BAR_MARGIN + (_BAR - 2 * _BAR_MARGIN) * position_in(value, span)

    parts = [
        tag("line", class_="target", x1=x(0.0), x2=x(0.0), y1=0, y2=18),
        tag("line", class_="whisker", x1=x(low), x2=x(high), y1=9, y2=9),
        tag("circle", class_="point", cx=x(estimate), cy=9, r=4),
    ]
    return tag("svg", *parts, class_="bar", viewBox=f"0 0 {_BAR:g} 18", aria_hidden="true")


def _end_label(value: float) -> str:
    if abs(value) < 10:
        digits = 1
    else:
        digits = 0
    return signed_label(round(value, digits))


def history_plot(series: Series, alarms: Sequence[Alarm], run: str, span: Span, z: float, key: str) -> Markup:
    """Draw a series over its runs, with its alarms."""
    n = len(series.points)
    frame = Frame((-0.5, n - 0.5), span, _PANEL, _PANEL_MARGINS)
    label_of = signed_label
    if find_metric(series.metric).is_share:
        label_of = share_label
    parts = frame.grid(ticks_in(span, 5), label_of)
    for alarm in alarms:
        since = frame.x(alarm.since - 0.5)
        parts.append(tag("line", class_="change", x1=since, x2=since, y1=frame.top, y2=frame.bottom))
        if alarm.until is None:
            over = frame.right
        else:
            over = frame.x(alarm.until)
        for level, start, stop in ((alarm.before, frame.left, since), (alarm.after, since, over)):
            parts.append(tag("line", class_="level", x1=start, x2=stop, y1=frame.y(level), y2=frame.y(level)))
    positions = [(frame.x(k), frame.y(point.value)) for k, point in enumerate(series.points)]
    parts.append(path(positions, "line faint"))
    raised = {alarm.at for alarm in alarms}
    label: list[Markup] = []
    for k, (point, (x, y)) in enumerate(zip(series.points, positions, strict=True)):
        low, high = point.bounds(z)
        parts.append(whisker(x, frame.y(low), frame.y(high), cap=0.0))
        if k in raised:
            parts.append(tag("path", class_="alarm", d=f"M{x:.1f} {y - 6:.1f}l6 11h-12z"))
        else:
            parts.append(tag("circle", class_="point", cx=x, cy=y, r=3))
        if point.run == run:
            parts.append(tag("circle", class_="now", cx=x, cy=y, r=8))
            label = [tag("text", minus(number(point.value, 2)), class_="value", x=x + 12, y=y + 4)]
    parts += [*label, frame.axis(), *_dates(series, frame)]
    sentences = " ".join(alarm.sentence for alarm in alarms)
    description = f"{n} runs, the last at {number(series.points[-1].value)}. {sentences}"
    return frame.picture(key, f"{series.metric} by run", description, parts)


def _dates(series: Series, frame: Frame) -> list[Markup]:
    """Return the days of the first and the last run, or their times on one day."""
    first, last = (series.points[k].started for k in (0, -1))
    # of 2031-05-06T07:08:09Z
    if first[:10] == last[:10]:
        characters = slice(11, 16)
    else:
        characters = slice(10)
    labels = [tag("text", first[characters], x=frame.left, y=frame.height - 8)]
    if len(series.points) > 1:
        labels.append(tag("text", last[characters], class_="end", x=frame.right, y=frame.height - 8))
    return labels
