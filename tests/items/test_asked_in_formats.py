"""Items asked in formats: pairs as a bank of their own, parameters by parts of ability, gates on a part."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selection import View
from pytest_adaptive_eval.cat.selectors import SELECTORS, FormatInformation
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.weighted_ability import weighted_ability
from pytest_adaptive_eval.errors import BankError, BaselineError, ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.irt.model import probability
from pytest_adaptive_eval.irt.multimodal import FormatScale, Modalities, MultimodalItems, Population
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.modalities import asked_in_formats, pair_id

FORMATS = ("image+text", "image", "text", "none")


def items(n=30, formats=FORMATS):
    return [Item(f"q{i}", f"question {i}", "yes", images=(f"{i}.png",), formats=formats) for i in range(n)]


def scale(n=30, form="m2", modalities=None, seed=0):
    rng = np.random.default_rng(seed)
    modalities = modalities or Modalities()
    shape = (n, len(modalities.parts))
    difficulty = rng.uniform(0.1, 0.6, shape)
    difficulty[:, 0] = rng.uniform(2.0, 4.0, n)
    made = MultimodalItems(modalities, form, 4.0, rng.uniform(0.4, 1.0, shape), difficulty)
    correlated = 0.5 * np.eye(shape[1]) + 0.2
    return FormatScale(
        made, Population(np.linspace(-1.5, -0.5, shape[1]), correlated, 4.0), rng.normal(size=(8, shape[1]))
    )


def bank(n=30, form="m2", **more):
    rng = np.random.default_rng(1)
    own = items(n)
    known = {"in_formats": scale(n, form), "content_hash": "abc", "subjects": tuple("abcdefgh"), **more}
    return ItemBank("vision", [i.id for i in own], own, rng.uniform(0.5, 2, n), rng.normal(size=n), **known)


def plain(formats=FORMATS):
    own = items(formats=formats)
    return ItemBank.uncalibrated("vision", own, content_hash="abc")


class TestPairs:
    def test_every_item_stands_in_every_format(self):
        pairs = asked_in_formats(plain())
        assert len(pairs) == 120
        assert list(pairs.ids[:5]) == ["q0", "q0@image", "q0@text", "q0@none", "q1"]
        assert list(pairs.categories[:4]) == list(FORMATS) == pairs.report["formats"]
        assert not pairs.calibrated
        assert pairs.parts == ()
        assert [pairs.items[n].id for n in range(4)] == list(pairs.ids[:4])
        assert pairs.items[2:4] == [pairs.items[2], pairs.items[3]]

    def test_a_pair_shows_what_its_format_holds(self):
        pairs = asked_in_formats(plain())
        full, image, text, none = pairs.items[:4]
        assert (full.prompt, full.images) == ("question 0", ("0.png",))
        assert (image.prompt, image.images) == ("", ("0.png",))
        assert (text.prompt, text.images) == ("question 0", ())
        assert (none.prompt, none.images) == ("", ())
        assert {item.formats for item in (image, text)} == {("image",), ("text",)}
        assert len({item.content_hash for item in (full, image, text, none)}) == 4

    def test_formats_can_be_fewer(self):
        pairs = asked_in_formats(plain(), ["text", "image+text"])
        assert list(pairs.ids[:2]) == ["q0", "q0@text"]
        assert pairs.content_hash != asked_in_formats(plain()).content_hash

    def test_the_default_format_keeps_the_items_id(self):
        item = Item("q", "?", "yes", formats=("text", "none"))
        assert (pair_id(item, "text"), pair_id(item, "none")) == ("q", "q@none")

    @pytest.mark.parametrize(
        ("given", "formats", "message"),
        [
            (FORMATS, "both", 'expected "all" or a list'),
            (FORMATS, ["text"], 'expected "all" or a list'),
            (FORMATS, ["text", "text"], 'expected "all" or a list'),
            (FORMATS, ["text", "audio"], "no item of the bank 'vision' has the format 'audio'; they have image"),
            (("text",), "all", "item 'q0' of the bank 'vision' has 1 of the formats text: asking in formats needs two"),
        ],
    )
    def test_what_cannot_be_asked_is_said(self, given, formats, message):
        with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
            asked_in_formats(plain(given), formats)

    def test_formats_without_parameters_are_refused(self):
        calibrated = bank(in_formats=scale(modalities=Modalities(("image", "text"), FORMATS[:3])))
        with pytest.raises(
            BankError, match=r"calibrated in the formats image.text, image, text, and its items are to be"
        ):
            asked_in_formats(calibrated)
        assert asked_in_formats(calibrated, FORMATS[:3]).dimensions == 4


@pytest.mark.parametrize("form", ["m2", "m3"])
def test_format_information_is_that_of_the_papers_model(form):
    pairs = asked_in_formats(bank(form=form))
    theta = np.random.default_rng(2).normal(size=(3, pairs.dimensions))
    p = probability(theta, pairs.discrimination, pairs.intercept)
    view = View(pairs, theta, np.tile(np.eye(pairs.dimensions), (3, 1, 1)), p, np.empty((3, 0), dtype=np.int64))
    made = pairs.in_formats
    abilities = made.population.theta + made.unit * theta
    expected = made.items.information(abilities).reshape(3, -1)
    np.testing.assert_allclose(FormatInformation().criterion(view), expected, rtol=1e-6)


class TestScale:
    @pytest.mark.parametrize("form", ["m2", "m3"])
    def test_a_pair_is_as_hard_as_its_item_in_the_format(self, form):
        own = bank(form=form)
        pairs, known = asked_in_formats(own), own.in_formats
        assert known is not None
        rng = np.random.default_rng(2)
        theta = rng.uniform(0.2, 3.5, (5, 4))
        standing = known.standing(theta)
        chance = 1 / (1 + np.exp(-(standing @ pairs.discrimination.T + pairs.intercept)))
        np.testing.assert_allclose(chance.reshape(5, 30, 4), known.items.probability(theta), rtol=1e-9)
        assert pairs.parts == ("base", "image", "text", "cross")

    def test_a_part_that_an_item_is_not_given_does_not_count(self):
        pairs = asked_in_formats(bank())
        none = pairs.discrimination[[n for n, name in enumerate(pairs.ids) if name.endswith("@none")]]
        assert (none[:, 1:] == 0).all()
        assert (none[:, 0] > 0).all()

    def test_the_middle_of_the_population_stands_at_zero_with_spread_one(self):
        known = scale()
        rng = np.random.default_rng(3)
        u = rng.multivariate_normal(known.population.mean, 0.01 * known.population.covariance, 20_000)
        standing = known.standing(4.0 / (1 + np.exp(-u)))
        np.testing.assert_allclose(standing.mean(axis=0), 0, atol=0.01)
        np.testing.assert_allclose(standing.std(axis=0), 0.1, atol=0.005)  # to the first order

    def test_some_items_keep_theirs(self):
        own = bank()
        some = own.subset([4, 2], "some")
        assert some.in_formats is not None
        np.testing.assert_array_equal(some.in_formats.items.difficulty, own.in_formats.items.difficulty[[4, 2]])

    def test_the_scale_is_written_and_read(self, tmp_path):
        own = [dataclasses.replace(i, images=()) for i in items()]
        known = scale()
        write_bank(tmp_path / "v.bank", own, discrimination=np.ones(30), intercept=np.zeros(30), in_formats=known)
        read = read_bank(tmp_path / "v.bank").in_formats
        assert read is not None
        for name in ("discrimination", "difficulty"):
            np.testing.assert_array_equal(getattr(read.items, name), getattr(known.items, name))
        np.testing.assert_array_equal(read.standings, known.standings)
        np.testing.assert_array_equal(read.population.covariance, known.population.covariance)
        assert (read.items.form, read.items.bound, read.items.modalities) == ("m2", 4.0, known.items.modalities)

    def test_a_malformed_scale_is_an_error_of_the_bank(self, tmp_path):
        own = [dataclasses.replace(i, images=()) for i in items()]
        folder = tmp_path / "v.bank"
        write_bank(folder, own, discrimination=np.ones(30), intercept=np.zeros(30), in_formats=scale())
        with np.load(folder / "formats.npz") as file:
            np.savez(folder / "formats.npz", **{k: v[:-1] if k == "difficulty" else v for k, v in file.items()})
        with pytest.raises(BankError, match="malformed calibration"):
            read_bank(folder)


def interviewed(standing, budget="60%", seed=0, conditions=(), odd=False, answers=None, batch=8):
    """The result of an interview with somebody of known standings; an odd one answers half of all at random."""
    pairs = asked_in_formats(bank(60, content_hash="x"))
    drawn = dataclasses.replace(POLICIES["decide"], selector=SELECTORS["leverage"], assisted=False)
    session = Session(pairs, dataclasses.replace(drawn, budget=budget, batch=batch), seed=seed)
    rng = np.random.default_rng((seed if answers is None else answers) + 100)
    chance = 1 / (1 + np.exp(-(pairs.discrimination @ standing + pairs.intercept)))
    if odd:
        chance[::2] = 0.5
    right = (rng.random(len(pairs)) < chance).astype(float)
    while (proposal := session.ask()) is not None:
        session.tell(right[proposal.items])
    return SessionResult.of("v", session, statuses={"ok": session.asked}, planned=tuple(conditions), family=1)


class TestGates:
    @pytest.mark.slow
    def test_far_above_passes_and_far_below_fails(self):
        outcomes: dict[float, list[Outcome]] = {}
        for level in (2.5, -2.5):
            results = [interviewed(np.array([0, level, 0, 0]), seed=seed, budget="80%") for seed in range(6)]
            outcomes[level] = [result.ability["image"].at_least(0).outcome for result in results]
        assert set(outcomes[2.5]) == {Outcome.PASS}
        assert set(outcomes[-2.5]) <= {Outcome.FAIL, Outcome.INCONCLUSIVE}
        assert outcomes[-2.5].count(Outcome.FAIL) >= 5

    def test_the_sentence_names_part_unit_and_model(self):
        verdict = interviewed(np.zeros(4)).ability["cross"].at_least(3.0)
        assert verdict.outcome is Outcome.FAIL
        assert "cross ability" in verdict.sentence
        assert "standard deviations of the bank's subjects, as M2-IRT has it of all answers" in verdict.sentence

    def test_too_few_answers_say_nothing(self):
        verdict = interviewed(np.zeros(4), budget=4).ability["cross"].at_least(0.0)
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "4 answers of the 40 that abilities in parts take" in verdict.sentence

    def test_ten_answers_for_each_part_are_enough(self):
        few, enough = (interviewed(np.zeros(4), budget=n).ability["cross"].at_least(0.0) for n in (39, 40))
        assert few.outcome is Outcome.INCONCLUSIVE
        assert few.interval is None
        assert "39 answers of the 40" in few.sentence
        assert enough.interval is not None
        assert "that abilities in parts take" not in enough.sentence

    def test_an_uncertain_part_is_said_first(self):
        result = interviewed(np.zeros(4))
        for error, said in ((0.95, True), (0.9, False)):
            notes = dataclasses.replace(result, standard_error=[error] * 4).ability["cross"].at_least(0.0).notes
            assert notes[0].startswith("the answers say almost nothing about this part") == said
            assert any("standard deviations of the bank's subjects" in note for note in notes)

    def test_the_ability_shown_lies_in_its_interval(self):
        result = interviewed(np.zeros(4))
        shown = result.ability["image"].at_least(0.0).interval
        middle = (shown.low + shown.high) / 2
        for theta, estimate in ((-9.0, shown.low), (middle, middle), (9.0, shown.high)):
            moved = dataclasses.replace(result, theta=[theta] * 4).ability["image"].at_least(0.0).interval
            assert (moved.low, moved.estimate, moved.high) == (shown.low, estimate, shown.high)

    @pytest.mark.slow
    def test_denials_of_a_part_are_corrected_for_the_gates_of_the_run_and_grants_are_not(self):
        result = interviewed(np.zeros(4))
        shown = result.ability["image"].at_least(0.0).interval
        for family, denied in ((0, Outcome.FAIL), (1, Outcome.FAIL), (50, Outcome.INCONCLUSIVE)):
            metric = dataclasses.replace(result, family=family).ability["image"]
            assert metric.at_least(shown.low).outcome is Outcome.PASS
            assert metric.at_least(shown.low + 1e-6).outcome is Outcome.INCONCLUSIVE
            assert metric.at_least(shown.high).outcome is Outcome.INCONCLUSIVE
            assert metric.at_least(shown.high + 1e-6).outcome is denied
            assert metric.at_least(shown.high + 9.0).outcome is Outcome.FAIL

    @pytest.mark.slow
    def test_misses_of_what_all_answers_give_are_as_rare_as_stated_though_the_model_is_wrong(self):
        """Half of the items are answered at random, which the bank does not know."""
        miss = np.zeros((2, 4))
        for seed in range(100):
            standing = np.random.default_rng(seed).normal(size=4)
            result, everything = (  # of all answers the order says nothing
                interviewed(standing, budget, seed, odd=True, answers=seed, batch=batch)
                for budget, batch in (("50%", 8), ("100%", 240))
            )
            assert everything.theta is not None
            assert everything.standard_error == [0.0] * 4
            for k, (part, truth) in enumerate(zip(result.bank.parts, everything.theta, strict=True)):
                shown = result.ability[part].at_least(0.0).interval
                assert shown is not None
                miss[:, k] += truth < shown.low, truth > shown.high
        assert (miss / 100 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)).all(), miss
        assert miss.sum() / 800 < 0.065

    @pytest.mark.parametrize(
        ("metric", "made", "message"),
        [
            ("ability", bank, "asked in formats, and has abilities in parts: use ability.base, ability.image"),
            ("ability.audio", bank, "has no part of ability 'audio'; it has base, image, text, cross"),
            ("ability.cross", plain, "has no part of ability 'cross'; it has none: set formats, on a bank"),
        ],
    )
    def test_conditions_that_mean_nothing_are_refused(self, metric, made, message):
        with pytest.raises(ConfigError, match=message):
            Condition(metric, "at_least", 0.0).check(asked_in_formats(made()))

    @pytest.mark.parametrize(("share", "refused"), [(0.49, False), (0.5, True), (0.96, True)])
    def test_a_part_whose_subjects_are_at_its_bound_is_refused(self, share, refused):
        shares = {"ability": [0.0, 0.0, 0.0, share], "difficulty": [1.0] * 4}
        bounded = asked_in_formats(bank(in_formats=dataclasses.replace(scale(30, "m3"), report={"at_bound": shares})))
        Condition("ability.image", "at_least", 0.0).check(bounded)
        condition = Condition("ability.cross", "at_least", 0.0)
        if not refused:
            condition.check(bounded)
            return
        message = (
            f"ability.cross has no meaning on the bank 'vision': {100 * share:.0f} % of its calibration subjects are "
            "at a bound of this part, expected less than half; gate on gain, or calibrate with items that need this "
            "part"
        )
        with pytest.raises(ConfigError, match=message):
            condition.check(bounded)

    def test_only_thresholds_and_losses_are_asked_of_a_part(self):
        with pytest.raises(ConfigError, match="has no such condition; use at_least, at_most, not_worse_than"):
            Condition("ability.cross", "rank_within", 3)
        with pytest.raises(ConfigError, match="accuracy has no part 'cross'"):
            interviewed(np.zeros(4), budget=4).accuracy["cross"]

    def test_a_loss_of_a_part_is_compared_with_the_fit_to_the_whole_baseline(self):
        result = interviewed(np.zeros(4))
        scores = interviewed(np.array([0.0, 0.5, 0.0, 0.0]), budget="100%", batch=240).scores_by_item
        old = Baseline("old", scores)
        fitted = weighted_ability(result.bank, uniform_draws(scores, len(scores))).theta[1]
        shown = result.ability["image"].at_least(fitted - 0.4)
        lost = dataclasses.replace(result, baselines={"old": old}).ability["image"].not_worse_than("old", margin=0.4)
        assert lost.outcome is shown.outcome
        assert lost.metric == "image ability less that of old"
        moved = (shown.interval.low - fitted, shown.interval.high - fitted)
        assert (lost.interval.low, lost.interval.high) == pytest.approx(moved)

    def test_a_partial_baseline_or_one_at_the_end_of_a_part_is_refused(self):
        pairs = asked_in_formats(bank(60, content_hash="x"))
        condition = Condition("ability.image", "not_worse_than", 0.3, "old")
        known = interviewed(np.zeros(4))
        partial = Baseline("old", known.scores_by_item, known.log)
        with pytest.raises(BaselineError, match="expected all: its ability would have an error"):
            condition.claims(pairs, {"old": partial})

    def test_accuracy_by_format_is_by_the_draws(self):
        from pytest_adaptive_eval.claims.categories import by_category

        result = interviewed(np.zeros(4))
        found = {c.category: c for c in by_category(result.bank, result.log, np.zeros((result.asked, 4)).tolist())}
        assert set(found) == set(FORMATS)
        assert found["image+text"].accuracy is not None
        assert found["image+text"].size == 60


def test_the_report_of_a_bank_is_kept():
    own = bank(report=MappingProxyType({"trusted": False}))
    assert asked_in_formats(own).report["trusted"] is False
