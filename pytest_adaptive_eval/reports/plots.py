"""The figures of a page as inline SVG: no styles of their own, so that the page's rules and themes hold.

Colours, fonts and widths of lines are given by classes.  What tells marks apart is their shape; colour only helps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.reports.curves import Bin, Funnel, Kind, Step, Threshold, Trace
from pytest_adaptive_eval.reports.markup import Markup, tag
from pytest_adaptive_eval.text import number

__all__ = [
    "funnel_plot",
    "history_plot",
    "interval_bar",
    "levels_plot",
    "mark",
    "mirrored_bars",
    "response_plot",
    "series_plot",
    "span_of",
    "stacked_bars",
    "trace_plot",
]

Span = tuple[float, float]

#: Size of a figure and its margins: left, right, top, bottom.  On a phone the text grows to 17 units; it still fits.
_WIDTH, _HEIGHT = 560.0, 300.0
_MARGINS = (44.0, 56.0, 30.0, 46.0)
_PANEL = (280.0, 140.0)
_PANEL_MARGINS = (44.0, 42.0, 12.0, 26.0)
#: No difficulty farther than this from all abilities shown stretches their axis, in logits.
_FAR = 3.0
#: Lines of text stand at least this far apart.
_LINE = 18.0


class _Frame:
    """A pair of axes: where a value stands, and the lines and labels around it."""

    def __init__(self, x: Span, y: Span, size: Span = (_WIDTH, _HEIGHT), margins: Sequence[float] = _MARGINS) -> None:
        self.width, self.height = size
        left, right, top, bottom = margins
        self.left, self.right = left, self.width - right
        self.top, self.bottom = top, self.height - bottom
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * _part(value, self._x)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * _part(value, self._y)

    def grid(self, ticks: Iterable[float], shown: Callable[[float], str]) -> list[Markup]:
        """Horizontal lines and their labels."""
        parts = []
        for tick in ticks:
            at = self.y(tick)
            parts.append(tag("line", class_="grid", x1=self.left, x2=self.right, y1=at, y2=at))
            parts.append(tag("text", shown(tick), class_="end", x=self.left - 7, y=at + 4))
        return parts

    def below(self, ticks: Iterable[tuple[float, str]], name: str) -> list[Markup]:
        """The horizontal axis: labels at places of the picture, and what they count."""
        parts = [tag("line", class_="axis", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom)]
        for at, label in ticks:
            parts.append(tag("line", class_="axis", x1=at, x2=at, y1=self.bottom, y2=self.bottom + 4))
            parts.append(tag("text", label, class_="mid", x=at, y=self.bottom + 18))
        middle = (self.left + self.right) / 2
        return [*parts, tag("text", name, class_="mid name", x=middle, y=self.height - 6)]

    def above(self, name: str) -> Markup:
        """What the vertical axis measures, written along the line of text at the top."""
        return tag("text", name, class_="name", x=0, y=14)

    def picture(self, key: str, title: str, description: str, parts: Iterable[Markup]) -> Markup:
        """All of it, with a title and a description for those who cannot see it."""
        return tag(
            "svg",
            tag("title", title, id=f"{key}-t"),
            tag("desc", description, id=f"{key}-d"),
            *parts,
            role="img",
            aria_labelledby=f"{key}-t {key}-d",
            viewBox=f"0 0 {self.width:g} {self.height:g}",
        )


def _part(value: float, span: Span) -> float:
    low, high = span
    return min(max((value - low) / (high - low), 0.0), 1.0)


def span_of(values: Iterable[float], least: float) -> Span:
    """The range of some values with a little room, and at least so wide."""
    known = list(values)
    low, high = min(known), max(known)
    room = max(0.06 * (high - low), (least - (high - low)) / 2)
    return low - room, high + room


def _ticks(span: Span, most: int = 6) -> list[float]:
    """Round numbers within a range."""
    low, high = span
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * n for n in (1, 2, 5, 10) if (high - low) / (power * n) <= most)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _signed(value: float) -> str:
    """A tick in logits, with a minus that can be seen."""
    return f"{round(value, 6) + 0.0:g}".replace("-", "−")


def _share(value: float) -> str:
    """A tick of an accuracy: 0, .25, 1."""
    return f"{value:.0f}" if value in (0, 1) else number(value, 2)


def _path(points: Iterable[Span], class_: str, start: str = "M") -> Markup:
    """A line through points."""
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return tag("path", class_=class_, d=start + steps)


def _area(upper: list[Span], lower: list[Span]) -> Markup:
    """What lies between two lines."""
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in (*upper, *reversed(lower)))
    return tag("path", class_="band", d=f"M{steps}Z")


def _whisker(x: float, low: float, high: float, class_: str = "whisker", cap: float = 4.0) -> Markup:
    d = f"M{x - cap:.1f} {low:.1f}h{2 * cap:g}M{x:.1f} {low:.1f}V{high:.1f}M{x - cap:.1f} {high:.1f}h{2 * cap:g}"
    return tag("path", class_=class_, d=d)


def _shape(kind: Kind, x: float, y: float, r: float) -> str:
    """Path of a mark: a disc, a triangle, a cross, or a ring."""
    if kind is Kind.WRONG:
        return f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"
    if kind is Kind.PARTLY:
        return f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z"
    return f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"


def mark(kind: Kind) -> Markup:
    """One mark, for a legend."""
    shape = tag("path", class_=f"mark {kind.value}", d=_shape(kind, 6, 6, 3.6))
    return tag("svg", shape, class_="key", viewBox="0 0 12 12", aria_hidden="true")


def trace_plot(trace: Trace, key: str) -> tuple[Markup, int]:
    """Ability along the interview against the difficulty of what was asked.

    Parameters
    ----------
    trace : Trace
    key : str
        Prefix of the picture's ids, of letters and digits.

    Returns
    -------
    Markup
    int
        Questions that lie beyond the axis and are drawn at its edge.
    """
    n = len(trace.kinds)
    low = [b - trace.z * e for b, e in zip(trace.before, trace.error or [], strict=False)] or trace.before
    high = [b + trace.z * e for b, e in zip(trace.before, trace.error or [], strict=False)] or trace.before
    end, half = trace.before[-1], trace.half or 0.0
    known = [value for value in trace.difficulty if value is not None]
    least, most = min(*low, end - half), max(*high, end + half)
    span = span_of([least, most, *(value for value in known if least - _FAR <= value <= most + _FAR)], 2.0)
    frame = _Frame((0.5, n + 1.5), span)
    # the ability holds from the choice of one question to that of the next
    edges = [frame.x(k + 0.5 if k <= n else n + 1.5) for k in range(n + 2)]

    def steps(values: Sequence[float]) -> list[Span]:
        return [(edges[k + side], frame.y(value)) for k, value in enumerate(values) for side in (0, 1)]

    r = min(3.6, max(1.4, 3.6 * math.sqrt(90 / n)))
    parts = [frame.above("logits"), *frame.grid(_ticks(span), _signed)]
    if trace.error:
        parts.append(_area(steps(high), steps(low)))
    for kind in Kind:
        places = [(k + 1, d) for k, d in enumerate(trace.difficulty) if d is not None and trace.kinds[k] is kind]
        if places:
            d = "".join(_shape(kind, frame.x(k), frame.y(difficulty), r) for k, difficulty in places)
            parts.append(tag("path", class_=f"mark {kind.value}", d=d))
    parts.append(_path(steps(trace.before), "line"))
    if trace.half is not None:
        parts.append(_whisker(edges[-1], frame.y(end - half), frame.y(end + half)))
    parts.append(tag("circle", class_="point", cx=edges[-1], cy=frame.y(end), r=3.5))
    parts.append(tag("text", number(end, 2).replace("-", "−"), class_="value", x=edges[-1] + 9, y=frame.y(end) + 4))
    parts += frame.below(_questions(frame, n), "question")
    right, wrong = trace.kinds.count(Kind.RIGHT), trace.kinds.count(Kind.WRONG)
    told = (
        f"From {number(trace.before[0], 2)} before question 1 to {number(end, 2)} logits after question {n}. "
        f"{right} questions right, {wrong} wrong, {n - right - wrong} partly right or without a score."
    )
    far = sum(not span[0] <= value <= span[1] for value in known)
    return frame.picture(key, "Ability and difficulty by question", told, parts), far


def _questions(frame: _Frame, n: int) -> list[tuple[float, str]]:
    """Ticks at questions."""
    whole = [round(t) for t in _ticks((1, max(n, 2)), 8) if t == round(t) and 1 <= t <= n]
    whole = [1, *(t for t in whole if frame.x(t) - frame.x(1) > 36)]
    return [(frame.x(t), str(t)) for t in whole]


def funnel_plot(
    funnel: Funnel, required: Sequence[Threshold], decided: tuple[float, float, float] | None, key: str
) -> Markup:
    """Accuracy by the draws so far, with its interval at each number of questions.

    Parameters
    ----------
    funnel : Funnel
    required : sequence of Threshold
        What gates ask for.
    decided : tuple of float, or None
        Estimate, low and high of the interval that gates decide on.
    key : str
        Prefix of the picture's ids.
    """
    n = funnel.asked[-1]
    frame = _Frame((min(1, n - 1), n), (0.0, 1.0))
    places = [frame.x(k) for k in funnel.asked]
    band = [[(x, frame.y(v)) for x, v in zip(places, side, strict=True)] for side in (funnel.high, funnel.low)]
    parts = [frame.above("accuracy"), *frame.grid((0, 0.25, 0.5, 0.75, 1), _share), _area(*band)]
    parts.append(_path([(x, frame.y(v)) for x, v in zip(places, funnel.estimate, strict=True)], "line"))
    asked_for = sorted(required, key=lambda t: -t.value)
    for threshold, text in zip(
        asked_for, _apart([frame.y(t.value) - 5 for t in asked_for], frame.bottom - 5), strict=True
    ):
        at = frame.y(threshold.value)
        parts.append(tag("line", class_="required", x1=frame.left, x2=frame.right, y1=at, y2=at))
        label = threshold.label.replace(">=", "≥")
        parts.append(tag("text", label, class_="end halo", x=frame.right - 4, y=text))
    last, beside = funnel.estimate[-1], frame.right + 8
    if decided is not None:
        (last, low, high), beside = decided, frame.right + 19
        parts.append(_whisker(frame.right + 10, frame.y(low), frame.y(high)))
        parts.append(tag("circle", class_="point", cx=frame.right + 10, cy=frame.y(last), r=3.5))
    parts.append(tag("text", number(last, 2), class_="value", x=beside, y=frame.y(last) + 4))
    parts += frame.below(_questions(frame, n), "questions asked")
    told = (
        f"After {n} questions {number(funnel.estimate[-1])}, interval {number(funnel.low[-1])} to "
        f"{number(funnel.high[-1])}. " + " ".join(f"A gate asks for {t.label}." for t in required)
    )
    return frame.picture(key, "Accuracy by the number of questions asked", told, parts)


def _apart(places: Sequence[float], lowest: float) -> list[float]:
    """Heights of labels, from the top down, moved so that none covers another."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + _LINE) if found else place)
    for n in reversed(range(len(found))):
        found[n] = min(found[n], lowest)
        lowest = found[n] - _LINE
    return found


