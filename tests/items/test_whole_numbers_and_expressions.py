"""Numbers are read with their sign, unit and multiplier, and not out of an expression."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.items.reading.numbers import expected_numbers, find_numbers, plain_numbers

#: Forms that hold the number N and are another value, or none.
NOT_N = (
    *(r"\frac{\pi}{N}", r"\frac\pi N", r"\frac{x}{N}", r"\frac{N}{\sqrt{7}}", r"\frac{1}{N}", r"\frac{N}{-1}"),
    *(r"\sqrt{N}", r"\sqrt[4]{N}", r"N\sqrt{2}", "√N", "N√2", r"\ln(N)", r"\log_2 N", r"\log_{10}(N)", "log2(N)"),
    *(
        r"\binom{N}{4}",
        r"\binom6N",
        "N_7",
        "N_{7}",
        "f(N)",
        r"\sin N",
        "e^N",
        "2^{N}",
        "N^2",
        "N²",
        "N^{-1}",
        "10^{-N}",
    ),
    *(r"\pm N", "±N", "N ± 1", "+/- N", "N:30", "1:N", "N : 1", "N; 1", "N or 1", "N, 1", "(N, 1)", "[N, 1]", "N–900"),
    *("N.0.1", "N.5", "N,5", "0.N", "N..5", "N…5", "1N", "N0", "N 1/2", "N½", "N and a half", "N point 5"),
    *(
        "x-N",
        "N - x",
        "x + N",
        "NX",
        "Nab",
        "N x",
        "N(x+1)",
        "Ni",
        r"N\pi",
        "Nπ",
        "N + 1",
        "N * 2",
        "N x N",
        "N by N",
        "N/7",
    ),
    *("N hundred", "N thousand", "N million", "N dozen", "N quarters", "N-fifths", "N百", "N万", "N分之一", "N mil"),
    *("half of N", "a third of N", "twice N", "double N", "the square of N", "the cube root of N", "3/4 of N"),
    *("N squared", "N cubed", "N to the power of 2", "N times 2", "N plus 1", "N divided by 2", "N percent of 50"),
    *("-N", "- N", "–N", "−N", "-{N}", "-(N)", "x = – N", "x = - N", r"-\frac{N}{1}", r"-\left(N\right)", "-$N"),
    *("minus N", "negative N", "menos N", "负N", r"\text{-}N", "|-N| - 1", "x > N", r"x \geq N", "not N", "at least N"),
    *("N hours 20 minutes", "N hours and 20 minutes", "2 hours N minutes", "N feet 3 inches", "N kg 200 g", "Nh30"),
    *("$N and 50 cents", "N dollars and 50 cents", "N° 30'", r"[N, \infty)", "between N and 900"),
)
#: Forms that are the number N.
N = (
    *("N", "N.", "(N)", "**N**", "N.0", "N.00", "$N", r"\$N.00", "€N", "N €", "N dollars", "N km/h", "N cm²", "Nkm"),
    *("N eggs a day", "N eggs a day, so $N", "exactly N", "about N", "a total of N", "N in total", "N-day", "$N/hour"),
    *("x = N", "= N", "≈ N", r"\text{N}", r"N \text{ cm}", r"N\,\mathrm{m}^2", r"N^\circ", "+N", "|-N|", "-(-N)"),
    *(r"\frac{N}{1}", "N/1", "2 - 1 = N", "3:30 is = N", "N [2]", "N (two of them)", "N, not 1", "N: it is so"),
    *("N because 2 + 2 = 4", "N, since 5 is left", "1, no wait, N", "N (check: 2 x 3 = 6)", "N. (Check: 2 x 3 = 6)"),
    *(
        r"\underline{N}",
        r"\color{red}{N}",
        r"\large N",
        "2 * 2 = <<2*2=N>>N eggs",
        r"\Rightarrow N",
        r"N \quad\checkmark",
    ),
    *("N - as stated", "N – as stated", "N out of 20", "N个", "N元", "N minutes"),
)
FRAMES = ("F", r"\boxed{F}", "The answer is F.", "**Answer:** F", "So the result is F.", "#### F")


def accepted(grader: str, key: str, forms: tuple[str, ...], frames: tuple[str, ...] = FRAMES) -> list[str]:
    item = Item("i", "How much is it?", key, grader)
    texts = [frame.replace("F", form.replace("N", key)) for form in forms for frame in frames]
    return [text for text in texts if item.grade(text) == 1.0]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("grader", "key"), [("numeric", "415"), ("numeric", "6"), ("math", "415"), ("math", "6")])
def test_a_number_within_an_expression_is_not_the_answer(grader: str, key: str) -> None:
    assert accepted(grader, key, NOT_N) == []


@pytest.mark.parametrize(("grader", "key"), [("numeric", "415"), ("numeric", "6"), ("math", "6")])
def test_a_number_with_sign_unit_and_words_is_the_answer(grader: str, key: str) -> None:
    item = Item("i", "How much is it?", key, grader)
    texts = [frame.replace("F", form.replace("N", key)) for form in N for frame in FRAMES]
    assert [text for text in texts if item.grade(text) != 1.0] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("three quarters", "3/4"),
        ("three-fifths", "3/5"),
        ("a third", "1/3"),
        ("two and a half", "5/2"),
        ("2 and three quarters", "11/4"),
        ("two point five", "5/2"),
        ("one thousand two hundred and six", "1206"),
        ("twenty-one", "21"),
        ("twelve hundred", "1200"),
        ("3 hundred", "300"),
        ("1.2 million", "1200000"),
        ("3 dozen", "36"),
        ("2M", "2000000"),
        ("30万", "300000"),
        ("4 Millionen", "4000000"),
        ("-2½", "-5/2"),
        (r"-\frac34", "-3/4"),
        (r"- \frac 34", "-3/4"),
        (r"\frac{3}4", "3/4"),
        (r"\frac{1}{-8}", "-1/8"),
        (r"1\frac{3}{4}", "7/4"),
        ("-{9}", "-9"),
        ("x = – 9", "-9"),
        ("|-5|", "5"),
        ("-|5|", "-5"),
        ("2^{10}", "1024"),
        ("6.5 × 10^{-2}", "13/200"),
        ("1{,}250", "1250"),
        ("1.234.567,5", "2469135/2"),
        ("0,125", "1/8"),
    ],
)
def test_the_value_of_a_number(text: str, value: str) -> None:
    (number,) = find_numbers(plain_numbers(text))
    assert number.exact[-1] == Fraction(value)


def test_a_multiplier_counts_as_the_question_asks() -> None:
    asked = Item("i", "How many million people live there?", "3", "numeric")
    assert asked.grade("3 million") == asked.grade("3") == 1.0
    assert Item("i", "How many people live there?", "3", "numeric").grade("3 million") == 0.0
    table = Item("i", "What was the net income?", "3791", "numeric")  # tables give money in thousands
    assert table.grade("$3,791 thousand") == 1.0
    assert Item("i", "How much?", "3", "numeric").grade("$3 hundred") == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        (
            r"\frac{\pi}{3}",
            (r"\frac\pi3", "π/3", r"\theta = \frac{2\pi}{6}"),
            ("3", r"\frac{\pi}{6}", r"-\frac{\pi}{3}"),
        ),
        (r"2\sqrt{3}", (r"\sqrt{12}", "2√3", r"2\sqrt3\text{ units}"), (r"2\sqrt{3}x", r"\pm 2\sqrt3", "23")),
        ("(3,4)", ("(x,y) = (3, 4)", r"\left(3,4\right)"), ("[3,4]", "(4,3)", "34", "3,4,5")),
        ("1,2,3", ("3, 2 and 1", r"\{1,2,3\}"), ("1.2.3", "1,2", "123")),
        ("2+3i", (r"2+3\cdot i", "3i+2"), ("2+3j", "2-3i", "5i")),
        ("120", ("5!", r"\binom{10}{3}"), ("120!", "120'30", "12_0", "120 ‰")),
        ("12_3", ("12_{3}", r"12_{\text{three}}"), ("12", "12_4", "123", "21_3")),
        (r"\log_2 3", (r"\log_{2}{3}", r"\frac{\ln 3}{\ln 2}"), (r"\log_{23}", "3", r"\log_3 2")),
        ("x^2+2x+1", ("(x+1)^2", "f(x) = 1+2x+x^2"), ("y^2+2y+1", "x^2+2x", "(x+2)^2")),
        (r"1 \le x \le 3", ("[1,3]", r"x \in [1,3]", "1 ≤ x ≤ 3"), ("(1,3)", "1 < x < 3", "[1,4]")),
        (r"-\frac12", (r"\frac{1}{-2}", "– 1/2", "-{0.5}"), (r"\frac12", r"-(-\frac12)", r"|-\frac12|", r"-\frac12 x")),
        ("3", (r"\sqrt{9}", r"\log_2 8", "2+1", r"3\%"), ("3:1", "3!", "3ab", r"3\text{ hundred}", r"3 \pmod 5 + 1")),
    ],
)
def test_expressions_are_compared_as_wholes(key: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    pytest.importorskip("math_verify")
    frames = (r"\boxed{F}", "The answer is $F$.")
    assert len(accepted("math", key, right, frames)) == len(right) * len(frames)
    assert accepted("math", key, wrong, frames) == []


@given(st.integers(2, 99_999), st.sampled_from(["N", "-N", "N/7", "N.25"]), st.data())
def test_a_changed_key_is_refused(number: int, form: str, data: st.DataObject) -> None:
    key = form.replace("N", str(number))
    digits = [index for index, letter in enumerate(key) if letter.isdigit()]
    index = data.draw(st.sampled_from(digits))
    digit = data.draw(st.sampled_from([digit for digit in "123456789" if digit != key[index]]))
    changes = [key[:index] + digit + key[index + 1 :], key[1:] if key[0] == "-" else f"-{key}", f"7 {key}"]
    changes += [change.replace("N", key) for change in (r"\sqrt{N}", r"\frac{1}{N}", r"\frac{N}{2}", "half of N")]
    changes += [change.replace("N", key) for change in (r"\frac{N}{\frac{1}{3}}", r"\frac{\pi}{N}", "(N)^2", "N^{-1}")]
    assert accepted("numeric", key, tuple(changes), ("F", r"\boxed{F}", "The answer is $F$.")) == []


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("0.6666666666666666", ("2/3", "0.6666666666666667", r"\frac{2}{3}", "0.66667"), ("0.67", "2/5", "0.66666")),
        ("66.66666666666667", ("200/3", "66.66666666666666", "66.667"), ("66.7", "66.66")),
        ("0.30000000000000004", ("0.3", "3/10"), ("0.31", "0.3001")),
    ],
)
def test_a_float_that_is_written_out_is_its_fraction(key: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    assert accepted("numeric", key, right, ("F",)) == list(right)
    assert accepted("numeric", key, wrong, ("F",)) == []


def test_a_key_that_is_an_expression_holds_no_number() -> None:
    assert expected_numbers(r"\sqrt{3}") == expected_numbers("x - 3") == expected_numbers("1e500") == ()


@pytest.mark.parametrize(
    "part", ["4 hours ", r"\frac{", "1 and ", "-(", "twenty ", "1,", "|1", "$ - ", "(", "1:", "half of "]
)
def test_long_texts_of_beginnings_are_read_in_little_time(part: str) -> None:
    assert Item("i", "How much?", "7", "numeric").grade(part * (20_000 // len(part))) == 0.0
