"""Drawn networks: well-formed whatever the names are, with all nodes and edges."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.extensions.studies.report_sections.network import NetworkAccount, network_picture

SVG = "{http://www.w3.org/2000/svg}"


def node(name: str, after: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    area = {"estimate": 2.1, "low": 1.4, "high": 3.8, "confidence": 0.95, "method": "by levels"}
    plain = {
        "name": name,
        "task": "addition",
        "after": list(after),
        "area": area,
        "last": 3,
        "levels": 5,
        "weight": 0.5,
    }
    return {**plain, "interviewer": "", "questions": "code", "opened": True, "panel": [], **more}


def network(*nodes: dict[str, Any], **more: Any) -> NetworkAccount:
    energy = {"estimate": 0.42, "low": 0.31, "high": 0.57, "confidence": 0.95, "method": "by levels and routes"}
    data = {"topology": "hybrid", "interviewee": "sue", "nodes": list(nodes), "energy": energy, **more}
    return msgspec.convert(data, NetworkAccount)


def test_all_nodes_edges_and_results_are_there() -> None:
    panel: list[dict[str, Any]] = [
        {"name": name, "accuracies": [], "mended": 0, "spoiled": 0} for name in ("sue", "pal", "the most")
    ]
    data = network(
        node("c", ("a", "b"), area=None, opened=False),
        node("a", interviewer="ann", questions="written"),
        node("b", ("a",), panel=panel),
    )
    root = ET.fromstring(network_picture(data, "n"))
    assert len(root.findall(f".//{SVG}g[@class='node']")) == 3
    assert len(root.findall(f".//{SVG}g[@class='edge']")) == 4
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert "2.10 [1.40, 3.80], level 3 of 5" in texts
    assert "closed" in texts
    assert "written by ann" in texts
    assert "with pal" in texts


@pytest.mark.parametrize(
    ("fallbacks", "drawn"), [(0, "written by ann"), (1, "written by ann, 1 of 4 by code"), (4, "questions by code")]
)
def test_questions_that_code_set_are_not_written_by_the_interviewer(fallbacks: int, drawn: str) -> None:
    scores, counts = [[1.0, 0.0], [1.0, 1.0]], {"fallbacks": fallbacks}
    data = network(node("a", interviewer="ann", questions="written", scores=scores, counts=counts))
    root = ET.fromstring(network_picture(data, "n"))
    assert drawn in [element.text for element in root.iter(f"{SVG}text")]


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_names_cannot_break_it(name: str, other: str) -> None:
    if name == other:
        return
    data = network(node(name, interviewer=other), node(other, (name,), task=name), interviewee=other, supervisor=name)
    picture = network_picture(data, "n")
    root = ET.fromstring(picture)
    assert {element.tag for element in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "g", "rect", "path", "text", "title", "desc")
    }


def test_a_name_of_markup_is_text() -> None:
    evil = "</text><script>alert(1)</script>"
    picture = network_picture(network(node(evil), interviewee=evil, supervisor=evil), "n")
    assert "<script" not in picture
    assert "&lt;script" in picture
