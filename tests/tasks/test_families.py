"""Every family: seeded, true, guessed no better than it says."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.tasks import FAMILIES, TaskFamily
from pytest_adaptive_eval.tasks.words import WORDS

#: SHA-256 (first 16 digits) of the first items of every level, pictures included.  A change here changes
#: every bank made from the family: give the family a new name instead.
GOLDEN: dict[str, str] = {
    "counting": "30fa7dea05845d5e",
    "addition": "f55b54f6ca796610",
    "operations": "92b880a2040f3350",
    "post_order": "f57d405e006b9264",
    "unscramble": "6c6a285abdb0665f",
    "grid": "0668d94638dcc787",
    "caption": "a69a254420aedada",
    "noise": "9f54faae223a6795",
}


@pytest.fixture(params=list(FAMILIES.values()), ids=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> TaskFamily:
    found: TaskFamily = request.param
    return found


def digest(family: TaskFamily) -> str:
    total = hashlib.sha256()
    for level, seed in itertools.product(range(1, family.levels + 1), range(5)):
        total.update(json.dumps(family.item(level, seed).to_json()).encode())
        if family.pictorial:
            total.update(family.picture(level, seed).tobytes())
    return total.hexdigest()[:16]


def test_golden(family: TaskFamily) -> None:
    assert digest(family) == GOLDEN[family.name]


def test_the_global_random_state_does_not_matter(family: TaskFamily) -> None:
    before = random.getstate()
    first = family.item(2, 9)
    random.seed(4)
    np.random.seed(4)
    assert family.item(2, 9).content_hash == first.content_hash
    random.setstate(before)
    family.item(2, 9)
    assert random.getstate() == before


def test_item(family: TaskFamily) -> None:
    item = family.item(3, 17)
    assert item.id == f"{family.name}-3-17"
    assert re.fullmatch(r"[a-z_]+-3-17", item.id)
    assert item.category == (family.name,)
    assert dict(item.meta) == {"level": 3, "seed": 17, "max_tokens": 16}
    assert item.grade(item.answer) == 1.0
    assert item.grade("none of these 77777") == 0.0
    assert bool(item.images) == ("image" in item.formats) == family.pictorial


@pytest.mark.parametrize("level", [0, -1, 99])
def test_a_level_out_of_range_is_refused(family: TaskFamily, level: int) -> None:
    with pytest.raises(ValueError, match=f"{family.name} has levels 1 to {family.levels}, not {level}"):
        family.item(level, 0)


def test_a_negative_seed_is_refused(family: TaskFamily) -> None:
    with pytest.raises(ValueError, match="a seed is 0 or more, not -1"):
        family.item(1, -1)


def test_only_pictorial_families_have_pictures(family: TaskFamily) -> None:
    if family.pictorial:
        assert family.picture(1, 0).shape == (48, 48)
    else:
        with pytest.raises(ValueError, match=f"questions of {family.name} have no pictures"):
            family.picture(1, 0)


def test_the_best_constant_answer_scores_about_the_floor(family: TaskFamily) -> None:
    n, worst = 1500, 0.0
    for level in range(1, family.levels + 1):
        answers = Counter(family.question(level, seed).answer for seed in range(n))
        worst = max(worst, answers.most_common(1)[0][1] / n)
    # The most frequent of several answers runs above its expectation: four standard errors of slack.
    slack = 4 * (family.guess_floor * (1 - family.guess_floor) / n) ** 0.5
    assert worst <= family.guess_floor + slack
    assert worst >= family.guess_floor - slack - 0.01


def test_later_levels_are_longer_or_noisier(family: TaskFamily) -> None:
    assert family.knob
    prompts = [len(family.item(level, 3).prompt) for level in range(1, family.levels + 1)]
    if family.name not in ("grid", "noise"):
        assert prompts[-1] > prompts[0]


levels = st.integers(1, 5)
seeds = st.integers(0, 10**9)


@given(levels, seeds)
def test_counting(level: int, seed: int) -> None:
    question = FAMILIES["counting"].question(level, seed)
    match = re.fullmatch(r"How many ([A-F]) are in ([A-F]+)\?", question.prompt)
    assert match
    assert len(match[2]) == 6 + 3 * level
    assert question.answer == str(len(re.findall(match[1], match[2])))


@given(levels, seeds)
def test_addition(level: int, seed: int) -> None:
    question = FAMILIES["addition"].question(level, seed)
    match = re.fullmatch(r"What is (\d+) \+ (\d+)\?", question.prompt)
    assert match
    assert len(match[1]) == len(match[2]) == level
    carry, digits = 0, ""
    for a, b in zip(reversed(match[1]), reversed(match[2]), strict=True):
        carry, digit = divmod(int(a) + int(b) + carry, 10)
        digits = str(digit) + digits
    assert question.answer == f"{carry or ''}{digits}"


@given(levels, seeds)
def test_operations(level: int, seed: int) -> None:
    question = FAMILIES["operations"].question(level, seed)
    match = re.fullmatch(r"Work from left to right: (\d(?: [-+*] \d)+) = \?", question.prompt)
    assert match
    operators = re.findall(r"[-+*]", match[1])
    nested = "(" * len(operators) + re.sub(r"( [-+*] \d)", r"\1)", match[1])
    assert len(operators) == level
    assert question.answer == str(eval(nested))  # digits and operators, as matched above
    assert len(question.answer) == 1


@given(levels, seeds)
def test_post_order(level: int, seed: int) -> None:
    question = FAMILIES["post_order"].question(level, seed)
    match = re.fullmatch(
        r"A tree has pre-order ([A-Z]+) and in-order ([A-Z]+)\. What is the post-order\?", question.prompt
    )
    assert match
    before, within = match.groups()
    assert sorted(before) == sorted(within) == sorted(question.answer)
    assert len(set(before)) == level + 1

    def rebuild(before: str, within: str) -> str:
        if not before:
            return ""
        cut = within.index(before[0])
        return rebuild(before[1 : cut + 1], within[:cut]) + rebuild(before[cut + 1 :], within[cut + 1 :]) + before[0]

    assert rebuild(before, within) == question.answer


@given(levels, seeds)
def test_unscramble(level: int, seed: int) -> None:
    question = FAMILIES["unscramble"].question(level, seed)
    match = re.fullmatch(r"Which word is ([A-Z]+)\?", question.prompt)
    assert match
    assert len(match[1]) == level + 2
    assert match[1] != question.answer
    assert [word for word in WORDS[level + 2] if Counter(word) == Counter(match[1])] == [question.answer]


def test_words_are_no_anagrams_of_each_other() -> None:
    for length, words in WORDS.items():
        assert all(len(word) == length and word.isupper() for word in words)
        assert len({"".join(sorted(word)) for word in words}) == len(words)
