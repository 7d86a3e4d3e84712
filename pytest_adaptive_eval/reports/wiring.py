"""What a page says of a network: its drawing, and what each node found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.reports.curves import real
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.networks import network_picture
from pytest_adaptive_eval.reports.tables import ROWS, Table, mapping, short
from pytest_adaptive_eval.text import number

__all__ = ["network_figures", "network_tables"]


def network_tables(study: StudyRecord) -> list[Table]:
    """What each node found, and what went wrong there."""
    nodes = _nodes(study)[:ROWS]
    found = [
        (
            short(node.get("name")),
            short(node.get("task")),
            short(node.get("interviewer") or "code"),
            _bounds(node.get("area")) if node.get("opened") else "closed",
            f"{_told(node.get('last'), 0)} of {_told(node.get('levels'), 0)}",
            _told(node.get("weight"), 2),
        )
        for node in nodes
    ]
    counted = ("attempts", "format", "level", "repeat", "silent", "directives", "fallbacks", "wrong_claims", "faults")
    rows = [
        (short(node.get("name")), *(_told(mapping(node.get("counts")).get(name, 0), 0) for name in counted))
        for node in nodes
        if node.get("interviewer") or mapping(node.get("counts")).get("faults")
    ]
    heads = ("node", "task", "asked by", "area under the accuracies", "last level", "weight")
    return [
        Table("Nodes", heads, found, "Areas in levels, with their bounds. A node stays closed where those before it "
              "did not surely reach what it asks for."),
        Table(
            "Questions that models wrote",
            ("node", "asked", "format", "level", "repeated", "silent", "directives", "by code", "untrue", "faults"),
            rows,
            "A model's own answers never count: the truth is the code's.",
        ),
    ]  # fmt: skip


def network_figures(study: StudyRecord) -> list[Figure]:
    """The drawing of the network; none of a damaged record."""
    try:
        picture = network_picture(mapping(study.account))
    except (LookupError, TypeError, ValueError, AttributeError):
        return []
    caption = (
        "From the interviewee to the last nodes; dashed ones stayed closed. Numbers at the ways are their weights."
    )
    return [Figure("The network", caption, picture)]


def _nodes(study: StudyRecord) -> list[Mapping[str, Any]]:
    return [node for node in _list(mapping(study.account).get("nodes")) if isinstance(node, Mapping)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bounds(value: Any) -> str:
    estimate, low, high = (_told(mapping(value).get(name), 2) for name in ("estimate", "low", "high"))
    return f"{estimate} [{low}, {high}]"


def _told(value: Any, digits: int) -> str:
    found = real(value)
    return "-" if found is None else number(found, digits) if digits else f"{found:.0f}"
