"""Relative abilities of the calibration subjects, with the items integrated out.

A joint fit takes for every item the parts that fit its answers best.  With a
hundred subjects these have errors.  Because they were fitted together with the
abilities, the errors do not cancel over items, and they distort the scale of each
part (the problem of incidental parameters, Neyman and Scott 1948).  Therefore
abilities are compared under their marginal likelihood: the free numbers x of
an item, ``logit`` of (a / q, b / q), are random with a normal prior, and are
integrated out by Laplace's method ::

    log p(y_i | theta)  =  max_x [log p(y_i | x, theta) + log p(x)]  -  1/2 log det H_i  +  const

where H_i is the expected information about x there, with the prior's (the Hessian itself may be singular, and would
attract the search to such points). The sum over items is maximised by L-BFGS in the abilities and in the mean and
covariance of the prior, because the parts of an item are correlated. The gradient passes through the maximum by the
implicit function theorem: one Newton step from it changes nothing but carries the derivative.

The answers do not determine the origin and the unit of a part's scale. Abilities are therefore given in standard
deviations of their own population, part by part. Errors are of abilities and items together, by expected information.

Either model is linear in ``(1, theta)``: with C_i (F, 1 + K), the intercepts and slopes of an item in its formats, all
sums over subjects are products of residuals or weights with ``(1, theta)`` and its squares, and H_i takes only the
derivatives of C_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from pytest_adaptive_eval.irt.multimodal import AT_BOUND, MultimodalItems, unbounded
from pytest_adaptive_eval.types import Array, Bools

#: Number of added items, independent and of spread 1 in all directions, from which the items' prior is learned too.
PSEUDO = 10.0
#: Standard deviation of the abilities' prior.
ABILITY_SPREAD = 1.0
#: Largest number of steps to an item's most probable parts, none longer than 1 in a free number.
NEWTON = 50
#: The search ends when no free number moves by more.
NEAR = 1e-5
#: Largest number of steps of L-BFGS.
STEPS = 300
#: The search ends when a step gains less, in nats.
GAIN = 0.1
#: Largest number of derivatives computed for a block of items.
BLOCK = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Relative abilities of the calibration subjects.

    Args:
        value: Shape (S, K). Abilities less their mean over the subjects, in their standard deviations.
        standard_error: Shape (S, K).
        at_bound: Shape (S, K). Whether an ability is within a hundredth of the range of 0 or the bound, and so not
            estimated.
        converged: Whether the search reached its end within the permitted steps.
    """

    value: Array
    standard_error: Array
    at_bound: Bools
    converged: bool = True

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return the bounds of a two-sided interval of every value, both of shape (S, K)."""
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * self.standard_error
        return self.value - half, self.value + half


def standing(scores: Array, items: MultimodalItems, theta: Array) -> Standing:
    """Return the relative abilities of the calibration subjects under their marginal likelihood.

    A matrix of (S K)^2 numbers is inverted.

    Args:
        scores: Shape (S, n, F). In [0, 1], NaN where missing.
        items: Starting values, with their form and bound.
        theta: Shape (S, K). Starting abilities.
    """
    from scipy.optimize import minimize

    marginal = _Marginal(scores, items, theta)
    start = np.zeros(len(marginal.start))
    optimum = minimize(
        marginal.loss,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": STEPS, "maxcor": 30, "ftol": GAIN / marginal.loss(start)[0], "gtol": 1e-2},
    )
    return marginal.standing(optimum.x, bool(optimum.success))


class _Marginal:
    """Loss to minimise, in torch: n items, S subjects, F formats, K parts, X = 2 K free numbers per item.

    A point holds the mean of the items' prior, the triangular W by which it is ``W (x - mean)`` that is standard
    normal, the logarithm of its diagonal first, then means of the abilities' priors and the abilities' free numbers.
    The search runs over its distance from the start, in units of the expected error. All directions then have a similar
    scale.
    """

    def __init__(self, scores: Array, items: MultimodalItems, theta: Array) -> None:
        import torch

        self.torch, self.form, self.q = torch, items.form, items.bound
        self.subjects, self.parts = theta.shape
        design = items.modalities.design
        self.design, self.signed = torch.tensor(design), torch.tensor(design * items.modalities.signs)
        by_item = scores.transpose(1, 2, 0)
        self.observed = torch.tensor((~np.isnan(by_item)).astype(np.float64))
        self.score = torch.tensor(np.nan_to_num(by_item))
        #: Most probable free numbers (n, X) at the last abilities.
        self.x = torch.tensor(unbounded(np.c_[items.discrimination, items.difficulty], items.bound))
        x, u = self.x, torch.tensor(unbounded(theta, items.bound))
        spread, size = x.std(dim=0) + 0.1, x.shape[1]
        self.below = torch.tril_indices(size, size, -1)
        level = torch.zeros(self.below.shape[1], dtype=x.dtype)
        self.start = torch.cat([x.mean(dim=0), -spread.log(), level, u.mean(dim=0), u.ravel()])
        scales = [spread, torch.full_like(spread, 0.5**0.5), 1.0 / spread[self.below[1]]]
        error = torch.full((self.parts,), ABILITY_SPREAD * len(u) ** -0.5, dtype=x.dtype)
        self.unit = torch.cat([torch.cat(scales) * len(x) ** -0.5, error])
        #: Maps search coordinates of the abilities to their free numbers.
        self.root = torch.linalg.cholesky(self._information(self.start)).T

    def _point(self, searched: Any) -> Any:
        """Return the point at given search coordinates."""
        priors, abilities = searched.split([len(self.unit), len(searched) - len(self.unit)])
        moved = self.torch.linalg.solve_triangular(self.root, abilities[:, None], upper=True)[:, 0]
        return self.start + self.torch.cat([priors * self.unit, moved])

    def loss(self, searched: Array) -> tuple[float, Array]:
        """Return the negative logarithm of the marginal posterior, and its gradient."""
        torch = self.torch
        free = torch.tensor(searched, requires_grad=True)
        mean, whitening, middle, u = self._parts(self._point(free))
        precision = whitening.T @ whitening
        basis = self._basis(u)
        hessian = self._maximise(basis.detach(), mean.detach(), precision.detach())
        coefficients, by, _ = self._coefficients(self.x)
        along, _ = self._slope(torch.sigmoid(coefficients @ basis.T), by, basis)
        x = self.x + torch.linalg.solve(hessian, along - (self.x - mean) @ precision)
        coefficients, by, _ = self._coefficients(x)
        z = coefficients @ basis.T
        likely = (self.score * z).sum() - (torch.nn.functional.softplus(z) * self.observed).sum()
        likely = likely - 0.5 * (((x - mean) @ whitening.T) ** 2).sum()
        likely = likely + (len(x) + PSEUDO) * whitening.diagonal().log().sum() - 0.5 * PSEUDO * (whitening**2).sum()
        likely = likely - 0.5 * torch.linalg.slogdet(self._expected(z.sigmoid(), by, basis) + precision)[1].sum()
        loss = 0.5 * ((u - middle) ** 2).sum() / ABILITY_SPREAD**2 - likely
        loss.backward()
        return loss.item(), free.grad.numpy()

    def _parts(self, point: Any) -> tuple[Any, Any, Any, Any]:
        """Split the free numbers into the priors' and the subjects'.

        Returns:
            Of the prior of an item's X = 2 K numbers.
            Of the prior of the abilities.
            The subjects' abilities, on the scale without bounds.
        """
        k = self.parts
        mean, diagonal, below, middle, u = point.split([2 * k, 2 * k, self.below.shape[1], k, self.subjects * k])
        whitening = self.torch.diag(diagonal.exp()).index_put(tuple(self.below), below)
        return mean, whitening, middle, u.reshape(-1, k)

    def _basis(self, u: Any) -> Any:
        """Return ``(1, theta)``, shape (S, 1 + K)."""
        return self.torch.cat([self.torch.ones_like(u[:, :1]), self.q * self.torch.sigmoid(u)], dim=1)

    def _coefficients(self, x: Any) -> tuple[Any, Any, Any]:
        """Return C (n, F, 1 + K), and derivatives by free numbers of C (n, F, 1 + K, X) and of the parts (n, X)."""
        torch, (formats, parts) = self.torch, self.design.shape
        share = torch.sigmoid(x)
        turn = self.q * share * (1.0 - share)
        a, b = (self.q * share).split(parts, dim=1)
        lowered, signed, design = b @ self.signed.T, self.signed, self.design
        out = torch.zeros(len(x), formats, 1 + parts, 2 * parts, dtype=x.dtype)
        if self.form == "m2":
            whole = a @ design.T
            coefficients = torch.cat([-(whole * lowered)[..., None], whole[..., None] * design], dim=2)
            out[:, :, 0, :parts] = -lowered[..., None] * design
            out[:, :, 0, parts:] = -whole[..., None] * signed
            out[:, :, 1:, :parts] = design[:, :, None] * design[:, None, :]
        else:
            coefficients = torch.cat([-lowered[..., None], a[:, None, :] * design], dim=2)
            out[:, :, 0, parts:] = -signed
            out[:, :, 1:, :parts] = torch.diag_embed(design)
        return coefficients, out * turn[:, None, None, :], turn

    def _slope(self, p: Any, by: Any, basis: Any) -> tuple[Any, Any]:
        """Return the gradient of the likelihood by the free numbers (n, X), and by C (n, F, 1 + K)."""
        residual = (self.score - p * self.observed) @ basis
        return self.torch.einsum("nfc,nfcx->nx", residual, by), residual

    def _expected(self, p: Any, by: Any, basis: Any) -> Any:
        """Return the expected information of the answers about the items, (n, X, X), at probabilities (n, F, S)."""
        size = basis.shape[1]
        i, j = self.torch.triu_indices(size, size)
        moments = ((p - p * p) * self.observed) @ (basis[:, i] * basis[:, j])
        whole = p.new_zeros(*p.shape[:2], size, size)
        whole[:, :, i, j] = moments
        whole[:, :, j, i] = moments
        return (by.transpose(2, 3) @ whole @ by).sum(dim=1)

    def _maximise(self, basis: Any, mean: Any, precision: Any) -> Any:
        """Update the most probable free numbers of all items, and return the negative Hessian there."""
        torch, parts = self.torch, self.parts
        with torch.no_grad():
            for _ in range(NEWTON):
                coefficients, by, turn = self._coefficients(self.x)
                p = torch.sigmoid(coefficients @ basis.T)
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
        """Return the expected information about the abilities' free numbers, (S K, S K), with uncertain items."""
        torch, (subjects, parts) = self.torch, (self.subjects, self.parts)
        mean, whitening, _, u = self._parts(point)
        basis, precision = self._basis(u), whitening.T @ whitening
        self._maximise(basis, mean, precision)
        coefficients, by, _ = self._coefficients(self.x)
        p = torch.sigmoid(coefficients @ basis.T)
        weight = p * (1.0 - p) * self.observed
        theta, slopes = basis[:, 1:], coefficients[:, :, 1:]
        turn = theta * (1.0 - theta / self.q)
        exact = torch.einsum("nfs,nfk,nfl->skl", weight, slopes, slopes) * turn[:, :, None] * turn[:, None, :]
        out = torch.block_diag(*(exact + torch.eye(parts) / ABILITY_SPREAD**2))
        root = torch.linalg.cholesky(self._expected(p, by, basis) + precision)
        size = max(1, BLOCK // (subjects * parts * by.shape[-1]))
        for i in range(0, len(by), size):
            w, d = weight[i : i + size], by[i : i + size]
            cross = torch.einsum("nfs,nfk,sc,nfcx->nskx", w, slopes[i : i + size], basis, d) * turn[:, :, None]
            flat = cross.flatten(1, 2).transpose(1, 2)
            wide = torch.linalg.solve_triangular(root[i : i + size], flat, upper=False).flatten(0, 1)
            out -= wide.T @ wide
        return out

    def standing(self, searched: Array, converged: bool) -> Standing:
        """Return relative abilities, with the joint errors of abilities and items."""
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
