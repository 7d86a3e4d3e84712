"""Joint estimates of contestants' qualities and of their judges' reliability.

The model of judge i's score of contestant j in round t is a factor model with facets for severity (Linacre 1989):

    score[t, i, j] = c[t, i] + a[i] (q[j] + u[t, j]) + v[i, j] + e[t, i, j]

q is the contestant's quality, and u the deviation of this answer from it, with one variance. a is the judge's scale, at
least 0 (scores never count backwards) and at most twice the median scale. v are the judge's lasting likings and e its
noise, each with a variance per judge. c, the judge's level in that round, is a free parameter for the judge's severity
and the task's difficulty. Scores of oneself and missing scores are not in the likelihood. A judge that is constant or
reverses the order gets a near 0, or likings strong enough to explain its scores, and has no influence either way.

The fit is coordinate ascent with closed steps. Given scales and variances, qualities and their covariance follow from
generalised least squares with u, v and the errors of the scales integrated out. Standard errors therefore do not shrink
to 0 with the number of rounds if judges have likings. Gates allow for variances that are estimates too, by the degrees
of freedom of the answers and of the rounds; ``benchmarks/peer_panels.py`` measures the coverage of the intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.extensions.studies.peers.honesty import Flags, flags
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.ranks import RankDistribution, joint_ranks
from pytest_adaptive_eval.types import Array, Bools

#: Fewest contestants with which a judge, whose own answer is ignored, compares two answers.
LEAST = 3
#: Variance of rounding to whole numbers, the lower limit of a judge's noise.
ROUNDING = 1.0 / 12.0
#: Prior of a judge's scale: Student's distribution about 1 with these degrees of freedom.  Its variance is estimated
#: from the panel, with this prior value and this weight in judges.
TAIL, SCATTER, SCALES = 2.0, 0.05, 2.0
#: Upper limit of a judge's scale, in median scales: a few extreme judges must not define quality.  The excess counts as
#: their liking.
LOUDEST = 2.0
#: Prior variances of answers and noise, and of likings, and the weight of these priors in values.
SPREAD, LIKING, COUNTS = 0.05, 0.01, 4.0
#: Prior variance of a quality, uninformative on a scale of five points.
WIDE = 4.0
#: Variances below this count as 0.
TINY = 1e-8
#: Most sweeps, and the largest change of qualities and scales at convergence.
SWEEPS, SETTLED = 500, 1e-4
#: Patterns of missing scores that are processed together.
AT_ONCE = 64
#: Draws for probabilities of ranks.
DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Estimates of a panel's contestants and judges.

    Args:
        qualities: Shape (n,). Expected score by the trusted judges, on their average scale; NaN for a contestant that
            no trusted judge compared with another.
        covariance: Shape (n, n). Covariance of the centred qualities; NaN likewise.
        freedom: Degrees of freedom of the covariance: those of the answers by contestant and round.
        level, level_error: Mean score by the trusted judges, and its standard error over rounds; NaN with a single
            round. Errors of the qualities do not include it.
        value_freedom: Degrees of freedom of both errors together, for the contestant with the fewest.
        biases, scales, scale_errors, noises, likings: Shape (n,). By judge: difference of its level from that of the
            trusted judges, NaN if unknown; points per point of theirs, with the standard error; standard deviations of
            its noise and of its lasting likings.
        weights: Shape (n,). Share of each judge in the information on qualities.
        spread: Standard deviation of a contestant's answers about its quality.
    """

    qualities: Array
    covariance: Array
    freedom: float
    level: float
    level_error: float
    value_freedom: float
    biases: Array
    scales: Array
    scale_errors: Array
    noises: Array
    likings: Array
    weights: Array
    flags: Flags
    spread: float
    sweeps: int
    converged: bool

    def __post_init__(self) -> None:
        for name in ("qualities", "covariance", "biases", "scales", "scale_errors", "noises", "likings", "weights"):
            getattr(self, name).setflags(write=False)

    @property
    def errors(self) -> Array:
        """Standard errors of the qualities against the panel's mean, shape (n,)."""
        return np.sqrt(np.diag(self.covariance))

    def interval(self, contestant: int, confidence: float = 0.975) -> Interval:
        """Return a contestant's quality with its bounds, each with this confidence."""
        q = float(self.qualities[contestant])
        half = float(self.errors[contestant]) * NormalDist().inv_cdf(confidence)
        return Interval(q, q - half, q + half, confidence, "model-based")

    def ranks(self, *, draws: int = DRAWS, seed: int = 0) -> tuple[RankDistribution, ...]:
        """Return the probabilities of each contestant's ranks, 1 is best, from joint draws of the qualities.

        A contestant of unknown quality has no probabilities.
        """
        return joint_ranks(self.qualities, self.covariance, draws=draws, seed=seed)


