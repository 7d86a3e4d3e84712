"""Policies of evaluations, from their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.cat.policy import FIXED_FORM, FORM, POLICIES, Policy
from pytest_adaptive_eval.cat.selection import MODES, Selector
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.tables import AUTOJUDGER, MarkerTable
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.policy import LADDER, LADDER_POLICY, AdaptiveClimb, Climb
from pytest_adaptive_eval.typed_tables import find_named, refuse_keys, suggestion

LADDER_ITEMS, BANK_ITEMS = 10, 50  #: Items of a level: of a ladder, as in MACEval, and of a bank that is drawn from.


def item_count(table: MarkerTable) -> int:
    """Return the number of items that each level of a task has."""
    if table.queries is not None:
        return table.queries
    return LADDER_ITEMS if policy_name(table) == LADDER and table.width is None else BANK_ITEMS


def make_policy(
    table: MarkerTable,
    data: Mapping[str, Any],
    bank: ItemBank,
    find_selector: Callable[[str], Selector | None],
    budget: str | None,
) -> Policy:
    """Return the policy of an evaluation.

    Args:
        data: The same settings, only those that were written.
        budget: Budget of the command line, which takes precedence.
    """
    name = policy_name(table)
    if name == LADDER:
        return _ladder(table, data, bank)
    policy = find_named("policy", name, {**POLICIES, LADDER: LADDER_POLICY})
    _refuse_foreign_settings(name, table, data)
    changes = {key: data[key] for key in ("floor", "standard_error", "batch", "budget", "stop") if key in data}
    if table.selector is not None:
        changes["selector"] = _selector(table.selector, find_selector)
    elif not bank.calibrated and name != FORM:
        changes["selector"] = SELECTORS["random"]
    elif bank.parts and name not in (FIXED_FORM, FORM):
        changes["selector"] = SELECTORS["information"]  # informs about every ability component
    if table.selector == AUTOJUDGER:
        changes.setdefault("batch", 1)  # each choice needs all earlier answers
    if table.estimator is not None:
        changes["estimator"] = find_named("estimator", table.estimator, ESTIMATORS)()
    if budget is not None:
        changes["budget"] = budget
    if {"selector", "floor", "estimator"} & changes.keys():
        changes["assisted"] = False  # the designs are for the policy as it is
    return replace(policy, **changes)


def _refuse_foreign_settings(name: str, table: MarkerTable, data: Mapping[str, Any]) -> None:
    """Refuse settings that the named policy of a bank, or its selector, does not have."""
    refuse_keys(data, ("stop_at", "settle", "width"), "goes with the policy 'ladder'")
    if name == FIXED_FORM:
        keys = ("selector", "floor", "stop", "standard_error")
        refuse_keys(data, keys, "does not go with a fixed form, which is drawn uniformly and asked in full: remove it")
    if name == FORM:
        refuse_keys(data, ("selector", "floor", "stop", "standard_error"), "does not go with a form: remove it")
    if table.selector != AUTOJUDGER:
        refuse_keys(data, ("interview",), f"goes with selector = '{AUTOJUDGER}'")


def policy_name(table: MarkerTable) -> str:
    """Return the name of the policy; a task is climbed unless another is written."""
    if table.policy is not None:
        return table.policy
    return LADDER if table.task else "decide"


def _ladder(table: MarkerTable, data: Mapping[str, Any], bank: ItemBank) -> Policy:
    if not table.task:
        raise ConfigError("the policy 'ladder' administers the levels of a task, and a bank has none: name a task")
    keys = ("selector", "floor", "stop", "standard_error", "batch", "budget")
    refuse_keys(data, keys, "does not go with a ladder, which is asked level by level: remove it; set queries")
    reason = (
        "does not go with a ladder, which asks each item once and measures no decoding noise: remove it, or draw from "
        "the task with the policy 'decide'"
    )
    refuse_keys(data, ("samples", "repeat"), reason)
    ladder: Climb | AdaptiveClimb
    if table.width is None:
        guess = bank.report.get("guess_by_level", ())
        ladder = Climb(item_count(table), float(table.stop_at), table.settle, guess)
    else:
        refuse_keys(data, ("stop_at", "settle"), "does not go with a width, for which all levels are asked: remove it")
        ladder = AdaptiveClimb(item_count(table), float(table.width), float(bank.report.get("guess", 0.0)))
    return replace(LADDER_POLICY, selector=ladder, batch=ladder.batch)


def _selector(name: str, find_selector: Callable[[str], Selector | None]) -> Selector:
    selector = SELECTORS.get(name) or find_selector(name)
    if selector is None:
        names = suggestion(name, [*SELECTORS, AUTOJUDGER])
        raise ConfigError(f"selector {name!r} is not known; {names}, or install a plugin that provides it")
    if isinstance(selector, type) or not isinstance(selector, Selector) or selector.mode not in MODES:
        raise ConfigError(
            f"selector {name!r}: a plugin gave {selector!r:.80}, expected an object with name, mode "
            f"({' or '.join(map(repr, MODES))}), needs_calibration and criterion(view)"
        )
    return selector
