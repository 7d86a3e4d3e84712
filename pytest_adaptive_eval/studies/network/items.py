"""Questions by level: of a task family, drawn anew for every seed and node, or of a bank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.studies.network.topology import Network, Node
from pytest_adaptive_eval.tasks.bank import task_bank
from pytest_adaptive_eval.tasks.family import TaskFamily

__all__ = ["LevelItems", "bank_levels"]


def bank_levels(bank: ItemBank, levels: int | None, where: str) -> list[NDArray[np.int64]]:
    """Places of a bank's items by level, the easiest first.

    A calibrated bank is split by difficulty into levels of the same size; another one by its items' ``meta.level``,
    and is one level where they have none.

    Raises
    ------
    ConfigError
        There are not so many levels.
    """
    if bank.calibrated:
        count = 1 if levels is None else levels
        if not 1 <= count <= len(bank):
            raise ConfigError(
                f"{where}: levels is {levels!r}, expected a number from 1 to {len(bank)}, the items of the bank "
                f"{bank.name!r}"
            )
        return [np.sort(part) for part in np.array_split(np.argsort(bank.difficulty, kind="stable"), count)]
    told = [item.meta.get("level", 1) for item in bank.items]
    if bad := [level for level in told if isinstance(level, bool) or not isinstance(level, int)]:
        raise ConfigError(
            f"{where}: an item of the bank {bank.name!r} has meta.level {bad[0]!r:.40}, expected a number"
        )
    found = [np.flatnonzero(np.array(told) == level) for level in sorted(set(told))]
    if levels is not None and not 1 <= levels <= len(found):
        raise ConfigError(
            f"{where}: levels is {levels!r}: the items of the bank {bank.name!r}, which is not calibrated, have "
            f"{len(found)} different meta.level"
        )
    return found[:levels]


class LevelItems:
    """The questions of a node, by level, round and number; no two of one level are the same item.

    Parameters
    ----------
    network : Network
    node : Node
    pictures : Path, optional
        Folder that the pictures of task families are drawn into.
    """

    def __init__(self, network: Network, node: Node, pictures: Path | None = None) -> None:
        self._queries, self._rounds = node.queries, network.rounds
        place = network.nodes.index(node)
        self._order: list[Sequence[int]]
        if isinstance(node.task, TaskFamily):
            stored = node.queries * network.rounds
            seed = network.seed * len(network.nodes) + place
            self._bank = task_bank(node.task, queries=stored, levels=node.levels, seed=seed, pictures=pictures)
            self._order = [range(level * stored, (level + 1) * stored) for level in range(node.levels)]
        else:
            self._bank = node.task
            rng = np.random.default_rng([network.seed, place])
            parts = bank_levels(node.task, node.levels, f"{network.where}: node {node.name!r}")
            self._order = [rng.permutation(part).tolist() for part in parts]

    def item(self, level: int, round_: int, number: int) -> Item:
        """A question; levels count from 1, rounds and numbers from 0."""
        found: Item = self._bank.items[self._order[level - 1][round_ * self._queries + number]]
        return found
