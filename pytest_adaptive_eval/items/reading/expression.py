r"""Read a mathematical expression that a text gives as its answer."""

from __future__ import annotations

import re
from collections import Counter

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.items.reading.denial import without_denied
from pytest_adaptive_eval.items.reading.numbers import expected_numbers, plain_numbers, with_powers
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

_FORMULA = lazy_pattern(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$(.+?)\$|\\\((.+?)\\\)", re.DOTALL)
_SENTENCE = lazy_pattern(r"(?<=[\w)}\]])(?:[.?](?=\s|$)|!(?=\s+[A-Z]))|\n|。")
_FRACTION = lazy_pattern(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_ROOT = lazy_pattern(r"(?:\\sqrt\s*(?:\{([^{}]*)\}|(\w))|√\s*\(?(\w+)\)?|sqrt\s*\(([^()]*)\))")
_POWER = lazy_pattern(r"\^\s*(?:\{([^{}]*)\}|(\d+|\w))")
_LOOKS = (
    (r"\\(?:cdot|times)(?![a-z])|×|·", "*"),
    (r"_\{(\w{2,})\}", r"_(\1)"),
    (
        r"\\(?:left|right|displaystyle|limits|mathrm|mathbf|boldsymbol|quad|qquad|[bB]igg?)(?![a-z])"
        r"|\\[!,;: ()\[\]]|[{}\s$]|~",
        "",
    ),
    (r"\\(?:text\w{0,2}|mbox)(?![a-z])", ""),
    (r"(?:\^\(?\\circ\)?|\\degree|°)(?!\d)", ""),
    (r"(?<=\d)\s*\*\s*(?=[^\W\d]|[\\(√])", ""),
    (r"\\%|%", ""),
    (r"\\\$", ""),
    (r"\\leq?(?![a-z])|\\leqslant", "≤"),
    (r"\\geq?(?![a-z])|\\geqslant", "≥"),
    (r"\\neq?(?![a-z])|!=", "≠"),
    (r"\\pm(?![a-z])", "±"),
    (r"\\pi(?![a-z])", "π"),
    (r"\\infty(?![a-z])", "∞"),
    (r"\A[A-Za-z](?:\\in|=|∈)(?=.)", ""),
)
#: Notations of one expression, in the order of replacement.
_CANONICAL = (
    ("\u2013", "-"),
    (r"\*\*", "^"),
    (r"\+/-", r"\\pm "),
    (r"√\s*\(?(\w+)\)?", r"\\sqrt{\1}"),
    ("∞", r"\\infty "),
    ("∪", r"\\cup "),
    (r"\\frac\s*(\\[A-Za-z]+)\s*(\w)", r"\\frac{\1}{\2}"),
    (r"\A\s*(?:\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)|[a-zA-Z](?:\([a-z]\))?|\\theta)\s*(?:=|\\in(?![a-z])|∈)", ""),
    (r"(?<=[,;])\s*[a-z]\s*=", ""),
    (r"\A([^<>=≤]+)(?:\\leq?(?![a-z])|≤)\s*[a-z]\s*(?:\\leq?(?![a-z])|≤)([^<>=≤]+)\Z", r"[\1,\2]"),
)
#: The base of a number.
_BASE = lazy_pattern(r"(?<=\d)_\s*\{?\s*(?:\\text\w{0,2}\s*\{)?\s*(\w+)")
#: A unit at the end of an expression.
_UNIT = lazy_pattern(
    r"\\(?:text\w{0,2}|mathrm|mbox)\s*\{\s*([A-Za-z/ .]+)\}\s*(?:\^\s*\{?\d\}?)?\s*\Z|\s([a-z]{4,}(?: [a-z]+){0,3})\Z"
)
#: Relations, and characters that algebra does not read.
_RELATION = lazy_pattern(r"[<:';]|\.\.|[^\x00-\x7f√π∞∪]")
#: Characters that are not brackets or commas of a list: braces of LaTeX, sizes, spaces and separators of thousands.
_UNLISTED = lazy_pattern(
    r"(?<!\\)[{}]|\\(?=[{}])|\\(?:left|right|[bB]igg?)(?![a-z])|\\[,;:! ]|\$|(?<=\d),(?=\d{3}(?!\d))"
)
_INNERMOST = lazy_pattern(r"([(\[{\]])([^()\[\]{}]*)([)\]}\[])")
#: Fractions, roots and powers within each other that are read.
_NESTED = 8
#: Words that join several expressions.
_OR = lazy_pattern(r"(?:\\text\s*\{\s*)?\b(?:or|and)\b(?:\s*\})?", re.IGNORECASE)
_WITHOUT_LETTERS = lazy_pattern(
    r"\\(?:begin|end)\s*\{\w+\}(?:\{[lcr|]+\})?|_\s*\{\s*\\text\w{0,2}\s*\{\w+\}\s*\}|\\[A-Za-z]+"
)
#: Words that are names of functions and numbers.
_NAMES = {
    *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log"),
    *("ln", "exp", "lim", "max", "min", "sup", "inf", "mod", "gcd", "lcm", "det", "deg", "pi", "sqrt"),
}
_COMMAND = lazy_pattern(r"\\(?:text\w{0,2}|math\w{2}|mbox|boxed|left|right|displaystyle)(?![a-z])|\\[(){}\[\],;:! ]|\$")


def canonical_expression(text: str) -> str:
    """Return an expression in one notation, without a name assigned to it and without a unit."""
    text = plain_characters(text)
    for pattern, replacement in _CANONICAL:
        text = re.sub(pattern, replacement, text)
    unit = _UNIT.search(text)
    if unit and list(expected_numbers(f"1 {unit[1] or unit[2]}")) == [1]:
        text = text[: unit.start()]
    return text


def normal_expression(text: str) -> str:
    """Return an expression without formatting, and without a name assigned to it."""
    text = plain_characters(text).strip().strip(".,;:")
    text = with_powers(text).replace("**", "^")
    for _ in range(_NESTED):
        simple = _FRACTION.sub(lambda match: f"{_operand(match[1] or match[2])}/{_operand(match[3] or match[4])}", text)
        simple = _ROOT.sub(lambda match: f"√({next(filter(None, match.groups()), '')})", simple)
        simple = _POWER.sub(lambda match: f"^{_operand(match[1] or match[2] or '')}", simple)
        if simple == text:
            break
        text = simple
    for pattern, replacement in _LOOKS:
        text = re.sub(pattern, replacement, text)
    return text.casefold()


def _operand(text: str) -> str:
    """Return a part of an expression in round brackets, unless it is one number or one name."""
    text = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?|[A-Za-z]", text):
        return text
    return f"({text})"


def form_of(expression: str) -> tuple[Counter[str], Counter[str]]:
    """Return the brackets around lists and intervals, and the relations of an expression.

    Expressions of different forms differ: a pair and a closed interval, a number and a bound. A list without brackets
    is a set; ``a < b`` and ``b > a`` are the same relation.
    """
    text = _UNLISTED.sub("", _OR.sub(",", expression))
    if text.count("|") == 1:
        text = text.replace("|", ",")
    brackets: Counter[str] = Counter()
    while inner := _INNERMOST.search(text):
        brackets[inner[1] + inner[3]] += "," in inner[2]
        text = text[: inner.start()] + text[inner.end() :]
    brackets["{}"] += "," in text
    relations = Counter(_RELATION.findall(normal_expression(expression).replace(">", "<").replace("≥", "≤")))
    relations.update(plain_numbers(base) for base in _BASE.findall(expression))
    return +brackets, relations + _letters(expression)


def _letters(expression: str) -> Counter[str]:
    """Return the letters of an expression, each once, without commands and names of functions."""
    words = re.findall("[A-Za-z]+", _WITHOUT_LETTERS.sub(" ", _OR.sub(",", expression)))
    return Counter({letter for word in words if word.lower() not in _NAMES for letter in word})


def is_words(answer: str) -> bool:
    """Return whether an expression is of words, or a list of letters, which no algebra compares."""
    text = _COMMAND.sub(" ", plain_characters(answer)).replace("{", " ").replace("}", " ").strip(" .")
    if not text or re.search(r"[\d+*/^=<>≤≥≠_\\|∞π√-]", text):
        return False
    words = re.findall(r"[^\W\d_]+", text)
    if any(len(word) > 1 or (not word.isascii() and word >= "\u2e80") for word in words if word.lower() not in _NAMES):
        return True
    return len(words) > 1 and re.fullmatch(r"[A-Z](?:\s*,?\s*[A-Z])+", text.strip("()[] ")) is not None


def _formulas(text: str) -> list[str]:
    return [next(filter(None, match)).strip() for match in _FORMULA.findall(text)]


def _stated(text: str) -> list[str]:
    """Return the formula of a statement, or its first sentence."""
    formulas = _formulas(text)
    if formulas:
        return formulas[:1]
    text = without_denied(text)
    sentence = _SENTENCE.split(text.strip().strip("*`\"' "), maxsplit=1)[0].strip().strip("*`\"' ").rstrip(".,;")
    return [sentence] if sentence else []


def _loose(text: str) -> list[str]:
    """Return the last formula of a text, or its last line."""
    text = without_denied(text)
    formulas = _formulas(text)
    last = (formulas or [text.strip().rpartition("\n")[2].strip(" *`.")])[-1]
    last = re.split(r"(?<![<>≤≥!\\])=(?!=)", last)[-1].strip()
    return [last] if last else []


_PARSER = Parser(_stated, _loose)


@read_once
def read_expression(text: str) -> Reading[str]:
    """Return the expressions that a text gives as its answer."""
    return read_answer(text, _PARSER)