def response_plot(bins: Sequence[Bin], key: str) -> Markup:
    """Share right and predicted share in bins of rising difficulty, drawn equally wide."""
    frame = _Frame((0, len(bins)), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid((0, 0.25, 0.5, 0.75, 1), _share)]
    centres = [frame.x(k + 0.5) for k in range(len(bins))]
    parts.append(_path([(x, frame.y(b.predicted)) for x, b in zip(centres, bins, strict=True)], "predicted"))
    for x, b in zip(centres, bins, strict=True):
        parts.append(_whisker(x, frame.y(b.low), frame.y(b.high)))
        parts.append(tag("circle", class_="point", cx=x, cy=frame.y(b.right), r=4.5))
        parts.append(tag("rect", class_="forecast", x=x - 4, y=frame.y(b.predicted) - 4, width=8, height=8))
    inner = [(one.hardest + two.easiest) / 2 for one, two in itertools.pairwise(bins)]
    edges = [bins[0].easiest, *inner, bins[-1].hardest]
    ticks = [(frame.x(k), _edge(value)) for k, value in enumerate(edges)]
    parts += frame.below(ticks, "difficulty, logits")
    told = "; ".join(
        f"difficulty {b.easiest:.2f} to {b.hardest:.2f}: {number(b.right, 2)} right of {b.count}, "
        f"{number(b.predicted, 2)} predicted"
        for b in bins
    )
    return frame.picture(key, "Share right by difficulty", told, parts)


