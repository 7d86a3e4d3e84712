"""Run an evaluation network."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.engine import Conversation, Engine
from pytest_adaptive_eval.extensions.studies.network.node import (
    Exchanges,
    LevelItems,
    NodeInterview,
    blank,
    review,
)
from pytest_adaptive_eval.extensions.studies.network.node_result import Dialogue, NodeResult
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.extensions.studies.network.topology import Network, Node, Supervision
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.tasks.family import TaskFamily


def hold_network(
    network: Network,
    pool: ModelPool,
    *,
    replies: CompletionStore | None = None,
    pictures: Path | None = None,
    concurrency: int = 8,
    replied: Callable[[], object] = lambda: None,
) -> NetworkResult:
    """Interview a subject in a network.

    Args:
        pool: Contains a model for each of `Network.subjects` and `Network.agents`. It stays open.
        replies: Kept replies. With the replies of an interrupted run the result is the same as without the
            interruption.
        concurrency: Concurrent calls to models behind servers.
        replied: Called for each new reply.

    Raises:
        ConfigError: The pool lacks a model, the folder for pictures is missing, or the concurrency is below 1.
    """
    check_count("concurrency", concurrency)
    _check_pictures(network, pictures)
    for name in (*network.subjects, *network.agents):
        pool.model(name)  # refuses a name that it lacks
    loads_before = dict(pool.loads)
    if replies is None:
        replies = CompletionStore()
    engine = Engine(pool, replies, concurrency, replied)
    results = engine.run(_Scheduler(network, pictures).ready)
    nodes = []
    exchanges = []
    for node in network.nodes:
        node_result, to_review = results[node.name]
        nodes.append(node_result)
        exchanges.append(to_review)
    if network.supervision is not None:
        # no other result depends on the reviews, so one load of the supervisor suffices
        nodes = _reviewed(engine, network.supervision, nodes, exchanges)
    loads = {}
    for name, n in sorted(pool.loads.items()):
        loads[name] = n - loads_before.get(name, 0)
    return _result(network, engine, nodes, loads)


def _check_pictures(network: Network, pictures: Path | None) -> None:
    """Raise a ConfigError if a node has pictures and no folder for them is set."""
    for node in network.nodes:
        if pictures is None and isinstance(node.task, TaskFamily) and node.task.pictorial:
            raise ConfigError(
                f"{network.where}: node {node.name!r}: its task has pictures, and the folder for them is missing"
            )


def _result(network: Network, engine: Engine, nodes: Sequence[NodeResult], loads: Mapping[str, int]) -> NetworkResult:
    supervision = network.supervision
    with_usage = [replace(node, usage=dict(engine.usage[node.name])) for node in nodes]
    models = {}
    for name, identity in sorted(engine.models.items()):
        models[name] = identity.with_caps(engine.caps[name]).to_json()
    truncated = {}
    for name, counts in sorted(engine.truncated.items()):
        if counts[True]:
            truncated[name] = (counts[True], counts.total())
    return NetworkResult(
        network.topology,
        network.interviewee,
        tuple(with_usage),
        models,
        supervision.model if supervision else "",
        supervision.scheme if supervision else "",
        network.passing,
        network.seed,
        network.rounds,
        network.confidence,
        loads,
        engine.recalled,
        truncated,
    )


def _reviewed(
    engine: Engine, supervision: Supervision, nodes: Sequence[NodeResult], exchanges: Sequence[Exchanges]
) -> list[NodeResult]:
    """Return the nodes with reviews of their exchanges."""
    reviews = {}
    for node, pairs in zip(nodes, exchanges, strict=True):
        if pairs:
            reviews[node.name] = partial(review, supervision, node, pairs)
    reviewed = engine.run(lambda done: {name: start for name, start in reviews.items() if name not in done})
    return [reviewed.get(node.name, node) for node in nodes]


@dataclass(slots=True)
class _Scheduler:
    network: Network
    pictures: Path | None

    def ready(self, results: Mapping[str, Any]) -> dict[str, Callable[[], Conversation[Any]]]:
        """Return the conversations of nodes whose earlier nodes have results."""
        conversations: dict[str, Callable[[], Conversation[Any]]] = {}
        for node in self.network.order():
            if node.name not in results and set(node.after) <= set(results):
                conversations[node.name] = partial(self._conversation, node, results)
        return conversations

    def _conversation(self, node: Node, results: Mapping[str, Any]) -> Conversation[Any]:
        for name in node.after:
            area = results[name][0].interval(self.network.confidence)
            if area is None or area.low < node.opens_at:
                return _without_calls((blank(self.network, node), []))
        dialogues = []
        if self.network.passing:
            for before in self.network.ancestors(node.name):
                result, _ = results[before.name]
                dialogues.append(self._passed(result.dialogue))
        items = LevelItems(self.network, node, self.pictures)
        return NodeInterview(self.network, node, items, dialogues).run()

    def _passed(self, dialogue: Dialogue) -> Dialogue:
        """Return a dialogue with the meaningless text that is added to it, which seed and node determine."""
        if not self.network.injected:
            return dialogue
        rng = random.Random(f"{self.network.seed} {dialogue.node}")
        letters = rng.choices(_LETTERS, k=self.network.injected)
        return replace(dialogue, injected="".join(letters))


#: Letters of meaningless text.
_LETTERS = "bcdfghjklmnpqrstvwxz "


def _without_calls(result: Any) -> Conversation[Any]:
    yield from ()
    return result
