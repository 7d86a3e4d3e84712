"""Abilities of the calibration subjects against each other, the items integrated out.

A joint fit takes for every item the parts that suit its answers best.  With a
hundred subjects these err, and as they were fitted together with the abilities
their errors do not cancel over items, however many there are: they bend the
scale of each part (the problem of incidental parameters, Neyman and Scott 1948).
So abilities are compared under their marginal likelihood: the free numbers x of
an item, ``logit`` of (a / q, b / q), are random with a normal prior, and are
integrated out by Laplace's method ::

    log p(y_i | theta)  =  max_x [log p(y_i | x, theta) + log p(x)]  -  1/2 log det H_i  +  const

where H_i is the expected information about x there, and the prior's (the Hessian
itself may be singular, and would draw the search there).  The sum over items is
maximised by L-BFGS in the abilities and in the mean and covariance of the prior, as
which items need one part tells that they do not need another.  The
gradient passes through the maximum by the implicit function theorem: one Newton
step from it changes nothing but carries the derivative.

What no subject's answers tell is where the scale of a part begins and how long
its unit is.  So the abilities are given in standard deviations of their own
population, part by part.  Errors are those of abilities and items together, by
expected information.

Either model is linear in ``(1, theta)``: with C_i (F, 1 + K), the intercepts and
slopes of an item in its formats, all sums over subjects are products of
residuals or weights with ``(1, theta)`` and its squares, and H_i takes only the
derivatives of C_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.irt.multimodal import AT_BOUND, MultimodalItems, unbounded

__all__ = ["Standing", "standing"]

Array = NDArray[np.float64]

#: The items' prior is learned from the items and from so many more, independent and of spread 1 in all directions.
PSEUDO = 10.0
#: Spread of the abilities' prior.
ABILITY_SPREAD = 1.0
#: Steps of the search for an item's most probable parts, at most, none longer than 1 in a free number.
NEWTON = 50
#: The search ends when no free number moves further.
NEAR = 1e-5
#: Steps of L-BFGS, at most.
STEPS = 300
#: The search ends when a step gains less, in nats.
GAIN = 0.1
#: Numbers that the derivatives of a block of items may take.
BLOCK = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Abilities of the calibration subjects against each other.

    Parameters
    ----------
    value : array, shape (S, K)
        Abilities less their mean over the subjects, in their standard deviations.
    standard_error : array, shape (S, K)
    at_bound : array of bool, shape (S, K)
        Which abilities are no further from 0 or the bound than a hundredth of it: not estimated.
    converged : bool
        Whether the search reached its end within the permitted steps.
    """

    value: Array
    standard_error: Array
    at_bound: NDArray[np.bool_]
    converged: bool = True

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Two-sided interval of every value, both of shape (S, K)."""
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * self.standard_error
        return self.value - half, self.value + half


def standing(scores: Array, items: MultimodalItems, theta: Array) -> Standing:
    """Abilities of the subjects that items were fitted to, under their marginal likelihood.

    A matrix of (S K)^2 numbers is inverted.

    Parameters
    ----------
    scores : array, shape (S, n, F)
        In [0, 1], NaN where missing.
    items : MultimodalItems
        To start from, with their form and bound.
    theta : array, shape (S, K)
        Abilities to start from.
    """
    from scipy.optimize import minimize

    marginal = _Marginal(scores, items, theta)
    start = np.zeros(len(marginal.start))
    found = minimize(
        marginal.loss,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": STEPS, "maxcor": 30, "ftol": GAIN / marginal.loss(start)[0], "gtol": 1e-2},
    )
    return marginal.standing(found.x, bool(found.success))


class _Marginal:
    """The loss that is minimised, in torch: n items, S subjects, F formats, K parts, X = 2 K free numbers an item.

    A point holds the mean of the items' prior, the triangular W by which it is ``W (x -
    mean)`` that is standard normal, the logarithm of its diagonal first, then means of
    the abilities' priors and the abilities' free numbers.  The search runs over its
    distance from the start in units of what the answers tell, so that it is as wide as
    long in all directions.
    """

    def __init__(self, scores: Array, items: MultimodalItems, theta: Array) -> None:
        import torch

        self.torch, self.form, self.q = torch, items.form, items.bound
        self.subjects, self.parts = theta.shape
        design = items.modalities.design
        self.design, self.signed = torch.tensor(design), torch.tensor(design * items.modalities.signs)
        by_item = scores.transpose(1, 2, 0)
        self.seen = torch.tensor((~np.isnan(by_item)).astype(np.float64))
        self.score = torch.tensor(np.nan_to_num(by_item))
        #: Most probable free numbers (n, X) at the abilities that were last tried.
        self.x = torch.tensor(unbounded(np.c_[items.discrimination, items.difficulty], items.bound))
        x, u = self.x, torch.tensor(unbounded(theta, items.bound))
        spread, size = x.std(dim=0) + 0.1, x.shape[1]
        self.below = torch.tril_indices(size, size, -1)
        level = torch.zeros(self.below.shape[1], dtype=x.dtype)
        self.start = torch.cat([x.mean(dim=0), -spread.log(), level, u.mean(dim=0), u.ravel()])
        near = [spread, torch.full_like(spread, 0.5**0.5), 1.0 / spread[self.below[1]]]
        error = torch.full((self.parts,), ABILITY_SPREAD * len(u) ** -0.5, dtype=x.dtype)
        self.unit = torch.cat([torch.cat(near) * len(x) ** -0.5, error])
        #: Turns what the abilities are searched in into their free numbers.
        self.root = torch.linalg.cholesky(self._information(self.start)).T

    def _point(self, searched: Any) -> Any:
        """What is searched over as a point."""
        priors, abilities = searched.split([len(self.unit), len(searched) - len(self.unit)])
        moved = self.torch.linalg.solve_triangular(self.root, abilities[:, None], upper=True)[:, 0]
        return self.start + self.torch.cat([priors * self.unit, moved])

    def loss(self, searched: Array) -> tuple[float, Array]:
        """Negative logarithm of the marginal posterior, and its gradient."""
        torch = self.torch
        free = torch.tensor(searched, requires_grad=True)
        mean, whitening, middle, u = self._parts(self._point(free))
        precision = whitening.T @ whitening
        basis = self._basis(u)
        hessian = self._maximise(basis.detach(), mean.detach(), precision.detach())
        known, by, _ = self._coefficients(self.x)
        along, _ = self._slope(torch.sigmoid(known @ basis.T), by, basis)
        x = self.x + torch.linalg.solve(hessian, along - (self.x - mean) @ precision)
        known, by, _ = self._coefficients(x)
        z = known @ basis.T
        likely = (self.score * z).sum() - (torch.nn.functional.softplus(z) * self.seen).sum()
        likely = likely - 0.5 * (((x - mean) @ whitening.T) ** 2).sum()
        likely = likely + (len(x) + PSEUDO) * whitening.diagonal().log().sum() - 0.5 * PSEUDO * (whitening**2).sum()
        likely = likely - 0.5 * torch.linalg.slogdet(self._expected(z.sigmoid(), by, basis) + precision)[1].sum()
        loss = 0.5 * ((u - middle) ** 2).sum() / ABILITY_SPREAD**2 - likely
        loss.backward()
        return loss.item(), free.grad.numpy()

    def _parts(self, point: Any) -> tuple[Any, Any, Any, Any]:
        """Mean (X,) and W (X, X) of the items' prior, mean of the abilities' (K,), and their free numbers (S, K)."""
        k = self.parts
        mean, diagonal, below, middle, u = point.split([2 * k, 2 * k, self.below.shape[1], k, self.subjects * k])
        whitening = self.torch.diag(diagonal.exp()).index_put(tuple(self.below), below)
        return mean, whitening, middle, u.reshape(-1, k)

    def _basis(self, u: Any) -> Any:
        """``(1, theta)``, shape (S, 1 + K)."""
        return self.torch.cat([self.torch.ones_like(u[:, :1]), self.q * self.torch.sigmoid(u)], dim=1)

    def _coefficients(self, x: Any) -> tuple[Any, Any, Any]:
        """Intercepts and slopes C (n, F, 1 + K), derivatives B of these (n, F, 1 + K, X) and of the parts (n, X)."""
        torch, (formats, parts) = self.torch, self.design.shape
        share = torch.sigmoid(x)
        turn = self.q * share * (1.0 - share)
        a, b = (self.q * share).split(parts, dim=1)
        lowered, signed, design = b @ self.signed.T, self.signed, self.design
        out = torch.zeros(len(x), formats, 1 + parts, 2 * parts, dtype=x.dtype)
        if self.form == "m2":
            whole = a @ design.T
            known = torch.cat([-(whole * lowered)[..., None], whole[..., None] * design], dim=2)
            out[:, :, 0, :parts] = -lowered[..., None] * design
            out[:, :, 0, parts:] = -whole[..., None] * signed
            out[:, :, 1:, :parts] = design[:, :, None] * design[:, None, :]
        else:
            known = torch.cat([-lowered[..., None], a[:, None, :] * design], dim=2)
            out[:, :, 0, parts:] = -signed
            out[:, :, 1:, :parts] = torch.diag_embed(design)
        return known, out * turn[:, None, None, :], turn

    def _slope(self, p: Any, by: Any, basis: Any) -> tuple[Any, Any]:
        """Gradient of the likelihood by the free numbers (n, X), and by intercepts and slopes (n, F, 1 + K)."""
        residual = (self.score - p * self.seen) @ basis
        return self.torch.einsum("nfc,nfcx->nx", residual, by), residual

    def _expected(self, p: Any, by: Any, basis: Any) -> Any:
        """Expected information of the answers about the items, (n, X, X), at probabilities (n, F, S)."""
        size = basis.shape[1]
        i, j = self.torch.triu_indices(size, size)
        moments = ((p - p * p) * self.seen) @ (basis[:, i] * basis[:, j])
        whole = p.new_zeros(*p.shape[:2], size, size)
        whole[:, :, i, j] = moments
        whole[:, :, j, i] = moments
        return (by.transpose(2, 3) @ whole @ by).sum(dim=1)

    def _maximise(self, basis: Any, mean: Any, precision: Any) -> Any:
        """Find the most probable free numbers of all items from those that were so last, and the Hessian there.

        Its expectation stands for it, with opposite sign as everywhere, where it is not positive.
        """
        torch, parts = self.torch, self.parts
        with torch.no_grad():
            for _ in range(NEWTON):
                known, by, turn = self._coefficients(self.x)
                p = torch.sigmoid(known @ basis.T)
                along, residual = self._slope(p, by, basis)
                bend = torch.diag_embed(along * (1.0 - 2.0 * torch.sigmoid(self.x)))
                if self.form == "m2":  # discrimination times difficulty
                    both = -torch.einsum("nf,fk,fl->nkl", residual[:, :, 0], self.design, self.signed)
                    both = both * turn[:, :parts, None] * turn[:, None, parts:]
                    bend[:, :parts, parts:] += both
                    bend[:, parts:, :parts] += both.transpose(1, 2)
                expected = self._expected(p, by, basis) + precision
                positive = torch.linalg.cholesky_ex(expected - bend)[1] == 0
                hessian = torch.where(positive[:, None, None], expected - bend, expected)
                gradient = along - (self.x - mean) @ precision
                step = torch.linalg.solve(hessian, gradient).clamp(-1.0, 1.0)
                self.x = self.x + step
                if step.abs().max() < NEAR:
                    break
        return hessian

    def _information(self, point: Any) -> Any:
        """Expected information of all answers about the abilities' free numbers, (S K, S K), items unknown."""
        torch, (subjects, parts) = self.torch, (self.subjects, self.parts)
        mean, whitening, _, u = self._parts(point)
        basis, precision = self._basis(u), whitening.T @ whitening
        self._maximise(basis, mean, precision)
        known, by, _ = self._coefficients(self.x)
        p = torch.sigmoid(known @ basis.T)
        weight = p * (1.0 - p) * self.seen
        theta, slopes = basis[:, 1:], known[:, :, 1:]
        turn = theta * (1.0 - theta / self.q)
        own = torch.einsum("nfs,nfk,nfl->skl", weight, slopes, slopes) * turn[:, :, None] * turn[:, None, :]
        out = torch.block_diag(*(own + torch.eye(parts) / ABILITY_SPREAD**2))
        root = torch.linalg.cholesky(self._expected(p, by, basis) + precision)
        size = max(1, BLOCK // (subjects * parts * by.shape[-1]))
        for i in range(0, len(by), size):
            some, d = weight[i : i + size], by[i : i + size]
            cross = torch.einsum("nfs,nfk,sc,nfcx->nskx", some, slopes[i : i + size], basis, d) * turn[:, :, None]
            flat = cross.flatten(1, 2).transpose(1, 2)
            wide = torch.linalg.solve_triangular(root[i : i + size], flat, upper=False).flatten(0, 1)
            out -= wide.T @ wide
        return out

    def standing(self, searched: Array, converged: bool) -> Standing:
        """Abilities against each other, with the errors of abilities and items together."""
        point = self._point(self.torch.tensor(searched))
        theta = self._basis(self._parts(point)[-1])[:, 1:].numpy()
        subjects, parts = theta.shape
        joint = self.torch.linalg.inv(self._information(point)).numpy().reshape(subjects, parts, subjects, parts)
        turn = theta * (1.0 - theta / self.q)
        sd = theta.std(axis=0)
        value = (theta - theta.mean(axis=0)) / sd
        error = np.empty_like(value)
        for k in range(parts):
            free = joint[:, k, :, k] * turn[:, None, k] * turn[None, :, k]
            by_theta = (np.eye(subjects) - 1.0 / subjects - np.outer(value[:, k], value[:, k]) / subjects) / sd[k]
            error[:, k] = np.sqrt(np.einsum("st,tu,su->s", by_theta, free, by_theta, optimize=True))
        share = theta / self.q
        return Standing(value, error, (share < AT_BOUND) | (share > 1.0 - AT_BOUND), converged)
