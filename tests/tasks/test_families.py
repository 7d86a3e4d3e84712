"""Every family: seeded, true, guessed no better than it says."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import BankError, ConfigError, Unscored
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.tasks import FAMILIES, Mark, Question, TaskFamily, families
from pytest_adaptive_eval.tasks.answers import by_number
from pytest_adaptive_eval.tasks.distortions import DISTORTIONS
from tests.tasks.solvers import InProcess, solve, written

#: SHA-256 (first 16 digits) of the first items of the levels named, pictures included.  A change here changes
#: every bank made from the family: give the family a new name instead.
GOLDEN: dict[str, tuple[int, str]] = {
    "counting-terse": (8, "8b48cdb11fb931e7"),
    "addition-terse": (5, "da7c8e422aa4a6c7"),
    "operations-terse": (8, "84928745f8e26ac1"),
    "post_order-terse": (8, "036fa15e01ed081c"),
    "unscramble-terse": (6, "437987ff97598a3b"),
    "scrambled-terse": (10, "47cdb2c78b2ee47c"),
    "masked-terse": (10, "83c38f9fbb01b826"),
    "comprehension-terse": (13, "2ba7ad7046df0f16"),
    "counting": (8, "733dbe35a166f994"),
    "addition": (5, "7557b145c94e6b81"),
    "operations": (8, "cccfa4eb7449912f"),
    "post_order": (8, "b7a71dd2f4467379"),
    "unscramble": (6, "cd01bbae83f3282f"),
    "grid-48": (6, "63dace45d9a7c2e4"),
    "caption-48": (6, "f3564c3496caedc0"),
    "noise-48": (8, "0283c171273dfea2"),
    "after-48": (7, "cfd51f0449958c21"),
    "icons-48": (11, "0736c84e07fe8b92"),
    "grid": (3, "bc2ec55f6a11e6bf"),
    "caption": (3, "8a9cdf685e50b896"),
    "after": (3, "dc6e408f65c00817"),
    "icons": (3, "648947603e624fea"),
    "relation": (3, "b718feb39700b1ef"),
    "noise": (3, "10866586eb2acc03"),
    "blur": (3, "bd8b4658eba8b33d"),
    "jpeg": (3, "13d68fb857a296d7"),
    "low_resolution": (3, "ddb840bb4191d38c"),
    "occlusion": (3, "8974146d1ee844b1"),
    "contrast": (3, "72dfcc60142329f6"),
    "scrambled": (10, "f34f478982593bc5"),
    "masked": (10, "aae064c0f9f45d4f"),
    "parsing": (25, "ed3aab7c9e3720b6"),
    "decimals": (12, "c4a33b57649dd76a"),
    "equations": (8, "ea82dc1ccf2d858a"),
    "path_nodes": (20, "2edc4aa4547a88f7"),
    "path_density": (9, "46e008a9d5838c6f"),
    "code_generation": (20, "a213456c6576de23"),
    "code_repair": (9, "9737401bb78d9952"),
    "instructions": (13, "e883030ff0aa4678"),
    "writing": (10, "9da88ca68d951bbf"),
    "comprehension": (13, "a579017a28a13c6f"),
    "retelling": (10, "aae65b801da22555"),
}

#: Families whose terse forms have been the only ones, or differ by more than the form of the answer.
TERSE = ("counting", "addition", "operations", "post_order", "unscramble", "comprehension", "scrambled", "masked")
#: Nothing but families whose answers are code needs this.
KNOWN = families(runner=InProcess())
#: The families in all their forms: some have small pictures too, and others terse prompts.
FORMS = {
    **KNOWN,
    **{f"{name}-48": KNOWN[name].at_pixels(48) for name in ("grid", "caption", "noise", "after", "icons")},
    **{f"{name}-terse": KNOWN[name].in_terse_form() for name in TERSE},
}


@pytest.fixture(params=list(FORMS.values()), ids=list(FORMS))
def family(request: pytest.FixtureRequest) -> TaskFamily:
    found: TaskFamily = request.param
    return found


def digest(family: TaskFamily, levels: int) -> str:
    total = hashlib.sha256()
    for level, seed in itertools.product(range(1, levels + 1), range(5)):
        total.update(json.dumps(family.item(level, seed).to_json()).encode())
        if family.pictorial:
            total.update(family.picture(level, seed).tobytes())
    return total.hexdigest()[:16]


@pytest.mark.fast_rows(12)
@pytest.mark.parametrize("form", FORMS)
def test_golden(form: str) -> None:
    levels, expected = GOLDEN[form]
    assert digest(FORMS[form], levels) == expected


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
    assert item.task == family.name
    assert item.category == (family.name,)
    size = {} if family.pixels is None else {"pixels": 448}
    form = {"terse": False} if family.form else {}
    assert dict(item.meta) == {"level": 3, "seed": 17, **size, **form}
    assert item == family.item(3, 17)
    if item.answer and not family.name.startswith("code"):
        assert item.grade(item.answer) == 1.0
    assert item.grade("none of these 77777") == 0.0
    assert bool(item.images) == ("image" in item.formats) == family.pictorial


@pytest.mark.parametrize("level", [0, -1, 99])
def test_a_level_out_of_range_is_refused(family: TaskFamily, level: int) -> None:
    with pytest.raises(ValueError, match=f"{family.name} has levels 1 to {family.levels}, not {level}"):
        family.item(level, 0)


def test_only_pictorial_families_have_pictures(family: TaskFamily) -> None:
    if family.pictorial:
        assert family.picture(2, 0).shape == (448, 448, 3) if family.pixels else family.picture(2, 0).ndim == 2
    else:
        assert family.question(1, 0).render is None


@pytest.mark.fast_rows(6)
def test_a_reference_solver_is_right_on_every_level(family: TaskFamily) -> None:
    for level in range(1, family.levels + 1):
        for seed in range(1 if family.name == "code_generation" or family.pixels else 3):
            item = family.item(level, seed)
            answer = solve(family, level, seed)
            assert family.verify(item, answer) == Mark(1.0), item.id
            assert item.grade(answer) == 1.0


def test_a_wrong_answer_is_told_why(family: TaskFamily) -> None:
    item = family.item(2, 5)
    for text in ("", "I cannot tell.", "\n\n"):
        mark = family.verify(item, text)
        assert mark.score == 0.0
        assert mark.why


#: As good as a constant text can be made for these: the middle of what each rule may ask for.
CONSTANTS = {
    "instructions": """1. its first word is kettle
