"""``interview.responses``: known models choose the first questions in pytest, as they do in backtests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.interviewing import interviewed
from pytest_adaptive_eval.evaluation.tables import InterviewTable
from pytest_adaptive_eval.interviewer.first import by_cluster
from pytest_adaptive_eval.items.bank import ItemBank

N = 60


def bank() -> ItemBank:
    rng = np.random.default_rng(0)
    return ItemBank("b", [f"q{i}" for i in range(N)], (), np.ones(N), rng.normal(size=N))


def write(path: Path, items: int = N) -> np.ndarray:
    """Write responses of twenty subjects, with the items in another order; return them in the bank's."""
    rng = np.random.default_rng(1)
    scores = (rng.random((20, N)) < 1 / (1 + np.exp(-rng.normal(size=(20, 1)) * 2 + rng.normal(size=N)))).astype(float)
    order = rng.permutation(N)[:items]
    rows = [",".join(["subject", *(f"q{i}" for i in order)])]
    rows += [",".join([f"m{s}", *(f"{scores[s, i]:g}" for i in order)]) for s in range(20)]
    path.write_text("\n".join(rows) + "\n")
    return scores


def test_known_models_choose_the_first_items_and_place_the_others(tmp_path: Path) -> None:
    scores = write(tmp_path / "known.csv")
    given: dict[str, Any] = {"cache": tmp_path / "cache", "decisions": tmp_path / "decisions.jsonl"}
    table = InterviewTable(responses="known.csv")
    selector, _, sentence = interviewed(table, bank(), (tmp_path,), **given)
    assert selector.responses is not None
    np.testing.assert_array_equal(selector.responses, scores)
    assert "response factors (20 subjects" in sentence
    points = selector.points(bank())
    chosen = selector.open(bank(), [np.random.SeedSequence(0)])._first[0]
    np.testing.assert_array_equal(chosen, by_cluster(points, 10, responses=scores))
    assert set(chosen) != set(by_cluster(points, 10))  # those of the tightest clusters
    without, _, sentence = interviewed(InterviewTable(), bank(), (tmp_path,), **given)
    assert without.responses is None
    assert "parameter factors" in sentence


@pytest.mark.parametrize(
    ("items", "name", "message"),
    [(N, "no.csv", "expected an existing file of responses"), (50, "known.csv", "no responses to 10 of the 60 items")],
)
def test_responses_that_do_not_fit_are_told(tmp_path: Path, items: int, name: str, message: str) -> None:
    write(tmp_path / "known.csv", items)
    with pytest.raises(ConfigError, match=message):
        interviewed(InterviewTable(responses=name), bank(), (tmp_path,), cache=tmp_path, decisions=tmp_path / "d.jsonl")