def levels_plot(steps: Sequence[Step], half: float | None, key: str) -> Markup:
    """Accuracy by level of a climb, and where it crosses one half."""
    frame = _Frame((steps[0].level - 0.5, steps[-1].level + 0.5), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid((0, 0.25, 0.5, 0.75, 1), _share)]
    if half is not None:
        parts.append(tag("line", class_="required", x1=frame.x(half), x2=frame.x(half), y1=frame.top, y2=frame.bottom))
    parts.append(_path([(frame.x(step.level), frame.y(step.right)) for step in steps], "line"))
    for step in steps:
        parts.append(_whisker(frame.x(step.level), frame.y(step.low), frame.y(step.high)))
        parts.append(tag("circle", class_="point", cx=frame.x(step.level), cy=frame.y(step.right), r=4))
    every = max(1, math.ceil(len(steps) / 12))
    parts += frame.below([(frame.x(step.level), str(step.level)) for step in steps[::every]], "level")
    told = "; ".join(f"level {step.level}: {number(step.right, 2)} right of {step.asked}" for step in steps)
    return frame.picture(key, "Share right by level", told, parts)


def series_plot(values: Sequence[float], name: str, unit: str, key: str) -> Markup:
    """Values by number, from 1, above 0."""
    n = len(values)
    frame = _Frame((1, n), (0.0, max(*values, 1e-3) * 1.06))
    ticks = _ticks((0.0, max(*values, 1e-3)), 4)
    parts = [frame.above(name), *frame.grid(ticks, lambda tick: f"{tick:g}")]
    parts.append(_path([(frame.x(k), frame.y(value)) for k, value in enumerate(values, 1)], "line"))
    parts += frame.below(_questions(frame, n), unit)
    told = (
        f"{n} {unit}s, the first {number(values[0])}, the highest {number(max(values))}, the last {number(values[-1])}."
    )
    return frame.picture(key, f"{name} by {unit}", told, parts)


