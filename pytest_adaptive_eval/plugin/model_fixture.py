"""The fixture that gives a question its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.base import SubjectIdentity

#: Fixture scopes that outlive a question.
WIDE_SCOPES = ("session", "package", "module", "class")


def check_scope(node: pytest.Function, name: str, where: str) -> None:
    """Refuse a fixture that would load the model for every question.

    Raises:
        ConfigError: The fixture `name` has the scope of a function.
    """
    definitions = node._fixtureinfo.name2fixturedefs.get(name, ())
    if definitions and definitions[-1].scope not in WIDE_SCOPES:
        raise ConfigError(
            f"{where}: the fixture {name!r} has scope {definitions[-1].scope!r} and would load the model for every "
            'question: write @pytest.fixture(scope="module") or a wider one'
        )


def find_model_fixture(funcargs: Mapping[str, Any]) -> tuple[str, Any, SubjectIdentity]:
    """Return the name, value and identity of the question's model fixture."""
    identified = {n: v for n, v in funcargs.items() if isinstance(getattr(v, "identity", None), SubjectIdentity)}
    name = "model" if "model" in identified else next(iter(identified), "model")
    subject = funcargs.get(name)
    if name in identified:
        return name, subject, identified[name].identity
    return (
        name,
        subject,
        SubjectIdentity("" if subject is None else getattr(subject, "__name__", type(subject).__name__)),
    )
