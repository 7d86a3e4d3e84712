"""Completions of earlier requests in place of asking a model again."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.items.item import Item, Status, canonical_json
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage, sample_of
from pytest_adaptive_eval.models.caps import Cap


def identity_key(model: object, identity: SubjectIdentity) -> list[str]:
    """Return whose replies these are: name, kind, checkpoint hash and decoding.

    The hash may be a value that a user wrote, such as ``v1``, so it does not identify a model by itself.
    """
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    return [identity.name, kind, identity.checkpoint, identity.decoding_hash]


def request_key(*parts: Any) -> str:
    """Return the hash of a request: the model's identity, the prompt, and the position among equal ones, as JSON."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def draw_number(*position: Any) -> int:
    """Return the number of a draw from the position of its request, in [0, 2**32): equal requests are drawn apart."""
    return int(request_key(*position)[:8], 16)


#: Marks a SQLite file as such a store.
APPLICATION_ID = 0x41455641
#: Version of the table; a store of another one is refused.
SCHEMA_VERSION = 1
#: Seconds to wait for another process that writes.
BUSY_SECONDS = 30.0

_OTHER = "name another file with --adaptive-eval-reuse=FILE"
#: Types of file systems that several machines share, where SQLite's write-ahead log is not safe.
_NETWORK = (
    *("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p", "fuse", "afs", "pvfs", "orangefs"),
)


class AnswerStore:
    """JSON data by key in a SQLite file, see `KeyedData`.

    The first reply under a key stays. A reply that cannot be written is left out, and `fault` says why.

    Args:
        path: Made when missing, with its folder.

    Attributes:
        fault: Why replies were not written; empty if all were.

    Raises:
        ConfigError: The file cannot be opened, is damaged or is not a store of this version.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.fault = path, ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # replies arrive in the thread of a server's connections, while that of the run waits
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{path}: the store of answers cannot be opened: {error}; {_OTHER}") from None
        with contextlib.ExitStack() as closing:
            closing.callback(self.close)
            with self._readable():
                self._prepare()
            closing.pop_all()  # it stays open

    def _prepare(self) -> None:
        """Check that the file is a store of this version, or make it one if it is empty."""
        if not self._is_store():
            self._connection.execute(f"PRAGMA journal_mode = {'DELETE' if _is_shared(self.path) else 'WAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            if not self._is_store():  # another process may have been first
                self._connection.execute(
                    "CREATE TABLE replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID"
                )
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._connection.execute("COMMIT")
        # a reply that a failing machine loses is asked for once more
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("SELECT key, reply FROM replies LIMIT 1").fetchall()

    def _is_store(self) -> bool:
        """Return whether the file is a store of this version, False if it is empty."""
        # first, since another process may make the store meanwhile: its table and its numbers appear together
        tables = self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        application, version = self._number("application_id"), self._number("user_version")
        if application == APPLICATION_ID and version == SCHEMA_VERSION:
            return True
        if application or tables:
            raise ConfigError(
                f"{self.path}: a database of something else, expected a store of answers of schema {SCHEMA_VERSION}: "
                f"{_OTHER}"
            )
        return False

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise a ConfigError in place of an error of SQLite."""
        try:
            yield
        except sqlite3.Error as error:
            raise ConfigError(
                f"{self.path}: no store of answers, or a damaged one ({error}): {_OTHER}, or delete it, which loses "
                "no result"
            ) from None

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the data of a key, None if missing or not a JSON object; raise ConfigError for a damaged file."""
        with self._readable():
            row = self._connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        try:
            data = None if row is None else json.loads(row[0])
        except (ValueError, TypeError):
            return None
        return data if isinstance(data, dict) else None

    def append(self, key: str, data: Mapping[str, Any]) -> None:
        """Store the data of a key."""
        if self.fault:
            return
        try:
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, json.dumps(data)))
        except sqlite3.Error as error:  # the run has the answer, and its journal keeps it
            self.fault = f"{self.path}: further answers are not stored there ({error})"

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _is_shared(path: Path) -> bool:
    """Return whether a path lies on a file system that other machines may share, if Linux says so."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return False
    folder = path.parent.resolve()
    points = [(Path(fields[1]), fields[2]) for fields in mounts if len(fields) > 2]
    types = [(len(point.parts), kind) for point, kind in points if folder.is_relative_to(point)]
    return bool(types) and max(types)[1].startswith(_NETWORK)


class KeyedData(Protocol):
    """JSON data by key, such as a `records.journal.Journal`."""

    def get(self, key: str, /) -> Mapping[str, Any] | None:
        """Return the data of a key, or None."""

    def append(self, key: str, data: Mapping[str, Any], /) -> None:
        """Store the data of a key."""


class CompletionStore(Protocol):
    """Completions by the hash of all that they depend on, see `completion_key` and `request_key`.

    Attributes:
        shared: Completions of other runs; None where every request is asked for.
    """

    shared: Completions | None

    def find(self, key: str) -> Completion | None:
        """Return the completion of a request, or None."""

    def keep(self, key: str, completion: Completion, item: str = "") -> None:
        """Store a completion, unless a fault of the infrastructure ended it; `item` is for readers of the file."""


