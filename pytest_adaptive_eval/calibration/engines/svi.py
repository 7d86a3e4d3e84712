"""Fit engine ``svi``: mean-field stochastic variational inference in Pyro, as in AutoJudger.

The paper (appendix B, eq. 9-12) takes one Gaussian for every ability and difficulty, closed-form divergences from the
priors, reparametrised draws for the likelihood, Adam and mini-batches of responses. The two- and three-parameter
variants, whose priors it does not give, add a Gaussian for each item's log a and logit c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.calibration.engine import Calibration, FitEngine, FitSettings, Progress
from pytest_adaptive_eval.calibration.meanfield import MeanField, Parameters, random_numbers
from pytest_adaptive_eval.errors import EstimationError, UsageError
from pytest_adaptive_eval.types import Array, Ints

#: Latent variables of each model, in the order in which they are drawn.
LATENTS = {"1pl": ("theta", "b"), "2pl": ("theta", "b", "log_a"), "3pl": ("theta", "b", "log_a", "logit_c")}


@dataclass(frozen=True, slots=True)
class SVISettings:
    """Constants of the fit: the paper's (appendix B) where it has one, otherwise ours, with the reason.

    Args:
        difficulty_prior: What `prior_scale` is of b ~ N(0, 10^3): the variance, as in the paper's notation, or the
            standard deviation, as in AutoJudger's code. Both differ only for items that leave b without a bound, such
            as one that nobody solved. Under the second their b moves on for ever, and in the 3PL, where every item
            solved no more often than by guessing is of that kind, the stopping rule is not reached.
        log_slope_sd: Of log a ~ N(0, sd^2), for 2PL and 3PL; ours.
        guess_prior: Mean and standard deviation of logit c, for 3PL; ours: the moments of the logit of a Beta(5, 17)
            variable, whose mean is .23. A proper prior keeps c off 1 where responses say nothing of it.
        guess_steps: Steps, rounded up to windows, for which a 3PL is fitted without guessing; ours. While b is as wide
            as at the start, c would fit the share of right answers by itself, run towards 1 and leave b where it is.
        initial_ability_sd, initial_difficulty_sd: Of the variational Gaussians at the start; their means start at 0,
            and log a and logit c at their priors.
        betas: Adam's rates of decay of the gradient's mean and mean square. Ours: from a standard deviation of 1000 the
            first gradients are a thousand times the later ones, and with the usual .999 Adam divides by their memory up
            to the step limit, and the fit ends half-way.
        batch: Responses in a mini-batch, at most.
        particles: Draws of all latent variables in each step; where all responses are fewer than a batch, as many times
            more.
        steps: Largest number of steps.
        window: Steps over which the variational parameters are averaged; see `fit_svi`.
        evaluations: Responses times draws from which the ELBO of a window is estimated: its relative error is then the
            same for any number of items.
        tolerance: On the relative change of the ELBO from window to window.

    Raises:
        ConfigError: A number that is not positive, or out of its range.
    """

    difficulty_prior: Literal["variance", "sd"] = "variance"
    prior_scale: float = 1e3
    log_slope_sd: float = 0.5
    guess_prior: tuple[float, float] = (-1.30, 0.53)
    guess_steps: int = 400
    initial_ability_sd: float = 1.0
    initial_difficulty_sd: float = 1e3
    learning_rate: float = 0.1
    betas: tuple[float, float] = (0.9, 0.95)
    batch: int = 16384
    particles: int = 4
    steps: int = 3200
    window: int = 200
    evaluations: int = 1 << 24
    tolerance: float = 1e-4
    device: str = "cpu"

    @property
    def difficulty_sd(self) -> float:
        """Standard deviation of the prior of b, in logits."""
        if self.difficulty_prior == "sd":
            return self.prior_scale
        return math.sqrt(self.prior_scale)

    @property
    def priors(self) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of each latent variable's prior."""
        return {
            "theta": (0.0, 1.0),
            "b": (0.0, self.difficulty_sd),
            "log_a": (0.0, self.log_slope_sd),
            "logit_c": self.guess_prior,
        }

    @property
    def start(self) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of each variational Gaussian at the first step."""
        return {**self.priors, "theta": (0.0, self.initial_ability_sd), "b": (0.0, self.initial_difficulty_sd)}


@dataclass(frozen=True, slots=True, eq=False)
class SVIFit:
    """Variational means of items and subjects: p = c + (1 - c) expit(a theta + d), theta ~ N(0, 1).

    Args:
        model: ``1pl``, ``2pl`` or ``3pl``.
        discrimination: Shape (n,). a, the exponential of the variational mean of log a; ones in the 1PL.
        intercept: Shape (n,). d = -a b, in logits.
        guess: Shape (n,). c, the logistic of the variational mean of logit c; zeros but in the 3PL, and there too when
            the fit ended within `SVISettings.guess_steps`.
        theta: Shape (S,). Abilities of the calibration subjects, in logits.
        difficulty, difficulty_sd: Shape (n,). Mean and standard deviation of the variational Gaussian of b, in logits.
            An item that all got right, or wrong, bounds b on one side only: its b stays finite, means nothing but that,
            and shows by its standard deviation.
        converged: Whether the stopping rule ended the fit; False when the step limit did.
        interrupted: Whether Ctrl-C ended it; the state then comes from the window of highest ELBO (in the 3PL, with
            guessing if any such ended) or, within the first window, the mean so far.
        elbo: Shape (windows,). Evidence lower bound at the end of each window, in nats.
    """

    model: str
    discrimination: Array
    intercept: Array
    guess: Array
    theta: Array
    difficulty: Array
    difficulty_sd: Array
    converged: bool
    interrupted: bool
    steps: int
    elbo: Array
    seed: int


def fit_svi(
    scores: ArrayLike,
    *,
    model: str,
    settings: SVISettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> SVIFit:
    """Fit abilities and items by mean-field variational inference (AutoJudger, appendix B).

    Under a constant rate of learning and few draws the parameters wander about the optimum, and the ELBO of a step is
    noisier than the change that is to be seen. So the parameters are averaged over each window of steps (Polyak &
    Juditsky 1992; means as they are, standard deviations by their logarithms), and the ELBO of that average is
    estimated over all responses, with the same draws every time. Two windows then differ by their parameters alone. The
    fit has converged when the ELBO of two windows that follow each other differs by less than the tolerance, relative
    to the later one; the last average is the result. In the 3PL both windows have guessing.

    Args:
        scores: Shape (S, n). In [0, 1]; NaN where missing. A fraction r counts as r right and 1 - r wrong.
        model: 1PL: p = expit(theta - b); 2PL: p = expit(a (theta - b)); 3PL: p = c + (1 - c) expit(a (theta - b)).
        seed: Of the batches and of the draws; with a seed, device and version of torch the fit is always the same.
            Global generators, Pyro's parameter store and torch's number of threads are left as they were.
        progress: Takes the step and the ELBO at the end of each window.

    Raises:
        EstimationError: A rate of learning at which nothing finite comes out.
        UsageError: Pyro is not installed.
    """
    if settings is None:
        settings = SVISettings()
    responses = np.asarray(scores, dtype=np.float64)
    with _pyro(settings.device, seed):
        program = MeanField(
            responses,
            LATENTS[model],
            settings.priors,
            settings.start,
            adam={"lr": settings.learning_rate, "betas": settings.betas},
            particles=settings.particles * max(1, settings.batch // int((~np.isnan(responses)).sum())),
            evaluations=settings.evaluations,
            device=settings.device,
        )
        return _fit(program, model, settings, seed, progress)


@contextmanager
def _pyro(device: str, seed: int) -> Iterator[None]:
    """Isolate Pyro's parameter store, random numbers and torch's thread count, and restore them."""
    try:
        import pyro
        import torch
    except ImportError as error:
        raise UsageError(
            f"an engine of svi needs Pyro and torch, and {error.name or 'one of them'} is not installed: "
            "pip install pytest-adaptive-eval[pyro]"
        ) from error
    threads = torch.get_num_threads()
    # arrays of a step are too small for threads, and sums then have one order on every machine
    torch.set_num_threads(1)
    try:
        with (
            random_numbers(device, seed),
            pyro.get_param_store().scope(),
            pyro.validation_enabled(False),  # of shapes and supports at every step
        ):
            yield
    finally:
        torch.set_num_threads(threads)


@dataclass(slots=True)
class _State:
    """Progress of a fit."""

    steps: int = 0
    #: Steps of the present window, with the sums of its parameters; one assignment, safe under Ctrl-C.
    window: tuple[int, Parameters] = (0, {})
    highest: float = -math.inf
    best: Parameters = field(default_factory=dict)
    elbo: list[float] = field(default_factory=list)

    def average(self) -> Parameters:
        """Return the mean parameters of the present window."""
        count, sums = self.window
        return {name: (mean / count, log_sd / count) for name, (mean, log_sd) in sums.items()}

    def add(self, now: Parameters) -> None:
        """Add the parameters after a step."""
        count, sums = self.window
        if not count:
            sums = now
        else:
            # a new dictionary, since Ctrl-C may come between two names
            sums = {name: (sums[name][0] + mean, sums[name][1] + log_sd) for name, (mean, log_sd) in now.items()}
        self.window = (count + 1, sums)
        self.steps += 1

    def end_window(self, elbo: float) -> None:
        """Keep the parameters of the window if its ELBO is the highest."""
        parameters = self.average()
        if elbo > self.highest or len(parameters) > len(self.best):
            self.highest = elbo
            self.best = parameters
        self.elbo.append(elbo)


def _fit(program: MeanField, model: str, settings: SVISettings, seed: int, progress: Progress | None) -> SVIFit:
    """Run `fit_svi` within its own store."""
    batches = _batches(len(program.score), settings.batch, np.random.default_rng(seed))
    state = _State()
    delay = settings.guess_steps if "logit_c" in program.latents else 0
    settled = delay + 2 * settings.window  # the first two windows of the whole model
    converged = interrupted = False
    try:
        while state.steps < settings.steps and not converged:
            state.window = (0, {})
            program.fixed = frozenset()
            if state.steps < delay:
                program.fixed = frozenset({"logit_c"})
            for _ in range(min(settings.window, settings.steps - state.steps)):
                program.step(next(batches))
                state.add(program.parameters())
            elbo = program.elbo(state.average(), seed)
            if not math.isfinite(elbo):
                raise EstimationError(
                    f"after {state.steps} steps the ELBO is {elbo}: use a learning_rate below "
                    f"{settings.learning_rate:g}"
                )
            state.end_window(elbo)
            if state.steps >= settled:
                converged = abs(elbo - state.elbo[-2]) < settings.tolerance * abs(elbo)
            if progress is not None:
                progress(state.steps, elbo)
        parameters = state.average()
    except KeyboardInterrupt:
        interrupted = True
        converged = False
        parameters = state.best or state.average() or program.parameters()
    return _result(model, parameters, converged, interrupted, state, seed)


def _batches(total: int, most: int, rng: np.random.Generator) -> Iterator[Ints | None]:
    """Yield batches without end, each pass over the responses in a new order; None means all of them."""
    count = -(-total // most)
    while True:
        if count == 1:
            yield None
        else:
            yield from np.array_split(rng.permutation(total), count)


def _result(model: str, parameters: Parameters, converged: bool, interrupted: bool, state: _State, seed: int) -> SVIFit:
    """Return the point estimates."""
    from scipy.special import expit

    b, log_sd = parameters["b"]
    theta, _ = parameters["theta"]
    a = np.ones(len(b))
    if "log_a" in parameters:
        log_a, _ = parameters["log_a"]
        a = np.exp(log_a)
    c = np.zeros(len(b))
    if "logit_c" in parameters:
        logit_c, _ = parameters["logit_c"]
        c = np.asarray(expit(logit_c))
    return SVIFit(
        model=model,
        discrimination=a,
        intercept=-a * b,
        guess=c,
        theta=theta,
        difficulty=b,
        difficulty_sd=np.exp(log_sd),
        converged=converged,
        interrupted=interrupted,
        steps=state.steps,
        elbo=np.array(state.elbo),
        seed=seed,
    )


def _calibrate(scores: Array, settings: FitSettings, progress: Progress | None) -> Calibration:
    """Fit the items with the settings of a calibration."""
    options: dict[str, Any] = {"difficulty_prior": READINGS[settings.engine]}
    if settings.limit is not None:
        options["steps"] = settings.limit
    if settings.device is not None:
        options["device"] = settings.device
    svi_settings = SVISettings(**options)
    fit = fit_svi(scores, model=settings.model, settings=svi_settings, seed=settings.seed, progress=progress)
    return Calibration(
        settings.model,
        fit.discrimination[:, None],
        fit.intercept,
        fit.guess,
        fit.difficulty_sd,
        fit.converged,
        fit.interrupted,
        {"engine": settings.engine, "dimensions": 1, "iterations": fit.steps, "seed": settings.seed},
    )


#: What 10^3 is of the prior b ~ N(0, 10^3), by engine: as in AutoJudger's paper, and as in its code.
READINGS = {"svi": "variance", "svi-sd": "sd"}
_OPTIONS: dict[str, Any] = {"slow": True, "measure": "ELBO"}
REGISTERED = (
    FitEngine("svi", "svi is AutoJudger's, by Pyro", tuple(LATENTS), _calibrate, **_OPTIONS),
    FitEngine("svi-sd", "svi-sd has the wide prior of AutoJudger's code", tuple(LATENTS), _calibrate, **_OPTIONS),
)
