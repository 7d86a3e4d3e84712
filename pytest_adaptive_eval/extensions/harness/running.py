"""Calls of a harness that run, and what their logs say meanwhile."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.banks.responses.base import ItemResult, ResultSettings
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.harness import supervisor
from pytest_adaptive_eval.extensions.harness.calls import (
    CallFolder,
    Question,
    Results,
    folders_of,
    locked,
    open_lock,
    try_lock,
)
from pytest_adaptive_eval.extensions.harness.command import Command
from pytest_adaptive_eval.extensions.harness.samples import chosen, numbers_of
from pytest_adaptive_eval.extensions.harness.sizes import CallTimes
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.arrivals import Arrivals
from pytest_adaptive_eval.models.base import TIMED_OUT, Arrived, Completion, Usage, sent_request
from pytest_adaptive_eval.models.request_keys import draw_number

#: Shortest pause between two looks at a log, in seconds, and the pause as a multiple of how long a look takes.
POLL, LOOKS = 0.1, 5.0
#: Tries of an item whose call brings no score of it.
TRIES = 2
#: Seconds beyond its grace after which a call that does not end is killed from here.
LATE = 10.0


@dataclass(eq=False, slots=True)
class Asked:
    """One question of a call; `done` once it has a result."""

    index: int
    question: Question
    item: Item
    done: bool = False


class Calls:
    """State that all calls of one harness share.

    Args:
        root: Folder of the locks on calls, which all harnesses of a run share.
        folder: Folder of the files of calls.
        whose: Hash of the subject, which the seeds of calls depend on.

    Attributes:
        arrivals: What is left to do for each result in the thread of the run.
        usage: Cost of all results so far.
    """

    def __init__(self, command: Command, root: Path, folder: Path, whose: str) -> None:
        settings, row = command.settings, command.harness
        self.command = command
        self.root, self.folder, self.whose = root, folder, whose
        self.reading = ResultSettings(settings.metric, settings.filter, row.agent_failures, row.infrastructure)
        self.arrivals = Arrivals()
        self.times = CallTimes(settings.parallel)
        self.lock = threading.Lock()  #: For what several threads change.
        self.usage = Usage()
        self._counted = 0.0  #: Time until which the seconds of calls are counted.
        self._begun: list[Call] = []
        self._numbers: dict[str, dict[str, int]] = {}

    def begin(self, asked: Sequence[Asked], arrived: Arrived, keep: Arrived | None) -> Call:
        """Begin the call of some questions."""
        call = Call(self, asked, arrived, keep)
        self._begun.append(call)
        call.thread.start()
        return call

    def running(self) -> list[Call]:
        """Return the calls that have not ended."""
        self._begun = [call for call in self._begun if not call.over]
        return self._begun

    def results(self, folder: CallFolder) -> Results:
        """Return the results in the log of a call."""
        return Results(folder.output, self.command.harness, self.reading)

    def spend(self, result: ItemResult, begun: float) -> Usage:
        """Count the cost of a result of a call that began at a time, and return it; the caller holds the lock."""
        now = clock.elapsed()
        cost = Usage(
            calls=1,
            prompt_tokens=int(result.measures.get("input_tokens", 0)),
            completion_tokens=int(result.measures.get("output_tokens", 0)),
            seconds=now - max(begun, self._counted),
            money=result.measures.get("cost", 0.0),
        )
        self._counted = now
        self.usage += cost
        return cost

    def numbers(self, tasks: Collection[str]) -> Mapping[str, Mapping[str, int]]:
        """Return the numbers of documents of tasks by their hash."""
        new = sorted({*tasks} - {*self._numbers})
        if new:
            self._numbers |= numbers_of(self.command, new)
        return self._numbers


class Call:
    """The questions of one `begin`: one call of the harness, one for each further sample, and one for second tries.

    Attributes:
        cancelled: Set once the call is not wanted any more.
        over: Whether it has ended.
    """

    def __init__(self, calls: Calls, asked: Sequence[Asked], arrived: Arrived, keep: Arrived | None = None) -> None:
        self.calls = calls
        self.cancelled = threading.Event()
        self.over = False
        self.thread = threading.Thread(target=self._run, name="adaptive-eval-harness", daemon=True)
        self._asked = asked
        self._arrived = arrived
        self._keep = keep
        self._open = len(asked)
        self._cancels = 0

    def cancel_one(self) -> None:
        """Note that a question is not wanted any more; the call ends when that holds for all without a result."""
        self._cancels += 1
        if self._cancels >= self._open:
            self.cancel()

    def cancel(self) -> None:
        """End the call.  No result is taken from now on: the next run finds it in the log."""
        with self.calls.lock:
            self.cancelled.set()

    def deliver(
        self, folder: CallFolder, results: Sequence[tuple[Asked, ItemResult]], begun: float, *, hand_over: bool = True
    ) -> None:
        """Give the results of questions to the run: at once to its journal, and then to its thread.

        Args:
            hand_over: Whether the thread of the run is to get them.
        """
        calls = self.calls
        for asked, result in results:
            with calls.lock:
                if asked.done or self.cancelled.is_set():
                    continue
                asked.done = True
                completion = self._completion(asked.item, result, calls.spend(result, begun))
                if self._keep is not None and self._keep(asked.index, completion):
                    folder.take([asked.question])
            if hand_over:
                calls.arrivals.put(partial(self._hand_over, asked.index, completion))

    def _run(self) -> None:
        try:
            self._try_all()
        except BaseException as error:  # raised in the thread of the run
            if not self.cancelled.is_set():
                self.calls.arrivals.put(partial(_raise, error))
        finally:
            self.over = True
            self.calls.arrivals.wake()

    def _try_all(self) -> None:
        """Ask for each item until it has a score or `TRIES` tries; what may have ended a call comes last again."""
        faults: dict[Question, Completion] = {}
        tries: Counter[Question] = Counter()
        attempt = 0
        while rest := [asked for asked in self._asked if not asked.done and tries[asked.question] < TRIES]:
            rest.sort(key=lambda asked: tries[asked.question])
            for group in _split_by_occurrence(rest):
                tried = self._call(group, attempt)
                if self.cancelled.is_set():
                    return
                faults |= tried
                tries.update(tried.keys())
            attempt += 1
        for asked in self._asked:
            if not asked.done:
                self.calls.arrivals.put(partial(self._hand_over, asked.index, faults[asked.question]))

    def _hand_over(self, index: int, completion: Completion) -> None:
        """Give a completion to the thread of the run, within it."""
        self._open -= 1
        self._arrived(index, completion)

    def _call(self, group: Sequence[Asked], attempt: int) -> dict[Question, Completion]:
        """Run questions of different items by one call, unless an earlier run has left their results.

        Return what is said on the ones that were tried and have no score, see `_Running.watch`.
        """
        slots = [self.calls.root / f"call-{number}.lock" for number in range(self.calls.command.settings.calls)]
        with locked(slots, self.cancelled.wait) as slot:
            if slot is None:
                return {}
            self._take_left(group)
            rest = [asked for asked in group if not asked.done]
            if not rest:
                return {}
            return _Running(self, rest, attempt).watch(slot)

    def _take_left(self, group: Sequence[Asked]) -> None:
        """Take the results that calls of killed runs have left, once such a call has ended."""
        calls = self.calls
        by_question = {asked.question: asked for asked in group if asked.question.interview}
        for folder in folders_of(calls.folder):
            asked_by_item = {each.item: by_question[each] for each in folder.open_questions() if each in by_question}
            if not asked_by_item:
                continue
            with locked([folder.path / "lock"], self.cancelled.wait):
                results = calls.results(folder).so_far()
            scored = []
            for result in results:
                name = calls.command.harness.item_of(result.item, asked_by_item)
                if name in asked_by_item and result.score is not None:
                    scored.append((asked_by_item[name], result))
            self.deliver(folder, scored, clock.elapsed())

    def _completion(self, item: Item, result: ItemResult, cost: Usage) -> Completion:
        command = self.calls.command
        is_graded = command.settings.grade and bool(result.text.strip()) and not item.meta.get("textless")
        measures = dict(result.measures)
        if result.fault.startswith(command.harness.time_outs):
            measures[TIMED_OUT] = 1.0
        return Completion(
            result.text,
            score=None if is_graded else result.score,
            detail=result.fault,
            cost=cost,
            request=sent_request(f"{shlex.join(command.stated()['command'])}\n{item.id}"),
            measures=measures,
            own_score=not is_graded,
        )


class _Running:
    """One command that runs, for questions of different items with one sample."""

    def __init__(self, call: Call, group: Sequence[Asked], attempt: int) -> None:
        self._call = call
        self._calls = call.calls
        self._settings = call.calls.command.settings
        self._folder = CallFolder.create(call.calls.folder, [asked.question for asked in group])
        self._path = self._folder.path.resolve()
        self._group = {asked.question.item: asked for asked in group}
        self._attempt = attempt
        self._results = call.calls.results(self._folder)
        self._begun = clock.elapsed()
        self._first = self._last = 0.0  #: Seconds to the first and the last result.
        self._words: dict[str, str] = {}
        self._strange = ""  #: An id in the log that was not asked.
        self._is_late = False

    def watch(self, slot: IO[str]) -> dict[Question, Completion]:
        """Run the command to its end, or end it where it is not wanted; return what is said on tries without a score.

        Where a call brought some results and then ended, the first item of which the log says nothing was tried: it may
        have ended the call. The items behind it may not have begun. Where it brought none, all were tried.

        Raises:
            ConfigError: The harness ran an item that was not asked.
            ResponsesError: The log is malformed.
        """
        with open_lock(self._path / "lock") as lock:
            try_lock(lock)
            process = self._start(slot, lock)
        try:
            self._follow(process)
        finally:
            self._end(process)
        if self._call.cancelled.is_set():
            return {}
        self._take(self._results.all())
        if self._strange:
            raise ConfigError(
                f"harness:{self._calls.command.harness.name} ran {self._strange!r}, which was not asked for: the "
                "command does not restrict it to the items of a call. What was asked for is kept; see "
                f"{self._path / 'log.txt'}"
            )
        self._calls.times.note(len(self._group), self._first, self._last)
        return dict(self._missing())

    def _start(self, slot: IO[str], lock: IO[str]) -> subprocess.Popen[bytes]:
        """Start the supervisor, which holds both locks until the harness has ended."""
        call = {"words": self._words_of_command(), "grace": self._settings.grace}
        (self._path / "call.json").write_text(json.dumps(call), encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__, os.fspath(self._path), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._calls.command.environment(),
            start_new_session=True,
            pass_fds=(slot.fileno(), lock.fileno()),
        )

    def _words_of_command(self) -> list[str]:
        """Return the words of the command, after the files that they name are written."""
        command = self._calls.command
        items = list(self._group)
        sample = next(iter(self._group.values())).question.sample
        seed = draw_number(self._calls.whose, items, sample, self._attempt) % 2**31
        ids_file, samples_file = self._path / "ids.txt", self._path / "samples.json"
        ids_file.write_text("".join(f"{item}\n" for item in items), encoding="utf-8")
        tasks = {item.partition(":")[0] for item in items}
        if command.harness.id_map:
            numbers = chosen(items, self._calls.numbers(tasks))
            samples_file.write_text(json.dumps(numbers), encoding="utf-8")
        values = {"output": self._path / "output", "ids_file": ids_file, "samples": samples_file, "seed": seed}
        return command.filled(items, {**values, "tasks": ",".join(sorted(tasks))})

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Take results as they come, until the command ends or is not wanted any more."""
        pause = POLL
        while process.poll() is None:
            self._call.cancelled.wait(pause)
            looked = clock.elapsed()
            self._is_late = looked > self._begun + self._limit()
            if self._call.cancelled.is_set() or self._is_late or self._strange:
                return
            if self._results.changed():
                self._take(self._results.so_far())
            pause = max(POLL, LOOKS * (clock.elapsed() - looked))

    def _limit(self) -> float:
        """Return the seconds that the call may last."""
        limits = [self._settings.call_timeout]
        rounds = -(-len(self._group) // self._settings.parallel) + 1  # one more for the start
        limits.append(self._settings.item_timeout * rounds)
        return min(filter(None, limits), default=float("inf"))

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Have the supervisor end the command, if it still runs, and wait for it; else kill its process group."""
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(self._settings.grace + LATE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if not (self._path / "ended.json").exists():  # the supervisor was killed
            try:
                os.killpg(int((self._path / "group").read_text(encoding="utf-8")), signal.SIGKILL)
            except (OSError, ValueError):
                return

    def _take(self, results: Sequence[ItemResult]) -> None:
        """Deliver the results with a score, and note the others and ids that were not asked."""
        scored = []
        for result in results:
            name = self._calls.command.harness.item_of(result.item, self._group)
            if name not in self._group:
                self._strange = result.item
            elif result.score is None:
                if name not in self._words:
                    with self._calls.lock:
                        self._calls.spend(result, self._begun)
                self._words[name] = result.fault
            elif not self._group[name].done:
                scored.append((self._group[name], result))
        if scored:
            self._last = clock.elapsed() - self._begun
            self._first = self._first or self._last
        # the run gets the error in their place, before a verdict could rest on them
        self._call.deliver(self._folder, scored, self._begun, hand_over=not self._strange)

    def _missing(self) -> Iterator[tuple[Question, Completion]]:
        """Yield the questions that were tried and have no score, with what the harness says."""
        is_cut_short = bool(self._words) or any(asked.done for asked in self._group.values())
        silent = 0
        for name, asked in self._group.items():
            if asked.done:
                continue
            words = self._words.get(name, "")
            silent += not words
            if is_cut_short and not words and silent > 1:
                continue
            status = Status.ERROR
            if not words and self._is_late:
                status = Status.TIMEOUT
                words = f"the call was ended after {self._limit():g} s"
            found = self._folder.last_words(self._calls.command.harness.files)
            yield asked.question, Completion("", status, detail=words or found)


def _split_by_occurrence(asked: Sequence[Asked]) -> list[list[Asked]]:
    """Return the questions in groups, each with one sample and different items."""
    groups: dict[tuple[int, int], list[Asked]] = {}
    occurrences: dict[tuple[str, int], int] = {}
    for each in asked:
        key = each.question.item, each.question.sample
        occurrences[key] = occurrences.get(key, 0) + 1  # the same one of several interviews
        groups.setdefault((each.question.sample, occurrences[key]), []).append(each)
    return list(groups.values())


def _raise(error: BaseException) -> None:
    raise error
