"""Labels of options other than capital letters: digits, small letters, letters of other scripts, and ordinals."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from string import ascii_uppercase

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.items.reading.constructions import WORDS, any_of, with_words, word_pattern

#: Series of labels that questions put before their options.
_SERIES = ("123456789", "abcdefghij", "АБВГДЕЖЗИК", "абвгдежзик", "アイウエオカ", "甲乙丙丁戊己", "①②③④⑤⑥⑦⑧⑨")
_PLACES = [
    any_of((language, words.split()[place]) for language, words in WORDS["ordinals"].items())
    for place in range(len(WORDS["ordinals"]["en"].split()))
]
_ORDINAL = word_pattern(
    r"(?P<before>⟨states chooses⟩\s*)?(?:⟨articles⟩\s*)?"
    rf"(?:{'|'.join(f'({place})' for place in _PLACES)})"
    r"(?:\s*(?:⟨option⟩|\bone\b|⟨listed⟩|(?(before)(?=[.,!]|\Z|\s+(?:of|der|des|de|di|van|z|из)\b)|(?!)))"
    r"|(?=,?\s*(?:⟨or and⟩|либо)\s+(?:\S+\s+){1,2}⟨option⟩))",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=256)
def labels_of(question: str, choices: Sequence[str]) -> str:
    """Return the labels that a question puts before its options, one character each; empty for capital letters."""
    asked = plain_characters(question)
    for series in _SERIES:
        labels = series[: len(choices)]
        places = [re.search(rf"(?<!\w){label}(?:\s?[)\].:、]|(?<=[①-⑨]))", asked) for label in labels]
        if len(labels) == len(choices) > 1 and all(places) and not set(labels).intersection(choices):
            return labels
    return ""


def with_capitals(text: str, labels: str, count: int) -> str:
    """Return a text with capital letters in brackets where it names one of so many options by ordinals or labels."""

    def ordinal(match: re.Match[str]) -> str:
        place = next(number for number, word in enumerate(match.groups()[1:]) if word)
        return f"{match['before'] or ''}({ascii_uppercase[count - 1 if place + 1 == len(_PLACES) else place]})"

    text = _ORDINAL.sub(ordinal, text)
    if not labels:
        return text
    label = (
        r"(?P<noun>(?i:⟨option⟩)\s?)?(?<![0-9A-Za-zÀ-ӿ.,/'])(?<![=+/^-])(?:(?<=\n-\s)|(?<![=+*/^-]\s))[(\[]?"
        rf"(?P<label>[{labels}])⟨unfollowed⟩(?=(?(noun)(?:⟨label_end⟩|⟨label_word⟩)|(?:⟨label_end⟩|(?<=\d)⟨label_word⟩)))[)\]]?"
    )
    return re.sub(with_words(label), lambda match: f"({ascii_uppercase[labels.index(match['label'])]})", text)
