"""What the verbs share: options that are read and checked, and what is said on the way."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.calibration.recipe import Recipe
    from pytest_adaptive_eval.items.responses import Responses

__all__ = [
    "INTERRUPTED",
    "NOT_PASSED",
    "PASSED",
    "RECIPE",
    "USAGE",
    "Screen",
    "budgets_of",
    "names_of",
    "open_streams",
    "put",
    "read",
    "recipe_of",
    "refuse",
    "screen",
    "spare",
    "width",
    "with_dimensions",
    "writable",
]

#: Exit codes, as of pytest.
PASSED = 0
NOT_PASSED = 1
INTERRUPTED = 2
USAGE = 4
#: Options of a fit.
RECIPE = ("model", "dimensions", "engine", "device", "limit")


def open_streams() -> None:
    """Let standard output and error take any text: they escape what they cannot encode, and if closed swallow all."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 -- to the process's end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def put(text: str, stream: TextIO | None = None) -> None:
    """Write text to standard output, or to another stream, at once; to nowhere when its reader has gone."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:  # as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Screen:
    """What goes to standard error: notes, and on a terminal one line that says what is being done."""

    busy = False

    def progress(self, text: str) -> None:
        """Show what is being done in place of what was; nothing where there is no terminal."""
        if sys.stderr.isatty() and (text or self.busy):
            put(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", sys.stderr)
            self.busy = bool(text)

    def say(self, text: str) -> None:
        """A line of its own."""
        from pytest_adaptive_eval.text import clean_terminal

        self.progress("")
        put(clean_terminal(text) + "\n", sys.stderr)

    def note(self, text: str) -> None:
        """Something that was decided."""
        self.say(f"note: {text}")


screen = Screen()


def read(options: argparse.Namespace, path: Path) -> Responses:
    """The responses at a path, as the options say."""
    from pytest_adaptive_eval.banks.responses import read_responses

    screen.progress(f"reading {path}")
    return read_responses(
        path,
        format=options.format,
        orientation=options.orientation,
        metric=options.metric,
        filter=options.filter,
        families=options.families,
        note=screen.note,
    )


def recipe_of(options: argparse.Namespace) -> Recipe:
    """The recipe that the options say, without the dimensions where those are ``auto``."""
    from pytest_adaptive_eval.calibration.recipe import Recipe

    model, engine = options.model or Recipe().model, options.engine or Recipe().engine
    Recipe(model, engine=engine).check_model()
    dimensions: int | None = None
    if options.dimensions not in (None, "auto"):
        if not options.dimensions.isdecimal() or int(options.dimensions) < 1:
            raise ConfigError(f"--dimensions {options.dimensions}: expected a number of at least 1, or auto")
        dimensions = int(options.dimensions)
    if model != "mirt" and (options.dimensions == "auto" or dimensions not in (None, 1)):
        raise ConfigError(f"--dimensions {options.dimensions} goes with --model mirt; {model} has one")
    if options.device is not None:
        try:
            import torch

            torch.zeros(1, device=options.device)
        except ImportError:
            raise ConfigError("--device needs torch: pip install pytest-adaptive-eval[hf]") from None
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ConfigError(f"--device {options.device} cannot be used: {str(error).splitlines()[0]:.200}") from None
    return Recipe(model, dimensions, engine, options.seed, options.device, options.limit)


def with_dimensions(options: argparse.Namespace, recipe: Recipe, responses: Responses) -> Recipe:
    """The recipe with the number of dimensions that ``--dimensions auto`` finds."""
    from pytest_adaptive_eval.calibration.quality import choose_dimensions
    from pytest_adaptive_eval.calibration.replay import copies

    if options.dimensions != "auto":
        if recipe.dimensions is not None and recipe.dimensions >= len(responses.subjects):
            raise ConfigError(
                f"--dimensions {recipe.dimensions}: {responses.source} has {len(responses.subjects)} subjects, and "
                "there must be more of them than dimensions"
            )
        return recipe
    dimensions, losses = choose_dimensions(
        responses.scores, lambda D: replace(recipe, dimensions=D), progress=screen.progress, copies=copies(responses)
    )
    losses_text = ", ".join(f"{D}: {loss:.4f}" for D, loss in losses.items())
    screen.note(f"{dimensions} for --dimensions auto; held-out loss by dimensions: {losses_text}")
    return replace(recipe, dimensions=dimensions)


def names_of(options: argparse.Namespace, flag: str) -> list[str]:
    """The names that a flag lists with commas, each once."""
    names = [name.strip() for name in getattr(options, flag).split(",") if name.strip()]
    if not names:
        raise ConfigError(f"--{flag} is empty: name one, or several with commas")
    return list(dict.fromkeys(names))


def budgets_of(options: argparse.Namespace, items: int) -> list[str]:
    """The budgets, each of which is good for a bank of that size."""
    from pytest_adaptive_eval.cat.stopping import resolve_budget

    names = names_of(options, "budget")
    for name in names:
        try:
            resolve_budget(name, items)
        except ConfigError as error:
            raise ConfigError(f"--{error}") from None
    return names


def refuse(options: argparse.Namespace, flags: Iterable[str], why: str) -> None:
    """Refuse options that were given and do not apply, rather than to drop them without a word."""
    for flag in flags:
        if getattr(options, flag.replace("-", "_")) not in (None, False, []):
            raise ConfigError(f"--{flag} {why}; leave it out")


def spare(writes: Mapping[str, Path | None], inputs: Iterable[Path | str | None]) -> None:
    """Refuse to write over files that are read; `writes` are paths by their options."""
    existing_inputs = [Path(one) for one in inputs if one is not None and Path(one).exists()]
    for flag, path in writes.items():
        if path is not None and path.is_file() and any(map(path.samefile, existing_inputs)):
            raise ConfigError(f"{flag} {path} is a file that is read, and would be replaced: choose another name")


def writable(flag: str, path: Path, inputs: Iterable[Path | None] = ()) -> None:
    """Tell before hours of work, not after, that the result has no place, or that of an input."""
    spare({flag: path}, inputs)
    folder = path.parent if flag != "-o" else next(p for p in (path.absolute().parents) if p.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(f"{flag} {path}: {folder} is not a folder that can be written to")
    if flag != "-o" and path.is_dir():
        raise ConfigError(f"{flag} {path} is a folder: name a file")


def width() -> int:
    """Columns of the report: the terminal's; without one, lines stay whole."""
    return max(80, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 10_000
