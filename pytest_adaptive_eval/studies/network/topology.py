"""Networks: nodes with their tasks, and the edges between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.policy import Climb
from pytest_adaptive_eval.tasks.content import content_of
from pytest_adaptive_eval.tasks.family import TaskFamily

__all__ = ["Network", "Node", "Supervision", "Topology"]

Topology = Literal["line", "star", "tree", "hybrid"]
Questions = Literal["code", "written", "rephrased"]
#: Seeds end here: ids of questions, which are made from them, hold twenty digits.
SEEDS = 10**15
#: Of weights and areas.
LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Node:
    """One task, one interviewer, and the way in.

    Parameters
    ----------
    name : str
    task : TaskFamily or ItemBank
        A bank of calibrated items is split into levels by difficulty, another one by its items' ``meta.level``.
    levels : int
        The level cap.
    after : tuple of str
        Nodes that must be done before; their dialogues are passed on.
    opens_at : float
        Area that each of those must surely have, or the node stays closed.
    weight : float
        Of the route that ends here, relative to the others'.
    interviewer : str
        Name of the agent that makes questions; empty where code does.
    questions : {"code", "written", "rephrased"}
        By code, written by the interviewer, or code's in the interviewer's words.
    queries : int
        Questions a level.
    stop_at : float
        A level whose accuracy is at most this ends a round.
    panel : tuple of str
        Other interviewees, who answer too; then each sees the others' answers and answers again.
    edges : tuple of (str, str)
        Who hears whom in the panel, as (speaker, listener); all hear all when empty.
    cycles : int
        How often the panel answers again.
    group : str
        Name that nodes with the same task and different interviewers share; the node's own where there is one only.
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
        """How its levels are asked."""
        return Climb(self.queries, float(self.stop_at))

    def check(self, where: str) -> None:
        """Refuse what cannot be.

        Raises
        ------
        ConfigError
            Names the place and the setting.
        """
        where = f"{where}: node {self.name!r}"
        family = self.task if isinstance(self.task, TaskFamily) else None
        check_count(f"{where}: levels", self.levels)
        if family is not None and self.levels > family.levels:
            raise ConfigError(
                f"{where}: levels is {self.levels}: the task {family.name!r} has levels 1 to {family.levels}"
            )
        if self.questions not in get_args(Questions):
            raise ConfigError(f"{where}: questions is {self.questions!r}, expected code, written or rephrased")
        if bool(self.interviewer) != (self.questions != "code"):
            raise ConfigError(
                f"{where}: interviewer is {self.interviewer!r} and questions {self.questions!r}: questions that are "
                "written or rephrased need an interviewer, and those by code take none"
            )
        if self.questions != "code":
            if family is None:
                raise ConfigError(f"{where}: items of a bank are asked as they are: set questions to 'code'")
            try:
                content = content_of(family)
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}; without an interviewer code asks") from None
            if self.questions == "rephrased" and content.whole:
                raise ConfigError(f"{where}: {family.name!r} is a text to restore, which cannot be rephrased")
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
        self._check_panel(where)

    def _check_panel(self, where: str) -> None:
        check_count(f"{where}: cycles", self.cycles, least=0)
        if bool(self.panel) != bool(self.cycles):
            raise ConfigError(
                f"{where}: panel is {list(self.panel)!r} and cycles {self.cycles}: a panel needs at least one cycle "
                "of answering again, and without a panel there is none"
            )
        if len(set(self.panel)) < len(self.panel):
            raise ConfigError(f"{where}: panel is {list(self.panel)!r}: each name may stand there once")


@dataclass(frozen=True, slots=True)
class Supervision:
    """What a supervisor reviews.

    Parameters
    ----------
    model : str
        Name of the agent.
    scheme : {"yes-no", "scale"}
        Whether there is a fault; or a rating from 1 to 5, of which 5 is the best.
    exchanges : int
        Exchanges of each level and round that it reviews; questions that an interviewer made it reviews all.
    """

    model: str
    scheme: Literal["yes-no", "scale"] = "yes-no"
    exchanges: int = 1


