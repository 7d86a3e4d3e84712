"""Families, folds, and conformal tables whose intervals cover as often as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.calibration.families import FEWEST_COMMON, copies, effective_weights, grouped
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import conformal_tables, folds, replay, replay_each
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import Information, MaximumInformation, Random
from pytest_adaptive_eval.inference.conformal import conformal_scale
from pytest_adaptive_eval.irt.prediction import Design, Predictor
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses


def named(scores, families=()):
    scores = np.asarray(scores)
    return Responses(
        tuple(f"m{s}" for s in range(len(scores))), tuple(f"q{i}" for i in range(scores.shape[1])), scores, families
    )


def changed(row, share, seed):
    """The row with a share of its answers turned."""
    return np.where(np.random.default_rng(seed).random(len(row)) < share, 1.0 - row, row)


# Near-duplicates


def test_near_duplicates_are_one_family_and_strangers_are_not(planted):
    scores = planted(40, 200, 1).scores
    scores = np.vstack([scores, scores[3], changed(scores[3], 0.05, 1), changed(scores[7], 0.05, 2)])
    families = grouped(named(scores)).families
    assert families[40] == families[41] == families[3] == "m3"
    assert families[42] == families[7] == "m7"
    assert len(set(families)) == 40


def test_a_family_that_was_given_is_joined_whole(planted):
    scores = planted(6, 200, 2).scores
    scores = np.vstack([scores, changed(scores[0], 0.02, 1)])
    families = ["a", "a", "b", "b", "c", "c", "b"]
    found = grouped(named(scores, families)).families
    assert found == ("a", "a", "a", "a", "c", "c", "a")


def test_constant_subjects_are_no_duplicates(planted):
    scores = np.vstack([planted(5, 60, 3).scores, np.ones((3, 60)), np.zeros((2, 60))])
    assert len(set(grouped(named(scores)).families)) == 10


def test_duplicates_are_found_on_the_items_they_share(planted):
    scores = planted(20, 400, 4).scores
    twin = scores[5].copy()
    twin[FEWEST_COMMON + 40 :] = np.nan
    short = scores[6].copy()
    short[FEWEST_COMMON - 1 :] = np.nan
    families = grouped(named(np.vstack([scores, twin, short]))).families
    assert families[20] == "m5"
    assert families[21] == "m21"  # too few in common to tell
    assert len(set(families)) == 21


@pytest.mark.parametrize(("wrong", "easy", "n"), [(0.1, 3.0, 100), (0.1, 3.0, 500), (0.2, 3.0, 100)])
def test_strangers_that_agree_by_difficulty_are_no_duplicates(wrong, easy, n):
    """Where some keys are wrong and the rest is easy nearly all answers are alike; copies are found all the same."""
    rng = np.random.default_rng(1)
    d = np.where(np.arange(n) < wrong * n, -5.0, rng.normal(easy, 1.0, n))
    scores = (rng.random((60, n)) < 1 / (1 + np.exp(-(rng.normal(size=(60, 1)) + d)))).astype(float)
    weakest = int(scores.mean(axis=1).argmin())
    found = copies(named(np.vstack([scores, changed(scores[weakest], 0.01, 3)])))
    assert found[60] == f"m{weakest}"
    assert len(set(found)) == 60


def test_duplicates_are_found_by_fractions():
    rng = np.random.default_rng(6)
    scores = rng.random((12, 200)).round(2)
    near = np.clip(scores[4] + rng.normal(0.0, 0.05, 200), 0.0, 1.0)
    half = np.full(200, 0.5)
    families = grouped(named(np.vstack([scores, scores[2], near, half, half]))).families
    assert families[12:14] == ("m2", "m4")
    assert len(set(families)) == 14, "constant subjects are no duplicates"


def test_nothing_else_changes(planted):
    given = planted(5, 40, 5).responses
    found = grouped(given)
    assert (found.subjects, found.items, found.source) == (given.subjects, given.items, given.source)
    np.testing.assert_array_equal(found.scores, given.scores)


def test_untrained_checkpoints_do_not_merge_training_runs(planted):
    rng = np.random.default_rng(3)
    classes = rng.integers(10, size=300)
    trained = planted(24, 300, 6).scores
    untrained = np.array([classes == k for k in (1, 1, 2, 2)], dtype=float)  # of runs 0 and 1, and 2 and 3
    families = [*(f"run{s % 4}" for s in range(24)), "run0", "run1", "run2", "run3"]
    found = grouped(named(np.vstack([trained, untrained]), families))
    assert found.families == tuple(families)
    singles = [f"s{s}" for s in range(28)]
    assert len(set(grouped(named(np.vstack([trained, untrained]), singles)).families)) == 26
    near = np.vstack([trained, untrained, changed(trained[0], 0.01, 4)])
    merged = grouped(named(near, [*families, "run1"])).families
    assert merged[0] == merged[1], "a trained checkpoint under the name of another run is a copy"


def test_a_family_weighs_as_its_effective_number_of_subjects(planted):
    made = planted(60, 200, 7).scores
    copies_of_one = np.array([changed(made[0], 0.03, s) for s in range(1, 30)])
    found = grouped(named(np.vstack([made, copies_of_one])))
    assert found.weights is not None
    assert 1.0 <= found.weights[found.weights < 1].sum() < 2.0
    assert (found.weights[1:60] == 1.0).all()
    assert grouped(named(made)).weights is None
    strangers = effective_weights(named(made, ["one"] * 20 + [f"m{s}" for s in range(40)]))
    assert strangers[:20].sum() > 10.0, "members that agree in nothing but their ability count nearly fully"


def test_a_family_of_copies_leaves_the_items_as_one_subject_would(planted):
    made = planted(150, 100, 8).scores
    flood = np.array([changed(made[0], 0.05, s) for s in range(1, 150)])
    families = ["m0", *(f"m{s}" for s in range(1, 150)), *["m0"] * 149]
    together = grouped(named(np.vstack([made, flood]), families))
    alone, weighted, plain = (
        Recipe("2pl")(made),
        Recipe("2pl")(together.scores, weights=together.weights),
        Recipe("2pl")(together.scores),
    )
    np.testing.assert_allclose(weighted.discrimination, alone.discrimination, atol=0.1)
    np.testing.assert_allclose(weighted.intercept, alone.intercept, atol=0.15)
    assert np.abs(plain.discrimination - alone.discrimination).max() > 1.0


# Folds


@pytest.mark.parametrize("seed", range(5))
def test_folds_keep_families_whole_and_even(seed):
    rng = np.random.default_rng(seed)
    families = [f"f{i}" for i in rng.integers(0, 15, 60)]
    found = folds(families, 5, np.random.default_rng(seed))
    for family in set(families):
        assert len({fold for fold, name in zip(found.tolist(), families, strict=True) if name == family}) == 1
    sizes = np.bincount(found, minlength=5)
    assert sizes.max() - sizes.min() <= 2
    np.testing.assert_array_equal(found, folds(families, 5, np.random.default_rng(seed)))


def test_folds_of_single_subjects_differ_by_one_at_most():
    sizes = np.bincount(folds([str(i) for i in range(53)], 5, np.random.default_rng(1)))
    assert sorted(sizes.tolist()) == [10, 10, 11, 11, 11]


def test_a_large_family_has_a_fold_to_itself():
    found = folds(["big"] * 10 + list("abcdefghij"), 2, np.random.default_rng(1))
    assert set(found[:10].tolist()) != set(found[10:].tolist())
    assert np.bincount(found).tolist() == [10, 10]


# Replays


def test_a_replay_asks_each_subject_as_if_it_were_alone(planted):
    made = planted(6, 40, 6)
    bank = Recipe("2pl")(made.scores).bank("b", made.responses.items)
    policy = Policy(Information(), 0.25, budget=8)
    together = replay(bank, policy, made.scores, seed=[9, 8, 7, 6, 5, 4])
    alone = replay(bank, policy, made.scores[2:3], seed=[7])
    np.testing.assert_array_equal(together.answers[0][2], alone.answers[0][0])
    np.testing.assert_array_equal(together.answers[1][2], made.scores[2, together.answers[0][2]])
    assert together.stopped_at.tolist() == [8] * 6


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    "policy",
    [
        POLICIES["estimate"],
        Policy(batch=8),
        Policy(Random(), 0.0, batch=5),
        Policy(MaximumInformation(), 0.0, batch=4),
        Policy(MaximumInformation(), 0.0),
        Policy(Information(), 0.2, batch=3, standard_error=0.45),
    ],
)
def test_replays_that_share_draws_are_those_of_each_budget_alone(planted, policy):
    made = planted(5, 90, 6)
    scores = made.scores.copy()
    scores[1, ::7] = np.nan
    bank = Recipe("2pl")(scores).bank("b", made.responses.items)
    policies = [replace(policy, budget=budget) for budget in (30, 8, "100%", 9, 31, 8)]
    together = replay_each(bank, policies, scores, seed=[3, 4, 5, 6, 7])
    for one, shared in zip(policies, together, strict=True):
        alone = replay(bank, one, scores, seed=[3, 4, 5, 6, 7])
        assert shared.stop == alone.stop
        np.testing.assert_array_equal(shared.stopped_at, alone.stopped_at)
        same_interviews(shared, alone)
    quick = replay_each(bank, policies, scores, seed=[3, 4, 5, 6, 7], designed=False)
    for with_design, without in zip(together, quick, strict=True):
        nearly_same_interviews(without, with_design)


def test_replays_without_parameters_have_the_draws_of_sessions(planted):
    scores = planted(5, 90, 6).scores
    bank = ItemBank("b", [f"i{i}" for i in range(90)], (), np.zeros(90), np.zeros(90), calibrated=False)
    policies = [Policy(Random(), 0.0, budget=budget) for budget in (30, 8, "100%")]
    together = replay_each(bank, policies, scores, seed=3)
    for with_design, without in zip(together, replay_each(bank, policies, scores, seed=3, designed=False), strict=True):
        assert (without.stop, without.budget) == (with_design.stop, with_design.budget)
        np.testing.assert_array_equal(without.answers[0], with_design.answers[0])


def nearly_same_interviews(quick, plain):
    """Assert that a replay without designs asked the same and estimates nearly the same."""
    assert (quick.stop, quick.budget) == (plain.stop, plain.budget)
    np.testing.assert_array_equal(quick.stopped_at, plain.stopped_at)
    np.testing.assert_array_equal(quick.answers[0], plain.answers[0])
    np.testing.assert_allclose(quick.estimate.theta, plain.estimate.theta, atol=1e-7)
    np.testing.assert_allclose(quick.projection(), plain.projection(), atol=1e-7, rtol=1e-4)


def same_interviews(shared, alone):
    """Assert that two sessions asked, estimated and project the same."""
    for mine, theirs in zip(
        (*shared.answers, shared.trace[:, : shared.asked], *shared.projection(), shared.logs().propensities),
        (*alone.answers, alone.trace[:, : alone.asked], *alone.projection(), alone.logs().propensities),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["estimate", "form"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("strange", [False, True])
def test_assisted_replays_are_those_of_each_budget_alone(planted, name, batch, strange):
    made = planted(6, 90, 6)
    scores = made.scores.copy()
    scores[1, ::7] = np.nan
    if strange:
        scores[2:] = made.b > np.median(made.b)
    kinds = [
        (8, "variance", 0.0),
        (20, "variance", 0.5),
        (30, "form", 0.0),
        (45, "variance", 0.0),
        (60, "variance", 1.0),
    ]
    designs = [Design(name, count, kind, uniform, 0.2, 0.05, 1.0, 1.0, 0.3) for count, kind, uniform in kinds]
    rng = np.random.default_rng(1)
    predictor = Predictor(rng.normal(size=(5, 90)) * 0.05, rng.normal(size=90), rng.permutation(90), tuple(designs))
    bank = replace(Recipe("2pl")(scores).bank("b", made.responses.items), predictor=predictor)
    policies = [
        replace(POLICIES[name], budget=budget, batch=batch) for budget in (45, 8, 21, 44, 9, 30, 60, 8, "100%", 1)
    ]
    seeds = [3, 4, 5, 6, 7, 8]
    quick = replay_each(bank, policies, scores, seed=seeds, designed=False)
    for one, shared, without in zip(policies, replay_each(bank, policies, scores, seed=seeds), quick, strict=True):
        alone = replay(bank, one, scores, seed=seeds)
        nearly_same_interviews(without, alone)
        assert (shared.stop, shared.budget, shared.policy.budget_on(bank)) == (alone.stop, alone.budget, alone.budget)
        same_interviews(shared, alone)


# Conformal tables


def fixed(bank):
    """A recipe that gives one bank whatever the responses."""
    return lambda scores: bank


def wrong_bank(made, seed, misfit):
    """The planted items, with errors in their difficulties."""
    b = made.b + misfit * np.random.default_rng(seed).normal(size=len(made.b))
    return ItemBank("b", made.responses.items, (), np.full(len(b), 1.5), -1.5 * b)


@pytest.mark.slow
@pytest.mark.parametrize("misfit", [0.0, 1.5])
@pytest.mark.parametrize(
    "policy", [Policy(MaximumInformation(), 0.0, budget=10), Policy(Information(), 0.25, budget=10)]
)
def test_intervals_cover_new_subjects_whatever_the_bank(planted, policy, misfit):
    """For N exchangeable errors the chance to cover is at least .9, over tables and new subjects together."""
    covered = []
    for seed in range(30):
        made = planted(139, 60, 100 + seed)
        bank = wrong_bank(made, seed, misfit)
        [table] = conformal_tables(named(made.scores[:39]), fixed(bank), [policy], bank=bank, seed=seed)
        plain = replace(table, below=0.0, above=0.0)  # without what extrapolation adds
        session = replay(bank, policy, made.scores[39:], seed=[10_000 + s for s in range(100)])
        accuracy, error = session.projection()
        scale = conformal_scale(accuracy, error, session.stopped_at, 60)
        truth = made.scores[39:].mean(axis=1)
        inside = [
            (i := plain.interval(a, s, 0.95)).low - 1e-12 <= t <= i.high + 1e-12
            for a, s, t in zip(accuracy, scale, truth, strict=True)
        ]
        covered.append(np.mean(inside))
    spread = np.std(covered, ddof=1) / len(covered) ** 0.5
    assert np.mean(covered) > 0.9 - 2 * spread
    assert np.mean(covered) < 0.98  # and not by being wide


@pytest.mark.slow
def test_calibration_in_folds_covers_too(planted):
    covered = []
    policy = Policy(MaximumInformation(), 0.0, budget=8)
    for seed in range(4):
        made = planted(140, 40, 50 + seed)
        known = named(made.scores[:40])
        bank = Recipe("2pl")(known.scores).bank("b", known.items)

        def recipe(part):
            return Recipe("2pl")(part.scores).bank("b", part.items)

        [table] = conformal_tables(known, recipe, [policy], bank=bank, seed=seed)
        session = replay(bank, policy, made.scores[40:], seed=seed)
        accuracy, error = session.projection()
        scale = conformal_scale(accuracy, error, session.stopped_at, 40)
        for a, s, t in zip(accuracy, scale, made.scores[40:].mean(axis=1), strict=True):
            interval = table.interval(a, s, 0.95)
            covered.append(interval.low <= t <= interval.high)
    assert np.mean(covered) > 0.88


def test_the_key_is_the_policys_and_so_is_the_number_of_subjects(planted):
    made = planted(30, 40, 8)
    bank = wrong_bank(made, 1, 0.3)
    policies = [replace(POLICIES["estimate"], budget="10%"), replace(POLICIES["decide"], budget=8)]
    tables = conformal_tables(made.responses, fixed(bank), policies, bank=bank)
    assert [table.policy for table in tables] == [policy.key(bank) for policy in policies]
    for table in tables:
        assert len(table.errors) == 30
        assert list(table.errors) == sorted(table.errors)
        assert len(table.projected) == 30
        assert table.below <= 0 <= table.above
    again = conformal_tables(made.responses, fixed(bank), policies, bank=bank)
    assert tables == again


def test_errors_are_kept_with_the_projections_they_are_of(planted):
    made = planted(30, 40, 8)
    bank = wrong_bank(made, 1, 0.3)
    [table] = conformal_tables(made.responses, fixed(bank), [Policy(Random(), 1.0, budget=40)], bank=bank)
    assert set(np.round(table.projected, 9)) == set(np.round(made.scores.mean(axis=1), 9))  # asked everything
    [table] = conformal_tables(made.responses, fixed(bank), [Policy(Random(), 1.0, budget=8)], bank=bank)
    truth = made.scores.mean(axis=1)
    session = replay(bank, Policy(Random(), 1.0, budget=8), made.scores, seed=list(range(30)))
    accuracy, error = session.projection()
    scaled = (truth - accuracy) / conformal_scale(accuracy, error, session.stopped_at, 40)
    order = scaled.argsort()
    np.testing.assert_allclose(table.errors, scaled[order], atol=1e-9)
    np.testing.assert_allclose(table.projected, accuracy[order], atol=1e-9)


def test_nobody_is_asked_with_items_calibrated_on_its_family(planted):
    made = planted(24, 30, 9)
    families = [f"f{s % 6}" for s in range(24)]
    learned = []

    def recipe(part):
        learned.append({s for s in range(24) for row in part.scores if (row == made.scores[s]).all()})
        return wrong_bank(made, 1, 0.0)

    told: list[str] = []
    conformal_tables(
        named(made.scores, families),
        recipe,
        [Policy(Random(), 1.0, budget=3)],
        bank=wrong_bank(made, 1, 0.0),
        progress=told.append,
    )
    assert len(told) == 6
    for some in learned[:5]:
        assert all(
            (s in some) == (other in some) for s in some for other in range(24) if families[s] == families[other]
        )
    truth = made.scores.mean(axis=1)
    below, above = learned[5], learned[6]  # calibrated on the weakest, and on the strongest; all families are of both
    assert max(truth[s] for s in below) < min(truth[s] for s in range(24) if s not in below)
    assert min(truth[s] for s in above) > max(truth[s] for s in range(24) if s not in above)
    assert 14 <= len(below) < 24  # sixty per cent, and whoever is as strong as the last
    assert 14 <= len(above) < 24


def test_siblings_tell_nothing_of_those_beyond(planted):
    """Families of subjects of about one strength: the two that lie on both sides are not calibrated on."""
    made = planted(30, 30, 9)
    truth = made.scores.mean(axis=1)
    families = np.empty(30, dtype=object)
    families[truth.argsort(kind="stable")] = [f"f{s // 3}" for s in range(30)]
    learned = []

    def recipe(part):
        learned.append({s for s in range(30) for row in part.scores if (row == made.scores[s]).all()})
        return wrong_bank(made, 1, 0.0)

    responses = named(made.scores, families.tolist())
    conformal_tables(responses, recipe, [Policy(Random(), 1.0, budget=3)], bank=wrong_bank(made, 1, 0.0))
    weak, strong = np.quantile(truth, [0.4, 0.6])
    for some, asked in zip(learned[5:], (truth > strong, truth < weak), strict=True):
        assert some
        assert not {families[s] for s in some} & set(families[asked].tolist())


def test_subjects_that_are_all_alike_leave_nothing_to_extrapolate():
    scores = np.tile([1.0, 0.0, 1.0, 0.0, 1.0, 1.0], (12, 1))
    bank = ItemBank("b", [f"q{i}" for i in range(6)], (), np.ones(6), np.linspace(-1, 1, 6))
    [table] = conformal_tables(named(scores), fixed(bank), [Policy(Random(), 1.0, budget=3)], bank=bank)
    assert (table.below, table.above) == (0.0, 0.0)


def test_missing_scores_are_skipped_as_in_an_interview(planted):
    scores = planted(30, 40, 10).scores.copy()
    scores[np.random.default_rng(1).random(scores.shape) < 0.3] = np.nan
    bank = wrong_bank(planted(30, 40, 10), 1, 0.0)
    [table] = conformal_tables(named(scores), fixed(bank), [replace(POLICIES["estimate"], budget=10)], bank=bank)
    assert np.isfinite(table.errors).all()


@pytest.mark.parametrize(("runs", "sizes"), [(60, ()), (55, ()), (53, (1, 8)), (8, (1, 53))])
def test_tables_count_families_where_many_are_siblings(planted, runs, sizes):
    made = planted(60, 30, 4)
    families = [f"f{min(s, runs - 1)}" for s in range(60)]
    (table,) = conformal_tables(
        named(made.scores, families),
        lambda _: wrong_bank(made, 1, 0.0),
        [Policy(Random(), 1.0, budget=5)],
        bank=wrong_bank(made, 1, 0.0),
    )
    assert tuple(sorted(set(table.sizes))) == sizes
    assert table.families == (runs if sizes else 60)
