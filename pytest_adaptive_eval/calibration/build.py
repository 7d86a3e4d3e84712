"""Calibration of a bank: select the responses, fit, check, replay, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pytest_adaptive_eval.calibration.choice import ModelChoice
from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.families import copies, grouped
from pytest_adaptive_eval.calibration.prediction import BUDGETS, FEWEST_FAMILIES, Designs, choose_designs
from pytest_adaptive_eval.calibration.quality import Quality, assess, predicted, prior_sd
from pytest_adaptive_eval.calibration.recipe import ENGINES, PartFits, Recipe
from pytest_adaptive_eval.calibration.replay import conformal_tables
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.stopping import resolve_budget
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inference.conformal import Conformal, percent, subjects_needed
from pytest_adaptive_eval.irt.multimodal import FormatScale
from pytest_adaptive_eval.irt.prediction import Predictor
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import LOW_QUALITY, Item
from pytest_adaptive_eval.items.responses import FormatResponses, Responses
from pytest_adaptive_eval.text import Tell, counted, number
from pytest_adaptive_eval.types import Array, Bools

#: Families of subjects for two-sided conformal intervals at 80 % and at 90 %; gates at 95 % use the latter.
FEWEST = subjects_needed(0.9)
ENOUGH = subjects_needed(0.95)

#: If families count for a smaller share of the subjects, that is said.
WEIGHED = 0.9
_UNSETTLED = (
    "the fit in formats did not converge: raise limit, give more subjects or more items, or leave --formats out"
)


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """A calibrated bank that is not yet written.

    Args:
        responses: Responses of the calibration, near-duplicate subjects in one family.
        items: Items in the order of the responses.
        accuracies: Accuracies of the subjects over the whole bank; predictions at their abilities replace missing
            scores.
    """

    responses: Responses
    items: Sequence[Item]
    fit: Calibration
    quality: Quality
    conformal: list[Conformal]
    accuracies: tuple[float, ...]
    accuracy_ranges: tuple[tuple[float, float], ...]
    in_formats: FormatScale | None = None
    predictor: Predictor | None = None

    def write(
        self,
        write_bank: Callable[..., ItemBank],
        path: Path,
        *,
        source: Mapping[str, Any] = MappingProxyType({}),
        replace: bool = False,
    ) -> ItemBank:
        """Write the folder with the writer of `banks`; `source` is where its questions come from."""
        report = self.quality.to_json()
        if source:
            report["source"] = dict(source)
        report["textless"] = any(item.meta.get("textless") for item in self.items)
        return write_bank(
            path,
            self.items,
            discrimination=self.fit.discrimination,
            intercept=self.fit.intercept,
            guess=self.fit.guess,
            model=self.fit.model,
            subjects=self.responses.subjects,
            accuracies=self.accuracies,
            accuracy_ranges=self.accuracy_ranges,
            report=report,
            conformal=self.conformal,
            in_formats=self.in_formats,
            predictor=self.predictor,
            replace=replace,
        )


def matched(responses: Responses, items: Sequence[Item] | None, note: Tell) -> Responses:
    """Return the responses to items with texts, of subjects with responses.

    Args:
        items: All texts; None takes every item of the responses.

    Raises:
        ResponsesError: Fewer than two subjects with responses, or no item in common.
    """
    if len(responses.subjects) < 2:
        raise ResponsesError(
            f"{responses.source}: one subject, {responses.subjects[0]!r}: a bank is calibrated from the differences "
            "between subjects; give the responses of at least two, better of twenty or more. With one, judge the log "
            "itself (adaptive-eval gate LOG --at-least X), or write its questions as a bank without parameters "
            "(--uncalibrated) and calibrate that once more models have answered it"
        )
    answered = np.asarray(~np.isnan(responses.scores).all(axis=0))
    if not answered.all():
        note(f"left out: {counted(int((~answered).sum()), 'item')} without a response")
    if items is None:
        columns = answered
    else:
        columns = answered & _withitems_in_order(responses, answered, items, note)
    rows = np.asarray(~np.isnan(responses.scores[:, columns]).all(axis=1))
    if not rows.all():
        note(f"left out: {counted(int((~rows).sum()), 'subject')} without a response")
    if rows.sum() < 2:
        raise ResponsesError(f"{responses.source}: fewer than two subjects with a response to these items")
    selected = responses.of(np.flatnonzero(rows))
    ids = tuple(compress(responses.items, columns))
    # ix_ keeps the memory order, on which the last digits of the fit depend
    scores = responses.scores[np.ix_(rows, columns)]
    return Responses(selected.subjects, ids, scores, selected.families, responses.source)


def _withitems_in_order(responses: Responses, answered: Bools, items: Sequence[Item], note: Tell) -> Bools:
    """Return whether each item of the responses has a text, shape (n,)."""
    ids = {item.id for item in items}
    with_text = np.array([name in ids for name in responses.items])
    if not with_text.any():
        raise ResponsesError(
            f"{responses.source}: none of its items, such as {responses.items[0]!r}, has a text; the texts have "
            f"ids such as {items[0].id!r}: the ids of both files must agree"
        )
    if not with_text.all():
        note(f"left out: {counted(int((~with_text).sum()), 'item')} with responses and without a text")
    unanswered = len(ids) - int((with_text & answered).sum())
    if unanswered:
        note(f"left out: {counted(unanswered, 'item')} with a text and without responses")
    return with_text


def _note_families(responses: Responses, grouped_responses: Responses, recipe: Recipe, note: Tell) -> None:
    """Note how many subjects joined the family of another, and that families weigh less than their subjects."""
    merged = len(set(responses.families)) - len(set(grouped_responses.families))
    if merged:
        note(f"near-duplicates: {counted(merged, 'subject')} answering nearly like another, counted as its family")
    weights = grouped_responses.weights
    if weights is not None and weights.sum() < WEIGHED * len(weights):
        count = f"{len(weights)} subjects of {len(set(grouped_responses.families))} families"
        if ENGINES[recipe.engine].weighted:
            total = number(float(weights.sum()), 1)
            note(f"{count} count as {total} different subjects, by how much each family agrees")
        else:
            note(f"{count}: the engine {recipe.engine} cannot weigh them; each subject counts fully")


def calibrate(
    responses: Responses,
    recipe: Recipe,
    *,
    choice: ModelChoice | None = None,
    firsts: Sequence[str] | None = None,
    items: Sequence[Item] | None = None,
    given_parameters: Calibration | None = None,
    policies: Sequence[Policy] = (),
    formats: tuple[FormatResponses, str] | None = None,
    predicts: bool = False,
    seed: int = 0,
    force: bool = False,
    note: Tell = lambda _: None,
    progress: Tell = lambda _: None,
) -> Built:
    """Fit the items, check the fit, and replay interviews for conformal intervals.

    Args:
        choice: How its model was chosen, for the report.
        firsts: `copies` of the responses, if they are known.
        items: Texts, in any order; without them the bank can be backtested, not administered.
        given_parameters: Published parameters of these items, to be checked in place of a fit. Nothing is replayed for
            them, since their calibration subjects are unknown.
        formats: The responses in all formats, whose fullest one is `responses`, and a name in `scale.FORMAT_FITS`.
        predicts: Whether the bank gets a predictor and a form.
        seed: Seed of folds and replayed draws.
        force: Whether a refused bank is to be written, and therefore replayed.
        note, progress: Called with sentences about decisions and about the work in progress.

    Raises:
        EstimationError: The responses allow no fit.
        KeyboardInterrupt: Ctrl-C came after the fit, when nothing checked exists yet. During the fit it gives a bank
            that is marked as interrupted.
    """
    if firsts is None:
        firsts = copies(responses)
    grouped_responses = grouped(responses, firsts)
    _note_families(responses, grouped_responses, recipe, note)

    measure = ENGINES[recipe.engine].measure

    def report_iteration(iteration: int, value: float) -> None:
        progress(f"fitting, iteration {iteration}, {measure} {value:.5g}")

    scores = grouped_responses.scores
    weights = grouped_responses.weights
    if given_parameters is None:
        fit = recipe(scores, report_iteration, weights)
        checked = recipe
    else:
        fit = given_parameters
        checked = None
    answered = None
    if formats is not None:
        answered = _answered(formats[0], grouped_responses)
    quality = assess(scores, fit, checked, responses.items, progress, firsts, weights, answered)
    quality = _with_choice(quality, choice)
    texts = items_in_order(grouped_responses, items)
    scale = None
    if formats is not None and not fit.interrupted:
        scale = _scale_of_formats(formats, grouped_responses, texts, recipe, seed, progress)
        if not scale.report["converged"]:
            quality = replace(quality, problems=(*quality.problems, _UNSETTLED))
    settled = not fit.interrupted and (quality.trusted or force)
    replayable = settled and given_parameters is None
    fits_of_parts = PartFits(recipe)
    designs = None
    if replayable and predicts:
        designs = _choose_designs(grouped_responses, fits_of_parts, seed, note, progress)
    whole = _bank_of(fit, grouped_responses, designs)
    tables = []
    if policies and _may_replay(grouped_responses, given_parameters, note, replayable=replayable):
        longest = max(policy.budget_on(whole) for policy in policies)
        tables = conformal_tables(
            grouped_responses,
            lambda part: _bank_of(fits_of_parts(part), part, designs, longest),
            policies,
            bank=whole,
            seed=seed,
            progress=progress,
        )
    accuracies, ranges = _accuracies(scores, fit, prior_sd(given_parameters is not None))
    return Built(grouped_responses, texts, fit, quality, tables, accuracies, ranges, scale, whole.predictor)


def _in_formats(formats: FormatResponses, responses: Responses) -> Array:
    """Return the responses in all formats of the subjects and items that are left, shape (S, n, F)."""
    rows = [formats.subjects.index(name) for name in responses.subjects]
    column_of = {name: n for n, name in enumerate(formats.items)}
    columns = [column_of[name] for name in responses.items]
    return np.asarray(formats.scores[np.ix_(rows, columns)])


def _with_choice(quality: Quality, choice: ModelChoice | None) -> Quality:
    if choice is None:
        return quality
    return replace(quality, details={**quality.details, "choice": choice.to_json()})


def _answered(formats: FormatResponses, responses: Responses) -> Bools:
    """Return whether each subject answered each item in any format, shape (S, n)."""
    return np.asarray(~np.isnan(_in_formats(formats, responses)).all(axis=2))


def _scale_of_formats(
    formats: tuple[FormatResponses, str],
    responses: Responses,
    items: Sequence[Item],
    recipe: Recipe,
    seed: int,
    progress: Tell,
) -> FormatScale:
    """Return the scale that is fitted to responses in all formats."""
    from pytest_adaptive_eval.calibration.scale import format_scale  # which needs torch

    low = np.array([LOW_QUALITY in item.meta for item in items])
    in_formats, name = formats
    scores = _in_formats(in_formats, responses)
    return format_scale(scores, in_formats.modalities, name, low=low, limit=recipe.limit, seed=seed, progress=progress)


def _accuracies(
    scores: Array, fit: Calibration, sd: float
) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Return each subject's accuracy, with predictions of missing scores, and its range whatever they are."""
    missing = np.isnan(scores)
    least = np.where(missing, 0.0, scores).mean(axis=1).tolist()
    most = np.where(missing, 1.0, scores).mean(axis=1).tolist()
    if missing.any():
        scores = np.where(missing, predicted(scores, fit, sd), scores)
    return tuple(scores.mean(axis=1).tolist()), tuple(zip(least, most, strict=True))


