"""``adaptive-eval calibrate``: responses in, a checked bank out."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.formats import read_in_formats
from pytest_adaptive_eval.cli.logs import add_ids_argument, joined
from pytest_adaptive_eval.cli.options import (
    INTERRUPTED,
    NOT_PASSED,
    PASSED,
    RECIPE,
    add_fit_arguments,
    add_responses_argument,
    budgets_of,
    check_bank_output,
    check_writable,
    names_of,
    origin,
    read,
    recipe_of,
    refuse,
    with_chosen_model,
)
from pytest_adaptive_eval.cli.screen import say, screen, width
from pytest_adaptive_eval.cli.settings import CalibrateTable, add_reading_arguments, settings_of
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.calibration.build import Built
    from pytest_adaptive_eval.calibration.recipe import Recipe
    from pytest_adaptive_eval.cat.policy import Policy
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.irt.multimodal import FormatScale
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import FormatResponses, Responses


def _add_arguments(parser: VerbParser) -> None:
    add_responses_argument(parser, "logs of another tool, a CSV, a py-irt JSONL, or recorded runs")
    add = parser.add_argument_group("bank").add_argument
    add("-o", "--output", metavar="BANK", type=Path, help="folder NAME.bank to write; else only checks")
    add("--items", metavar="FILE", type=Path, help="JSONL of the items' texts; else of the logs")
    add_ids_argument(add, "--items")
    add("--uncalibrated", action="store_true", help="write the questions alone, for uniform draws")
    add("--force", action="store_true", help="write a refused bank too, marked untrusted")
    add("--replace", action="store_true", help="replace a bank that is in place")
    text = "check these published parameters (JSON lines) instead of a fit"
    add("--parameters", metavar="FILE", type=Path, help=text)
    text = "policies of the replays, separated by commas, or none (%(default)s)"
    add("--policy", metavar="NAMES", default="estimate,decide", help=text)
    add("--budget", metavar="BUDGETS", default="1%,2%,5%,10%,15%,20%", help="their budgets (%(default)s)")
    text = "fit M2- or M3-IRT too, to responses in formats (-paper: by the likelihood alone)"
    add("--formats", choices=("m2", "m3", "m2-paper", "m3-paper"), help=text)
    add("--abilities", metavar="FILE.csv", type=Path, help="with --formats: abilities of the subjects by part")
    add_fit_arguments(parser)
    add_reading_arguments(parser, lambda: CalibrateTable)


def _run(options: argparse.Namespace) -> int:
    if options.output is not None:
        check_bank_output(options.output, replaces=options.replace)
    if options.uncalibrated:
        return _write_questions(options)
    names = _policy_names(options)
    if options.abilities is not None and options.formats is None:
        raise ConfigError(f"--abilities {options.abilities} goes with --formats, which has abilities by part")
    if options.abilities is not None:
        check_writable("--abilities", options.abilities, [options.source, options.items])
    if options.parameters is not None:
        refuse(options, RECIPE, "is for a fit, and --parameters replaces the fit")
    recipe = recipe_of(options)
    with tempfile.TemporaryDirectory() as folder:  # of images in the logs, until the bank is written
        return _calibrate(options, names, recipe, Path(folder))


def _calibrate(options: argparse.Namespace, names: Sequence[str], recipe: Recipe, folder: Path) -> int:
    """Read, fit, check and write; images of the logs go to `folder` first."""
    from pytest_adaptive_eval.banks.items import parse_item
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.calibration.build import calibrate, matched
    from pytest_adaptive_eval.calibration.families import copies
    from pytest_adaptive_eval.calibration.parameters import read_parameters

    if options.items is None:
        bank_of_items = None
    else:
        bank_of_items = read_bank(options.items)
    if bank_of_items is None:
        items = None
    else:
        items = list(bank_of_items.items)
    formats = _read_formats(options)
    responses = _read_responses(options, formats, items)
    if items is None and options.output is not None and responses.questions:
        responses, items = _texts_of_logs(responses, folder)
    responses = matched(responses, items, screen.note)
    policies = _policies(options, names, len(responses.items))
    if options.output is None:
        policies = []  # conformal tables belong to a bank
    elif items is None:  # ids that no bank can have are refused before hours of work
        for name in responses.items:
            parse_item(json.dumps({"id": name, "meta": {"textless": True}}), responses.source)
    parameters = choice = None
    firsts = copies(responses)
    if options.parameters is not None:
        parameters = read_parameters(options.parameters, responses.items)
    else:
        recipe, choice = with_chosen_model(options, recipe, responses, firsts)
    built = calibrate(
        responses,
        recipe,
        choice=choice,
        firsts=firsts,
        items=items,
        given_parameters=parameters,
        policies=policies,
        formats=None if formats is None else (formats, options.formats),
        predicts=options.output is not None,
        seed=options.seed,
        force=options.force,
        note=screen.note,
        progress=screen.progress,
    )
    lines = _report(built, responses, counted_as_formats=formats is not None)
    if options.abilities is not None and built.in_formats is not None:
        lines += _write_abilities(built, built.in_formats, options.abilities)
    if options.output is not None:
        lines += _write(built, options, _source(options, bank_of_items))
    say(lines)
    if built.fit.interrupted:
        return INTERRUPTED
    if built.quality.trusted:
        return PASSED
    return NOT_PASSED


def _read_responses(
    options: argparse.Namespace, formats: FormatResponses | None, items: Sequence[Item] | None
) -> Responses:
    """Return the responses in the fullest of `formats`, else the source's under the ids of `items`."""
    if formats is not None:
        return formats.whole
    return joined(read(options, options.source, _by_log_id(items, options.ids)), options.ids, items)


