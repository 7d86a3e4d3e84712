"""Splits, what a cell of the table says, and that nothing of the test subjects reaches the bank."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import pytest_adaptive_eval.extensions.backtests.backtest as module
from pytest_adaptive_eval.calibration.families import grouped
from pytest_adaptive_eval.calibration.parameters import read_parameters
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay, replay_each
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.extensions.backtests import contenders as classical
from pytest_adaptive_eval.extensions.backtests.backtest import (
    Backtest,
    BacktestCell,
    Split,
    backtest,
    splits,
)
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.items.responses import Responses


def named(scores, families=()):
    scores = np.asarray(scores)
    return Responses(
        tuple(f"m{s}" for s in range(len(scores))), tuple(f"q{i}" for i in range(scores.shape[1])), scores, families
    )


def single(n):
    return named(np.zeros((n, 2)))


# Splits


def test_splits_are_of_the_size_wanted_and_the_same_every_time():
    found = list(splits(single(30), 20, test=7, seed=3))
    assert len(found) == 20
    for split in found:
        assert len(split.test) == 7
        assert sorted([*split.train, *split.test]) == list(range(30))
    again = list(splits(single(30), 20, test=7, seed=3))
    assert [s.test.tolist() for s in found] == [s.test.tolist() for s in again]
    assert len({tuple(s.test) for s in found}) > 15
    assert next(splits(single(30), 1, test=7, seed=4)).test.tolist() != found[0].test.tolist()
    counts = np.bincount(np.concatenate([s.test for s in splits(single(10), 400, test=3, seed=1)]))
    assert counts.min() > 80  # 120 are expected, with a standard deviation of 9


def test_splits_keep_families_whole():
    families = [f"f{s // 3}" for s in range(30)]
    for split in splits(named(np.zeros((30, 2)), families), 20, test=8, seed=1):
        assert len(split.test) == 6  # two families of three; a third does not fit
        assert not {families[s] for s in split.train} & {families[s] for s in split.test}


@pytest.mark.parametrize(
    ("families", "test", "message"),
    [
        ((), 1, "10 subjects cannot give 1 to interview"),
        ((), 9, "10 subjects cannot give 9 to interview, two or more, and leave two or more to calibrate"),
        (["a"] * 5 + ["b"] * 5, 4, "of 2 families, which stay together and are too large for 4 to interview"),
    ],
)
def test_splits_that_cannot_be(families, test, message):
    with pytest.raises(ResponsesError, match=message):
        list(splits(named(np.zeros((10, 2)), families), 1, test=test, seed=0))


# Cells and tables


def cell(ranking=(), **more):
    return BacktestCell(ranking=list(ranking), correlation=[0.5] * len(ranking), error=[0.1] * len(ranking), **more)


def test_coverage_and_width():
    truth = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95]
    pairs = [(t - 0.1, t + 0.1) for t in truth[:8]] + [(0.0, 0.1), (0.0, 0.95)]  # the ninth misses, the last just holds
    made = BacktestCell(truth=truth, intervals={"m": pairs}, uniform=[0.2] * 8 + [0.1, 0.0])
    assert made.covers("m").tolist() == [True] * 8 + [False, True]
    assert made.width("m") == pytest.approx((8 * 0.5 + 0.5) / 9)  # no uniform draw errs on the last: left out
    made.uniform = [0.0] * 10
    assert np.isnan(made.width("m"))


def test_parts_are_joined_in_step():
    first = cell([80.0], truth=[0.1], intervals={"m": [(0.0, 0.2)]}, uniform=[0.1])
    first.extend(cell([90.0], truth=[0.9], intervals={"m": [(0.0, 0.2)], "other": [(0.8, 1.0)]}, uniform=[0.1]))
    assert first.ranking == [80.0, 90.0]
    assert first.covers("m").tolist() == [True, False]
    whole = Backtest(100, {"1%": 1}, {("a", "1%"): cell([80.0])}, 1)
    whole.merge(Backtest(100, {"1%": 1}, {("a", "1%"): cell([90.0]), ("b", "1%"): cell([70.0])}, 1))
    assert whole.splits == 2
    rows = whole.to_json()["rows"]
    assert [(row["policy"], row["ranking_accuracy"]) for row in rows] == [("a", 85.0), ("b", 70.0)]
    assert rows[0]["ranking_accuracy_se"] == pytest.approx(5.0)
    assert rows[0]["ranking_accuracy_spread"] == pytest.approx(1.96 * 50**0.5, abs=1e-5)
    assert rows[1]["ranking_accuracy_se"] is None
    assert rows[1]["ranking_accuracy_spread"] is None


def test_the_smallest_budget_is_by_items_not_by_order():
    table = {("a", "20"): cell([92.0]), ("a", "5%"): cell([84.0, 87.0]), ("a", "1%"): cell([60.0])}
    found = Backtest(100, {"1%": 1, "5%": 5, "20": 20}, {**table, ("b", "1%"): cell([70.0])}, 1)
    assert found.smallest() == {"a": {"85": "5%", "90": "20"}, "b": {"85": None, "90": None}}


def test_what_is_no_number_is_null():
    data = Backtest(10, {"1": 1}, {("a", "1"): cell([float("nan")])}, 1).to_json()
    assert data["rows"][0]["ranking_accuracy"] is None
    json.dumps(data, allow_nan=False)


# Interviews


def run(made, names, budgets=("10%",), **more):
    S = len(made.responses.subjects)
    split = Split(np.arange(S - 10), np.arange(S - 10, S))
    given = {"recipe": Recipe("2pl"), **more}
    return backtest(made.responses, split, [CONTENDERS[name] for name in names], budgets, **given)


@pytest.mark.slow
def test_all_items_rank_everybody_rightly(planted):
    made = planted(40, 30, 1)
    found = run(made, [name for name in CONTENDERS if name not in ("stratified", "autojudger")], ("100%",))
    assert found.budgets == {"100%": 30}
    truth = made.scores[30:].mean(axis=1)
    for (name, _), one in found.cells.items():
        assert one.truth == pytest.approx(truth.tolist())
        assert one.error[0] == pytest.approx(0, abs=1e-9) or CONTENDERS[name].estimate == "ability"
        assert one.ranking[0] > 99 or CONTENDERS[name].estimate == "ability"
        assert one.ranking[0] > 90


def test_closed_forms_of_uniform_draws(planted):
    made = planted(40, 50, 2)
    one = run(made, ["random"], ("20%",)).cells["random", "20%"]
    truth = made.scores[30:].mean(axis=1)
    expected = 1.959964 * np.sqrt(truth * (1 - truth) / 10 * (1 - 10 / 50))
    np.testing.assert_allclose(one.uniform, expected)
    assert one.intervals == {}
    assert run(made, ["random"], ("20%",), intervals=True).cells["random", "20%"].intervals.keys() == {"design-based"}


@pytest.mark.slow
def test_intervals_of_every_kind(planted):
    found = run(planted(50, 40, 3), ["spread", "estimate"], ("25%",), intervals=True, confidence=0.95)
    assert list(found.cells["spread", "25%"].intervals) == ["model-based", "design-based", "conformal", "combined"]
    assert list(found.cells["estimate", "25%"].intervals) == ["model-based", "conformal"]
    for one in found.cells.values():
        for pairs in one.intervals.values():
            assert len(pairs) == len(one.truth) == len(one.uniform) == 10
            assert all(low <= high for low, high in pairs)
    few = run(planted(24, 40, 3), ["estimate"], ("25%",), intervals=True)
    assert list(few.cells["estimate", "25%"].intervals) == ["model-based"]  # fourteen are too few for 95 %


def test_intervals_where_scores_are_missing(planted):
    made = planted(40, 40, 4)
    scores = made.scores.copy()
    scores[np.random.default_rng(1).random(scores.shape) < 0.2] = np.nan
    scores[35, 1:] = np.nan  # so that most draws give nothing at all
    made.responses = named(scores)
    found = run(made, ["random", "cluster", "spread"], ("10%",), intervals=True, confidence=0.95)
    for (name, _), one in found.cells.items():
        assert np.isfinite(one.ranking).all()
        if name != "cluster":
            assert one.covers("design-based").mean() >= 0.9
    low, high = found.cells["random", "10%"].intervals["design-based"][5]
    assert high - low > 0.6  # what was not answered may have been anything


def test_families_of_contenders(planted):
    made = planted(40, 30, 5)
    categories = ["a", "b", "c"] * 10
    split = Split(np.arange(30), np.arange(30, 40))
    seen: list[Any] = []

    def spy(bank, policies, scores, **options):
        sessions = replay_each(bank, policies, scores, **options)
        seen.extend(session.answers[0] for session in sessions)
        return sessions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "replay_each", spy)
        contenders = [CONTENDERS["stratified"], CONTENDERS["cluster"]]
        backtest(made.responses, split, contenders, [6], recipe=Recipe("2pl"), categories=categories)
    for row in seen[0]:
        assert np.bincount(row % 3).tolist() == [2, 2, 2]
    assert (seen[1][:, :2] == seen[1][0, :2]).all()  # one form for everybody, up to the uniform share
    assert all(len(set(row)) == 6 for row in seen[1].tolist())


def test_a_cluster_form_is_of_items_that_differ():
    """Ten kinds of items with answers that are all alike, ten of each: one of each kind is asked."""
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 2, size=(40, 10)).astype(float)

    def form(*given) -> list[int]:
        selector: Any = classical._cluster_form(*given).selector
        return list(selector.order)

    chosen = form(np.repeat(kinds, 10, axis=1), None, 10, 0)
    assert len({i // 10 for i in chosen}) == len(chosen) == 10
    near = form(kinds, np.repeat(np.arange(10.0), 10)[:, None], 10, 0)
    assert len({i // 10 for i in near}) == 10  # of embeddings, the same
    assert len(set(form(np.ones((8, 6)), None, 4, 0))) == 4  # nothing to tell them apart


@pytest.mark.slow
def test_the_bank_knows_nothing_of_the_test_subjects(planted, monkeypatch):
    made = planted(30, 25, 6)
    banks: list[tuple[object, ...]] = []

    def spy(bank, policies, scores, **options):
        predictor = None if bank.predictor is None else bank.predictor.hash
        parameters = bank.discrimination.tolist(), bank.intercept.tolist(), bank.guess.tolist()
        banks.append((*parameters, predictor, repr(policies)))
        return replay_each(bank, policies, scores, **options)

    monkeypatch.setattr(module, "replay_each", spy)
    names = [name for name in CONTENDERS if name not in ("stratified", "autojudger")]
    run(made, names)
    poisoned = made.scores.copy()
    poisoned[20:] = np.random.default_rng(1).integers(0, 2, (10, 25))
    made.responses = named(poisoned)
    run(made, names)
    half = len(banks) // 2
    assert half == len(names)
    assert any(one[3] for one in banks)  # predictors
    assert banks[:half] == banks[half:]


@pytest.mark.slow
def test_one_bank_serves_all_contenders_of_its_recipe(planted, monkeypatch):
    calls = []
    call = Recipe.__call__
    monkeypatch.setattr(
        Recipe, "__call__", lambda self, *given, **rest: calls.append(self.model) or call(self, *given, **rest)
    )
    run(planted(30, 25, 7), ["estimate", "decide", "maximum-information", "spread", "random"], ("10%", "20%"))
    assert calls == ["2pl"] * 6  # five of them choose how estimate draws
    run(planted(30, 25, 7), ["estimate", "variance", "nearest-difficulty"])
    assert calls == ["2pl"] * 12 + ["mirt", "1pl"]


@pytest.mark.slow
def test_one_split_has_one_answer_whatever_else_the_file_holds(planted):
    made = planted(44, 60, 11)
    scores = made.scores.copy()
    scores[40:] = scores[20:24]  # near-copies of calibration subjects, which are neither interviewed nor calibrated on
    whole = grouped(named(scores, [f"m{s}" if s < 40 else f"m{s - 20}" for s in range(44)]))
    assert whole.weights is not None
    contenders, budgets = [CONTENDERS[name] for name in ("estimate", "maximum-information", "form")], ["20%"]
    in_whole = backtest(whole, Split(np.arange(10, 40), np.arange(10)), contenders, budgets, recipe=Recipe("2pl"))
    calibrating, asked = whole.of(range(10, 40)), whole.of(range(9, -1, -1))
    apart = backtest(
        Responses(
            calibrating.subjects + asked.subjects,
            whole.items,
            np.vstack([calibrating.scores, asked.scores]),
            calibrating.families + asked.families,
        ),
        Split(np.arange(30), np.arange(30, 40)),
        contenders,
        budgets,
        recipe=Recipe("2pl"),
    )
    for key, cell in in_whole.cells.items():
        assert cell.ranking == pytest.approx(apart.cells[key].ranking)
        assert cell.error == pytest.approx(apart.cells[key].error)


def test_recipe_of_another_model_has_an_engine_that_fits_it():
    assert Recipe("1pl", engine="svi", seed=3).with_model("mirt") == Recipe("mirt", seed=3)
    assert Recipe("1pl", engine="svi", seed=3).with_model("2pl") == Recipe("2pl", engine="svi", seed=3)
    assert Recipe("mirt", 2).with_model("mirt") == Recipe("mirt", 2)


@pytest.mark.fast_rows(1)
def test_the_published_baseline_is_reproduced(published):
    """AutoJudger's row of nearest difficulties, from its released difficulties, to the digit."""
    name, responses, _, test, path = published
    policy = replace(cast("Any", CONTENDERS["nearest-difficulty"].policy), budget="5%")
    bank = read_parameters(path, responses.items).bank(name, responses.items)
    session = replay(bank, policy, responses.scores[test], seed=0)
    truth = responses.scores[test].mean(axis=1)
    found = ranking_accuracy(session.estimate.theta[:, 0], truth, ties="autojudger")
    assert round(found, 2) == {"AI2D": 89.71, "MMMU": 82.35}[name]