2. it has exactly 5 lines, blank ones not counted
3. its last word is plumber
4. it has exactly 2 question marks
5. it has exactly 8 sentences
6. it has exactly 6 commas
7. it has exactly 4 round brackets that open, and as many that close
8. its fourth word is ticket
9. the word rabbit stands in it exactly 3 times
10. it has exactly 80 words""",
    "writing": """1. it has exactly 5 lines, blank ones not counted
2. it has exactly 2 question marks
3. it has exactly 8 sentences
4. it has exactly 6 commas
5. it has exactly 4 round brackets that open, and as many that close
6. it has exactly 4 semicolons
7. the word rabbit stands in it exactly 3 times
8. it has exactly 80 words
9. exactly 9 of its words begin with s
10. exactly 5 of its words have ten letters or more""",
}


def best_constant(family: TaskFamily, level: int, n: int) -> float:
    """Mean score of the best single answer that is looked for."""
    questions = [family.question(level, seed) for seed in range(n)]
    if family.name in CONSTANTS:
        tried = [written(CONSTANTS[family.name])]
    elif family.name in ("scrambled", "masked"):
        texts = [[word.strip(".").lower() for word in question.answer.split()] for question in questions]
        tried = []
        middle = sum(map(len, texts)) // len(texts)
        for length in (middle - 1, middle + 1):  # the most frequent longer word in each place
            near = [text for text in texts if abs(len(text) - length) < middle // 10]
            columns = [
                Counter(word for text in near for word in text[i : i + 1] if len(word) > 3) for i in range(length)
            ]
            tried.append(" ".join(column.most_common(1)[0][0] for column in columns))
    elif family.name.startswith("code"):
        tried = [question.answer for question in questions[:3]]
        questions = questions[3:]
    else:
        return Counter(question.answer for question in questions).most_common(1)[0][1] / n
    return max(
        sum(question.judge(text, family.runner).score for question in questions if question.judge) / n for text in tried
    )


@pytest.mark.fast_rows(4)
def test_the_best_constant_answer_scores_about_the_floor(family: TaskFamily) -> None:
    code = family.name.startswith("code")
    n = 60 if code else 200 if family.name in ("scrambled", "masked") else 600 if family.levels > 6 else 1500
    levels = {1, 2, family.levels} if family.levels > 6 else range(1, family.levels + 1)
    worst = max(best_constant(family, level, n) for level in levels)
    # The most frequent of several answers runs above its expectation: four standard errors of slack.
    slack = 4 * (family.guess_floor * (1 - family.guess_floor) / n) ** 0.5
    assert worst <= family.guess_floor + slack
    assert worst >= family.guess_floor - slack - 0.01


def test_later_levels_are_longer_or_noisier(family: TaskFamily) -> None:
    assert family.knob
    prompts = [len(family.item(level, 3).prompt) for level in range(1, family.levels + 1)]
    unlike = ("grid", "noise", "after", "icons", "scrambled", "masked", "code_repair", *DISTORTIONS)
    if family.name not in unlike:
        assert prompts[-1] > prompts[0]


@given(st.sampled_from(sorted(KNOWN)), st.integers(1, 5), st.integers(0, 10**9), st.text(max_size=300))
def test_any_text_gets_a_mark(name: str, level: int, seed: int, text: str) -> None:
    family = KNOWN[name]
    mark = family.verify(family.item(level, seed), text)
    assert 0.0 <= mark.score <= 1.0
    assert (mark.score == 1.0) == (mark.why == "")


def test_an_item_of_a_bank_is_graded_by_its_family_alone() -> None:
    family = FAMILIES["parsing"]
    item = family.item(2, 3)
    with pytest.raises(BankError, match="item 'parsing-2-3' is not of the task family 'decimals'"):
        FAMILIES["decimals"].verify(item, "1")
    with pytest.raises(BankError, match="parsing has levels 1 to 25, not 99"):
        family.verify(type(item)("parsing-99-1", item.prompt), "1")
    with pytest.raises(BankError, match="does not ask what parsing draws for its id: it was edited"):
        family.verify(type(item)("parsing-2-4", item.prompt), "1")
    assert family.verify(type(item)("parsing-2-3"), item.answer).score == 1.0  # asked without its text


def test_a_bank_of_generated_items_is_graded_by_the_families(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    items = [KNOWN[name].item(2, 3) for name in ("parsing", "code_generation", "addition", "writing")]
    path.write_text("".join(json.dumps(item.to_json()) + "\n" for item in items))
    graders = {name: family.grade for name, family in KNOWN.items()}
    bank = read_bank(path, tasks=graders)
    for made, item in zip(items, bank.items, strict=True):
        assert item.content_hash == made.content_hash
        answer = solve(KNOWN[item.task], 2, 3)
        assert item.grade(answer) == 1.0
        assert item.grade("nothing") == 0.0
    without = read_bank(path).items
    assert without[2].grade(items[2].answer) == 1.0  # its grader is numeric
    with pytest.raises(BankError, match="graded by its task family 'parsing', which is not known here"):
        without[0].grade(items[0].answer)


def test_code_without_a_runner_is_not_run() -> None:
    for name in ("code_generation", "code_repair"):
        item = FAMILIES[name].item(1, 0)
        with pytest.raises(Unscored) as caught:
            item.grade(item.answer)
        assert caught.value.status == Status.NOT_RUN.value
        assert "no sandbox" in str(caught.value)
        assert item.grade("no program at all") == 0.0


def draw(rng: random.Random, level: int) -> Question:
    answer = str(rng.randrange(100 * level))
    return Question(f"Say {answer}.", answer, judge=by_number(answer))


def test_families_of_users_stand_beside_the_built_in_ones() -> None:
    mine = TaskFamily("say", "range", 3, 0.01, draw)
    known = families([*FAMILIES.values(), mine])
    assert list(known) == [*FAMILIES, "say"]
    assert known["say"].item(2, 1).grade(f"It is {mine.question(2, 1).answer}") == 1.0
    assert known["addition"] is FAMILIES["addition"]
    assert all(family.runner is None for family in known.values())
    runner = InProcess()
    assert all(family.runner is runner for family in families([*FAMILIES.values(), mine], runner).values())


def test_a_family_is_graded_by_the_grader_that_it_names() -> None:
    for grader, text, score in (("numeric", "I say 7.0", 1.0), ("exact", "I say 8", 0.0), ("task", " 7. ", 1.0)):
        family = TaskFamily("say", "none", 1, 0.9, lambda rng, level: Question("Say 7.", "7"), grader)
        mark = family.verify(family.item(1, 0), text)
        assert mark.score == score
        assert mark.why == ("" if score else "7 was expected")


def test_unfit_families_are_refused() -> None:
    with pytest.raises(ConfigError, match="two task families called 'addition'"):
        families([*FAMILIES.values(), TaskFamily("addition", "digits", 2, 0.1, draw)])
    mine = TaskFamily("say", "range", 3, 0.01, draw)
    with pytest.raises(ConfigError, match="two task families called 'say'"):
        families([mine, mine])
    with pytest.raises(ConfigError, match="expected a TaskFamily"):
        families([draw])  # type: ignore[list-item]
    for name in ("my-task", "", "Say", "a b", "a" * 61):
        with pytest.raises(ConfigError, match="small letters, digits and underscores"):
            TaskFamily(name, "k", 1, 0.1, draw)
    for levels, guess_floor in ((0, 0.1), (1, 1.0), (1, -0.1)):
        with pytest.raises(ConfigError, match="at least 1 level and a floor from 0 to 1"):
            TaskFamily("say", "k", levels, guess_floor, draw)
