"""The levels of several subjects in one picture, as of a sweep."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from climbs import climb

from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.figures import level_figures
from pytest_adaptive_eval.reports.page import html_page


def climbs(*right: list[int], name: str = "addition") -> list[EvaluationRecord]:
    found = []
    for n, levels in enumerate(right):
        found.append(climb(levels, name=f"{name} (m{n})", own_name=name, subject={"name": f"m{n}"}))
    return found


def test_each_evaluation_of_several_subjects_has_one_picture_with_a_line_for_each() -> None:
    (addition, counting) = level_figures([
        *climbs([10, 4, 0], [10, 9, 8, 0], [10, 4, 0]), *climbs([10, 0], [8, 0], name="counting")
    ])  # fmt: skip
    assert addition.title == "addition: accuracy by level"
    assert addition.caption == "Accuracy at each level asked: 1 is m0, 2 is m1, 3 is m2."
    assert addition.picture.count('class="line"') == 3
    assert "1: 1.00, .40, .00; 2: 1.00, .90, .80, .00; 3: 1.00, .40, .00" in addition.picture
    ends = re.findall(r'class="value" x="([\d.]+)" y="([\d.]+)">(\d)<', addition.picture)
    assert len({(x, y) for x, y, _ in ends}) == 3, "numbers of lines that end at one place do not cover each other"
    assert counting.picture.count('class="line"') == 2


def test_one_subject_has_its_own_picture_alone() -> None:
    assert level_figures(climbs([10, 4, 0])) == []


def test_many_subjects_are_cut_and_counted() -> None:
    (figure,) = level_figures(climbs(*([10, n % 10, 0] for n in range(14))))
    assert figure.picture.count('class="line"') == 12
    assert figure.caption.endswith("12 is m11; 2 more are not drawn.")


def test_the_page_of_a_sweep_has_it(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    page = html_page(make.record(climbs([10, 4, 0], [10, 9, 8, 0]), []))
    assert "Levels of several subjects" in page
    assert "Levels of several subjects" not in html_page(make.record(climbs([10, 4, 0]), []))
