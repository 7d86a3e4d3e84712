r"""Read a mathematical expression that a text gives as its answer."""

from __future__ import annotations

import re
from collections import Counter

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.items.reading.denial import without_denied
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

_FORMULA = lazy_pattern(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$(.+?)\$|\\\((.+?)\\\)", re.DOTALL)
_SENTENCE = lazy_pattern(r"(?<=[\w)}\]])[.!?](?=\s|$)|\n|。")
_FRACTION = lazy_pattern(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_ROOT = lazy_pattern(r"(?:\\sqrt\s*(?:\{([^{}]*)\}|(\w))|√\s*\(?(\w+)\)?|sqrt\s*\(([^()]*)\))")
_POWER = lazy_pattern(r"\^\s*(?:\{([^{}]*)\}|(\d+|\w))")
_SUPERSCRIPT = lazy_pattern("[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_LOOKS = (
    (
        r"\\(?:left|right|displaystyle|limits|mathrm|mathbf|boldsymbol|quad|qquad|[bB]igg?)(?![a-z])"
        r"|\\[!,;: ()\[\]]|[{}\s$]|~",
        "",
    ),
    (r"\\(?:text\w{0,2}|mbox)(?![a-z])", ""),
    (r"\^\(?\\circ\)?|\\degree|°", ""),
    (r"\\(?:cdot|times)(?![a-z])|×|·", "*"),
    (r"\\%|%", ""),
    (r"\\\$", ""),
    (r"\\leq?(?![a-z])|\\leqslant", "≤"),
    (r"\\geq?(?![a-z])|\\geqslant", "≥"),
    (r"\\neq?(?![a-z])|!=", "≠"),
    (r"\\pi(?![a-z])", "π"),
    (r"\\infty(?![a-z])", "∞"),
    (r"\A[A-Za-z](?:\\in|=|∈)(?=.)", ""),
)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
#: Fractions, roots and powers within each other that are read.
_NESTED = 8
#: Words that join several expressions.
_OR = lazy_pattern(r"(?:\\text\s*\{\s*)?\b(?:or|and)\b(?:\s*\})?", re.IGNORECASE)
#: Words that are names of functions and numbers.
_NAMES = {
    *("sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log"),
    *("ln", "exp", "lim", "max", "min", "sup", "inf", "mod", "gcd", "lcm", "det", "deg", "pi", "sqrt"),
}
_COMMAND = lazy_pattern(r"\\(?:text\w{0,2}|math\w{2}|mbox|boxed|left|right|displaystyle)(?![a-z])|\\[(){}\[\],;:! ]|\$")


def normal_expression(text: str) -> str:
    """Return an expression without formatting, and without a name assigned to it."""
    text = plain_characters(text).strip().strip(".,;:")
    text = _SUPERSCRIPT.sub(lambda power: f"^{{{power[0].translate(_DIGITS)}}}", text).replace("**", "^")
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
    return text if re.fullmatch(r"\d+(?:\.\d+)?|[A-Za-z]", text) else f"({text})"


def form_of(expression: str) -> tuple[Counter[str], Counter[str]]:
    """Return the brackets around lists and intervals, and the relations of an expression.

    Expressions of different forms differ: a pair and a closed interval, a number and a bound. A list without brackets
    is a set; ``a < b`` and ``b > a`` are the same relation.
    """
    text = _OR.sub(",", re.sub(r"\\[{}]", lambda brace: {"{": "⟨", "}": "⟩"}[brace[0][1]], expression))
    text = re.sub(
        r"[{}]", "", re.sub(r"\\(?:left|right|[bB]igg?)(?![a-z])|\\[,;:! ]|\$|(?<=\d),(?=\d{3}(?!\d))", "", text)
    )
    text = text.replace("⟨", "{").replace("⟩", "}")
    text = text.replace("|", ",") if text.count("|") == 1 else text
    brackets: Counter[str] = Counter()
    opened: list[list[str | bool]] = [["", False]]
    for letter in text:
        if letter == ",":
            opened[-1][1] = True
        elif letter in _BRACKETS or (letter == "]" and len(opened) == 1):
            opened.append([letter, False])
        elif letter in ")]}" and len(opened) > 1:
            begin, listed = opened.pop()
            brackets[f"{begin}{letter}"] += bool(listed)
    brackets["{}"] += bool(opened[0][1])
    relations = Counter(re.findall("[<≤≠]", normal_expression(text).replace(">", "<").replace("≥", "≤")))
    return +brackets, relations


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


def read_expression(text: str) -> Reading[str]:
    """Return the expressions that a text gives as its answer."""
    return read_answer(text, _PARSER)
