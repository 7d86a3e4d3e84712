"""One harness: what differs between harnesses, as data."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.typed_tables import Table, find_named

#: Entry point group in which plugins register modules with harnesses.
GROUP = "adaptive_eval.harnesses"
_PATTERN = re.compile(r"[*?[]")


class Harness(Table, frozen=True):
    """One harness.

    Args:
        name: Word behind ``harness:``.
        format: Format of its log, see `logs.results_of`.
        files: Pattern of the files in the folder of a call whose changes show new results.
        logs_task: Whether ids in the log are ``TASK:ID``; a bank may leave out the task.
        option: Its option before each item of ``{items}``.
        separator: Text between the ids of ``{ids}``; a blank makes each id one word.
        refused: Signs that no id may have, such as the separator.
        escape: Whether it reads ids as patterns of fnmatch; their signs are escaped then.
        id_map: How an id ``TASK:HASH`` becomes the index of ``{samples}``; empty where ids are the harness's own.
        agent_failures: The log's names of what the agent did, which counts as wrong.
        time_outs: The agent failures that are time-outs, whose seconds are above any bound.
        infrastructure: The log's names of what the infrastructure did, which leaves no score.
        version: Command that prints its version; ``{program}`` is the first word of the user's command, and
            ``{python}`` the interpreter that runs it.
    """

    name: str
    format: str
    files: str
    logs_task: bool = False
    option: str = ""
    separator: str = ","
    refused: str = ""
    escape: bool = False
    id_map: str = ""
    agent_failures: tuple[str, ...] = ()
    time_outs: tuple[str, ...] = ()
    infrastructure: tuple[str, ...] = ()
    version: str = ""

    def written(self, item: str) -> str:
        """Return an id as the harness is given it."""
        if self.escape:
            return _PATTERN.sub(lambda match: f"[{match[0]}]", item)
        return item

    def item_of(self, logged: str, asked: Collection[str]) -> str:
        """Return the bank's id for an id in the log, which may have the task before it."""
        if self.logs_task and logged not in asked:
            return logged.partition(":")[2]
        return logged

    def check_ids(self, items: Iterable[str]) -> None:
        """Raise ConfigError for the first id that the harness cannot be given."""
        for item in items:
            for fault in self._faults(item):
                raise ConfigError(f"item {item!r:.80}: {fault}, so harness:{self.name} cannot run it alone; rename it")

    def _faults(self, item: str) -> Iterator[str]:
        separators = sorted({sign for sign in self.refused if sign in item})
        if separators:
            yield f"the id has {' and '.join(map(repr, separators))}, which separates ids"
        if not item.isprintable() or not item or item.startswith("-"):
            yield "the id is empty, begins with a hyphen or has unprintable signs"
        if self.separator == " " and any(sign.isspace() for sign in item):
            yield "the id has a blank"
        if self.id_map and not all(item.partition(":")[::2]):
            yield "expected an id TASK:HASH, as in banks made from the harness's own log"


@functools.cache
def harnesses() -> Mapping[str, Harness]:
    """Return all harnesses by name, including installed plugins'."""
    return registered(None, GROUP, Harness)


def find_harness(name: str) -> Harness:
    """Return the harness of a name; raise ConfigError if there is none."""
    return find_named("harness", name, harnesses())
