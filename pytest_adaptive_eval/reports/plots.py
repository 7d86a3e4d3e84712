"""The figures of a page as inline SVG.  The shape of a mark carries its meaning, and colour repeats it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from pytest_adaptive_eval.gates.condition import find_metric
from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.reports.axes import (
    LINE,
    SHARES,
    WIDTH,
    Frame,
    Span,
    band,
    minus,
    path,
    position_in,
    share_label,
    signed_label,
    span_of,
    ticks_in,
    whisker,
)
from pytest_adaptive_eval.reports.curves import Bin, Funnel, Kind, Step, Threshold, Trace
from pytest_adaptive_eval.reports.markup import Markup, svg, tag
from pytest_adaptive_eval.text import number

#: Size and margins of a history's panel.
_PANEL, _PANEL_MARGINS = (280.0, 140.0), (44.0, 42.0, 12.0, 26.0)
#: Difficulties farther than this from all abilities shown do not stretch their axis, in logits.
_FAR = 3.0
#: Width of a bar in a table, and of its margins.
_BAR, _BAR_MARGIN = 160.0, 4.0
#: Width of the labels of rows.
_LABEL = 150.0


def _shape(kind: Kind, x: float, y: float, r: float) -> str:
    """Return the path of a mark: a disc, a triangle, a cross, or a ring."""
    if kind is Kind.WRONG:
        return f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"
    if kind is Kind.PARTLY:
        return f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z"
    return f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"


def mark(kind: Kind) -> Markup:
    """Return the sample of a mark for a legend."""
    shape = tag("path", class_=f"mark {kind.value}", d=_shape(kind, 6, 6, 3.6))
    return tag("svg", shape, class_="key", viewBox="0 0 12 12", aria_hidden="true")


def trace_plot(trace: Trace, key: str) -> tuple[Markup, int]:
    """Draw the ability along the interview and the difficulty of each question.

    Args:
        key: Prefix of the picture's ids, of letters and digits.

    Returns:
        Questions beyond the axis, which are drawn at its edge.
    """
    n = len(trace.kinds)
    end, half = trace.before[-1], trace.half or 0.0
    difficulties = [value for value in trace.difficulty if value is not None]
    least, most = min(*trace.bound(-1), end - half), max(*trace.bound(1), end + half)
    near = [value for value in difficulties if least - _FAR <= value <= most + _FAR]
    span = span_of([least, most, *near], 2.0)
    frame = Frame((0.5, n + 1.5), span)
    # an ability holds from the choice of one question to that of the next
    edges = [frame.x(k + 0.5) for k in range(n + 2)]

    def steps(values: Sequence[float]) -> list[Span]:
        return [(edges[k + side], frame.y(value)) for k, value in enumerate(values) for side in (0, 1)]

    parts = [frame.above("logits"), *frame.grid(ticks_in(span), signed_label)]
    if trace.error:
        parts.append(band(steps(trace.bound(1)), steps(trace.bound(-1))))
    parts += _trace_marks(trace, frame)
    parts.append(path(steps(trace.before), "line"))
    if trace.half is not None:
        parts.append(whisker(edges[-1], frame.y(end - half), frame.y(end + half)))
    parts.append(tag("circle", class_="point", cx=edges[-1], cy=frame.y(end), r=3.5))
    parts.append(tag("text", minus(number(end, 2)), class_="value", x=edges[-1] + 9, y=frame.y(end) + 4))
    parts += frame.below(frame.counts(n), "question")
    right, wrong = trace.kinds.count(Kind.RIGHT), trace.kinds.count(Kind.WRONG)
    description = (
        f"From {number(trace.before[0], 2)} before question 1 to {number(end, 2)} logits after question {n}. "
        f"{right} questions right, {wrong} wrong, {n - right - wrong} partly right or without a score."
    )
    beyond = sum(not span[0] <= value <= span[1] for value in difficulties)
    return frame.picture(key, "Ability and difficulty by question", description, parts), beyond


def _trace_marks(trace: Trace, frame: Frame) -> list[Markup]:
    """Return the marks of all questions, one path per kind."""
    radius = min(3.6, max(1.4, 3.6 * math.sqrt(90 / len(trace.kinds))))
    shapes: dict[Kind, str] = dict.fromkeys(Kind, "")
    for k, (kind, difficulty) in enumerate(zip(trace.kinds, trace.difficulty, strict=True), 1):
        if difficulty is not None:
            shapes[kind] += _shape(kind, frame.x(k), frame.y(difficulty), radius)
    return [tag("path", class_=f"mark {kind.value}", d=d) for kind, d in shapes.items() if d]


def funnel_plot(
    funnel: Funnel, required: Sequence[Threshold], decided: tuple[float, float, float] | None, key: str
) -> Markup:
    """Draw the accuracy by the draws so far, with its interval at each number of questions.

    Args:
        required: Thresholds of gates.
        decided: Estimate, low and high of the interval that gates decide on.
        key: Prefix of the picture's ids.
    """
    n = funnel.asked[-1]
    frame = Frame((min(1, n - 1), n), (0.0, 1.0))
    high, estimate, low = (
        [(frame.x(k), frame.y(value)) for k, value in zip(funnel.asked, values, strict=True)]
        for values in (funnel.high, funnel.estimate, funnel.low)
    )
    parts = [frame.above("accuracy"), *frame.grid(SHARES, share_label), band(high, low), path(estimate, "line")]
    ordered = sorted(required, key=lambda threshold: -threshold.value)
    lines = [frame.y(threshold.value) for threshold in ordered]
    above = [-math.inf, *lines][: len(lines)]  # a label that would cover the line above its own stands below its own
    label_heights = [y - 5 if y - over > LINE else y + LINE for y, over in zip(lines, above, strict=True)]
    heights = _spaced(label_heights, frame.bottom - 5)
    for threshold, y, label_y in zip(ordered, lines, heights, strict=True):
        parts.append(tag("line", class_="required", x1=frame.left, x2=frame.right, y1=y, y2=y))
        label = threshold.label.replace(">=", "≥")
        parts.append(tag("text", label, class_="end halo", x=frame.right - 4, y=label_y))
    last, label_x = funnel.estimate[-1], frame.right + 8
    if decided is not None:
        last, decided_low, decided_high = decided
        label_x = frame.right + 19
        parts.append(whisker(frame.right + 10, frame.y(decided_low), frame.y(decided_high)))
        parts.append(tag("circle", class_="point", cx=frame.right + 10, cy=frame.y(last), r=3.5))
    parts.append(tag("text", number(last, 2), class_="value", x=label_x, y=frame.y(last) + 4))
    parts += frame.below(frame.counts(n), "questions asked")
    description = (
        f"After {n} questions {number(funnel.estimate[-1])}, interval {number(funnel.low[-1])} to "
        f"{number(funnel.high[-1])}. " + " ".join(f"A gate asks for {threshold.label}." for threshold in required)
    )
    return frame.picture(key, "Accuracy by the number of questions asked", description, parts)


def _spaced(heights: Sequence[float], lowest: float) -> list[float]:
    """Return heights of labels, from the top down, moved so that none covers another."""
    spaced: list[float] = []
    for height in heights:
        spaced.append(max(height, spaced[-1] + LINE) if spaced else height)
    for n in reversed(range(len(spaced))):
        spaced[n] = min(spaced[n], lowest)
        lowest = spaced[n] - LINE
    return spaced


def response_plot(bins: Sequence[Bin], key: str) -> Markup:
    """Draw the share right and the predicted share in bins of rising difficulty, equally wide."""
    frame = Frame((0, len(bins)), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid(SHARES, share_label)]
    centres = [frame.x(k + 0.5) for k in range(len(bins))]
    parts.append(path([(x, frame.y(b.predicted)) for x, b in zip(centres, bins, strict=True)], "predicted"))
    for x, b in zip(centres, bins, strict=True):
        parts.append(whisker(x, frame.y(b.low), frame.y(b.high)))
        parts.append(tag("circle", class_="point", cx=x, cy=frame.y(b.right), r=4.5))
        parts.append(tag("rect", class_="forecast", x=x - 4, y=frame.y(b.predicted) - 4, width=8, height=8))
    inner = [(easier.hardest + harder.easiest) / 2 for easier, harder in itertools.pairwise(bins)]
    edges = [bins[0].easiest, *inner, bins[-1].hardest]
    ticks = [(frame.x(k), _difficulty_label(value)) for k, value in enumerate(edges)]
    parts += frame.below(ticks, "difficulty, logits")
    description = "; ".join(
        f"difficulty {b.easiest:.2f} to {b.hardest:.2f}: {number(b.right, 2)} right of {b.count}, "
        f"{number(b.predicted, 2)} predicted"
        for b in bins
    )
    return frame.picture(key, "Share right by difficulty", description, parts)


def _difficulty_label(value: float) -> str:
    """Return a difficulty, without digits beyond 10: items that hardly discriminate reach the thousands."""
    return signed_label(round(value, 1)) if abs(value) < 10 else ">10" if value > 0 else "<−10"


def levels_plot(steps: Sequence[Step], half: float | None, key: str) -> Markup:
    """Draw the accuracy by level of a ladder, and the level at which it crosses one half."""
    frame = Frame((steps[0].level - 0.5, steps[-1].level + 0.5), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid(SHARES, share_label)]
    if half is not None:
        parts.append(tag("line", class_="required", x1=frame.x(half), x2=frame.x(half), y1=frame.top, y2=frame.bottom))
    parts.append(path([(frame.x(step.level), frame.y(step.right)) for step in steps], "line"))
    for step in steps:
        parts.append(whisker(frame.x(step.level), frame.y(step.low), frame.y(step.high)))
        parts.append(tag("circle", class_="point", cx=frame.x(step.level), cy=frame.y(step.right), r=4))
    every = max(1, math.ceil(len(steps) / 12))
    parts += frame.below([(frame.x(step.level), str(step.level)) for step in steps[::every]], "level")
    description = "; ".join(f"level {step.level}: {number(step.right, 2)} right of {step.asked}" for step in steps)
    return frame.picture(key, "Share right by level", description, parts)


def series_plot(values: Sequence[float], name: str, unit: str, key: str) -> Markup:
    """Draw values of at least 0 by their number, from 1."""
    n = len(values)
    highest = max(*values, 1e-3)
    frame = Frame((1, n), (0.0, highest * 1.06))
    parts = [frame.above(name), *frame.grid(ticks_in((0.0, highest), 4), lambda tick: f"{tick:g}")]
    parts.append(path([(frame.x(k), frame.y(value)) for k, value in enumerate(values, 1)], "line"))
    parts += frame.below(frame.counts(n), unit)
    description = (
        f"{n} {unit}s, the first {number(values[0])}, the highest {number(max(values))}, the last {number(values[-1])}."
    )
    return frame.picture(key, f"{name} by {unit}", description, parts)


def mirrored_bars(edges: Sequence[float], above: Sequence[float], below: Sequence[float], title: str) -> Markup:
    """Draw two distributions over the same bins, as shares of each: one above a line, the other below it.

    Args:
        edges: One more than there are bins.
        above, below: Counts.
    """
    line, height = 26.0, 22.0
    shares = [[count / (sum(counts) or 1.0) for count in counts] for counts in (above, below)]
    most, step = max(*shares[0], *shares[1]) or 1.0, _BAR / len(above)
    parts = [tag("line", class_="axis", x1=0, x2=_BAR, y1=line, y2=line)]
    for class_, distribution in zip(("others", "low"), shares, strict=True):
        for n, share in enumerate(distribution):
            if share:
                bar = height * share / most
                y = line - bar if class_ == "others" else line
                parts.append(tag("rect", class_=class_, x=n * step + 0.5, y=y, width=step - 1, height=bar))
    for x, anchor, value in ((0.0, "start", edges[0]), (_BAR, "end", edges[-1])):
        parts.append(tag("text", minus(f"{value:.3g}"), class_=anchor, x=x, y=2 * line + 9))
    size = f"0 0 {_BAR:g} {2 * line + 12:g}"
    return tag("svg", tag("title", title), *parts, role="img", class_="bar mirrored", viewBox=size)


def interval_bar(
    low: float, estimate: float, high: float, span: Span = (0.0, 1.0), target: float | None = None
) -> Markup:
    """Draw an interval on a scale, as a decoration of its numbers.

    Args:
        span: The scale; with a target, its ends are written below.
        target: Threshold, marked by a line.
    """
    middle = 9.0

    def x(value: float) -> float:
        return _BAR_MARGIN + (_BAR - 2 * _BAR_MARGIN) * position_in(value, span)

    parts = [
        tag("line", class_="track", x1=x(span[0]), x2=x(span[1]), y1=middle, y2=middle),
        tag("rect", class_="range", x=x(low), y=middle - 3, width=max(x(high) - x(low), 1.0), height=6, rx=3),
        tag("circle", class_="point", cx=x(estimate), cy=middle, r=4),
    ]
    height = 2 * middle
    if target is not None:
        height += 14
        label_x = min(max(x(target), 22.0), _BAR - 22)
        parts += [
            tag("line", class_="target", x1=x(target), x2=x(target), y1=1, y2=17),
            tag("text", f"≥ {number(target, 2)}", class_="mid asked", x=label_x, y=height - 3),
        ]
        if label_x > 50:
            parts.append(tag("text", _end_label(span[0]), x=4, y=height - 3))
        if label_x < _BAR - 50:
            parts.append(tag("text", _end_label(span[1]), class_="end", x=_BAR - 4, y=height - 3))
    return tag("svg", *parts, class_="bar", viewBox=f"0 0 {_BAR:g} {height:g}", aria_hidden="true")


def _end_label(value: float) -> str:
    return signed_label(round(value, 1 if abs(value) < 10 else 0))


def history_plot(series: Series, alarms: Sequence[Alarm], run: str, span: Span, z: float, key: str) -> Markup:
    """Draw a series over its runs, with its alarms.

    Args:
        series: With at least one point.
        alarms: Alarms of this series.
        run: Id of the run to mark as the current one.
        span: Range of the vertical axis, the same for all panels to be compared.
        z: Standard errors to each side of an interval.
        key: Prefix of the picture's ids.
    """
    n = len(series.points)
    frame = Frame((-0.5, n - 0.5), span, _PANEL, _PANEL_MARGINS)
    parts = frame.grid(ticks_in(span, 5), share_label if find_metric(series.metric).is_share else signed_label)
    for alarm in alarms:
        since = frame.x(alarm.since - 0.5)
        parts.append(tag("line", class_="change", x1=since, x2=since, y1=frame.top, y2=frame.bottom))
        over = frame.right if alarm.until is None else frame.x(alarm.until)
        for level, start, stop in ((alarm.before, frame.left, since), (alarm.after, since, over)):
            parts.append(tag("line", class_="level", x1=start, x2=stop, y1=frame.y(level), y2=frame.y(level)))
    positions = [(frame.x(k), frame.y(point.value)) for k, point in enumerate(series.points)]
    parts.append(path(positions, "line faint"))
    raised = {alarm.at for alarm in alarms}
    for k, (point, (x, y)) in enumerate(zip(series.points, positions, strict=True)):
        low, high = point.bounds(z)
        parts.append(whisker(x, frame.y(low), frame.y(high), cap=0.0))
        if k in raised:
            parts.append(tag("path", class_="alarm", d=f"M{x:.1f} {y - 6:.1f}l6 11h-12z"))
        else:
            parts.append(tag("circle", class_="point", cx=x, cy=y, r=3))
        if point.run == run:
            parts.append(tag("circle", class_="now", cx=x, cy=y, r=8))
    if current := [k for k, point in enumerate(series.points) if point.run == run]:
        x, y = positions[current[-1]]
        label = minus(number(series.points[current[-1]].value, 2))
        parts.append(tag("text", label, class_="value", x=x + 12, y=y + 4))
    parts += [frame.axis(), *_dates(series, frame)]
    description = f"{n} runs, the last at {number(series.points[-1].value)}. "
    description += " ".join(alarm.sentence for alarm in alarms)
    return frame.picture(key, f"{series.metric} by run", description, parts)


def _dates(series: Series, frame: Frame) -> list[Markup]:
    """Return the days of the first and the last run, or their times on one day."""
    first, last = (series.points[k].started for k in (0, -1))
    characters = slice(11, 16) if first[:10] == last[:10] else slice(10)  # of 2031-05-06T07:08:09Z
    labels = [tag("text", first[characters], x=frame.left, y=frame.height - 8)]
    if len(series.points) > 1:
        labels.append(tag("text", last[characters], class_="end", x=frame.right, y=frame.height - 8))
    return labels


def stacked_bars(key: str, rows: Sequence[tuple[str, Sequence[float], bool]], parts: Sequence[str]) -> Markup:
    """Draw amounts in parts, a bar per row.

    Args:
        key: Prefix of the picture's ids.
        rows: Name, amounts of at least 0, and whether the row is highlighted: its name in bold, its total behind the
            bar.
        parts: Names of the parts.
    """
    most = max((sum(amounts) for _, amounts, _ in rows), default=0.0) or 1.0
    width = WIDTH - _LABEL - 50.0
    drawn = []
    for n, (name, amounts, highlighted) in enumerate(rows):
        top, x = n * LINE + 2.0, _LABEL
        drawn.append(tag("text", name, class_="end halo" if highlighted else "end", x=_LABEL - 8, y=top + 11))
        for k, amount in enumerate(amounts):
            bar = width * amount / most
            drawn.append(tag("rect", class_=f"part p{k}", x=x, y=top, width=bar, height=LINE - 5))
            x += bar
        if highlighted:
            drawn.append(tag("text", number(sum(amounts), 2), class_="value", x=x + 6, y=top + 11))
    description = "; ".join(f"{name} {number(sum(amounts), 2)}" for name, amounts, _ in rows)
    return svg(key, f"Abilities in {', '.join(parts)}", description, (WIDTH, len(rows) * LINE + 4), *drawn)


def heatmap(names: Sequence[str], cells: Sequence[Sequence[float | None]], key: str) -> Markup:
    """Draw a square of judgments from 1 to 5, whose columns have the numbers of the rows.

    Args:
        names: Names of the rows.
        key: Prefix of the picture's ids.
    """
    n, top = len(names), 24.0
    side = min((WIDTH - _LABEL) / n, 44.0)
    parts = []
    for i, (name, row) in enumerate(zip(names, cells, strict=True)):
        y = top + i * side
        parts.append(tag("text", name, class_="end", x=_LABEL - 8, y=y + side / 2 + 4))
        parts.append(tag("text", str(i + 1), class_="mid", x=_LABEL + (i + 0.5) * side, y=top - 8))
        for j, judgment in enumerate(row):
            parts += _heat_cell(_LABEL + j * side, y, side, judgment)
    judgments = [[judgment for judgment in row if judgment is not None] for row in cells]
    description = "; ".join(
        f"{name} gives {number(sum(row) / len(row), 1)} on average"
        for name, row in zip(names, judgments, strict=True)
        if row
    )
    return svg(key, "Mean judgment by judge and contestant", description, (WIDTH, top + n * side + 4), *parts)


def _heat_cell(x: float, y: float, side: float, judgment: float | None) -> list[Markup]:
    shade = 0.0 if judgment is None else 0.06 + 0.84 * position_in(judgment, (1.0, 5.0))
    inside = {"x": x + 1, "y": y + 1, "width": side - 2, "height": side - 2}
    parts = [tag("rect", class_="heat", fill_opacity=f"{shade:.2f}", **inside)]
    if side >= 26:
        label = "–" if judgment is None else number(judgment, 1)
        class_ = "mid on" if shade > 0.75 else "mid over"
        parts.append(tag("text", label, class_=class_, x=x + side / 2, y=y + side / 2 + 4))
    return parts
