"""Backtests in formats: equal calls, that no contender sees the subject left out, subsets, and the tests' figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="multimodal fits need torch (extra hf)")

import pytest_adaptive_eval.extensions.papers.format_backtests as module  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal import Training, fit_multimodal  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality  # noqa: E402
from pytest_adaptive_eval.calibration.scale import separation  # noqa: E402
from pytest_adaptive_eval.errors import ResponsesError  # noqa: E402
from pytest_adaptive_eval.extensions.papers.format_backtests import (  # noqa: E402
    FORMAT_CONTENDERS,
    Fold,
    anchors,
    format_backtest,
    signed_rank,
)
from pytest_adaptive_eval.extensions.papers.format_lines import format_backtest_lines  # noqa: E402
from pytest_adaptive_eval.extensions.papers.subsets import evolved, item_total  # noqa: E402
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation  # noqa: E402
from pytest_adaptive_eval.irt.multimodal import Form, Modalities  # noqa: E402
from pytest_adaptive_eval.items.responses import FormatResponses  # noqa: E402

LEVEL = np.array([[0.75, 0.15, 0.2, 0.1], [0.3, 0.25, 0.3, 0.25]])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(1)

    def few_steps(scores, training=None, **given):
        training = replace(training or Training(), steps=120, patience=2)
        return fit_multimodal(scores, **given, bounds=(4.0,), training=training)

    monkeypatch.setattr(module, "fit_multimodal", few_steps)
    monkeypatch.setattr(module, "item_quality", lambda *a, **g: item_quality(*a, **g, starts=1))
    yield
    torch.set_num_threads(before)


def planted(n=80, subjects=14, seed=0, skilled=0.2):
    """Genuine items, where the subjects differ with everything given, and such that nobody can tell."""
    rng = np.random.default_rng(seed)
    low = np.arange(n) >= n // 2
    level = np.repeat(LEVEL[low.astype(int)][None], subjects, axis=0)
    level[:, ~low, 0] += np.linspace(-skilled, skilled, subjects)[:, None]
    scores = (rng.random(level.shape) < level).astype(float)
    names = tuple(f"{'bad' if bad else 'q'}{i}" for i, bad in enumerate(low))
    return FormatResponses(tuple(f"m{s}" for s in range(subjects)), names, Modalities(), scores), low


@pytest.mark.slow
def test_every_contender_makes_as_many_calls():
    responses, low = planted()
    result = format_backtest(responses, low, list(FORMAT_CONTENDERS), ["5%", "30"], range(3), repeats=2)
    for (name, budget), rows in result.rows.items():
        assert {row["calls"] for row in rows} == {16 if budget == "5%" else 30}, name
        assert len(rows) == (6 if name == "random" else 3)
        assert all(0 <= row["gamma"] <= 1 for row in rows)
        assert all(-1 <= row["together_all"] <= 1 for row in rows)
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert [row["policy"] for row in told["rows"][::2]] == list(FORMAT_CONTENDERS)
    assert told["pairs"] == 320
    assert told["low_quality"] == 0.5
    random = next(row for row in told["rows"] if row["policy"] == "random")
    assert random["gamma_of_random"] == 1
    assert {t["against"] for t in told["tests"]} == {"random", "irt", "mirt", "anchors", "flasheval", "item-total"}
    fitted = {"m2", "m3", "m2-likelihood", "m3-likelihood", "m2-static", "m3-static", "m2-pairs", "m3-pairs"}
    assert {t["policy"] for t in told["tests"]} == fitted | {f"{name}+worth" for name in fitted}
    assert set(told["seconds"]) == {"2pl", "mirt", "m2", "m3", "m2-likelihood", "m3-likelihood", "quality"}
    assert told["fits"].keys() == told["seconds"].keys() - {"quality"}
    assert told["fits"]["m2"] == {"fits": 3, "unsettled": 2, "q": {"4": 3}, "at_edge": 3}  # one q, and few steps
    assert told["fits"]["2pl"]["q"] == {}


@pytest.mark.slow
def test_low_quality_items_are_avoided_by_ours_and_not_by_chance():
    responses, low = planted()
    result = format_backtest(responses, low, ["random", "m2-static+worth"], ["20%"], range(5), repeats=3)
    gamma = {name: result.by_target(name, "20%", "gamma").mean() for name in ("random", "m2-static+worth")}
    assert gamma["m2-static+worth"] < 0.1
    assert 0.4 < gamma["random"] < 0.6


def test_parts_merge_to_the_whole():
    responses, low = planted(40, 6)
    names, budgets = ["random", "item-total"], ["10%"]
    whole = format_backtest(responses, low, names, budgets, range(4), repeats=2)
    parts = [format_backtest(responses, low, names, budgets, [t], repeats=2) for t in range(4)]
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].to_json() == whole.to_json()


@pytest.mark.slow
def test_the_subject_left_out_has_no_part_in_what_it_is_asked(monkeypatch):
    """Another answer sheet of the subject changes nothing that is chosen before the interview."""
    responses, _ = planted(40, 8)
    flipped = responses.scores.copy()
    flipped[2] = 1.0 - flipped[2]
    for name in ("random", "anchors", "flasheval", "item-total", "m2-static+worth", "m3-static", "m3-pairs"):
        asked = [
            FORMAT_CONTENDERS[name].interview(Fold(scores, responses.modalities, 2, {"b": 24}))["b"]
            for scores in (responses.scores, flipped)
        ]
        np.testing.assert_array_equal(asked[0].pairs, asked[1].pairs)
        assert asked[0].every != asked[1].every


def test_a_family_is_left_out_together(monkeypatch):
    responses, low = planted(40, 8)
    families = ["a", "b", "a", "c", "d", "e", "f", "a"]
    together = replace(responses, families=tuple(families))
    seen = []
    monkeypatch.setattr(module.Fold, "quality", lambda self: seen.append(self.train) or item_quality(self.train))
    format_backtest(together, low, ["m2-static+worth"], ["24"], [2])
    assert {train.shape[0] for train in seen} == {5}
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(seen[0], responses.scores[[1, 3, 4, 5, 6]][:, order])
    with pytest.raises(ResponsesError, match="without the family of 'm2' too few subjects are left to fit"):
        format_backtest(replace(responses, families=("x",) * 8), low, ["random"], ["24"], [2])


@pytest.mark.slow
def test_missing_responses_and_items_that_nobody_else_answered():
    responses, low = planted(60, 10)
    scores = responses.scores.copy()
    scores[np.random.default_rng(1).random(scores.shape) < 0.3] = np.nan
    scores[1:, 7] = np.nan
    scores[0, 7, 0] = 1.0
    scores[:, 9, 1] = np.nan
    holey = FormatResponses(responses.subjects, responses.items, responses.modalities, scores)
    result = format_backtest(holey, low, list(FORMAT_CONTENDERS), ["10%", "100%"], [0], repeats=1)
    for (name, budget), [row] in result.rows.items():
        all_ = 235 if name in ("irt", "mirt", "anchors") else 236  # nobody answered one pair
        assert row["calls"] == (24 if budget == "10%" else all_)
        assert np.isfinite(row["all"])


def test_m2_and_m3_choose_as_their_paper_has_it():
    """M2 by the sum of P (1 - P) a(s)^2 (Eq. 9), M3 by the determinant of the cumulative information (Eq. 11)."""
    responses, _ = planted(30, 8)
    fold = Fold(responses.scores, responses.modalities, 0, {"b": 12})
    forms: tuple[tuple[str, Form], ...] = (("m2-static", "m2"), ("m3-static", "m3"))
    for name, form in forms:
        fit = fold.multimodal_fit(form)
        theta = fit.population.theta[None]
        p, slopes = fit.items.probability(theta)[0], fit.items.slopes
        matrices = np.einsum("nf,nfk,nfl->nkl", p * (1 - p), slopes, slopes)
        total, expected = fit.population.precision(), list[int]()
        for _ in range(3):
            if form == "m2":
                value = (p * (1 - p) * slopes[:, :, 0] ** 2).sum(axis=1)
            else:
                value = np.linalg.det(total + matrices)
            value[expected] = -1.0
            expected.append(int(value.argmax()))
            total = total + matrices[expected[-1]]
        pairs = FORMAT_CONTENDERS[name].interview(fold)["b"].pairs
        assert pairs.tolist() == [4 * item + f for item in expected for f in range(4)]


def test_a_limit_holds_for_each_fit(monkeypatch):
    steps = []

    def fit(scores, training, **given):
        steps.append(training.steps)
        return fit_multimodal(scores, training=training, bounds=(4.0,), **given)

    monkeypatch.setattr(module, "fit_multimodal", fit)
    responses, low = planted(30, 8)
    told = format_backtest(responses, low, ["irt", "m2-static", "m2-likelihood"], ["12"], [0], limit=3).to_json()
    assert steps == [3, 3]
    assert {name: fit["unsettled"] for name, fit in told["fits"].items()} == {"2pl": 1, "m2": 1, "m2-likelihood": 1}
    assert sum("1 did not settle: raise limit" in line for line in format_backtest_lines(told, 100)) == 3


def test_nothing_is_known_to_be_bad():
    responses, low = planted(40, 6)
    told = format_backtest(responses, ~low & low, ["random", "m2-static"], ["10%"], range(2), repeats=1).to_json()
    assert told["low_quality"] == 0
    assert {row["gamma"] for row in told["rows"]} == {None}
    assert {t["of"] for t in told["tests"]} <= {"together_all", "together_fullest"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r, low: (r, np.ones_like(low)), "all items are marked as of low quality"),
        (lambda r, low: (FormatResponses(r.subjects[:3], r.items, r.modalities, r.scores[:3]), low), "takes 4 or more"),
        (
            lambda r, low: (
                FormatResponses(
                    r.subjects,
                    r.items,
                    r.modalities,
                    np.where((np.arange(6)[:, None, None] == 4) & (np.arange(4) == 0), np.nan, r.scores),
                ),
                low,
            ),
            r"subject 'm4' has no answer in the format image\+text",
        ),
    ],
)
def test_what_cannot_be_backtested(change, message):
    responses, low = change(*planted(20, 6))
    with pytest.raises(ResponsesError, match=message):
        format_backtest(responses, low, ["random"], ["10%"], [0])


# Subsets


def test_item_total_is_the_correlation_with_the_means():
    rng = np.random.default_rng(0)
    scores = (rng.random((30, 12)) < rng.random((30, 1))).astype(float)
    scores[:, 3] = 1.0
    found = item_total(scores)
    assert found[3] == -1
    for i in (0, 5):
        assert found[i] == pytest.approx(np.corrcoef(scores[:, i], scores.mean(axis=1))[0, 1], abs=1e-9)


@pytest.mark.slow
def test_the_search_finds_columns_that_rank_alike():
    rng = np.random.default_rng(0)
    strength = np.linspace(0.1, 0.9, 15)[:, None]
    scores = np.c_[rng.random((15, 100)) < 0.5, rng.random((15, 30)) < strength].astype(float)
    truth = scores.mean(axis=1)
    chosen = evolved(scores, 15, np.random.default_rng(1))
    assert len(set(chosen.tolist())) == 15
    drawn = [rng.choice(130, 15, replace=False) for _ in range(60)]
    best = max(rank_correlation(scores[:, some].mean(axis=1), truth) for some in drawn)
    assert rank_correlation(scores[:, chosen].mean(axis=1), truth) > best
    np.testing.assert_array_equal(chosen, evolved(scores, 15, np.random.default_rng(1)))


def test_anchors_stand_for_their_clusters():
    rng = np.random.default_rng(0)
    sizes = (50, 30, 20)
    points = np.concatenate([rng.normal(10.0 * k, 0.1, (size, 2)) for k, size in enumerate(sizes)])
    chosen, weight = anchors(points, 3, seed=0)
    cluster = np.repeat([0, 1, 2], sizes)[chosen]
    assert sorted(cluster.tolist()) == [0, 1, 2]
    assert dict(zip(cluster.tolist(), weight.tolist(), strict=True)) == pytest.approx({0: 0.5, 1: 0.3, 2: 0.2})
    chosen, weight = anchors(points, 40, seed=0)
    assert len(set(chosen.tolist())) == 40
    assert weight.sum() == pytest.approx(1)


# Tests


def test_wilcoxon_and_mann_whitney_by_hand():
    # differences 1, 2, 3, -4, 5: the positive ranks sum to 11 of 15
    w, p = signed_rank([1, 2, 3, 0, 5], [0, 0, 0, 4, 0])
    assert w == 11
    assert p == pytest.approx(7 / 32)  # of 32 signs, those whose positive ranks sum to 11 or more
    assert signed_rank([1, 2, 3, 0, 5], [0, 0, 0, 4, 0], greater=False)[1] == pytest.approx(27 / 32)
    assert signed_rank([1, 2], [1, 2]) is None
    assert signed_rank([1, np.nan, 3], [0, 5, 1])[0] == 3
    found = separation([4.0, 5.0, 6.0, 1.0, 2.0, 5.0], np.array([0, 0, 0, 1, 1, 1], dtype=bool))
    assert (found.original, found.low) == (5.0, pytest.approx(8 / 3))
    assert found.u == 7.5
    assert found.auc == pytest.approx(7.5 / 9)
    assert found.wasserstein == pytest.approx(7 / 3)
    assert found.edges == pytest.approx(np.linspace(1, 6, 13))
    assert found.counts == ((0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1), (1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0))