def _write_questions(options: argparse.Namespace) -> int:
    """Write a bank of the questions in the logs, without a fit."""
    from pytest_adaptive_eval.banks.writer import write_uncalibrated
    from pytest_adaptive_eval.calibration.build import items_in_order

    refuse(options, ("items", "ids", "formats", "parameters", "force", *RECIPE), "is not for --uncalibrated")
    if options.output is None:
        raise ConfigError("--uncalibrated writes a bank: give -o NAME.bank")
    with tempfile.TemporaryDirectory() as folder:
        responses = read(options, options.source)
        _, items = _texts_of_logs(responses, Path(folder))
        report = {"source": _source(options, None), "textless": items is None}
        items = items or items_in_order(responses, None)
        bank = write_uncalibrated(options.output, items, report=report, replace=options.replace)
    lines = [f"wrote {options.output}: {len(bank)} items without parameters, content {bank.content_hash}"]
    say([*lines, *_without_texts(bank)])
    return PASSED


def _without_texts(bank: ItemBank) -> list[str]:
    """Return a line on a bank of ids."""
    if bank.report["textless"]:
        return ["it has no texts: a harness can be asked by its ids, and --items adds the texts for other models"]
    return []


def _source(options: argparse.Namespace, bank: ItemBank | None) -> dict[str, Any]:
    """Return the source of the questions: as recorded by the bank of ``--items``, else the file or the logs."""
    from pytest_adaptive_eval.banks.licences import licence_of

    source = None
    if bank is not None:
        source = bank.report.get("source")
    if not isinstance(source, dict):
        data = options.items or options.source
        source = {"source": data.name, "licence": licence_of(data)}
    return origin(settings_of(options, CalibrateTable), {**source, "responses": options.source.name})


def _by_log_id(items: Sequence[Item] | None, ids: str | None) -> dict[str, Item] | None:
    """Return one's own items by the ids of the logs; ids with a prefix are known beforehand."""
    from pytest_adaptive_eval.banks.rows import suffix_of

    if items is None:
        return None
    is_prefix = ids is not None and not suffix_of(Path(ids)) and "(" not in ids
    return {f"{ids if is_prefix else ''}{item.id}": item for item in items}


def _texts_of_logs(responses: Responses, folder: Path) -> tuple[Responses, list[Item] | None]:
    """Return the responses under ids that items can have, and the items in the logs; None if none can be asked."""
    from pytest_adaptive_eval.banks.responses.ids import with_item_ids
    from pytest_adaptive_eval.banks.responses.questions import items_of

    named = with_item_ids(responses, screen.note)
    items = items_of(named, folder, screen.note)
    if items:
        return named, items
    return responses, None


