"""Replay interviews of subjects from recorded scores, for conformal tables and backtests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.cat.assisted import Assistance
from pytest_adaptive_eval.cat.lockstep import interview_in_step, servable, uniform_draws
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import Form, Random
from pytest_adaptive_eval.cat.session import Session, random_numbers, record_all
from pytest_adaptive_eval.cat.stopping import Budget
from pytest_adaptive_eval.inference.conformal import SIDE, Conformal, conformal_scale
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.text import Tell
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Array, Bools, Ints

#: Share of the subjects, the weakest or the strongest, on which items are calibrated to test extrapolation to the rest.
EXTRAPOLATED = 0.6
#: Families of the tested subjects are left out of that calibration if this share of the others remains.
FEWEST_APART = 0.5
#: Up to this share of subjects with an earlier member of their family, each subject counts: with 60 at 95 %, that
#: costs at most half a point of coverage.
SIBLINGS = 0.1


def folds(families: Sequence[str], count: int, rng: np.random.Generator) -> Ints:
    """Return the fold of each subject, shape (S,): whole families, folds of nearly equal size."""
    _, codes, sizes = np.unique(list(families), return_inverse=True, return_counts=True)
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]  # large families first, so that folds come out even
    load = np.zeros(count, dtype=np.int64)
    fold_of = np.empty(len(sizes), dtype=np.int64)
    for family in order:
        fold_of[family] = load.argmin()
        load[load.argmin()] += sizes[family]
    return fold_of[codes]


def replay(bank: ItemBank, policy: Policy, scores: Array, *, seed: int | Sequence[int]) -> Session:
    """Interview S subjects from their recorded scores (S, n), NaN where missing, to the end."""
    return replay_each(bank, [policy], scores, seed=seed)[0]


def replay_each(
    bank: ItemBank, policies: Sequence[Policy], scores: Array, *, seed: int | Sequence[int], designed: bool = True
) -> list[Session]:
    """Interview S subjects by each policy, as `replay` does.

    Policies that differ in the budget alone share draws, unless uniform draws check their projections.

    Args:
        scores: Shape (S, n).
        designed: Whether the sessions have design-based intervals.
    """
    ended: dict[int, Session] = {}
    for group in _by_budget(bank, policies):
        longest = policies[group[-1]]
        if not designed and _in_step(bank, longest):
            ended |= _interviews_in_step(bank, {position: policies[position] for position in group}, scores, seed)
            continue
        session = Session(bank, longest, seed=seed, subjects=len(scores), designed=designed)
        shorter = {}
        for position in group:
            shorter[position] = policies[position].budget_on(bank)
        ended |= dict.fromkeys(group, session) | _interviews(session, shorter, scores)
    return [ended[position] for position in range(len(policies))]


def _interviews(session: Session, shorter: Mapping[int, int], scores: Array) -> dict[int, Session]:
    """Run a session to its end, and return the sessions that end before, by the position of their budget."""
    ended = {}
    while (proposal := session.ask()) is not None:
        answers = np.take_along_axis(scores, proposal.items, axis=1)
        asked = session.asked
        for position, budget in shorter.items():
            if asked < budget <= asked + answers.shape[1] and budget < session.budget:
                short = session.shortened(budget)
                short.tell(answers[:, : budget - asked])
                ended[position] = short
        session.tell(answers)
    return ended


def replay_items(banks: Sequence[ItemBank], of: Ints, policy: Policy, scores: Array, *, seeds: Sequence[int]) -> Ints:
    """Return the items (S, t) of interviews by a policy, of subjects on several banks of the same items.

    Args:
        of: Shape (S,). Bank of each subject.
        policy: It spends its budget, which is the same on all banks, and nothing assists it.
        scores: Shape (S, n).
        seeds: A seed for each subject.
    """
    count = policy.budget_on(banks[0])
    if all(servable(bank, policy) for bank in banks):
        numbers = random_numbers(seeds, len(seeds), count)
        return interview_in_step(banks, of, policy, scores, numbers).items
    items = np.empty((len(scores), count), dtype=np.int64)
    for b, bank in enumerate(banks):
        rows = np.flatnonzero(of == b)
        own_seeds = [seeds[s] for s in rows.tolist()]
        (session,) = replay_each(bank, [policy], scores[rows], seed=own_seeds, designed=False)
        items[rows], _ = session.answers
    return items


def _in_step(bank: ItemBank, policy: Policy) -> bool:
    """Return whether `_interviews_in_step` serves a policy."""
    if not isinstance(policy.rule(1), Budget):
        return False
    assistance = policy.assistance(bank)
    if assistance is None:
        return servable(bank, policy) or (not bank.calibrated and isinstance(policy.selector, Random))
    selector = assistance.first
    if isinstance(selector, Form):
        return policy.floor == 0.0
    return policy.batch == 1 and servable(bank, replace(policy, selector=selector))


def _interviews_in_step(
    bank: ItemBank, policies: Mapping[int, Policy], scores: Array, seed: int | Sequence[int]
) -> dict[int, Session]:
    """Return the ended sessions of policies that differ in the budget alone."""
    subjects = len(scores)
    sessions = {}
    for position, policy in policies.items():
        sessions[position] = Session(bank, policy, seed=seed, subjects=subjects, designed=False)
    longest = max(sessions.values(), key=lambda session: session.budget)
    numbers = random_numbers(seed, subjects, longest.budget)
    if longest.assistance is not None:
        for session in sessions.values():
            _record_assisted(session, longest.assistance, scores, numbers)
    elif not bank.calibrated:
        for session in sessions.values():
            items = uniform_draws(numbers[:, : session.budget], np.empty((subjects, 0), dtype=np.int64), len(bank))
            record_all(session, items, np.take_along_axis(scores, items, axis=1))
    else:
        counts = {session.budget for session in sessions.values()}
        of = np.zeros(subjects, dtype=np.int64)
        interviews = interview_in_step([bank], of, longest.policy, scores, numbers, counts)
        for session in sessions.values():
            items = interviews.items[:, : session.budget]
            record_all(session, items, np.take_along_axis(scores, items, axis=1))
            session.estimate = interviews.estimates[session.budget]
            session.trace[:, :, 0] = interviews.theta[:, : session.budget]
    return sessions


def _record_assisted(session: Session, assistance: Assistance, scores: Array, numbers: Array) -> None:
    """Record the interviews of a session that the bank's predictor assists, from random numbers (S, t)."""
    bank = session.bank
    start = session.uniform_from
    count = session.budget
    if isinstance(assistance.first, Form):
        assert bank.predictor is not None
        items = np.tile(bank.predictor.order[:count], (len(scores), 1))
        items[:, start:] = uniform_draws(numbers[:, : count - start], items[:, :start], len(bank))
        record_all(session, items, np.take_along_axis(scores, items, axis=1))
        return
    policy = replace(session.policy, selector=assistance.first)
    of = np.zeros(len(scores), dtype=np.int64)
    items, theta, _ = interview_in_step([bank], of, policy, scores, numbers[:, :count], uniform_from=start)
    record_all(session, items, np.take_along_axis(scores, items, axis=1))
    session.trace[:, :, 0] = theta


