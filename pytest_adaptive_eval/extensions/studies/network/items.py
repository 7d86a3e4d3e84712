"""Questions of a node by level: of a task family, drawn anew for every seed and node, or of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.topology import Network, Node
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.tasks.bank import guess_floors, task_bank
from pytest_adaptive_eval.tasks.family import TaskFamily
from pytest_adaptive_eval.ties import tie_ranks
from pytest_adaptive_eval.types import Ints


def bank_levels(bank: ItemBank, levels: int | None, where: str) -> list[Ints]:
    """Return the positions of a bank's items by level, the easiest level first.

    A calibrated bank is split by difficulty into levels of the same size. An uncalibrated one is split by its items'
    ``meta.level``; items without it are one level.

    Raises:
        ConfigError: The bank has fewer levels.
    """
    if bank.calibrated:
        count = 1 if levels is None else levels
        if not 1 <= count <= len(bank):
            raise ConfigError(
                f"{where}: levels is {levels!r}, expected a number from 1 to {len(bank)}, the items of the bank "
                f"{bank.name!r}"
            )
        return [np.sort(part) for part in np.array_split(tie_ranks(bank.difficulty).argsort(kind="stable"), count)]
    labels = [item.meta.get("level", 1) for item in bank.items]
    if bad := [label for label in labels if isinstance(label, bool) or not isinstance(label, int)]:
        raise ConfigError(
            f"{where}: an item of the bank {bank.name!r} has meta.level {bad[0]!r:.40}, expected a number"
        )
    positions = [np.flatnonzero(np.array(labels) == label) for label in sorted(set(labels))]
    if levels is not None and not 1 <= levels <= len(positions):
        raise ConfigError(
            f"{where}: levels is {levels!r}, expected 1 to {len(positions)}, the number of different meta.level "
            f"of the items in the bank {bank.name!r}, which is not calibrated"
        )
    return positions[:levels]


class LevelItems:
    """Questions of a node by level, round and number, all different within a level.

    Attributes:
        guess: Expected score of a guess by level.
    """

    def __init__(self, network: Network, node: Node, pictures: Path | None = None) -> None:
        self._queries = node.queries
        position = network.nodes.index(node)
        self._order: list[Sequence[int]]
        if isinstance(node.task, TaskFamily):
            per_level = node.queries * network.rounds
            seed = network.seed * len(network.nodes) + position
            self._bank = task_bank(node.task, queries=per_level, levels=node.levels, seed=seed, pictures=pictures)
            self._order = [range(level * per_level, (level + 1) * per_level) for level in range(node.levels)]
        else:
            self._bank = node.task
            rng = np.random.default_rng([network.seed, position])
            parts = bank_levels(node.task, node.levels, f"{network.where}: node {node.name!r}")
            self._order = [rng.permutation(part).tolist() for part in parts]
        self.guess = self._floors(node)

    def _floors(self, node: Node) -> tuple[float, ...]:
        """Return the guess floors by level: of a bank the mean share of one choice, 0 for items without choices."""
        if isinstance(node.task, TaskFamily):
            return guess_floors(node.task, node.levels)
        choices = [[len(self._bank.items[n].choices) for n in part] for part in self._order]
        return tuple(sum(1.0 / count for count in level if count) / len(level) for level in choices)

    def item(self, level: int, round_: int, number: int) -> Item:
        """Return a question; levels count from 1, rounds and numbers from 0."""
        item: Item = self._bank.items[self._order[level - 1][round_ * self._queries + number]]
        return item
