"""Options that verbs share: their declaration, checks and conversion."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.cli.settings import FitTable, ReadingTable, given_settings, settings_of
from pytest_adaptive_eval.errors import BankError, ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.calibration.choice import ModelChoice
    from pytest_adaptive_eval.calibration.recipe import Recipe
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses

#: Exit codes, as of pytest.
PASSED = 0
NOT_PASSED = 1
INTERRUPTED = 2
USAGE = 4
#: Options and settings of a fit.
RECIPE = ("model", "dimensions", "engine", "device", "limit")


def parse_count(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 1")
    return int(text)


def parse_share(text: str) -> float | str:
    """Return a number, or a text such as ``60%``, which a `Condition` reads."""
    if text.strip().endswith("%"):
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a number such as 0.6, or a share such as 60%") from None


def parse_seed(text: str) -> int:
    """Return a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 0")
    return int(text)


def add_responses_argument(parser: VerbParser, text: str) -> None:
    """Add the responses, which `text` describes."""
    parser.add_argument("source", metavar="RESPONSES", type=Path, help=text)


def add_fit_arguments(parser: VerbParser) -> None:
    """Add the options of a fit, and the seed."""
    add = parser.add_argument_group("fit").add_argument
    add("--model", metavar="NAME", help="1pl, 2pl, 3pl, 2pl-shrunk or mirt (by held-out loss over families)")
    add("--seed", metavar="N", type=parse_seed, default=0, help="of splits, folds and draws (%(default)s)")


def origin(settings: Any, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is recorded on the source of a bank's questions; `settings.source` and `.licence` win."""
    written = {name: getattr(settings, name) for name in ("source", "licence")}
    return {**recorded, **{name: text for name, text in written.items() if text}}


def read(options: argparse.Namespace, path: Path, items: Mapping[str, Item] | None = None) -> Responses:
    """Read the responses at a path as the settings say; one's own items grade answers without a score."""
    from pytest_adaptive_eval.banks.responses import read_responses

    screen.progress(f"reading {path}")
    settings = settings_of(options, ReadingTable)
    return read_responses(path, families=settings.families, items=items, note=screen.note, **settings.arguments)


def recipe_of(options: argparse.Namespace) -> Recipe:
    """Return the recipe of the options, without the dimensions where those are ``auto``."""
    from pytest_adaptive_eval.calibration.recipe import ENGINES, MODELS, Recipe
    from pytest_adaptive_eval.typed_tables import find_named

    settings = settings_of(options, FitTable)
    model = options.model or Recipe().model
    engine = settings.engine or Recipe().engine
    find_named("--model", model, dict.fromkeys(MODELS))
    find_named("engine", engine, ENGINES)
    Recipe(model, engine=engine).check_model()
    if model != "mirt" and settings.dimensions not in (None, 1):
        raise ConfigError(f"dimensions {settings.dimensions} goes with --model mirt; {model} has one")
    if settings.device is not None:
        _check_device(settings.device)
    dimensions = None if settings.dimensions == "auto" else settings.dimensions
    return Recipe(model, dimensions, engine, options.seed, settings.device, settings.limit)


def _check_device(device: str) -> None:
    try:
        import torch

        torch.zeros(1, device=device)
    except ImportError:
        raise ConfigError("device needs torch: pip install pytest-adaptive-eval[hf]") from None
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"device {device} cannot be used: {str(error).splitlines()[0]:.200}") from None


def with_chosen_model(
    options: argparse.Namespace, recipe: Recipe, responses: Responses, firsts: Sequence[str] | None = None
) -> tuple[Recipe, ModelChoice | None]:
    """Return the recipe with the model and dimensions that held-out loss chooses where the options leave them open.

    `firsts` are the `copies` of the responses, if they are known.
    """
    from pytest_adaptive_eval.calibration.choice import FEWEST_FAMILIES, choose_model
    from pytest_adaptive_eval.calibration.families import grouped
    from pytest_adaptive_eval.calibration.recipe import ENGINES

    if options.model is not None or ENGINES[recipe.engine].slow:
        return _with_dimensions(options, recipe, responses), None
    together = grouped(responses, firsts)
    if (families := len(set(together.families))) < FEWEST_FAMILIES:
        screen.note(f"model {recipe.model}: {families} families are too few to choose one by held-out loss")
        return recipe, None
    choice = choose_model(together, recipe, screen.progress)
    screen.note(choice.sentence)
    return recipe.with_model(choice.model), choice


