"""Registry of the report sections of study kinds.  A section's module is imported for a study of its kind."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from pytest_adaptive_eval.reports.sections import StudySection

__all__ = ["ENTRY_POINTS", "SECTIONS", "section_of"]

#: Group of the entry points by which other packages register sections.  The name of an entry point is the study kind,
#: and its object a `StudySection`.
ENTRY_POINTS = "pytest_adaptive_eval.report_sections"


def _peers() -> StudySection:
    from pytest_adaptive_eval.reports.panel import SECTION

    return SECTION


def _network() -> StudySection:
    from pytest_adaptive_eval.reports.networks import SECTION

    return SECTION


#: Loaders of the sections by study kind.
SECTIONS: dict[str, Callable[[], StudySection]] = {"peers": _peers, "network": _network}


def section_of(kind: str) -> StudySection:
    """Return the section of a study kind: the registered one, else one with rankings alone."""
    if kind not in SECTIONS:
        registered: Any = next(iter(entry_points(group=ENTRY_POINTS, name=kind)), None)
        SECTIONS[kind] = registered.load if registered else StudySection
    return SECTIONS[kind]()
