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
from pytest_adaptive_eval.items.reading.constructions import word_pattern
from pytest_adaptive_eval.items.reading.counts import with_digits

if TYPE_CHECKING:
    from fractions import Fraction

_PARTS = ("hal(?:f|ves)", "thirds?", "(?:quarter|fourth)s?", *(f"{part}s?" for part in ("fifth", "sixth", "seventh")))
_PARTS += ("eighths?", "ninths?", "tenths?")
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
_CURRENCY = (
    r"(?:(?:US|AU|CA|NZ|HK|A|C|R|S)\$|[$£¥¢฿\u20a0-\u20cf]|(?:USD|EUR|GBP|CNY|RMB|INR|CHF|JPY|SEK|NOK|DKK|AUD|CAD|NZD|HKD|SGD|KRW|"
    r"BRL|MXN|ZAR|RUB|TRY|PLN|CZK|HUF|ILS|THB|IDR|MYR|PHP|VND|AED|SAR|NGN|EGP)|Rs\.?|Fr\.|kr\.?|zł|Kč)"
)
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?!\d)(?:\.\d+)?"  # 1,234,567.8 and 12,34,567
    r"|\d{1,3}(?:\.\d{3}){2,}(?!\d)(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)"  # 1.234.567 and 1.234,56
    r"|\d{1,3}(?:[ \u2009\u202f'_]\d{3})+(?![\d])(?:[.,]\d+)?"  # 1 234 567
    r"|\d+,\d{1,2}(?![\d,])|\d+,\d{4,}(?![\d,])|\d+(?:\.\d+)?|\.\d+)"
)
_NUMBER = word_pattern(
    r"(?<![A-Za-z0-9_.^])"
    r"(?:(?P<sign>[-+\u2013](?!\s)|(?:minus|negative|menos|moins)\s|[负負]|マイナス)\s?[{(\[]*)?"
    rf"(?P<currency>{_CURRENCY}\s?)?(?P<inner>-(?!\s))?(?P<digits>{_DIGITS})"
    r"(?P<exponent>[eE][-+]?[1-3]?\d{1,2}(?!\d)|\}?\s?(?:\\times|\\cdot|[×x*·])\s?10\s?(?:\^|\*\*)\s?\{?\(?(?P<power>[-+]?[1-3]?\d{1,2})(?!\d)\)?\}?)?"
    r"(?:\s?(?:\^|\*\*)\s?(?:\{\s?|\()?(?P<raised>[-+]?[1-3]?\d{1,2})(?![\d.]|\s?[-+*/^]\s?\w)\s?[})]?)?"
    r"(?P<mixed>\s?\{?(?<=[\s{])\s?(?:and\s)?\d+/\d+\}?)?(?:\s?/\s?(?P<bottom>-?\d+(?:\.\d+)?))?\}?"
    rf"(?:\sand\s(?:an?\s|(?P<parts>\d{{1,9}})[\s-])(?P<part>{'|'.join(_PARTS)})(?!\w))?"
    r"(?P<percent>\s?(?:%|⟨percent⟩))?"
    rf"(?:(?P<letter>(?-i:[kKM]))(?![^\W_])|[\s-]?(?P<multiplier>{'|'.join(_MULTIPLIERS)})(?![0-9A-Za-z_À-ӿ]))?",
    re.IGNORECASE,
)

_PART = rf"(?:{'|'.join(_PARTS)})"
_A_PART = word_pattern(rf"\ban?(?=[\s-]{_PART}(?:\s+of\b|[^\w\s]|\s*\Z))", re.IGNORECASE)
#: A fraction that names the whole first: 五分之四 is 4/5.
_PARTS_BEFORE = word_pattern(r"(?<![\d.])(\d+)\s?(?:分之|分の)\s?(\d+)(?![\d.])")
_POINT = word_pattern(r"(?<=\d)\s+point\s+(?=\d)", re.IGNORECASE)