def _bank_of(fit: Calibration, responses: Responses, designs: Designs | None, most: int | None = None) -> ItemBank:
    """Return the bank of a fit to these responses, with a predictor where there are designs; see `Designs.bank`."""
    if designs is None:
        return fit.bank("bank", responses.items)
    return designs.bank(fit, responses, most)


def _choose_designs(
    responses: Responses,
    fits_of_parts: PartFits,
    seed: int,
    note: Tell,
    progress: Tell,
) -> Designs | None:
    """Return the designs of `estimate` and `form`, or None if there are too few families to choose by."""
    families = len(set(responses.families))
    engine = fits_of_parts.recipe.engine
    if ENGINES[engine].slow:
        note(f"no form and no predictor: the engine {engine} would take too long for the fits that choose them")
        return None
    if families < FEWEST_FAMILIES:
        note(f"no form and no predictor: these subjects are of {families} families, and {FEWEST_FAMILIES} are needed")
        return None
    counts = [resolve_budget(f"{100 * share:g}%", len(responses.items)) for share in BUDGETS]
    return choose_designs(responses, fits_of_parts, counts, seed=seed, progress=progress)


def items_in_order(responses: Responses, items: Sequence[Item] | None) -> list[Item]:
    """Return the items in the order of the responses; items that are ids alone if there are none."""
    if items is None:
        textless = MappingProxyType({"textless": True})
        return [Item(id=name, meta=textless) for name in responses.items]
    by_id = {item.id: item for item in items}
    return [by_id[name] for name in responses.items]


def _may_replay(responses: Responses, given_parameters: Calibration | None, note: Tell, *, replayable: bool) -> bool:
    """Return whether interviews are replayed for conformal intervals."""
    if given_parameters is not None:
        note("no conformal intervals: given parameters cannot be fitted again without the replayed subjects")
        return False
    families = len(set(responses.families))
    if replayable and families < FEWEST:
        note(
            f"no conformal intervals: {FEWEST} families of subjects are needed for 80 %, {ENOUGH} for 90 %, and "
            f"these are of {families}; gates use design-based intervals, which need none"
        )
    elif replayable and families < ENOUGH:
        note(
            f"conformal intervals up to {percent(families)} % only: {ENOUGH} families of "
            f"subjects are needed for 90 %, and these are of {families}"
        )
    return replayable and families >= FEWEST