@dataclass(frozen=True, slots=True)
class Network:
    """Nodes, who is interviewed, and how they are joined.

    Parameters
    ----------
    topology : {"line", "star", "tree", "hybrid"}
        In a line each node follows the one before; in a star none follows another; in a tree each but one follows
        one; a hybrid has any edges that make no circle, and panels.
    interviewee : str
        Name of the subject.
    nodes : tuple of Node
    supervision : Supervision, optional
    passing : bool
        Whether nodes are told the dialogues of the nodes before them.
    rounds : int
        Interviews of each node, each beginning at the last level of the one before.
    retries : int
        Times that an interviewer writes a question again before code makes it.
    seed : int
    confidence : float
        Of each one-sided bound.
    where : str
        For messages.

    Raises
    ------
    ConfigError
        The nodes do not make such a topology, or a setting is out of its range.
    """

    topology: Topology
    interviewee: str
    nodes: tuple[Node, ...]
    supervision: Supervision | None = None
    passing: bool = True
    rounds: int = 1
    retries: int = 2
    seed: int = 0
    confidence: float = 0.95
    where: str = "network"

    def __post_init__(self) -> None:
        where = self.where
        if self.topology not in get_args(Topology):
            raise ConfigError(f"{where}: topology is {self.topology!r}, expected line, star, tree or hybrid")
        if not self.nodes:
            raise ConfigError(f"{where}: there is no node; write at least one")
        for name, low in (("rounds", 1), ("retries", 0), ("seed", 0)):
            check_count(f"{where}: {name}", getattr(self, name), least=low)
        if self.seed >= SEEDS:
            raise ConfigError(f"{where}: seed is {self.seed}, expected a smaller number, of at most 15 digits")
        if not 0.5 < self.confidence < 1.0:
            raise ConfigError(f"{where}: confidence is {self.confidence!r}, expected a number between 0.5 and 1")
        names = [node.name for node in self.nodes]
        for node in self.nodes:
            if not node.name.strip() or names.count(node.name) > 1:
                raise ConfigError(f"{where}: {names.count(node.name)} nodes are called {node.name!r}: give each a name")
            for other in node.after:
                if other not in names or other == node.name:
                    raise ConfigError(
                        f"{where}: node {node.name!r} comes after {other!r}; expected another node: {', '.join(names)}"
                    )
            node.check(where)
            if self.interviewee in node.panel:
                raise ConfigError(
                    f"{where}: node {node.name!r}: {self.interviewee!r} is in the panel anyway: remove it"
                )
            for edge in node.edges:
                if len(edge) != 2 or edge[0] == edge[1] or not set(edge) <= {self.interviewee, *node.panel}:
                    raise ConfigError(
                        f"{where}: node {node.name!r}: edge {list(edge)!r} does not join two of "
                        f"{', '.join([self.interviewee, *node.panel])}"
                    )
        if not sum(node.weight for node in self.nodes) > 0:
            raise ConfigError(f"{where}: all weights are 0: the energy would be nothing")
        self._check_supervision()
        if twice := set(self.subjects) & set(self.agents):
            raise ConfigError(f"{where}: {min(twice)!r} is interviewed and an agent too: name them apart")
        self.order()
        self._check_topology()

    def _check_supervision(self) -> None:
        one = self.supervision
        if one is None:
            return
        if one.scheme not in ("yes-no", "scale"):
            raise ConfigError(f"{self.where}: supervision: scheme is {one.scheme!r}, expected 'yes-no' or 'scale'")
        check_count(f"{self.where}: supervision: exchanges", one.exchanges, least=0)

    def _check_topology(self) -> None:
        counts = [len(node.after) for node in self.nodes]
        wanted = {
            "line": all(node.after == ((self.nodes[n - 1].name,) if n else ()) for n, node in enumerate(self.nodes)),
            "star": not any(counts),
            "tree": counts.count(0) == 1 and max(counts) <= 1,
            "hybrid": True,
        }
        if not wanted[self.topology]:
            told = {
                "line": "each node comes after the one before it",
                "star": "no node comes after another",
                "tree": "one node is the root, and each other comes after one",
            }
            raise ConfigError(f"{self.where}: this is no {self.topology}: {told[self.topology]}")
        if self.topology != "hybrid" and any(node.panel for node in self.nodes):
            raise ConfigError(f"{self.where}: a panel is of a hybrid network: set topology to 'hybrid'")

    def order(self) -> tuple[Node, ...]:
        """The nodes, each behind those it comes after.

        Raises
        ------
        ConfigError
            Some come after each other in a circle.
        """
        done: dict[str, Node] = {}
        while len(done) < len(self.nodes):
            ready = [node for node in self.nodes if node.name not in done and set(node.after) <= set(done)]
            if not ready:
                left = [node.name for node in self.nodes if node.name not in done]
                raise ConfigError(f"{self.where}: nodes come after each other in a circle: {', '.join(left)}")
            done.update((node.name, node) for node in ready)
        return tuple(done.values())

    @property
    def hops(self) -> int:
        """Nodes of the longest way."""
        far: dict[str, int] = {}
        for node in self.order():
            far[node.name] = 1 + max((far[name] for name in node.after), default=0)
        return max(far.values())

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all interviewees, the one under evaluation first."""
        return tuple(dict.fromkeys([self.interviewee, *(name for node in self.nodes for name in node.panel)]))

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of interviewers and of the supervisor."""
        named = [node.interviewer for node in self.nodes] + [self.supervision.model if self.supervision else ""]
        return tuple(dict.fromkeys(filter(None, named)))

    def weights(self) -> Mapping[str, float]:
        """By node; they add up to 1."""
        total = sum(node.weight for node in self.nodes)
        return {node.name: node.weight / total for node in self.nodes}

    def ancestors(self, name: str) -> Sequence[Node]:
        """All nodes before one, in the order of `order`."""
        by_name = {node.name: node for node in self.nodes}
        found: set[str] = set()
        left = list(by_name[name].after)
        while left:
            if (one := left.pop()) not in found:
                found.add(one)
                left += by_name[one].after
        return [node for node in self.order() if node.name in found]
