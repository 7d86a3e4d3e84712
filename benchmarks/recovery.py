"""Recovery of planted parameters by the fast engine, on full and sparse matrices, and a large one.

``python benchmarks/recovery.py`` simulates 500 subjects on 1000 items, log a ~ N(0, .35), b and theta ~ N(0, 1), fits a
2PL to all responses and to a tenth of them, and prints the correlation with the planted parameters, the gradient, and
the loss on responses that neither fit has seen; beside it that of the planted parameters with the prior they were drawn
from, which no fit can beat but by luck.  ``--large`` fits 2000 subjects x 20 000 items and prints time and memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration import fit_map

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


def main() -> None:
    """Simulate, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
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
        a, b, p, responses = simulate(500, 1000, seed)
        sparse = np.where(np.random.default_rng(1000 + seed).random(p.shape) < 0.1, responses, np.nan)
        line = [f"seed {seed}"]
        full = 0.0
        for label, data in (("all", responses), ("a tenth", sparse)):
            fit = fit_map(data, model="2pl")
            found = fit.discrimination[:, 0]
            with np.errstate(divide="ignore"):
                r_b = np.corrcoef(b, np.clip(-fit.intercept / found, -8, 8))[0, 1]
            held = loss(fit.probability(), p)
            full = full or held
            line.append(
                f"{label}: r(a) {np.corrcoef(a, found)[0, 1]:.3f} r(b) {r_b:.4f} gradient {fit.gradient:.1e} "
                f"{'converged' if fit.converged else 'NOT converged'} loss {held:.4f} ({held / full:.3f}x)"
            )
        line.append(f"planted {loss(p, p):.4f}")
        print("; ".join(line), flush=True)


if __name__ == "__main__":
    main()
