"""Networks as they are written: defaults, shapes, and what is said of mistakes."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.declare import NetworkTable, NodeTable, read_network, recorded
from pytest_adaptive_eval.extensions.studies.network.labels import Label, read_labels
from pytest_adaptive_eval.extensions.studies.network.node import LevelItems, bank_levels
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.tasks import FAMILIES, TaskFamily
from pytest_adaptive_eval.tasks.bank import task_bank

TOML = """
topology = "tree"
queries = 5
stop_at = 0.5
rounds = 2
seed = 7
interviewer = "ann"
supervisor = { model = "sup", scheme = "scale", exchanges = 2 }

[[node]]
task = "addition"
levels = 4
weight = 2

[[node]]
name = "harder"
task = "decimals"
levels = 3
after = "addition"
questions = "rephrased"

[[node]]
task = "code_generation"
after = ["addition"]
opens_at = 2
interviewer = ""
"""


def test_a_tree_of_a_toml_file() -> None:
    network = read_network(tomllib.loads(TOML), "sue")
    add, harder, code = network.nodes
    assert (add.levels, add.queries, add.stop_at, add.opens_at) == (4, 5, 0.5, 0.0)
    assert (harder.after, harder.opens_at, harder.questions) == (("addition",), 1.0, "rephrased")
    assert (code.interviewer, code.questions, code.opens_at) == ("", "code", 2)
    assert code.levels == FAMILIES["code_generation"].levels
    assert network.weights() == {"addition": 0.5, "harder": 0.25, "code_generation": 0.25}
    assert (network.rounds, network.seed) == (2, 7)
    assert network.agents == ("ann", "sup")
    assert network.subjects == ("sue",)
    assert network.supervision is not None
    assert (network.supervision.scheme, network.supervision.exchanges) == ("scale", 2)
    assert [node.name for node in network.ancestors("harder")] == ["addition"]


def test_each_node_of_a_line_follows_the_one_before() -> None:
    for count in (1, 2, 4):
        nodes = [{"task": "addition", "name": str(n)} for n in range(count)]
        network = read_network({"node": nodes}, "sue")
        assert network.topology == "line"
        assert [node.after for node in network.nodes[1:]] == [(str(n),) for n in range(count - 1)]
        assert [node.after for node in network.nodes] == [(), *((str(n),) for n in range(count - 1))]


def test_a_hybrid_has_panels_and_nodes_in_any_order() -> None:
    nodes = [
        {"task": "addition", "name": "c", "after": ["a", "b"]},
        {"task": "addition", "name": "b", "after": "a", "panel": ["pal", "mate"], "edges": [["pal", "sue"]]},
        {"task": "addition", "name": "a"},
    ]
    network = read_network({"topology": "hybrid", "node": nodes}, "sue")
    assert [node.name for node in network.order()] == ["a", "b", "c"]
    assert [node.name for node in network.ancestors("c")] == ["a", "b"]
    assert network.subjects == ("sue", "pal", "mate")
    assert network.nodes[1].cycles == 1


A = {"task": "addition"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"node": []}, "no nodes"),
        ({}, "no nodes"),
        ({"nodes": []}, "unknown setting 'nodes'; did you mean 'node'?"),
        ({"node": [A], "topology": "ring"}, "topology is 'ring', expected 'hybrid' or 'line' or 'star' or 'tree'"),
        ({"node": [A], "content_filter": "python:a:b"}, "content_filter is gone: filter texts in the server"),
        ({"node": [A], "queries": "ten"}, "queries is 'ten', expected a whole number"),
        ({"node": [A], "queries": True}, "queries is True"),
        ({"node": [A], "queries": 0}, "node 'addition': queries is 0"),
        ({"node": [A], "rounds": 0}, "rounds is 0, expected a whole number of at least 1"),
        ({"node": [A], "retries": -1}, "retries is -1"),
        ({"node": [A], "seed": -1}, "seed is -1"),
        ({"node": [A], "confidence": 1.0}, "confidence is 1.0"),
        ({"node": ["addition"]}, "node 1 is 'addition', expected a table"),
        ({"node": [{}]}, "node 1: a node has either a task or a bank; found none"),
        ({"node": [{**A, "bank": "b"}]}, "found both"),
        ({"node": [{"bank": "b"}]}, "banks cannot be read here"),
        ({"node": [{"task": "nothing"}]}, "node 1: task 'nothing' is not known; use one of counting"),
        ({"node": [{**A, "colour": 1}]}, "node 1: unknown setting 'colour'"),
        ({"node": [{**A, "levels": 99}]}, "'addition' has levels 1 to 12"),
        ({"node": [{**A, "levels": 0}]}, "levels is 0"),
        ({"node": [A], "seed": 10**16}, "seed is 10000000000000000, expected a smaller number"),
        ({"node": [A], "supervisor": "sue"}, "'sue' is interviewed and an agent too"),
        ({"node": [{**A, "stop_at": 1.0}]}, "stop_at is 1.0"),
        ({"node": [{**A, "weight": -1.0}]}, "weight is -1.0"),
        ({"node": [{**A, "weight": 10**10}]}, "expected a number from 0 to 1e+09"),
        ({"node": [{**A, "weight": 0}]}, "all weights are 0"),
        ({"node": [{**A, "weight": float("nan")}]}, "weight is nan"),
        ({"node": [A, A]}, "2 nodes are called 'addition'"),
        ({"node": [A, {**A, "name": "b", "after": "addition"}]}, "remove after"),
        ({"topology": "star", "node": [A, {**A, "name": "b", "after": "addition"}]}, "not a star: in a star no"),
        ({"topology": "tree", "node": [A, {**A, "name": "b"}]}, "not a tree: one node is the root"),
        ({"topology": "hybrid", "node": [A, {**A, "name": "b", "after": "x"}]}, "comes after 'x'; expected another"),
        ({"topology": "hybrid", "node": [{**A, "after": "addition"}]}, "comes after 'addition'"),
        (
            {"topology": "hybrid", "node": [{**A, "after": "b"}, {**A, "name": "b", "after": "addition"}]},
            "in a circle: addition, b",
        ),
        ({"node": [{**A, "opens_at": 1.0}]}, "no node comes before it"),
        ({"topology": "tree", "node": [{**A, "panel": ["pal"]}]}, "a panel is of a star or a hybrid network"),
        ({"topology": "hybrid", "node": [{**A, "panel": ["sue"]}]}, "'sue' is in the panel anyway"),
        ({"topology": "hybrid", "node": [{**A, "panel": ["a", "a"]}]}, "list each name once"),
        ({"topology": "hybrid", "node": [{**A, "panel": ["a"], "cycles": 0}]}, "at least one cycle"),
        ({"topology": "hybrid", "node": [{**A, "cycles": 2}]}, "without a panel there is none"),
        ({"topology": "hybrid", "node": [{**A, "panel": ["a"], "edges": [["a"]]}]}, "does not join two of sue, a"),
        ({"topology": "hybrid", "node": [{**A, "panel": ["a"], "edges": [["a", "b"]]}]}, "does not join"),
        ({"topology": "hybrid", "node": [{**A, "panel": [1]}]}, "node 1: panel 1 is 1, expected text"),
        ({"node": [{**A, "interviewers": ["a", "b"]}]}, "several interviewers for one task make a star"),
        ({"topology": "star", "node": [{**A, "interviewers": ["a"]}]}, "name two or more"),
        ({"node": [{**A, "questions": "written"}]}, "interviewer is '' and questions 'written'"),
        ({"interviewer": "a", "node": [{**A, "questions": "sung"}]}, "questions is 'sung'"),
        ({"interviewer": "a", "node": [{"task": "code_repair"}]}, "questions of 'code_repair' cannot be written"),
        ({"interviewer": "a", "questions": "rephrased", "node": [{"task": "masked"}]}, "cannot be rephrased"),
        ({"node": [A], "supervisor": {}}, "supervisor: no model"),
        ({"node": [A], "supervisor": {"model": "s", "scheme": "ten"}}, "scheme is 'ten', expected 'scale' or 'yes-no'"),
        ({"node": [A], "supervisor": {"model": "s", "exchanges": -1}}, "exchanges is -1"),
        ({"node": [A], "supervisor": {"model": "s", "colour": "red"}}, "unknown setting 'supervisor.colour'"),
    ],
)
def test_mistakes_name_the_place_and_the_setting(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_network(data, "sue", where="a.toml:3")
    assert message in str(caught.value)
    assert str(caught.value).startswith("a.toml:3")


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["addition", "a", "tree"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NodeTable.__struct_fields__), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(NetworkTable.__struct_fields__), _values, max_size=5))
def test_any_data_is_a_network_or_a_mistake_of_the_user(data: Mapping[str, Any]) -> None:
    with contextlib.suppress(ConfigError):
        read_network(data, "sue")


def bank(levels: list[int | str | None], **more: Any) -> ItemBank:
    items = [
        Item(f"i{n}", f"Question {n}", "x", meta={} if level is None else {"level": level})
        for n, level in enumerate(levels)
    ]
    return ItemBank.uncalibrated("own", items, **more)


def test_banks_have_levels() -> None:
    assert [part.tolist() for part in bank_levels(bank([2, 1, 5, 1]), None, "x")] == [[1, 3], [0], [2]]
    assert len(bank_levels(bank([2, 1, 5, 1]), 2, "x")) == 2
    assert [part.tolist() for part in bank_levels(bank([None] * 3), None, "x")] == [[0, 1, 2]]
    hard = task_bank(FAMILIES["addition"], queries=4, levels=3, difficulty=[[1, 2], [1, 0], [1, -2]], scale="s")
    assert [part.tolist() for part in bank_levels(hard, 3, "x")] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    for bad, levels, message in (
        (bank([1, 1]), 2, "levels is 2"),
        (bank(["x"]), None, "meta.level 'x'"),
        (hard, 13, "levels is 13"),
        (hard, 0, "levels is 0, expected 1 to 12"),
    ):
        with pytest.raises(ConfigError, match=message):
            bank_levels(bad, levels, "x")
    with pytest.raises(ConfigError, match="has 2 items, and 6 are asked of each"):
        read_network({"queries": 3, "rounds": 2, "node": [{"bank": "b"}]}, "sue", banks=lambda _: bank([1, 1]))


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 5))
def test_no_question_comes_twice(queries: int, rounds: int, seed: int) -> None:
    nodes = [
        {"task": "operations", "levels": 2, "name": "a"},
        {"task": "operations", "levels": 2, "name": "b"},
        {"bank": "b"},
    ]
    data = {"queries": queries, "rounds": rounds, "seed": seed, "node": nodes}
    network = read_network(data, "sue", banks=lambda _: bank([1, 2] * 12))
    ids = []
    for node in network.nodes:
        items = LevelItems(network, node)
        ids += [
            items.item(level, r, k).id
            for level in range(1, node.levels + 1)
            for r in range(rounds)
            for k in range(queries)
        ]
    assert len(set(ids)) == len(ids)


def test_labels_are_read(tmp_path: Any) -> None:
    path = tmp_path / "labels.jsonl"
    first = '{"node": "n", "item": "a", "fault": true}\n'
    path.write_text(first + '{"item": "b", "rating": 4.5, "node": "n"}\n')
    assert read_labels(path) == [Label("n", "a", fault=True), Label("n", "b", None, 4.5)]
    for line in (
        "[]",
        "{",
        "x",
        '{"node": "n", "item": 1, "fault": true}',
        '{"item": "a", "fault": true}',
        '{"node": "n", "item": "a", "rating": 6}',
        '{"node": "n", "item": "a", "fault": "no"}',
        '{"node": "n", "item": "a", "fault": true, "colour": 1}',
        "[" * 100000,
    ):
        path.write_text(first + line)
        with pytest.raises(ConfigError, match=r"labels.jsonl:2: "):
            read_labels(path)
    with pytest.raises(ConfigError, match=r"missing: .*expected lines such as"):
        read_labels(tmp_path / "missing")


def test_terse_prompts_of_a_node() -> None:
    network = read_network({"node": [{"task": "addition", "size": "small"}, {"task": "decimals"}]}, "sue")
    assert [node.task.form == "" for node in network.nodes if isinstance(node.task, TaskFamily)] == [True, False]
    with pytest.raises(ConfigError, match="network: node 1: size is 48: pictures of the task 'blur' have 448"):
        read_network({"node": [{"task": "blur", "size": "small"}]}, "sue")
    with pytest.raises(ConfigError, match=r"network: node 1: size goes with a task, and the items of .*: remove it"):
        read_network({"node": [{"bank": "b.jsonl", "size": "small"}]}, "sue")


def test_the_size_of_tasks_is_recorded_in_the_keys_of_earlier_runs() -> None:
    nodes = [{"task": "addition", "size": "small"}, {"task": "grid", "size": 672}, {"task": "noise"}]
    earlier = [{"task": "addition", "terse": True}, {"task": "grid", "pixels": 672}, {"task": "noise"}]
    assert recorded({"node": nodes, "rounds": 2}) == {"node": earlier, "rounds": 2}


def test_pixels_of_a_node_set_the_size_of_its_pictures() -> None:
    network = read_network({"node": [{"task": "grid", "size": 48}, {"task": "noise"}]}, "sue")
    assert [node.task.pixels for node in network.nodes if isinstance(node.task, TaskFamily)] == [None, 448]
    with pytest.raises(ConfigError, match="network: node 1: size is 5: pictures of the task 'grid' have"):
        read_network({"node": [{"task": "grid", "size": 5}]}, "sue")
    with pytest.raises(ConfigError, match=r"network: node 1: size goes with a task, .*: remove it"):
        read_network({"node": [{"bank": "b.jsonl", "size": 48}]}, "sue")