def _with_dimensions(options: argparse.Namespace, recipe: Recipe, responses: Responses) -> Recipe:
    """Return the recipe with the number of dimensions that ``auto`` chooses."""
    from pytest_adaptive_eval.calibration.families import copies, grouped
    from pytest_adaptive_eval.calibration.quality import choose_dimensions

    if settings_of(options, FitTable).dimensions != "auto":
        if recipe.dimensions is not None and recipe.dimensions >= len(responses.subjects):
            raise ConfigError(
                f"dimensions {recipe.dimensions}: {responses.source} has {len(responses.subjects)} subjects, and "
                "there must be more of them than dimensions"
            )
        return recipe
    firsts = copies(responses)
    dimensions, losses = choose_dimensions(
        responses.scores,
        lambda D: replace(recipe, dimensions=D),
        progress=screen.progress,
        copies=firsts,
        weights=grouped(responses, firsts).weights,
    )
    losses_text = ", ".join(f"{D}: {loss:.4f}" for D, loss in losses.items())
    screen.note(f"{dimensions} for dimensions = auto; held-out loss by dimensions: {losses_text}")
    return replace(recipe, dimensions=dimensions)


def names_of(options: argparse.Namespace, flag: str) -> list[str]:
    """Return the comma-separated names of a flag, each once."""
    names = []
    for name in getattr(options, flag).split(","):
        if name.strip():
            names.append(name.strip())
    if not names:
        raise ConfigError(f"--{flag} is empty: name one, or several with commas")
    return list(dict.fromkeys(names))


def budgets_of(options: argparse.Namespace, items: int) -> list[str]:
    """Return the budgets, after checking them for a bank of that size."""
    from pytest_adaptive_eval.cat.stopping import resolve_budget

    names = names_of(options, "budget")
    for name in names:
        try:
            resolve_budget(name, items)
        except ConfigError as error:
            raise ConfigError(f"--{error}") from None
    return names


def refuse(options: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Raise a ConfigError if an option or a setting was given that does not apply."""
    settings = given_settings(options)
    for name in names:
        if name in settings:
            raise ConfigError(f"{name} = {settings[name]} {reason}; leave it out")
        if getattr(options, name.replace("-", "_"), None) not in (None, False, []):
            raise ConfigError(f"--{name} {reason}; leave it out")


def spare(writes: Mapping[str, Path | None], inputs: Iterable[Path | str | None]) -> None:
    """Raise a ConfigError if an output, by its option in `writes`, is also an input."""
    replaced = {flag: path for flag, path in writes.items() if path is not None and path.is_file()}
    if not replaced:  # the inputs may be ten thousand records
        return
    existing_inputs = [Path(path) for path in inputs if path is not None and Path(path).exists()]
    for flag, path in replaced.items():
        if any(map(path.samefile, existing_inputs)):
            raise ConfigError(f"{flag} {path} is a file that is read, and would be replaced: choose another name")


def check_writable(flag: str, path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a result file that cannot be written or is an input, before hours of work."""
    spare({flag: path}, inputs)
    if flag != "-o":
        folder = path.parent
    else:
        folder = next(p for p in (path.absolute().parents) if p.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(f"{flag} {path}: {folder} is not a folder that can be written to")
    if flag != "-o" and path.is_dir():
        raise ConfigError(f"{flag} {path} is a folder: name a file")


def check_bank_output(output: Path, *, replaces: bool) -> None:
    """Refuse a bank folder that cannot be written, or that exists and is not to be replaced."""
    from pytest_adaptive_eval.banks.writer import check_place

    try:
        check_place(output, replaces)
    except BankError as error:
        raise ConfigError(f"-o {error}") from None
    check_writable("-o", output)
