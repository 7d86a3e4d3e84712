"""Read numbers in words of other languages than English."""

from __future__ import annotations

import functools
import re

from pytest_adaptive_eval.items.reading.constructions import COUNTS, COUNTS_JOINED, NO_COUNTS, either

_VALUES = (*range(21), *range(30, 100, 10), 100, 1000)
_THOUSAND = 1000
#: Values that multiply the number before them.
_MULTIPLY = (100, _THOUSAND)


@functools.cache
def _languages() -> list[tuple[re.Pattern[str], list[tuple[re.Pattern[str], int]]]]:
    """Return for each language the pattern of its numbers, and the patterns of their words, the longest first."""
    languages = []
    for language, words in COUNTS.items():
        forms = []
        for form, value in zip(words.split(), _VALUES, strict=True):
            if form != "-":
                forms.append((form, value))
        forms.sort(key=lambda each: -max(map(len, each[0].split("|"))))
        word = "|".join(form for form, _ in forms)
        number = either({language: rf"(?!(?:{NO_COUNTS})(?!\w))(?:(?:{word}){COUNTS_JOINED})*(?:{word})"})
        languages.append(
            (re.compile(number, re.IGNORECASE), [(re.compile(form, re.IGNORECASE), value) for form, value in forms])
        )
    return languages


def with_digits(text: str) -> str:
    """Return a text with numbers in words as digits, of the language with the longest ones."""

    def length(language: tuple[re.Pattern[str], object]) -> int:
        return sum(len(match[0]) for match in language[0].finditer(text))

    number, words = max(_languages(), key=length)
    return number.sub(lambda match: str(_value(match[0], words)), text)


def _value(text: str, words: list[tuple[re.Pattern[str], int]]) -> int:
    """Return the value of a number in words: ones and tens add up, and hundreds and thousands multiply."""
    total = below = last = 0
    position = 0
    while position < len(text):
        found = next(((match.end(), value) for form, value in words if (match := form.match(text, position))), None)
        if found is None:
            position += 1
            continue
        position, value = found
        if value == _THOUSAND:
            total += max(below + last, 1) * value
            below = last = 0
        elif value in _MULTIPLY or (value == 10 and text[position - 1] == "十"):
            below += max(last, 1) * value
            last = 0
        else:
            last += value
    return total + below + last
