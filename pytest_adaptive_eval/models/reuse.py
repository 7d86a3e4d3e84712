"""Answers of other runs in place of asking a subject again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.answer_store import AnswerStore
from pytest_adaptive_eval.models.base import Completion, Subject, Usage, sample_of
from pytest_adaptive_eval.models.replies import ReplyStore
from pytest_adaptive_eval.models.requests import request_key


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
        """Return the answer to an item, or None.

        Raises:
            ConfigError: The store is damaged.
        """
        if not (key := self._key(item)):
            return None
        if (reply := self._replies.recall(key)) is None:
            return None
        completion = replace(reply[0][0], reused=True)
        return completion if item.likelihood is None else _scored(item, completion)

    def keep(self, item: Item, completion: Completion) -> None:
        """Store the answer to an item, unless it failed, its score is all that is known, or it may not be reused."""
        if completion.reused or self._subject.no_reuse or not (key := self._key(item)):
            return
        if completion.score is not None and not completion.likelihood:
            return
        self._replies.keep(key, [replace(completion, score=None)], Usage())

    def _key(self, item: Item) -> str:
        """Return the hash of all that an answer depends on; empty for repeated draws and for pictures without a file.

        Other versions of this package may build prompts or read answers otherwise.
        """
        if sample_of(item):
            return ""
        identity, cap = self._subject.identity, self._subject.cap
        tokens = cap.of(item) if cap is not None and item.likelihood is None else None
        decoding = replace(identity, decoding={**identity.decoding, "max_tokens": tokens}).decoding_hash
        try:
            pictures = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in item.image_paths]
        except OSError:
            return ""
        precision = identity.environment.get("dtype")
        return request_key(__version__, identity.checkpoint, decoding, precision, item.content_hash, pictures)


def _scored(item: Item, completion: Completion) -> Completion | None:
    """Return an answer by log-likelihoods with its score, None if they do not fit the item."""
    facts = completion.likelihood
    try:
        result = item.likelihood_result([*facts["log_likelihoods"], *facts.get("unconditional", ())])
    except (AdaptiveEvalError, LookupError, TypeError, ValueError):
        return None
    return replace(completion, text=result.text, status=Status.OK, score=result.score, likelihood=result.facts)
