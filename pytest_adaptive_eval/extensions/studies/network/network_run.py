"""Run an evaluation network."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.engine import Conversation, Engine
from pytest_adaptive_eval.extensions.studies.network.node import (
    ContentFilter,
    LevelItems,
    NodeInterview,
    allow_all,
    blank,
    review,
)
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.extensions.studies.network.topology import Network, Node
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.reuse import Completions, CompletionStore
from pytest_adaptive_eval.tasks.family import TaskFamily


def hold_network(
    network: Network,
    pool: ModelPool,
    *,
    replies: CompletionStore | None = None,
    content_filter: ContentFilter | None = None,
    pictures: Path | None = None,
    concurrency: int = 8,
) -> NetworkResult:
    """Interview a subject in a network.

    Args:
        pool: Contains a model for each of `Network.subjects` and `Network.agents`. It stays open.
        replies: Kept replies. With the replies of an interrupted run the result is the same as without the
            interruption.
        content_filter: Returns the reason why a text of an interviewer or interviewee must not be shown or passed on,
            or an empty text. A flagged question is not asked; a flagged answer is scored. By default the network's.
        concurrency: Concurrent calls to models behind servers.

    Raises:
        ConfigError: The pool lacks a model, the folder for pictures is missing, or the concurrency is below 1.
    """
    check_count("concurrency", concurrency)
    for name in (*network.subjects, *network.agents):
        pool.model(name)  # refuses a name that it lacks
    for node in network.nodes:
        if isinstance(node.task, TaskFamily) and node.task.pictorial and pictures is None:
            raise ConfigError(
                f"{network.where}: node {node.name!r}: its task has pictures, and the folder for them is missing"
            )
    loads = dict(pool.loads)
    engine = Engine(pool, Completions() if replies is None else replies, concurrency)
    results = engine.run(_Scheduler(network, content_filter or network.content_filter or allow_all, pictures).ready)
    supervision = network.supervision
    if supervision is not None:  # no other result depends on the reviews, so one load of the supervisor suffices
        results |= engine.run(
            lambda done: {
                name: partial(review, supervision, result, exchanges)
                for name, (result, exchanges) in results.items()
                if exchanges and name not in done
            }
        )
    nodes = [result[0] if isinstance(result, tuple) else result for result in (results[n.name] for n in network.nodes)]
    return NetworkResult(
        network.topology,
        network.interviewee,
        tuple(replace(node, usage=dict(engine.usage[node.name])) for node in nodes),
        {name: identity.with_caps(engine.caps[name]).to_json() for name, identity in sorted(engine.models.items())},
        supervision.model if supervision else "",
        supervision.scheme if supervision else "",
        network.passing,
        network.seed,
        network.rounds,
        network.confidence,
        {name: n - loads.get(name, 0) for name, n in sorted(pool.loads.items())},
        engine.recalled,
        {name: (counts[True], counts.total()) for name, counts in sorted(engine.truncated.items()) if counts[True]},
    )


@dataclass(slots=True)
class _Scheduler:
    network: Network
    content_filter: ContentFilter
    pictures: Path | None

    def ready(self, results: Mapping[str, Any]) -> dict[str, Callable[[], Conversation[Any]]]:
        """Return the conversations of nodes whose earlier nodes have results."""
        return {
            node.name: partial(self._conversation, node, results)
            for node in self.network.order()
            if node.name not in results and set(node.after) <= set(results)
        }

    def _conversation(self, node: Node, results: Mapping[str, Any]) -> Conversation[Any]:
        areas = [results[name][0].interval(self.network.confidence) for name in node.after]
        if not all(area is not None and area.low >= node.opens_at for area in areas):
            return _without_calls((blank(self.network, node), []))
        earlier = self.network.ancestors(node.name) if self.network.passing else ()
        dialogues = [results[before.name][0].dialogue for before in earlier]
        if injected := self.network.injected:  # meaningless text, which network, node and seed determine
            draws = (random.Random(f"{self.network.seed} {each.node}") for each in dialogues)
            noise = (rng.choices(_LETTERS, k=injected) for rng in draws)
            dialogues = [replace(d, injected="".join(text)) for d, text in zip(dialogues, noise, strict=True)]
        items = LevelItems(self.network, node, self.pictures)
        return NodeInterview(self.network, node, items, dialogues, self.content_filter).run()


#: Letters of meaningless text.
_LETTERS = "bcdfghjklmnpqrstvwxz "


def _without_calls(result: Any) -> Conversation[Any]:
    yield from ()
    return result