def mirrored_bars(edges: Sequence[float], above: Sequence[float], below: Sequence[float], told: str) -> Markup:
    """Two distributions over the same bins, each as shares of its own: one rises from a line, the other hangs from it.

    Parameters
    ----------
    edges : sequence of float
        One more than there are bins.
    above, below : sequence of float
        Counts.
    told : str
        The picture in words.
    """
    width, line, room = 160.0, 26.0, 22.0
    shares = [[count / (sum(counts) or 1.0) for count in counts] for counts in (above, below)]
    most, step = max(*shares[0], *shares[1]) or 1.0, width / len(above)
    drawn = [tag("line", class_="axis", x1=0, x2=width, y1=line, y2=line)]
    for counts, kind in zip(shares, ("others", "low"), strict=True):
        for n, share in enumerate(counts):
            if share:
                height = room * share / most
                y = line - height if kind == "others" else line
                drawn.append(tag("rect", class_=kind, x=n * step + 0.5, y=y, width=step - 1, height=height))
    for place, anchor, value in ((0.0, "start", edges[0]), (width, "end", edges[-1])):
        drawn.append(tag("text", _tick(value), class_=anchor, x=place, y=2 * line + 9))
    return tag(
        "svg", tag("title", told), *drawn, role="img", class_="bar mirrored", viewBox=f"0 0 {width:g} {2 * line + 12:g}"
    )


def _tick(value: float) -> str:
    """An end of an axis, in three digits."""
    return f"{value:.3g}".replace("-", "−")


def _edge(value: float) -> str:
    """A difficulty; items that hardly discriminate have one in the thousands, which is best not told."""
    return _signed(round(value, 1)) if abs(value) < 10 else ">10" if value > 0 else "<−10"


def interval_bar(
    low: float, estimate: float, high: float, span: Span = (0.0, 1.0), target: float | None = None
) -> Markup:
    """An interval on a scale, beside its numbers, for those who see.

    Parameters
    ----------
    low, estimate, high : float
    span : tuple of float
        The scale; its ends are written below where there is a target.
    target : float, optional
        What is asked for, marked by a line.
    """
    width, middle = 160.0, 9.0

    def x(value: float) -> float:
        return 4 + (width - 8) * _part(value, span)

    parts = [
        tag("line", class_="track", x1=4, x2=width - 4, y1=middle, y2=middle),
        tag("rect", class_="range", x=x(low), y=middle - 3, width=max(x(high) - x(low), 1.0), height=6, rx=3),
        tag("circle", class_="point", cx=x(estimate), cy=middle, r=4),
    ]
    height = 2 * middle
    if target is not None:
        height += 14
        at = min(max(x(target), 22.0), width - 22)
        parts += [
            tag("line", class_="target", x1=x(target), x2=x(target), y1=1, y2=17),
            tag("text", f"≥ {number(target, 2)}", class_="mid asked", x=at, y=height - 3),
        ]
        if at > 50:
            parts.append(tag("text", _end(span[0]), x=4, y=height - 3))
        if at < width - 50:
            parts.append(tag("text", _end(span[1]), class_="end", x=width - 4, y=height - 3))
    return tag("svg", *parts, class_="bar", viewBox=f"0 0 {width:g} {height:g}", aria_hidden="true")


