"""Graders and answers in the form that the installed graders take."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError

__all__ = ["fitted"]

#: Graders that take the place of others that are not installed.
_INSTEAD = {"exact_match": "exact", "yesno": "exact", "math": "exact"}


@functools.cache
def _accepts(grader: str, several: bool) -> bool:
    """Return whether banks may have a grader, with one answer or several."""
    answer: Any = ["yes", "no"] if several else "yes"
    try:
        parse_item(json.dumps({"id": "probe", "prompt": "?", "answer": answer, "grader": grader}), "")
    except BankError as error:
        return "is not known" not in str(error) and "expected a string" not in str(error)
    return True


def fitted(grader: str, answers: Sequence[str]) -> tuple[str, str | list[str]]:
    """Return a grader, and one accepted answer or a list of them."""
    if not _accepts(grader, False):
        grader = _INSTEAD.get(grader, grader)
    if len(answers) == 1:
        return grader, answers[0]
    if _accepts(grader, True):
        return grader, list(answers)
    return "regex", rf"(?i)\A\W*(?:{'|'.join(map(re.escape, answers))})\W*\Z"
