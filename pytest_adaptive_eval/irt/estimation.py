"""Estimators of ability from responses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Array, Bools


@dataclass(frozen=True, slots=True)
class Estimate:
    """Abilities of S subjects, in logits on the bank's scale.

    Args:
        theta: Shape (S, D).
        covariance: Shape (S, D, D). Covariance of the estimate: inverse posterior information (MAP), posterior
            covariance (EAP), or inverse Fisher information (MLE).
        converged: Shape (S,). False if the iteration ended early, the estimate is at a bound, or the answers do not
            determine a dimension.
    """

    theta: Array
    covariance: Array
    converged: Bools

    @property
    def standard_error(self) -> Array:
        """Square root of the diagonal of the covariance, shape (S, D)."""
        return np.sqrt(self.covariance.diagonal(axis1=1, axis2=2))


@runtime_checkable
class Estimator(Protocol):
    """Estimator of abilities from responses."""

    @property
    def name(self) -> str:
        """Short name, as written in settings."""

    @property
    def has_prior(self) -> bool:
        """Whether a prior keeps the ability finite for any answers."""

    def prior(self, subjects: int, dimensions: int) -> Estimate:
        """Return the estimate before the first answer."""

    def estimate(self, scores: Array, A: Array, d: Array, c: Array | None, start: Estimate) -> Estimate:
        """Return abilities from scores (S, k), NaN where missing, and parameters (S, k, D), (S, k), (S, k)."""


def _scored(scores: Array, A: Array) -> tuple[Array, Array]:
    """Return `scores` and `A` with slope 0 for missing scores, which removes their effect."""
    if not math.isnan(scores.sum()):
        return scores, A
    missing = np.isnan(scores)
    return np.where(missing, 0.0, scores), np.where(missing[..., None], 0.0, A)


def _residuals(p: Array, scores: Array, c: Array | None) -> Array:
    """Return the derivative of each answer's log-likelihood by its logit, shape (S, k)."""
    if c is None:
        return np.asarray(scores - p)
    return np.asarray((scores - p) * (p - c) / (np.maximum(p, np.finfo(np.float64).tiny) * (1.0 - c)))


def sandwich_error(estimate: Estimate, scores: Array, A: Array, d: Array, c: Array | None) -> Array:
    """Return standard errors over new samples of items and answers, shape (S, D), without the model's variance.

    It is the spread of the answers' gradients, through the inverse information (Huber 1967; White 1982). So it holds
    where the bank's model does not describe the answers. With guessing, the information is that of the model, and the
    error may be an eighth too small.

    Args:
        estimate: Of the answers.
        scores, A, d, c: As in `Estimator.estimate`.
    """
    scores, A = _scored(scores, A)
    residuals = _residuals(irt.probability(estimate.theta, A, d, c), scores, c)
    moves = (A * residuals[..., None]) @ estimate.covariance
    return np.asarray(np.sqrt((moves**2).sum(axis=1)))


def _derivatives(theta: Array, scores: Array, A: Array, d: Array, c: Array | None) -> tuple[Array, Array]:
    """Return the gradient (S, D) of the log-likelihood and the Fisher information (S, D, D)."""
    p = irt.probability(theta, A, d, c)
    w = irt.weight(p, c)
    residual = _residuals(p, scores, c)
    if A.shape[-1] == 1:
        weighted = (w * A[..., 0])[:, None, :]
    else:
        weighted = (A * w[..., None]).swapaxes(1, 2)
    return (residual[:, None, :] @ A)[:, 0], weighted @ A


def _solve(matrix: Array, vector: Array) -> Array:
    """Return ``matrix^-1 vector`` for (S, D, D) and (S, D)."""
    if matrix.shape[-1] == 1:
        return np.asarray(vector / matrix[:, 0])
    return np.asarray(np.linalg.solve(matrix, vector[..., None])[..., 0])


