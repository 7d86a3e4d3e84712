"""The table of error rates: its intervals, its judgement, and that it detects a gate that errs too often."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks import error_rates
from pytest_adaptive_eval.claims.paired import PairedClaim
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.betting import Claim

PAIRED = "not_worse_than, whole baseline, good, decision"


@pytest.mark.parametrize(("errors", "trials"), [(0, 40), (3, 40), (40, 40), (300, 5000)])
def test_exact_interval_ends_where_the_tail_is_half_of_alpha(errors, trials):
    low, high = error_rates.exact_interval(errors, trials, 0.01)
    assert low <= errors / trials <= high
    if errors:
        assert binom.sf(errors - 1, trials, low) == pytest.approx(0.005)
    if errors < trials:
        assert binom.cdf(errors, trials, high) == pytest.approx(0.005)
    assert (low == 0.0, high == 1.0) == (errors == 0, errors == trials)


@pytest.mark.parametrize(
    ("errors", "judgement"),
    [(0, "conservative"), (80, "conservative"), (250, "held"), (300, "held"), (330, "exceeded")],
)
def test_judgement_compares_the_interval_with_the_promise(errors, judgement):
    interval = error_rates.exact_interval(errors, error_rates.SEEDS, error_rates.FAMILY_ALPHA / 54)
    assert error_rates.Rate("a gate", "PASS", errors, error_rates.SEEDS, *interval).judgement == judgement


def test_no_trial_tells_nothing():
    assert error_rates.exact_interval(0, 0, 0.05) == (0.0, 1.0)


def test_candidates_lose_exactly_the_margin():
    base, candidates = error_rates.at_the_margin(20, np.random.default_rng(1))
    assert set((candidates.sum(axis=1) - base.sum()).tolist()) == {error_rates.GAINED - error_rates.LOST}
    assert set(abs(candidates - base).sum(axis=1).tolist()) == {error_rates.GAINED + error_rates.LOST}
    assert len({row.tobytes() for row in candidates}) == 20


@pytest.mark.slow
def test_every_cell_gives_trials_of_both_sides():
    """All kinds of gates, a few interviews each; other banks and accuracies take the same way."""
    for cell in error_rates.cells():
        if "perturbed" in cell.name or "0.95" in cell.name or "shuffled" in cell.name:
            continue
        found = error_rates.measure(cell.name, 4, 3)
        assert [side for side, _, _ in found] == [Outcome.PASS, Outcome.FAIL], cell.name
        assert all(errors <= trials <= 4 for _, errors, trials in found), cell.name
        assert all(trials == 4 for _, _, trials in found) or cell.name.startswith(("rank", "above")), cell.name


@pytest.mark.slow
def test_a_sound_gate_passes_and_is_repeatable(tmp_path, capsys):
    command = ["--seeds", "40", "--cells", PAIRED, "--json", str(tmp_path / "rates.json")]
    assert error_rates.main(command) == 0
    told = capsys.readouterr().out
    assert "40 seeds per cell, seed 0; promised 0.050" in told
    kept = json.loads((tmp_path / "rates.json").read_text("utf-8"))
    assert (kept["seeds"], kept["seed"], kept["promised"]) == (40, 0, 0.05)
    assert [(rate["cell"], rate["side"], rate["trials"]) for rate in kept["rates"]] == [
        (PAIRED, "PASS", 40),
        (PAIRED, "FAIL", 40),
    ]
    assert error_rates.main(command) == 0
    assert capsys.readouterr().out == told


def test_a_gate_with_a_margin_that_is_too_wide_is_detected(monkeypatch, capsys):
    sound = PairedClaim.of
    monkeypatch.setattr(PairedClaim, "of", lambda baseline, margin, confidence: sound(baseline, 3 * margin, confidence))
    assert error_rates.main(["--seeds", "40", "--cells", PAIRED]) == 1
    assert f"exceeded: 1 of 2 cells exceed the promised 0.050: {PAIRED} (PASS)" in capsys.readouterr().out


@pytest.mark.slow
def test_bets_with_a_wrong_error_rate_are_detected(monkeypatch, capsys):
    monkeypatch.setattr(Claim, "log_alpha", property(lambda self: 0.25 * self.confidence - 1.0))  # .47 instead of .05
    assert error_rates.main(["--seeds", "40", "--cells", "accuracy at_least 0.60, good, decision"]) == 1
    assert "exceeded: 2 of 2 cells" in capsys.readouterr().out


def test_an_unknown_cell_is_refused(capsys):
    with pytest.raises(SystemExit):
        error_rates.main(["--cells", "no such gate"])
    assert "expected a part of a cell's name such as 'accuracy at_least 0.60" in capsys.readouterr().err
