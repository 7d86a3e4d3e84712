"""A network from plain data, as a TOML file gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, get_args

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.studies.network.items import bank_levels
from pytest_adaptive_eval.studies.network.topology import Network, Node, Supervision, Topology
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.family import TaskFamily
from pytest_adaptive_eval.typed_tables import Number, Table, described, read_table

__all__ = ["NetworkTable", "NodeTable", "SupervisorTable", "read_network"]


class SupervisorTable(Table, frozen=True, kw_only=True):
    """``supervisor`` of a network, in place of the model's name alone."""

    model: Annotated[str, described("name of the agent")] = ""
    scheme: Annotated[str, described("kind of review", ["yes-no", "scale"])] = "yes-no"
    exchanges: Annotated[int, described("exchanges of each level that are reviewed")] = 1


class NodeTable(Table, frozen=True, kw_only=True):
    """``[[eval.network.node]]``."""

    name: Annotated[str | None, described("name of the node; its task or bank by default")] = None
    task: Annotated[str | None, described("family of generated tasks")] = None
    bank: Annotated[str | None, described("bank folder, or JSONL file of items, in place of a task")] = None
    levels: Annotated[int | None, described("highest level; a calibrated bank is split into so many levels")] = None
    after: Annotated[str | list[str] | None, described("nodes that come before this one")] = None
    opens_at: Annotated[Number | None, described("area that each earlier node must surely have")] = None
    weight: Annotated[Number, described("weight of the route that ends here, relative to others")] = 1.0
    interviewer: Annotated[str | None, described("agent that writes the items; code by default")] = None
    interviewers: Annotated[list[str] | None, described("several interviewers, each in a node of its own")] = None
    questions: Annotated[str | None, described("items by the interviewer", ["written", "rephrased", "code"])] = None
    queries: Annotated[int | None, described("items of each level")] = None
    stop_at: Annotated[Number | None, described("end at a level whose accuracy is at most this")] = None
    panel: Annotated[list[str], described("other interviewees")] = []
    edges: Annotated[list[list[str]], described('pairs such as ["speaker", "listener"]')] = []
    cycles: Annotated[int | None, described("times that the panel answers again")] = None


class NetworkTable(Table, frozen=True, kw_only=True):
    """``[eval.network]``."""

    topology: Annotated[str, described("shape of the network", get_args(Topology))] = "line"
    node: Annotated[list[NodeTable], described("nodes, in order")] = []
    queries: Annotated[int, described("items of each level, of nodes that set none")] = 10
    stop_at: Annotated[Number, described("end at a level whose accuracy is at most this")] = 0.0
    interviewer: Annotated[str, described("agent that writes the items of nodes that name none; code by default")] = ""
    questions: Annotated[str, described("items by the interviewer", ["written", "rephrased", "code"])] = "written"
    supervisor: Annotated[SupervisorTable | str | None, described("agent that reviews items and exchanges")] = None
    passing: Annotated[bool, described("interviewers read the dialogues of earlier nodes")] = True
    rounds: Annotated[int, described("interviews of each node")] = 1
    retries: Annotated[int, described("new attempts at an item before code writes it")] = 2
    seed: Annotated[int, described("seed of every draw")] = 0
    confidence: Annotated[Number, described("confidence of each one-sided bound")] = 0.95


#: Levels that a calibrated bank is split into where nothing is said.
BANK_LEVELS = 5
#: Area that the parent in a tree must surely have where nothing is said: one level.
OPENS_AT = 1.0


def read_network(
    data: Mapping[str, Any],
    interviewee: str,
    *,
    where: str = "network",
    families: Mapping[str, TaskFamily] = FAMILIES,
    banks: Callable[[str], ItemBank] | None = None,
) -> Network:
    """A network as it was written.

    Parameters
    ----------
    data : mapping
        See `NetworkTable`.  A node's ``interviewers`` makes one node of each, which share its weight.
    interviewee : str
        Name of the subject under evaluation.
    where : str
        File and line, for messages.
    families : mapping of str to TaskFamily
        Such as `pytest_adaptive_eval.tasks.families` gives.
    banks : callable, optional
        Reads the bank that a node names; without it a node has a task.

    Raises
    ------
    ConfigError
        Names the place, the node and the setting, and what was expected.
    """
    read_table(NetworkTable, data, where)
    topology = data.get("topology", "line")
    written: list[Node] = []
    for number, entry in enumerate(data.get("node", []), 1):
        place = f"{where}: node {number}"
        written += _nodes(entry, data, topology, written, place, families, banks)
    own = {field.name for field in fields(Network)} - {"topology", "nodes", "supervision", "interviewee", "where"}
    return Network(
        topology,
        interviewee,
        tuple(written),
        _supervision(data.get("supervisor"), f"{where}: supervisor"),
        where=where,
        **{name: value for name, value in data.items() if name in own},
    )