def fisher_scoring(
    derivatives: Callable[[Array], tuple[Array, Array]],
    theta: Array,
    information: Array,
    near: Array | float,
    iterations: int,
) -> tuple[Array, Array, Bools]:
    """Return the posterior modes of S subjects, the information of the last point but one, and who arrived.

    Args:
        derivatives: Returns the gradient (S, D) of the log-posterior at abilities (S, D), and the information (S, D,
            D).
        theta: Shape (S, D). Start.
        information: Shape (S, D, D). Returned without iterations.
        near: Shape (S, 1). Subjects whose step is smaller have arrived.
        iterations: Largest number of iterations.

    Returns:
        theta: Shape (S, D).
        information: Shape (S, D, D).
        arrived: Shape (S,).
    """
    # a step of more than 2 logits jumps over the slope of the logistic onto its plateau; if steps alternate in
    # direction, or guessing makes the scoring step too long, the limit halves each time, as in a bisection
    limit: Array | float = 2.0
    done: Bools | None = None
    last = theta
    arrived = np.zeros(theta.shape, dtype=bool)
    for i in range(iterations):
        gradient, fisher = derivatives(theta)
        if done is None:
            information = fisher
        else:
            information = np.where(done[:, None], information, fisher)
        step = _solve(information, gradient)
        if i > 5:
            limit = np.where((step * last).sum(axis=1, keepdims=True) < 0, 0.5 * limit, limit)
        last = step
        size = np.abs(step)
        theta = theta + np.copysign(np.minimum(size, limit), step)
        arrived = size < near
        if arrived.all():
            break
        if len(theta) > 1:  # converged subjects stay, so that no estimate depends on the other subjects
            done = np.asarray(arrived.all(axis=1, keepdims=True))
            limit = np.where(done, 0.0, limit)
    return theta, information, np.asarray(arrived.all(axis=1))


@dataclass(frozen=True, slots=True)
class MAP:
    """Maximum a posteriori under a normal prior, by Fisher scoring.

    With a = 1 and a wide prior this is AutoJudger's maximum likelihood, but finite for all answers right. Without
    guessing the mode is unique; with guessing it is the one next to the start.

    Args:
        mean, sd: Mean and standard deviation of the independent normal prior of every dimension, in logits.
        general_sd: Standard deviation of the first, general dimension, in place of `sd`.
        iterations: Largest number of iterations; four suffice from the previous estimate.
        tolerance: Limit of the error of theta, in logits. The covariance is that of the last point but one, less than
            1e-4 logits away.
    """

    mean: float = 0.0
    sd: float = 1.0
    general_sd: float | None = None
    iterations: int = 50
    tolerance: float = 1e-8
    name: str = "map"
    has_prior: ClassVar[bool] = True

    def prior(self, subjects: int, dimensions: int) -> Estimate:
        """Return the prior itself."""
        covariance = np.broadcast_to(np.diag(self._variances(dimensions)), (subjects, dimensions, dimensions))
        return Estimate(np.full((subjects, dimensions), self.mean), covariance, np.ones(subjects, dtype=bool))

    @property
    def _general(self) -> float:
        """Prior standard deviation of the first dimension."""
        if self.general_sd is None:
            return self.sd
        return self.general_sd

    def _variances(self, dimensions: int) -> Array:
        """Prior variance of each dimension, shape (D,)."""
        variances = np.full(dimensions, self.sd**2)
        variances[0] = self._general**2
        return variances

    def estimate(self, scores: Array, A: Array, d: Array, c: Array | None, start: Estimate) -> Estimate:
        """Return mode and inverse information of the posterior."""
        theta = start.theta
        subjects, dimensions = theta.shape
        if subjects == dimensions == 1 and c is None:
            return self._single(scores[0], A[0, :, 0], d[0], float(theta[0, 0]))
        scores, A = _scored(scores, A)
        precision = 1.0 / self._variances(dimensions)
        prior = np.diag(precision)
        # a Newton step leaves an error of at most a/2 step^2, since the third derivative is at most a times the
        # second; with guessing, and in more dimensions, the step itself measures the error
        near = self.tolerance
        if c is None and dimensions == 1:  # of each subject's own items, so that no estimate depends on the others
            steepest = np.maximum(A.max(axis=(1, 2), initial=1.0), -A.min(axis=(1, 2), initial=0.0))
            near = np.sqrt(self.tolerance / steepest)[:, None]

        def derivatives(theta: Array) -> tuple[Array, Array]:
            gradient, fisher = _derivatives(theta, scores, A, d, c)
            return gradient - precision * (theta - self.mean), fisher + prior

        theta, information, arrived = fisher_scoring(derivatives, theta, start.covariance, near, self.iterations)
        if dimensions == 1:
            return Estimate(theta, np.asarray(1.0 / information), arrived)
        return Estimate(theta, np.asarray(np.linalg.inv(information)), arrived)

    def _single(self, scores: Array, a: Array, d: Array, theta: float) -> Estimate:
        """Return the same for one subject in one dimension without guessing, the usual interview in CI.

        This takes a third of the time, because arrays of length one cost more than the sums over the items.
        """
        precision = self._general**-2
        right = float(a.dot(scores))
        if math.isnan(right):
            (scores,), (A,) = _scored(scores[None], a[None, :, None])
            a = A[:, 0]
            right = float(a.dot(scores))
        squared = a * a
        near = math.sqrt(self.tolerance / math.sqrt(np.maximum.reduce(squared, initial=1.0)))
        limit = 2.0
        last = 0.0
        arrived = False
        information = precision
        # by T = 2p - 1 = tanh(z / 2), which takes fewer calls than p and does not overflow; p(1 - p) = (1 - T^2) / 4
        slope = 0.5 * a
        offset = 0.5 * d
        even = float(np.add.reduce(slope))
        most = 0.25 * float(np.add.reduce(squared))
        for i in range(self.iterations):
            T = np.tanh(slope * theta + offset)
            information = most - 0.25 * float(squared.dot(T * T)) + precision
            step = (right - even - float(slope.dot(T)) - precision * (theta - self.mean)) / information
            if i > 5 and step * last < 0:
                limit *= 0.5
            theta += math.copysign(min(abs(step), limit), step)
            last = step
            if arrived := abs(step) < near:
                break
        return Estimate(np.array([[theta]]), np.array([[[1.0 / information]]]), np.array([arrived]))


