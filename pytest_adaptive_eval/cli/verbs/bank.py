"""``adaptive-eval banks``, ``bank info``, ``check``, ``diff`` and ``export``."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED
from pytest_adaptive_eval.cli.screen import say, width
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

#: Heads of the list of ready banks.
_COLUMNS = ("name", "items", "subjects", "newest", "licence", "questions", "source")
#: Item ids of a kind that are shown.
_SHOWN = 8
_BANK = "a bank folder, a JSONL of items, or ready:NAME"


def _add_bank(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bank", metavar="BANK", type=Path, help=_BANK)


def _add_two_banks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bank", metavar="OLD", type=Path, help=_BANK)
    parser.add_argument("other", metavar="NEW", type=Path, help=_BANK)


def _add_bank_and_output(parser: argparse.ArgumentParser) -> None:
    _add_bank(parser)
    text = "folder to write, in the layout of a Hugging Face data set"
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, required=True, help=text)


def _info(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli.bank_card import facts
    from pytest_adaptive_eval.text import wrap

    bank = read_bank(options.bank)
    for name, text in facts(bank):
        say(wrap(text, width(), " " * 17, first=f"{name:<17}"))
    return PASSED


def _check(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli.bank_faults import faults, warnings
    from pytest_adaptive_eval.text import clean_terminal

    bank = read_bank(options.bank)
    failures = [clean_terminal(fault) for fault in faults(bank)]
    say([f"fault: {fault}" for fault in failures])
    say([f"warning: {clean_terminal(warning)}" for warning in warnings(bank)])
    say([f"{options.bank}: {len(bank)} items read, {'FAULTY' if failures else 'whole'}"])
    if failures:
        return NOT_PASSED
    return PASSED


def _diff(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli.bank_faults import compare
    from pytest_adaptive_eval.text import clean_terminal, number

    old = read_bank(options.bank)
    new = read_bank(options.other)
    differences = compare(old, new)
    say([f"{differences.same} items are the same"])
    for name in ("added", "removed", "changed"):
        ids = getattr(differences, name)
        if ids:
            if len(ids) > _SHOWN:
                more = f" and {len(ids) - _SHOWN} more"
            else:
                more = ""
            say([clean_terminal(f"{len(ids)} {name}: {', '.join(ids[:_SHOWN])}{more}")])
    if differences.moved is not None:
        say([f"parameters of the same items moved by at most {number(differences.moved, 4)}"])
    if old.scale != new.scale:
        say([f"scale {old.scale or 'none'} and {new.scale or 'none'}: abilities on the two are not comparable"])
    if differences.any or old.scale != new.scale:
        return NOT_PASSED
    return PASSED


def _export(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import is_bank, read_bank
    from pytest_adaptive_eval.banks.writer import write_uncalibrated
    from pytest_adaptive_eval.cli.bank_card import card, licence_of
    from pytest_adaptive_eval.cli.bank_faults import faults

    bank = read_bank(options.bank)
    output = options.output
    if output.exists():
        raise ConfigError(f"-o {output} exists; name a folder that is not there yet")
    if fault := next(faults(bank), None):
        raise ConfigError(f"{options.bank}: {fault}; fix it before sharing")
    text = card(bank)
    if is_bank(options.bank):
        _copy(options.bank, bank, output)
    else:
        staged = output.with_name(f"{output.name}.bank")
        write_uncalibrated(staged, list(bank.items))
        staged.rename(output)
    (output / "README.md").write_text(text, encoding="utf-8")
    say(
        [
            f"wrote {output}: {len(bank)} items, licence {licence_of(bank) or 'unknown: check it before you share'}",
            f"push:  hf upload OWNER/{bank.name} {output} --repo-type dataset",
            f"pull:  hf download OWNER/{bank.name} --repo-type dataset --local-dir {bank.name}.bank",
        ]
    )
    return PASSED


def _list(options: argparse.Namespace) -> int:  # noqa: ARG001 - has the form of a verb
    from pytest_adaptive_eval.banks.ready import described, read_ready, ready_files
    from pytest_adaptive_eval.reports.history import aligned

    rows = []
    for name in ready_files():
        rows.append([str(fact) for fact in described(read_ready(name)).values()])
    say(aligned([list(_COLUMNS), *rows], [1, 2], "  "))
    say(["", 'use one by bank = "ready:NAME"; questions: median to a verdict ten points away, of subjects left out'])
    return PASSED


def _copy(folder: Path, bank: ItemBank, output: Path) -> None:
    """Copy the files of a bank folder, and nothing else in it."""
    images = sorted({image for item in bank.items for image in item.images})
    more = {"formats.npz": bank.in_formats, "predictor.npz": bank.predictor}
    arrays = [name for name, part in more.items() if part is not None]
    for name in ("bank.json", "params.npz", "items.jsonl", *arrays, *images):
        (output / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, output / name)


REGISTERED = (
    Verb(
        "banks",
        "list ready banks of public benchmarks",
        "List the ready banks: parameters of public benchmarks, fitted to published results.",
        lambda _: None,
        _list,
        ("banks",),
    ),
    Verb(
        "bank info",
        "show what a bank is",
        "Show source, licence, items, fit and decided margins of a bank.",
        _add_bank,
        _info,
        ("bank info my.bank",),
    ),
    Verb(
        "bank check",
        "read all of a bank and look for faults",
        "Read all items and images of a bank, and look for faults. Exit code 1 where there is one.",
        _add_bank,
        _check,
        ("bank check my.bank",),
    ),
    Verb(
        "bank diff",
        "list what changed between two banks",
        "List the items and parameters that changed from one bank to another. Exit code 1 where any did.",
        _add_two_banks,
        _diff,
        ("bank diff old.bank new.bank",),
    ),
    Verb(
        "bank export",
        "write a bank as a folder to share",
        "Write a bank with a card, as the folder of a Hugging Face data set.",
        _add_bank_and_output,
        _export,
        ("bank export my.bank -o shared",),
    ),
)
