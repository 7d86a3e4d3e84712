"""Abilities in parts on the page: who stands where, which items tell it, and what hostile names may not do."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from made import made

from pytest_adaptive_eval.irt.multimodal import FormatScale, Modalities, MultimodalItems, Population
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.modalities import asked_in_formats
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.abilities import parted

HOSTILE = '"><script>alert(1)</script>'


def bank(subjects: int = 5, n: int = 12) -> ItemBank:
    rng = np.random.default_rng(0)
    difficulty = rng.uniform(0.1, 0.9, (n, 4))
    difficulty[:, 3] = np.linspace(0.1, 2.0, n)
    made = MultimodalItems(Modalities(), "m2", 4.0, rng.uniform(0.2, 0.8, (n, 4)), difficulty)
    separations = [
        {"name": "difficulty cross", "original": 1.5, "low": 0.25, "p": 0.0002, "wasserstein": 1.25, "auc": 0.9}
    ]
    separations[0] |= {"edges": [0.0, 1.0, 2.0], "counts": [[1, 3], [4, 0]]}
    scale = FormatScale(
        made,
        Population(np.full(4, -0.5), 0.5 * np.eye(4), 4.0),
        rng.normal(size=(subjects, 4)),
        {"separations": separations},
    )
    items = [Item(f"q{i}", f"{HOSTILE} {i}", "yes", formats=("image+text", "image", "text", "none")) for i in range(n)]
    return asked_in_formats(
        ItemBank(
            "v",
            [item.id for item in items],
            items,
            np.ones(n),
            np.zeros(n),
            content_hash="x",
            subjects=tuple(f"{HOSTILE}{s}" for s in range(subjects)),
            report=MappingProxyType({}),
            in_formats=scale,
        )
    )


def interview(pairs: ItemBank, **more: Any) -> EvaluationRecord:
    about = {"content_hash": pairs.content_hash, "formats": list(pairs.report["formats"]), "parts": list(pairs.parts)}
    given = {
        "name": "v",
        "nodeid": "t.py::v",
        "subject": {"name": "candidate"},
        "bank": about,
        "policy": {},
        "asked": 10,
        "scored": 10,
        "size": 48,
        "statuses": {},
        "stop": "BUDGET",
        "stop_sentence": "",
        "theta": [0.5, 1.0, -0.5, 0.25],
        "standard_error": [0.1] * 4,
        "accuracy": None,
        "accuracy_model": None,
    }
    return made(EvaluationRecord, **{**given, **more})


def test_all_subjects_stand_in_the_picture_and_this_one_in_bold() -> None:
    pairs = bank()
    found = parted("i1", interview(pairs), pairs)
    assert found is not None
    picture = str(found.picture)
    assert picture.count('class="part p3"') == 6
    assert picture.count('class="end halo"') == 1
    assert "candidate" in picture
    assert [name for _, name in found.legend] == ["base", "image", "text", "cross"]
    assert "<script" not in picture


def test_the_items_at_either_end_are_shown_with_their_texts() -> None:
    pairs = bank()
    found = parted("i1", interview(pairs), pairs)
    assert found is not None
    assert pairs.in_formats is not None
    gains = pairs.in_formats.gains
    assert [e.name for e in found.highest] == [f"q{n}" for n in np.argsort(-gains)[:4]]
    assert [e.name for e in found.lowest] == [f"q{n}" for n in np.argsort(gains)[:4]]
    first = int(np.argmax(gains))
    assert found.highest[0].facts.startswith(f"gain {gains[first]:.2f}; difficulty: base ".replace("0.", ".", 1))
    assert found.highest[0].text.endswith(f" {first}")
    (row,) = found.separations
    picture = str(row.pop("picture"))
    assert picture.count('class="others"') == 2
    assert picture.count('class="low"') == 1  # all four of them in the first of two bins
    assert found.separations == [
        {
            "name": "difficulty cross",
            "original": "1.500",
            "low": ".250",
            "p": "<.001",
            "wasserstein": "1.250",
            "auc": ".900",
        }
    ]


def test_parts_at_their_bounds_are_marked_or_left_out() -> None:
    pairs = bank()
    assert pairs.in_formats is not None
    at_bound = {"ability": [0.0, 0.6, 0.4, 1.0], "difficulty": [0.0, 0.1, 0.5, 1.0]}
    scale = replace(pairs.in_formats, report={**pairs.in_formats.report, "at_bound": at_bound})
    found = parted("i1", interview(pairs), replace(pairs, in_formats=scale))
    assert found is not None
    labels = ["base", "image, at a bound for 60 %", "text", "cross, at a bound for 100 %"]
    assert [label for _, label in found.legend] == labels
    for extreme in (*found.highest, *found.lowest):
        assert "base" in extreme.facts
        assert "image" in extreme.facts
        assert "text" not in extreme.facts
        assert "cross" not in extreme.facts
    scale = replace(scale, report={"at_bound": {"difficulty": [1.0, 1.0, 1.0, 1.0]}})
    found = parted("i1", interview(pairs), replace(pairs, in_formats=scale))
    assert found is not None
    assert "difficulty" not in found.highest[0].facts


def test_of_many_subjects_some_are_shown_and_always_this_one() -> None:
    pairs = bank(subjects=100)
    found = parted("i1", interview(pairs), pairs)
    assert found is not None
    assert str(found.picture).count('class="part p0"') <= 30
    assert "candidate" in str(found.picture)


@pytest.mark.parametrize(
    "change",
    [
        {"bank": {"content_hash": "x"}},
        {"theta": None},
        {"theta": [1.0]},
        {"bank": {"content_hash": "other", "parts": ["base", "image", "text", "cross"]}},
    ],
)
def test_there_is_no_section_without_parts_or_with_another_bank(change: dict[str, Any]) -> None:
    pairs = bank()
    assert parted("i1", interview(pairs, **change), pairs) is None
    assert parted("i1", interview(pairs), None) is None


@pytest.mark.parametrize(
    "told",
    [
        {"edges": [0.0, 1.0], "counts": None},
        {"edges": None, "counts": [[1], [2]]},
        {"edges": [0.0, 1.0], "counts": [[1], [2, 3]]},
        {"edges": [0.0, 1.0], "counts": [[], []]},
        {"edges": [0.0, 1.0], "counts": [[-1], [2]]},
        {"edges": [0.0, 1.0], "counts": [["x"], [2]]},
        {"edges": [0.0, float("nan")], "counts": [[1], [2]]},
        {"counts": [1]},
    ],
)
def test_distributions_that_are_none_are_not_drawn(told: dict[str, Any]) -> None:
    pairs = bank()
    assert pairs.in_formats is not None
    pairs.in_formats.report["separations"][0].update({"edges": None, "counts": None, **told})
    found = parted("i1", interview(pairs), pairs)
    assert found is not None
    assert found.separations[0]["picture"] == ""
