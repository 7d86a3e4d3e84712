"""Evaluation networks: nodes with their tasks, and the edges between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal, get_args

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.policy import Climb
from pytest_adaptive_eval.tasks.family import TaskFamily, content_of

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

    def check(self, where: str, interviewee: str) -> None:
        """Refuse settings that are out of range or contradict each other.

        Raises:
            ConfigError: Names the place and the setting.
        """
        where = f"{where}: node {self.name!r}"
        self._check_task(where)
        for name in ("weight", "opens_at"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= LARGEST:
                raise ConfigError(f"{where}: {name} is {value!r}, expected a number from 0 to {LARGEST:.0e}")
        try:
            _ = self.climb
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        if self.opens_at and not self.after:
            raise ConfigError(f"{where}: opens_at is {self.opens_at!r}, and no node comes before it: remove opens_at")
        self._check_panel(where, interviewee)

    def _check_task(self, where: str) -> None:
        check_count(f"{where}: levels", self.levels)
        if isinstance(self.task, TaskFamily) and self.levels > self.task.levels:
            raise ConfigError(
                f"{where}: levels is {self.levels}: the task {self.task.name!r} has levels 1 to {self.task.levels}"
            )
        if self.questions not in get_args(Questions):
            raise ConfigError(f"{where}: questions is {self.questions!r}, expected code, written or rephrased")
        if bool(self.interviewer) != (self.questions != "code"):
            raise ConfigError(
                f"{where}: interviewer is {self.interviewer!r} and questions {self.questions!r}: questions that are "
                "written or rephrased need an interviewer, and those by code take none"
            )
        if self.questions != "code":
            if isinstance(self.task, ItemBank):
                raise ConfigError(f"{where}: an interviewer cannot change items of a bank: set questions to 'code'")
            try:
                content = content_of(self.task)
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}, or remove the interviewer") from None
            if self.questions == "rephrased" and content.whole:
                raise ConfigError(f"{where}: {self.task.name!r} is a text to restore, which cannot be rephrased")

    def _check_panel(self, where: str, interviewee: str) -> None:
        check_count(f"{where}: cycles", self.cycles, least=0)
        if bool(self.panel) != bool(self.cycles):
            raise ConfigError(
                f"{where}: panel is {list(self.panel)!r} and cycles {self.cycles}: a panel needs at least one cycle "
                "of answering again, and without a panel there is none"
            )
        if len(set(self.panel)) < len(self.panel):
            raise ConfigError(f"{where}: panel is {list(self.panel)!r}: list each name once")
        if interviewee in self.panel:
            raise ConfigError(f"{where}: {interviewee!r} is in the panel anyway: remove it")
        members = [interviewee, *self.panel]
        for edge in self.edges:
            if len(edge) != 2 or edge[0] == edge[1] or not set(edge) <= set(members):
                raise ConfigError(f"{where}: edge {list(edge)!r} does not join two of {', '.join(members)}")


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
        content_filter: See `run.hold_network`.

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
    content_filter: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        self._check_settings()
        self._check_nodes()
        if twice := set(self.subjects) & set(self.agents):
            raise ConfigError(f"{self.where}: {min(twice)!r} is interviewed and an agent too: name them apart")
        self.order()
        self._check_topology()

    def _check_settings(self) -> None:
        where, supervision = self.where, self.supervision
        if self.topology not in get_args(Topology):
            raise ConfigError(f"{where}: topology is {self.topology!r}, expected line, star, tree or hybrid")
        for name, least in (("rounds", 1), ("retries", 0), ("seed", 0), ("injected", 0)):
            check_count(f"{where}: {name}", getattr(self, name), least=least)
        if self.seed >= SEEDS:
            raise ConfigError(f"{where}: seed is {self.seed}, expected a smaller number, of at most 15 digits")
        if not 0.5 < self.confidence < 1.0:
            raise ConfigError(f"{where}: confidence is {self.confidence!r}, expected a number between 0.5 and 1")
        if supervision is not None:
            if supervision.scheme not in ("yes-no", "scale"):
                raise ConfigError(
                    f"{where}: supervision: scheme is {supervision.scheme!r}, expected 'yes-no' or 'scale'"
                )
            check_count(f"{where}: supervision: exchanges", supervision.exchanges, least=0)

    def _check_nodes(self) -> None:
        if not self.nodes:
            raise ConfigError(f"{self.where}: no nodes; write at least one")
        names = [node.name for node in self.nodes]
        for node in self.nodes:
            if not node.name.strip() or names.count(node.name) > 1:
                raise ConfigError(
                    f"{self.where}: {names.count(node.name)} nodes are called {node.name!r}: give each a name"
                )
            for other in node.after:
                if other not in names or other == node.name:
                    raise ConfigError(
                        f"{self.where}: node {node.name!r} comes after {other!r}; expected another node: "
                        f"{', '.join(names)}"
                    )
            node.check(self.where, self.interviewee)
        if not sum(node.weight for node in self.nodes) > 0:
            raise ConfigError(f"{self.where}: all weights are 0, so the energy is undefined; raise one")

    def _check_topology(self) -> None:
        counts = [len(node.after) for node in self.nodes]
        in_a_row = all(node.after == ((self.nodes[n - 1].name,) if n else ()) for n, node in enumerate(self.nodes))
        matches, definition = {
            "line": (in_a_row, "each node comes after the one before it"),
            "star": (not any(counts), "no node comes after another"),
            "tree": (counts.count(0) == 1 and max(counts) <= 1, "one node is the root, and each other comes after one"),
            "hybrid": (True, ""),
        }[self.topology]
        if not matches:
            raise ConfigError(f"{self.where}: this is no {self.topology}: {definition}")
        if self.topology not in ("hybrid", "star") and any(node.panel for node in self.nodes):
            raise ConfigError(f"{self.where}: a panel is of a star or a hybrid network: set topology to one of them")

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
            order += [self.nodes[n] for n in sorted(positions[name] for name in ready)]
            sorter.done(*ready)
        return tuple(order)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all interviewees, the one under evaluation first."""
        return tuple(dict.fromkeys([self.interviewee, *(name for node in self.nodes for name in node.panel)]))

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of interviewers and of the supervisor."""
        names = [node.interviewer for node in self.nodes] + [self.supervision.model if self.supervision else ""]
        return tuple(dict.fromkeys(filter(None, names)))

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
