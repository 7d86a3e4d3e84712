"""How good contestants are and how good their judges, both from the same judgments.

The model of judge i's score of contestant j in round t is a factor model with facets for severity (Linacre 1989):

    score[t, i, j] = c[t, i] + a[i] (q[j] + u[t, j]) + v[i, j] + e[t, i, j]

q is the contestant's quality and u, with one variance, how much better or worse this answer of it is; a is the judge's
scale, at least 0, so that nobody's scores ever count backwards, and at most twice the median one; v are the judge's
lasting likings, and e its noise, each with a variance of the judge's own.  c, the judge's level in that round, is left
free: it takes up how severe the judge is, how hard the task was, and what the judge made of the task.  Scores of
oneself and missing scores are not in the likelihood.  A judge that is constant or that reverses the order ends with
a near 0, or with likings so strong that they explain its scores, and has no say either way.

Fitted by coordinate ascent with closed steps.  Given scales and variances, qualities and their covariance then
follow from generalised least squares with u, v and the errors of the scales integrated out, so that errors do not
shrink to 0 with the number of rounds where judges have likings.  That the variances are estimates too is left out;
``benchmarks/peer_panels.py`` measures whether intervals hold all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.ranks import RankDistribution, joint_ranks
from pytest_adaptive_eval.studies.peers.honesty import Flags, flags

__all__ = ["LEAST", "Reliability", "fit_reliability", "part_qualities"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Contestants below which a judge compares nobody, its own answer left out.
LEAST = 3
#: Scores are whole numbers: no judge is surer than that.
ROUNDING = 1.0 / 12.0
#: A judge's scale before it is seen: about 1, of Student's distribution with these degrees of freedom, whose variance
#: is learned from the panel; what that is before, and how many judges that guess counts for.
TAIL, SCATTER, SCALES = 2.0, 0.05, 2.0
#: A judge's scale is at most this many times the median one, so that a few who shout cannot say what quality is; what
#: they shout beyond that counts as their liking.
LOUDEST = 2.0
#: What variances are before anything is seen: of answers and noise, and of likings; and how many values a guess counts
#: for.
SPREAD, LIKING, COUNTS = 0.05, 0.01, 4.0
#: Variance of a quality before it is seen, so wide on a scale of five that it says nothing.
WIDE = 4.0
#: Variances below this are none.
TINY = 1e-8
#: Sweeps at most, and the change of every quality and scale at which they end.
SWEEPS, SETTLED = 500, 1e-4
#: Patterns of missing scores that are worked on together.
AT_ONCE = 64
#: Draws for probabilities of ranks.
DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """What a panel's judgments say about its contestants and its judges.

    Parameters
    ----------
    qualities : array, shape (n,)
        In points of the trusted judges' average scale, about their average level: the score that they would give.
        NaN for a contestant that no trusted judge compared with another.
    covariance : array, shape (n, n)
        Of the qualities less their mean; NaN likewise.
    level, level_error : float
        What the trusted judges give an average contestant, and the standard error of that over rounds, of which there
        could have been others; NaN with a single round.  Errors of the qualities are without it.
    biases, scales, scale_errors, noises, likings : array, shape (n,)
        Of each judge: its level over that of the trusted judges, NaN where it is not known; its points for each of
        theirs, with its standard error; the standard deviations of its noise and of its lasting likings.
    weights : array, shape (n,)
        Share of each judge in what is known about the qualities.
    flags : Flags
        What speaks against judges.
    spread : float
        Standard deviation of a contestant's answers about its quality.
    sweeps : int
        Until the fit settled.
    converged : bool
    """

    qualities: Array
    covariance: Array
    level: float
    level_error: float
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
        """A contestant's quality with its bounds, each with this confidence."""
        q, half = float(self.qualities[contestant]), float(self.errors[contestant]) * NormalDist().inv_cdf(confidence)
        return Interval(q, q - half, q + half, confidence, "model-based")

    def above_probability(self, contestant: int, other: int) -> float:
        """Probability that one contestant is better than another."""
        if contestant == other:
            return 0.5
        c, pair = self.covariance, (contestant, other)
        variance = float(c[pair[0], pair[0]] + c[pair[1], pair[1]] - 2.0 * c[pair])
        lead = float(self.qualities[contestant] - self.qualities[other])
        if np.isnan(variance):
            return float("nan")
        return 1.0 - NormalDist(lead, max(variance, TINY) ** 0.5).cdf(0.0)

    def ranks(self, *, draws: int = DRAWS, seed: int = 0) -> tuple[RankDistribution, ...]:
        """Probabilities of each contestant's ranks, 1 the best, among those of known quality.

        Qualities are drawn jointly, since all are uncertain; a contestant of unknown quality has no probabilities.
        """
        return joint_ranks(self.qualities, self.covariance, draws=draws, seed=seed)


