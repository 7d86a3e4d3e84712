"""Sessions of adaptive tests: ask for items, record their scores.

pytest, the command line and backtests use the same `Session`. It drives the interviews of S subjects at once, so a
backtest costs one vectorised pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.cat.assisted import Assistance
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selection import BUFFERS, Selector, SelectorSession, StatefulSelector, View, propose
from pytest_adaptive_eval.cat.selectors import Cluster, Form, Random
from pytest_adaptive_eval.cat.stopping import AnyOf, Budget, Decision, SessionProgress, StopReason
from pytest_adaptive_eval.claims.earlier import EarlierAnswers
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import project
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import DESIGN, GATE_FLOOR, DesignLog, Proposal
from pytest_adaptive_eval.inference.noise import allowed_variance, variance_bound
from pytest_adaptive_eval.irt.estimation import Estimate
from pytest_adaptive_eval.irt.person_fit import refitted
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Bools, Ints

CELLS = 1 << 15  #: Subjects x items per pass: arrays of 256 KiB, several of which fit into a processor's cache.
#: Open items at most while draws do not need their scores, and otherwise at first and at most: the chances of a draw
#: rest on the scores told before it, and lose little by the latest ones.
AHEAD, FIRST_AHEAD, SCORED_AHEAD = 512, 16, 128
CORRECTS = "to correct the bank's predictions"  #: Reason for these draws.
UNIFORM = Random()  #: Selector of the draws that correct a predictor.
NO_VALUES: Mapping[str, Array] = MappingProxyType({})  #: Answers of which nothing but their scores is known.


class Session:
    """Adaptive interview of `subjects` subjects over one bank.

    Args:
        seed: Seed of the draws; with a sequence, one per subject.
        subjects: S. All get items in step. A subject whose interview has ended still gets proposals, whose scores have
            no effect.
        claims: Claims of the gates; under a policy that stops at a decision the interview ends when all are decided.
        family: Number of claims for which denials are corrected, see `betting.decide`.
        baseline: Baseline of a paired gate. If it has scores for the whole bank, these predict the answers; otherwise
            its draws are repeated while they last.
        earlier: Answers of an earlier subject, which predict the answers of this one. They need a seed of their own,
            see `claims.earlier`. A baseline takes their place.
        decodings: Answers per score, if decisions allow for decoding noise, see `noise.allowed_variance`; 0 if they do
            not. With one answer per item they allow for the largest possible noise, see `noise.variance_bound`.
        designed: Whether to log the design of the draws, see `Proposal`, for design-based intervals and decisions.
        take_all: Items that are asked first, whatever the draws, see `DesignLog`. A baseline whose draws are repeated
            has its own.

    Raises:
        ConfigError: The policy needs a calibrated bank, its budget does not fit the bank or is smaller than `take_all`,
            a ladder is to ask items first, or a baseline whose draws are repeated did not ask them first.
        ValueError: Subjects are missing, or their number differs from the seeds'.

    Examples:
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
        baseline: Baseline | None = None,
        earlier: EarlierAnswers | None = None,
        decodings: int = 0,
        designed: bool = True,
        take_all: Sequence[int] = (),
    ) -> None:
        self.decodings, self.designed = decodings, designed
        policy = policy if baseline is not None else policy.drawing
        self.bank, self.policy, self.subjects = bank, policy, subjects
        self.budget = policy.budget_on(bank)
        self._repeated: Baseline | None = None
        self._paired: Baseline | None = None
        self._spent = StopReason.BUDGET
        #: How the bank's predictor assists, or None.
        self.assistance: Assistance | None = None
        if baseline is None:
            self.assistance = policy.assistance(bank)
        if baseline is not None and baseline.complete:
            self._paired, earlier = baseline, baseline
        elif baseline is not None:
            self._repeated = baseline
            if baseline.draws < self.budget:
                self._spent, self.budget = StopReason.BASELINE, baseline.draws
        self._earlier = earlier
        if earlier is not None:
            self._flips = earlier.shapes(bank)
        #: Number of administrations at which bets aim, fixed here, before the first draw; see `DesignLog`.
        self.horizon = self.budget
        self.earlier: tuple[int, ...] = ()  #: Horizons of earlier runs, ascending.
        #: Whether it is judged there alone, see `DesignLog`.
        self.fixed = not self.sequential
        self.awaited: int | None = None  #: See `DesignLog`.
        self._paths: dict[tuple[float, ...], Array] = {}  #: See `DesignLog`.
        self.take_all = self._checked_first(take_all)
        if self.assistance is not None:
            self.assistance.take_all = len(self.take_all)
        #: Place from which the design of the bank's predictor draws uniformly; the budget without such draws.
        self.uniform_from = self.budget if self.assistance is None else self.assistance.chosen
        self.rule = policy.rule(self.budget, tuple(claims), family)
        if isinstance(self.rule, AnyOf):
            self._rules = self.rule.rules
        else:
            self._rules = (self.rule,)
        self._claimed_sums = tuple(claim.sought for claim in claims if claim.sought is not None)
        self._seeds = _seed_sequences(seed, subjects)
        self._rngs = [np.random.Generator(np.random.PCG64(s)) for s in self._seeds]
        # checked once, because isinstance of a protocol takes as long as a tenth of a step
        selector = policy.selector if self._repeated is None else None
        self._unopened: StatefulSelector | None = None
        if isinstance(selector, StatefulSelector):
            self._unopened = selector
        self._selector_session: SelectorSession | None = None
        #: Numbers of items drawn, and of those whose scores are told; the items between are open.
        self.drawn = self.asked = 0
        self._designed = 0  #: Number of draws with their design: that of uniform draws ahead is set at their turn.
        self.estimate = policy.estimator.prior(subjects, bank.dimensions)
        #: Reason and number of administrations at the stop, one per subject.
        self.stop: list[StopReason | None] = [None] * subjects
        self.stopped_at = np.zeros(subjects, dtype=np.int64)
        shape = (subjects, self.budget)
        self._items, self._scores = np.empty(shape, dtype=np.int64), np.empty(shape)
        self._answers: dict[str, Array] = {}  #: Further values of the answers, shape (S, budget, n); see `DesignLog`.
        self._design = np.empty((len(DESIGN), *shape))
        self._A = np.empty((*shape, bank.dimensions))
        self._d = np.empty(shape)
        self._c: Array | None = None
        if bank.asymptote is not None:
            self._c = np.empty(shape)
        self.trace = np.empty((*shape, bank.dimensions))  #: Abilities after each administration, shape (S, budget, D).
        #: Work buffers of `View`, for as many subjects as fit into one pass; a stateful selector receives all subjects.
        if self._unopened is not None:
            rows = subjects
        else:
            rows = min(subjects, max(1, CELLS // len(bank)))
        self._work = np.empty((BUFFERS, rows, len(bank)))

    def _checked_first(self, items: Sequence[int]) -> Ints:
        """Return the items that are asked first, if the policy and a repeated baseline allow it."""
        first = np.array(items, dtype=np.int64)
        if len(first) and self.policy.levelled is not None:
            raise ConfigError("a ladder asks items level by level, so none can be asked first: use the policy 'decide'")
        if self._repeated is not None and (log := self._repeated.log) is not None:
            before = log.items[: log.take_all]
            if not set(items) <= set(before.tolist()):
                raise ConfigError(
                    f"the baseline {self._repeated.name} answered some items only, and its draws are repeated: items "
                    "that are asked first must have been asked first of it too; record it with the same ones, or over "
                    'the whole bank (budget = "100%")'
                )
            first = before
        if len(first) > self.budget:
            raise ConfigError(
                f"budget is {self.budget}, and {len(first)} items are asked first, whatever the draws: raise it"
            )
        return first

    def go_on_from(self, budgets: Sequence[int]) -> None:
        """Go on with the bets of earlier runs that had some of these draws, with the same seed, before any score.

        So a test that is repeated with growing budgets keeps its error rate.

        Args:
            budgets: Budgets of the earlier runs.
        """
        self.earlier = tuple(sorted({count for count in budgets if 0 < count < self.horizon}))

    def shortened(self, budget: int) -> Session:
        """Return a copy without claims that has a smaller budget, with as much of the open proposal as that allows.

        It is the state of a session that was opened with that budget, if the draws depend on the items before them
        alone, see `draws_ahead`.
        """
        short = copy(self)
        short.policy, short.budget, short.horizon = replace(self.policy, budget=budget), budget, budget
        short._paths, short._answers = {}, {}
        short.rule = short.policy.rule(budget)
        short.stop, short.stopped_at = list(self.stop), self.stopped_at.copy()
        for name in ("_items", "_scores", "_A", "_d", "trace"):
            setattr(short, name, getattr(self, name)[:, :budget].copy())
        short._design = self._design[:, :, :budget].copy()
        if self._c is not None:
            short._c = self._c[:, :budget].copy()
        short.drawn, short._designed = min(self.drawn, budget), min(self._designed, budget)
        return short

    def remaining(self, ahead: Sequence[float] = ()) -> int:
        """Return how many further scores the first subject's interview is expected to need.

        It rests on the growth of the evidence so far and decides what is asked ahead; no result depends on it.

        Args:
            ahead: Known scores of the first open items; others are NaN.
        """
        most = self.budget - self.asked
        decision = self._decision
        if decision is None or self.finished:
            return most
        if decision.claims:
            expected = self.budget / 2.0
        else:
            expected = float(self.asked + self.policy.batch)
        if not self.asked + len(ahead):
            return min(most, math.ceil(expected))
        log = self._looked_ahead(ahead)
        # values of further answers are taken to be those so far, again and again
        answers = {name: np.resize(values[: self.asked], values.shape) for name, values in log.answers.items()}
        scores = np.where(np.isnan(log.scores), log.predictions, log.scores)
        log = replace(log, scores=scores, noise=0.0, answers=answers)
        return min(most, len(ahead) + decision.remaining(log, expected))

    def settled(self, ahead: Sequence[float]) -> bool:
        """Return whether all claims are decided alike whatever the scores that are missing from the first open items.

        The evidence for a sum of at least a threshold grows with every score, and that for less falls. So verdicts that
        agree where all missing scores are 0 and where all are 1 agree for any.

        Args:
            ahead: As of `remaining`.
        """
        decision = self._decision
        if decision is None or not len(ahead) or self.decodings:
            return False
        log = self._looked_ahead(ahead)
        least, most = (
            decide(log.with_missing_as(score), decision.claims, decision.family).outcome for score in (0.0, 1.0)
        )
        return bool((least == most).all() and (least != 0).all())

    @property
    def decides(self) -> bool:
        """Whether the interview ends when all claims are decided."""
        return self._decision is not None

    @property
    def _decision(self) -> Decision | None:
        for rule in self._rules:
            if isinstance(rule, Decision):
                return rule
        return None

    def _looked_ahead(self, ahead: Sequence[float]) -> DesignLog:
        """Return the first subject's log with some open items."""
        stop = self.asked + len(ahead)
        design = self._design[:, 0, :stop].copy()
        if stop > self._designed:
            design[:, self._designed :] = self._uniform_design(slice(self._designed, stop))[:, 0]
        scores = np.concatenate([self._scores[0, : self.asked], np.asarray(ahead, dtype=np.float64)])
        noise = float(self._noise(scores[None])[0])
        answers = {name: values[0, :stop] for name, values in self._answers.items()}
        return self._log(self._items[0, :stop], scores, dict(zip(DESIGN, design, strict=True)), noise, answers)

    @property
    def sequential(self) -> bool:
        """Whether only anytime-valid tests are valid: for decisions, and after draws of unplanned number."""
        ends_by_answers = self.policy.stop not in ("budget", "level")  # a ladder's draws feed no test
        return ends_by_answers or self._repeated is not None

    @property
    def adapts_length(self) -> bool:
        """Whether the number of items depends on the answers."""
        return not isinstance(self.rule, Budget) or self._repeated is not None

    def forget_earlier(self) -> None:
        """Predict by the bank from here on: the earlier answers are not of another subject in the same form."""
        self._earlier = None

    @property
    def finished(self) -> bool:
        """Whether every subject's interview has ended."""
        return all(self.stop)

    def ask(self, k: int | None = None) -> Proposal | None:
        """Return the next open items, None at the end. A batch is drawn if none is open.

        Args:
            k: Most items to return, at least 1 (default: the policy's batch).
        """
        k = self.policy.batch if k is None else k
        if self.finished:
            return None
        if self.drawn == self.asked:  # a whole batch, so that the draws do not depend on when scores are told
            self._draw(max(k, self.policy.batch))
        if self._designed == self.asked:  # uniform draws ahead: their predictions are those of now
            new = slice(self.asked, min(self.asked + max(k, self.policy.batch), self.drawn))
            self._design[:, :, new], self._designed = self._uniform_design(new), new.stop
        part = slice(self.asked, min(self.asked + k, self._designed))
        return Proposal(self._items[:, part].copy(), self._design[:, :, part].copy())

    def draw_ahead(self) -> None:
        """Draw items before the scores of the open ones are recorded, as many as the policy allows here.

        The probabilities of a draw rest on the scores recorded before it. So bets on the draws stay valid in the order
        of the draws, see `inference.betting`. How many are drawn depends on the number of recorded scores, not on who
        waits for which answer: the draws are the same at every pace.
        """
        batch = self.policy.batch
        most = AHEAD
        if not self.uniform:
            most = min(max(FIRST_AHEAD, 2 * batch) + self.asked // 2, SCORED_AHEAD)
        while 1 < batch <= most - (self.drawn - self.asked) and not self.finished and self.drawn < self.budget:
            if self.drawn > self.asked and self._needs_scores:
                break
            self._draw(batch)

    def never_drawn(self, most: int) -> list[int]:
        """Return items, `most` at most, that are not drawn, whatever the scores; none where that is unknown."""
        if not self.uniform or self.budget == len(self.bank) or self.budget > AHEAD:
            return []
        ahead = self.shortened(self.budget)
        ahead._rngs = deepcopy(self._rngs)
        while ahead.drawn < ahead.budget:
            ahead._draw(self.policy.batch)
        drawn = set(ahead.drawn_items.tolist())
        return list(islice((index for index in range(len(self.bank)) if index not in drawn), most))

    @property
    def drawn_items(self) -> Ints:
        """The first subject's items in the order of their draws, shape (drawn,)."""
        return self._items[0, : self.drawn].copy()

    def _draw(self, k: int) -> None:
        """Draw up to `k` items."""
        k = min(1 if getattr(self.policy.selector, "one_by_one", False) else k, self.budget - self.drawn)
        if self.drawn < self.uniform_from:
            k = min(k, self.uniform_from - self.drawn)
        if self._unopened is not None:
            self._selector_session, self._unopened = self._unopened.open(self.bank, self._seeds), None
        if self.drawn < len(self.take_all):
            proposal = self._first_items(min(k, len(self.take_all) - self.drawn))
        elif self._selector_session is not None:
            proposal = self._propose(slice(0, self.subjects), k)
        else:
            edges = [*range(0, self.subjects, self._work.shape[1]), self.subjects]  # passes of that many rows
            parts = [self._propose(slice(low, high), k) for low, high in pairwise(edges)]
            if len(parts) == 1:
                proposal = parts[0]
            else:
                proposal = Proposal.join(parts)
        self._open(proposal, designed=not self._is_ahead)

    @property
    def _is_ahead(self) -> bool:
        """Whether the next item is drawn before its design is computed, which uniform draws do not need."""
        return self.designed and self.uniform and self.drawn >= min(self.asked + 1, len(self.take_all))

    @property
    def uniform(self) -> bool:
        """Whether no score changes the chances of a draw."""
        chosen = self._repeated is not None or self.assistance is not None
        return not chosen and isinstance(self.policy.selector, Random)

    def _uniform_design(self, new: slice) -> Array:
        """Return the design of uniform draws at some places by the scores so far, shape (6, S, k)."""
        p = self._predicted(slice(None))
        items = self._items[:, : new.stop]
        undrawn = len(self.bank) - np.arange(new.start, new.stop)
        rest, variance = (
            column.sum(axis=1, keepdims=True) - np.take_along_axis(column, items, axis=1).cumsum(axis=1)[:, new] + now
            for column in (p, p * (1.0 - p))
            for now in (np.take_along_axis(column, items[:, new], axis=1),)
        )
        remaining = np.ones(p.shape, dtype=bool)
        np.put_along_axis(remaining, items[:, : new.start], False, axis=1)
        most = np.where(remaining, p, 0.0).max(axis=1, keepdims=True)
        least = np.where(remaining, p, 1.0).min(axis=1, keepdims=True)
        chosen = np.take_along_axis(p, items[:, new], axis=1)
        down = most * undrawn[0]
        up = (1.0 - least) * undrawn[0]
        return np.stack(np.broadcast_arrays(1.0 / undrawn, chosen, rest, variance * undrawn, down, up))

    @property
    def _needs_scores(self) -> bool:
        """Whether the next draw needs the scores of all items before: by its selector."""
        if self._repeated is not None or self.drawn < len(self.take_all):
            return False
        selector = self._selector(self.drawn)
        if selector is self._selector_session:
            return True
        return not isinstance(selector, Random | Form) and selector.mode == "top"

    def _open(self, proposal: Proposal, *, designed: bool = True) -> None:
        """Add drawn items to the open ones."""
        new = slice(self.drawn, self.drawn + proposal.items.shape[1])
        self._items[:, new], self._design[:, :, new] = proposal.items, proposal.design
        self.drawn = new.stop
        if designed:
            self._designed = new.stop

    def _first_items(self, k: int) -> Proposal:
        """Return the next `k` items of `take_all`, whose propensity is 1."""
        new = slice(self.drawn, self.drawn + k)
        self._items[:, new] = items = np.tile(self.take_all[new], (self.subjects, 1))
        design = self._uniform_design(new)
        if self.designed:
            design[0], design[4], design[5] = 1.0, design[1], 1.0 - design[1]
        else:
            design[[0, 2, 3, 4, 5]] = np.nan
        return Proposal(items, design)

    def _selector(self, position: int) -> Selector:
        """Return the selector of the item at a place."""
        if position >= self.uniform_from:
            return UNIFORM
        if self.assistance is not None:
            return self.assistance.first
        return self._selector_session or self.policy.selector

    def _propose(self, subjects: slice, k: int) -> Proposal:
        """Draw the next `k` items of a slice of the subjects."""
        if self._repeated is not None:
            return self._repeated.follow(self.drawn, self._predicted(subjects), k)
        # the view computes the bank's predictions on access
        lazy = self.bank.calibrated and self._earlier is None and not self._is_refitted
        if lazy:
            predictions = None
        else:
            predictions = self._predicted(subjects)
        items = self._items[subjects, : self.drawn]
        estimate = self.estimate
        work = self._work[:, : len(items)]
        theta = estimate.theta[subjects]
        covariance = estimate.covariance[subjects]
        view = View(self.bank, theta, covariance, predictions, items, work, budget=self.budget)
        if self._draws_for_claims:
            variance = self._design[DESIGN.index("variance"), subjects, self.asked - 1] / self.asked
            view.set_claim_probability(self._claimed_sums, self._scores[subjects, : self.asked], variance)
        designed = self.designed and not self._is_ahead
        return propose(self._selector(self.drawn), view, k, self.policy.floor, self._rngs[subjects], designed=designed)

    @property
    def _draws_for_claims(self) -> bool:
        """Whether the floor's draws depend on the claims, see `selection`; the first ones cannot."""
        return self._is_refitted and self.asked > 0

    @property
    def _is_refitted(self) -> bool:
        """Whether other predictions compete with the bank's, see `refitted`: from the first draw on, as a hedge."""
        policy = self.policy
        selector = self.policy.selector
        leans = policy.stop == "decision" or self._paired is not None
        decides = leans and bool(self._claimed_sums)
        return decides and selector.mode != "top" and not isinstance(selector, Random) and policy.floor > GATE_FLOOR

    def reason(self, item: int, subject: int = 0) -> str:
        """Return the reason for an open item, in words for the report."""
        if item in self.take_all:
            return "asked first, whatever the draws"
        drawn = self._items[subject, self.asked : self.drawn].tolist()
        policy = self.policy
        selector = self._selector(self.asked + drawn.index(item))
        if selector is UNIFORM:
            return f"drawn uniformly, {CORRECTS}"
        evenly = "for the verdict in sight" if self._draws_for_claims else "uniformly"
        if self._selector_session is not None:
            reason = self._selector_session.reason(subject, item)
            if not reason and policy.floor == 0:
                return f"next behind what {policy.selector.name} chose"
            return reason or f"drawn {evenly}, as {policy.floor:.0%} of the questions are"
        if isinstance(selector, Form):
            return "next of the bank's form"
        if isinstance(selector, Cluster) and policy.floor == 0:
            return "from the middle of a cluster of items"
        if selector.mode == "top" and policy.floor == 0:
            return f"highest {selector.name.removeprefix('maximum-')}"
        if isinstance(selector, Random):
            return "drawn uniformly"
        if policy.floor:
            share = f", {policy.floor:.0%} {evenly}"
        else:
            share = ""
        return f"drawn by {selector.name}{share}"

    def close(self) -> None:
        """Release the resources of the selector; the answers stay."""
        if self._selector_session is not None:
            self._selector_session.close()

    @property
    def account(self) -> dict[str, Any]:
        """Account of a stateful selector, see `SelectorSession.account`; empty without one."""
        if self._selector_session is None:
            return {}
        return dict(self._selector_session.account())

    def _predicted(self, subjects: slice) -> Array:
        """Return the predicted score of every item for a slice of the subjects."""
        items, scores = self.answers
        items = items[subjects]
        scores = scores[subjects]
        model = None
        if self.bank.calibrated:
            model = self._by_bank(subjects)
        if self._paired is None:
            model = self._refitted(model, items, scores)
        if self._earlier is not None:
            return self._earlier.predicted(self._flips, items, scores, model)
        assert model is not None
        return model

    def _refitted(self, model: Array | None, items: Ints, scores: Array) -> Array:
        """Return the bank's predictions after the answers so far; without a bank's, all items alike."""
        if model is None:  # the mean score, with one right and one wrong answer added
            right = np.nansum(scores, axis=1)
            scored = (~np.isnan(scores)).sum(axis=1)
            return np.repeat(((right + 1.0) / (scored + 2.0))[:, None], len(self.bank), axis=1)
        if self._is_refitted:
            return refitted(model, items, scores)
        return model

    @property
    def predicted(self) -> Array:
        """Predicted score of every item by the bank at the present abilities, shape (S, n)."""
        return self._by_bank(slice(None))

    def _by_bank(self, subjects: slice) -> Array:
        return self.bank.probability(self.estimate.theta[subjects])

    def tell(self, scores: ArrayLike, values: Mapping[str, Array] = NO_VALUES) -> None:
        """Record the scores (S, k) of the first k open items, in [0, 1], NaN where missing.

        Args:
            values: Further values of their answers by name, shape (S, k, n), see `DesignLog.answers`.

        Raises:
            ValueError: No item is open, or the shape or a value is wrong.
        """
        if self.drawn == self.asked:
            raise ValueError("tell() without ask(): no item is open")
        checked = self._checked(scores)
        k = checked.shape[1]
        if self._designed < self.asked + k:
            raise ValueError(f"{k} scores for {self._designed - self.asked} items: ask() returns the next ones")
        new = slice(self.asked, self.asked + k)
        items, self._scores[:, new] = self._items[:, new], checked
        for name, new_values in values.items():
            missing = np.full((*self._scores.shape, new_values.shape[-1]), np.nan)
            self._answers.setdefault(name, missing)[:, new] = new_values
        self._A[:, new] = self.bank.discrimination.take(items, axis=0)
        self._d[:, new] = self.bank.intercept.take(items)
        if self._c is not None:
            self._c[:, new] = self.bank.guess.take(items)
        if self._selector_session is not None:
            self._selector_session.record_scores(items, checked)
        self.asked += k
        if self.bank.calibrated:
            self.estimate = self._estimated()
        self.trace[:, new] = self.estimate.theta[:, None, :]
        if self.asked < len(self.take_all):
            return
        progress = SessionProgress(self.asked, self.estimate, self.logs)
        for s, reason in enumerate(self.rule.check(progress)):
            if reason:
                reason = self._spent if reason is StopReason.BUDGET else reason
                self.end(StopReason.EXHAUSTED if self.asked == len(self.bank) else reason, s)

    def _checked(self, scores: ArrayLike) -> Array:
        """Return the scores as an array of a valid shape and range."""
        values = np.asarray(scores, dtype=np.float64)
        count = self.drawn - self.asked
        if values.ndim != 2 or len(values) != self.subjects or not 1 <= values.shape[1] <= count:
            raise ValueError(f"scores have shape {values.shape}, the open items {(self.subjects, count)}")
        if np.fmin.reduce(values, axis=None) < 0 or np.fmax.reduce(values, axis=None) > 1:
            raise ValueError("scores lie in [0, 1]; write NaN for an answer without a score")
        return values

    def _estimated(self) -> Estimate:
        """Return the estimate after the answers so far; that of an ended interview stays."""
        t, old = self.asked, self.estimate
        scores = self._scores[:, :t]
        A = self._A[:, :t]
        d = self._d[:, :t]
        c = None if self._c is None else self._c[:, :t]
        new = self.policy.estimator.estimate(scores, A, d, c, old)
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
        """Administered items and their scores, NaN where missing, both of shape (S, asked)."""
        return self._items[:, : self.asked], self._scores[:, : self.asked]

    def projection(self) -> tuple[Array, Array]:
        """Return every subject's projected accuracy and its standard error, both of shape (S,).

        See `Assistance.estimate` where the bank's predictor assists, and `project` otherwise.
        """
        counts = np.where(self.stopped, self.stopped_at, self.asked)
        if self.assistance is not None:
            return self.assistance.estimate(*self.answers, counts)
        return project(self.bank, self.estimate, *self.answers, counts)

    @property
    def stopped(self) -> Bools:
        """Whether each subject's interview has ended, shape (S,)."""
        return np.array([reason is not None for reason in self.stop])

    def end(self, reason: StopReason, subject: int = 0) -> None:
        """End a subject's interview for a given reason; an ended one keeps its reason."""
        if self.stop[subject] is None:
            self.stop[subject] = reason
            self.stopped_at[subject] = self.asked

    def log(self, subject: int = 0) -> DesignLog:
        """Return the administrations of one subject up to its stop."""
        if self.stop[subject]:
            t = int(self.stopped_at[subject])
        else:
            t = self.asked
        items = self._items[subject, :t].copy()
        scores = self._scores[subject, :t].copy()
        design = dict(zip(DESIGN, self._design[:, subject, :t].copy(), strict=True))
        noise = float(self._noise(scores[None])[0])
        answers = {name: values[subject, :t].copy() for name, values in self._answers.items()}
        return self._log(items, scores, design, noise, answers)

    def logs(self) -> DesignLog:
        """Return all administrations of all subjects, arrays of shape (S, asked), not copied."""
        items, scores = self.answers
        design = dict(zip(DESIGN, self._design[:, :, : self.asked], strict=True))
        answers = {name: values[:, : self.asked] for name, values in self._answers.items()}
        return self._log(items, scores, design, self._noise(scores), answers)

    def _log(
        self,
        items: Ints,
        scores: Array,
        design: dict[str, Array],
        noise: float | Array,
        answers: dict[str, Array],
    ) -> DesignLog:
        first = min(len(self.take_all), items.shape[-1])
        columns: dict[str, Any] = {"items": items, "scores": scores, **design, "noise": noise}
        plan: dict[str, Any] = {"horizon": self.horizon, "earlier": self.earlier, "fixed": self.fixed}
        plan |= {"awaited": self.awaited, "take_all": first, "paths": self._paths, "answers": answers}
        return DesignLog(**columns, size=len(self.bank), **plan)

    def _noise(self, scores: Array) -> Array:
        """Return the variance that decoding may add to scores of shape (s, t), shape (s,); see the class."""
        n = self.decodings
        if not n or not scores.size:
            return np.zeros(len(scores))
        most = variance_bound(scores)
        if n > 1:  # the variance of answers in [0, 1] of mean s is s (1 - s) at most, and that if they are 0 or 1
            each = scores * (1.0 - scores) * n / (n - 1)
            most = np.minimum(most, [allowed_variance(row[~np.isnan(row)]) for row in each])
        return np.asarray(most / n)


def random_numbers(seed: int | Sequence[int], subjects: int, count: int) -> Array:
    """Return the first uniform random numbers of the draws of a session's subjects, shape (S, count)."""
    seeds = _seed_sequences(seed, subjects)
    return np.stack([np.random.Generator(np.random.PCG64(s)).random(count) for s in seeds])


def record_all(session: Session, items: Ints, scores: Array) -> None:
    """Record all administrations of a new session at once, without a design: items and scores, (S, budget) each."""
    session._open(Proposal(items, np.full((len(DESIGN), *items.shape), np.nan)))
    session.tell(scores)


def _seed_sequences(seed: int | Sequence[int], subjects: int) -> list[np.random.SeedSequence]:
    """Return one seed sequence per subject."""
    if isinstance(seed, int):
        root = np.random.SeedSequence(seed)
        if subjects > 1:
            seeds = root.spawn(subjects)
        else:
            seeds = [root]
    else:
        seeds = [np.random.SeedSequence(s) for s in seed]
    if not 1 <= subjects == len(seeds):
        raise ValueError(f"{subjects} subjects and {len(seeds)} seeds: give at least one subject, and a seed to each")
    return seeds
