"""Verbs of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser


class Verb(NamedTuple):
    """One verb of ``adaptive-eval``.

    A module in ``cli/verbs`` lists its verb in ``REGISTERED``. So does a module that an entry point of the group
    ``adaptive_eval.verbs`` names.

    Attributes:
        name: One word, or two: ``bank info`` is listed under ``bank``.
        summary: Line in the list of verbs.
        description: Head of the verb's own help.
        add_arguments: Function that adds the verb's arguments to a parser.
        run: Function from the parsed arguments to the exit code.
        examples: Commands at the end of the help, without ``adaptive-eval``.
    """

    name: str
    summary: str
    description: str
    add_arguments: Callable[[VerbParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: tuple[str, ...] = ()