def _by_budget(bank: ItemBank, policies: Sequence[Policy]) -> list[list[int]]:
    """Return the positions of policies in groups that differ in the budget alone, by rising budget.

    One that the bank's predictor assists is alone, since its design depends on the budget.
    """
    groups: list[list[int]] = []
    for position, policy in enumerate(policies):
        for group in groups:
            first = policies[group[0]]
            alike = policy.draws_ahead and replace(policy, budget=first.budget) == first
            if alike and policy.assistance(bank) is None and first.assistance(bank) is None:
                group.append(position)
                break
        else:
            groups.append([position])
    return [sorted(group, key=lambda position: policies[position].budget_on(bank)) for group in groups]


def conformal_tables(
    responses: Responses,
    recipe: Callable[[Responses], ItemBank],
    policies: Sequence[Policy],
    *,
    bank: ItemBank,
    count: int = 5,
    seed: int = 0,
    progress: Tell | None = None,
) -> list[Conformal]:
    """Replay each policy, with its stopping rule, on subjects that the items were not calibrated on.

    Args:
        responses: Responses of the calibration subjects; families stay together. Missing scores are skipped as in an
            interview, and the truth is the mean of the others.
        recipe: Returns a bank from the responses of some of the subjects.
        bank: Bank of the tables, calibrated on all subjects.
    """
    report = progress or (lambda _: None)
    scores = responses.scores
    n = len(bank)
    truth = np.nanmean(scores, axis=1)
    fold = folds(responses.families, min(count, len(set(responses.families))), np.random.default_rng(seed))
    errors, projected = np.empty((2, len(policies), len(truth)))

    def test_errors(learn: Bools, ask: Bools) -> tuple[Array, Array]:
        """Return scaled errors and projections, (policies, tested subjects), with items calibrated on others."""
        fitted = recipe(responses.of(np.flatnonzero(learn)))
        scaled, projections = np.empty((2, len(policies), int(ask.sum())))
        seeds = [seed + int(s) for s in np.flatnonzero(ask)]
        for row, session in enumerate(replay_each(fitted, policies, scores[ask], seed=seeds, designed=False)):
            accuracy, error = session.projection()
            scale = conformal_scale(accuracy, error, session.stopped_at, n)
            scaled[row] = (truth[ask] - accuracy) / np.maximum(scale, 1e-9)
            projections[row] = accuracy
        return scaled, projections

    for f in range(fold.max() + 1):
        report(f"replaying interviews, fold {f + 1} of {fold.max() + 1}")
        tested = fold == f
        errors[:, tested], projected[:, tested] = test_errors(~tested, tested)
    weak, strong = np.quantile(truth, [1.0 - EXTRAPOLATED, EXTRAPOLATED])
    report("replaying interviews of subjects stronger, and weaker, than those calibrated on")
    none = np.empty((len(policies), 0))  # if too many are equally strong
    families = np.array(responses.families)

    def beyond(side: Bools) -> Array:
        """Return errors of subjects on one side, by items calibrated on the others without their families."""
        if not side.any():
            return none
        learn = ~side & ~np.isin(families, families[side])
        fewest = max(FEWEST_APART * (~side).sum(), 2)
        if learn.sum() < fewest:  # a bank from too few subjects has large errors of its own
            learn = ~side
        beyond_errors, _ = test_errors(learn, side)
        return beyond_errors

    above = beyond(truth > strong)
    below = beyond(truth < weak)
    _, of, sizes = np.unique(families, return_inverse=True, return_counts=True)
    has_siblings = len(sizes) < (1.0 - SIBLINGS) * len(truth)
    tables = []
    for row, policy in enumerate(policies):
        own_errors = errors[row]
        own_projections = projected[row]
        order = tie_ranks(own_errors).argsort(kind="stable")
        family_sizes: tuple[int, ...] = ()
        if has_siblings:
            family_sizes = tuple(sizes[of][order].tolist())
        tables.append(
            Conformal(
                policy.key(bank),
                tuple(np.sort(own_errors).tolist()),
                below=float(below[row].min(initial=0.0)),
                above=float(above[row].max(initial=0.0)),
                weak=float(np.quantile(own_projections, 1.0 - SIDE)),
                strong=float(np.quantile(own_projections, SIDE)),
                projected=tuple(own_projections[order].tolist()),
                sizes=family_sizes,
            )
        )
    return tables
