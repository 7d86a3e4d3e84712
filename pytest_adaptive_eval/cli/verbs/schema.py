"""``adaptive-eval schema``: the JSON Schema of files of evaluations."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pytest_adaptive_eval.cli.options import PASSED, check_writable
from pytest_adaptive_eval.cli.screen import put, save
from pytest_adaptive_eval.cli.verb import Verb


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write the schema there (standard output)")


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.evaluation.schema import file_schema

    if options.output is None:
        put(json.dumps(file_schema(), indent=1) + "\n")
    else:
        check_writable("--output", options.output)
        save(options.output, file_schema())
    return PASSED


REGISTERED = (
    Verb(
        "schema",
        "print the JSON Schema of adaptive-eval.toml, for editors",
        "Print the JSON Schema of adaptive-eval.toml and *.eval.toml. Editors check and complete a file whose first "
        "line is '#:schema PATH'.",
        _add_arguments,
        _run,
        ("schema -o adaptive-eval.schema.json",),
    ),
)