@dataclass(slots=True, eq=False)
class _Fit:
    """Unknowns on the way: see the module for the letters."""

    q: Array
    a: Array
    u: Array
    v: Array
    noise: Array
    liking: Array
    answer: float
    doubt: Array
    scatter: float = SCATTER


class _Data:
    """Judgments without the diagonal, and what is needed of them again and again."""

    def __init__(self, judgments: ArrayLike) -> None:
        given = np.array(judgments, dtype=np.float64)
        if given.ndim != 3 or given.shape[1] != given.shape[2]:
            raise ValueError(f"judgments of shape {given.shape}, expected (T, n, n)")
        self.rounds, self.n = given.shape[:2]
        if self.n < LEAST:
            raise EstimationError(
                f"{self.n} models: it takes {LEAST}, since a judge's score of itself does not count and one other "
                "answer has nothing to be compared with"
            )
        self.own = given[:, np.arange(self.n), np.arange(self.n)]
        given[:, np.arange(self.n), np.arange(self.n)] = np.nan
        self.mask: Mask = np.isfinite(given)
        count = self.mask.sum(axis=2)
        self.mask &= (count >= 2)[..., None]  # one score by itself says nothing
        if not self.mask.any():
            raise EstimationError("no judge scored two answers to one task: there is nothing to compare")
        self.m = self.mask.astype(np.float64)
        self.count = self.m.sum(axis=2)
        self.share = self.m / np.maximum(self.count, 1.0)[..., None]
        self.scores = np.where(self.mask, given, 0.0)
        self.y = self.centred(self.scores)
        self.freedom = np.maximum(self.count - 1.0, 0.0).sum(axis=0)  # by judge
        self.cells = self.m.any(axis=0)  # judge by contestant
        self.seen = self.m.any(axis=1)  # round by contestant
        told, pairs = int(self.seen.any(axis=0).sum()), np.maximum(self.cells.sum(axis=1) - 1, 0).sum()
        self.free_v = max(1.0 - (told - 1) / max(float(pairs), 1.0), 0.1)  # share of u and v that q leaves to them
        self.free_u = max(1.0 - told / float(self.seen.sum()), 0.1)
        # Rounds with the same scores missing have the same matrices; most panels miss few.
        self.patterns, self.pattern = np.unique(self.mask, axis=0, return_inverse=True)
        self.pattern = self.pattern.reshape(-1)
        self.by_judge = _centring(self.m.transpose(1, 0, 2), self.share.transpose(1, 0, 2))  # over rounds, (n, n, n)

    def by_round(self, weight: Array) -> Array:
        """Sum over judges of their weighted centring matrices, of each pattern, shape (P, n, n)."""
        m = self.patterns.astype(np.float64)
        return _centring(m * weight[:, None], m / np.maximum(m.sum(axis=2, keepdims=True), 1.0))

    def centred(self, x: Array) -> Array:
        """Rows less their mean over the scores that are there, 0 elsewhere."""
        return np.asarray(self.m * (x - (self.share * x).sum(axis=2, keepdims=True)))

    def levels(self, expected: Array) -> Array:
        """What each judge gives beyond what is expected of it, on average, shape (n,); NaN for one without scores."""
        count = self.m.sum(axis=(0, 2))
        rest = (self.m * (self.scores - expected)).sum(axis=(0, 2))
        return np.asarray(np.where(count > 0, rest / np.maximum(count, 1.0), np.nan))

    def by_rounds(self, expected: Array, judges: Mask) -> Array:
        """Likewise what some judges give in each round where they gave anything, shape (at most T,)."""
        m = self.m[:, judges]
        count, rest = m.sum(axis=(1, 2)), (m * (self.scores - expected)[:, judges]).sum(axis=(1, 2))
        return np.asarray(rest[count > 0] / count[count > 0])


