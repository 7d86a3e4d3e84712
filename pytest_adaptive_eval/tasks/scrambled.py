"""Task families of damaged texts, with letters out of order or hidden; the score is the share of restored sentences."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate, pairwise
from types import MappingProxyType

from pytest_adaptive_eval.items.reading.stated import tag_parts
from pytest_adaptive_eval.tasks.answers import shortened
from pytest_adaptive_eval.tasks.family import Content, Judge, Malformed, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.words import DIFFERENCES, LEXICON, SAME_LETTERS, compose

#: Sentences of a text of about a hundred words, and of a terse one.
SENTENCES, TERSE_SENTENCES = 8, 4
#: Shorter words are never damaged: they would raise the score of the best constant answer.
SHORTEST = 4
#: An answer may have one word in this many too many or too few, for a dropped or split word.
SLACK = 10
#: Words of a written text: about a hundred are asked for.
FEWEST_WORDS, MOST_WORDS = 20, 200
#: Fewest words of a written text that are long enough to be damaged.
FEWEST_LONG = 10
_QUOTED = re.compile(r'["\N{LEFT DOUBLE QUOTATION MARK}]([^"\N{RIGHT DOUBLE QUOTATION MARK}]+)')
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")

#: Makes a question from the words of a text, the ends of its sentences, random numbers and a level.
Damage = Callable[[Sequence[str], Sequence[int], random.Random, int], Question]


def by_restoration(
    words: Sequence[str],
    damaged: Iterable[int],
    damaged_text: Sequence[str] = (),
    ends: Sequence[int] = (),
    accepted: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Judge:
    """Return a judge of the share of damaged sentences whose damaged words an answer has at their positions.

    The answer is the whole text, or the only line or quotation in it with about as many words. If it has some words too
    many or too few, a word may be off its position by that number.

    Args:
        words: The original text, in small letters.
        damaged: Positions of the damaged words.
        damaged_text: The words in the question: repeating them does not count as an answer.
        ends: Number of words up to the end of each sentence; each damaged word counts as one when omitted.
        accepted: Other words that are as right as a word.
    """
    positions = sorted(damaged)
    right = [{words[i], *accepted.get(words[i], ())} for i in positions]
    sentences = [{i} for i in positions]
    if ends:
        by_sentence = [{i for i in positions if start <= i < end} for start, end in pairwise((0, *ends))]
        sentences = list(filter(None, by_sentence))

    def judge(text: str, _: Runner | None) -> Mark:
        answer, why = _restored_text(text, len(words), list(damaged_text))
        if why:
            return Mark(0.0, why)
        restored = _in_place(right, positions, answer, len(words))
        missed = [words[i] for i in positions if i not in restored]
        if not missed:
            return Mark(1.0)
        n = sum(sentence <= restored for sentence in sentences)
        parts = "sentences" if ends else "words"
        return Mark(n / len(sentences), f"{n} of {len(sentences)} {parts} restored; first missed: {missed[0]}")

    return judge


def _restored_text(text: str, length: int, damaged_text: list[str]) -> tuple[list[str], str]:
    """Return the words of the restored text in an answer and ``""``, or no words and the reason."""
    sections = [*tag_parts(text), text, *text.splitlines(), *re.split(r"\n\s*\n", text), *_QUOTED.findall(text)]
    by_difference: dict[int, list[list[str]]] = {}
    for section in sections:
        words = [word.casefold() for word in _WORD.findall(section)]
        difference = abs(len(words) - length)
        if difference <= length // SLACK and words != damaged_text:
            by_difference.setdefault(difference, []).append(words)
    if not by_difference:
        return [], f"no text of about {length} words in {shortened(text)}"
    nearest = by_difference[min(by_difference)]
    if any(words != nearest[0] for words in nearest):
        return [], f"several texts of {len(nearest[0])} words, and none is marked as final"
    return nearest[0], ""


def _in_place(
    right: Sequence[Collection[str]], positions: Sequence[int], answer: Sequence[str], length: int
) -> set[int]:
    """Return the damaged words that match in order, each off its position by at most the difference from `length`."""
    shift = abs(len(answer) - length)
    rows = [[0] * (len(answer) + 1)]  # matches over the first j words of the answer, after each damaged word
    for words, i in zip(right, positions, strict=True):
        best = rows[-1]
        row = best.copy()
        for j in range(max(i - shift, 0), min(i + shift + 1, len(answer))):
            if answer[j] in words:
                row[j + 1] = max(row[j + 1], best[j] + 1)
        rows.append(list(accumulate(row, max)))
    matched = set()
    j = len(answer)
    for i, before, after in reversed(list(zip(positions, rows, rows[1:], strict=False))):
        if after[j] > before[j]:
            j = after.index(after[j]) - 1
            matched.add(i)
    return matched


def _as_text(words: Sequence[str], ends: Sequence[int]) -> str:
    """Return words as sentences that begin with a capital and end with a full stop."""
    text = []
    start = 0
    for end in ends:
        sentence = " ".join(words[start:end])
        text.append(sentence[:1].upper() + sentence[1:] + ".")
        start = end
    return " ".join(text)


def _scramble(words: Sequence[str], ends: Sequence[int], rng: random.Random, level: int) -> Question:
    """Mix the letters of longer words, a tenth of these words per level."""
    long = [i for i, word in enumerate(words) if _can_be_scrambled(word)]
    damaged = rng.sample(long, -(-len(long) * level // 10))
    damaged_text = list(words)
    for i in damaged:
        letters = list(words[i])
        while (mixed := "".join(letters)) == words[i]:
            rng.shuffle(letters)
        damaged_text[i] = mixed
    prompt = (
        "In some words of this text the letters stand in the wrong order. Write the whole text with every word put "
        f"right, the words in the same order.\n\n{_as_text(damaged_text, ends)}"
    )
    return Question(
        prompt, _as_text(words, ends), judge=by_restoration(words, damaged, damaged_text, ends, SAME_LETTERS)
    )


def _can_be_scrambled(word: str) -> bool:
    return len(word) >= SHORTEST and len(set(word)) > 1


@cache
def _differences(word: str) -> tuple[int, ...]:
    """Return the minimal sets of positions at which other words of this length differ, as bits."""
    if word in DIFFERENCES:
        return DIFFERENCES[word]
    masks = set()
    for other in LEXICON:
        if len(other) == len(word) and other != word:
            different = [i for i, letter in enumerate(other) if letter != word[i]]
            masks.add(sum(1 << i for i in different))
    minimal: list[int] = []
    for bits in sorted(masks):
        has_smaller = any(bits & smaller == smaller for smaller in minimal)  # a part of a set has a lower number
        if not has_smaller:
            minimal.append(bits)
    return tuple(minimal)


def _visible_letters(words: Sequence[str], rng: random.Random, level: int) -> list[int]:
    """Hide letters, 3 % of all per level, and return the visible ones of each word, as bits."""
    letters = [(i, j) for i, word in enumerate(words) for j in range(len(word))]
    remaining = len(letters) * level * 3 // 100
    rng.shuffle(letters)
    visible = [(1 << len(word)) - 1 for word in words]
    for i, j in letters:
        if not remaining:
            break
        fewer = visible[i] & ~(1 << j)
        if len(words[i]) < SHORTEST or not fewer:
            continue
        # If the visible letters fitted another English word, that answer would be as right.
        is_unique = all(fewer & bits for bits in _differences(words[i]))
        if is_unique:
            visible[i] = fewer
            remaining -= 1
    return visible


def _mask(words: Sequence[str], ends: Sequence[int], rng: random.Random, level: int) -> Question:
    """Hide letters of a text."""
    visible = _visible_letters(words, rng, level)
    damaged_text = []
    for word, bits in zip(words, visible, strict=True):
        letters = [letter if bits >> j & 1 else "*" for j, letter in enumerate(word)]
        damaged_text.append("".join(letters))
    prompt = (
        "In this text an asterisk stands for each hidden letter. Write the whole text with every hidden letter filled "
        f"in, the words in the same order.\n\n{_as_text(damaged_text, ends)}"
    )
    damaged = [i for i, word in enumerate(damaged_text) if "*" in word]
    return Question(prompt, _as_text(words, ends), judge=by_restoration(words, damaged, damaged_text, ends))


def _joined(sentences: Iterable[Sequence[str]]) -> tuple[list[str], list[int]]:
    """Return the words of sentences, and where each sentence ends."""
    words: list[str] = []
    ends = []
    for sentence in sentences:
        words += sentence
        ends.append(len(words))
    return words, ends


def _family(name: str, knob: str, levels: int, guess_floor: float, damage: Damage) -> TaskFamily:
    """Create a family from the function that damages its texts."""

    def draw(rng: random.Random, level: int, sentences: int = SENTENCES) -> Question:
        return damage(*_joined(compose(rng, sentences)), rng, level)

    def read(text: str, level: int, rng: random.Random) -> Question:
        sentences = []
        for part in re.split(r"[.!?]+", text.casefold()):
            sentences.append(re.findall(r"[a-z]{1,30}(?:'[a-z]{1,5})?", part))
        words, ends = _joined(filter(None, sentences))
        long_words = sum(map(_can_be_scrambled, words))
        if not FEWEST_WORDS <= len(words) <= MOST_WORDS or long_words < FEWEST_LONG:
            raise Malformed("format", f"a text of {FEWEST_WORDS} to {MOST_WORDS} English words was expected")
        return damage(words, ends, rng, level)

    demand = "a story, diary or essay of about 100 words in plain English, several sentences, no names and no digits"
    content = Content("a text", lambda _: demand, read, whole=True)
    terse = TaskFamily(name, knob, levels, guess_floor, partial(draw, sentences=TERSE_SENTENCES), content=content)
    return replace(terse, draw=draw, form="Write nothing but that text.", terse=terse)


FAMILIES = (
    _family("scrambled", "share of the longer words out of order, 10 % * level", 10, 0.05, _scramble),
    _family("masked", "share of the letters hidden, 3 % * level", 10, 0.02, _mask),
)
