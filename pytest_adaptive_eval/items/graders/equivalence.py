"""Compare mathematical expressions with math-verify; imported by the worker alone."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import math_verify

logging.getLogger("math_verify").setLevel(logging.CRITICAL)
_CONFIG = (math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig())


def equivalent(answer: str, expression: str) -> bool:
    """Return whether two expressions are equivalent; False if one cannot be parsed."""
    with contextlib.suppress(Exception):  # whatever a parser makes of a text that is no expression
        return bool(math_verify.verify(_parsed(answer), _parsed(expression), timeout_seconds=None))
    return False


def _parsed(text: str) -> Any:
    return math_verify.parse(f"${text.strip('$ ')}$", _CONFIG, parsing_timeout=None)
