"""Caps on the tokens of answers: which of several holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import Item, items_by_likelihood, items_naming

#: Tokens of an answer where nobody sets a cap: of most models, and of those that reason before they answer.
DEFAULT_TOKENS, REASONING_TOKENS = 1024, 16384
#: Largest share of truncated answers without a warning.
TRUNCATED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Cap:
    """Cap on the tokens of an answer, reasoning included.

    Args:
        chosen: Whether a user set it. Then it holds for every item; else an item's ``meta["max_tokens"]`` comes first.
    """

    tokens: int
    chosen: bool

    def of(self, item: Item) -> int:
        """Return the cap on the answer to an item; raise BankError if its own is not a whole number of at least 1."""
        if "max_tokens" not in item.meta:
            return self.tokens
        tokens = item.meta["max_tokens"]
        try:
            check_count("meta.max_tokens", tokens)
        except ConfigError as error:
            raise BankError(f"item {item.id!r}: {error}") from None
        if self.chosen:
            return self.tokens
        return int(tokens)


def cap_of(max_tokens: int | None, *, reasons: bool, context: int = 0) -> Cap:
    """Return the cap that a user sets, or the default of a model.

    Args:
        max_tokens: None for the default, at most half of the context.
        reasons: Whether the model reasons before it answers.
        context: Limit of prompt and answer tokens together; 0 if unknown.
    """
    if max_tokens is not None:
        return Cap(max_tokens, chosen=True)
    tokens = REASONING_TOKENS if reasons else DEFAULT_TOKENS
    return Cap(min(tokens, max(context // 2, 1)) if context else tokens, chosen=False)


def recorded_caps(cap: Cap, items: Sequence[Item]) -> set[int]:
    """Return the caps of answers to the items; those scored by likelihood have none."""
    rated = items_by_likelihood(items)
    named = (item for item in items_naming(items, "max_tokens") if "max_tokens" in item.meta)
    capped = [item for item in named if item.likelihood is None]
    caps = {cap.of(item) for item in capped}
    if len(rated) + len(capped) < len(items):
        return caps | {cap.tokens}
    return caps


def truncation_sentence(count: int, asked: int, cap: object, *, answers: str = "answers") -> str:
    """Return a sentence on truncated answers.

    Args:
        count, asked: Truncated answers, and all.
        cap: The cap that held, or a list of several; None if it is unknown.
        answers: The answers in words, such as ``replies of NAME``.
    """
    if isinstance(cap, list | tuple):
        caps = " or ".join(map(str, cap))
    else:
        caps = str(cap or "")
    return f"{count} of {asked} {answers} were truncated{f' at {caps} tokens' if caps else ''}: raise max_tokens"


def truncation_warning(count: int, asked: int, cap: object) -> str:
    """Return `truncation_sentence` if the truncated answers are more than `TRUNCATED_SHARE` of all; else empty."""
    if count > TRUNCATED_SHARE * asked:
        return truncation_sentence(count, asked, cap)
    return ""
