"""A server that is always right reaches the top area of every family in words, in whatever style it answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
from benchmarks.answer_styles import IN_WORDS, STYLES, StyleServer


@pytest.fixture(scope="module")
def server() -> Iterator[StyleServer]:
    with StyleServer() as running:
        yield running


@pytest.mark.fast_rows(5)
@pytest.mark.parametrize("name", IN_WORDS)
def test_areas_of_a_right_and_a_wrong_server_in_all_styles(server: StyleServer, name: str) -> None:
    family = IN_WORDS[name]
    levels = sorted({1, 2, (family.levels + 1) // 2, family.levels})
    found = server.areas(name, 1, levels)
    assert len(found) == 2 * len(STYLES)
    for (style, right), result in found.items():
        if right:
            assert result.area == len(levels), (style, result.unlike)
        else:
            assert result.area <= family.guess_floor * len(levels) + 0.05, (style, result.unlike)