def _policy_names(options: argparse.Namespace) -> list[str]:
    """Return the names of the policies to replay."""
    from pytest_adaptive_eval.cat.policy import POLICIES

    if options.policy == "none":
        names = []
    else:
        names = names_of(options, "policy")
    if unknown := [name for name in names if name not in POLICIES]:
        raise ConfigError(f"--policy {unknown[0]}: known are {', '.join(POLICIES)}, and none")
    return names


def _read_formats(options: argparse.Namespace) -> FormatResponses | None:
    """Return the responses in formats, else None."""
    if options.formats is None:
        return None
    refuse(options, ("format", "orientation", "metric"), "is not for responses in formats")
    settings = settings_of(options, CalibrateTable)
    if settings.families is None:
        families = None
    else:
        families = Path(settings.families)
    return read_in_formats([options.source], settings.filter, families)


def _policies(options: argparse.Namespace, names: Sequence[str], size: int) -> list[Policy]:
    """Return the policies to replay, at each budget that asks another number of items."""
    from pytest_adaptive_eval.cat.policy import POLICIES
    from pytest_adaptive_eval.cat.stopping import resolve_budget

    budgets = {}
    for budget in budgets_of(options, size):
        budgets[resolve_budget(budget, size)] = budget
    return [replace(POLICIES[name], budget=budget) for name in names for budget in budgets.values()]


def _report(built: Built, responses: Responses, *, counted_as_formats: bool) -> list[str]:
    """Return the lines on the quality of a calibration."""
    from pytest_adaptive_eval.banks.responses import named_in_formats
    from pytest_adaptive_eval.reports.calibration import calibration_lines, format_lines
    from pytest_adaptive_eval.text import wrap

    lines = calibration_lines(built.quality.to_json(), len(built.conformal), width())
    if not counted_as_formats and (pairs := named_in_formats(responses.items)):
        warning = (
            f"warning: {pairs} of {len(responses.items)} items are named ITEM@FORMAT, as in responses in formats, and "
            "counted as items of their own; --formats m3 fits the items in their formats"
        )
        lines += wrap(warning, width(), "  ", first="")
    if built.in_formats is not None:
        lines += format_lines(built.in_formats.items.modalities.parts, built.in_formats.report, width())
    return lines


def _write_abilities(built: Built, scale: FormatScale, path: Path) -> list[str]:
    """Write the abilities of the calibration subjects by part as CSV; return the table."""
    import csv

    from pytest_adaptive_eval.reports.calibration import ability_lines

    parts = scale.items.modalities.parts
    subjects = built.responses.subjects
    abilities = scale.abilities(scale.standings).tolist()
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["subject", *parts])
        table.writerows([name, *(f"{x:.6g}" for x in row)] for name, row in zip(subjects, abilities, strict=True))
    return ability_lines(subjects, parts, abilities, width())


def _write(built: Built, options: argparse.Namespace, source: dict[str, Any]) -> list[str]:
    """Write the bank unless it is refused; return the lines on the file."""
    from pytest_adaptive_eval.banks.writer import write_bank

    output = options.output
    trusted = built.quality.trusted
    if built.fit.interrupted and output.exists():
        return [f"nothing was written: an interrupted fit does not take the place of {output}"]
    if not (built.fit.interrupted or trusted or options.force):
        return [
            "nothing was written; --force writes it all the same, marked untrusted",
            "--uncalibrated writes the questions of the logs alone, for gates on uniform draws",
        ]
    bank = built.write(write_bank, output, source=source, replace=options.replace)
    lines = [f"wrote {output}: {len(bank)} items, scale {bank.scale}{'' if trusted else ', marked untrusted'}"]
    return lines + _without_texts(bank)


REGISTERED = (
    Verb(
        "calibrate",
        "fit a bank to recorded responses, check it, and write it",
        "Fit item parameters to recorded responses, check them on held-out responses, replay interviews for honest "
        "intervals, and write a bank folder. A bank that fails its checks is refused (exit code 1).",
        _add_arguments,
        _run,
        (
            "calibrate logs/*.eval -o my.bank",
            "calibrate responses.csv --items items.jsonl -o my.bank",
        ),
    ),
)
