"""Graders that might not end: what they score, and what becomes of them when their time is over."""

from __future__ import annotations

import contextvars
import random
import re
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from pytest_adaptive_eval import Item, Unscored
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.graders.kinds.pattern import accepts_any_text, check_pattern
from pytest_adaptive_eval.items.grading import LimitedGrader

#: Parts of patterns that `regex` reads differently from `re`, among ordinary ones.
PARTS = (
    *("a", "b", "1", " ", ".", r"\d", r"\w", r"\s", r"\b", "[ab]", "[^a]", "[[a]", r"[a\]]", "[]a]", "[^]b]", "{", "}"),
    *(
        "{e}",
        "{e<=1}",
        "{,}",
        "{2}",
        "{1,}",
        "{,2}",
        "{ab",
        "(?:ab)",
        "(a|b)",
        "*",
        "+",
        "?",
        "*?",
        "??",
        "|",
        "^",
        "$",
    ),
    *(r"\.", r"\{", "(?i:A)", "(?=a)", "(?!b)", "[[:alpha:]]", "[a--b]", "[a&&b]", "(?#x[)", "é", "ß", "++", "(?>a+)"),
)
TEXTS = ("a", "b", "ab ba", "aab1", "{e}", "a{e}", "a{e<=1}", "1 2", "É", "Ab\nba", "[:alpha:]", "a-b", "&", "::]")


def pattern_item(pattern: str) -> Item:
    return Item("q7", "?", pattern, "regex")


def patterns() -> Iterator[str]:
    rng = random.Random(11)
    for _ in range(4000):
        yield "".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 6)))


@pytest.mark.slow
def test_patterns_match_what_the_standard_library_matches() -> None:
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for pattern in patterns():
            try:
                expected = [float(re.search(pattern, text) is not None) for text in TEXTS]
            except re.error:
                assert check_pattern(pattern), pattern
                continue
            assert check_pattern(pattern) == "", pattern
            assert [pattern_item(pattern).grade(text) for text in TEXTS] == expected, pattern
            compared += 1
    assert compared > 2000


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 40 + "!"),
        (r"^(\w+\s?)*$", "The quick brown fox jumps over the lazy dog, twice and once more!"),
        ("(?:a|a)*b", "a" * 20_000),
        ("^(a|b|ab)*c$", "ab" * 10_000),
        ("((a{0,1000}){0,1000}){0,1000}b", "a" * 5000),
    ],
)
def test_patterns_that_the_standard_library_does_not_end_give_a_score(pattern: str, text: str) -> None:
    assert pattern_item(pattern).grade(text) == 0


@pytest.mark.slow
def test_a_pattern_whose_time_is_over_is_a_fault_of_its_item() -> None:
    with pytest.raises(
        Unscored, match=r"item 'q7': .* '\(x\+x\+\)\+y' did not end within 2 s .* fault of the bank"
    ) as fault:
        pattern_item("(x+x+)+y").grade("x" * 20_000)
    assert (fault.value.status, len(fault.value.text)) == ("error", 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(?i)" + "[\0-\U0010ffff]" * 2000, "|".join("a" * n for n in range(3000))])
def test_a_pattern_that_compiles_for_ever_is_refused(pattern: str) -> None:
    begun = time.monotonic()
    assert re.search("longer than|took longer|stand for more", check_pattern(pattern))
    assert time.monotonic() - begun < 9


def test_a_pattern_of_a_warning_is_read_where_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_pattern("[[(]|[a||c]") == ""


def test_no_wrong_pattern_is_a_score() -> None:
    with pytest.raises(BankError, match="item 'q7': the answer '\\(' is not a regular expression"):
        pattern_item("(").grade("(")


def test_a_pattern_of_an_answers_length_refuses_something() -> None:
    assert accepts_any_text("^.{1,100}$") == ""


def function_item(function: object) -> Item:
    return Item("q7", "?", "x", "python:mine:grade", custom=LimitedGrader(function))  # type: ignore[arg-type]


def test_a_function_is_given_item_and_text_and_gives_the_score() -> None:
    assert function_item(lambda item, text: len(item.answer + text) / 10).grade("ab") == pytest.approx(0.3)


def endless(item: Item, text: str) -> float:
    start = time.monotonic()
    while time.monotonic() < start + 10:  # where a tracer keeps it from being interrupted, it ends by itself
        pass
    return 1.0


def asleep(item: Item, text: str) -> float:
    time.sleep(60)
    return 1.0


def waiting(item: Item, text: str) -> float:
    threading.Event().wait()
    return 1.0


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("function", [endless, asleep, waiting])
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_a_function_whose_time_is_over_is_a_fault_of_its_item(
    function: object, in_a_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function, "timeout", 0.1, raising=False)
    faults: list[Unscored] = []

    def grade() -> None:
        with pytest.raises(
            Unscored, match=r"item 'q7': its grader 'python:mine:grade' did not return within 0.1 s"
        ) as fault:
            function_item(function).grade("x")
        faults.append(fault.value)

    if in_a_thread:
        thread = threading.Thread(target=grade)
        thread.start()
        thread.join()
    else:
        grade()
    assert [fault.status for fault in faults] == ["error"]


def test_a_function_that_raises_is_told_as_it_is() -> None:
    def refused(item: Item, text: str) -> float:
        raise TimeoutError("the judge's server")

    with pytest.raises(TimeoutError, match="the judge's server"):
        function_item(refused).grade("x")


def test_a_function_sees_the_callers_context() -> None:
    variable = contextvars.ContextVar("variable", default=0.0)
    variable.set(0.5)
    assert function_item(lambda item, text: variable.get()).grade("x") == 0.5


@pytest.mark.parametrize("wrong", [0, -1, "5", True, float("nan"), 1e9])
def test_a_time_limit_is_a_number_of_seconds(wrong: object) -> None:
    def grade(item: Item, text: str) -> float:
        return 1.0

    grade.timeout = wrong  # type: ignore[attr-defined]
    with pytest.raises(BankError, match=r"timeout of the grader 'python:mine:grade' is .*, expected seconds"):
        function_item(grade).grade("x")