_RAISED = word_pattern(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_ARGUMENT = r"(?:\{\s*(-?\s*[\d.,]+)\s*\}|(\d))"
_START = r"(?:\A|[\n=(:≈{|$]|\\approx|\b(?:is|are|was|were|be|equals|ist|est|es)\b|[是为為])"
#: Notations of LaTeX and their plain forms, in the order of replacement.
_PLAIN = (
    (r"\\(?:text|textbf|mathbf|mathrm|textit|mbox|bf|rm|mathit)\s*\{([^{}]*)\}", r" \1 "),
    (r"<<[^<>\n]{1,100}>>|\\(?:text)?color\{\w+\}", ""),  # <<9*2=18>> of GSM8K
    (r"\\(?:left|right|displaystyle|boldsymbol|underline|[lL]arge)(?![a-z])", ""),
    (r"\^\{?\\circ\}?|\\degree(?![a-z])", "°"),
    (r"\{\s*,\s*\}|(?<=\d)(?:,?\\[!,;: ]|\\[!])+(?=\d{3})", ","),
    (r"\\([$%])", r"\1"),
    (r"百分之\s*(\d[\d.]*)", r"\1%"),
    (r"\\!", ""),
    (r"\\[,;()\[\]]", " "),
    (rf"\\[dtc]?frac\s*{_ARGUMENT}\s*{_ARGUMENT}(?!\d)", r"{\1\2/\3\4}"),
    (r"(?<=\d)\s*\{(\d+/\d+)\}", r" \1"),
    (r"\|\s?[-+]?\s?\{?(\d[\d.,/]*)\}?\s?\|", r"{\1}"),
    (r"(\\[A-Za-z]+)(?=\d)", r"\1 "),
    # a spaced dash where a statement begins: a sign
    (rf"({_START}[\s$*({{\\]{{0,8}})[-\u2013]\s+(?=[\d{{(.$])", r"\1-"),
    # a power of letters: of a unit, or of an unknown
    (r"([A-Za-z°]\s?)\$?\s?\^\s?(?:\{\s?[-+]?\d\s?\}|\(?[-+]?\d(?!\d)\)?)", r"\1 "),
)
#: Significant digits from which a decimal number is right where it is the rounded one.
_PRECISE = 5
#: Significant digits of a float. An expected number that is written out has its error.
_FLOAT = 15
#: Least multiplier that tables of money leave out.
_THOUSAND = 1000
#: Digits of the longest number that is read.
_LARGEST = 400
_FORMULA_END = word_pattern(r"\s*\$")

#: Commands of LaTeX that are not part of an expression.
_LAYOUT = (
    r"(?:q?quad|approx|to|[Rr]ightarrow|[Ll]ong\w*|implies|therefore|because|iff|cong|equiv|sim|boxed|fbox|left|right"
    r"|displaystyle|l?dots|square|blacksquare|checkmark|degree|circ|end|begin|math\w*|text\w*|boldsymbol|bf|rm|mbox"
    r"|[bB]igg?|newline|hspace|lt|gt|[lg]eq?(?:slant)?|neq?|euro|pounds)(?![A-Za-z])"
)
_FUNCTION = rf"\\(?!{_LAYOUT})[A-Za-z]+"
_LETTER = r"(?<![^\W\d_])[A-Za-z]"
_NAME = r"pi|ln|log\d*|sqrt|exp|abs|sin|cos|tan"
_SYMBOL = r"[±∓√∛∜∑∏∫∂∇∆∪∩∈∉⊂⊃⊕⊗∘∙⋅∗π∞⌊⌋⌈⌉‰]"
_OPENED = r"\s?[({\[]*\s?"
_CLOSED = r"\s?[)\]}]*\s?"
#: Begin of what an operator before it joins to a number.
_OPERAND = r"\s?(?:[\d(\\{$√]|[.-]\s?\d|[A-Za-z](?![^\W_]))"
_NAMED_OPERATOR = r"(?:plus|minus|times|over|divided\s+by|multiplied\s+by|mod(?:ulo)?|choose|of|in|by|less|remainder)"
_BEFORE_PARTS = (
    rf"(?:[\d)\]}}%!]|{_LETTER}|\\[A-Za-z]+|\|(?=\S)|\b(?:{_NAME}))\s?(?:\*\*|[-\u2013+*/×·÷^_])",
    _SYMBOL,
    r"[\^_]",
    rf"[-\u2013](?={_OPENED}[-\u2013])",
    rf"{_FUNCTION}(?:\s*\[\d*\])?",
    rf"(?:{_FUNCTION}|{_LETTER}|\b(?:{_NAME}))\s?[({{]",
    r"\}\s?(?=\{)",  # \frac{x}{3}
    r"[\^_]\{?\w+\}?(?:\s|(?=[({\[]))",  # \log_2 3
    r"\d\s?x\s|\d:(?!\s)|\d\s:\s|\+/|\d\.(?=\()|分之|[)\]](?=\Z|[({])|(?:\\infty|∞)\s?,",
    rf"\d[!%]?\s(?:{_NAMED_OPERATOR}|to\s+the(?:\s+power(?:\s+of)?)?)\s",
    rf"\d[\d.]*[\s-]?(?:{'|'.join(_PARTS)}|%|percent)\s+of\s",
    r"\b(?:half|twice|double|triple|thrice|log|ln|sqrt|factorial|at\s+least|at\s+most)\s",
    r"\b(?:half|square|cube|root|reciprocal|inverse|negative|opposite|double|triple|quarter|third|logarithm|power)"
    r"\s+(?:root\s+)?of\s",
)
#: What ends before a number that it is part of.
_BEFORE = word_pattern(rf"(?:{'|'.join(_BEFORE_PARTS)}){_OPENED}(?:[-+\u2013]{_OPENED})?\Z", re.IGNORECASE)
#: Units that are written behind a number without a space; other letters there are symbols.
_UNITS = (
    r"(?-i:[kmcdµμn]?[mgslWVAJNF]s?|mms?|kms?|cms?|ft|in|yd|mi|lbs?|oz|h|hrs?|min|sec|d|t|[kMG]?Hz|[kM]?Pa|k?cal|kWh|mol|°?[CFK]"
    r"|[kKMGT]i?B|mph|kph|pm|am|st|nd|rd|th|USD|EUR|GBP|[yY]rs?|wks?|mos?|pts?|ct|kr|zł|Kč|Fr|ha|bn|px|ppm|dB|deg|rad|[kKM])"
)
_AFTER_PARTS = (
    r"[.,'’_]+\d|[\d_]",
    rf"{_CLOSED}(?:\*\*|[-\u2013+*×·÷^±∓]){_OPERAND}",
    rf"{_CLOSED}/(?!\s?[^\W\d_]{{2}}|\s?[hsdm]\b)\s?[\w(\\{{$√.-]",
    r"[)\]}]*[\^_]",
    r":\d|\s:\s\d|\u2014\d|\s?(?:\u2026|\.{2,3})\s?\d|\s?\+/-|分之|\s?,\s?[-+]?\s?(?:\\infty|∞)|\sper\s(?:mille|thousand)\b",
    r"!\s?[-+*/^$}\\]",
    rf"{_CLOSED}(?:{_SYMBOL}|{_FUNCTION})",
    rf"[)\]}}]*(?!{_UNITS}(?!\s?[+*^]|[A-Za-z]))[A-Za-z]{{1,3}}(?![A-Za-z])",
    r"\s(?:[xyznrquvw]|pi|(?-i:i))(?![\w'])",
    r"\((?:[\d-]|[A-Za-z](?![A-Za-z]))",
    r"\s(?:squared|cubed|factorial|to\s+the\s+(?:power|\w+(?:th|st|nd|rd)\b)|point\s\w|tens\b|pairs\b)",
    rf"\s{_NAMED_OPERATOR}\s[$({{]*-?\d",
    r"\sand\s+(?:an?\s+)?(?:half|third|quarter)s?\b",
)
#: What begins after a number that it is part of.
_AFTER = word_pattern("|".join(_AFTER_PARTS), re.IGNORECASE)
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


#: A number whose point separates thousands in many languages, and the mark of one.
_ONE_SEPARATOR, _SEPARATED = word_pattern(r"[1-9]\d{0,2}\.\d{3}"), "."
_COMMA_LANGUAGE = word_pattern("⟨decimal_comma⟩", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Args:
        values: What it may stand for: "50 %" stands for 50 and for 1/2, "5 million" for 5 and for 5 000 000. It is
            empty for an expression.
        unit: A percent sign or a multiplier that the first of two values leaves out; "money" for thousands and millions
            of a currency, which tables leave out; a point for "1.250", which is 1250 in some languages.
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
        if self.unit == _SEPARATED:
            return self.values[:1]
        return self.values if self.unit in ("", "%") else self.values[1:]

    def asked_in(self, question: str, text: str = "") -> Number:
        """Return the number without values that the question does not ask for, or that the text's language lacks."""
        if self.unit in ("", "money"):
            return self
        if self.unit == _SEPARATED:
            return self if _COMMA_LANGUAGE.search(f"{question} {text}") else replace(self, values=self.values[:1])
        asked = RATE.search(question) if self.unit == "%" else self.unit.rstrip("s") in question.lower()
        return self if asked else replace(self, values=self.values[1:])


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
    for pattern, replacement in _PLAIN:
        text = re.sub(pattern, replacement, text)
    return text


def plain_numbers(text: str) -> str:
    """Return a text in plain LaTeX with the numbers that are words in digits."""
    text = with_digits(re.sub(" {2,}", " ", plain_latex(text)))
    text = _PARTS_BEFORE.sub(r"\2/\1", text)
    return _A_PART.sub("1", _POINT.sub(".", text))


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
        return Number((value, value * _THOUSAND), *match.span(), _SEPARATED, _rounding(match, digits, power))
    return Number((value,), *match.span(), "", _rounding(match, digits, power))


def _signed(match: re.Match[str], value: Fraction) -> Fraction:
    """Return the value of digits with their power, mixed fraction, parts, denominator and sign."""
    from fractions import Fraction

    value = value ** int(match["raised"] or 1) + Fraction((match["mixed"] or "0").strip(" {}and"))
    if match["part"]:
        value += int(match["parts"] or 1) * _multiplier(match["part"])
    value /= Fraction(match["bottom"] or 1)
    is_negative = (match["sign"] not in (None, "+")) != bool(match["inner"])
    return -value if is_negative else value


def _rounding(match: re.Match[str], digits: str, power: Fraction) -> Fraction | int:
    """Return half a unit of the last decimal of a plain number with many digits; 0 for all others."""
    whole, _, decimals = digits.partition(".")
    is_plain = not any(match.group("raised", "mixed", "bottom"))
    is_precise = is_plain and decimals and len((whole + decimals).lstrip("0")) >= _PRECISE
    return power / 10 ** len(decimals) / 2 if is_precise else 0


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
    return () if number is None else number.exact


def is_lone_number(text: str) -> bool:
    """Return whether a text is one number, apart from formatting and currency."""
    plain = plain_numbers(plain_characters(text)).strip(" $.")
    if plain[:1] in "([{" and "," in plain:
        return False  # a pair or an interval
    numbers = find_numbers(plain)
    if len(numbers) != 1 or not numbers[0].values:
        return False
    return not (plain[: numbers[0].start] + plain[numbers[0].end :]).strip(" $({.)}°")
