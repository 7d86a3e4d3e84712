"""Texts to be restored whose letters are out of order or hidden, scored by the fraction of words put right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from pytest_adaptive_eval.tasks.answers import shortened
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.sentences import LEXICON, compose

__all__ = ["MASKED", "SCRAMBLED", "by_restoration", "mask", "scramble"]

SENTENCES = 4
#: Words shorter than this stay as they are: they would give the best constant answer its score.
SHORTEST = 4
#: How many words an answer may have too many or too few, as a share of the text's: room for a dropped or split word.
SLACK = 10
_QUOTED = re.compile(r'["\N{LEFT DOUBLE QUOTATION MARK}]([^"\N{RIGHT DOUBLE QUOTATION MARK}]+)')
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


def by_restoration(words: Sequence[str], damaged: Iterable[int], shown: Sequence[str] = ()) -> Judge:
    """The fraction of damaged words that an answer has in their places.

    The answer is the text itself or the one line or quotation in it that has as
    many words as the text, or nearly so; what stands before and after is not
    read.  With some words too many or too few, places may move by that number.

    Parameters
    ----------
    words : sequence of str
        The text, in small letters.
    damaged : iterable of int
        Places of the words that had to be restored.
    shown : sequence of str
        The text as it stands in the question: repeating it is no answer.
    """
    places = sorted(damaged)

    def judge(text: str, _: Runner | None) -> Mark:
        got, why = _restored_text(text, len(words), list(shown))
        if why:
            return Mark(0.0, why)
        right = _in_place(words, places, got)
        if right == len(places):
            return Mark(1.0)
        missed = [words[i] for i in places if i >= len(got) or words[i] != got[i]]
        return Mark(right / len(places), f"{right} of {len(places)} words restored; first missed: {missed[0]}")

    return judge


def _restored_text(text: str, length: int, shown: list[str]) -> tuple[list[str], str]:
    """The words of the part of an answer that is the text, or why there is none."""
    parts = [text, *text.splitlines(), *re.split(r"\n\s*\n", text), *_QUOTED.findall(text)]
    off: dict[int, list[list[str]]] = {}
    for part in parts:
        words = [word.casefold() for word in _WORD.findall(part)]
        if abs(len(words) - length) <= length // SLACK and words != shown:
            off.setdefault(abs(len(words) - length), []).append(words)
    if not off:
        return [], f"no text of about {length} words in {shortened(text)}"
    nearest = off[min(off)]
    if any(words != nearest[0] for words in nearest):
        return [], f"several texts of {len(nearest[0])} words, and none is said to be meant"
    return nearest[0], ""


def _in_place(words: Sequence[str], places: Sequence[int], got: Sequence[str]) -> int:
    """Most damaged words that can be matched in order, each at most as far off its place as the lengths differ."""
    shift = abs(len(got) - len(words))
    best = [0] * (len(got) + 1)  # over the first j words of the answer
    for i in places:
        row = best.copy()
        for j in range(max(i - shift, 0), min(i + shift + 1, len(got))):
            if got[j] == words[i]:
                row[j + 1] = max(row[j + 1], best[j] + 1)
        for j in range(1, len(row)):
            row[j] = max(row[j], row[j - 1])
        best = row
    return best[-1]


def _written(shown: Sequence[str], ends: Sequence[int]) -> str:
    """Words as a text: sentences begin with a capital and end with a full stop."""
    text, start = [], 0
    for end in ends:
        words = " ".join(shown[start:end])
        text.append(words[:1].upper() + words[1:] + ".")
        start = end
    return " ".join(text)


def _text(rng: random.Random) -> tuple[list[str], list[int]]:
    """The words of a text and where its sentences end."""
    words: list[str] = []
    ends = []
    for sentence in compose(rng, SENTENCES):
        words += sentence
        ends.append(len(words))
    return words, ends


def scramble(words: Sequence[str], ends: Sequence[int], rng: random.Random, level: int) -> Question:
    """A text to restore whose longer words are out of order, a tenth of them a level.

    Parameters
    ----------
    words : sequence of str
        In small letters.
    ends : sequence of int
        Where its sentences end.
    rng : random.Random
    level : int
    """
    long = [i for i, word in enumerate(words) if len(word) >= SHORTEST and len(set(word)) > 1]
    damaged = rng.sample(long, -(-len(long) * level // 10))
    shown = list(words)
    for i in damaged:
        letters = list(words[i])
        while (mixed := "".join(letters)) == words[i]:
            rng.shuffle(letters)
        shown[i] = mixed
    prompt = (
        "In some words of this text the letters stand in the wrong order. Write the whole text with every word put "
        f"right, the words in the same order, and nothing else.\n\n{_written(shown, ends)}"
    )
    return Question(prompt, _written(words, ends), judge=by_restoration(words, damaged, shown))


@cache
def _differences(word: str) -> tuple[int, ...]:
    """For every other known word of this length, the places at which it differs, as bits."""
    others = (other for other in LEXICON if len(other) == len(word) and other != word)
    found = {
        sum(1 << i for i, pair in enumerate(zip(word, other, strict=True)) if pair[0] != pair[1]) for other in others
    }
    return tuple(sorted(bits for bits in found if not any(bits & less == less for less in found - {bits})))


def mask(words: Sequence[str], ends: Sequence[int], rng: random.Random, level: int) -> Question:
    """A text to restore of whose letters some are hidden; parameters as of `scramble`."""
    letters = [(i, j) for i, word in enumerate(words) for j in range(len(word))]
    wanted = len(letters) * level * 5 // 100
    rng.shuffle(letters)
    kept = [(1 << len(word)) - 1 for word in words]
    for i, j in letters:
        if not wanted:
            break
        less = kept[i] & ~(1 << j)
        # What is left of a word fits no other word of the lexicon: the truth can be told.
        if len(words[i]) >= SHORTEST and less and all(less & bits for bits in _differences(words[i])):
            kept[i] = less
            wanted -= 1
    shown = ["".join(c if kept[i] >> j & 1 else "*" for j, c in enumerate(word)) for i, word in enumerate(words)]
    prompt = (
        "In this text an asterisk stands for each hidden letter. Write the whole text with every hidden letter filled "
        f"in, the words in the same order, and nothing else.\n\n{_written(shown, ends)}"
    )
    damaged = [i for i, word in enumerate(shown) if "*" in word]
    return Question(prompt, _written(words, ends), judge=by_restoration(words, damaged, shown))


def _drawn(damage: Callable[..., Question]) -> Callable[[random.Random, int], Question]:
    return lambda rng, level: damage(*_text(rng), rng, level)


SCRAMBLED = TaskFamily(
    "scrambled", "share of the longer words out of order, 10 % * level", 10, 0.08, _drawn(scramble), max_tokens=512
)
MASKED = TaskFamily("masked", "share of the letters hidden, 5 % * level", 11, 0.08, _drawn(mask), max_tokens=512)
