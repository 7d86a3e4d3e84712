"""Settings of a network, and the network that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.node import bank_levels
from pytest_adaptive_eval.extensions.studies.network.topology import Network, Node, Questions, Supervision, Topology
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.family import TaskFamily
from pytest_adaptive_eval.typed_tables import Number, Table, located, read_table


class SupervisorTable(Table, frozen=True, kw_only=True):
    """``supervisor`` of a network, in place of the model's name alone.

    Args:
        model: Name of the agent.
        scheme: Kind of review.
        exchanges: Exchanges of each level that are reviewed.
        labels: JSONL file of labels that its reviews are compared with.
    """

    model: str = ""
    scheme: Literal["yes-no", "scale"] = "yes-no"
    exchanges: int = 1
    labels: str = ""


class NodeTable(Table, frozen=True, kw_only=True):
    """``[[eval.network.node]]``.

    Args:
        name: Name of the node; its task or bank by default.
        task: Family of generated tasks.
        bank: Bank folder, or JSONL file of items, in place of a task.
        levels: Highest level; a calibrated bank is split into so many levels. Energy assumes that accuracy never rises
            with level.
        size: 'small' for tiny models: few words, pictures of 48 pixels; or pixels of a picture, 448 to 2048.
        after: Nodes that come before this one.
        opens_at: Area that each earlier node must surely have.
        weight: Weight of the route that ends here, relative to others.
        interviewer: Agent that writes the items; code by default.
        interviewers: Several interviewers, each in a node of its own.
        questions: Items by the interviewer.
        queries: Items of each level.
        stop_at: End at a level whose accuracy is at most this.
        panel: Other interviewees.
        edges: Pairs such as ["speaker", "listener"].
        cycles: Times that the panel answers again.
    """

    name: str | None = None
    task: str | None = None
    bank: str | None = None
    levels: int | None = None
    size: int | Literal["small"] | None = None
    after: str | list[str] | None = None
    opens_at: Number | None = None
    weight: Number = 1.0
    interviewer: str | None = None
    interviewers: list[str] | None = None
    questions: Questions | None = None
    queries: int | None = None
    stop_at: Number | None = None
    panel: list[str] = []
    edges: list[list[str]] = []
    cycles: int | None = None


class NetworkTable(Table, frozen=True, kw_only=True):
    """``[eval.network]``.

    Args:
        topology: Shape of the network.
        node: Nodes, in order.
        queries: Items of each level, of nodes that set none.
        stop_at: End at a level whose accuracy is at most this.
        interviewer: Agent that writes the items of nodes that name none; code by default.
        questions: Items by the interviewer.
        supervisor: Agent that reviews items and exchanges.
        passing: Interviewers read the dialogues of earlier nodes.
        responses: Interviewers read the answers so far to their node, with scores.
        injected: Characters of meaningless text added to each passed dialogue.
        rounds: Interviews of each node.
        retries: New attempts at an item before code writes it.
        seed: Seed of every draw.
        confidence: Confidence of each one-sided bound.
    """

    gone: ClassVar[Mapping[str, str]] = {"content_filter": "filter texts in the server; the record has what was said"}

    topology: Topology = "line"
    node: list[NodeTable] = []
    queries: int = 10
    stop_at: Number = 0.0
    interviewer: str = ""
    questions: Questions = "written"
    supervisor: SupervisorTable | str | None = None
    passing: bool = True
    responses: bool = True
    injected: int = 0
    rounds: int = 1
    retries: int = 2
    seed: int = 0
    confidence: Number = 0.95


T = TypeVar("T")
#: Default number of levels of a calibrated bank.
BANK_LEVELS = 5
#: Default of ``opens_at`` in a tree: an area of one level.
OPENS_AT = 1.0


def read_network(
    data: Mapping[str, Any],
    interviewee: str,
    *,
    where: str = "network",
    families: Mapping[str, TaskFamily] = FAMILIES,
    banks: Callable[[str], ItemBank] | None = None,
) -> Network:
    """Create a network from plain data.

    Args:
        data: See `NetworkTable`. A node's ``interviewers`` become one node each, which share its weight.
        banks: Reads the bank at a path. Without it every node needs a task.

    Raises:
        ConfigError: Names the place, the node and the setting, and the expected value.
    """
    table = read_table(NetworkTable, data, where)
    nodes: list[Node] = []
    for number, entry in enumerate(table.node, 1):
        reader = _NodeReader(entry, table, f"{where}: node {number}")
        nodes += reader.nodes(nodes, families, banks)
    supervision = None
    reviews = table.supervisor
    if reviews is not None:
        if isinstance(reviews, str):
            reviews = SupervisorTable(model=reviews)
        if not reviews.model.strip():
            raise ConfigError(f"{where}: supervisor: no model; write {{ model = 'NAME', scheme = 'yes-no' }}")
        supervision = Supervision(reviews.model, reviews.scheme, reviews.exchanges)
    names = ("topology", "passing", "responses", "injected", "rounds", "retries", "seed", "confidence")
    settings = {name: getattr(table, name) for name in names}
    return Network(interviewee=interviewee, nodes=tuple(nodes), supervision=supervision, where=where, **settings)


def recorded(settings: Any) -> Any:
    """Return settings with `size` in its two earlier keys, by which journals and baselines of a network are found."""
    if isinstance(settings, list):
        return [recorded(entry) for entry in settings]
    if not isinstance(settings, Mapping):
        return settings
    data = {}
    for key, value in settings.items():
        if key != "size":
            data[key] = recorded(value)
        elif value == "small":
            data["terse"] = True
        else:
            data["pixels"] = recorded(value)
    return data


def _check_names(names: Sequence[str], where: str) -> tuple[str, ...]:
    if not all(name.strip() for name in names):
        raise ConfigError(f"{where} is {names!r:.80}, expected a list of names")
    return tuple(names)


def _or_default(written: T | None, default: T) -> T:
    """Return what was written, else the default."""
    if written is None:
        return default
    return written


@dataclass(slots=True)
class _NodeReader:
    """Converter of one node's table, whose settings fall back on the network's."""

    table: NodeTable
    network: NetworkTable
    where: str

    def nodes(
        self, earlier: Sequence[Node], families: Mapping[str, TaskFamily], banks: Callable[[str], ItemBank] | None
    ) -> list[Node]:
        """Return the node, or one node per interviewer."""
        table = self.table
        network = self.network
        queries = _or_default(table.queries, network.queries)
        task, levels = self._task(queries * network.rounds, families, banks)
        name = _or_default(table.name, task.name)
        self.where = f"{self.where} ({name})"
        after = self._after(earlier)
        several = self._interviewers()
        # a bank's items are not written
        if isinstance(task, ItemBank):
            default = ""
        else:
            default = network.interviewer
        interviewers = several or (_or_default(table.interviewer, default),)
        opens_at = 0.0
        if network.topology == "tree" and after:
            opens_at = OPENS_AT
        edges = tuple(_check_names(edge, f"{self.where}: edges") for edge in table.edges)
        panel = _check_names(table.panel, f"{self.where}: panel")
        cycles = 1 if panel else 0
        nodes = []
        for interviewer in interviewers:
            own_name = name
            if several:
                own_name = f"{name} by {interviewer}"
            questions = network.questions if interviewer else "code"
            nodes.append(
                Node(
                    own_name,
                    task,
                    levels,
                    after,
                    _or_default(table.opens_at, opens_at),
                    table.weight / len(interviewers),
                    interviewer,
                    table.questions or questions,
                    queries,
                    _or_default(table.stop_at, network.stop_at),
                    panel,
                    edges,  # type: ignore[arg-type]  # the node checks that they are pairs
                    _or_default(table.cycles, cycles),
                    name,
                )
            )
        return nodes

    def _after(self, earlier: Sequence[Node]) -> tuple[str, ...]:
        names = self.table.after
        if isinstance(names, str):
            names = [names]
        if self.network.topology != "line":
            return _check_names(names or (), f"{self.where}: after")
        if names is not None:
            raise ConfigError(f"{self.where}: a node of a line comes after the one before it: remove after")
        return tuple(node.name for node in earlier[-1:])

    def _interviewers(self) -> tuple[str, ...]:
        if self.table.interviewers is None:
            return ()
        names = _check_names(self.table.interviewers, f"{self.where}: interviewers")
        is_one = self.table.interviewer is not None or len(names) < 2 or len(set(names)) < len(names)
        if is_one or self.network.topology != "star":
            raise ConfigError(
                f"{self.where}: interviewers is {list(names)!r}: name two or more, or write interviewer; several "
                "interviewers for one task make a star: set topology to 'star'"
            )
        return names

    def _task(
        self, needed: int, families: Mapping[str, TaskFamily], banks: Callable[[str], ItemBank] | None
    ) -> tuple[TaskFamily | ItemBank, int]:
        """Return the task or bank with its number of levels, which have at least `needed` items each."""
        table = self.table
        check_faults(self._task_faults(banks is not None), self.where)
        if table.task is not None:
            family = self._family(table.task, families)
            return family, _or_default(table.levels, family.levels)
        assert banks is not None
        assert table.bank is not None
        bank = banks(table.bank)
        count = table.levels
        if count is None and bank.calibrated:
            count = BANK_LEVELS
        levels = bank_levels(bank, count, self.where)
        fewest = min(map(len, levels))
        if fewest < needed:
            raise ConfigError(
                f"{self.where}: a level of the bank {bank.name!r} has {fewest} items, and {needed} are asked of each "
                "(queries times rounds): ask fewer, or split it into fewer levels"
            )
        return bank, len(levels)

    def _task_faults(self, banks: bool) -> Iterator[str]:
        table = self.table
        if table.size is not None and table.bank is not None:
            yield "size goes with a task, and the items of a bank are as they are: remove it"
        if (table.task is None) == (table.bank is None):
            count = "none" if table.bank is None else "both"
            yield f"a node has either a task or a bank; found {count}"
        if table.bank is not None and not banks:
            yield "banks cannot be read here: name a task"

    def _family(self, task: str, families: Mapping[str, TaskFamily]) -> TaskFamily:
        """Return the task's family, with the picture size and the form of prompts that the table sets."""
        if task not in families:
            raise ConfigError(f"{self.where}: task {task!r} is not known; use one of {', '.join(families)}")
        family = families[task]
        with located(self.where):
            if self.table.size is None:
                return family
            return family.of_size(self.table.size)
