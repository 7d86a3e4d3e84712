"""``adaptive-eval init``: a first evaluation of what a folder holds."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from pytest_adaptive_eval.cli.options import PASSED, check_writable
from pytest_adaptive_eval.cli.screen import save, say, screen
from pytest_adaptive_eval.cli.starts import STARTS
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="FOLDER", nargs="?", type=Path, default=Path(), help="the project (the current folder)")
    text = "the model to interview: a checkpoint folder, or http://HOST:PORT/v1#MODEL; found when omitted"
    add("--model", metavar="MODEL", action="append", help=text + "; given again, with --kind, others that take part")
    text = "what to write: a ladder of generated questions, pictures with and without words (M3-IRT), a network of "
    text += (
        "interviews (MACEval), a panel of models that judge each other (AutoBench); by default questions that are found"
    )
    add("--kind", choices=sorted(STARTS), help=text)
    add("--dry-run", action="store_true", help="show what would be written, and write nothing")
    text = "write the JSON Schema of adaptive-eval.toml alone, by which editors check and complete the file"
    add("--schema", metavar="FILE", type=Path, help=text)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.cli.project import look_at
    from pytest_adaptive_eval.cli.setup import set_up, start
    from pytest_adaptive_eval.evaluation.toml import file_schema
    from pytest_adaptive_eval.outputs import replacing
    from pytest_adaptive_eval.text import clean_terminal

    if options.schema is not None:
        check_writable("--schema", options.schema)
        save(options.schema, file_schema())
        return PASSED
    root = options.folder
    if not root.is_dir():
        raise ConfigError(f"{root} is not a folder; name the folder of the project")
    screen.progress(f"looking at {root}")
    models = options.model or []
    if options.kind is None and len(models) > 1:
        raise ConfigError(f"{len(models)} models go with --kind network or --kind panel; name one to interview")
    setup = set_up(look_at(root), *models[:1]) if options.kind is None else start(options.kind, look_at(root), models)
    screen.progress("")
    say([clean_terminal(f"found: {finding}") for finding in setup.findings])
    if existing := next((root / name for name in setup.files if (root / name).exists()), None):
        raise ConfigError(f"{existing} exists; remove or rename it, and run init again")
    for name, text in setup.files.items():
        if options.dry_run:
            say(["", f"{name}:", *(f"  {line}" for line in text.splitlines()[:40])])
        else:
            with replacing(root / name) as file:
                file.write(text.encode())
            say([f"wrote {root / name}"])
    change_folder = [] if root.resolve() == Path.cwd() else [f"cd {shlex.quote(str(root))}"]
    say(["", "next:", *(f"  {command}" for command in (*change_folder, *setup.commands))])
    return PASSED


REGISTERED = (
    Verb(
        "init",
        "look at a project and write its first evaluation",
        "Look at a folder for checkpoints, servers, questions, logs, tests and continuous integration; write "
        "adaptive-eval.toml with a planned budget and a workflow; and say the next commands. Files that exist stay.",
        _add_arguments,
        _run,
        (
            "init --dry-run",
            "init --model checkpoints/late",
            "init --kind panel --model URL#ant --model URL#bee --model URL#cat",
            "init --schema adaptive-eval.schema.json",
        ),
    ),
)
