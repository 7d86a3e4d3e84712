"""The figures: the numbers they show, where they put them, and that no text can leave its element."""

from __future__ import annotations

import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made

from pytest_adaptive_eval.records.drift import Alarm, Series, SeriesPoint
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.plots import Kind, Share

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


def test_bins_by_difficulty() -> None:
    asked = [
        Administration(n, "a", "h", difficulty=d, score=s, predicted=p)
        for n, (d, s, p) in enumerate([(-2.0, 1.0, 0.9), (1.0, 0.0, 0.4)] * 6 + [(9.0, None, 0.1), (None, 1.0, 0.5)])
    ]
    interview = made(EvaluationRecord, "", "", {"name": ""}, {}, {}, 12, 12, 20, {}, "", "", None, None, None, None)
    interview.administrations = asked
    (low, high), edges = plots.difficulty_bins(interview)
    assert edges == [-2.0, -0.5, 1.0]
    assert (low.asked, low.label, low.right) == (6, "difficulty -2.00 to -2.00", 1.0)
    assert low.predicted == pytest.approx(0.9)
    assert (high.right, high.predicted) == (0.0, pytest.approx(0.4))
    assert low.high == pytest.approx(1.0)
    assert low.low == pytest.approx(6 / (6 + 1.6449**2), rel=1e-3), "Wilson's lower bound of 6 out of 6"
    interview.administrations = asked[:10]
    assert plots.difficulty_bins(interview) == ([], [])


# pictures


@given(rows=st.lists(st.tuples(numbers, shares, shares), min_size=2, max_size=8))
def test_any_response_curve_stays_in_its_picture(rows: list[tuple[float, float, float]]) -> None:
    difficulties = sorted(row[0] for row in rows)
    bins = [
        Share(k, "bin", 6, right, right / 2, (1 + right) / 2, predicted)
        for k, (_, right, predicted) in enumerate(rows, 1)
    ]
    root = inside(plots.bins_plot(bins, [*difficulties, difficulties[-1]], "k"))
    assert len(of_class(root, "point")) == len(of_class(root, "forecast")) == len(bins)
    ticks = [text.text or "" for text in of_class(root, "mid") if "name" not in text.get("class", "")]
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
