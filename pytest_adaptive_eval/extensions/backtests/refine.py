"""Refine a bank: find the items that need all modalities, and choose a compact subset of them.

Two criteria judge an item, by the responses of subjects in formats. The first is whether the latent classes of the item
(`multimodal_quality`) are genuine. The second is its gain from all modalities over the best smaller format by the M2 or
M3 fit, with a standard error. The fit shrinks all items towards one mean, and thereby shortcuts towards genuine items,
so the mean gain of the item's classes replaces the fit's mean gain of those classes. An item *needs* all modalities if
its classes are genuine and its gain is significant, is a *shortcut* if neither holds, and *unclear* otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.multimodal import UNTIL_SETTLED, MultimodalFit, fit_multimodal
from pytest_adaptive_eval.calibration.multimodal_errors import gain_error
from pytest_adaptive_eval.calibration.multimodal_quality import item_quality
from pytest_adaptive_eval.calibration.scale import Separation, separation
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.irt.multimodal import Form
from pytest_adaptive_eval.irt.multimodal_information import FormatInterview
from pytest_adaptive_eval.items.responses import FormatResponses
from pytest_adaptive_eval.records.correlation import Correlation, correlate
from pytest_adaptive_eval.text import Tell, counted
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Array, Bools

#: One-sided confidence of a gain above 0.  A higher one keeps fewer items, of which hardly fewer are of low quality.
CONFIDENCE = 0.8
#: Number of subjects below which latent classes are hardly separable.
ENOUGH = 12
#: Number of items below which a subset cannot rank subjects.
SMALL = 20
#: Number of random subsets for comparison of the ranking.
DRAWS = 100
#: Reasons for keeping or dropping an item.
REASONS = {
    "kept": "needs all modalities together",
    "low quality": "was made to be no good",
    "shortcut": "a smaller format does as well",
    "unclear": "similar items and its own gain disagree on whether it needs all modalities",
    "redundant": "needs all modalities, and is less informative than the kept ones",
}


@dataclass(frozen=True, slots=True)
class ItemFinding:
    """Judgment of one item.

    Args:
        reason: Key of `REASONS`.
        looks: Judgment by the responses alone.
        gain, error: Gain from all modalities over the best smaller format, in probability, and its standard error.
        like: Mean gain of the item's classes.
        right: Share of the subjects right, by format; None without responses.
        cross: Difficulty of the part of all modalities.
        information: Fisher information about a subject of mean ability, in all formats.
    """

    item: str
    reason: str
    looks: str
    detail: str
    gain: float
    error: float
    like: float
    instead: str
    right: dict[str, float | None]
    cross: float
    information: float
    low_quality: bool

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with a column per format."""
        columns = {
            "item": self.item,
            "kept": self.reason == "kept",
            "reason": self.reason,
            "looks": self.looks,
            "detail": self.detail,
            "gain": round(self.gain, 6),
            "gain_error": round(self.error, 6),
            "gain_of_like": round(self.like, 6),
            "best_smaller_format": self.instead,
            "cross_difficulty": round(self.cross, 6),
            "information": round(self.information, 6),
            "low_quality": self.low_quality,
        }
        return columns | {f"right_{form}": None if s is None else round(s, 6) for form, s in self.right.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Refinement:
    """Judgments of all items, and the effect on the subjects' ranking.

    Args:
        ranking: Correlation over subjects of the mean in the fullest format: kept items against all not known to be
            low-quality.
        by_chance: The same coefficient for as many random originals, the mean over DRAWS draws: the effect of the size
            alone.
        moved: Subjects with their ranks by all items and by the kept ones, the largest change first.
        separations: Parameters and information, originals against low-quality items; empty if none is known.
    """

    findings: tuple[ItemFinding, ...]
    fit: MultimodalFit
    ranking: Correlation
    by_chance: float
    moved: tuple[tuple[str, int, int], ...]
    separations: dict[str, Separation]
    warnings: tuple[str, ...]

    @property
    def kept_items(self) -> list[str]:
        """Ids of the compact subset."""
        return [finding.item for finding in self.findings if finding.reason == "kept"]

    def to_json(self) -> dict[str, Any]:
        """Return all JSON values but the fit's arrays."""
        at_bound = self.fit.identifiability().at_bound
        return {
            "form": self.fit.items.form,
            "bound": self.fit.items.bound,
            "auc": round(self.fit.auc, 6),
            "parts": list(self.fit.items.modalities.parts),
            "at_bound": {name: values.round(6).tolist() for name, values in at_bound.items()},
            "counts": {name: sum(finding.reason == name for finding in self.findings) for name in REASONS},
            "ranking": self.ranking._asdict(),
            "ranking_by_chance": None if np.isnan(self.by_chance) else round(self.by_chance, 6),
            "moved": [{"subject": s, "rank_by_all": before, "rank_by_kept": after} for s, before, after in self.moved],
            "separations": {
                name: {"original": s.original, "low_quality": s.low, "mann_whitney_u": s.u}
                | {"p": s.p, "wasserstein": s.wasserstein, "auc": s.auc}
                for name, s in self.separations.items()
            },
            "warnings": list(self.warnings),
            "items": [finding.to_json() for finding in self.findings],
        }


def refine(
    responses: FormatResponses,
    low: Bools,
    *,
    form: Form = "m2",
    size: int | None = None,
    seed: int = 0,
    progress: Tell = lambda _: None,
) -> Refinement:
    """Judge every item, and choose a compact subset of the items that need all modalities.

    Args:
        low: Shape (n,). Items known to be of low quality. The judgments do not use this, and such items are never kept.
        size: Largest number of items to keep, the most informative ones; all that need all modalities when omitted.

    Raises:
        ResponsesError: No item has responses in the fullest format and in a smaller one, or all are known to be of low
            quality.
    """
    modalities = responses.modalities
    scores, full = responses.scores, modalities.fullest
    if len(responses.subjects) < 2 or low.all():
        raise ResponsesError(
            f"{responses.source}: expected the responses of at least two subjects, better of twenty, and to originals "
            "besides the items that are marked as of low quality"
        )

    def tick(bound: float, step: int, loss: float) -> None:
        progress(f"fitting {form}, q {bound:g}, step {step}, held-out loss {loss:.4f}")

    fit = fit_multimodal(scores, modalities=modalities, form=form, training=UNTIL_SETTLED, seed=seed, progress=tick)
    progress("comparing items with their classes")
    quality = item_quality(scores, modalities, seed=seed)
    theta = fit.abilities.theta
    by_fit = fit.items.cross_gain(theta)
    error = gain_error(fit.items, theta, fit.covariance)
    gain = quality.gain + by_fit - quality.pooled(by_fit)
    mean = fit.probability().mean(axis=0)
    mean[:, full] = -1.0
    instead = first_largest(mean)
    surely = gain - NormalDist().inv_cdf(CONFIDENCE) * error > 0
    needs = quality.genuine & surely
    shortcut = ~quality.genuine & ~surely
    candidates = needs & ~low
    if size is None or size >= candidates.sum():
        kept_items = candidates
    else:
        kept_items = _most_informative(fit, candidates, size)
    information = fit.items.information(fit.population.theta[None])[0].sum(axis=1)
    with np.errstate(invalid="ignore"):
        right = np.nansum(scores, axis=0) / (~np.isnan(scores)).sum(axis=0)
    findings = []
    for i, item in enumerate(responses.items):
        looks = _first_true({"genuine": needs[i], "shortcut": shortcut[i]}, "unclear")
        reason = _first_true({"kept": kept_items[i], "low quality": low[i], "redundant": needs[i]}, looks)
        smaller = modalities.formats[instead[i]]
        figures = (float(gain[i]), float(error[i]), float(quality.gain[i]))
        findings.append(
            ItemFinding(
                item,
                reason,
                looks,
                _detail(looks, smaller, *figures),
                *figures,
                smaller,
                {f: None if np.isnan(v) else float(v) for f, v in zip(modalities.formats, right[i], strict=True)},
                float(fit.items.difficulty[i, -1]),
                float(information[i]),
                bool(low[i]),
            )
        )
    ranking, by_chance, moved = _ranking(responses, ~low, kept_items, np.random.default_rng(seed))
    columns = {**fit.items.parameters, "information": information, "gain": gain, "gain of like": quality.gain}
    if low.any():
        separations = {}
        for name, values in columns.items():
            separations[name] = separation(values, low)
    else:
        separations = {}
    warnings = _warnings(responses, low, needs, shortcut, kept_items)
    if not fit.converged:
        warnings.insert(0, "the fit did not converge: its item parameters are not final")
    return Refinement(tuple(findings), fit, ranking, by_chance, moved, separations, tuple(warnings))


def _first_true(names: Mapping[str, Any], default: str) -> str:
    """Return the first name that holds, else the default."""
    for name, holds in names.items():
        if holds:
            return name
    return default


def _most_informative(fit: MultimodalFit, candidates: Bools, size: int) -> Bools:
    """Return the first `size` items of a static interview, as a mask of shape (n,)."""
    session = FormatInterview(
        fit.items, fit.population, whole=True, adaptive=False, worth=candidates.astype(np.float64)
    )
    formats = len(fit.items.modalities.formats)
    chosen = [int(session.ask()[0]) // formats for _ in range(size)]
    mask = np.zeros(len(candidates), dtype=bool)
    mask[chosen] = True
    return mask


def _detail(looks: str, smaller: str, gain: float, error: float, like: float) -> str:
    if smaller == "none":
        name = "nothing at all"
    else:
        name = f"{smaller} alone"
    words = {"genuine": "looks genuine", "shortcut": f"{name} does as well", "unclear": "cannot be told"}
    return f"{words[looks]}: gain {gain:+.2f} (s.e. {error:.2f}) over {name}, of its like {like:+.2f}"


def _ranking(
    responses: FormatResponses, clean: Bools, kept_items: Bools, rng: np.random.Generator
) -> tuple[Correlation, float, tuple[tuple[str, int, int], ...]]:
    """Return the correlation of both rankings, that of random subsets, and the subjects' ranks by change."""
    full = responses.scores[:, :, responses.modalities.fullest]
    observed = ~np.isnan(full)
    ranked = observed[:, clean].any(axis=1) & observed[:, kept_items].any(axis=1)  # without responses there is no mean
    names = [responses.subjects[s] for s in np.flatnonzero(ranked)]
    full = np.nan_to_num(full[ranked])
    observed = observed[ranked]

    def means(items: NDArray[Any]) -> Array:
        return np.asarray(full[:, items].sum(axis=1) / np.maximum(observed[:, items].sum(axis=1), 1))

    before = means(clean)
    after = means(kept_items)
    draws = []
    for _ in range(DRAWS):
        draws.append(rng.permutation(np.flatnonzero(clean))[: kept_items.sum()])
    if names:
        by_chance = float(np.mean([rank_correlation(means(items), before) for items in draws]))
    else:
        by_chance = float("nan")
    ranks = []
    for values in (before, after):
        ranks.append((1 + (values[None, :] > values[:, None]).sum(axis=1)).tolist())
    moved = sorted(zip(names, *ranks, strict=True), key=lambda row: -abs(row[1] - row[2]))
    by_all, by_kept = (dict(zip(names, values.tolist(), strict=True)) for values in (before, after))
    return correlate(by_all, by_kept), by_chance, tuple(moved)


def _warnings(responses: FormatResponses, low: Bools, needs: Bools, shortcut: Bools, kept_items: Bools) -> list[str]:
    out = []
    originals = int((~low).sum())
    if (bad := int((shortcut & ~low).sum())) * 2 > originals:
        out.append(
            f"{bad} of the {originals} original items are shortcuts themselves: they need one modality only, "
            "which explains the rank change"
        )
    if (count := int(kept_items.sum())) < SMALL:
        out.append(f"the subset has {counted(count, 'item')}: too few to rank subjects by")
    if len(responses.subjects) < ENOUGH:
        out.append(
            f"{counted(len(responses.subjects), 'subject')} hardly separate the kinds of items; {ENOUGH} or more "
            "are better"
        )
    if not low.any():
        out.append("no item is known to be of low quality, so it is not known how many slip through")
    elif (slipped := float(needs[low].mean())) > 0.1:
        out.append(f"{100 * slipped:.0f} % of the items known to be of low quality look genuine")
    return out
