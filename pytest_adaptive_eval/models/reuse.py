"""Answers of other runs in place of asking a subject again."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.items.item import Item, Status, canonical_json
from pytest_adaptive_eval.models.base import Completion, Subject, SubjectIdentity, Usage, sample_of


def identity_key(identity: SubjectIdentity) -> list[str]:
    """Return the parts of a model's identity on which its replies depend."""
    return [identity.name, identity.checkpoint, identity.decoding_hash]


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


class AnswerStore(MutableMapping[str, str]):
    """Replies by key in a SQLite file; they are looked up and stored, never listed or deleted.

    The first reply under a key stays. A reply that cannot be written is left out, and `fault` says why.

    Args:
        path: Made when missing, with its folder.

    Attributes:
        fault: Why replies were not written; empty if all were.

    Raises:
        ConfigError: The file cannot be opened, is damaged or is no store of this version.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.fault = path, ""
        if path.is_dir():
            raise ConfigError(f"{path} is a folder, expected a file for the answers: {_OTHER}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # replies arrive in the thread of a server's connections, while that of the run waits
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"{path}: the store of answers cannot be opened: {error}; {_OTHER}") from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise self._unreadable(error) from None
        except BaseException:
            self.close()
            raise

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
        if application == APPLICATION_ID:
            raise ConfigError(
                f"{self.path}: the store of answers has schema {version}, this version reads {SCHEMA_VERSION}: {_OTHER}"
            )
        if application or tables:
            raise ConfigError(f"{self.path}: a database of something else, expected a store of answers: {_OTHER}")
        return False

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _unreadable(self, error: sqlite3.Error) -> ConfigError:
        return ConfigError(
            f"{self.path}: no store of answers, or a damaged one ({error}): {_OTHER}, or delete it, which loses no "
            "result"
        )

    def __getitem__(self, key: str) -> str:
        try:
            row = self._connection.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unreadable(error) from None
        if row is None:
            raise KeyError(key)
        return str(row[0])

    def __setitem__(self, key: str, value: str) -> None:
        if self.fault:
            return
        try:
            self._connection.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:  # the run has the answer, and its journal keeps it
            self.fault = f"{self.path}: further answers are not stored there ({error})"

    def __delitem__(self, key: str) -> None:
        raise TypeError(f"{key}: replies are never deleted")

    def __iter__(self) -> Iterator[str]:
        raise TypeError("replies are looked up, not listed")

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _is_shared(path: Path) -> bool:
    """Return whether a path lies on a file system that other machines may share, as far as Linux tells."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return False
    folder = path.parent.resolve()
    points = [(Path(fields[1]), fields[2]) for fields in mounts if len(fields) > 2]
    types = [(len(point.parts), kind) for point, kind in points if folder.is_relative_to(point)]
    return bool(types) and max(types)[1].startswith(_NETWORK)


class ReplyStore:
    """Replies of this and earlier runs.

    Args:
        texts: Stored replies, as JSON, by `pytest_adaptive_eval.models.reuse.request_key`.
    """

    def __init__(self, texts: MutableMapping[str, str]) -> None:
        self._texts = texts
        self.recalled = 0

    def recall(self, key: str, count: int = 1) -> tuple[list[Completion], Usage] | None:
        """Return the `count` replies to a request, and their cost; None if they are missing or unreadable."""
        text = self._texts.get(key)
        if text is None:
            return None
        try:
            data = json.loads(text)
            # earlier versions stored the one reply of a panel without a list
            rows = data["result"] if "result" in data else [[data["text"], data["status"], None, ""]]
            replies = [_completion(*row) for row in rows]
            usage = Usage(**data["usage"])
        except (ValueError, TypeError, KeyError):
            return None
        if len(replies) != count:
            return None
        self.recalled += 1
        return replies, usage

    def keep(self, key: str, replies: list[Completion], usage: Usage) -> None:
        """Store the replies to a request, unless one failed by a fault of the run."""
        if not any(reply.status.infrastructure for reply in replies):
            rows = [
                [reply.text, reply.status.value, reply.score, reply.detail]
                + ([dict(reply.likelihood)] if reply.likelihood else [])
                for reply in replies
            ]
            self._texts[key] = json.dumps({"result": rows, "usage": usage.to_json()})


def _completion(
    text: str, status: str, score: float | None, detail: str, likelihood: Mapping[str, Any] | None = None
) -> Completion:
    """Return a stored reply; raise TypeError if a value has another type."""
    typed = isinstance(text, str) and isinstance(detail, str) and isinstance(likelihood, Mapping | None)
    if not typed or not isinstance(score, float | int | None):
        raise TypeError(f"a reply is {(text, status, score, detail, likelihood)!r:.80}")
    return Completion(text, Status(status), score, detail, likelihood or {})


class KnownAnswers:
    """Answers that a subject gave in this run and in others, by everything that they depend on.

    Answers are kept and not scores: whoever takes one grades it, and the score of log-likelihoods is computed anew.

    Args:
        subject: Its `Subject.no_reuse` is empty.
    """

    def __init__(self, store: AnswerStore, subject: Subject) -> None:
        self.store, self._subject = store, subject
        self._replies = ReplyStore(store)

    def find(self, item: Item) -> Completion | None:
        """Return the answer to an item, or None; raise ConfigError if the store is damaged."""
        if not (key := self._key(item)):
            return None
        if (reply := self._replies.recall(key)) is None:
            return None
        return scored(item, replace(reply[0][0], reused=True))

    def keep(self, item: Item, completion: Completion) -> None:
        """Store the answer to an item, unless it failed, its score is all that is known, or it may not be reused."""
        if completion.reused or self._subject.no_reuse or not (key := self._key(item)):
            return
        if completion.score is not None and not completion.likelihood:
            return
        self._replies.keep(key, [replace(completion, score=None)], Usage())

    def _key(self, item: Item) -> str:
        """Return the key of an answer; empty for repeated draws and for pictures without a file."""
        if sample_of(item) or not all(map(os.path.isfile, item.image_paths)):
            return ""
        # other versions of this package may build prompts or read answers otherwise
        return completion_key(self._subject, item, __version__)


#: Fields of an item that are not asked.  The grader's name says how likelihoods are read, which has a field of its own.
_UNASKED = ("id", "answer", "grader", "category", "formats", "images", "likelihood")


def completion_key(subject: Subject, item: Item, *draw: Any) -> str:
    """Return the hash of all that an answer depends on: the model, its decoding, the request, and the draw.

    It covers what is asked, not how answers are graded.
    """
    identity, cap = subject.identity, subject.cap
    tokens = cap.of(item) if cap is not None and item.likelihood is None else None
    decoding = replace(identity, decoding={**identity.decoding, "max_tokens": tokens}).decoding_hash
    data = {name: value for name, value in item.to_json().items() if name not in _UNASKED}
    data["meta"] = {name: value for name, value in item.meta.items() if name != "sample"}
    data["images"] = [_picture_hash(path) for path in item.image_paths]
    data["likelihood"] = None if item.likelihood is None else item.likelihood.to_json()
    precision = identity.environment.get("dtype")
    return request_key(identity.checkpoint, decoding, precision, canonical_json(data), draw)


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
