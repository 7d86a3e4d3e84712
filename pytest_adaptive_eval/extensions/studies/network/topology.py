"""Evaluation networks: nodes with their tasks, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pytest_adaptive_eval.checks import check_count, check_faults
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.policy import Climb
from pytest_adaptive_eval.tasks.family import TaskFamily, content_of
from pytest_adaptive_eval.typed_tables import located

Topology = Literal["line", "star", "tree", "hybrid"]
Questions = Literal["code", "written", "rephrased"]
#: Upper limit of seeds: ids of questions, which are made from them, hold twenty digits.
SEEDS = 10**15
#: Upper limit of weights and areas.
LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Node:
    """Task with its interviewer and its edges from earlier nodes; `NodeTable` describes further settings.

    Args:
        task: A calibrated bank is split into levels by difficulty, an uncalibrated one by its items' ``meta.level``.
        opens_at: Smallest lower bound of the area of each earlier node, or this node is not run.
        questions: Source of the questions: code, the interviewer, or code with the interviewer's wording.
        panel: Further interviewees. All answer, then see each other's answers and answer again.
        edges: Pairs (speaker, listener) of the panel; empty for all pairs.
        group: Name shared by nodes with one task and different interviewers; else the node's name.
    """

    name: str
    task: TaskFamily | ItemBank
    levels: int
    after: tuple[str, ...] = ()
    opens_at: float = 0.0
    weight: float = 1.0
    interviewer: str = ""
    questions: Questions = "code"
    queries: int = 10
    stop_at: float = 0.0
    panel: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    cycles: int = 0
    group: str = ""

    @property
    def climb(self) -> Climb:
        """Ladder policy of the node."""
        return Climb(self.queries, float(self.stop_at))

    def faults(self, interviewee: str) -> Iterator[str]:
        """Return settings that are out of range or contradict each other, as sentences."""
        yield from self._task_faults()
        for name in ("weight", "opens_at"):
            value = getattr(self, name)
            if not 0.0 <= value <= LARGEST:
                yield f"{name} is {value!r}, expected a number from 0 to {LARGEST:.0e}"
        _ = self.climb  # it checks its own settings
        if self.opens_at and not self.after:
            yield f"opens_at is {self.opens_at!r}, and no node comes before it: remove opens_at"
        yield from self._panel_faults(interviewee)

    def _task_faults(self) -> Iterator[str]:
        check_count("levels", self.levels)
        task = self.task
        by_code = self.questions == "code"
        if isinstance(task, TaskFamily) and self.levels > task.levels:
            yield f"levels is {self.levels}: the task {task.name!r} has levels 1 to {task.levels}"
        if bool(self.interviewer) == by_code:
            yield (
                f"interviewer is {self.interviewer!r} and questions {self.questions!r}: questions that are written or "
                "rephrased need an interviewer, and those by code take none"
            )
        if by_code:
            return
        if isinstance(task, ItemBank):
            yield "an interviewer cannot change items of a bank: set questions to 'code'"
        elif content_of(task).whole and self.questions == "rephrased":
            yield f"{task.name!r} is a text to restore, which cannot be rephrased"

    def _panel_faults(self, interviewee: str) -> Iterator[str]:
        check_count("cycles", self.cycles, least=0)
        panel = list(self.panel)
        if bool(panel) != bool(self.cycles):
            yield (
                f"panel is {panel!r} and cycles {self.cycles}: a panel needs at least one cycle of answering again, "
                "and without a panel there is none"
            )
        if len(set(panel)) < len(panel):
            yield f"panel is {panel!r}: list each name once"
        if interviewee in panel:
            yield f"{interviewee!r} is in the panel anyway: remove it"
        members = [interviewee, *panel]
        for edge in self.edges:
            if len(edge) != 2 or edge[0] == edge[1] or not set(edge) <= set(members):
                yield f"edge {list(edge)!r} does not join two of {', '.join(members)}"


@dataclass(frozen=True, slots=True)
class Supervision:
    """Settings of reviews by a supervisor.

    Args:
        exchanges: Reviewed exchanges per level and round. Questions by an interviewer are all reviewed.
    """

    model: str
    scheme: Literal["yes-no", "scale"] = "yes-no"
    exchanges: int = 1


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes with their edges and interviewee; `NetworkTable` describes further settings.

    Args:
        topology: In a line each node follows the one before; in a star none follows another; in a tree each but one
            follows one; a hybrid has any edges without a cycle. Nodes of stars and hybrids may have panels.
        injected: Characters of meaningless text added to each passed dialogue, to study how errors propagate.
        rounds: Interviews of each node, each from the last level of the one before.

    Raises:
        ConfigError: The nodes do not make such a topology, or a setting is out of range.
    """

    topology: Topology
    interviewee: str
    nodes: tuple[Node, ...]
    supervision: Supervision | None = None
    passing: bool = True
    responses: bool = True
    injected: int = 0
    rounds: int = 1
    retries: int = 2
    seed: int = 0
    confidence: float = 0.95
    where: str = "network"

    def __post_init__(self) -> None:
        with located(self.where):
            check_faults(self._faults(), self.where)
        self.order()

    def _faults(self) -> Iterator[str]:
        yield from self._setting_faults()
        if not self.nodes:
            yield "no nodes; write at least one"
        names = [node.name for node in self.nodes]
        for node in self.nodes:
            yield from self._node_faults(node, names)
        if not any(node.weight for node in self.nodes):
            yield "all weights are 0, so the energy is undefined; raise one"
        twice = set(self.subjects) & set(self.agents)
        if twice:
            yield f"{min(twice)!r} is interviewed and an agent too: name them apart"
        yield from self._topology_faults()

    def _setting_faults(self) -> Iterator[str]:
        supervision = self.supervision
        for name, least in (("rounds", 1), ("retries", 0), ("seed", 0), ("injected", 0)):
            check_count(name, getattr(self, name), least=least)
        if self.seed >= SEEDS:
            yield f"seed is {self.seed}, expected a smaller number, of at most 15 digits"
        if not 0.5 < self.confidence < 1.0:
            yield f"confidence is {self.confidence!r}, expected a number between 0.5 and 1"
        if supervision is not None:
            check_count("supervision: exchanges", supervision.exchanges, least=0)

    def _node_faults(self, node: Node, names: Sequence[str]) -> Iterator[str]:
        if not node.name.strip() or names.count(node.name) > 1:
            yield f"{names.count(node.name)} nodes are called {node.name!r}: name each of them"
        for other in node.after:
            if other not in names or other == node.name:
                yield f"node {node.name!r} comes after {other!r}; expected another node: {', '.join(names)}"
        where = f"node {node.name!r}"
        with located(where):
            for fault in node.faults(self.interviewee):
                yield f"{where}: {fault}"

    def _topology_faults(self) -> Iterator[str]:
        counts = [len(node.after) for node in self.nodes]
        if self.topology == "line":
            before: tuple[str, ...] = ()
            for node in self.nodes:
                if node.after != before:
                    yield "not a line: each node comes after the one before it"
                    break
                before = (node.name,)
        if self.topology == "star" and any(counts):
            yield "not a star: in a star no node comes after another"
        if self.topology == "tree" and (counts.count(0) != 1 or max(counts) > 1):
            yield "not a tree: one node is the root, and each other node comes after one"
        if self.topology not in ("hybrid", "star") and any(node.panel for node in self.nodes):
            yield "a panel is of a star or a hybrid network: set topology to one of them"

    def order(self) -> tuple[Node, ...]:
        """Return the nodes, each after its earlier nodes.

        Raises:
            ConfigError: The edges make a cycle.
        """
        positions = {node.name: n for n, node in enumerate(self.nodes)}
        sorter = TopologicalSorter({node.name: node.after for node in self.nodes})
        try:
            sorter.prepare()
        except CycleError as error:
            cycle = ", ".join(sorted(set(error.args[1]), key=positions.__getitem__))
            raise ConfigError(f"{self.where}: nodes come after each other in a circle: {cycle}") from None
        order: list[Node] = []
        while sorter.is_active():
            ready = sorter.get_ready()
            order += [self.nodes[n] for n in sorted(map(positions.__getitem__, ready))]
            sorter.done(*ready)
        return tuple(order)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all interviewees, the one under evaluation first."""
        names = [self.interviewee]
        for node in self.nodes:
            names += node.panel
        return tuple(dict.fromkeys(names))

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of interviewers and of the supervisor."""
        names = [node.interviewer for node in self.nodes if node.interviewer]
        if self.supervision and self.supervision.model:
            names.append(self.supervision.model)
        return tuple(dict.fromkeys(names))

    def weights(self) -> Mapping[str, float]:
        """Return the weights by node, which sum to 1."""
        total = sum(node.weight for node in self.nodes)
        return {node.name: node.weight / total for node in self.nodes}

    def ancestors(self, name: str) -> Sequence[Node]:
        """Return all nodes before one, in the order of `order`."""
        order = self.order()
        names = {name}
        for node in reversed(order):
            if node.name in names:
                names.update(node.after)
        return [node for node in order if node.name in names and node.name != name]
