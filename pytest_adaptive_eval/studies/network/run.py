"""A network, held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.studies.network.engine import Conversation, Engine
from pytest_adaptive_eval.studies.network.items import LevelItems
from pytest_adaptive_eval.studies.network.node import ContentFilter, Interview, blank, review
from pytest_adaptive_eval.studies.network.node_result import NodeResult
from pytest_adaptive_eval.studies.network.result import NetworkResult
from pytest_adaptive_eval.studies.network.topology import Network, Node
from pytest_adaptive_eval.subjects.pool import AgentPool
from pytest_adaptive_eval.tasks.family import TaskFamily

__all__ = ["hold_network"]


def hold_network(
    network: Network,
    pool: AgentPool,
    *,
    replies: MutableMapping[str, str] | None = None,
    content_filter: ContentFilter | None = None,
    pictures: Path | None = None,
    concurrency: int = 8,
) -> NetworkResult:
    """Interview a subject in a network.

    Parameters
    ----------
    network : Network
    pool : AgentPool
        Has a subject for each of `Network.subjects` and an agent for each of `Network.agents`; it stays open.
    replies : mutable mapping of str to str, optional
        Replies by a hash of the model and all it was asked.  With those of an interrupted run it goes on to the same
        result.  Calls that failed for no fault of a model's are not kept.
    content_filter : callable, optional
        Gives the reason why a text, of an interviewer or of an interviewee, must not be shown or passed on.  A question
        that is flagged is not asked; an answer that is flagged is scored like any other.
    pictures : Path, optional
        Folder that pictures of task families are drawn into.
    concurrency : int
        Calls to models behind servers at once.

    Raises
    ------
    ConfigError
        The pool lacks a model, pictures have no folder, or the concurrency is below 1.
    """
    check_count("concurrency", concurrency)
    for name in (*network.subjects, *network.agents):
        pool.agent(name)  # only that there is one by that name
    for node in network.nodes:
        if isinstance(node.task, TaskFamily) and node.task.pictorial and pictures is None:
            raise ConfigError(
                f"{network.where}: node {node.name!r}: its task has pictures, and there is no folder for them"
            )
    run = _Run(network, pool, {} if replies is None else replies, content_filter, pictures, concurrency)
    return run.hold()


class _Run:
    def __init__(
        self,
        network: Network,
        pool: AgentPool,
        replies: MutableMapping[str, str],
        content_filter: ContentFilter | None,
        pictures: Path | None,
        concurrency: int,
    ) -> None:
        self.network, self.pool = network, pool
        self.content_filter, self.pictures = content_filter, pictures
        self.engine = Engine(pool, replies, concurrency)
        self.loaded = dict(pool.loads)

    def hold(self) -> NetworkResult:
        network = self.network
        found = self.engine.hold(self._ready)
        if network.supervision is not None:  # its reviews change nothing else: it is loaded once for all of them
            one = network.supervision
            found |= self.engine.hold(
                lambda done: {
                    name: partial(review, one, result, exchanges)
                    for name, (result, exchanges) in found.items()
                    if exchanges and name not in done
                }
            )
        results = [found[node.name] for node in network.nodes]
        nodes = [one[0] if isinstance(one, tuple) else one for one in results]
        return NetworkResult(
            network.topology,
            network.interviewee,
            tuple(replace(node, usage=dict(self.engine.usage[node.name])) for node in nodes),
            {name: identity.to_json() for name, identity in sorted(self.engine.models.items())},
            network.supervision.model if network.supervision else "",
            network.supervision.scheme if network.supervision else "",
            network.passing,
            network.seed,
            network.rounds,
            network.confidence,
            {name: n - self.loaded.get(name, 0) for name, n in sorted(self.pool.loads.items())},
            self.engine.recalled,
        )

    def _ready(self, found: Mapping[str, Any]) -> dict[str, Callable[[], Conversation[Any]]]:
        """Nodes whose earlier ones are done."""
        return {
            node.name: partial(self._conversation, node, found)
            for node in self.network.order()
            if node.name not in found and set(node.after) <= set(found)
        }

    def _conversation(self, node: Node, found: Mapping[str, Any]) -> Conversation[Any]:
        before: list[NodeResult] = [found[name][0] for name in node.after]
        if not all(self._shown(one, node) for one in before):
            return _closed(blank(self.network, node))
        dialogues = [found[one.name][0].dialogue for one in self.network.ancestors(node.name)]
        items = LevelItems(self.network, node, self.pictures)
        passed = dialogues if self.network.passing else ()
        return Interview(self.network, node, items, passed, self.content_filter).hold()

    def _shown(self, before: NodeResult, node: Node) -> bool:
        """Whether a node surely has the area that the next one wants."""
        area = before.interval(self.network.confidence)
        return area is not None and area.low >= node.opens_at


def _closed(result: NodeResult) -> Conversation[tuple[NodeResult, list[Any]]]:
    """Ends at once."""
    yield from ()
    return result, []
