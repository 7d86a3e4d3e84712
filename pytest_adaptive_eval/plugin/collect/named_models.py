"""Models that the command line gives to all evaluations, or to single ones by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.text import shown_address
from pytest_adaptive_eval.typed_tables import suggestion

FLAG = "--adaptive-eval-model"
#: ``NAME=MODEL``; a URL, a path and a kind such as ``replay:`` have other signs before the first ``=``.
_NAMED = re.compile(r"([\w. -]+)=(.*)", re.DOTALL)


def empty_flag(flag: str) -> ConfigError:
    """Return the refusal of a flag with an empty value."""
    return ConfigError(f"{flag} is empty: give it a value (is a variable of the shell unset?) or leave it out")


def split_models(values: Sequence[str]) -> tuple[str | None, dict[str, str]]:
    """Return the model of all evaluations, if there is one, and the models of single evaluations by name.

    A value that is a file or a folder as a whole names that, whatever signs it has. Of several the last counts.

    Raises:
        ConfigError: A value or a model is empty.
    """
    whole: str | None = None
    named: dict[str, str] = {}
    for value in values:
        if Path(value).exists():
            match = None
        else:
            match = _NAMED.fullmatch(value)
        name, model = (match[1], match[2]) if match else ("", value)
        if not model:
            raise empty_flag(FLAG)
        if name:
            named[name] = model
        else:
            whole = model
    return whole, named


def check_named(models: Mapping[str, str], used: Collection[str]) -> None:
    """Refuse models of evaluations that no file of the run has.

    Raises:
        ConfigError: The message suggests a name.
    """
    for name, model in models.items():
        if name not in used:
            raise ConfigError(
                f"{FLAG}={name}={shown_address(model)}: no TOML file of this run has an evaluation {name!r}; "
                f"{suggestion(name, sorted(used))}; tests in Python take their models from fixtures"
            )