@dataclass(slots=True, eq=False)
class _Fit:
    """Current estimates; the module defines the letters."""

    q: Array
    a: Array
    u: Array
    v: Array
    noise: Array
    liking: Array
    answer: float
    scale_variance: Array
    scatter: float = SCATTER


class _Data:
    """Judgments without the diagonal, with derived arrays that the fit reuses."""

    def __init__(self, judgments: ArrayLike) -> None:
        values = np.array(judgments, dtype=np.float64)
        self.rounds, self.n = values.shape[:2]
        if self.n < LEAST:
            raise EstimationError(
                f"{self.n} models: it takes {LEAST}, since a judge's score of itself does not count and one other "
                "answer has nothing to be compared with"
            )
        self.self_scores = values[:, np.arange(self.n), np.arange(self.n)]
        values[:, np.arange(self.n), np.arange(self.n)] = np.nan
        self.mask: Bools = np.isfinite(values)
        count = self.mask.sum(axis=2)
        self.mask &= (count >= 2)[..., None]  # a single score compares nothing
        if not self.mask.any():
            raise EstimationError("no judge scored two answers to one task: there is nothing to compare")
        self.m = self.mask.astype(np.float64)
        self.count = self.m.sum(axis=2)
        self.share = self.m / np.maximum(self.count, 1.0)[..., None]
        self.scores = np.where(self.mask, values, 0.0)
        self.y = self.centred(self.scores)
        self.freedom = np.maximum(self.count - 1.0, 0.0).sum(axis=0)  # by judge
        self.cells = self.m.any(axis=0)  # judge by contestant
        self.answered = self.m.any(axis=1)  # round by contestant
        judged = int(self.answered.any(axis=0).sum())
        pairs = np.maximum(self.cells.sum(axis=1) - 1, 0).sum()
        self.free_v = max(1.0 - (judged - 1) / max(float(pairs), 1.0), 0.1)  # shares of v and u that q does not absorb
        judged_rounds = int(self.mask.any(axis=(1, 2)).sum())
        self.freedom_of_answers = max(float(self.answered.sum()) - judged - judged_rounds + 1.0, 1.0)
        self.free_u = max(1.0 - judged / float(self.answered.sum()), 0.1)
        # rounds with the same missing scores have the same matrices, and most panels miss few scores
        self.patterns, self.pattern = np.unique(self.mask, axis=0, return_inverse=True)
        self.pattern = self.pattern.reshape(-1)
        self.by_judge = _centring(self.m.transpose(1, 0, 2), self.share.transpose(1, 0, 2))  # over rounds, (n, n, n)

    def by_round(self, weight: Array) -> Array:
        """Return the weighted sum of the judges' centring matrices per missing-score pattern, shape (P, n, n)."""
        m = self.patterns.astype(np.float64)
        return _centring(m * weight[:, None], m / np.maximum(m.sum(axis=2, keepdims=True), 1.0))

    def centred(self, x: Array) -> Array:
        """Return rows minus their mean over present scores; 0 for missing ones."""
        return np.asarray(self.m * (x - (self.share * x).sum(axis=2, keepdims=True)))

    def levels(self, expected: Array) -> Array:
        """Return each judge's mean residual, shape (n,); NaN without scores."""
        count = self.m.sum(axis=(0, 2))
        rest = (self.m * (self.scores - expected)).sum(axis=(0, 2))
        return np.asarray(np.where(count > 0, rest / np.maximum(count, 1.0), np.nan))

    def by_rounds(self, expected: Array, judges: Bools) -> Array:
        """Return the mean residual of the selected judges in each round with scores of theirs, shape (at most T,)."""
        m = self.m[:, judges]
        count = m.sum(axis=(1, 2))
        rest = (m * (self.scores - expected)[:, judges]).sum(axis=(1, 2))
        return np.asarray(rest[count > 0] / count[count > 0])


