"""A harness as a model."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.harness.calls import Question, folders_of
from pytest_adaptive_eval.extensions.harness.command import Command, read_command
from pytest_adaptive_eval.extensions.harness.running import LATE, Asked, Calls
from pytest_adaptive_eval.items.item import Item, canonical_json
from pytest_adaptive_eval.models.base import Arrived, Completion, Model, Usage, sample_of
from pytest_adaptive_eval.models.request_keys import request_key
from pytest_adaptive_eval.records.baseline import HARNESS_VERSION


class HarnessModel(Model):
    """A subject whose items a harness runs, a call for many of them.

    Created by `load`. The harness's log alone says what an item scored. An item without a result is asked for once
    more, and is missing then.

    Args:
        root: Folder of the files of calls.
    """

    waits_apart = True
    gathers = True
    asks_twice = True
    shares_by_flag = True

    def __init__(self, command: Command, root: Path, cache: Path | None = None) -> None:
        super().__init__(command.identity(cache))
        identity = self.identity
        whose = request_key(identity.name, identity.checkpoint, identity.decoding_hash)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", identity.name)[:60]
        self.command = command
        self.calls = Calls(command, root, root / f"{name}-{whose[:12]}", whose)

    @classmethod
    def load(cls, name: str, checkpoint: str = "", /, *, cache: Path | None = None, **options: Any) -> HarnessModel:
        """Read the command of a harness.

        Args:
            cache: Folder for hashes of files, in the folder of the run; files of calls are beside it.
            **options: See `settings.HarnessSettings`.

        Raises:
            ConfigError: The harness or program is unknown, or the command does not say which items to run.
        """
        if cache is None:
            root = Path(tempfile.mkdtemp(prefix="adaptive-eval-"))
        else:
            root = cache.parent
        return cls(read_command(name, checkpoint, options), root / "harness", cache)

    @property
    def shared_batch(self) -> int:
        """Number of items that calls hold at most."""
        return self.calls.times.most * self.command.settings.calls

    @property
    def usage(self) -> Usage:
        """Cost of all results so far."""
        return self.calls.usage

    @property
    def no_reuse(self) -> str:
        """Reason why results may not take the place of asking in other runs; empty if they may."""
        if self.identity.hashes_files or self.command.settings.revision:
            return ""
        return "nothing identifies the model: name its version as revision, or give a folder as checkpoint"

    def prepare(self, items: Sequence[Item]) -> None:
        """Raise ConfigError for an id that the harness cannot be given, and let calls hold as many ids as fit."""
        ids = [item.id for item in items]
        self.command.harness.check_ids(ids)
        self.calls.times.fit(ids)

    def request(self, item: Item) -> bytes:
        """Return the harness's version, the command without paths and ids, and the item's id; see the base class."""
        return canonical_json([self.identity.environment[HARNESS_VERSION], self.command.stated(), item.id]).encode()

    def call_size(self, expected: int) -> int:
        """Return how many items the next call holds; see the base class."""
        if len(self.calls.running()) >= self.command.settings.calls:
            return 0
        return self.calls.times.size(expected)

    def forget(self, interview: str) -> None:
        """Use no result of an interview that an earlier run has left; see the base class."""
        for folder in folders_of(self.calls.folder):
            stale = [question for question in folder.open_questions() if question.interview == interview]
            folder.take(stale)

    def begin(
        self,
        draws: Sequence[tuple[Item, int]],
        arrived: Arrived,
        keep: Arrived | None = None,
        interviews: Sequence[str] = (),
    ) -> Callable[[], object]:
        """Have items run by one call, or by a call for each sample; see the base class."""
        asked = []
        names = interviews or ("",) * len(draws)
        for index, ((item, sample), interview) in enumerate(zip(draws, names, strict=True)):
            if not item.id:
                raise ConfigError(
                    f"harness:{self.command.harness.name} runs items by their ids, and a bare prompt has none; pass "
                    "the item: `item.score(model.score(item))`"
                )
            asked.append(Asked(index, Question(interview, item.id, sample), item))
        return self.calls.begin(asked, arrived, keep).cancel_one

    def take_arrived(self, *, wait: bool) -> None:
        """Call `arrived` for the results of `begin` that are there; see the base class."""
        self.calls.arrivals.take(wait=wait)

    def wake(self) -> None:
        """End a wait of `take_arrived`; see the base class."""
        self.calls.arrivals.wake()

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order; see the base class."""
        completions: dict[int, Completion] = {}
        draws = [(item, sample_of(item)) for item in items]
        call = self.begin(draws, completions.__setitem__)
        try:
            while len(completions) < len(items):
                self.take_arrived(wait=True)
        except BaseException:
            for _ in items:
                call()
            raise
        return [completions[index] for index in range(len(items))]

    def close(self) -> None:
        """End the calls, and wait for their ends."""
        running = self.calls.running()
        for call in running:
            call.cancel()
        for call in running:
            call.thread.join(self.command.settings.grace + 2 * LATE)
