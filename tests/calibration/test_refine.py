"""Refining: planted shortcuts are found and told apart, and the ranking is compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="multimodal fits need torch (extra hf)")

import pytest_adaptive_eval.extensions.backtests.refine as module  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal import UNTIL_SETTLED, Training, fit_multimodal  # noqa: E402
from pytest_adaptive_eval.calibration.multimodal_errors import gain_error  # noqa: E402
from pytest_adaptive_eval.errors import ResponsesError  # noqa: E402
from pytest_adaptive_eval.extensions.backtests.refine import REASONS, refine  # noqa: E402
from pytest_adaptive_eval.irt.multimodal import Modalities, MultimodalItems  # noqa: E402
from pytest_adaptive_eval.items.responses import FormatResponses  # noqa: E402

KINDS = ("genuine", "text", "nothing")
#: Share right by format: needs both, the text alone does, and nobody knows.
LEVEL = np.array([[0.75, 0.15, 0.2, 0.1], [0.7, 0.15, 0.7, 0.15], [0.15, 0.2, 0.2, 0.2]])


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def planted(counts=(60, 40, 60), subjects=24, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.repeat(np.arange(3), counts)
    skill = rng.normal(0, 0.12, (subjects, 1, 1))
    scores = (rng.random((subjects, len(kind), 4)) < LEVEL[kind] + skill).astype(float)
    names = tuple(f"{KINDS[k]}{i}" for i, k in enumerate(kind))
    return FormatResponses(tuple(f"m{s}" for s in range(subjects)), names, Modalities(), scores), kind


def fast(scores, **given):
    return fit_multimodal(scores, **{**given, "bounds": (4.0,), "training": Training(steps=200)})


@pytest.fixture(scope="module")
def found():
    responses, kind = planted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fit_multimodal", fast)
        return refine(responses, kind == 2), responses, kind


def test_planted_shortcuts_are_told_from_genuine_items(found):
    result, _, _ = found
    reasons = {name: [one.reason for one in result.findings if one.item.startswith(name)] for name in KINDS}
    assert reasons["genuine"].count("kept") > 50
    assert reasons["text"].count("shortcut") >= 25
    assert reasons["text"].count("kept") <= 8  # of 40 that gain exactly nothing, at a confidence of .8
    assert set(reasons["nothing"]) == {"low quality"}
    assert sum(one.looks == "genuine" for one in result.findings if one.low_quality) <= 2
    assert result.kept_items == [one.item for one in result.findings if one.reason == "kept"]
    text = [one for one in result.findings if one.item.startswith("text")]
    assert sum(one.instead == "text" for one in text) > 35
    assert all("over text alone" in one.detail for one in text if one.instead == "text")


def test_figures_of_an_item_are_those_of_its_responses(found):
    result, responses, _ = found
    for i in (0, 70, 150):
        assert result.findings[i].right == pytest.approx(
            dict(zip(responses.modalities.formats, responses.scores[:, i].mean(axis=0), strict=True))
        )


def test_originals_differ_from_the_low_quality_items(found):
    result, _, _ = found
    assert result.separations["gain of like"].auc > 0.9
    assert result.separations["information"].original > result.separations["information"].low
    assert result.separations["information"].p < 1e-6


def test_the_account_is_plain_data(found):
    import json

    result, _, _ = found
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert sum(told["counts"].values()) == len(told["items"]) == 160
    assert set(told["counts"]) == set(REASONS)
    assert told["items"][0].keys() >= {"item", "kept", "reason", "gain", "gain_error", "right_image+text", "right_none"}
    assert -1 <= told["ranking"]["spearman"] <= 1
    assert 0.5 < told["ranking_by_chance"] <= 1
    ranks = sorted(row["rank_by_all"] for row in told["moved"])
    assert ranks[0] == 1
    assert len(ranks) == 24


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "fit_multimodal", fast)


@pytest.mark.slow
def test_a_size_keeps_the_most_telling(quick):
    responses, kind = planted()
    whole, few = (refine(responses, kind == 2, size=size) for size in (None, 20))
    assert len(few.kept_items) == 20
    assert set(few.kept_items) < set(whole.kept_items)
    assert {one.reason for one in few.findings} >= {"redundant"}
    information = {one.item: one.information for one in whole.findings if one.reason == "kept"}
    kept = [information[name] for name in few.kept_items]
    dropped = [value for name, value in information.items() if name not in few.kept_items]
    assert np.mean(kept) > np.mean(dropped)
    assert len(refine(responses, kind == 2, size=1000).kept_items) == len(whole.kept_items)


@pytest.mark.slow
def test_originals_that_are_mostly_shortcuts_are_told(quick):
    responses, kind = planted((25, 70, 10))
    result = refine(responses, kind == 2)
    assert any("of the 95 original items are shortcuts themselves" in text for text in result.warnings)
    result = refine(*(lambda r, k: (r, k == 2))(*planted((70, 25, 10))))
    assert not any("shortcuts themselves" in text for text in result.warnings)


def test_a_fit_that_did_not_settle_is_told(monkeypatch):
    responses, kind = planted((12, 6, 6))
    for settled in (False, True):

        def fit(scores, *, settled=settled, **given):
            assert given["training"] is UNTIL_SETTLED
            return replace(fast(scores, **given), converged=settled)

        monkeypatch.setattr(module, "fit_multimodal", fit)
        warned = any("the fit did not converge" in text for text in refine(responses, kind == 2).warnings)
        assert warned is not settled


def test_few_subjects_and_nothing_known_are_told(quick):
    responses, _ = planted((12, 6, 6), subjects=6)
    warnings = " ".join(refine(responses, np.zeros(24, dtype=bool)).warnings)
    assert "6 subjects hardly separate the kinds of items" in warnings
    assert "it is not known how many slip through" in warnings
    assert "too few to rank subjects by" in warnings
    with pytest.raises(ResponsesError, match="originals besides the items that are marked"):
        refine(responses, np.ones(24, dtype=bool))


def test_sparse_responses_and_a_format_that_nobody_was_asked_in(quick):
    responses, kind = planted()
    scores = responses.scores.copy()
    scores[np.random.default_rng(0).random(scores.shape) < 0.6] = np.nan
    scores[:, 5, 1] = np.nan
    scores[0, :, 0] = np.nan  # ranked nowhere
    scores[0, :, 1] = 0.0
    result = refine(FormatResponses(responses.subjects, responses.items, Modalities(), scores), kind == 2)
    scores[:, 5, 1] = np.nan
    assert result.ranking.subjects == 23
    assert all(np.isfinite(one.gain) and one.error > 0 for one in result.findings)


@pytest.mark.slow
def test_the_error_of_a_gain_is_that_of_its_items_parts():
    """Against draws of the free numbers from their covariance."""
    rng = np.random.default_rng(0)
    for form in ("m2", "m3"):
        free = rng.normal(-1.0, 0.7, (6, 8))
        theta = 4.0 / (1.0 + np.exp(-rng.normal(-1.0, 0.5, (30, 4))))
        covariance = np.tile(np.diag(np.full(8, 0.002**2)), (6, 1, 1))

        def gains(x, form=form, theta=theta):
            parts = 4.0 / (1.0 + np.exp(-x))
            return MultimodalItems(Modalities(), form, 4.0, parts[:, :4], parts[:, 4:]).cross_gain(theta)

        parts = 4.0 / (1.0 + np.exp(-free))
        items = MultimodalItems(Modalities(), form, 4.0, parts[:, :4], parts[:, 4:])
        drawn = np.array([gains(free + rng.normal(0, 0.002, free.shape)) for _ in range(3000)]).std(axis=0)
        np.testing.assert_allclose(gain_error(items, theta, covariance), drawn, rtol=0.06)