def _end(value: float) -> str:
    return _signed(round(value, 1 if abs(value) < 10 else 0)) if value not in (0, 1) else f"{value:.0f}"


def history_plot(series: Series, alarms: Sequence[Alarm], run: str, span: Span, z: float, key: str) -> Markup:
    """A series over its runs, with its alarms.

    Parameters
    ----------
    series : Series
        With at least one point.
    alarms : sequence of Alarm
        Of this series.
    run : str
        The run to show as the current one.
    span : tuple of float
        Range of the vertical axis, the same for all panels that are to be compared.
    z : float
        Standard errors to each side of an interval.
    key : str
        Prefix of the picture's ids.
    """
    n = len(series.points)
    frame = _Frame((-0.5, n - 0.5), span, _PANEL, _PANEL_MARGINS)
    shown = _share if series.metric == "accuracy" else _signed
    parts = frame.grid(_ticks(span, 5), shown)
    for alarm in alarms:
        since = frame.x(alarm.since - 0.5)
        parts.append(tag("line", class_="change", x1=since, x2=since, y1=frame.top, y2=frame.bottom))
        for level, start, stop in ((alarm.before, frame.left, since), (alarm.after, since, frame.right)):
            parts.append(tag("line", class_="level", x1=start, x2=stop, y1=frame.y(level), y2=frame.y(level)))
    places = [(frame.x(k), frame.y(point.value)) for k, point in enumerate(series.points)]
    parts.append(_path(places, "line faint"))
    now = [k for k, point in enumerate(series.points) if point.run == run]
    raised = {alarm.at for alarm in alarms}
    for k, point in enumerate(series.points):
        x, y = places[k]
        half = z * point.standard_error
        parts.append(_whisker(x, frame.y(point.value - half), frame.y(point.value + half), cap=0.0))
        if k in raised:
            parts.append(tag("path", class_="alarm", d=f"M{x:.1f} {y - 6:.1f}l6 11h-12z"))
        else:
            parts.append(tag("circle", class_="point", cx=x, cy=y, r=3))
        if k in now:
            parts.append(tag("circle", class_="now", cx=x, cy=y, r=8))
    if now:
        x, y = places[now[-1]]
        label = number(series.points[now[-1]].value, 2).replace("-", "−")
        parts.append(tag("text", label, class_="value", x=x + 12, y=y + 4))
    parts.append(tag("line", class_="axis", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom))
    first, last = (series.points[k].started for k in (0, -1))
    part = slice(11, 16) if first[:10] == last[:10] else slice(10)  # of 2031-05-06T07:08:09Z the time, or the day
    parts.append(tag("text", first[part], x=frame.left, y=frame.height - 8))
    if n > 1:
        parts.append(tag("text", last[part], class_="end", x=frame.right, y=frame.height - 8))
    told = f"{n} runs, the last at {number(series.points[-1].value)}. " + " ".join(alarm.sentence for alarm in alarms)
    return frame.picture(key, f"{series.metric} by run", told, parts)


def stacked_bars(key: str, rows: Sequence[tuple[str, Sequence[float], bool]], parts: Sequence[str]) -> Markup:
    """Amounts in parts, a bar a row; a row that matters has its name in bold and its total behind it.

    Parameters
    ----------
    key : str
        Of the picture's parts that the page refers to.
    rows : sequence of (str, sequence of float, bool)
        Name, amounts of at least 0, and whether the row matters.
    parts : sequence of str
    """
    most = max((sum(values) for _, values, _ in rows), default=0.0) or 1.0
    left, room, line = 150.0, _WIDTH - 150.0 - 50.0, _LINE
    drawn = []
    for n, (name, values, matters) in enumerate(rows):
        top, at = n * line + 2.0, left
        drawn.append(tag("text", name, class_="end halo" if matters else "end", x=left - 8, y=top + 11))
        for k, value in enumerate(values):
            width = room * value / most
            drawn.append(tag("rect", class_=f"part p{k}", x=at, y=top, width=width, height=line - 5))
            at += width
        if matters:
            drawn.append(tag("text", number(sum(values), 2), class_="value", x=at + 6, y=top + 11))
    told = "; ".join(f"{name} {number(sum(values), 2)}" for name, values, _ in rows)
    return tag(
        "svg",
        tag("title", f"Abilities in {', '.join(parts)}", id=f"{key}-t"),
        tag("desc", told, id=f"{key}-d"),
        *drawn,
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        viewBox=f"0 0 {_WIDTH:g} {len(rows) * line + 4:g}",
    )
