"""Compare what statements say with what a question asks, by their words that mean something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_adaptive_eval.items.reading.constructions import word_pattern

#: Letters of a word that are compared, the rest being its inflection: of words of one text, and of another.
_STEM, _SHARED_STEM = 6, 4
_WORD = word_pattern(r"[\u3400-\u9fff]|[\u30a0-\u30ff]+|[0-9A-Za-zÀ-ӿ]+")
_EMPTY = word_pattern(
    r"⟨articles carries states measures links mentions shown⟩"
    r"|\b(?:[cdjlmnst]|qu)'|\b(?:do|does|did|can|will|any|some|one|he|she|they|you|i)\b|[吗嗎呢了的]"
)
_NEGATION = word_pattern("⟨denies not⟩")
_UNCERTAIN = word_pattern("⟨hedges⟩")


def content_words(text: str) -> list[str]:
    """Return the words of a text that mean something, in lower case and the singular, in order.

    Negations, articles and verbs such as "is" are left out. Scripts without spaces have characters in place of words.
    """
    text = _NEGATION.sub(" ", text.casefold())
    return [word.rstrip("s")[:_STEM] for word in _WORD.findall(_EMPTY.sub(" ", text))]


def is_negated(text: str) -> bool:
    """Return whether a statement denies something."""
    return _NEGATION.search(text.casefold()) is not None


def is_uncertain(text: str) -> bool:
    """Return whether a statement says what may be, or what others say."""
    return _UNCERTAIN.search(text.casefold()) is not None


def restates(text: str, question: str) -> bool:
    """Return whether a statement affirms in words of a question alone."""
    if is_negated(text) or is_uncertain(text):
        return False
    words = content_words(text)
    return shared_words(words, content_words(question)) == len(words)


def shared_words(words: Sequence[str], others: Iterable[str]) -> int:
    """Return how many words begin as one of others does: "granicy" as "graniczy"."""
    stems = {word[:_SHARED_STEM] for word in others}
    return sum(word[:_SHARED_STEM] in stems for word in words)
