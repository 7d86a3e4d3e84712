"""Task families of instruction following: texts that keep rules, which code checks."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.reading.stated import boxes, json_fields, tag_parts, without_notes
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.rules import (
    COUNTED,
    DEFINITIONS,
    FORMAL,
    Rule,
    draw_rules,
    folded_words,
    sentences_in,
    words_in,
)
from pytest_adaptive_eval.text import counted

#: Most and fewest words of a user's text in a question.
LONGEST_EXCERPT, SHORTEST_EXCERPT = 160, 40
#: A run of this many copied words is a fault of a paraphrase.
COPIED = 6
LARGEST_FILE = 1_000_000
#: Fewest keywords by which a sentence of another text is recognised in an answer.
_TELLING = 3
#: Most parts and last paragraphs of an answer that may be the text.
_PARTS = 10
_TEXT = re.compile(r"\A\s*\\text\{(.*)\}\s*\Z", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\begin\{\w+\*?\}(.*?)\\end\{", re.DOTALL)
_FENCE = re.compile(r"```[a-z]*\n(.*?)\n?```", re.DOTALL)


def by_rules(rules: Sequence[Rule], *, partial: bool) -> Judge:
    """Return a judge that demands all rules, or with `partial` scores the share of kept rules.

    Remarks before or after the text are ignored, see `_versions`: the version that keeps most rules counts.
    """

    def judge(text: str, _: Runner | None) -> Mark:
        if not text.strip():
            return Mark(0.0, "no text")
        versions = [[rule.text for rule in rules if not rule.holds(version)] for version in _versions(text)]
        broken = min(versions, key=len)
        score = 1 - len(broken) / len(rules) if partial else float(not broken)
        return Mark(score, f"broken: {'; '.join(broken)}" if broken else "")

    return judge


def _versions(text: str) -> list[str]:
    """Return what may be the text that an answer gives."""
    boxed = [_TEXT.sub(r"\1", box) for box in boxes(text)]
    environments = _ENVIRONMENT.findall(text) if "\\end{" in text else []
    enclosed = [*_FENCE.findall(text), *tag_parts(text), *json_fields(text), *boxed, *environments]
    versions = [text]
    for part in (text, *enclosed[:_PARTS]):
        paragraphs = re.split(r"\n\s*\n", part.strip())
        while len(paragraphs) > 1 and not without_notes(paragraphs[-1]).strip():
            paragraphs.pop()
        versions += [
            "\n\n".join(paragraphs[start:]) for start in range(max(0, len(paragraphs) - _PARTS), len(paragraphs))
        ]
    return list(dict.fromkeys(version for version in versions if version.strip()))


def _listed(rules: Sequence[Rule]) -> str:
    return "\n".join(f"{i}. {rule.text}" for i, rule in enumerate(rules, 1))


def _asked(rng: random.Random, rules: Sequence[Rule], partial: bool) -> Question:
    topic = rng.choice(("a journey", "a market", "an old house", "the weather", "a garden", "a lost letter", "a feast"))
    prompt = f"Write a text about {topic} of which all this holds:\n{_listed(rules)}\n{DEFINITIONS}"
    return Question(prompt, judge=by_rules(rules, partial=partial))


def read_texts(folder: str | Path) -> dict[str, str]:
    """Return the ``.txt`` and ``.md`` files of a folder by name, sorted; or raise ConfigError."""
    folder = Path(folder)
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".txt", ".md")) if folder.is_dir() else []
    if not paths:
        raise ConfigError(f"{folder} holds no texts: files NAME.txt or NAME.md are expected")
    texts = {}
    for path in paths:
        try:
            with open_regular(path, follow=False) as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read as a text: {error.strerror or error}; replace or remove it"
            ) from None
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"{path} is longer than {LARGEST_FILE} bytes; shorten or remove it")
        try:
            texts[path.name] = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None
    return texts


def _keywords(excerpt: str) -> list[str]:
    """Return distinct words of 5 to 9 letters, in the order of the text."""
    return list(dict.fromkeys(word.casefold() for word in words_in(excerpt) if 5 <= len(word) <= 9 and word.isascii()))


@dataclass(frozen=True, slots=True)
class _Source:
    """Text by sentences, with the number of words of each, and the sentences at which an excerpt may begin."""

    sentences: tuple[str, ...]
    lengths: tuple[int, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> _Source:
        sentences = tuple(re.split(r"(?<=[.!?])\s+", text.strip()))
        lengths = tuple(len(words_in(sentence)) for sentence in sentences)
        to_end = list(accumulate(reversed(lengths)))[::-1]
        return cls(sentences, lengths, tuple(i for i, words in enumerate(to_end) if words >= SHORTEST_EXCERPT))

    def excerpt(self, rng: random.Random) -> str:
        """Return consecutive sentences of `SHORTEST_EXCERPT` to `LONGEST_EXCERPT` words, if sentences allow it."""
        start = rng.choice(self.starts)
        end, words = start + 1, self.lengths[start]
        while end < len(self.sentences) and (words < SHORTEST_EXCERPT or words + self.lengths[end] <= LONGEST_EXCERPT):
            words += self.lengths[end]
            end += 1
        return " ".join(self.sentences[start:end])


def _between(low: int, high: int) -> Rule:
    return Rule(f"it has {low} to {high} words", lambda text: low <= len(words_in(text)) <= high)


def _holding(word: str) -> Rule:
    return Rule(f"the word {word} stands in it", lambda text: word in folded_words(text))


def _paraphrase(_: random.Random, excerpt: str) -> list[Rule]:
    words = folded_words(excerpt)
    n = len(words)
    return [
        _between(n * 4 // 5, n * 6 // 5),
        Rule(
            f"no {COPIED} words in a row are taken over",
            lambda text: _runs(words).isdisjoint(_runs(folded_words(text))),
        ),
    ]


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    """Return all runs of `COPIED` words."""
    return set(zip(*(words[i:] for i in range(COPIED)), strict=False))


def _simplify(_: random.Random, excerpt: str) -> list[Rule]:
    n = len(words_in(excerpt))

    def short_sentences(text: str) -> bool:
        return all(len(words_in(part)) <= 12 for part in re.split(r"(?<=[.!?])\s+", text))

    return [
        _between(n // 2, n * 6 // 5),
        Rule("no sentence has more than 12 words", short_sentences),
        Rule("no word has more than nine letters", lambda text: all(len(word) <= 9 for word in words_in(text))),
    ]


def _summarise(rng: random.Random, excerpt: str) -> list[Rule]:
    n, count = len(words_in(excerpt)), rng.randint(1, 4)
    number = f"exactly {count} sentences" if count > 1 else "exactly one sentence"
    return [_between(10, max(24, n * 2 // 5)), Rule(f"it has {number}", lambda text: sentences_in(text) == count)]


MODES: Mapping[str, Callable[[random.Random, str], list[Rule]]] = {
    "Say the following text in other words": _paraphrase,
    "Say the following text in simpler words": _simplify,
    "Sum up the following text": _summarise,
}
#: Kinds of rules that can be combined with every mode.
FREE = {
    name: FORMAL[name] for name in ("first", "fourth", "last", "capitals", "quoted", "number", "commas", "brackets")
}


def _mixed(rng: random.Random, excerpt: str, others: Sequence[str], share: float) -> tuple[str, Rule]:
    """Return an excerpt with sentences of other texts between its own, and the rule to leave them out.

    Args:
        others: Sentences with at least `_TELLING` keywords.
        share: Share of the sentences that are of other texts, in (0, 1).
    """
    sentences = re.split(r"(?<=[.!?])\s+", excerpt)
    count = max(1, round(len(sentences) * share / (1.0 - share)))
    inserted = rng.sample(others, min(count, len(others)))
    own = set(_keywords(excerpt))
    telling = [[word for word in _keywords(sentence) if word not in own] for sentence in inserted]
    for sentence in inserted:
        sentences.insert(rng.randrange(1, len(sentences) + 1), sentence)

    def left_out(text: str) -> bool:
        words = set(folded_words(text))
        return not any(len(words.intersection(some)) > len(some) / 2 for some in telling if len(some) >= _TELLING)

    return " ".join(sentences), Rule("nothing in it comes from the sentences that belong to other texts", left_out)


def own_texts(texts: Mapping[str, str], name: str = "own_texts", *, irrelevant: bool = False) -> TaskFamily:
    """Return a family that has a user's texts paraphrased, simplified or summarised.

    Code checks the format and two words of the text, and does not check the meaning.

    Args:
        texts: Texts by name, see `read_texts`.
        irrelevant: Each level puts more sentences of the other texts among those of the excerpt, which must not enter
            the answer; otherwise each level adds an instruction.

    Raises:
        ConfigError: A text is too short, or `irrelevant` has fewer than two texts.
    """
    for title, text in texts.items():
        if len(words_in(text)) < SHORTEST_EXCERPT or len(_keywords(text)) < 2:
            raise ConfigError(f"the text {title!r} is too short: at least {SHORTEST_EXCERPT} words are expected")
    sources = [_Source.of(text) for text in texts.values()]
    by_source = [[part for part in source.sentences if len(_keywords(part)) >= _TELLING] for source in sources]
    if irrelevant and sum(map(bool, by_source)) < 2:
        raise ConfigError(f"{counted(len(texts), 'text')}, and irrelevant sentences come from others: give two or more")

    def draw(rng: random.Random, level: int) -> Question:
        source = rng.randrange(len(sources))
        excerpt = sources[source].excerpt(rng)
        ask = rng.choice(list(MODES))
        keywords = _keywords(excerpt)
        rules = MODES[ask](rng, excerpt)
        rules += [_holding(word) for word in rng.sample(keywords, min(2, len(keywords)))]
        if irrelevant:
            others = [part for n, parts in enumerate(by_source) if n != source for part in parts]
            excerpt, rule = _mixed(rng, excerpt, others, level / 10)
            rules.append(rule)
        else:
            rules += draw_rules(rng, level - 1, FREE)
        prompt = (
            f"{ask}, so that of your text all this holds:\n{_listed(rules)}\n{DEFINITIONS} Write nothing but your "
            f"text.\n\n{excerpt}"
        )
        return Question(prompt, judge=by_rules(rules, partial=False))

    knob = "share of irrelevant sentences, 10 % * level" if irrelevant else "number of instructions besides the task's"
    return TaskFamily(name, knob, 9, 0.0, draw)


_FORM = "Write nothing but the text."
FAMILIES = (
    TaskFamily(
        "instructions",
        "number of instructions",
        13,
        0.07,
        lambda rng, level: _asked(rng, draw_rules(rng, level, FORMAL, avoid=True), partial=False),
        form=_FORM,
    ),
    TaskFamily(
        "writing",
        "number of counted requirements",
        10,
        0.12,
        lambda rng, level: _asked(rng, draw_rules(rng, level, COUNTED), partial=True),
        form=_FORM,
    ),
)