def _names(values: Any, where: str) -> tuple[str, ...]:
    found = [values] if isinstance(values, str) else values
    if not all(isinstance(value, str) and value.strip() for value in found):
        raise ConfigError(f"{where} is {values!r:.80}, expected a list of names")
    return tuple(found)


def _supervision(data: Any, where: str) -> Supervision | None:
    if data is None:
        return None
    entry = {"model": data} if isinstance(data, str) else data
    if not entry.get("model", "").strip():
        raise ConfigError(f"{where}: there is no model: write {{ model = 'NAME', scheme = 'yes-no' }}")
    return Supervision(**entry)


def _nodes(
    entry: Mapping[str, Any],
    data: Mapping[str, Any],
    topology: str,
    before: Sequence[Node],
    place: str,
    families: Mapping[str, TaskFamily],
    banks: Callable[[str], ItemBank] | None,
) -> list[Node]:
    queries = entry.get("queries", data.get("queries", 10))
    task, levels = _task(entry, queries * data.get("rounds", 1), place, families, banks)
    name = entry.get("name", task.name)
    place = f"{place} ({name})"
    after = _names(entry.get("after", ()), f"{place}: after")
    if topology == "line" and "after" in entry:
        raise ConfigError(f"{place}: a node of a line comes after the one before it: remove after")
    if topology == "line" and before:
        after = (before[-1].name,)
    several = _names(entry.get("interviewers", ()), f"{place}: interviewers")
    if "interviewers" in entry and ("interviewer" in entry or len(several) < 2 or len(set(several)) < len(several)):
        raise ConfigError(f"{place}: interviewers is {list(several)!r}: name two or more, or write interviewer")
    if several and topology != "star":
        raise ConfigError(f"{place}: several interviewers for one task make a star: set topology to 'star'")
    asking = several or (entry.get("interviewer", data.get("interviewer", "")),)
    if isinstance(task, ItemBank) and "interviewer" not in entry and not several:
        asking = ("",)
    edges = entry.get("edges", [])
    if not all(isinstance(edge, list) for edge in edges):
        raise ConfigError(f"{place}: edges is {edges!r:.80}, expected pairs such as ['speaker', 'listener']")
    weight = entry.get("weight", 1.0)
    return [
        Node(
            f"{name} by {interviewer}" if several else name,
            task,
            levels,
            after,
            entry.get("opens_at", OPENS_AT if topology == "tree" and after else 0.0),
            weight / len(asking),
            interviewer,
            entry.get("questions", data.get("questions", "written") if interviewer else "code"),
            queries,
            entry.get("stop_at", data.get("stop_at", 0.0)),
            _names(entry.get("panel", ()), f"{place}: panel"),
            tuple(_names(edge, f"{place}: edges") for edge in edges),  # type: ignore[misc]  # the network checks pairs
            entry.get("cycles", 1 if "panel" in entry else 0),
            name,
        )
        for interviewer in asking
    ]


def _task(
    entry: Mapping[str, Any],
    needed: int,
    place: str,
    families: Mapping[str, TaskFamily],
    banks: Callable[[str], ItemBank] | None,
) -> tuple[TaskFamily | ItemBank, int]:
    if ("task" in entry) == ("bank" in entry):
        raise ConfigError(f"{place}: a node has either a task or a bank; found {'both' if 'task' in entry else 'none'}")
    if "task" in entry:
        if entry["task"] not in families:
            raise ConfigError(f"{place}: task {entry['task']!r} is not known; use one of {', '.join(families)}")
        family = families[entry["task"]]
        return family, entry.get("levels", family.levels)
    if banks is None:
        raise ConfigError(f"{place}: banks cannot be read here: name a task")
    bank = banks(entry["bank"])
    levels = entry.get("levels", BANK_LEVELS if bank.calibrated else None)
    found = bank_levels(bank, levels, place)
    if (fewest := min(len(level) for level in found)) < needed:
        raise ConfigError(
            f"{place}: a level of the bank {bank.name!r} has {fewest} items, and {needed} are asked of each (queries "
            "times rounds): ask fewer, or split it into fewer levels"
        )
    return bank, len(found)
