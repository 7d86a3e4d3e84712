"""Recovery of planted parameters by the fast engine, on full and sparse matrices, and a large one.

``python benchmarks/recovery.py`` simulates 500 subjects on 1000 items, log a ~ N(0, .35), b and theta ~ N(0, 1), fits a
2PL to all responses and to a tenth of them, and prints the correlation with the planted parameters, the spread of the
slopes, the gradient, and the loss on responses that neither fit has seen; beside it that of the planted parameters.
``--optimum`` adds the loss of the posterior mean given a tenth, under the prior that the parameters were drawn from
(its first two moments): no method does better on average. ``--subjects`` takes as many others, all their responses
alone. ``--large`` fits 2000 subjects x 20 000 items and prints time and memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration import fit_map
from pytest_adaptive_eval.calibration.engines.variational import Fit

Array = NDArray[np.float64]


def simulate(subjects: int, items: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Slopes, difficulties, probabilities and responses."""
    rng = np.random.default_rng(seed)
    a, b = np.exp(rng.normal(0.0, 0.35, items)), rng.normal(size=items)
    theta = rng.normal(size=subjects)
    p = 1.0 / (1.0 + np.exp(-a * (theta[:, None] - b)))
    return a, b, p, (rng.random(p.shape) < p).astype(np.float64)


def loss(p: Array, fresh: Array) -> float:
    """Mean negative log-likelihood of probabilities, expected over the planted ones."""
    q = np.clip(p, 1e-9, 1 - 1e-9)
    return float(-(fresh * np.log(q) + (1 - fresh) * np.log1p(-q)).mean())


def polya_gamma(z: Array, rng: np.random.Generator, terms: int = 16) -> Array:
    """Draws of PG(1, z): the first terms of the sum that defines it, and the mean of the rest (Polson et al. 2013)."""
    rates = (np.arange(1, terms + 1)[:, None] - 0.5) ** 2 + (z / (2.0 * np.pi)) ** 2
    half = np.maximum(np.abs(z) / 2.0, 1e-6)
    kept = (rng.standard_exponential(rates.shape) - 1.0) / rates / (2.0 * np.pi**2)
    return np.asarray(np.maximum(kept.sum(axis=0) + np.tanh(half) / (4.0 * half), 1e-9))


def posterior_mean(responses: Array, start: Fit, seed: int, rounds: int = 700, warm_up: int = 100) -> Array:
    """Expected probabilities (S, n) given responses with NaN where missing, by Gibbs sampling."""
    rng = np.random.default_rng(seed)
    S, n = responses.shape
    subject, item = np.nonzero(~np.isnan(responses))
    kappa = responses[subject, item] - 0.5
    theta, slope, intercept = start.theta[:, 0], start.discrimination[:, 0], start.intercept
    mean, spread = np.exp(0.35**2 / 2), np.exp(0.35**2)
    prior = (1.0 / ((spread - 1.0) * spread), 1.0 / spread**2)  # precisions of a, and of d = -a b
    total, kept = np.zeros((S, n)), 0
    for number in range(rounds):
        weight = polya_gamma(theta[subject] * slope[item] + intercept[item], rng)
        t = theta[subject]
        aa, ad, dd = (np.bincount(item, weight * x, n) for x in (t * t, t, np.ones_like(t)))
        aa, dd = aa + prior[0], dd + prior[1]
        ra, rd = np.bincount(item, kappa * t, n) + prior[0] * mean, np.bincount(item, kappa, n)
        determinant = aa * dd - ad * ad
        root = np.sqrt(dd / determinant)
        noise = rng.standard_normal((2, n))
        slope = (dd * ra - ad * rd) / determinant + root * noise[0]
        intercept = (rd - ad * slope) / dd + noise[1] / np.sqrt(dd)  # given the slope
        a = slope[item]
        precision = np.bincount(subject, weight * a * a, S) + 1.0
        right = np.bincount(subject, (kappa - weight * intercept[item]) * a, S)
        theta = right / precision + rng.standard_normal(S) / np.sqrt(precision)
        if number >= warm_up and number % 2:
            total += 1.0 / (1.0 + np.exp(-(theta[:, None] * slope + intercept)))
            kept += 1
    return total / kept


def main() -> None:
    """Simulate, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--subjects", type=int, default=500)
    parser.add_argument("--optimum", action="store_true", help="the least loss that a tenth of the responses allows")
    parser.add_argument("--large", action="store_true", help="only the large matrix")
    options = parser.parse_args()
    if options.large:
        _, b, _, responses = simulate(2000, 20_000, 0)
        start = time.perf_counter()
        fit = fit_map(responses, model="2pl")
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        r = np.corrcoef(b, -fit.intercept / fit.discrimination[:, 0])[0, 1]
        print(f"2000 x 20 000: {seconds:.0f} s, converged {fit.converged}, {fit.iterations} iterations, r(b) {r:.4f}, ")
        print(f"largest resident set {peak:.1f} GiB, of which the matrix is .3")
        return
    for seed in range(options.seeds):
        a, b, p, responses = simulate(options.subjects, 1000, seed)
        sparse = np.where(np.random.default_rng(1000 + seed).random(p.shape) < 0.1, responses, np.nan)
        line = [f"seed {seed}"]
        full = 0.0
        for label, data in (("all", responses), ("a tenth", sparse))[: 2 if options.subjects == 500 else 1]:
            fit = fit_map(data, model="2pl")
            found = fit.discrimination[:, 0]
            with np.errstate(divide="ignore"):
                r_b = np.corrcoef(b, np.clip(-fit.intercept / found, -8, 8))[0, 1]
            spread = f"sd(a) {found.std():.2f} of {a.std():.2f}"
            held = loss(fit.probability(), p)
            full = full or held
            line.append(
                f"{label}: r(a) {np.corrcoef(a, found)[0, 1]:.3f} {spread} r(b) {r_b:.4f} gradient {fit.gradient:.1e} "
                f"{'converged' if fit.converged else 'NOT converged'} loss {held:.4f} ({held / full:.3f}x)"
            )
        line.append(f"planted {loss(p, p):.4f}")
        if options.optimum and options.subjects == 500:
            line.append(f"posterior mean given a tenth {loss(posterior_mean(sparse, fit, seed), p) / full:.3f}x")
        print("; ".join(line), flush=True)


if __name__ == "__main__":
    main()
