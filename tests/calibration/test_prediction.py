"""Forms and designs: what held-out families choose, and banks that keep it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.calibration import prediction
from pytest_adaptive_eval.calibration.build import calibrate
from pytest_adaptive_eval.calibration.prediction import Designs, choose_designs, fit_predictors, form_orders
from pytest_adaptive_eval.calibration.recipe import PartFits, Recipe
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.extensions.backtests.backtest import backtest, splits
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS
from pytest_adaptive_eval.irt.prediction import Design
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import number

RASCH = Recipe("1pl")


def test_each_item_of_the_form_lowers_the_variance_of_the_mean_most():
    rng = np.random.default_rng(1)
    rows, noise = rng.normal(size=(6, 40)), rng.uniform(0.05, 0.3, 40)
    [order] = form_orders(rows, noise, np.ones((1, 6)))
    np.testing.assert_array_equal(np.sort(order), np.arange(40))
    covariance = rows.T @ rows + np.diag(noise)

    def variance(items):
        known = np.array(items)
        slope = np.linalg.solve(covariance[np.ix_(known, known)], covariance[known]).T
        return float((covariance - slope @ covariance[known]).mean())

    for k in range(6):
        before = order[:k].tolist()
        best = min((j for j in range(40) if j not in before), key=lambda j: variance([*before, j]))
        assert variance([*before, best]) == pytest.approx(variance(order[: k + 1].tolist()), abs=1e-12)


def test_copies_weigh_as_one_subject(planted):
    scores = planted(20, 30, 4).scores
    copied = np.vstack([scores, np.repeat(scores[:1], 9, axis=0)])
    fit = RASCH(scores)
    once, often = (
        fit_predictors(
            fit,
            Responses(
                tuple(f"m{s}" for s in range(len(x))),
                tuple(f"q{i}" for i in range(30)),
                x,
                tuple(f"m{s}" if s < 20 else "m0" for s in range(len(x))),
            ),
            [0.05],
        )[0]
        for x in (scores, copied)
    )
    np.testing.assert_allclose(once.level, often.level, atol=1e-6)
    np.testing.assert_array_equal(once.order, often.order)
    np.testing.assert_allclose(once.residuals.T @ once.residuals, often.residuals.T @ often.residuals, atol=1e-6)


def test_designs_are_the_same_for_the_same_seed_and_of_every_count(planted):
    made = planted(30, 60, 5).responses
    chosen = choose_designs(made, PartFits(RASCH), [6, 12])
    assert chosen == choose_designs(made, PartFits(RASCH), [12, 6])
    assert [(d.policy, d.count) for d in chosen.designs] == [
        ("form", 6),
        ("form", 12),
        ("estimate", 6),
        ("estimate", 12),
    ]
    assert all(d.selector == "form" and d.uniform == 0 for d in chosen.designs[:2])


def test_a_bank_of_a_fold_has_the_designs_that_its_own_families_chose(planted, monkeypatch):
    made = planted(20, 40, 5).responses
    chosen = []

    def best(accuracies, truth, families, counts):
        assert {len(estimates) for estimates in accuracies.values()} == {len(truth)} == {len(families)}
        chosen.append((tuple(truth), tuple(families)))
        return Designs((Design("estimate", len(chosen), error=float(truth.mean())),), 0.05)

    monkeypatch.setattr(prediction, "_best", best)
    designs = choose_designs(made, PartFits(RASCH), [6])
    assert len(designs.apart) == 5
    truths = made.scores.mean(axis=1)
    for subjects, own in designs.apart.items():
        rows = [made.subjects.index(name) for name in subjects]
        assert own.designs[0].error == truths[rows].mean()
        part = made.of(rows)
        assert designs.bank(RASCH(part.scores), part).predictor.designs == own.designs
    assert designs.bank(RASCH(made.scores), made).predictor.designs == designs.designs
    assert chosen[-1] == (tuple(truths), made.families)


def test_where_items_tell_nothing_of_each_other_uniform_draws_correct_the_estimate():
    rng = np.random.default_rng(6)
    # families differ in level, and answers to all items are alike, but for a new family's on half of the items
    base = rng.random((40, 1)) < 0.5
    scores = np.where(np.arange(60) < 30, base, rng.random((40, 60)) < rng.random((40, 1))).astype(float)
    responses = Responses(tuple(f"m{s}" for s in range(40)), tuple(f"q{i}" for i in range(60)), scores)
    [design] = [d for d in choose_designs(responses, PartFits(RASCH), [20]).designs if d.policy == "estimate"]
    uniform = np.sqrt((1 - 20 / 60) * 0.25 / 20) * 0.8
    assert design.error < 1.2 * uniform


@pytest.mark.slow
def test_a_calibrated_bank_has_a_predictor_that_reads_back(planted, tmp_path):
    made = planted(40, 60, 7).responses
    built = calibrate(made, RASCH, policies=[replace(POLICIES["estimate"], budget="10%")], predicts=True)
    bank = built.write(write_bank, tmp_path / "b.bank")
    predictor = bank.predictor
    assert predictor is not None
    assert predictor.hash == built.predictor.hash == read_bank(tmp_path / "b.bank").predictor.hash
    assert {d.policy for d in predictor.designs} == {"estimate", "form"}
    [key] = bank.conformal  # of interviews that the predictor assists
    assert key == replace(POLICIES["estimate"], budget="10%").key(bank)
    assert key != replace(POLICIES["estimate"], budget="10%").key(replace(bank, predictor=None))


def test_a_bank_without_a_predictor_has_the_files_and_fields_of_before(planted, tmp_path):
    built = calibrate(planted(40, 60, 7).responses, RASCH)
    assert built.predictor is None
    bank = built.write(write_bank, tmp_path / "b.bank")
    assert bank.predictor is None
    assert not (tmp_path / "b.bank" / "predictor.npz").exists()
    assert "predictor" not in (tmp_path / "b.bank" / "bank.json").read_text()


def test_too_few_families_give_no_predictor_and_a_note(planted):
    made = planted(40, 60, 7, families=tuple(f"f{s % 4}" for s in range(40))).responses
    notes: list[str] = []
    assert calibrate(made, RASCH, predicts=True, force=True, note=notes.append).predictor is None
    assert any("no form" in note and "5 are needed" in note for note in notes)


@pytest.mark.slow
def test_contenders_estimate_and_form_beat_uniform_draws(planted):
    made = planted(60, 80, 7)
    contenders = [CONTENDERS[name] for name in ("form", "estimate", "random")]
    errors: dict[str, list[float]] = {}
    for seed, split in enumerate(splits(made.responses, 4, test=15, seed=1)):
        found = backtest(made.responses, split, contenders, ["15%"], recipe=RASCH, seed=seed)
        for (name, _), cell in found.cells.items():
            errors.setdefault(name, []).append(cell.error[0])
    assert np.mean(errors["form"]) < 0.95 * np.mean(errors["random"])
    assert np.mean(errors["estimate"]) < 0.95 * np.mean(errors["random"])


@pytest.mark.slow
def test_plan_tells_the_error_of_policies_that_feed_no_gate(planted, tmp_path, capsys):
    from pytest_adaptive_eval.cli.command import main

    built = calibrate(planted(40, 60, 7).responses, RASCH, predicts=True)
    bank = built.write(write_bank, tmp_path / "b.bank")
    assert main(["plan", str(tmp_path / "b.bank"), "--budget", "6", "--margin", "0.2"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    errors = [number(bank.predictor.design(policy, 6).error) for policy in ("estimate", "form")]
    assert f"wrong by {errors[0]} by estimate and {errors[1]} by form on average, at 6 questions" in told
