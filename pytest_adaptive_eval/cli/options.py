"""Options that verbs share: their declaration, checks and conversion."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.logs import add_mapping_arguments, mapping_of
from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.errors import BankError, ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.calibration.choice import ModelChoice
    from pytest_adaptive_eval.calibration.recipe import Recipe
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses

#: Exit codes, as of pytest.
PASSED = 0
NOT_PASSED = 1
INTERRUPTED = 2
USAGE = 4
#: Options of a fit.
RECIPE = ("model", "dimensions", "engine", "device", "limit")


def parse_count(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 1")
    return int(text)


def parse_seed(text: str) -> int:
    """Return a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 0")
    return int(text)


def add_responses_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the responses, which `text` describes, and the options for reading them."""
    from pytest_adaptive_eval.banks.responses import FORMATS, setting_help

    parser.add_argument("source", metavar="RESPONSES", type=Path, help=text)
    add = parser.add_argument_group("reading responses").add_argument
    text = f"format of the responses, recognised when omitted: {', '.join(FORMATS)}"
    add("--format", metavar="FORMAT", choices=list(FORMATS), help=text)
    add("--orientation", choices=("items-by-subjects", "subjects-by-items"), help="what a CSV's rows and columns are")
    add("--metric", metavar="NAME", help=f"choice where there are several; {setting_help('metric')}")
    add("--filter", metavar="NAME", help=f"choice where there are several; {setting_help('filter')}")
    add("--families", metavar="CSV", type=Path, help="family or training run of each subject")
    add_mapping_arguments(parser)


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a fit, and the seed."""
    from pytest_adaptive_eval.calibration.engines.variational import DIMENSIONS
    from pytest_adaptive_eval.calibration.recipe import ENGINES, MODELS, Recipe

    add = parser.add_argument_group("calibration").add_argument
    add("--model", choices=MODELS, help="item response model (chosen by held-out loss over families)")
    text = f"of mirt: a number, or auto by held-out likelihood ({DIMENSIONS})"
    add("--dimensions", metavar="D", help=text)
    summaries = "; ".join(engine.summary for engine in ENGINES.values())
    add("--engine", choices=list(ENGINES), help=f"{summaries} ({Recipe().engine})")
    add("--device", help="torch device such as cuda (numpy on the processor when omitted)")
    add("--limit", metavar="N", type=parse_count, help="largest number of iterations")
    add("--seed", metavar="N", type=parse_seed, default=0, help="of splits, folds and draws (%(default)s)")


def add_origin_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that record where the questions of a bank come from."""
    add = parser.add_argument
    add(
        "--source",
        dest="origin",
        metavar="TEXT",
        help="where the data come from, for the record (the name of the data)",
    )
    add("--licence", metavar="NAME", help="licence of the data, for the record (read from files beside them)")


def origin(options: argparse.Namespace, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is recorded on the source of a bank's questions; the options win over what is known."""
    named = {"source": options.origin, "licence": options.licence}
    return {**recorded, **{name: text for name, text in named.items() if text}}


def add_low_quality_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option for responses to items of low quality."""
    text = "responses in formats to items all known to be of low quality, beside those that --items marks"
    parser.add_argument("--low-quality", metavar="FILE", type=Path, action="append", default=[], help=text)


def read(options: argparse.Namespace, path: Path, items: Mapping[str, Item] | None = None) -> Responses:
    """Read the responses at a path as the options say; one's own items grade answers without a score."""
    from pytest_adaptive_eval.banks.responses import read_responses

    screen.progress(f"reading {path}")
    return read_responses(
        path,
        format=options.format,
        orientation=options.orientation,
        metric=options.metric,
        filter=options.filter,
        families=options.families,
        mapping=mapping_of(options),
        items=items,
        note=screen.note,
    )


def recipe_of(options: argparse.Namespace) -> Recipe:
    """Return the recipe of the options, without the dimensions where those are ``auto``."""
    from pytest_adaptive_eval.calibration.recipe import Recipe

    model, engine = options.model or Recipe().model, options.engine or Recipe().engine
    Recipe(model, engine=engine).check_model()
    dimensions = _dimensions(options.dimensions, model)
    if options.device is not None:
        _check_device(options.device)
    return Recipe(model, dimensions, engine, options.seed, options.device, options.limit)


def _dimensions(text: str | None, model: str) -> int | None:
    """Return the number of dimensions; None by default and for ``auto``."""
    dimensions = None
    if text not in (None, "auto"):
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(f"--dimensions {text}: expected a number of at least 1, or auto")
        dimensions = int(text)
    if model != "mirt" and (text == "auto" or dimensions not in (None, 1)):
        raise ConfigError(f"--dimensions {text} goes with --model mirt; {model} has one")
    return dimensions


def _check_device(device: str) -> None:
    try:
        import torch

        torch.zeros(1, device=device)
    except ImportError:
        raise ConfigError("--device needs torch: pip install pytest-adaptive-eval[hf]") from None
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"--device {device} cannot be used: {str(error).splitlines()[0]:.200}") from None


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
    """Return the recipe with the number of dimensions that ``--dimensions auto`` chooses."""
    from pytest_adaptive_eval.calibration.families import copies, grouped
    from pytest_adaptive_eval.calibration.quality import choose_dimensions

    if options.dimensions != "auto":
        if recipe.dimensions is not None and recipe.dimensions >= len(responses.subjects):
            raise ConfigError(
                f"--dimensions {recipe.dimensions}: {responses.source} has {len(responses.subjects)} subjects, and "
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
    screen.note(f"{dimensions} for --dimensions auto; held-out loss by dimensions: {losses_text}")
    return replace(recipe, dimensions=dimensions)


def names_of(options: argparse.Namespace, flag: str) -> list[str]:
    """Return the comma-separated names of a flag, each once."""
    names = [name.strip() for name in getattr(options, flag).split(",") if name.strip()]
    if not names:
        raise ConfigError(f"--{flag} is empty: name one, or several with commas")
    return list(dict.fromkeys(names))


def budgets_of(options: argparse.Namespace, items: int) -> list[str]:
    """Return the budgets, each of which is valid for a bank of that size."""
    from pytest_adaptive_eval.cat.stopping import resolve_budget

    names = names_of(options, "budget")
    for name in names:
        try:
            resolve_budget(name, items)
        except ConfigError as error:
            raise ConfigError(f"--{error}") from None
    return names


def refuse(options: argparse.Namespace, flags: Iterable[str], reason: str) -> None:
    """Raise a ConfigError if an option was given that does not apply."""
    for flag in flags:
        if getattr(options, flag.replace("-", "_")) not in (None, False, []):
            raise ConfigError(f"--{flag} {reason}; leave it out")


def spare(writes: Mapping[str, Path | None], inputs: Iterable[Path | str | None]) -> None:
    """Raise a ConfigError if an output, by its option in `writes`, is also an input."""
    existing_inputs = [Path(path) for path in inputs if path is not None and Path(path).exists()]
    for flag, path in writes.items():
        if path is not None and path.is_file() and any(map(path.samefile, existing_inputs)):
            raise ConfigError(f"{flag} {path} is a file that is read, and would be replaced: choose another name")


def check_writable(flag: str, path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse a result file that cannot be written or is an input, before hours of work."""
    spare({flag: path}, inputs)
    folder = path.parent if flag != "-o" else next(p for p in (path.absolute().parents) if p.exists())
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
