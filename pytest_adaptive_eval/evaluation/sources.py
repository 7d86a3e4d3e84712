"""Lazy loading of subjects, banks, graders and the sandbox that settings and records name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.ready import ready_name
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Grader
from pytest_adaptive_eval.items.presentation import Presentation, presented
from pytest_adaptive_eval.registry import service

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Model
    from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
    from pytest_adaptive_eval.tasks import TaskFamily
    from pytest_adaptive_eval.tasks.family import Runner, RunnerResult


class CodeRunner:
    """The sandbox, opened and tested before the first code runs."""

    def __init__(self, *, unsafe: bool = False) -> None:
        self._unsafe = unsafe
        self._sandbox: Runner | None = None

    def call(self, code: str, function: str, arguments: Sequence[Sequence[Any]]) -> RunnerResult:
        """Define a function from untrusted code and call it with each list of arguments.

        Raises:
            SandboxUnavailable: This machine has no sandbox.
        """
        if self._sandbox is None:
            sandbox = service("sandbox", "sandbox")
            if self._unsafe:
                self._sandbox = sandbox.unsafe()
            else:
                self._sandbox = sandbox.open()
        return self._sandbox.call(code, function, arguments)


class TaskGraders(Mapping[str, Grader]):
    """Graders of generated items by their task; the families are loaded when the first is looked up."""

    def __init__(self, load: Callable[[], Mapping[str, TaskFamily]]) -> None:
        self._load = load

    def __getitem__(self, task: str) -> Grader:
        return self._load()[task].grade

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())


def load_model(
    spec: str, folders: Sequence[Path], cache: Path, options: Mapping[str, Any] = MappingProxyType({})
) -> Model:
    """Return the subject that a text names, see `models.load_model`; relative paths are looked up in `folders`.

    Raises:
        ConfigError, CheckpointError: No such folder or server, one that cannot be loaded safely, or an option that it
            does not have.
    """
    from pytest_adaptive_eval.models import resolve

    kind, located = resolve(spec, folders)
    if kind.hashes_files and "cache" in options:
        raise ConfigError(f"model {spec!r} has no option cache here: hashes of its files are stored in {cache}")
    return kind.load(located, options, cache)


def check_model(
    spec: str,
    folders: Sequence[Path],
    cache: Path,
    options: Mapping[str, Any] = MappingProxyType({}),
    *,
    chats: bool = False,
) -> Model | None:
    """Look at the model that a text names, before anything is asked; parameters as of `load_model`.

    With `chats`, the model is to hold chats.

    Returns:
        The loaded model; None for a checkpoint folder, whose files alone are examined: loading its weights in
        each process that collects would fill a GPU.

    Raises:
        ConfigError, CheckpointError: As `load_model`.
    """
    from pytest_adaptive_eval.models import resolve

    kind, located = resolve(spec, folders, chats=chats)
    return kind.examine(located, options, cache, chats=chats)


def _families() -> Mapping[str, TaskFamily]:
    from pytest_adaptive_eval.tasks import families

    return families(runner=CodeRunner())


def recorded_banks(
    record: RunRecord,
    folders: Sequence[Path],
    paths: Mapping[str, Path] | None = None,
    graders: Sequence[str] = (),
    unread: Callable[[Exception], object] = lambda _: None,
) -> dict[str, ItemBank]:
    """Return the available banks of a record's interviews.

    Args:
        folders: What the paths in the record may be relative to, in order.
        paths: Where the bank of an evaluation is now, by the evaluation's name.
        graders: Modules whose functions may grade.
        unread: Called with the error of a bank that the record names, and that is there and cannot be read.

    Returns:
        By the evaluation's name; one whose bank is gone, or cannot be read, is left out.

    Raises:
        BankError: A bank that `paths` names cannot be read.
    """
    from pytest_adaptive_eval.tasks.bank import asked_without, task_bank
    from pytest_adaptive_eval.tasks.family import SMALL_PIXELS

    banks: dict[str, ItemBank] = {}
    tasks = TaskGraders(functools.cache(_families))
    for interview in record.interviews:
        task = interview.bank.task
        if task is not None:
            with suppress(ConfigError, LookupError, TypeError):  # a task of a plugin that is not here
                family = _families()[interview.bank.name]
                sized = {} if family.sized is None else {"pixels": SMALL_PIXELS}
                bank = task_bank(family, **{**sized, "terse": bool(family.form), **task})
                formats = interview.bank.formats
                if formats:
                    banks[interview.name] = asked_without(bank, family, formats)
                else:
                    banks[interview.name] = bank
            continue
        if (bank_path := (paths or {}).get(interview.name)) is not None:
            banks[interview.name] = _part(read_bank(bank_path, graders=graders, tasks=tasks), interview)
            continue
        written = interview.bank.path
        existing = None
        if ready_name(written):
            existing = Path(written)
        elif written:
            existing = find_input(written, folders)
        if existing is not None:
            try:
                banks[interview.name] = _part(read_bank(existing, graders=graders, tasks=tasks), interview)
            except (BankError, OSError) as error:
                unread(error)
    return banks


def _part(bank: ItemBank, interview: EvaluationRecord) -> ItemBank:
    """Return the part of a bank that an interview used."""
    if interview.bank.category:
        bank = bank.only(interview.bank.category)
    if interview.bank.formats:
        from pytest_adaptive_eval.items.modalities import asked_in_formats

        bank = asked_in_formats(bank, interview.bank.formats)
    if interview.bank.presentation is None:
        return presented(bank, None)
    try:
        return presented(bank, Presentation.from_json(interview.bank.presentation.to_json()))
    except (KeyError, TypeError, ValueError) as error:
        raise BankError(
            f"{interview.name}: the recorded presentation is damaged ({error!r}); restore the record"
        ) from None
