"""Find the language of a text, for words that have several meanings: "o" is "or" in Spanish and "the" in Portuguese."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from string import ascii_lowercase

from pytest_adaptive_eval.items.reading.constructions import WORDS

#: Tables of words that most sentences of a language hold, and letters that others lack.
_COMMON = """
    articles carries states links measures asks_which asks_who asks_circumstance accompanies or and not because
    concludes option mentions relatives year surely hedges says_yes says_no counts
"""

_LETTERS = {"en": "", "de": "äß", "fr": "êœû", "es": "ñ¿¡", "it": "ìùè", "pt": "ãõ", "nl": "ĳ", "pl": "ąćęłńśźż"}
_SCRIPTS = {"ja": "[\u3040-\u30ff]", "zh": "[\u3400-\u9fff]", "ko": "[\uac00-\ud7af]", "ru": "[\u0400-\u04ff]"}


@functools.cache
def _vocabularies() -> Mapping[str, frozenset[str]]:
    """Return the common words and the letters of each language with spaces."""
    words = {}
    for language, letters in _LETTERS.items():
        tables = " ".join(WORDS[table].get(language, "") for table in _COMMON.split())
        words[language] = frozenset((*re.findall(r"(?<!\\)\b[^\W\d_]+", tables), *letters))
    return words


@functools.lru_cache(maxsize=64)
def languages_of(*texts: str) -> frozenset[str]:
    """Return English and the languages of most words of each text, or of its script if it is not Latin."""
    languages = {"en"}
    for text in texts:
        scripts = [language for language, letters in _SCRIPTS.items() if re.search(letters, text)]
        languages.update(scripts or _most_frequent(text.casefold()))
    return frozenset(languages)


def _most_frequent(text: str) -> list[str]:
    """Return the languages of most words of a text in Latin letters; several that have equally many."""
    words = {*re.findall(r"[^\W\d_]+", text), *set(text).difference(ascii_lowercase)}
    counts = {language: len(vocabulary & words) for language, vocabulary in _vocabularies().items()}
    return [language for language, count in counts.items() if count == max(counts.values()) > 0]
