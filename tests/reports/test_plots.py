"""The figures: the numbers they show, where they put them, and that no text can leave its element."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made import made

from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.records.drift import Alarm, Series, SeriesPoint
from pytest_adaptive_eval.records.parts import ConditionRecord
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.plots import Bin, Funnel, Kind, Threshold, Trace
from tests.reports.held import bank, held, items

numbers = st.floats(-1e6, 1e6, allow_nan=False)
shares = st.floats(0.0, 1.0)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def inside(svg: str) -> ElementTree.Element:
    """The picture, after checking that every mark and label starts within it and every number is finite."""
    root = parsed(svg)
    width, height = (float(v) for v in root.get("viewBox", "").split()[2:])
    assert not re.search(r"\b(nan|inf)\b", svg)
    for element in root.iter():
        for name, most in (("x", width), ("x1", width), ("x2", width), ("cx", width)):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= most, ElementTree.tostring(element)
        for name, most in (("y", height), ("y1", height), ("y2", height), ("cy", height)):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= most, ElementTree.tostring(element)
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", element.get("d", "")):
            assert -8 <= float(x) <= width + 8
            assert -8 <= float(y) <= height + 8
    return root


def of_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if name in element.get("class", "").split()]


# texts


@given(text=st.text(st.characters(exclude_categories=())))
def test_everything_in_a_text_can_be_seen(text: str) -> None:
    shown = clean_html(text)
    shown.encode("utf-8")
    assert all(c.isprintable() or c in "\n\t\u200c\u200d" or c.isspace() for c in shown)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]", shown)


def test_invisible_characters_are_told() -> None:
    assert clean_html("a\u202eb\u2066c\x00d\ud800e\u200bf\u00adg") == r"a\u202eb\u2066c\x00d\ud800e\u200bf\xadg"
    assert clean_html("\x1b[31mred\x1b[0m") == "red"
    assert clean_html("模型\u3000\u00a0\u200d\U0001f600 é") == "模型\u3000\u00a0\u200d\U0001f600 é"


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert clean_html("x" * 5_300, 300) == "x" * 300 + "… (5,000 more characters)"
    assert clean_html("x" * 300, 300) == "x" * 300


SURROGATES: Any = ("Cs",)


@given(text=st.text(st.characters(exclude_categories=SURROGATES)), name=st.sampled_from(["x", "class_", "aria_label"]))
def test_an_element_holds_its_text(text: str, name: str) -> None:
    element = parsed(tag("g", tag("text", text, **{name: text}), text))
    assert [child.tag for child in element.iter()] == ["g", "text"]
    assert list(element[0].attrib) == [name.rstrip("_").replace("_", "-")]
    # an XML reader turns line ends and tabs in attributes into spaces
    shown = clean_html(text)
    assert (element[0].text or "") == (element[0].tail or "") == shown
    assert " ".join(element[0].attrib[name.rstrip("_").replace("_", "-")].split()) == " ".join(shown.split())


def test_markup_is_taken_as_it_is_and_a_text_is_not() -> None:
    assert tag("g", Markup("<b/>"), "<b/>") == "<g><b/>&lt;b/&gt;</g>"
    assert tag("line", x1=1.26, x2=math.inf, y1=-0.01, y2=None, stroke_width=2) == (
        '<line x1="1.3" x2="0" y1="0" stroke-width="2"/>'
    )


# numbers


@pytest.mark.parametrize("value", [None, math.nan, math.inf, 1e300])
def test_what_is_no_sensible_number_is_absent(value: float | None) -> None:
    assert words.plottable(value) is None
    assert plots.kind_of(Administration(1, "a", "h", score=value)) is Kind.NONE


def test_kinds() -> None:
    found = [plots.kind_of(Administration(1, "a", "h", score=score)) for score in (1.0, 1, 0.0, 0.5, None)]
    assert found == [Kind.RIGHT, Kind.RIGHT, Kind.WRONG, Kind.PARTLY, Kind.NONE]


@pytest.mark.parametrize(("estimator", "guess"), [("map", 0.0), ("map", 0.2), ("eap", 0.0), ("mle", 0.0)])
def test_the_band_of_the_ability_is_that_of_the_interview(estimator: str, guess: float) -> None:
    on = bank(items(80), guess=guess)
    interview = held(on, missing=(7, 20), estimator=ESTIMATORS[estimator](), batch=3)
    trace = plots.ability_trace(interview, on)
    assert trace is not None
    assert trace.before == [*(a.theta_before[0] for a in interview.administrations), interview.theta[0]]
    assert trace.error is not None
    assert len(trace.error) == len(trace.before)
    assert trace.error[-1] == interview.standard_error[0]
    assert trace.error[0] == trace.error[2] == ESTIMATORS[estimator]().prior(1, 1).standard_error[0, 0]
    scores = np.array([[np.nan if a.score is None else a.score for a in interview.administrations[:12]]])
    places = [list(on.ids).index(a.item) for a in interview.administrations[:12]]
    again = ESTIMATORS[estimator]().estimate(
        scores,
        on.discrimination[places][None],
        on.intercept[places][None],
        on.guess[places][None] if guess else None,
        ESTIMATORS[estimator]().prior(1, 1),
    )
    assert trace.error[12] == pytest.approx(again.standard_error[0, 0], rel=1e-4)
    assert trace.half == pytest.approx(1.6449 * interview.standard_error[0], rel=1e-3)
    assert trace.kinds.count(Kind.NONE) == 2


def test_no_band_without_the_bank_or_with_another() -> None:
    on = bank(items(60))
    interview = held(on)
    assert plots.ability_trace(interview, None).error is None
    assert plots.ability_trace(interview, on.only("odd")).error is None
    assert plots.ability_trace(interview, replace(on, scale="another")).error is None
    interview.administrations[9].score = 1.0 - interview.administrations[9].score
    assert plots.ability_trace(interview, on).error is None, "these are not the abilities of these answers"
    interview.policy.estimator = "oracle"
    assert plots.ability_trace(interview, on).error is None
    interview.theta = [0.1, 0.2]
    assert plots.ability_trace(interview, on) is None


def test_the_funnel_ends_at_the_interval_by_the_draws() -> None:
    on = bank(items(80))
    interview = held(on)
    funnel = plots.accuracy_funnel(interview)
    assert funnel is not None
    assert funnel.asked == list(range(1, 31))
    for n in (5, 30):
        part = interval_of_draws(interview.draws()[:n])
        at = funnel.asked.index(n)
        assert (funnel.estimate[at], funnel.low[at], funnel.high[at]) == pytest.approx(
            (part.estimate, part.low, part.high)
        )


def test_missing_scores_widen_the_funnel_on_both_sides() -> None:
    on = bank(items(80))
    whole, lacking = held(on), held(on)
    lacking.administrations[10].score = None
    one, two = plots.accuracy_funnel(whole), plots.accuracy_funnel(lacking)
    assert two.high[-1] - two.low[-1] > one.high[-1] - one.low[-1]
    assert two.low[9] == one.low[9]


def test_long_interviews_have_curves_of_few_points() -> None:
    on = bank(items(400))
    interview = held(on, budget=360, batch=1)
    funnel, trace = plots.accuracy_funnel(interview), plots.ability_trace(interview, on)
    assert len(funnel.asked) <= 120
    assert funnel.asked[-1] == 360
    assert trace.error is not None
    assert len(trace.error) == 361
    assert trace.error[359] == pytest.approx(trace.error[360], rel=0.05)


@pytest.mark.parametrize("field", ["propensity", "variance", "rest", "predicted"])
@pytest.mark.parametrize("value", [None, "x", 1e300, 0.0])
def test_no_funnel_from_damaged_draws(field: str, value: Any) -> None:
    interview = held(bank(items(40)), budget=10)
    for a in interview.administrations:
        setattr(a, field, value)
    funnel = plots.accuracy_funnel(interview)
    assert funnel is None or all(0 <= v <= 1 for v in (*funnel.low, *funnel.high, *funnel.estimate))
    if value in (None, "x") and field == "propensity":
        assert funnel is None


def test_thresholds_of_gates(make: SimpleNamespace) -> None:
    given = [
        ConditionRecord("accuracy", "at_least", 0.55),
        ConditionRecord("ability", "at_least", 0.4),
        ConditionRecord("accuracy", "not_worse_than", 0.02, "main"),
        ConditionRecord("of a plugin that is not here", "at_least", 0.5),
        None,
    ]
    gates = [make.gate() for _ in given]
    for gate, condition in zip(gates, given, strict=True):
        gate.verdict.condition = condition
    assert plots.thresholds(gates, None) == [Threshold(0.55, ">= .55")]
    on = bank(items(60))
    p = 1 / (1 + np.exp(-on.discrimination[:, 0] * 0.4 - on.intercept))
    (_, ability) = plots.thresholds(gates, on)
    assert ability.label == "ability >= .40"
    assert ability.value == pytest.approx(p.mean())


def test_bins_by_difficulty() -> None:
    asked = [
        Administration(n, "a", "h", difficulty=d, score=s, predicted=p)
        for n, (d, s, p) in enumerate([(-2.0, 1.0, 0.9), (1.0, 0.0, 0.4)] * 6 + [(9.0, None, 0.1), (None, 1.0, 0.5)])
    ]
    interview = made(EvaluationRecord, "", "", {}, {}, {}, 12, 12, 20, {}, "", "", None, None, None, None)
    interview.administrations = asked
    low, high = plots.difficulty_bins(interview)
    assert (low.count, low.easiest, low.hardest, low.right, low.predicted) == (6, -2.0, -2.0, 1.0, pytest.approx(0.9))
    assert (high.right, high.predicted) == (0.0, pytest.approx(0.4))
    assert low.high == pytest.approx(1.0)
    assert low.low == pytest.approx(6 / (6 + 1.6449**2), rel=1e-3), "Wilson's lower bound of 6 out of 6"
    interview.administrations = asked[:10]
    assert plots.difficulty_bins(interview) is None


# pictures


@given(
    values=st.lists(
        st.tuples(numbers, st.none() | numbers, st.sampled_from(list(Kind)), shares), min_size=1, max_size=40
    ),
    end=numbers,
    band=st.booleans(),
    half=st.none() | st.floats(0.0, 100.0),
)
def test_any_trace_stays_in_its_picture(
    values: list[tuple[float, float | None, Kind, float]], end: float, band: bool, half: float | None
) -> None:
    before, difficulty, kinds, error = (list(column) for column in zip(*values, strict=True))
    trace = Trace([*before, end], [*error, 0.1] if band else None, half, 1.645, difficulty, kinds)
    picture, far = plots.trace_plot(trace, "k")
    root = inside(picture)
    assert 0 <= far <= sum(d is not None for d in difficulty)
    drawn = sum(element.get("d", "").count("M") for element in of_class(root, "mark"))
    assert drawn == sum(d is not None for d in difficulty)


def test_marks_differ_in_shape() -> None:
    shapes = {kind: re.sub(r"[\d.-]+", "", parsed(plots.mark(kind))[0].get("d", "")) for kind in Kind}
    assert len({shapes[Kind.RIGHT], shapes[Kind.WRONG], shapes[Kind.PARTLY]}) == 3
    assert shapes[Kind.NONE] == shapes[Kind.RIGHT], "a disc and a ring: filled and not, in the page's style"


def test_a_trace_as_it_is_drawn() -> None:
    trace = Trace([0.0, 0.0, 1.0], [1.0, 1.0, 0.5], 0.8, 1.6, [0.5, 40.0], [Kind.RIGHT, Kind.WRONG])
    picture, far = plots.trace_plot(trace, "t1")
    root = inside(picture)
    assert far == 1
    assert root.get("role") == "img"
    ids = [root[0].get("id"), root[1].get("id")]
    assert root.get("aria-labelledby") == " ".join(ids) == "t1-t t1-d"
    assert [root[0].tag, root[1].tag] == ["title", "desc"]
    assert root[1].text == (
        "From .00 before question 1 to 1.00 logits after question 2. 1 questions right, 1 wrong, 0 partly right or "
        "without a score."
    )
    line = of_class(root, "line")[0].get("d", "")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]
    assert heights[0] == heights[3] > heights[4] == heights[5], "up at the end, a step a question"
    assert [text.text for text in of_class(root, "value")] == ["1.00"]
    assert not of_class(
        parsed(plots.trace_plot(Trace([0.0, 1.0], None, None, 1.6, [None], [Kind.NONE]), "t")[0]), "band"
    )


def test_a_threshold_just_below_another_has_its_label_below_its_line() -> None:
    funnel = Funnel([1, 2], [0.5, 0.5], [0.0, 0.1], [1.0, 0.9])
    root = parsed(plots.funnel_plot(funnel, [Threshold(0.6, ">= .60"), Threshold(0.58, ">= .58")], None, "k"))
    upper, lower = sorted(float(line.get("y1", 0)) for line in of_class(root, "required"))
    first, second = sorted(float(text.get("y", 0)) for text in of_class(root, "halo"))
    assert first < upper < lower < second - 12


@given(
    rows=st.lists(st.tuples(shares, shares, shares), min_size=1, max_size=60),
    required=st.lists(shares, max_size=4),
    decided=st.none() | st.tuples(shares, shares, shares),
)
@example(rows=[(0.0, 0.1, 0.2)], required=[0.0, 0.01, 0.0, 0.02], decided=None)
@example(rows=[(0.0, 0.1, 0.2)], required=[1.0, 0.99, 1.0, 0.98], decided=None)
def test_any_funnel_stays_in_its_picture(
    rows: list[tuple[float, float, float]], required: list[float], decided: tuple[float, float, float] | None
) -> None:
    low, estimate, high = (list(column) for column in zip(*[sorted(row) for row in rows], strict=True))
    funnel = Funnel(list(range(1, len(rows) + 1)), estimate, low, high)
    root = inside(plots.funnel_plot(funnel, [Threshold(v, f">= {v:.2f}") for v in required], decided, "k"))
    labels = sorted(float(text.get("y", 0)) for text in of_class(root, "halo"))
    assert len(labels) == len(required)
    assert all(two - one >= 16 for one, two in itertools.pairwise(labels)), "labels overlap"
    assert all(text.text.startswith("≥") for text in of_class(root, "halo"))
    floor = float(of_class(root, "axis")[0].get("y1", 0))
    assert all(label < floor for label in labels), "a label below the axis"


@given(rows=st.lists(st.tuples(numbers, shares, shares), min_size=2, max_size=8))
def test_any_response_curve_stays_in_its_picture(rows: list[tuple[float, float, float]]) -> None:
    bins = [Bin(6, d, d, right, right / 2, (1 + right) / 2, predicted) for d, right, predicted in sorted(rows)]
    root = inside(plots.response_plot(bins, "k"))
    assert len(of_class(root, "point")) == len(of_class(root, "forecast")) == len(bins)
    ticks = [text.text for text in of_class(root, "mid") if "name" not in text.get("class", "")]
    assert len(ticks) == len(bins) + 1
    assert max(map(len, ticks)) <= 4


def history(values: list[float], metric: str = "ability") -> Series:
    points = tuple(
        SeriesPoint(f"run-{n}", f"2031-05-{n + 1:02}T07:08:09Z", "s", "c", v, 0.2) for n, v in enumerate(values)
    )
    return Series("evaluation", "bank", "h", "s", metric, "", points)


def test_a_history_marks_this_run_and_the_alarms() -> None:
    series = history([1.0, 1.1, 0.9, 0.2, 0.1])
    alarm = Alarm(series, at=4, since=3, until=None, before=1.0, after=0.15, sentence="ability fell")
    root = inside(plots.history_plot(series, [alarm], "run-4", (-1.0, 2.0), 1.645, "h"))
    assert len(of_class(root, "point")) == 4
    assert len(of_class(root, "alarm")) == len(of_class(root, "now")) == 1
    assert len(of_class(root, "level")) == 2
    change = float(of_class(root, "change")[0].get("x1", 0))
    xs = [float(circle.get("cx", 0)) for circle in of_class(root, "point")]
    assert xs[2] < change < xs[3], "between the last run before and the first since"
    assert root[1].text == "5 runs, the last at .100. ability fell"
    assert [text.text for text in root.iter("text")][-2:] == ["2031-05-01", "2031-05-05"]
    assert not of_class(parsed(plots.history_plot(series, [], "other", (-1.0, 2.0), 1.645, "h")), "now")


@given(values=st.lists(numbers, min_size=1, max_size=30))
def test_any_history_stays_in_its_picture(values: list[float]) -> None:
    series = history(values[:28])
    inside(plots.history_plot(series, [], "run-0", plots.span_of(values, 1.0), 1.645, "h"))


@given(low=numbers, estimate=numbers, high=numbers, target=st.none() | numbers)
def test_any_bar_stays_in_its_picture(low: float, estimate: float, high: float, target: float | None) -> None:
    root = inside(plots.interval_bar(low, estimate, high, target=target))
    assert root.get("aria-hidden") == "true"


def test_a_bar_against_its_target() -> None:
    root = parsed(plots.interval_bar(0.25, 0.5, 0.75, target=0.5))
    assert of_class(root, "target")[0].get("x1") == of_class(root, "point")[0].get("cx") == "80"
    assert [text.text for text in root.iter("text")] == ["≥ .50", "0", "1"]
    assert [text.text for text in parsed(plots.interval_bar(0.25, 0.5, 0.75, target=0.05)).iter("text")] == [
        "≥ .05",
        "1",
    ]
