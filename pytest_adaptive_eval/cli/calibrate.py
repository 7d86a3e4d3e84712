"""``adaptive-eval calibrate``: responses in, a checked bank out."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.formats import read_in_formats
from pytest_adaptive_eval.cli.options import (
    INTERRUPTED,
    NOT_PASSED,
    PASSED,
    RECIPE,
    budgets_of,
    names_of,
    put,
    read,
    recipe_of,
    refuse,
    screen,
    width,
    with_dimensions,
    writable,
)
from pytest_adaptive_eval.errors import BankError, ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.responses import Responses

__all__ = ["calibrate_command"]


def calibrate_command(options: argparse.Namespace) -> int:
    """Fit, check, replay, write; returns the exit code."""
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.banks.responses import named_in_formats
    from pytest_adaptive_eval.banks.writer import check_place, write_bank
    from pytest_adaptive_eval.calibration.build import calibrate, matched
    from pytest_adaptive_eval.calibration.parameters import read_parameters
    from pytest_adaptive_eval.cat.session import POLICIES
    from pytest_adaptive_eval.cat.stopping import resolve_budget
    from pytest_adaptive_eval.reports.calibration import calibration_lines, format_lines
    from pytest_adaptive_eval.text import wrap

    output: Path | None = options.output
    if output is not None:
        try:
            check_place(output, options.replace)
        except BankError as error:
            raise ConfigError(f"-o {error}") from None
        writable("-o", output)
    names = [] if options.policy == "none" else names_of(options, "policy")
    if unknown := [name for name in names if name not in POLICIES]:
        raise ConfigError(f"--policy {unknown[0]}: known are {', '.join(POLICIES)}, and none")
    if options.parameters is not None:
        refuse(options, RECIPE, "is for a fit, which --parameters takes the place of")
    recipe = recipe_of(options)
    items = None if options.items is None else list(read_bank(options.items).items)
    formats = None
    if options.formats is not None:
        refuse(options, ("format", "orientation", "metric"), "is not for responses in formats")
        formats = read_in_formats([options.source], options.filter, options.families)
    responses = matched(read(options, options.source) if formats is None else formats.whole, items, screen.note)
    n = len(responses.items)
    counts = {resolve_budget(budget, n): budget for budget in budgets_of(options, n)}
    if output is None:
        names = []  # tables are for a bank
    elif items is None:
        _check_ids(responses)
    fixed_parameters = read_parameters(options.parameters, responses.items) if options.parameters else None
    if fixed_parameters is None:
        recipe = with_dimensions(options, recipe, responses)
    built = calibrate(
        responses,
        recipe,
        items=items,
        given=fixed_parameters,
        policies=[replace(POLICIES[name], budget=budget) for name in names for budget in counts.values()],
        formats=None if formats is None else (formats, options.formats),
        seed=options.seed,
        force=options.force,
        note=screen.note,
        progress=screen.progress,
    )
    screen.progress("")
    quality, interrupted = built.quality, built.fit.interrupted
    lines = calibration_lines(quality.to_json(), len(built.conformal), width())
    if formats is None and (forms := named_in_formats(responses.items)):
        format_warning = (
            f"warning: {forms} of {n} items are named ITEM@FORMAT, as in responses in formats, and counted as items of "
            "their own; --formats m3 fits the items in their formats"
        )
        lines += wrap(format_warning, width(), "  ", first="")
    if built.in_formats is not None:
        lines += format_lines(built.in_formats.items.modalities.parts, built.in_formats.report, width())
    if output is not None and interrupted and output.exists():
        lines.append(f"nothing was written: what was left half-way does not take the place of {output}")
    elif output is not None and (interrupted or quality.trusted or options.force):
        bank = built.write(write_bank, output, replace=options.replace)
        untrusted = "" if quality.trusted else ", marked untrusted"
        lines.append(f"wrote {output}: {len(bank)} items, scale {bank.scale}{untrusted}")
        if bank.report["textless"]:
            lines.append("it has no texts and cannot be asked: give --items for that")
    elif output is not None:
        lines.append("nothing was written; --force writes it all the same, marked untrusted")
    put("\n".join(lines) + "\n")
    if interrupted:
        return INTERRUPTED
    return PASSED if quality.trusted else NOT_PASSED


def _check_ids(responses: Responses) -> None:
    """Refuse ids that no bank can have, before the work is done."""
    from pytest_adaptive_eval.banks.items import parse_item

    for name in responses.items:
        parse_item(json.dumps({"id": name, "meta": {"textless": True}}), responses.source)
