"""Report sections of study kinds, registered with a module each."""

from __future__ import annotations

from functools import cache

from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.reports.sections import StudySection

__all__ = ["section_of"]


@cache
def section_of(kind: str) -> StudySection:
    """Return the section of a study kind: the registered one, else one with rankings alone."""
    return registered(__name__, "adaptive_eval.report_sections", StudySection).get(kind, StudySection(kind))
