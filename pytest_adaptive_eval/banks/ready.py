"""Ready banks: parameters of public benchmarks, fitted to published results, without texts and responses.

A ready bank is one JSON file, the output of ``benchmarks/ready_banks.py``. Its ids are the published file's or the
harness's, so a harness can be asked by them, and texts can be joined by them. Wrong or outdated parameters cost
questions, never correctness: the error rate of a verdict follows from the draws alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pytest_adaptive_eval.banks.hashes import content_hash
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.inputs import read_regular, reading
from pytest_adaptive_eval.items.bank import Computed, ItemBank, scale_id
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.types import Array

PREFIX = "ready:"  #: Begins the name of a ready bank where a bank's file is expected.
GROUP = "adaptive_eval.banks"  #: Entry points of packages with further banks: their objects are paths of JSON files.
FOLDER = Path(__file__).with_name("ready_banks")


class ReadySubject(msgspec.Struct, frozen=True, array_like=True):
    """A public model, agent or submission that the parameters were fitted to.

    Args:
        accuracy: Over the whole benchmark.
        ability: In logits on the bank's scale.
    """

    name: str
    family: str
    accuracy: float
    ability: float


class ReadyBank(msgspec.Struct, frozen=True):
    """Parameters of a public benchmark, and where they come from.

    Args:
        source: Repository, commit and path of the results.
        newest: Date of the newest subject, or the year where the source has no dates.
        ids: What the ids are, in words.
        questions: Median number of questions to a verdict ten points away, of subjects left out of the fit.
        uniform: The same by uniform draws.
        items: Discrimination and intercept in logits by id, see `items.bank.ItemBank`.
        model: See `items.bank.ItemBank`.
    """

    name: str
    title: str
    source: str
    licence: str
    newest: str
    ids: str
    questions: int
    uniform: int
    model: str
    subjects: list[ReadySubject]
    items: dict[str, tuple[float, float]]

    @property
    def age(self) -> str:
        """Sentence on the subjects and the newest of them."""
        return f"parameters fitted to {len(self.subjects)} public subjects, the newest of {self.newest}"

    def bank(self) -> ItemBank:
        """Return the bank, whose items have ids alone."""
        ids = list(self.items)
        parameters = np.array(list(self.items.values()), dtype=np.float64)
        slopes, intercept = parameters[:, :1], parameters[:, 1]
        meta = MappingProxyType({"textless": True})
        report = {"textless": True, "ready": self.age, "source": {"source": self.source, "licence": self.licence}}
        items = Computed(len(ids), lambda n: Item(ids[n], grader="exact", meta=meta))
        return ItemBank(
            name=self.name,
            ids=ids,
            items=items,
            discrimination=slopes,
            intercept=intercept,
            model=self.model,
            scale=scale_id(slopes, intercept, np.zeros(len(ids))),
            content_hash=content_hash(items),
            subjects=tuple(subject.name for subject in self.subjects),
            accuracies=tuple(subject.accuracy for subject in self.subjects),
            report=MappingProxyType(report),
        )


class Joined(NamedTuple):
    """Parameters of the items of a file, by their ids.

    Args:
        discrimination, intercept: Shape (n,). Items that the ready bank lacks have its medians.
        known: Number of items that it has.
        settings: Keyword arguments of `banks.writer.write_bank`.
    """

    discrimination: Array
    intercept: Array
    known: int
    settings: Mapping[str, Any]


def join_ready(ready: ReadyBank, ids: Sequence[str]) -> Joined:
    """Return the parameters of items with these ids.

    Accuracies of the public subjects hold for the whole benchmark alone, so a part of it has none.

    Raises:
        BankError: The ready bank has none of the ids.
    """
    joined_rows = [ready.items[name] for name in ids if name in ready.items]
    if not joined_rows:
        raise BankError(
            f"none of the items, such as {ids[0]!r}, is in the ready bank {ready.name!r}, whose ids, such as "
            f"{next(iter(ready.items))!r}, are of the form {ready.ids}: give --set id=FIELD"
        )
    medians = np.median(np.array(list(ready.items.values())), axis=0)
    parameters = np.array([ready.items.get(name, medians) for name in ids])
    settings: dict[str, Any] = {"model": ready.model}
    if len(joined_rows) == len(ids) == len(ready.items):
        settings["subjects"] = [subject.name for subject in ready.subjects]
        settings["accuracies"] = [subject.accuracy for subject in ready.subjects]
    return Joined(parameters[:, 0], parameters[:, 1], len(joined_rows), settings)


def ready_name(path: str | Path) -> str:
    """Return the name of the ready bank that a path stands for; empty for a file's path."""
    text = str(path)
    if text.startswith(PREFIX):
        return text.removeprefix(PREFIX)
    return ""


def missing_bank(paths: Sequence[str]) -> str:
    """Return the sentence that no bank lies at some paths, with what to write."""
    names = {Path(path).name for path in paths}
    write = "give a folder NAME.bank or a JSONL file of items"
    for name in ready_files():
        if name in names:
            write = f"write {PREFIX}{name} for the bank of this package"
    return f"no bank at {' or '.join(paths)}: {write}"


def ready_files() -> Mapping[str, Path]:
    """Return the files of all ready banks by name: of this package, and of installed ones."""
    files = {}
    for file in sorted(FOLDER.glob("*.json")):
        files[file.stem] = file
    for entry in entry_points(group=GROUP):
        if entry.name in files:
            raise BankError(f"the package of {entry.value} brings a ready bank {entry.name!r}, which exists: rename it")
        files[entry.name] = Path(entry.load())
    return files


def read_ready(name: str) -> ReadyBank:
    """Read a ready bank.

    Raises:
        BankError: No bank has this name, or its file is malformed.
    """
    files = ready_files()
    if name not in files:
        raise BankError(f"no ready bank {name!r}: there are {', '.join(files)}; `adaptive-eval banks` describes them")
    with reading(files[name], BankError):
        try:
            ready = msgspec.convert(json.loads(read_regular(files[name])), ReadyBank)
        except (ValueError, RecursionError) as error:
            raise BankError(f"{files[name]}: not a ready bank: {error}; install its package again") from None
    if ready.name != name:
        raise BankError(f"{files[name]}: the bank calls itself {ready.name!r}, expected {name!r}")
    return ready


def described(ready: ReadyBank) -> dict[str, Any]:
    """Return the facts that a list of banks shows, by the head of their column."""
    return {
        "name": ready.name,
        "items": len(ready.items),
        "subjects": len(ready.subjects),
        "newest": ready.newest,
        "licence": ready.licence,
        "questions": f"{ready.questions} ({ready.uniform} uniform)",
        "source": ready.source,
    }
