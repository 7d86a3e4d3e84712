"""Numbers in texts, in the notations of many languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["Number", "expected_numbers", "find_numbers", "plain_latex"]

_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
           "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "만": 10**4, "억": 10**8}  # fmt: skip
_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅐": "1/7", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_CURRENCY = r"(?:US\$|A\$|C\$|R\$|[$€£¥₹₩₽₺¢]|USD|EUR|GBP|CNY|INR|Rs\.?)"
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
    r"|\d{1,3}(?:\.\d{3}){2,}(?!\d)(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)"  # 1.234.567 and 1.234,56
    r"|\d{1,3}(?:[ \u2009\u202f'_]\d{3})+(?![\d])(?:[.,]\d+)?"  # 1 234 567
    r"|\d+(?:_\d+)+|\d+,\d{1,2}(?![\d,])|\d+,\d{4,}(?![\d,])|\d+(?:\.\d+)?|\.\d+)"
)
_NUMBER = lazy_pattern(
    rf"(?<![A-Za-z0-9_.])(?P<sign>[-+]\s?)?(?:{_CURRENCY}\s?)?(?P<inner>[-+])?(?P<digits>{_DIGITS})"
    r"(?P<exponent>[eE][-+]?\d+|\s?(?:\\times|\\cdot|[×x*·])\s?10\s?(?:\^|\*\*)\s?\{?\(?(?P<power>[-+]?\d+)\)?\}?)?"
    r"(?P<mixed>\s\d+/\d+)?(?:\s?/\s?(?P<bottom>\d+(?:\.\d+)?))?"
    r"(?P<percent>\s?(?:%|percent\b|per cent\b))?"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|万|萬|亿|億|만|억)(?![a-rt-z]))?",
    re.IGNORECASE,
)
_WORD = lazy_pattern(
    rf"(?<![\w-])(?P<minus>(?:minus|negative)\s)?(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})"
    r"(?:\s(?P<scale>hundred|thousand|million|billion))?(?![\w-])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Parameters
    ----------
    values : tuple of Fraction
        What it may stand for: "50 %" stands for 50 and for 1/2, "5 million" for 5 and for 5 000 000.
    start, end : int
        Place in the text.
    scaled : bool
        Whether a word such as million follows.
    """

    values: tuple[Fraction, ...]
    start: int
    end: int
    scaled: bool = False


def plain_latex(text: str) -> str:
    """Return a text with fractions, signs and spaces of LaTeX as they are written without it."""
    for letter, fraction in _VULGAR.items():
        if letter in text:
            text = re.sub(rf"(?<=\d)\s?{letter}", f" {fraction}", text).replace(letter, fraction)
    if "\\" not in text and "{" not in text:
        return text
    text = re.sub(r"\\[dtc]?frac\s*(\d)\s*(\d)(?!\d)", r" \1/\2 ", text)
    text = re.sub(r"(-?)\s*\\[dtc]?frac\s*\{\s*(-?)\s*([\d.,]+)\s*\}\s*\{\s*([\d.,]+)\s*\}", r" \1\2\3/\4 ", text)
    text = re.sub(r"\{\s*,\s*\}|(?<=\d)\\[,!](?=\d{3})", ",", text)
    text = re.sub(r"(?<=\d)(?:,?\\[!,;: ]|\\[!])+(?=\d{3})", ",", text)
    text = text.replace("\\$", "$").replace("\\%", "%").replace("\\!", "").replace("\\,", " ").replace("\\;", " ")
    text = re.sub(r"\\(?:text|textbf|mathbf|mathrm|textit|mbox|bf|rm|mathit)\s*\{([^{}]*)\}", r" \1 ", text)
    text = re.sub(r"\\(?:left|right|displaystyle|quad|qquad|boldsymbol)\b|\^\{?\\circ\}?", " ", text)
    return re.sub(r"\\[()\[\]]", " ", text)


def find_numbers(text: str) -> list[Number]:
    """Return the numbers of a text in plain characters, in order."""
    numbers = [number for match in _NUMBER.finditer(text) if (number := _from_digits(match))]
    taken = [(number.start, number.end) for number in numbers]
    for match in _WORD.finditer(text):
        if not any(start < match.end() and match.start() < end for start, end in taken):
            from fractions import Fraction

            value = Fraction(_WORDS.index(match["word"].lower()) * _SCALES.get((match["scale"] or "").lower(), 1))
            numbers.append(Number((-value if match["minus"] else value,), match.start(), match.end()))
    return sorted(numbers, key=lambda number: number.start)


def _from_digits(match: re.Match[str]) -> Number | None:
    from fractions import Fraction  # with decimal, a tenth of what importing numpy costs

    if len(match["digits"]) > 400:
        return None
    try:
        value = Fraction(_point(match["digits"]))
        exponent = match["power"] or (match["exponent"] or "")[1:]
        if match["exponent"]:
            if abs(int(exponent)) > 400:
                return None
            value *= Fraction(10) ** int(exponent)
        if match["mixed"]:
            value += Fraction(match["mixed"].strip())
        if match["bottom"]:
            value /= Fraction(match["bottom"])
    except (ValueError, ZeroDivisionError):
        return None
    if "-" in (match["sign"] or "") + (match["inner"] or ""):
        value = -value
    values = [value]
    if match["percent"]:
        values.append(value / 100)
    if match["scale"]:
        values.append(value * _SCALES[match["scale"].lower()])
    return Number(tuple(values), match.start(), match.end(), bool(match["scale"]))


def _point(digits: str) -> str:
    """Return digits with a decimal point and without separators of thousands."""
    digits = re.sub(r"[ \u2009\u202f'_]", "", digits)
    commas, points = digits.count(","), digits.count(".")
    if commas and points:
        decimal = max(digits.rfind(","), digits.rfind("."))
        if (commas > 1 and digits[decimal] == ",") or (points > 1 and digits[decimal] == "."):
            decimal = len(digits)
        whole, fraction = digits[:decimal], digits[decimal + 1 :]
        return re.sub(r"[.,]", "", whole) + (f".{fraction}" if fraction else "")
    if points > 1:
        return digits.replace(".", "")
    if commas == 1 and not re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits):
        return digits.replace(",", ".")
    return digits.replace(",", "")


def expected_numbers(answer: str) -> tuple[Fraction, ...]:
    """Return what the last number of an accepted answer may stand for; empty if there is none."""
    numbers = find_numbers(plain_latex(plain_characters(answer)))
    return () if not numbers else numbers[-1].values[numbers[-1].scaled :]
