"""Extras of this distribution: their requirements, and the missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NAME = "pytest-adaptive-eval"


def extras() -> tuple[str, ...]:
    """Return the names of the extras, except collections of other extras."""
    names = metadata(_NAME).get_all("Provides-Extra") or []
    return tuple(sorted(name for name in names if name != "all"))


def missing_packages(extra: str) -> tuple[str, ...]:
    """Return the requirements of an extra that are missing or too old, as arguments for pip."""
    return tuple(_missing(extra, {}))


def _missing(extra: str, visited: Mapping[str, None]) -> list[str]:
    from packaging.requirements import Requirement

    missing = []
    for text in requires(_NAME) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            continue
        if not requirement.marker.evaluate({"extra": extra}):
            continue
        if requirement.name == _NAME:
            for other in requirement.extras - {extra, *visited}:
                missing += _missing(other, {**visited, extra: None})
        elif not _is_installed(requirement):
            missing.append(f"{requirement.name}{requirement.specifier}")
    return missing


def _is_installed(requirement: Requirement) -> bool:
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return False
    return requirement.specifier.contains(installed, prereleases=True)