@dataclass(frozen=True, slots=True)
class EAP:
    """Posterior mean and covariance on a grid (Bock & Mislevy 1982), for at most three dimensions.

    Args:
        mean, sd: Mean and standard deviation of the normal prior, in logits.
        points: Grid points in one dimension; with D > 1 each has `points` // (2 D), and at least 15. A first grid spans
            six standard deviations of the prior to each side, a second one six of the posterior.
    """

    mean: float = 0.0
    sd: float = 1.0
    points: int = 121
    name: str = "eap"
    has_prior: ClassVar[bool] = True

    def prior(self, subjects: int, dimensions: int) -> Estimate:
        """Return the prior itself."""
        return MAP(self.mean, self.sd).prior(subjects, dimensions)

    def estimate(self, scores: Array, A: Array, d: Array, c: Array | None, start: Estimate) -> Estimate:
        """Return mean and covariance of the posterior, in at most three dimensions."""
        subjects, dimensions = start.theta.shape
        if dimensions == 1:
            points = self.points
        else:
            points = max(15, self.points // (2 * dimensions))
        axis = np.linspace(-6.0, 6.0, points)
        grid = np.stack(np.meshgrid(*[axis] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
        theta = np.full((subjects, dimensions), self.mean)
        covariance = np.empty((subjects, dimensions, dimensions))
        for s in range(subjects):
            guess = None if c is None else c[s]
            scale = np.full(dimensions, self.sd)
            for _ in range(2):  # over the prior, then over the posterior
                nodes = theta[s] + scale * grid
                log_posterior = irt.log_likelihood(scores[s], irt.logits(nodes, A[s], d[s]), guess)
                log_posterior -= 0.5 * (((nodes - self.mean) / self.sd) ** 2).sum(axis=1)
                mass = np.exp(log_posterior - log_posterior.max())
                mass /= mass.sum()
                theta[s] = mass @ nodes
                centred = nodes - theta[s]
                covariance[s] = (centred * mass[:, None]).T @ centred
                half_step = 0.5 * scale * (axis[1] - axis[0])
                scale = np.maximum(np.sqrt(covariance[s].diagonal()), half_step)
        return Estimate(theta, covariance, np.ones(subjects, dtype=bool))


@dataclass(frozen=True, slots=True)
class MLE:
    """Maximum likelihood within bounds, by ``scipy.optimize`` (L-BFGS-B).

    Args:
        bound: |theta| is kept at most this, in logits; an estimate there is marked as not converged, since all-right
            and all-wrong have no maximum.
    """

    bound: float = 6.0
    name: str = "mle"
    has_prior: ClassVar[bool] = False

    def prior(self, subjects: int, dimensions: int) -> Estimate:
        """Return zero, with the variance of a uniform distribution between the bounds."""
        covariance = np.broadcast_to(np.eye(dimensions) * self.bound**2 / 3, (subjects, dimensions, dimensions))
        return Estimate(np.zeros((subjects, dimensions)), covariance, np.ones(subjects, dtype=bool))

    def estimate(self, scores: Array, A: Array, d: Array, c: Array | None, start: Estimate) -> Estimate:
        """Return the bounded maximum, and the inverse Fisher information there with that of the prior added."""
        from scipy.optimize import minimize

        scores, A = _scored(scores, A)
        subjects, dimensions = start.theta.shape
        theta = np.empty((subjects, dimensions))
        converged = np.zeros(subjects, dtype=bool)
        # with guessing the likelihood is flat at low abilities and may have two maxima, so the search starts at the
        # best of several points and not at the previous estimate
        points = np.linspace(-self.bound, self.bound, 25)[:, None] * np.ones(dimensions)
        for s in range(subjects):
            parameters = (A[s : s + 1], d[s : s + 1], None if c is None else c[s : s + 1])
            answers = scores[s : s + 1]

            def negative(
                x: Array, parameters: tuple[Array, Array, Array | None] = parameters, answers: Array = answers
            ) -> tuple[float, Array]:
                height = irt.log_likelihood(answers, irt.logits(x[None], parameters[0], parameters[1]), parameters[2])
                return -float(height[0]), -_derivatives(x[None], answers, *parameters)[0][0]

            heights = irt.log_likelihood(answers, irt.logits(points, A[s], d[s]), parameters[2])
            fit = minimize(
                negative,
                points[int(first_largest(heights))],
                jac=True,
                method="L-BFGS-B",
                bounds=[(-self.bound, self.bound)] * dimensions,
                options={"ftol": 1e-15, "gtol": 1e-8},
            )
            theta[s] = fit.x
            converged[s] = (np.abs(fit.x) < self.bound - 1e-6).all() and np.abs(fit.jac).max() < 1e-4
        _, fisher = _derivatives(theta, scores, A, d, c)
        converged &= np.linalg.eigvalsh(fisher)[:, 0] > 1e-9
        floor = np.eye(dimensions) * 3 / self.bound**2
        return Estimate(theta, np.asarray(np.linalg.inv(fisher + floor)), converged)


@dataclass(frozen=True, slots=True)
class PseudoItems:
    """Maximum likelihood with pseudo-items at difficulty 0, half of them right, as in AutoJudger's IRT baseline.

    The score ``sum(a (r - p))`` falls with ability, so bisection finds its root. One dimension, no guessing.

    Args:
        count: Number of pseudo-items of slope 1; without any, a subject that is right on everything has the ability
            `bound`.
        bound: Limit of |theta|, in logits.
    """

    count: int = 5
    bound: float = 30.0
    name: str = "pseudo-items"

    @property
    def has_prior(self) -> bool:
        """Whether there are pseudo-items."""
        return self.count > 0

    def prior(self, subjects: int, dimensions: int) -> Estimate:
        """Return ability 0 with the information of the pseudo-items, or `bound` as standard deviation."""
        return MAP(sd=math.sqrt(4.0 / self.count) if self.count else self.bound).prior(subjects, dimensions)

    def estimate(self, scores: Array, A: Array, d: Array, c: Array | None, start: Estimate) -> Estimate:  # noqa: ARG002
        """Return the root of the score and the inverse information there; bisection needs no start."""
        scores, A = _scored(scores, A)
        low = np.full((len(scores), 1), -self.bound)
        high = -low
        for _ in range(60):
            theta = (low + high) / 2
            gradient, _ = self._derivatives(theta, scores, A, d)
            low = np.where(gradient > 0, theta, low)
            high = np.where(gradient > 0, high, theta)
        theta = (low + high) / 2
        _, information = self._derivatives(theta, scores, A, d)
        information = np.maximum(information, 1.0 / self.bound**2)
        return Estimate(theta, 1.0 / information, np.abs(theta[:, 0]) < self.bound - 1e-3)

    def _derivatives(self, theta: Array, scores: Array, A: Array, d: Array) -> tuple[Array, Array]:
        gradient, fisher = _derivatives(theta, scores, A, d, None)
        p = irt.probability(theta, np.ones((1, 1)), np.zeros(1))
        return gradient + self.count * (0.5 - p), fisher + (self.count * p * (1.0 - p))[:, :, None]


#: Standard deviation of the wide prior of general ability, in logits.  It hardly shrinks a checkpoint that is stronger
#: than all calibration subjects.
WIDE = 4.0

#: Estimators by the name used in settings.
ESTIMATORS: dict[str, Callable[[], Estimator]] = {
    "map": MAP,
    "map-wide": partial(MAP, general_sd=WIDE, name="map-wide"),
    "eap": EAP,
    "mle": MLE,
    "pseudo-items": PseudoItems,
    "bisection": partial(PseudoItems, count=0, name="bisection"),
}
