"""Task families of instruction following: texts that keep rules, which code checks."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from pytest_adaptive_eval.items.reading.stated import boxes, json_fields, tag_parts, without_notes
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.rules import (
    COUNTED,
    DEFINITIONS,
    FORMAL,
    Rule,
    draw_rules,
)

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
        versions = []
        for version in _versions(text):
            versions.append([rule.text for rule in rules if not rule.holds(version)])
        broken = min(versions, key=len)
        if not broken:
            return Mark(1.0)
        score = 0.0
        if partial:
            score = 1 - len(broken) / len(rules)
        return Mark(score, f"broken: {'; '.join(broken)}")

    return judge


def _versions(text: str) -> list[str]:
    """Return what may be the text that an answer gives."""
    boxed = [_TEXT.sub(r"\1", box) for box in boxes(text)]
    enclosed = [*_FENCE.findall(text), *tag_parts(text), *json_fields(text), *boxed]
    if "\\end{" in text:
        enclosed += _ENVIRONMENT.findall(text)
    versions = [text]
    for part in (text, *enclosed[:_PARTS]):
        paragraphs = re.split(r"\n\s*\n", part.strip())
        while len(paragraphs) > 1 and not without_notes(paragraphs[-1]).strip():
            paragraphs.pop()
        for start in range(max(0, len(paragraphs) - _PARTS), len(paragraphs)):
            versions.append("\n\n".join(paragraphs[start:]))
    return list(dict.fromkeys(version for version in versions if version.strip()))


def _listed(rules: Sequence[Rule]) -> str:
    return "\n".join(f"{i}. {rule.text}" for i, rule in enumerate(rules, 1))


def _asked(rng: random.Random, rules: Sequence[Rule], partial: bool) -> Question:
    topic = rng.choice(("a journey", "a market", "an old house", "the weather", "a garden", "a lost letter", "a feast"))
    prompt = f"Write a text about {topic} of which all this holds:\n{_listed(rules)}\n{DEFINITIONS}"
    return Question(prompt, judge=by_rules(rules, partial=partial))


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
