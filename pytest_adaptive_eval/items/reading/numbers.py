r"""Numbers in texts, in the notations of many languages.

A number is parsed with its sign, unit and multiplier. One that an operator, a symbol or a word such as "squared"
touches is part of an expression, and has no value: ``\frac{\pi}{3}``, ``x - 3``, ``3:30`` and "half of 3" are not 3.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.items.reading.constructions import replaced, replacements, word_pattern
from pytest_adaptive_eval.items.reading.counts import with_digits
from pytest_adaptive_eval.items.reading.language import languages_of

if TYPE_CHECKING:
    from fractions import Fraction

_PARTS = (
    "hal(?:f|ves)",
    "thirds?",
    "(?:quarter|fourth)s?",
    "fifths?",
    "sixths?",
    "sevenths?",
    "eighths?",
    "ninths?",
    "tenths?",
)
#: Multipliers after a number, with their value as a fraction.
_MULTIPLIERS = {
    "hundreds?|百(?!分)": "100",
    "dozens?": "12",
    "thousands?|mil|mille|tausend|тыс\\w*|千(?![克米瓦卡])": "1000",
    "万|萬|만": "10000",
    "mill?ions?|millionen|millon(?:es)?|millón|milh(?:ão|ões)|milion[ei]|mio|mln|млн|миллион\\w*": "1000000",
    "亿|億|억": "100000000",
    "billions?|milliarden?|milliards?|miliard[io]|млрд|миллиард\\w*": "1000000000",
    "trillions?": "1000000000000",
    **{part: f"1/{index}" for index, part in enumerate(_PARTS, 2)},
    "hundredths?": "1/100",
}
_LETTERS = {"k": 10**3, "K": 10**3, "M": 10**6}
_VULGAR = str.maketrans(
    {letter: unicodedata.normalize("NFKC", letter).replace("\u2044", "/") for letter in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅐⅑⅒"}
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
    r"|\d{1,3}(?:\.\d{3}){2,}(?!\d)(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)"  # 1.234.567 and 1.234,56
    r"|\d{1,3}(?:[ \u2009\u202f'_]\d{3})+(?![\d])(?:[.,]\d+)?"  # 1 234 567
    r"|\d+,\d{1,2}(?!,?\d)|\d+,\d{4,}(?!,?\d)|\d+(?:\.\d+)?|\.\d+)"
)
_NUMBER = word_pattern(
    r"(?<![A-Za-z0-9_.^])"
    r"(?:(?P<sign>[-+\u2013](?!\s)|(?:(?<!\d\s)⟨minus⟩|negative\b|負)\s?)\s?[{(\[]*)?"
    rf"(?P<currency>⟨currency⟩\s?)?(?P<inner>-(?!\s))?(?P<digits>{_DIGITS})"
    r"(?P<exponent>[eE][-+]?[1-3]?\d{1,2}(?!\d)|\}?\s?(?:\\times|\\cdot|[×x*·])\s?10\s?(?:\^|\*\*)\s?\{?\(?(?P<power>[-+]?[1-3]?\d{1,2})(?!\d)\)?\}?)?"
    r"(?:\s?(?:\^|\*\*)\s?(?:\{\s?|\()?(?P<raised>[-+]?[1-3]?\d{1,2})(?![\d.]|\s?[-+*/^]\s?\w)\s?[})]?)?"
    r"(?P<mixed>\s?\{?(?<=[\s{])\s?(?:and\s)?\d+/\d+\}?)?(?:\s?/\s?(?P<bottom>-?\d+(?:\.\d+)?))?\}?"
    rf"(?:\sand\s(?:an?\s|(?P<parts>\d{{1,9}})[\s-])(?P<part>⟨english_parts⟩)(?!\w))?"
    r"(?P<percent>\s?(?:%|⟨percent⟩))?"
    rf"(?:(?P<letter>(?-i:[kKM]))(?![^\W_])|[\s-]?(?P<multiplier>{'|'.join(_MULTIPLIERS)})(?![0-9A-Za-z_À-ӿ]))?",
    re.IGNORECASE,
)
_BELOW_ZERO = word_pattern(r"(?<![\d.,-])(\d[\d.,]*(?:\s?°?\s?[^\W\d]{1,12}){0,2})\s⟨below_zero⟩", re.IGNORECASE)

_A_PART = word_pattern(r"\ban?(?=[\s-]⟨english_parts⟩(?:\s+of\b|[^\w\s]|\s*\Z))", re.IGNORECASE)
#: A fraction that names the whole first: 五分之四 is 4/5.
_PARTS_BEFORE = word_pattern(r"(?<![\d.])(\d+)\s?(?:分之|分の)\s?(\d+)(?![\d.])")
_POINT = word_pattern(r"(?<=\d)\s+point\s+(?=\d)", re.IGNORECASE)

_RAISED = word_pattern(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
#: Notations of LaTeX and their plain forms, in the order of replacement.
_PLAIN = replacements(r"""
\\(?:text|textbf|mathbf|mathrm|textit|mbox|bf|rm|mathit)\s*\{([^{}]*)\} => ␣\1␣
<<[^<>\n]{1,100}>>|\\(?:text)?color\{\w+\} =>
\\(?:left|right|displaystyle|boldsymbol|underline|[lL]arge)(?![a-z]) =>
\^\{?\\circ\}?|\\degree(?![a-z]) => °
\{\s*,\s*\}|(?<=\d)(?:,?\\[!,;: ]|\\[!])+(?=\d{3}) => ,
\\([$%]) => \1
(?:零下|氷点下)\s?(?=\d) => -
百分之\s*(\d[\d.]*) => \1%
\\! =>
(?<=\d),[-\u2013\u2014]{1,2}(?![\d-]) =>
\\[,;()\[\]] => ␣
\\[dtc]?frac\s*⟨argument⟩\s*⟨argument⟩(?!\d) => {\1\2/\3\4}
(?<=\d)\s*\{(\d+/\d+)\} => ␣\1
\|\s?[-+]?\s?\{?(\d[\d.,/]*)\}?\s?\| => {\1}
(\\[A-Za-z]+)(?=\d) => \1␣
# a spaced dash where a statement begins: a sign
(⟨begins⟩[\s$*({\\]{0,8})[-\u2013]\s+(?=[\d{(.$]) => \1-
# a power of letters: of a unit, or of an unknown
([A-Za-z°]\s?)\$?\s?\^\s?(?:\{\s?[-+]?\d\s?\}|\(?[-+]?\d(?!\d)\)?) => \1␣
""")
#: Significant digits from which a decimal number is right where it is the rounded one.
_PRECISE = 5
#: Significant digits of a float. An expected number that is written out has its error.
_FLOAT = 15
#: Least multiplier that tables of money leave out.
_THOUSAND = 1000
#: Digits of the longest number that is read.
_LARGEST = 400
_FORMULA_END = word_pattern(r"\s*\$")

#: What ends before a number that it is part of.
_BEFORE = word_pattern(r"⟨touches_before⟩⟨opened⟩(?:[-+\u2013]⟨opened⟩)?\Z", re.IGNORECASE)
#: What begins after a number that it is part of.
_AFTER = word_pattern("⟨touches_after⟩", re.IGNORECASE)
#: Units of one quantity, which make one value of two numbers.
_FAMILIES = (
    r"years?|yrs?|months?|weeks?|days?|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|小时|小時|分钟?|秒|天",
    r"kilomet(?:er|re)s?|km|met(?:er|re)s?|m|centimet(?:er|re)s?|cm|mm|miles?|yards?|yds?|feet|foot|ft|inch(?:es)?|in"
    r"|米|厘米|公里",
    r"tons?|kg|kilograms?|grams?|g|pounds?|lbs?|ounces?|oz|stone|公斤|克",
    r"dollars?|cents?|euros?|pounds?|pence|rupees?|paise|元|角|分",
    r"gallons?|quarts?|pints?|cups?|lit(?:er|re)s?|l|ml",
)
_AMOUNT = r"(?<![\d.,])\d[\d.,]{0,15}\s?-?(?:FAMILY)(?![A-Za-z])"
_AMOUNTS = rf"{_AMOUNT}(?:,?\s?(?:and\s)?(?:{_AMOUNT}|\d{{1,15}}(?!\S)))+"
#: A quantity in several units, such as 4 hours 20 minutes.
_COMPOUND = word_pattern(
    "|".join(_AMOUNTS.replace("FAMILY", family) for family in _FAMILIES)
    + r"|[$£€]\s?\d{1,15}(?:,|\sand)\s\d{1,15}\s(?:cents?|pence)|(?<!\d)\d{1,15}(?:h|\s?°\s?)\d",
    re.IGNORECASE,
)
#: Characters before a number that are looked at.
_NEAR = 40


#: A number whose point or comma means another thing in languages that write 1,5 for 1.5.
_ONE_SEPARATOR = word_pattern(r"[1-9]\d{0,2}[.,]\d{3}")
_SEPARATORS = (".", ",")
_COMMA_LANGUAGES = frozenset(("de", "fr", "es", "it", "pt", "nl", "pl", "ru"))


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Args:
        values: What it may stand for: "50 %" stands for 50 and for 1/2, "5 million" for 5 and for 5 000 000. It is
            empty for an expression.
        unit: A percent sign or a multiplier that the first of two values leaves out; "money" for thousands and millions
            of a currency, which tables leave out; the mark of "1.250" and "1,250", which differ in some languages.
        rounding: Distance of numbers that round to it, if it is a decimal number of at least five digits; else 0.
    """

    values: tuple[Fraction, ...]
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    unit: str = field(default="", compare=False)
    rounding: Fraction | int = field(default=0, compare=False)

    @property
    def exact(self) -> tuple[Fraction, ...]:
        """The values of a number that an item expects: with its multiplier, with or without a percent sign."""
        if self.unit in _SEPARATORS:
            return self.values[:1]
        if self.unit in ("", "%"):
            return self.values
        return self.values[1:]

    def asked_in(self, question: str, text: str = "") -> Number:
        """Return the number without values that the question does not ask for, or that the text's language lacks."""
        if self.unit in ("", "money"):
            return self
        if self.unit in _SEPARATORS:
            has_comma = _COMMA_LANGUAGES.intersection(languages_of(f"{question} {text}"))
            if has_comma:
                return self
            return replace(self, values=self.values[:1])
        if self.unit == "%":
            asked = RATE.search(question) is not None
        else:
            asked = self.unit.rstrip("s") in question.lower()
        if asked:
            return self
        return replace(self, values=self.values[1:])


#: A question for what may be in percent; one without words may.
RATE = word_pattern(
    r"\A\W*\Z|%|percent|per cent|\b(?:rates?|ratios?|shares?|probabilit\w+|chances?|proportions?|interest|discount"
    r"|profit|margin|how likely|growth|change|increase|decrease|efficiency|return|yield)\b|⟨rate⟩",
    re.IGNORECASE,
)


def with_powers(text: str) -> str:
    """Return a text with raised digits as powers."""
    return _RAISED.sub(lambda power: f"^{{{power[0].translate(_SUPERSCRIPTS)}}}", text)


def plain_latex(text: str) -> str:
    """Return a text with fractions, powers, signs and spaces of LaTeX in plain characters, without powers of units."""
    text = re.sub("(?<=\\d)(?=[¼-¾⅐-⅞])", " ", with_powers(text)).translate(_VULGAR)
    return replaced(text, _PLAIN)


def plain_numbers(text: str) -> str:
    """Return a text in plain LaTeX with the numbers that are words in digits."""
    text = with_digits(re.sub(" {2,}", " ", plain_latex(text)))
    text = _PARTS_BEFORE.sub(r"\2/\1", text)
    return _A_PART.sub("1", _POINT.sub(".", _BELOW_ZERO.sub(r"minus \1", text)))


def _multiplier(word: str) -> Fraction:
    from fractions import Fraction  # with decimal, a tenth of what importing numpy costs

    return next(Fraction(value) for form, value in _MULTIPLIERS.items() if re.fullmatch(form, word, re.IGNORECASE))


def find_numbers(text: str) -> list[Number]:
    """Return the numbers of a text of `plain_numbers`, in order; those within an expression have no values."""
    compounds = [match.span() for match in _COMPOUND.finditer(text)]
    numbers = []
    for match in _NUMBER.finditer(text):
        is_part = any(start <= match.start("digits") < end for start, end in compounds) or _is_touched(match, text)
        numbers.append(Number((), *match.span()) if is_part else _from_digits(match))
    return numbers


def _is_touched(match: re.Match[str], text: str) -> bool:
    """Return whether something makes a number part of an expression, or it is too long to read."""
    start = max(match.start(), match.end("sign"))
    before = _BEFORE.search(text[max(0, start - _NEAR) : start])
    return bool(before or _AFTER.match(text, match.end())) or len(match["digits"]) > _LARGEST


def _from_digits(match: re.Match[str]) -> Number:
    from fractions import Fraction

    digits = _point(match["digits"])
    power = Fraction(10) ** int(match["power"] or (match["exponent"] or "e0")[1:])
    try:
        value = _signed(match, Fraction(digits) * power)
    except ZeroDivisionError:
        return Number((), *match.span())
    unit = (match["multiplier"] or "").lower()
    if match["percent"]:
        return Number((value, value / 100), *match.span(), "%")
    if match["letter"]:
        return Number((value * _LETTERS[match["letter"]],), *match.span())
    if unit:
        factor = _multiplier(unit)
        is_money = match["currency"] and factor >= _THOUSAND and not _FORMULA_END.match(match.string, match.end())
        return Number((value, value * factor), *match.span(), "money" if is_money else unit)
    if _ONE_SEPARATOR.fullmatch(match[0]):
        mark = "." if "." in match[0] else ","
        other = value * Fraction(_THOUSAND) ** (1 if mark == "." else -1)
        return Number((value, other), *match.span(), mark, _rounding(match, digits, power))
    return Number((value,), *match.span(), "", _rounding(match, digits, power))


def _signed(match: re.Match[str], value: Fraction) -> Fraction:
    """Return the value of digits with their power, mixed fraction, parts, denominator and sign."""
    from fractions import Fraction

    value = value ** int(match["raised"] or 1) + Fraction((match["mixed"] or "0").strip(" {}and"))
    if match["part"]:
        value += int(match["parts"] or 1) * _multiplier(match["part"])
    value /= Fraction(match["bottom"] or 1)
    is_negative = (match["sign"] not in (None, "+")) != bool(match["inner"])
    if is_negative:
        return -value
    return value


def _rounding(match: re.Match[str], digits: str, power: Fraction) -> Fraction | int:
    """Return half a unit of the last decimal of a plain number with many digits; 0 for all others."""
    whole, _, decimals = digits.partition(".")
    is_plain = not any(match.group("raised", "mixed", "bottom"))
    is_precise = is_plain and decimals and len((whole + decimals).lstrip("0")) >= _PRECISE
    if is_precise:
        half: Fraction | int = power / 10 ** len(decimals) / 2
        return half
    return 0


def _point(digits: str) -> str:
    """Return digits with a decimal point and without separators of thousands."""
    digits = re.sub(r"[ \u2009\u202f'_]", "", digits)
    marks = re.findall("[.,]", digits)
    if not marks or marks.count(marks[-1]) > 1 or re.fullmatch(r"[1-9]\d{0,2},\d{3}", digits):
        return re.sub("[.,]", "", digits)
    whole, _, fraction = digits.rpartition(marks[-1])
    return f"{re.sub('[.,]', '', whole)}.{fraction}"


@functools.lru_cache(maxsize=64)  # a key is checked before it is compared
def expected_number(answer: str) -> Number | None:
    """Return the last number of an accepted answer, or None."""
    *_, number = [Number(()), *find_numbers(plain_numbers(plain_characters(answer)))]
    if not number.values:
        return None
    error = abs(number.values[0]) / 10**_FLOAT
    if number.rounding:
        return replace(number, rounding=max(number.rounding, error))
    return number


def expected_numbers(answer: str) -> tuple[Fraction, ...]:
    """Return the possible values of the last number of an accepted answer; empty without a number."""
    number = expected_number(answer)
    if number is None:
        return ()
    return number.exact


def is_lone_number(text: str) -> bool:
    """Return whether a text is one number, apart from formatting and currency."""
    plain = plain_numbers(plain_characters(text)).strip(" $.")
    if plain[:1] in "([{" and "," in plain:
        return False  # a pair or an interval
    numbers = find_numbers(plain)
    if len(numbers) != 1 or not numbers[0].values:
        return False
    return not (plain[: numbers[0].start] + plain[numbers[0].end :]).strip(" $({.)}°")
