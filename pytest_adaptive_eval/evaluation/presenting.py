"""Presentation of an evaluation's items as the user wrote it: template, examples, and scoring by likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.tables import MarkerTable
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import CANDIDATES, NORMALIZATIONS, ChoiceLikelihood
from pytest_adaptive_eval.items.presentation import PLAIN, Example, Presentation, example_of, template_fields
from pytest_adaptive_eval.typed_tables import find_named, refuse_keys

#: Keys of an evaluation that say how its items are presented.
PRESENTATION_KEYS = ("ask", "normalization", "template", "examples", "shots", "delimiter", "candidates")
#: Value of ``ask`` by which likelihoods score the items.
LIKELIHOOD = "likelihood"


def check_keys(table: MarkerTable, data: Mapping[str, Any]) -> None:
    """Check the settings of the presentation that need no bank.

    Raises:
        ConfigError: A setting is unknown, has no effect, or excludes another.
    """
    fields = template_fields(PLAIN if table.template is None else table.template)
    find_named("normalization", table.normalization, NORMALIZATIONS)
    if table.candidates is not None:
        find_named("candidates", table.candidates, CANDIDATES)
    if table.ask != LIKELIHOOD:
        refuse_keys(data, ("normalization",), 'goes with ask = "likelihood": add that, or remove it')
        if "choices" not in fields and not table.examples:
            refuse_keys(data, ("candidates", "delimiter"), 'goes with examples or ask = "likelihood": remove it')
    else:
        refuse_keys(
            data, ("samples", "repeat"), 'goes with written answers, and ask = "likelihood" has none: remove it'
        )
    if table.examples and "examples" not in fields:
        raise ConfigError("examples are given, and the template has no {examples}: add it, or remove examples")
    if not table.examples:
        refuse_keys(data, ("shots",), "goes with examples, and there are none: remove it, or name a file of examples")
        if table.template is not None and "examples" in fields:
            raise ConfigError("template has {examples}, and there are none: name a file of items as examples")
    if table.template is not None or table.examples:
        refuse_keys(data, ("formats",), "and a template exclude each other, since a format leaves out the prompt")


def presentation_of(table: MarkerTable, read: Callable[[str], Sequence[Item]]) -> Presentation | None:
    """Return how items are presented; None if as the bank has them.

    Args:
        table: Checked by `check_keys`.
        read: Returns the items of a file of examples.

    Raises:
        ConfigError: There are too few examples, or an item is none.
    """
    if table.template is None and not table.examples and table.ask != LIKELIHOOD:
        return None
    template = PLAIN if table.template is None else table.template
    listed = "choices" in template_fields(template)
    candidates = table.candidates or ("letter" if listed else "text")
    examples, shots = _examples(table, read)
    likelihood = None
    if table.ask == LIKELIHOOD:
        likelihood = ChoiceLikelihood(table.normalization, table.delimiter, candidates)
    return Presentation(template, examples, shots, likelihood, table.delimiter, candidates)


def _examples(table: MarkerTable, read: Callable[[str], Sequence[Item]]) -> tuple[tuple[Example, ...], int]:
    """Return the examples, one more than are shown if there is one, and the number that are shown."""
    if not table.examples:
        return (), 0
    items = read(table.examples)
    shots = len(items) if table.shots is None else table.shots
    if shots > len(items):
        raise ConfigError(f"shots is {shots}, and {table.examples} has {len(items)} items: give more, or ask for fewer")
    return tuple(map(example_of, items[: shots + 1])), shots
