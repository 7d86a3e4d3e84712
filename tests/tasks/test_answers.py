"""Answers as models write them: prose is accepted, doubt is not, and every refusal says why."""

from __future__ import annotations

import contextlib
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import Unscored
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.answers import by_choice, by_letters, by_number, by_sequence, last_line, shortened
from pytest_adaptive_eval.tasks.numbers import by_values
from pytest_adaptive_eval.tasks.scrambled import by_restoration
from pytest_adaptive_eval.tasks.strings import FIELD
from pytest_adaptive_eval.tasks.words import SAME_LETTERS


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("disc", True),
        ("A **Disc**.", True),
        ("It looks like a ring at first.\nThe answer is disc, not ring", True),
        ("It looks like a ring at first, but the answer is a disc.", True),
        ("ring? cross?\nI say disc", True),
        ("ring or disc", False),
        ("Answer: ring. Well, answer: disc", True),
        ("discs", False),
        ("At first sight it is a disc.\n\nAnswer: table", False),
        ("At first sight it is a disc.\n\nAnswer: $\\text{table}$", False),
        ("The answer is the shape in the middle, a disc.", True),
        ("The disc.\nThe answer is not clear from the rest.", True),
        ("ring", False),
        ("", False),
    ],
)
def test_a_word_of_a_few(text: str, right: bool) -> None:
    mark = by_choice("disc", ("disc", "ring", "cross"))(text, None)
    assert mark.score == right
    assert bool(mark.why) != right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("DBAC", True),
        ("dbac", True),
        ("The post-order is DBAC.", True),
        ("D, B, A, C", True),
        ("D B A C", True),
        ("D -> B -> A -> C", True),
        ("D \N{RIGHTWARDS ARROW} B \N{RIGHTWARDS ARROW} A \N{RIGHTWARDS ARROW} C", True),
        ("From ABCD and BDAC follows DBAC", False),
        ("From ABCD and BDAC follows:\nDBAC", True),
        ("From ABCD and BDAC. The answer is DBAC", True),
        ("DBACE", False),
        ("It could be DBAC.\nAnswer: DBACE", False),
        ("It could be DBAC.\nAnswer: X, Y, Z", False),
        ("ABCD", False),
    ],
)
def test_an_order_of_letters(text: str, right: bool) -> None:
    assert by_letters("DBAC")(text, None).score == right


def test_what_the_question_gives_is_no_answer() -> None:
    judge = by_letters("RIVER", excluded="VERRI")
    assert judge("VERRI is River.", None).score == 1.0
    assert judge("VERRI", None).score == 0.0
    judge = by_sequence("H2G", FIELD, excluded=["T6Z"])
    assert judge("The field right after T6Z is H2G.", None).score == 1.0
    assert judge("T6Z", None).why == "no answer in 'T6Z'"
    assert judge("L7K or H2G", None).why == "several answers, and none is marked as final: 'L7K, H2G'"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("H2G, K3L", True),
        ("Answer: H2G, K3L", True),
        ("The fields are:\n1. H2G\n2. K3L", True),
        ("After T6Z comes H2G, and the last is K3L.", True),
        ("First M4N, H2G and P5Q, then some.\nAnswer: H2G K3L", True),
        ("K3L, H2G", False),
        ("H2G", False),
        ("H2G, K3L, M4N", False),
        ("H2G, K3L\nM4N, K3L", False),
    ],
)
def test_several_fields_in_order(text: str, right: bool) -> None:
    assert by_sequence("H2G, K3L", FIELD, 2, ["T6Z"])(text, None).score == right


def test_sentences_count_where_all_their_damaged_words_are_restored() -> None:
    judge = by_restoration(WORDS, [1, 3, 5, 8], ends=[4, 10])
    assert judge(TEXT, None).score == 1.0
    mark = judge(TEXT.replace(WORDS[5], "happy"), None)
    assert mark.score == 0.5
    assert mark.why == f"1 of 2 sentences restored; first missed: {WORDS[5]}"
    assert judge(TEXT.replace(WORDS[1], "happy").replace(WORDS[8], "sad"), None).score == 0.0
    assert by_restoration(WORDS, [1], ends=[4, 10])(TEXT.replace(WORDS[8], "sad"), None).score == 1.0


def test_words_of_the_same_letters_count() -> None:
    words = ["the", "dusty", "captain", "slept", "behind", "the", "stable", "for", "a", "long", "while"]
    judge = by_restoration(words, [1, 6], accepted=SAME_LETTERS)
    assert judge(" ".join(words).replace("stable", "tables"), None).score == 1.0
    assert judge(" ".join(words).replace("stable", "ablest"), None).score == 0.5
    assert by_restoration(words, [1, 6])(" ".join(words).replace("stable", "tables"), None).score == 0.5


@pytest.mark.parametrize("answer", ["H2G", " h2g. "])
def test_the_expected_answer_alone_is_right_though_nothing_is_found_in_it(answer: str) -> None:
    mark = by_sequence("H2G", "x{5}")(answer, None)
    assert mark.score == 1.0
    assert not mark.why


def test_the_last_line_is_the_last_that_is_not_blank() -> None:
    assert last_line("one\ntwo\n \n\n") == "two"
    assert last_line(" \n") == ""


def test_quoted_texts_are_one_line_of_at_most_the_length() -> None:
    assert shortened("a\n b", 3) == "'a b'"
    assert shortened("abcdefgh", 8) == "'abcdefgh'"
    assert shortened("abcdefghi", 8) == "'abcde...'"
    assert len(shortened("x" * 99)) == 62  # 60 and the quotation marks


def test_numbers_and_their_refusal() -> None:
    assert by_number("12")("so it is 1,2 or rather 12.0", None).score == 1.0
    assert by_number("12")("13", None).why == "the number that '13' gives is not 12"


