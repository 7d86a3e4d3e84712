"""Patterns that are compiled at their first use."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pytest_adaptive_eval.lazy_pattern import lazy_pattern


def test_it_matches_as_the_compiled_pattern_does() -> None:
    text = "Answer: B, no: c."
    lazy, compiled = (
        lazy_pattern(r"\b(?P<letter>[a-d])\b", re.IGNORECASE),
        re.compile(r"\b(?P<letter>[a-d])\b", re.IGNORECASE),
    )
    assert [m.span() for m in lazy.finditer(text)] == [m.span() for m in compiled.finditer(text)] == [(8, 9), (15, 16)]
    assert lazy.sub("-", text) == compiled.sub("-", text) == "Answer: -, no: -."
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert lazy.search(text, 9)["letter"] == "c"
    with pytest.raises(AttributeError):
        lazy.replace  # type: ignore[attr-defined]  # noqa: B018


def test_an_error_appears_at_the_first_use() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.search("x")


def test_collecting_a_bank_compiles_no_pattern_that_reads_answers() -> None:
    code = """
import re
from unittest.mock import patch
from pytest_adaptive_eval.lazy_pattern import _LazyPattern
with patch.object(_LazyPattern, "__getattr__", side_effect=AssertionError("compiled")):
    import pytest_adaptive_eval.items.graders.kind as kind
    print(len(kind.grader_kinds()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 10
