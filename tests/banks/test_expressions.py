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
    "Best Answer": "b",
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
        ("at(doc.options, answer_index)", "y"),
        ("at(doc.options, letter)", "y"),
        ("exact_match,none", 0.5),
        ("x.y", 7),
        ("Best Answer", "b"),
        ("messages[*].content", ["s", "u"]),
        ("messages[*].content | [-1]", "u"),
        ("parse(options)[0]", "red"),
        ("length(parse(options))", 2),
        ("empty[0]", None),
        ("absent || pred", "C"),
        ("pred == answer", True),
        ("pred != answer", False),
        ("pred == 'B'", False),
        ("pred == absent", None),
        ("'a == b | c'", "a == b | c"),
        ("`0.25`", 0.25),
        ("$file", "f"),
        ("$parent.model", "m"),
        ("{pred}: {doc.options[0]}", "C: x"),
        (r"{letter}\nWhat's that?", "B\nWhat's that?"),
        ("{pred} {absent}", None),
        ("lower(pred)", "c"),
        ("letter(`2`)", "C"),
        ("letter(`2`, `1`)", "B"),
        ("letter('none')", "none"),
        ("split('a ; b;;c', ';')", ["a", "b", "c"]),
        ("join(', ', doc.options)", "x, y"),
        ("scale(answer_index, `0`, `4`)", 0.25),
        ("lookup(pred, 'C=1,I=0')", 1),
        ("lookup(pred, 'I=0')", None),
        ("lookup(small.is_correct, 'true=right,false=wrong')", "right"),
        (r"extract(text, '([\d,]+)\.?$')", "1,204"),
        ("!(small.is_correct)", False),
        ("!absent", None),
        ("parse(absent.deeper[0].still)", None),
        ("length(absent)", None),
    ],
)
def test_value_of_expression(text, expected):
    assert parse_expression(text)(ROW, {"file": "f", "parent": {"model": "m"}}) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a value is missing"),
        ("zap(pred)", "the function 'zap' is not known; known are parse, scale"),
        ("{a", "a brace is not closed"),
        ("'a", "not understood (Bad jmespath expression: Unclosed ' delimiter)"),
        ("a..b", "a key is missing between points; expected a path such as a.b"),
        ("a[0]..b", "at column 5"),
    ],
)
def test_malformed_expressions_name_the_option_and_the_fault(text, part):
    with pytest.raises(ConfigError, match="--score") as caught:
        parse_expression(text, "--score")
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["at()", "at(options)", "extract(text, '(')", "join(pred)", "starts_with(text)"])
def test_arguments_that_do_not_fit_are_refused_at_the_first_record(text):
    with pytest.raises(ConfigError, match=r"the function \w+ does not fit a value: "):
        parse_expression(text)(ROW, {})


def test_no_expression_runs_code():
    row = {"x": "__import__('os').getcwd()", "y": "[1, 2"}
    assert parse_expression("parse(x)")(row, {}) is None
    assert parse_expression("parse(y)")(row, {}) is None
    assert parse_expression("x.__class__")(row, {}) is None


@pytest.mark.slow
def test_a_pattern_that_does_not_end_is_refused():
    with pytest.raises(ConfigError, match="does not end in time"):
        parse_expression(r"extract(x, '(a|aa)+(b|a)+\d$')")({"x": "a" * 3000 + "!"}, {})


@pytest.mark.parametrize("text", ["scale(value, `1`, `10`)", "at(list, value)"])
@pytest.mark.parametrize("value", [10**4000, float("inf"), float("nan"), "1e999", "9" * 4000, "9" * 5000])
def test_numbers_beyond_every_float_are_missing(text: str, value: object) -> None:
    assert parse_expression(text)({"value": value}, {}) in (None, value)