VALUES = {"x": Fraction(1, 3), "y": Fraction(-5, 2)}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("x = 0.3333, y = -2.5000", True),
        ("x = 0.3334, y = -2.5", True),  # within a unit of the fourth place
        ("x = 0.33344, y = -2.5", False),
        ("x = 0.333, y = -2.5", False),
        ("x: 1/3; y: -5/2", True),
        ("x is 0.33333 and y is \N{MINUS SIGN}2.5.", True),
        ("$x \N{ALMOST EQUAL TO} .3333$, **y = -2.5**", True),
        ("x = 3 - y, so x = 7 and then x = 0.3333\ny = -2.5", True),
        ("x = 0.3333\n- y = -2.5", True),
        ("y = -2.5", False),
        ("x = 3 - y, y = -2.5", False),
        ("x = 1/3y, y = -2.5", False),
        ("max = 0.3333, y = -2.5", False),
        ("x = 1/0, y = -2.5", False),
        ("0.3333, -2.5", False),
        ("x = 0.3333, y = 2.5", False),
        ("x = 0.3333*2, y = -2.5", False),
    ],
)
def test_values_of_unknowns(text: str, right: bool) -> None:
    mark = by_values(VALUES)(text, None)
    assert mark.score == right
    assert bool(mark.why) != right


def test_a_value_that_is_wrong_is_told() -> None:
    assert by_values(VALUES)("x = 1, y = -2.5", None).why == "x = 1 is not 0.3333"
    assert by_values({"x": Fraction(-2, 3)})("x = 1/2", None).why == "x = 1/2 is not -0.6667"


WORDS = ["the", "farmer", "slowly", "carried", "the", "heavy", "lantern", "inside", "the", "cellar"]
SHOWN = ["the", "ramfer", "slowly", "iedcarr", "the", "eavhy", "lantern", "inside", "the", "cellar"]
TEXT = " ".join(WORDS).capitalize() + "."


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (TEXT, 1),
        (TEXT.upper(), 1),
        (f"Here it is:\n\n{TEXT}\n\nI hope this helps you with whatever you wanted to do today.", 1),
        (f'The text is "{TEXT}" as far as one can see in this scrambled state of it, I think.', 1),
        (f"{' '.join(SHOWN)}\n{TEXT}", 1),  # repeating the question is no answer
        (" ".join(SHOWN), 0),
        (TEXT.replace("heavy", "havey"), 2 / 3),
        (TEXT.replace("heavy", "happy").replace("farmer", "framer"), 1 / 3),
        (TEXT.replace("slowly ", ""), 1),  # one word is missing: places may move by one
        (TEXT.replace("inside", "in side"), 1),
        (TEXT.replace("slowly ", "").replace("lantern ", ""), 0),  # two of ten are too many
        (f"{TEXT}\n{TEXT.replace('heavy', 'happy')}", 0),  # two different texts
        ("", 0),
        ("farmer carried heavy", 0),
        (" ".join(WORDS * 3), 0),
    ],
)
def test_the_fraction_restored(text: str, score: float) -> None:
    mark = by_restoration(WORDS, [1, 3, 5], SHOWN)(text, None)
    assert mark.score == pytest.approx(score)
    assert bool(mark.why) == (score < 1)


def test_what_was_missed_is_told() -> None:
    judge = by_restoration(WORDS, [1, 3, 5], SHOWN)
    assert judge(TEXT.replace("heavy", "happy"), None).why == "2 of 3 words restored; first missed: heavy"
    assert judge(f"{TEXT}\n{TEXT.replace('heavy', 'happy')}", None).why.startswith("several texts of 10 words")
    assert judge("no", None).why == "no text of about 10 words in 'no'"


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=10, max_size=30), st.data())
def test_restored_words_never_exceed_those_that_stand_there(words: list[str], data: st.DataObject) -> None:
    damaged = data.draw(st.sets(st.integers(0, len(words) - 1), min_size=1))
    answer = data.draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=9, max_size=33))
    mark = by_restoration(words, damaged)(" ".join(answer), None)
    count = round(mark.score * len(damaged))
    assert count <= sum(min(answer.count(w), [words[i] for i in damaged].count(w)) for w in "abcd")
    if len(answer) == len(words):
        assert count == sum(words[i] == answer[i] for i in damaged)


def test_frozen_families_accept_prose() -> None:
    item = FAMILIES["post_order"].item(4, 0)
    assert item.grade(f"The post-order traversal is {' '.join(item.answer)}.") == 1.0
    assert item.grade(item.answer[::-1]) == 0.0
    shape = FAMILIES["noise"].at_pixels(48).item(3, 1)
    assert shape.grade(f"I can see a {shape.answer} in it.") == 1.0


HOSTILE = (
    "!" * 19_999 + "x",
    "x " * 10_000,
    "x" + " " * 19_998 + "=",
    "A," * 10_000,
    "A-" * 9_999 + "Ab",
    "```\n" * 5000,
    "\n" * 20_000,
    "not " * 5000,
)


@pytest.mark.slow
def test_no_answer_stalls_a_judge() -> None:
    started = time.process_time()
    for name, family in FAMILIES.items():
        item = family.item(min(family.levels, 5), 0)
        for text in (*HOSTILE, "9" * 20_000, "1." * 10_000, "x = " + "9" * 19_000, "(" * 20_000, "def solve" * 2000):
            with contextlib.suppress(Unscored):
                mark = family.verify(item, text)
                assert mark.score < 0.5 or item.choices, name  # such a text may begin with a letter
    assert time.process_time() - started < 100  # a pattern that backtracks takes minutes