def _centring(m: Array, share: Array) -> Array:
    """Return the matrices that centre rows of masks (..., rows, n), summed over rows, shape (..., n, n)."""
    out = -np.swapaxes(m, -1, -2) @ share
    each = np.arange(m.shape[-1])
    out[..., each, each] += m.sum(axis=-2)
    return np.asarray(out)


def fit_reliability(judgments: ArrayLike) -> Reliability:
    """Estimate qualities, and judges' biases, scales, noises and likings.

    Args:
        judgments: Shape (T, n, n). Scores by round, judge and contestant, NaN where missing. The diagonal serves only
            the test for judges that favour themselves. Rounds without scores have no effect.

    Raises:
        EstimationError: There are fewer than `LEAST` models, or no judge scored two answers to one task.
    """
    data = _Data(judgments)
    f = _first(data)
    sweeps = 0
    converged = False
    while sweeps < SWEEPS and not converged:
        sweeps += 1
        before = np.concatenate([f.q, f.a])
        cov_u = _update_answers(data, f)
        moments = _update_scales(data, f, cov_u)
        _update_likings(data, f, moments)
        _update_variances(data, f, moments)
        converged = bool(np.abs(np.concatenate([f.q, f.a]) - before).max() < SETTLED)
    return _reliability(data, f, sweeps, converged)


