"""Numbers in texts, in the notations of many languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from fractions import Fraction

_WORDS = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
]
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
           "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "만": 10**4, "억": 10**8}  # fmt: skip
_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅐": "1/7", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NAMED = {
    **{word: value for value, word in enumerate(_WORDS)},
    **{ten: 10 * index for index, ten in enumerate(_TENS, 2)},
    **{f"{ten}-{_WORDS[one]}": 10 * index + one for index, ten in enumerate(_TENS, 2) for one in range(1, 10)},
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_CURRENCY = (
    r"(?:(?:US|AU|CA|NZ|HK|A|C|R|S)\$|[$£¥¢฿\u20a0-\u20cf]|(?:USD|EUR|GBP|CNY|RMB|INR|CHF|JPY|SEK|NOK|DKK|AUD|CAD|NZD|HKD|SGD|KRW|"
    r"BRL|MXN|ZAR|RUB|TRY|PLN|CZK|HUF|ILS|THB|IDR|MYR|PHP|VND|AED|SAR|NGN|EGP)|Rs\.?|Fr\.|kr\.?|zł|Kč)"
)
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
    r"|\d{1,3}(?:\.\d{3}){2,}(?!\d)(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)"  # 1.234.567 and 1.234,56
    r"|\d{1,3}(?:[ \u2009\u202f'_]\d{3})+(?![\d])(?:[.,]\d+)?"  # 1 234 567
    r"|\d+(?:_\d+)+|\d+,\d{1,2}(?![\d,])|\d+,\d{4,}(?![\d,])|\d+(?:\.\d+)?|\.\d+)"
)
_NUMBER = lazy_pattern(
    rf"(?<![A-Za-z0-9_.^])(?P<sign>[-+]\s?|\u2013|(?:minus|negative)\s)?(?:{_CURRENCY}\s?)?(?P<inner>[-+])?(?P<digits>{_DIGITS})"
    r"(?P<exponent>[eE][-+]?\d+|\s?(?:\\times|\\cdot|[×x*·])\s?10\s?(?:\^|\*\*)\s?\{?\(?(?P<power>[-+]?\d+)\)?\}?)?"
    r"(?:\s?(?:\^|\*\*)\s?(?:\{\s?|\()?(?P<raised>[-+]?\d{1,4})(?![\d.]|\s?[-+*/^]\s?\w)\s?[})]?)?"
    r"(?P<mixed>\s\d+/\d+)?(?:\s?/\s?(?P<bottom>\d+(?:\.\d+)?))?"
    r"(?P<percent>\s?(?:%|percent\b|per cent\b))?"
    r"(?:(?P<kilo>k)(?![^\W_])|\s?(?P<scale>hundred|thousand|million|billion|trillion|万|萬|亿|億|만|억)(?![a-rt-z]))?",
    re.IGNORECASE,
)
_WORD = lazy_pattern(
    r"(?<![\w-])(?P<minus>(?:minus|negative)\s)?"
    rf"(?P<word>(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_WORDS[1:10])}))?"
    rf"|{'|'.join(sorted(_WORDS, key=len, reverse=True))})"
    r"(?:\s(?P<scale>hundred|thousand|million|billion))?(?![\w-])",
    re.IGNORECASE,
)

_RAISED = lazy_pattern(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
#: A power of letters: of a unit, or of an unknown.
_POWER_OF_UNIT = lazy_pattern(r"([A-Za-z°]\s?)\$?\s?\^\s?(?:\{\s?[-+]?\d\s?\}|\(?[-+]?\d(?!\d)\)?)")
#: Significant digits from which a decimal number is right where it is the rounded one.
_PRECISE = 5
#: Limit of a power's digits.
_LARGEST = 400


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Args:
        values: What it may stand for: "50 %" stands for 50 and for 1/2, "5 million" for 5 and for 5 000 000, and "- 5"
            at the begin of a line for -5 and for 5.
        scaled: Whether a word such as million follows.
        place: Unit of the last digit of a decimal number that is precise enough to round to; else 0.
    """

    values: tuple[Fraction, ...]
    start: int
    end: int
    scaled: bool = False
    place: Fraction | int = 0
    percent: bool = False


def plain_latex(text: str) -> str:
    """Return a text with fractions, powers, signs and spaces of LaTeX in plain characters, without powers of units."""
    text = _RAISED.sub(lambda power: f"^{power[0].translate(_SUPERSCRIPTS)}", text) if not text.isascii() else text
    return _POWER_OF_UNIT.sub(r"\1 ", _without_latex(text))


def _without_latex(text: str) -> str:
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

            value = Fraction(
                _NAMED[match["word"].lower().replace(" ", "-")] * _SCALES.get((match["scale"] or "").lower(), 1)
            )
            numbers.append(Number((-value if match["minus"] else value,), match.start(), match.end()))
    return sorted(numbers, key=lambda number: number.start)


def _from_digits(match: re.Match[str]) -> Number | None:
    from fractions import Fraction  # with decimal, a tenth of what importing numpy costs

    if len(match["digits"]) > _LARGEST:
        return None
    try:
        digits = _point(match["digits"])
        value, place = Fraction(digits), Fraction(1, 10 ** len(digits.partition(".")[2]))
        exponent = match["power"] or (match["exponent"] or "")[1:]
        if match["exponent"]:
            if abs(int(exponent)) > _LARGEST:
                return None
            value, place = value * Fraction(10) ** int(exponent), place * Fraction(10) ** int(exponent)
        if match["raised"]:
            if abs(int(match["raised"])) * max(len(digits), 1) > _LARGEST:
                return None
            value = value ** int(match["raised"])
        if match["mixed"]:
            value += Fraction(match["mixed"].strip())
        if match["bottom"]:
            value /= Fraction(match["bottom"])
    except (ValueError, ZeroDivisionError):
        return None
    sign = match["sign"] or ""
    values = [-value if (sign and sign[0] not in "+") or match["inner"] == "-" else value]
    unit = match["percent"] or match["kilo"] or match["scale"]
    if sign == "- " and not unit and not match.string[: match.start()].rpartition("\n")[2].strip():
        values.append(value)  # a mark of a list
    if match["percent"]:
        values.append(values[0] / 100)
    if match["kilo"]:
        values = [1000 * values[0]]
    if match["scale"]:
        values.append(values[0] * _SCALES[match["scale"].lower()])
    plain = not (match["raised"] or match["mixed"] or match["bottom"] or unit)
    precise = plain and "." in digits and len(digits.replace(".", "").lstrip("0")) >= _PRECISE
    return Number(
        tuple(values), match.start(), match.end(), bool(match["scale"]), place if precise else 0, bool(match["percent"])
    )


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


def expected_number(answer: str) -> Number | None:
    """Return the last number of an accepted answer, or None."""
    numbers = find_numbers(plain_latex(plain_characters(answer)))
    return numbers[-1] if numbers else None


def expected_numbers(answer: str) -> tuple[Fraction, ...]:
    """Return the possible values of the last number of an accepted answer; empty without a number."""
    number = expected_number(answer)
    return () if number is None else number.values[number.scaled :]


def is_lone_number(text: str) -> bool:
    """Return whether a text is one number, apart from formatting and currency."""
    plain = plain_latex(plain_characters(text)).strip(" $.")
    if plain[:1] in "([{" and "," in plain:
        return False  # a pair or an interval
    numbers = find_numbers(plain)
    return (
        len(numbers) == 1 and not plain[: numbers[0].start].strip(" $(") and not plain[numbers[0].end :].strip(" $.)°")
    )