def to_entry(completion: Completion) -> dict[str, Any]:
    """Return a completion as JSON data, without its score where that follows from likelihoods."""
    entry: dict[str, Any] = {"status": completion.status.value, "text": completion.text}
    for name in ("detail", "likelihood", "reused"):
        if value := getattr(completion, name):
            entry[name] = dict(value) if isinstance(value, Mapping) else value
    if completion.score is not None and not completion.likelihood:
        entry["score"] = completion.score
    return entry


def from_entry(entry: Mapping[str, Any]) -> Completion:
    """Return the completion of `to_entry`; raise TypeError, ValueError or KeyError for other data."""
    text, detail, likelihood = entry["text"], entry.get("detail", ""), entry.get("likelihood", {})
    score, reused = entry.get("score"), entry.get("reused", False)
    typed = isinstance(text, str) and isinstance(detail, str) and isinstance(likelihood, Mapping)
    if not (typed and isinstance(score, float | int | None) and isinstance(reused, bool)):
        raise TypeError(f"{dict(entry)!r:.200} is not a completion")
    return Completion(text, Status(entry["status"]), score, detail, likelihood, reused=reused)


class Completions:
    """Completions with their cost; several threads may use them.  See `CompletionStore`.

    Args:
        data: Where they are; in memory if omitted. Data of another form count as missing.
        shared: Store of other runs' answers.
    """

    def __init__(self, data: KeyedData | None = None, shared: KeyedData | None = None) -> None:
        self._data = InMemory() if data is None else data
        self.shared = None if shared is None else Completions(shared)
        self._lock = threading.Lock()

    def find(self, key: str) -> Completion | None:
        """Return the completion of a request, or None."""
        with self._lock:
            entry = self._data.get(key)
        try:
            return None if entry is None else replace(from_entry(entry), cost=Usage(**entry["cost"]))
        except (ValueError, TypeError, KeyError):
            return None

    def keep(self, key: str, completion: Completion, item: str = "") -> None:  # noqa: ARG002 - keys say it all
        """Store a completion, unless a fault of the infrastructure ended it."""
        if not completion.status.infrastructure:
            with self._lock:
                self._data.append(key, {**to_entry(completion), "cost": completion.cost.to_json()})


class InMemory(dict[str, Mapping[str, Any]]):
    """Data that end with the process, see `KeyedData`."""

    def append(self, key: str, data: Mapping[str, Any], /) -> None:
        """Store the data of a key."""
        self.setdefault(key, data)


class RecordedModel(Model):
    """A model whose completions are kept, and taken from a store in place of asking.

    Answers of other runs are reused unless `Model.no_reuse` forbids it.

    Args:
        store: Where completions are; within this object if omitted.
        name: Name of the model in place of its own.
    """

    def __init__(self, model: Model, store: CompletionStore | None = None, name: str = "") -> None:
        self._ready = {}
        self._model, self._store, self._name = model, Completions() if store is None else store, name

    @functools.cached_property
    def identity(self) -> SubjectIdentity:  # type: ignore[override]  # a model of a pool is loaded for it
        """Identity of the model, under the name that it has here."""
        identity = self._model.identity
        return replace(identity, name=self._name) if self._name else identity

    @property
    def cap(self) -> Cap | None:  # type: ignore[override]  # likewise
        """Cap of the model."""
        return self._model.cap

    @property
    def waits_apart(self) -> bool:  # type: ignore[override]
        """Whether several threads may ask at once; answers to items are waited for."""
        return self._model.waits_apart

    @property
    def usage(self) -> Usage:
        """Cost of what was asked for."""
        return self._model.usage

    @property
    def rates(self) -> bool:
        """Whether `prefer` works."""
        return self._model.rates

    def prepare_chats(self) -> None:
        """Raise ConfigError or CheckpointError if the model holds no chats."""
        self._model.prepare_chats()

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Completion:
        """Return the reply to a chat, see the base class."""
        key = self._key(_chat(messages), max_tokens, schema, draw)
        known = self._find(key)
        if known is None:
            known = self._model.ask(messages, max_tokens=max_tokens, schema=schema, draw=draw)
            self._keep_both(key, known)
            return known
        return replace(known, reused=True)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return log-likelihoods of a label, see the base class."""
        key = self._key(_chat(messages), list(candidates), label)
        known = self._find(key)
        if known is not None:
            with contextlib.suppress(ValueError, TypeError):
                scores = tuple(float(score) for score in json.loads(known.text))
                if len(scores) == len(candidates):
                    return Preference(scores, reused=True)
        preference = self._model.prefer(messages, candidates, label)
        if preference.status is Status.OK:
            self._keep_both(key, Completion(json.dumps(preference.scores), cost=preference.usage))
        return preference

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order; their costs make up that of the call."""
        keys = [completion_key(self._model, item, sample_of(item)) for item in items]
        first = {key: index for index, key in reversed(list(enumerate(keys)))}
        found = [self._find(key) for key in keys]
        done = [
            None if one is None else scored(item, replace(one, reused=True))
            for item, one in zip(items, found, strict=True)
        ]
        missing = sorted(index for index in first.values() if done[index] is None)
        if missing:
            answers = self._ask([items[index] for index in missing])
            for index, answer in zip(missing, answers, strict=True):
                self._keep_both(keys[index], answer, items[index].id)
                done[index] = answer
        whole: list[Completion] = []
        for index, key in enumerate(keys):  # a request that is repeated in one call is made once
            completion = done[first[key]]
            assert completion is not None
            whole.append(completion if first[key] == index else replace(completion, cost=Usage()))
        return whole

    def _ask(self, items: Sequence[Item]) -> list[Completion]:
        """Return the model's answers; the first one's cost has what the call cost beyond that of each."""
        before = self._model.usage
        answers = self._model.answer(items)
        together = self._model.usage - before - sum((answer.cost for answer in answers), Usage())
        answers[0] = replace(answers[0], cost=answers[0].cost + together)
        return answers

    def close(self) -> None:
        """Close the model."""
        self._model.close()

    @functools.cached_property
    def _shared(self) -> Completions | None:
        return None if self._store.shared is None or self._model.no_reuse else self._store.shared

    def _find(self, key: str) -> Completion | None:
        known = self._store.find(key)
        if known is None and self._shared is not None:
            known = self._shared.find(_shared_key(key))
            return None if known is None else replace(known, cost=Usage())
        return known

    def _keep_both(self, key: str, completion: Completion, item: str = "") -> None:
        self._store.keep(key, completion, item)
        if self._shared is not None:
            self._shared.keep(_shared_key(key), completion)

    def _key(self, *request: Any) -> str:
        return request_key(*identity_key(self._model, self.identity), *request)


