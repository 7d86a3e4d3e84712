"""Task families of instruction following: texts that keep rules, which code checks."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pytest_adaptive_eval.tasks.answers import text_versions
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily
from pytest_adaptive_eval.tasks.rules import (
    COUNTED,
    DEFINITIONS,
    FORMAL,
    Rule,
    draw_rules,
)


def by_rules(rules: Sequence[Rule], *, partial: bool) -> Judge:
    """Return a judge that demands all rules, or with `partial` scores the share of kept rules.

    Remarks before or after the text are ignored, see `text_versions`: the version that keeps most rules counts.
    """

    def judge(text: str, _: Runner | None) -> Mark:
        if not text.strip():
            return Mark(0.0, "no text")
        versions = []
        for version in text_versions(text):
            versions.append([rule.text for rule in rules if not rule.holds(version)])
        broken = min(versions, key=len)
        if not broken:
            return Mark(1.0)
        score = 0.0
        if partial:
            score = 1 - len(broken) / len(rules)
        return Mark(score, f"broken: {'; '.join(broken)}")

    return judge


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
