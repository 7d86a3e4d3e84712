"""Compare mathematical expressions with math-verify; imported by the worker alone."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import math_verify
import sympy

logging.getLogger("math_verify").setLevel(logging.CRITICAL)
_CONFIG = (math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig())


def equivalent(answer: str, expression: str) -> bool:
    """Return whether two expressions are equivalent; False if one cannot be parsed."""
    with contextlib.suppress(Exception):  # whatever a parser makes of a text that is no expression
        return bool(math_verify.verify(_parsed(answer), _parsed(expression), timeout_seconds=None))
    return False


def same_solutions(answer: str, expression: str) -> bool:
    """Return whether one equation is the other multiplied by a number; False if one cannot be parsed."""
    with contextlib.suppress(Exception):
        ratio = sympy.simplify(_difference(answer) / _difference(expression))
        return bool(ratio.is_number and ratio != 0)
    return False


def _difference(equation: str) -> Any:
    """Return the left side of an equation less the right one."""
    left, right = equation.strip("$ ").split("=")
    return _parsed(left)[0] - _parsed(right)[0]


def _parsed(text: str) -> Any:
    """Parse an expression; raise ValueError if the parser left out a part within brackets."""
    parsed = math_verify.parse(f"${text.strip('$ ')}$", _CONFIG, parsing_timeout=None)
    if parsed and str(parsed[-1]).count("{") != str(parsed[-1]).count("}"):
        raise ValueError(f"{text!r:.80} was read in part")
    return parsed