def _shared_key(key: str) -> str:
    """Return the key of a request among runs: other versions may build prompts or read answers otherwise."""
    return request_key(key, __version__)


def _chat(messages: Sequence[Message]) -> list[list[Any]]:
    """Return the messages of a chat as JSON data, pictures by their content."""
    chat = []
    for message in messages:
        pictures = [_picture_hash(str(Path(message.root, name))) for name in message.images]
        chat.append([message.role, message.text, pictures])
    return chat


class KnownAnswers:
    """Answers that a model gave in this run and in others, by everything that they depend on; see `AnswerSource`.

    Answers are kept and not scores: whoever takes one grades it, and the score of log-likelihoods is computed again.

    Args:
        model: Its `Model.no_reuse` is empty.
    """

    def __init__(self, store: AnswerStore, model: Model) -> None:
        self.store, self._model = store, model
        self._completions = Completions(store)

    def find(self, item: Item) -> Completion | None:
        """Return the answer to an item, or None; raise ConfigError if the store is damaged."""
        key = self._key(item)
        known = self._completions.find(key) if key else None
        return None if known is None else scored(item, replace(known, reused=True, cost=Usage()))

    def keep(self, item: Item, completion: Completion) -> None:
        """Store the answer to an item, unless it failed, its score is all that is known, or it may not be reused."""
        if completion.reused or self._model.no_reuse or not (key := self._key(item)):
            return
        if completion.score is None or completion.likelihood:
            self._completions.keep(key, replace(completion, cost=Usage()))

    def _key(self, item: Item) -> str:
        """Return the key of an answer; empty for repeated draws and for pictures without a file."""
        if sample_of(item) or not all(map(os.path.isfile, item.image_paths)):
            return ""
        return _shared_key(completion_key(self._model, item, 0))


#: Fields of an item that are not asked.  The grader's name says how likelihoods are read, which has a field of its own.
_UNASKED = ("id", "answer", "grader", "category", "formats", "images", "likelihood")


def completion_key(model: Model, item: Item, *draw: Any) -> str:
    """Return the hash of all that an answer depends on: the model, its decoding, the request, and the draw.

    It covers what is asked, not how answers are graded.
    """
    identity, cap = model.identity, model.cap
    tokens = cap.of(item) if cap is not None and item.likelihood is None else None
    capped = replace(identity, decoding={**identity.decoding, "max_tokens": tokens})
    data = {name: value for name, value in item.to_json().items() if name not in _UNASKED}
    data["meta"] = {name: value for name, value in item.meta.items() if name != "sample"}
    data["images"] = [_picture_hash(path) for path in item.image_paths]
    data["likelihood"] = None if item.likelihood is None else item.likelihood.to_json()
    precision = identity.environment.get("dtype")
    return request_key(*identity_key(model, capped), precision, canonical_json(data), draw)


def _picture_hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:  # the subject says what is wrong
        return ""


def scored(item: Item, completion: Completion) -> Completion | None:
    """Return an answer with its score if it is one by log-likelihoods; None if they do not fit the item."""
    if item.likelihood is None or not completion.likelihood:
        return completion
    facts = completion.likelihood
    try:
        result = item.likelihood_result([*facts["log_likelihoods"], *facts.get("unconditional", ())])
    except (AdaptiveEvalError, LookupError, TypeError, ValueError):
        return None
    return replace(completion, text=result.text, status=Status.OK, score=result.score, likelihood=result.facts)