def _first(data: _Data) -> _Fit:
    n = data.n
    each = np.arange(n)
    # medians over judges, so that the likings of a few do not start as quality
    times = np.maximum(data.m.sum(axis=0), 1.0)
    cells = np.where(data.cells, data.y.sum(axis=0) / times, np.nan)
    ordered = np.sort(cells, axis=0)  # NaNs last
    judges = data.cells.sum(axis=0)
    q = np.nan_to_num(ordered[(judges - 1) // 2, each] + ordered[judges // 2 % n, each]) / 2.0
    residual = data.y - data.centred(np.broadcast_to(q, data.y.shape))
    squares = float((residual**2).sum())
    noise = np.full(n, max(squares / max(float(data.freedom.sum()), 1.0), ROUNDING))
    deviation = np.nan_to_num(cells - q)
    liking = (deviation**2).sum(axis=1) / np.maximum(data.cells.sum(axis=1), 1)
    liking = np.maximum(liking - noise / times.mean(axis=1), LIKING)
    v = deviation * liking[:, None] / (liking[:, None] + noise[:, None] / times)
    return _Fit(q, np.ones(n), np.zeros((data.rounds, n)), v, noise, liking, SPREAD, np.zeros(n))


class _Moments(NamedTuple):
    """Arrays that the steps of one sweep share; x is the quality of each answer."""

    cov_u: Array  # of u given the rest, by round
    cov_v: Array  # of v given the rest, by judge
    blur: Array  # variance of x in the regressions, summed over rounds, by judge
    of_x: Array  # sums over rounds of centred x and y, each over the judge's noise
    of_y: Array
    back: Array  # regression of v on x


def _update_answers(data: _Data, f: _Fit) -> Array:
    """Update u, which is normal given the rest, and return its covariance by round."""
    cov_u = _answer_covariance(data, f)[data.pattern]
    residual = data.y - data.centred(f.v + f.a[:, None] * f.q)
    f.u = np.einsum("tjl,tl->tj", cov_u, np.einsum("i,tij->tj", f.a / f.noise, residual))
    # q absorbs the mean of u over rounds: the fit stays the same, and u shrinks
    shift = (f.u * data.answered).sum(axis=0) / np.maximum(data.answered.sum(axis=0), 1.0)
    f.u = f.u - shift
    f.q = f.q + shift
    return cov_u


def _update_scales(data: _Data, f: _Fit, cov_u: Array) -> _Moments:
    """Update a by regression on x with v integrated out, towards 1 and at least 0."""
    each = np.arange(data.n)
    x = f.q + f.u
    centred_x = data.centred(np.broadcast_to(x[:, None, :], data.y.shape))
    diagonal = np.einsum("tij,tjj->i", data.m, cov_u)
    blur = np.asarray(diagonal - ((data.m @ cov_u) * data.share).sum(axis=(0, 2)))
    precision = data.by_judge / f.noise[:, None, None]
    precision[:, each, each] += 1.0 / f.liking[:, None]
    cov_v = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    of_x = centred_x.sum(axis=0) / f.noise[:, None]
    of_y = data.y.sum(axis=0) / f.noise[:, None]
    back = np.einsum("ijl,il->ij", cov_v, of_x)
    covariation = (centred_x * data.y).sum(axis=(0, 2)) / f.noise - (back * of_y).sum(axis=1)
    information = ((centred_x**2).sum(axis=(0, 2)) + blur) / f.noise - (back * of_x).sum(axis=1)
    prior = (TAIL + 1.0) / (TAIL * f.scatter + (f.a - 1.0) ** 2)
    f.scale_variance = 1.0 / (information + prior)
    f.a = np.maximum((covariation + prior) * f.scale_variance, 0.0)
    f.a = np.minimum(f.a, LOUDEST * float(np.median(f.a)) + TINY)
    used = np.maximum(1.0 - f.scale_variance * prior, 0.0)
    scattered = (prior * f.scatter * (f.a - 1.0) ** 2).sum()
    f.scatter = float(scattered + SCALES * SCATTER) / float(used.sum() + SCALES)
    # a * c and x / c fit as well for any c: c brings the scales nearest to 1
    squares = float((prior * f.a**2).sum())
    c = 1.0
    if squares > 0:
        c = float((prior * f.a).sum()) / squares
    f.a = f.a * c
    f.q = f.q / c
    f.u = f.u / c
    f.answer = f.answer / c**2
    return _Moments(cov_u / c**2, cov_v, blur / c**2, of_x / c, of_y, back / c)


def _update_likings(data: _Data, f: _Fit, moments: _Moments) -> None:
    """Update v, which is normal given the rest; q absorbs its mean over judges."""
    f.v = np.einsum("ijl,il->ij", moments.cov_v, moments.of_y - f.a[:, None] * moments.of_x)
    pull = f.a[:, None] / f.liking[:, None] * data.cells
    common = (pull * f.v).sum(axis=0) / np.maximum((pull * f.a[:, None]).sum(axis=0), TINY)
    f.v = np.where(data.cells, f.v - f.a[:, None] * common, 0.0)
    f.q = f.q + common
    f.q -= f.q.mean()


def _update_variances(data: _Data, f: _Fit, moments: _Moments) -> None:
    """Update variances by the share of each value that the scores determine, not its prior (MacKay 1992).

    Variances of judges are shrunk to the panel's. What q absorbs is lost to u and v.
    """
    each = np.arange(data.n)
    residual = data.y - data.centred(f.v + f.a[:, None] * (f.q + f.u)[:, None, :])
    rest = (residual**2).sum(axis=(0, 2)) + f.a**2 * moments.blur
    rest = rest + np.einsum("ijl,ijl->i", data.by_judge, moments.cov_v)
    active = f.a > 0
    if not active.any():
        active = ~active
    pool = (rest[active].sum() + COUNTS * SPREAD) / (data.freedom[active].sum() + COUNTS)
    f.noise = np.maximum((rest + COUNTS * pool) / (data.freedom + COUNTS), ROUNDING)
    variances = moments.cov_v[:, each, each] + f.scale_variance[:, None] * moments.back**2
    used = data.free_v * np.maximum((data.cells * (1.0 - variances / f.liking[:, None])).sum(axis=1), 0.0)
    squares = (f.v**2).sum(axis=1)
    # the median over judges, so that one with strong likings does not raise the others'; the median of a chi-squared
    # variable over its mean is about (1 - 2 / (9 k))^3
    pool = float(np.median((squares[active] + TINY) / (used[active] + TINY)))
    pool /= (1.0 - 2.0 / (9.0 * max(float(used[active].mean()), 1.0))) ** 3
    f.liking = np.maximum((squares + COUNTS * pool) / (used + COUNTS), TINY)
    used_u = data.free_u * float((data.answered * (1.0 - moments.cov_u[:, each, each] / f.answer)).sum())
    f.answer = max(float((f.u**2 * data.answered).sum()) / max(used_u, TINY), TINY)


def _answer_covariance(data: _Data, f: _Fit) -> Array:
    """Return the conditional covariance of `u` per missing-score pattern, shape (P, n, n)."""
    precision = data.by_round(f.a**2 / f.noise)
    precision[:, np.arange(data.n), np.arange(data.n)] += 1.0 / f.answer
    return np.asarray(np.linalg.inv(precision))


def _qualities(data: _Data, f: _Fit) -> tuple[Array, Array]:
    """Return centred qualities by generalised least squares, given scales and variances, and their covariance.

    Rounds are first combined by judge and contestant, with u integrated out; then v is integrated out.
    """
    n = data.n
    times = np.bincount(data.pattern).astype(np.float64)
    gain = f.a / f.noise
    m = data.patterns.astype(np.float64)
    share = m / np.maximum(m.sum(axis=2, keepdims=True), 1.0)
    cov = _answer_covariance(data, f)
    each = np.arange(n)
    cells = np.zeros((n, n, n, n))  # judge, contestant, judge, contestant
    cells[each, :, each, :] = data.by_judge / f.noise[:, None, None]
    information = cells.reshape(n * n, n * n)
    for batch in np.array_split(np.arange(len(times)), len(times) // AT_ONCE + 1):
        centring = -m[batch][..., None] * share[batch][..., None, :]
        centring[..., each, each] += m[batch]
        half = np.linalg.cholesky(cov[batch] * times[batch, None, None])
        load = (gain[:, None, None] * centring).reshape(len(batch), n * n, n) @ half
        load = load.swapaxes(0, 1).reshape(n * n, -1)
        information -= load @ load.T
    back = np.einsum("tjl,tl->tj", cov[data.pattern], np.einsum("i,tij->tj", gain, data.y))
    of_back = data.centred(np.broadcast_to(back[:, None, :], data.y.shape))
    score = (data.y.sum(axis=0) / f.noise[:, None] - gain[:, None] * of_back.sum(axis=0)).reshape(-1)
    loading = np.kron(f.a[:, None], np.eye(n))
    centre = f.q - f.q.mean()
    cell_covariance = f.scale_variance[:, None, None] * np.outer(centre, centre) + f.liking[:, None, None] * np.eye(n)
    blurred = (information.reshape(n * n, n, n).swapaxes(0, 1) @ cell_covariance).swapaxes(0, 1).reshape(n * n, n * n)
    blurred[np.diag_indices(n * n)] += 1.0
    solved = np.linalg.solve(blurred, np.column_stack([information @ loading, score]))
    precision = loading.T @ solved[:, :n]
    precision = (precision + precision.T) / 2.0
    informed = np.diag(precision) > 1.0 / WIDE
    inverse = np.linalg.inv(precision + np.eye(n) / WIDE)
    q = inverse @ (loading.T @ solved[:, n])
    centring = np.eye(n) - np.where(informed, 1.0 / max(int(informed.sum()), 1), 0.0)
    q = centring @ q
    covariance = centring @ inverse @ centring.T
    q[~informed] = np.nan
    covariance[~informed] = covariance[:, ~informed] = np.nan
    return q, covariance


def _reliability(data: _Data, f: _Fit, sweeps: int, converged: bool) -> Reliability:
    q, covariance = _qualities(data, f)
    answers = np.nan_to_num(q) + f.u
    errors = np.sqrt(np.nan_to_num(np.diag(covariance)))
    judge_flags = flags(data.y, data.m, data.scores, answers, data.self_scores, errors)
    trusted = _trusted(judge_flags, f.a)
    unit = max(float(f.a[trusted].mean()), TINY)
    rows = np.maximum(data.freedom, 1.0) / max(data.n - 2, 1)  # full rounds equivalent to a judge's scores
    power = f.a**2 / (f.noise / rows + f.liking) * (data.freedom > 0)
    if power.sum() <= 0:
        power = np.ones(data.n)
    expected = f.v + f.a[:, None] * answers[:, None, :]
    levels = data.levels(expected)
    level = _mean(levels[trusted])
    by_round = data.by_rounds(expected, trusted)
    level_error = float("nan")
    if len(by_round) > 1:
        level_error = float(by_round.std(ddof=1)) / len(by_round) ** 0.5
    own_variance = (errors * unit) ** 2
    common = level_error**2
    unsure = own_variance**2 / data.freedom_of_answers + common**2 / max(len(by_round) - 1, 1)  # Satterthwaite (1946)
    freedom = np.divide((own_variance + common) ** 2, unsure, out=np.full(data.n, np.inf), where=unsure > 0)
    return Reliability(
        q * unit + level,
        covariance * unit**2,
        data.freedom_of_answers,
        level,
        level_error,
        float(freedom.min()),
        levels - level,
        f.a / unit,
        np.sqrt(f.scale_variance) / unit,
        np.sqrt(f.noise),
        np.sqrt(f.liking),
        power / power.sum(),
        judge_flags,
        float(np.sqrt(f.answer)) * unit,
        sweeps,
        converged,
    )


def _trusted(judge_flags: Flags, scales: Array) -> Bools:
    """Return the judges that define the scale: the ones whose scores count, or all if none do."""
    trusted = ~judge_flags.silent & (scales > 0)
    if not trusted.any():
        return np.ones(len(scales), bool)
    return trusted


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return float("nan")
    return float(finite.mean())


def part_qualities(judgments: ArrayLike, fit: Reliability) -> tuple[Array, Array]:
    """Return qualities in a part of the rounds, such as one topic, with their standard errors, shape (n,) each.

    Judges keep their estimates from all rounds.

    Args:
        judgments: Shape (T, n, n). Judgments of those rounds.
    """
    n = len(fit.qualities)
    try:
        data = _Data(judgments)
    except EstimationError:
        return np.full(n, np.nan), np.full(n, np.nan)
    q = np.nan_to_num(fit.qualities - fit.level)
    u = np.zeros((data.rounds, n))
    v = np.zeros((n, n))
    liking = np.maximum(fit.likings**2, TINY)
    f = _Fit(q, fit.scales, u, v, fit.noises**2, liking, fit.spread**2, fit.scale_errors**2)
    qualities, covariance = _qualities(data, f)
    levels = data.levels(fit.scales[:, None] * np.nan_to_num(qualities))
    level = _mean(levels[_trusted(fit.flags, fit.scales)])
    return qualities + level, np.sqrt(np.diag(covariance))
