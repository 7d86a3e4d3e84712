"""The one loop's parts: ask, tell, result.

pytest, the command line and backtests all drive the same `Session`; it holds S
subjects at once, so that a backtest costs one vectorised pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.cat.selection import ROOMS, Attentive, LevelSelector, Openable, Selector, View, propose
from pytest_adaptive_eval.cat.selectors import SELECTORS, Random
from pytest_adaptive_eval.cat.stopping import (
    AnyOf,
    Budget,
    Decision,
    Progress,
    StandardError,
    StoppingRule,
    StopReason,
    resolve_budget,
)
from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.claims.classification import Cut
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import project
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import DESIGN, GATE_FLOOR, DesignLog, Proposal
from pytest_adaptive_eval.inference.noise import allowed, bound
from pytest_adaptive_eval.irt.estimation import ESTIMATORS, MAP, Estimate, Estimator
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["FIXED_FORM", "POLICIES", "Policy", "Session"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Subjects x items proposed for in one pass: arrays of 256 KiB, some of which a processor's cache holds.
CELLS = 1 << 15


@dataclass(frozen=True, slots=True)
class Policy:
    """How an interview is led.

    Parameters
    ----------
    selector : Selector
    floor : float
        Share of uniform draws, in [0, 1].
    budget : int or str
        A count or a share of the bank such as ``"15%"``.
    standard_error : float, optional
        Stop earlier when every dimension's standard error, in logits, is at most this.
    batch : int
        Items drawn and answered together.
    estimator : Estimator
    stop : {"budget", "decision", "level"}
        ``decision`` ends the interview when every gate is decided, by tests
        that hold at any moment; ``budget`` asks it all, for an interval that
        is narrower because nobody looked before; ``level`` asks a bank of
        levels, until its selector has enough, see `selection.LevelSelector`.
    """

    selector: Selector = SELECTORS["spread"]
    floor: float = 0.5
    budget: int | str = "15%"
    standard_error: float | None = None
    batch: int = 1
    estimator: Estimator = field(default_factory=MAP)
    stop: Literal["budget", "decision", "level"] = "budget"

    def __post_init__(self) -> None:
        if self.stop not in ("budget", "decision", "level"):
            raise ConfigError(f"stop is {self.stop!r}, expected 'decision' or 'budget', or 'level' for a task")
        if self.stop == "level" and self.levelled is None:
            raise ConfigError(f"stop is 'level', and the selector {self.selector.name!r} knows no levels")
        if not 0.0 <= self.floor <= 1.0:
            raise ConfigError(f"floor is {self.floor!r}, expected a share of uniform draws in [0, 1]")
        check_count("batch", self.batch)
        if self.standard_error is not None:
            StandardError(self.standard_error)

    @property
    def design_based(self) -> str:
        """Empty when a design-based interval is valid, else the sentence that says why not."""
        if self.standard_error is not None and self.stop != "decision":
            return (
                "the interview may stop at a standard error, which depends on the answers, and its interval is "
                "valid only at a fixed number of items: remove standard_error, or set stop to 'decision'"
            )
        if self.stop == "level":
            return (
                "a ladder asks its questions level by level, and stops by their answers: gate on auc or last_level, "
                "or draw from the task with the policy 'decide'"
            )
        if isinstance(self.selector, Random):
            return ""
        if self.floor < GATE_FLOOR:
            return (
                f"the selector {self.selector.name!r} leaves items no sure chance of being asked: set floor to at "
                f"least {GATE_FLOOR} (now {self.floor:g}) or use the policy 'decide'"
            )
        return ""

    @property
    def levelled(self) -> LevelSelector | None:
        """The selector of levels, where the interview goes level by level."""
        selector = self.selector
        return selector if self.stop == "level" and isinstance(selector, LevelSelector) else None

    def budget_on(self, bank: ItemBank) -> int:
        """Number of administrations on a bank.

        Raises
        ------
        ConfigError
            The policy does not go with the bank.
        """
        if self.selector.needs_calibration and not bank.calibrated:
            raise ConfigError(
                f"selector {self.selector.name!r} needs a calibrated bank, and {bank.name!r} has no parameters: use "
                "selector 'random', or calibrate the bank"
            )
        if self.standard_error is not None and not bank.calibrated:
            raise ConfigError(f"standard_error needs an ability, and the bank {bank.name!r} has no parameters")
        return resolve_budget(self.budget, len(bank))

    def key(self, bank: ItemBank) -> str:
        """What decides which items are asked on a bank, and when it stops; conformal tables are kept by it."""
        settings = {**self.to_json(), "budget": self.budget_on(bank), "stop": None}  # replays have no gates
        if (
            not isinstance(self.selector, Openable) and SELECTORS.get(self.selector.name) != self.selector
        ):  # of a plugin, or with other constants
            settings["selector"] = repr(self.selector)
        return ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)

    def rule(
        self, count: int, claims: tuple[Claim, ...] = (), family: int = 0, cuts: tuple[Cut, ...] = ()
    ) -> StoppingRule:
        """The stopping rule with a budget of `count` administrations, see `budget_on`, and gates as in `Session`."""
        rules: list[StoppingRule] = [Budget(count)]
        if self.standard_error is not None:
            rules.insert(0, StandardError(self.standard_error))
        if self.stop == "decision" and (claims or cuts):
            rules.insert(0, Decision(claims, family, cuts))
        if (selector := self.levelled) is not None:
            rules.insert(0, selector.stopping_rule(count))
        return rules[0] if len(rules) == 1 else AnyOf(tuple(rules))

    def to_json(self) -> dict[str, Any]:
        """Everything that decides which items are asked."""
        return {
            "selector": self.selector.name,
            "floor": self.floor,
            "budget": self.budget,
            "standard_error": self.standard_error,
            "batch": self.batch,
            "estimator": self.estimator.name,
            "stop": self.stop,
            **({"settings": dict(self.selector.to_json())} if isinstance(self.selector, Openable) else {}),
        }


#: The policy that asks every checkpoint the same items.
FIXED_FORM = "fixed-form"

#: The named policies for a bank: ``estimate`` ranks and estimates, one item at a time; ``decide`` feeds gates, and its
#: batches spare a model seven calls of eight for little: its draws are random, so that each answer steers the next ones
#: less.  ``fixed-form`` draws uniformly, once for all checkpoints.
POLICIES: dict[str, Policy] = {
    "estimate": Policy(selector=SELECTORS["variance"], floor=0.0, estimator=ESTIMATORS["map-wide"]()),
    "decide": Policy(budget="20%", batch=8, stop="decision"),
    FIXED_FORM: Policy(selector=SELECTORS["random"], floor=0.0, budget="20%", batch=8),
}


class Session:
    """An adaptive interview of `subjects` subjects over one bank.

    Parameters
    ----------
    bank : ItemBank
    policy : Policy
    seed : int or sequence of int
        Of the draws; with a sequence, one a subject.
    subjects : int
        S.  All are asked in step; one whose interview has ended is still
        proposed items, whose scores change nothing.
    claims : sequence of Claim
        What the gates claim; under a policy that stops at a decision the
        interview ends when all are decided.
    family : int
        Claims that denials are corrected for, see `betting.decide`.
    cuts : sequence of Cut
        Abilities to classify by, which end the interview likewise.
    baseline : Baseline, optional
        Of a paired gate: its scores predict the answers where they are known
        for the whole bank; else its draws are followed, as far as they go.
    decodings : int
        Answers that each score is the mean of, where decisions allow for the
        noise of decoding, see `noise.allowed`; 0 where they do not.  With one
        answer an item, for all that there may be, see `noise.bound`.

    Raises
    ------
    ConfigError
        The policy needs a calibrated bank, or its budget does not fit the bank.
    ValueError
        There is no subject, or not one seed a subject.

    Examples
    --------
    >>> session = Session(bank, POLICIES["decide"], seed=1)      # doctest: +SKIP
    >>> while (proposal := session.ask()) is not None:           # doctest: +SKIP
    ...     session.tell([[answer(bank.items[i]) for i in proposal.items[0]]])
    """

    def __init__(
        self,
        bank: ItemBank,
        policy: Policy,
        *,
        seed: int | Sequence[int] = 0,
        subjects: int = 1,
        claims: Sequence[Claim] = (),
        family: int = 0,
        cuts: Sequence[Cut] = (),
        baseline: Baseline | None = None,
        decodings: int = 0,
    ) -> None:
        self.decodings = decodings
        self.budget = policy.budget_on(bank)
        self.bank, self.policy = bank, policy
        self._followed = self._paired = None
        self._spent = StopReason.BUDGET
        if baseline is not None and baseline.complete:
            self._paired, self._flips = baseline, baseline.shapes(bank)
        elif baseline is not None:
            if baseline.draws < self.budget:
                self._spent, self.budget = StopReason.BASELINE, baseline.draws
            self._followed = baseline
        self.rule = policy.rule(self.budget, tuple(claims), family, tuple(cuts))
        self._sought = tuple(claim.sought for claim in claims if claim.sought is not None)
        self.subjects = subjects
        if isinstance(seed, int):
            seeds = np.random.SeedSequence(seed).spawn(subjects) if subjects > 1 else [np.random.SeedSequence(seed)]
        else:
            seeds = [np.random.SeedSequence(s) for s in seed]
        if not 1 <= subjects == len(seeds):
            raise ValueError(
                f"{subjects} subjects and {len(seeds)} seeds: give at least one subject, and a seed to each"
            )
        self._seeds = seeds
        self._rngs = [np.random.Generator(np.random.PCG64(s)) for s in seeds]
        #: What is opened at the first question.
        self._openable = policy.selector if isinstance(policy.selector, Openable) and self._followed is None else None
        self._attentive: Attentive | None = None
        self.asked = 0
        self.estimate = policy.estimator.prior(subjects, bank.dimensions)
        #: Reason and number of administrations at the stop, one a subject.
        self.stop: list[StopReason | None] = [None] * subjects
        self.stopped_at = np.zeros(subjects, dtype=np.int64)
        shape = (subjects, self.budget)
        self._items, self._scores = np.empty(shape, dtype=np.int64), np.empty(shape)
        self._design = np.empty((len(DESIGN), *shape))
        self._A = np.empty((*shape, bank.dimensions))
        self._d = np.empty(shape)
        self._c = np.empty(shape) if bank.asymptote is not None else None
        #: Abilities after each administration, shape (S, budget, D).
        self.trace = np.empty((*shape, bank.dimensions))
        self._pending: Proposal | None = None
        rows = subjects if self._openable is not None else min(subjects, max(1, CELLS // len(bank)))
        #: What steps are computed in, for as many subjects in one pass, see `View`.
        self._work = np.empty((ROOMS, rows, len(bank)))

    @classmethod
    def replayed(cls, bank: ItemBank, policy: Policy, log: DesignLog, stop: StopReason | None) -> Session:
        """The session of one subject at its end, from what was asked and answered.

        Parameters
        ----------
        bank : ItemBank
        policy : Policy
            Its estimator serves, and how it stops.
        log : DesignLog
        stop : StopReason or None
        """
        session = cls(bank, replace(policy, budget=max(len(log), 1)))
        if len(log):
            session._pending = Proposal(log.items[None], np.array([getattr(log, name) for name in DESIGN])[:, None])
            session.tell(log.scores[None])
        session.stop[0] = stop
        session.stopped_at[0] = session.asked
        return session

    @property
    def sequential(self) -> bool:
        """Whether only tests that hold at any moment are valid: for decisions, and after draws of unplanned number."""
        return self.policy.stop == "decision" or self._followed is not None

    @property
    def adapts_length(self) -> bool:
        """Whether the number of items depends on the answers."""
        return not isinstance(self.rule, Budget) or self._followed is not None

    @property
    def finished(self) -> bool:
        """Whether every subject's interview has ended."""
        return all(self.stop)

    def ask(self, k: int | None = None) -> Proposal | None:
        """The next items, at most `k` (default: the policy's batch), or None at the end.

        Asking again before telling gives the same proposal.

        Raises
        ------
        ValueError
            `k` is less than 1.
        """
        if self.finished:
            return None
        if self._pending is None:
            k = self.policy.batch if k is None else k
            if k < 1:
                raise ValueError(f"ask() for {k} items: ask for at least 1")
            k = min(k, self.budget - self.asked)
            if self._openable is not None:
                self._attentive, self._openable = self._openable.open(self.bank, self._seeds), None
            rows = self._work.shape[1]
            parts = [self._propose(slice(s, s + rows), k) for s in range(0, self.subjects, rows)]
            self._pending = parts[0] if len(parts) == 1 else Proposal.join(parts)
        return self._pending

    def _propose(self, some: slice, k: int) -> Proposal:
        if self._followed is not None:
            return self._followed.follow(self.asked, self._predicted(some), k)
        own = self.bank.calibrated and self._paired is None  # then computed when, and where, it is looked at
        predictions, items = None if own else self._predicted(some), self._items[some, : self.asked]
        estimate, work = self.estimate, self._work[:, : len(items)]
        view = View(self.bank, estimate.theta[some], estimate.covariance[some], predictions, items, work)
        if self._leans:
            variance = self._design[DESIGN.index("variance"), some, self.asked - 1] / self.asked
            view.lean_to(self._sought, self._scores[some, : self.asked], variance)
        return propose(self._attentive or self.policy.selector, view, k, self.policy.floor, self._rngs[some])

    @property
    def _leans(self) -> bool:
        """Whether the floor's draws are for a verdict in sight, see `selection`; the first ones cannot be."""
        policy, selector = self.policy, self.policy.selector
        decides = policy.stop == "decision" and bool(self._sought) and self.asked > 0
        return decides and selector.mode != "top" and not isinstance(selector, Random) and policy.floor > GATE_FLOOR

    def reason(self, item: int, subject: int = 0) -> str:
        """Why an item of the open proposal is asked, in words for the report."""
        policy = self.policy
        evenly = "for the verdict in sight" if self._leans else "uniformly"
        if self._attentive is not None:
            own = self._attentive.reason(subject, item)
            if not own and policy.floor == 0:
                return f"next behind what {policy.selector.name} chose"
            return own or f"drawn {evenly}, as {policy.floor:.0%} of the questions are"
        if policy.selector.mode == "top" and policy.floor == 0:
            return f"highest {policy.selector.name.removeprefix('maximum-')}"
        if policy.selector.name == "random":
            return "drawn uniformly"
        return f"drawn by {policy.selector.name}, {policy.floor:.0%} {evenly}"

    def close(self) -> None:
        """Give back what a selector loaded; the answers stay."""
        if self._attentive is not None:
            self._attentive.close()

    @property
    def account(self) -> dict[str, Any]:
        """What a selector that remembers says of the interview, see `Attentive.account`."""
        return {} if self._attentive is None else dict(self._attentive.account())

    def _predicted(self, some: slice) -> Array:
        items, scores = self.answers
        model = self._by_bank(some) if self.bank.calibrated else None
        if self._paired is not None:
            return self._paired.predicted(self._flips, items[some], scores[some], model)
        if model is None:  # all items alike, after as many right and wrong answers as were met and one more of each
            right, scored = np.nansum(scores[some], axis=1), (~np.isnan(scores[some])).sum(axis=1)
            model = np.repeat(((right + 1.0) / (scored + 2.0))[:, None], len(self.bank), axis=1)
        return model

    @property
    def predicted(self) -> Array:
        """Predicted score of every item by the bank at the present abilities, shape (S, n)."""
        return self._by_bank(slice(None))

    def _by_bank(self, some: slice) -> Array:
        return self.bank.probability(self.estimate.theta[some])

    def tell(self, scores: ArrayLike) -> None:
        """Take the scores (S, k) of the last proposal, in [0, 1], NaN where there is none.

        Where a batch was cut off, those of its first items: the others then count as not drawn.

        Raises
        ------
        ValueError
            No proposal is open, or the shape or a value is wrong.
        """
        proposal = self._pending
        if proposal is None:
            raise ValueError("tell() without ask(): there is no open proposal")
        given = np.asarray(scores, dtype=np.float64)
        if given.ndim != 2 or len(given) != self.subjects or not 1 <= given.shape[1] <= proposal.items.shape[1]:
            raise ValueError(f"scores have shape {given.shape}, the proposal {proposal.items.shape}")
        if np.fmin.reduce(given, axis=None) < 0 or np.fmax.reduce(given, axis=None) > 1:
            raise ValueError("scores lie in [0, 1]; write NaN for an answer without a score")
        self._pending = None
        k = given.shape[1]
        new = slice(self.asked, self.asked + k)
        told = proposal if k == proposal.items.shape[1] else proposal[:k]
        items = told.items
        self._items[:, new], self._scores[:, new], self._design[:, :, new] = items, given, told.design
        self._A[:, new] = self.bank.discrimination.take(items, axis=0)
        self._d[:, new] = self.bank.intercept.take(items)
        if self._c is not None:
            self._c[:, new] = self.bank.guess.take(items)
        if self._attentive is not None:
            self._attentive.told(items, given)
        self.asked += k
        if self.bank.calibrated:
            self.estimate = self._estimated()
        self.trace[:, new] = self.estimate.theta[:, None, :]
        progress = Progress(self.asked, self.estimate, self.logs)
        for s, reason in enumerate(self.rule.check(progress)):
            if reason:
                reason = self._spent if reason is StopReason.BUDGET else reason
                self.end(StopReason.EXHAUSTED if self.asked == len(self.bank) else reason, s)

    def _estimated(self) -> Estimate:
        """The estimate after the answers so far; that of an ended interview stays."""
        t, old = self.asked, self.estimate
        c = None if self._c is None else self._c[:, :t]
        new = self.policy.estimator.estimate(self._scores[:, :t], self._A[:, :t], self._d[:, :t], c, old)
        if not any(self.stop):
            return new
        ended = self.stopped
        return Estimate(
            np.where(ended[:, None], old.theta, new.theta),
            np.where(ended[:, None, None], old.covariance, new.covariance),
            np.where(ended, old.converged, new.converged),
        )

    @property
    def answers(self) -> tuple[Ints, Array]:
        """Items asked so far and their scores, NaN where there is none, both of shape (S, asked)."""
        return self._items[:, : self.asked], self._scores[:, : self.asked]

    def projection(self) -> tuple[Array, Array]:
        """Return every subject's projected accuracy and its standard error, both of shape (S,); see `project`."""
        counts = np.where(self.stopped, self.stopped_at, self.asked)
        return project(self.bank, self.estimate, *self.answers, counts)

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """Whether each subject's interview has ended, shape (S,)."""
        return np.array([reason is not None for reason in self.stop])

    def end(self, reason: StopReason, subject: int = 0) -> None:
        """End a subject's interview now, for a reason from outside; one that has ended keeps its reason."""
        if self.stop[subject] is None:
            self.stop[subject] = reason
            self.stopped_at[subject] = self.asked

    def log(self, subject: int = 0) -> DesignLog:
        """The administrations of one subject up to its stop."""
        t = int(self.stopped_at[subject]) if self.stop[subject] else self.asked
        items, scores = self._items[subject, :t].copy(), self._scores[subject, :t].copy()
        design = dict(zip(DESIGN, self._design[:, subject, :t].copy(), strict=True))
        noise = float(self._noise(scores[None])[0])
        return DesignLog(items=items, scores=scores, **design, size=len(self.bank), noise=noise)

    def logs(self) -> DesignLog:
        """Everything asked so far of all subjects, arrays of shape (S, asked), not copied."""
        items, scores = self.answers
        design = dict(zip(DESIGN, self._design[:, :, : self.asked], strict=True))
        return DesignLog(items=items, scores=scores, **design, size=len(self.bank), noise=self._noise(scores))

    def _noise(self, scores: Array) -> Array:
        """What decoding may add to the variance of scores of shape (s, t), shape (s,); see the class."""
        n = self.decodings
        if not n or not scores.size:
            return np.zeros(len(scores))
        most = bound(scores)
        if n > 1:  # answers in [0, 1] of mean s vary by s (1 - s) at most, and by just that if they are right or wrong
            each = scores * (1.0 - scores) * n / (n - 1)
            most = np.minimum(most, [allowed(row[~np.isnan(row)]) for row in each])
        return np.asarray(most / n)
