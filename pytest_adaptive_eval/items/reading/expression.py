r"""Read a mathematical expression that a text gives as its answer."""

from __future__ import annotations

import re

from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

__all__ = ["normal_expression", "read_expression"]

_FORMULA = lazy_pattern(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$(.+?)\$|\\\((.+?)\\\)", re.DOTALL)
_SENTENCE = lazy_pattern(r"(?<=[\w)}\]])[.!?](?=\s|$)|\n|。")
_LOOKS = (
    (
        r"\\(?:left|right|displaystyle|limits|mathrm|mathbf|boldsymbol|quad|qquad|[bB]igg?)\b|\\[!,;: ]|[{}\s$]|~",
        "",
    ),
    (r"\\[dt]frac", r"\\frac"),
    (r"\\(?:text|textbf|mbox)", ""),
    (r"\^\\circ|\\degree|°", ""),
    (r"\\(?:cdot|times)", "*"),
    (r"\\%|%", ""),
    (r"\\\$", ""),
    (r"\\le\b|\\leq\b", "≤"),
    (r"\\ge\b|\\geq\b", "≥"),
    (r"\A[A-Za-z](?:\\in|=|∈)(?=.)", ""),
)


def normal_expression(text: str) -> str:
    """Return an expression without what changes its look alone, and without a name that it is given."""
    text = text.strip().strip(".,;:")
    for pattern, replacement in _LOOKS:
        text = re.sub(pattern, replacement, text)
    return text.casefold().replace("**", "^")


def _formulas(text: str) -> list[str]:
    return [next(filter(None, match)).strip() for match in _FORMULA.findall(text)]


def _stated(text: str) -> list[str]:
    """Return the formula of a statement, or its first sentence."""
    formulas = _formulas(text)
    if formulas:
        return formulas[:1]
    sentence = _SENTENCE.split(text.strip().strip("*`\"' "), maxsplit=1)[0].strip().strip("*`\"' ").rstrip(".,;")
    return [sentence] if sentence else []


def _loose(text: str) -> list[str]:
    """Return the last formula of a text, or its last line."""
    formulas = _formulas(text)
    last = (formulas or [text.strip().rpartition("\n")[2].strip(" *`.")])[-1]
    last = re.split(r"(?<![<>≤≥!\\])=(?!=)", last)[-1].strip()
    return [last] if last else []


_PARSER = Parser(_stated, _loose)


def read_expression(text: str) -> Reading[str]:
    """Return the expressions that a text gives as its answer."""
    return read_answer(text, _PARSER)
