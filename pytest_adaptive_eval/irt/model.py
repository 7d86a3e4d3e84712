"""Item response functions, vectorised over subjects and items.

All functions take abilities ``theta`` of shape (S, D) in logits and item parameters in the intercept form of
`ItemBank`: either one bank for all subjects, ``A`` (n, D), ``d`` (n,), ``c`` (n,), or items of each subject's own,
``A`` (S, n, D), ``d`` (S, n), ``c`` (S, n). Results have shape (S, n).
"""

from __future__ import annotations

import numpy as np

from pytest_adaptive_eval.types import Array

FARTHEST = 700.0  #: Largest logit, with a probability of 1e-304: the exponential of larger ones overflows.


def _product(theta: Array, A: Array, out: Array | None = None) -> Array:
    """Return ``A_i . theta_s``, shape (S, n); in one dimension in `out`."""
    if A.shape[-1] == 1:  # several times faster than the matrix product
        return np.multiply(theta, A[..., 0], out=out)
    return np.asarray((A @ theta[:, :, None])[..., 0])


def logits(theta: Array, A: Array, d: Array) -> Array:
    """Return ``A_i . theta_s + d_i``, shape (S, n)."""
    z = _product(theta, A)
    z += d
    return z


def probability(theta: Array, A: Array, d: Array, c: Array | None = None, out: Array | None = None) -> Array:
    """Return the probability of a right answer, shape (S, n) (Birnbaum 1968; Reckase 2009 for D > 1).

    ``c`` None means no guessing, and spares two passes over the bank. `out` is an array (S, n) that the result may lie
    in, which spares the time of a fresh one.
    """
    p = _product(-theta, A, out)
    p -= d
    if not np.maximum.reduce(p, axis=None, initial=0.0) <= FARTHEST:  # so is NaN; looking takes a fifth of the change
        np.minimum(p, FARTHEST, out=p)
    np.exp(p, out=p)  # with the rest three times faster than expit, and as exact
    p += 1.0
    np.divide(1.0, p, out=p)  # takes half the time of np.reciprocal
    if c is not None:
        p *= 1.0 - c
        p += c
    return p


def weight(p: Array, c: Array | None = None, out: Array | None = None) -> Array:
    """Return the Fisher information about the logit, p(1-p) or ((p-c)/(1-c))^2 (1-p)/p, in `out` if given."""
    w = np.subtract(1.0, p, out=out)
    if c is None:
        w *= p
        return w
    w *= ((p - c) / (1.0 - c)) ** 2
    w /= np.maximum(p, np.finfo(np.float64).tiny)  # c = 0 and p = 0: no information
    return w


def information(
    p: Array,
    A: Array,
    c: Array | None = None,
    covariance: Array | None = None,
    squared: Array | None = None,
    out: Array | None = None,
) -> Array:
    """Return the information of each item at the ability that gave `p`, shape (S, n).

    In one dimension Fisher's ``a^2 w`` (Lord 1980). In more, with the posterior covariance V (S, D, D), ``w A_i' V
    A_i``: asking the item multiplies the determinant of the information by one plus this. The largest is the D-optimal
    item (Segall 1996). Without V, the trace ``w |A_i|^2``. `squared` spares the computation of ``|A_i|^2`` where it is
    known; `out` is an array (S, n) for the result.
    """
    w = weight(p, c, out)
    if covariance is None or A.shape[-1] == 1:
        w *= (A**2).sum(axis=-1) if squared is None else squared
    else:
        w *= ((A @ covariance) * A).sum(axis=-1)
    return w


def log_likelihood(scores: Array, z: Array, c: Array | None = None) -> Array:
    """Return the log-likelihood per subject, shape (S,), of scores (S, n) in [0, 1] at the logits `z` (S, n).

    A fractional score r counts as r log p + (1 - r) log(1 - p); a NaN score is missing and has no effect. Exact in both
    tails, where p rounds to 0 or 1.
    """
    log_wrong = -np.logaddexp(0.0, z)
    if c is None:
        each = scores * z + log_wrong
    else:
        log_right = np.log(np.where(c > 0, c + (1.0 - c) * np.exp(z + log_wrong), 1.0))
        log_right = np.where(c > 0, log_right, z + log_wrong)
        each = scores * log_right + (1.0 - scores) * (log_wrong + np.log1p(-c))
    return np.asarray(np.where(np.isnan(each), 0.0, each).sum(axis=-1))