def _centring(m: Array, share: Array) -> Array:
    """Matrices that centre rows of masks, summed over the rows: (..., rows, n) twice to (..., n, n)."""
    out = -np.swapaxes(m, -1, -2) @ share
    each = np.arange(m.shape[-1])
    out[..., each, each] += m.sum(axis=-2)
    return np.asarray(out)


def fit_reliability(judgments: ArrayLike) -> Reliability:
    """Qualities, and judges' biases, scales, noises and likings.

    Parameters
    ----------
    judgments : array_like, shape (T, n, n)
        Score of each round by judge (row) and contestant (column), NaN where missing; the diagonal is ignored but for
        what it tells of a judge's favour to itself.  Rounds that are all NaN change nothing.

    Raises
    ------
    EstimationError
        Fewer than `LEAST` models, or nobody scored two answers to one task.
    """
    data = _Data(judgments)
    f = _first(data)
    sweeps, converged = 0, False
    while sweeps < SWEEPS and not converged:
        sweeps += 1
        before = np.concatenate([f.q, f.a])
        _sweep(data, f)
        converged = bool(np.abs(np.concatenate([f.q, f.a]) - before).max() < SETTLED)
    return _told(data, f, sweeps, converged)


def _first(data: _Data) -> _Fit:
    n, zero = data.n, np.zeros
    # From medians over judges, so that what a few of them like begins as their liking and not as quality.
    times = np.maximum(data.m.sum(axis=0), 1.0)
    cells = np.where(data.cells, data.y.sum(axis=0) / times, np.nan)
    ordered, known, each = np.sort(cells, axis=0), data.cells.sum(axis=0), np.arange(n)  # NaNs last
    q = np.nan_to_num(ordered[(known - 1) // 2, each] + ordered[known // 2 % n, each]) / 2.0
    squares = float(((data.y - data.centred(np.broadcast_to(q, data.y.shape))) ** 2).sum())
    noise = np.full(n, max(squares / max(float(data.freedom.sum()), 1.0), ROUNDING))
    apart = np.nan_to_num(cells - q)
    liking = (apart**2).sum(axis=1) / np.maximum(data.cells.sum(axis=1), 1)
    liking = np.maximum(liking - noise / times.mean(axis=1), LIKING)
    v = apart * liking[:, None] / (liking[:, None] + noise[:, None] / times)
    return _Fit(q, np.ones(n), zero((data.rounds, n)), v, noise, liking, SPREAD, zero(n))


def _sweep(data: _Data, f: _Fit) -> None:
    """One pass over all unknowns, each step the best given the others."""
    each = np.arange(data.n)
    # u: normal given the rest, of one precision matrix a round.
    cov_u = _answer_covariance(data, f)[data.pattern]
    known = data.y - data.centred(f.v + f.a[:, None] * f.q)
    f.u = np.einsum("tjl,tl->tj", cov_u, np.einsum("i,tij->tj", f.a / f.noise, known))
    # q takes what u has in common over rounds: the fit stays, and u shrinks.
    shift = (f.u * data.seen).sum(axis=0) / np.maximum(data.seen.sum(axis=0), 1.0)
    f.u = f.u - shift
    f.q = f.q + shift
    # a, with v integrated out: regression on x, which is known but for cov_u; towards 1, and not below 0.
    x = f.q + f.u
    seen_x = data.centred(np.broadcast_to(x[:, None, :], data.y.shape))
    blur = _traces(data, cov_u)
    precision = data.by_judge / f.noise[:, None, None]
    precision[:, each, each] += 1.0 / f.liking[:, None]
    cov_v = np.linalg.inv(precision)
    of_x, of_y = seen_x.sum(axis=0) / f.noise[:, None], data.y.sum(axis=0) / f.noise[:, None]
    back = np.einsum("ijl,il->ij", cov_v, of_x)
    along = (seen_x * data.y).sum(axis=(0, 2)) / f.noise - (back * of_y).sum(axis=1)
    known = ((seen_x**2).sum(axis=(0, 2)) + blur) / f.noise - (back * of_x).sum(axis=1)
    prior = (TAIL + 1.0) / (TAIL * f.scatter + (f.a - 1.0) ** 2)
    f.doubt = 1.0 / (known + prior)
    f.a = np.maximum((along + prior) * f.doubt, 0.0)
    f.a = np.minimum(f.a, LOUDEST * float(np.median(f.a)) + TINY)
    used = np.maximum(1.0 - f.doubt * prior, 0.0)
    f.scatter = float((prior * f.scatter * (f.a - 1.0) ** 2).sum() + SCALES * SCATTER) / float(used.sum() + SCALES)
    # All scales times c and all qualities over c fit as well: c brings the scales nearest to 1.
    squares = float((prior * f.a**2).sum())
    c = float((prior * f.a).sum()) / squares if squares > 0 else 1.0
    f.a, f.q, f.u, f.answer = f.a * c, f.q / c, f.u / c, f.answer / c**2
    blur, of_x, back, cov_u = blur / c**2, of_x / c, back / c, cov_u / c**2
    # v: normal given the rest, of one matrix a judge; q takes what v has in common over judges.
    f.v = np.einsum("ijl,il->ij", cov_v, of_y - f.a[:, None] * of_x)
    pull = f.a[:, None] / f.liking[:, None] * data.cells
    common = (pull * f.v).sum(axis=0) / np.maximum((pull * f.a[:, None]).sum(axis=0), TINY)
    f.v = np.where(data.cells, f.v - f.a[:, None] * common, 0.0)
    f.q = f.q + common
    f.q -= f.q.mean()
    # Variances, by the share of each value that the scores and not its prior determine (MacKay 1992); those of
    # judges towards the panel's.  What q takes up is lost to u and v.
    left = data.y - data.centred(f.v + f.a[:, None] * (f.q + f.u)[:, None, :])
    rest = (left**2).sum(axis=(0, 2)) + f.a**2 * blur + np.einsum("ijl,ijl->i", data.by_judge, cov_v)
    say = f.a > 0
    say = say if say.any() else ~say
    pool = (rest[say].sum() + COUNTS * SPREAD) / (data.freedom[say].sum() + COUNTS)
    f.noise = np.maximum((rest + COUNTS * pool) / (data.freedom + COUNTS), ROUNDING)
    variances = cov_v[:, each, each] + f.doubt[:, None] * back**2
    used = data.free_v * np.maximum((data.cells * (1.0 - variances / f.liking[:, None])).sum(axis=1), 0.0)
    squares = (f.v**2).sum(axis=1)
    # The median over judges, since one with strong likings must not lend them to the others; of a chi-squared
    # variable over its mean it is about (1 - 2 / (9 k))^3.
    pool = float(np.median((squares[say] + TINY) / (used[say] + TINY)))
    pool /= (1.0 - 2.0 / (9.0 * max(float(used[say].mean()), 1.0))) ** 3
    f.liking = np.maximum((squares + COUNTS * pool) / (used + COUNTS), TINY)
    used_u = data.free_u * float((data.seen * (1.0 - cov_u[:, each, each] / f.answer)).sum())
    f.answer = max(float((f.u**2 * data.seen).sum()) / max(used_u, TINY), TINY)


def _answer_covariance(data: _Data, f: _Fit) -> Array:
    """Of u given the rest, for each pattern, shape (P, n, n)."""
    precision = data.by_round(f.a**2 / f.noise)
    precision[:, np.arange(data.n), np.arange(data.n)] += 1.0 / f.answer
    return np.asarray(np.linalg.inv(precision))


def _traces(data: _Data, cov: Array) -> Array:
    """By judge, the sum over rounds of the trace of centring times a round's covariance."""
    diagonal = np.einsum("tij,tjj->i", data.m, cov)
    return np.asarray(diagonal - ((data.m @ cov) * data.share).sum(axis=(0, 2)))


def _qualities(data: _Data, f: _Fit) -> tuple[Array, Array]:
    """Qualities less their mean by generalised least squares, given scales and variances, and their covariance.

    What rounds tell is first brought together by cell, judge by contestant, with u integrated out; then v is.
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
    for some in np.array_split(np.arange(len(times)), len(times) // AT_ONCE + 1):
        centring = -m[some][..., None] * share[some][..., None, :]
        centring[..., each, each] += m[some]
        half = np.linalg.cholesky(cov[some] * times[some, None, None])
        load = (gain[:, None, None] * centring).reshape(len(some), n * n, n) @ half
        load = load.swapaxes(0, 1).reshape(n * n, -1)
        information -= load @ load.T
    back = np.einsum("tjl,tl->tj", cov[data.pattern], np.einsum("i,tij->tj", gain, data.y))
    of_back = data.centred(np.broadcast_to(back[:, None, :], data.y.shape))
    score = (data.y.sum(axis=0) / f.noise[:, None] - gain[:, None] * of_back.sum(axis=0)).reshape(-1)
    loading = np.kron(f.a[:, None], np.eye(n))
    centre = f.q - f.q.mean()
    apart = f.doubt[:, None, None] * np.outer(centre, centre) + f.liking[:, None, None] * np.eye(n)
    blurred = (information.reshape(n * n, n, n).swapaxes(0, 1) @ apart).swapaxes(0, 1).reshape(n * n, n * n)
    blurred[np.diag_indices(n * n)] += 1.0
    solved = np.linalg.solve(blurred, np.column_stack([information @ loading, score]))
    precision = loading.T @ solved[:, :n]
    precision = (precision + precision.T) / 2.0
    known = np.diag(precision) > 1.0 / WIDE
    inverse = np.linalg.inv(precision + np.eye(n) / WIDE)
    q = inverse @ (loading.T @ solved[:, n])
    among = np.where(known, 1.0 / max(int(known.sum()), 1), 0.0)
    less = np.eye(n) - among
    q, covariance = less @ q, less @ inverse @ less.T
    q[~known] = np.nan
    covariance[~known] = covariance[:, ~known] = np.nan
    return q, covariance


def _told(data: _Data, f: _Fit, sweeps: int, converged: bool) -> Reliability:
    q, covariance = _qualities(data, f)
    known = np.nan_to_num(q)
    errors = np.sqrt(np.nan_to_num(np.diag(covariance)))
    found = flags(data.y, data.m, data.scores, known + f.u, data.own, errors)
    trusted = _trusted(found, f.a)
    unit = max(float(f.a[trusted].mean()), TINY)
    rows = np.maximum(data.freedom, 1.0) / max(data.n - 2, 1)  # full rounds that a judge's scores amount to
    power = f.a**2 / (f.noise / rows + f.liking) * (data.freedom > 0)
    power = power if power.sum() > 0 else np.ones(data.n)
    expected = f.v + f.a[:, None] * (known + f.u)[:, None, :]
    levels = data.levels(expected)
    level = _mean(levels[trusted])
    return Reliability(
        q * unit + level,
        covariance * unit**2,
        level,
        _error(data.by_rounds(expected, trusted)),
        levels - level,
        f.a / unit,
        np.sqrt(f.doubt) / unit,
        np.sqrt(f.noise),
        np.sqrt(f.liking),
        power / power.sum(),
        found,
        float(np.sqrt(f.answer)) * unit,
        sweeps,
        converged,
    )


def _trusted(found: Flags, scales: Array) -> Mask:
    """Judges that define the scale: those without a flag that silences, or all where none is without."""
    trusted = ~found.silent & (scales > 0)
    return trusted if trusted.any() else np.ones(len(scales), bool)


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _error(values: Array) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def part_qualities(judgments: ArrayLike, fit: Reliability) -> tuple[Array, Array]:
    """Qualities in some of the rounds, such as those of one topic, and their standard errors, shape (n,) each.

    Judges are taken to be what they are in all rounds.

    Parameters
    ----------
    judgments : array_like, shape (T, n, n)
        Of those rounds alone.
    fit : Reliability
        Of all rounds.
    """
    n = len(fit.qualities)
    try:
        data = _Data(judgments)
    except EstimationError:
        return np.full(n, np.nan), np.full(n, np.nan)
    q = np.nan_to_num(fit.qualities - fit.level)
    zero, noise, liking = np.zeros, fit.noises**2, np.maximum(fit.likings**2, TINY)
    f = _Fit(q, fit.scales, zero((data.rounds, n)), zero((n, n)), noise, liking, fit.spread**2, fit.scale_errors**2)
    found, covariance = _qualities(data, f)
    levels = data.levels(fit.scales[:, None] * np.nan_to_num(found))
    return found + _mean(levels[_trusted(fit.flags, fit.scales)]), np.sqrt(np.diag(covariance))
