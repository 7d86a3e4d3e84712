"""Expressions that reach a value in a row."""

import pytest

from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.errors import ConfigError

ROW = {
    "doc": {"options": ["x", "y"], "a.b|c": 1},
    "options": "['red', 'green']",
    "answer_index": 1,
    "letter": "B",
    "pred": "C",
    "answer": " C ",
    "exact_match,none": 0.5,
    "x.y": 7,
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}, "odd"],
    "text": "So the answer is 12, or rather 1,204.",
    "small": {"is_correct": True},
    "large": {"is_correct": False},
    "empty": [],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pred", "C"),
        ("doc.options[1]", "y"),
        ("doc.options[-1]", "y"),
        ("doc.options[9]", None),
        ('doc."a.b|c"', 1),
        ("doc.options[answer_index]", "y"),
        ("doc.options[letter]", "y"),
        ("exact_match,none", 0.5),
        ("x.y", 7),
        ("messages[*].content", ["s", "u"]),
        ("messages[*].content | last", "u"),
        ("options | parse | first", "red"),
        ("options | parse | length", 2),
        ("empty | first", None),
        ("pred == answer", True),
        ("pred != answer", False),
        ("pred == 'B'", False),
        ("pred == absent", None),
        ("'a == b | c'", "a == b | c"),
        ("0.25", 0.25),
        ("$file", "f"),
        ("$parent.model", "m"),
        ("{pred}: {doc.options[0]}", "C: x"),
        (r"{letter}\nWhat's that?", "B\nWhat's that?"),
        ("{pred} {absent}", None),
        ("answer_index | letter", "B"),
        ("answer_index | letter(1)", "A"),
        ("doc.options | lettered", "A. x\nB. y"),
        ("pred | map(C=1,I=0)", 1),
        ("pred | map(I=0)", None),
        ("small.is_correct | map(true=right,false=wrong)", "right"),
        (r"text | extract(([\d,]+)\.?$) | number", 1204),
        (r"text | match(\bapple\b|12)", True),
        ("small.is_correct | not", False),
        ("absent.deeper[0].still | parse", None),
    ],
)
def test_value_of_expression(text, expected):
    assert parse_expression(text)(ROW, {"file": "f", "parent": {"model": "m"}}) == expected


def test_a_wildcard_stands_for_each_key_at_which_there_is_a_value():
    score, answer = parse_expression("*.is_correct"), parse_expression("*.is_correct | not")
    keys = list(score.keys(ROW, {}))
    assert keys == ["small", "large"]
    assert [(score(ROW, {"*": key}), answer(ROW, {"*": key})) for key in keys] == [(True, False), (False, True)]
    below = parse_expression("models.*.ok")
    assert list(below.keys({"models": {"a": {"ok": 1}, "b": {}}, "c": {"ok": 1}}, {})) == ["a"]
    assert list(parse_expression("pred").keys(ROW, {})) == []


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a value is missing"),
        ("pred | zap", "the filter 'zap' is not known; known are parse, number"),
        ("a == b == c", "has several comparisons"),
        ("{a", "a bracket is not closed"),
        ("'a", "a quote is not closed"),
        ("a..b", "'..b' is not understood; expected .KEY"),
        ("text | extract(()", "a bracket is not closed"),
        ("text | extract([)", "a bracket is not closed"),
        ("text | match(*)", "'*' is no regular expression"),
    ],
)
def test_malformed_expressions_name_the_option_and_the_fault(text, part):
    with pytest.raises(ConfigError, match="--score") as caught:
        parse_expression(text, "--score")
    assert part in str(caught.value)


def test_no_expression_runs_code():
    row = {"x": "__import__('os').getcwd()", "y": "[1, 2"}
    assert parse_expression("x | parse")(row, {}) is None
    assert parse_expression("y | parse")(row, {}) is None
    assert parse_expression("x.__class__")(row, {}) is None


@pytest.mark.slow
def test_a_pattern_that_does_not_end_is_refused():
    with pytest.raises(ConfigError, match="does not end in time"):
        parse_expression(r"x | match((a|aa)+(b|a)+\d$)")({"x": "a" * 3000 + "!"}, {})


@pytest.mark.parametrize("text", ["value | letter", "value | number", "value | scale(1,10)", "value | mean"])
@pytest.mark.parametrize("value", [10**4000, float("inf"), float("nan"), "1e999", "9" * 4000, "9" * 5000])
def test_numbers_beyond_every_float_are_missing(text: str, value: object) -> None:
    assert parse_expression(text)({"value": value}, {}) in (None, value)
