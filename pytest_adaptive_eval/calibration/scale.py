"""Scale of a bank in formats: an M2- or M3-IRT fit, as stored in the bank."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.calibration.multimodal import PAPER, UNTIL_SETTLED, Training, fit_multimodal
from pytest_adaptive_eval.irt.multimodal import Form, FormatScale, Modalities
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.types import Bools

#: Model and settings of a fit by the name in ``calibrate --formats``.
FORMAT_FITS: dict[str, tuple[Form, Training]] = {
    "m2": ("m2", UNTIL_SETTLED),
    "m3": ("m3", UNTIL_SETTLED),
    "m2-paper": ("m2", PAPER),
    "m3-paper": ("m3", PAPER),
}


def format_scale(
    scores: ArrayLike,
    modalities: Modalities | None = None,
    fit_name: str = "m2",
    *,
    low: Bools | None = None,
    limit: int | None = None,
    seed: int = 0,
    progress: Tell = lambda _: None,
) -> FormatScale:
    """Fit items in formats, and locate the subjects on the scale.

    Args:
        scores: Shape (S, n, F). Scores in [0, 1], NaN where missing.
        fit_name: Name in `FORMAT_FITS`.
        low: Shape (n,). Items known to be of low quality; the report compares their parameters with the others'.
        limit: Largest number of steps for one q; that of the named fit when omitted.

    Raises:
        EstimationError: As `fit_multimodal`.
    """
    modalities = modalities or Modalities()

    def tick(bound: float, step: int, loss: float) -> None:
        progress(f"fitting formats, bound {bound:g}, step {step}, held-out loss {loss:.4f}")

    form, training = FORMAT_FITS[fit_name]
    if limit is not None:
        training = replace(training, steps=limit)
    fit = fit_multimodal(scores, modalities=modalities, form=form, training=training, seed=seed, progress=tick)
    identifiability = fit.identifiability()
    scale = FormatScale(fit.items, fit.population, np.empty((0, len(modalities.parts))))
    report = {
        "form": form,
        "fit": fit_name,
        "auc": fit.auc,
        "loss": fit.loss,
        "bound": fit.items.bound,
        "bounds": {f"{bound:g}": auc for bound, auc in fit.tried.items()},
        "converged": fit.converged,
        "at_bound": {name: share.tolist() for name, share in identifiability.at_bound.items()},
        "reliability": identifiability.reliability.tolist(),
        "confused": [list(pair) for pair in identifiability.confused],
        "seed": seed,
    }
    if low is not None and low.any() and not low.all():
        (information,) = fit.items.information(fit.population.theta[None])
        columns = {**fit.items.parameters, "information": information.sum(axis=1)}
        separations = []
        for name, values in columns.items():
            separations.append({"name": name, **asdict(separation(values, low))})
        report["separations"] = separations
    return replace(scale, standings=scale.standing(fit.abilities.theta), report=report)


#: Bins of a drawn distribution.
BINS = 12


@dataclass(frozen=True, slots=True)
class Separation:
    """Difference of one quantity between original and low-quality items.

    Args:
        original, low: Means.
        u, p: Statistic and two-sided p value of the Mann-Whitney test.
        wasserstein: Distance of the two distributions.
        auc: Probability that an original item has the larger value, ties half.
        edges: Edges of BINS bins of equal width over all values.
    """

    original: float
    low: float
    u: float
    p: float
    wasserstein: float
    auc: float
    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], tuple[int, ...]]


def separation(values: ArrayLike, low: Bools) -> Separation:
    """Compare a quantity (n,) between low-quality and other items."""
    from scipy.stats import mannwhitneyu, wasserstein_distance

    quantity = np.asarray(values, dtype=np.float64)
    original = quantity[~low]
    bad = quantity[low]
    test = mannwhitneyu(original, bad)
    edges = np.histogram_bin_edges(quantity, BINS)
    counts_of_original, _ = np.histogram(original, edges)
    counts_of_low, _ = np.histogram(bad, edges)
    return Separation(
        float(original.mean()),
        float(bad.mean()),
        float(test.statistic),
        float(test.pvalue),
        float(wasserstein_distance(original, bad)),
        float(test.statistic) / (len(original) * len(bad)),
        tuple(edges.tolist()),
        (tuple(counts_of_original.tolist()), tuple(counts_of_low.tolist())),
    )
