"""All pairs of subjects: which are compared answer by answer, and the error rate of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from made import made

from pytest_adaptive_eval.records.pairs import all_pairs
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord

SIZE = 200


def interview(
    subject: str, truth: Any, order: Sequence[int], *, stop: str = "budget", seed: int = 0, **changes: Any
) -> EvaluationRecord:
    """An interview that drew the items in this order uniformly."""
    left = [SIZE - n for n in range(len(order))]
    administrations = [
        Administration(
            n + 1, f"q{item}", "h", score=truth[item], propensity=1 / rest, predicted=0.5, rest=rest / 2,
            variance=rest**2 / 4, down=rest / 2, up=rest / 2,
        )
        for n, (item, rest) in enumerate(zip(order, left, strict=True))
    ]  # fmt: skip
    values = {
        "name": f"text ({subject})",
        "nodeid": "a.eval.toml::text[aeval:text]",
        "subject": {"name": subject},
        "bank": {"content_hash": "b", "size": SIZE},
        "policy": {"selector": "random", "stop": stop, "seed": seed},
        "asked": len(order),
        "scored": len(order),
        "size": SIZE,
        "statuses": {"ok": len(order)},
        "stop": "BUDGET",
        "administrations": administrations,
    }
    return made(EvaluationRecord, **{**values, **changes})


def test_subjects_with_the_same_draws_are_compared_answer_by_answer() -> None:
    rng = np.random.default_rng(1)
    order = rng.permutation(SIZE)[:80].tolist()
    low = (np.arange(SIZE) % 2).astype(float)
    high = np.maximum(low, (np.arange(SIZE) % 10 == 0).astype(float))  # never worse
    pairs = all_pairs([interview("low", low, order), interview("high", high, order), interview("mid", low, order[:60])])
    assert {pair.subjects[0] for pair in pairs} >= {"high"}
    best = next(pair for pair in pairs if set(pair.subjects) == {"high", "low"})
    assert (best.subjects, best.shared, best.evaluation) == (("high", "low"), 80, "text")
    assert best.interval is not None
    assert best.interval.estimate == pytest.approx(float((high - low)[order].mean()), abs=0.01)
    assert best.interval.confidence == pytest.approx(1 - 0.05 / 6)
    same = next(pair for pair in pairs if set(pair.subjects) == {"mid", "low"})
    assert same.shared == 60
    assert not same.decided


def test_subjects_with_other_draws_keep_their_own_intervals() -> None:
    rng = np.random.default_rng(2)
    bad, good = np.zeros(SIZE), np.ones(SIZE)
    orders = [rng.permutation(SIZE)[:60].tolist() for _ in range(2)]
    (pair,) = all_pairs([interview("bad", bad, orders[0]), interview("good", good, orders[1])])
    assert (pair.subjects, pair.shared, pair.decided) == (("good", "bad"), 0, True)
    assert pair.interval is not None
    assert "each alone" in pair.interval.method
    (paired,) = all_pairs([interview("bad", bad, orders[0]), interview("good", good, orders[0])])
    assert paired.interval is not None
    assert paired.interval.low > pair.interval.low


def test_other_seeds_ladders_and_chosen_items_have_no_part() -> None:
    truth, order = np.ones(SIZE), list(range(50))
    one = interview("one", truth, order)
    assert all_pairs([one, interview("two", truth, order, seed=1)]) == []
    chosen = interview("two", truth, order)
    for administration in chosen.administrations:
        administration.propensity = None
    assert all_pairs([one, chosen]) == []
    assert all_pairs([one, interview("two", truth, order, error="it did not finish")]) == []
    (pair,) = all_pairs([one, interview("two", truth, order, bank={"content_hash": "c", "size": SIZE})])
    assert (pair.interval, pair.refused) == (None, "the bank changed between the two (hash b, then c)")


def test_results_of_one_subject_keep_names_of_their_own() -> None:
    truth, order = np.ones(SIZE), list(range(50))
    pairs = all_pairs(interview("one", truth, order, name=name) for name in ("first", "second", "second"))
    assert len({name for pair in pairs for name in pair.subjects}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["budget", "decision"])
def test_all_intervals_of_a_table_hold_together(stop: str) -> None:
    """Four checkpoints, six pairs, 60 of 200 items; with `decision` each stops where its own mean first leaves .5."""
    rng = np.random.default_rng(7)
    missed = replications = 0
    for _ in range(400 if stop == "budget" else 60):
        base = (rng.random(SIZE) < 0.6).astype(float)
        truths = [np.where(rng.random(SIZE) < 0.15, 1 - base, base) for _ in range(4)]
        order = rng.permutation(SIZE)
        records = []
        for n, truth in enumerate(truths):
            means = truth[order].cumsum() / np.arange(1, SIZE + 1)
            left = np.flatnonzero((np.abs(means - 0.5) > 0.15) & (np.arange(SIZE) >= 20))
            asked = 60 if stop == "budget" else min(int(left[0]) + 1 if len(left) else 60, 60)
            records.append(interview(f"c{n}", truth, order[:asked].tolist(), stop=stop))
        pairs = all_pairs(records)
        assert len(pairs) == 6
        accuracy = {f"c{n}": truth.mean() for n, truth in enumerate(truths)}
        misses = [
            not pair.interval.low - 1e-9
            <= accuracy[pair.subjects[0]] - accuracy[pair.subjects[1]]
            <= pair.interval.high + 1e-9
            for pair in pairs
            if pair.interval is not None
        ]
        missed += any(misses)
        replications += 1
    assert missed / replications <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / replications)
