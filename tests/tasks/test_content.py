"""Questions that somebody wrote: read back what they are made of, and nothing of what is claimed about it."""

from __future__ import annotations

import contextlib
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.family import Malformed, content_of, written_item

TERSE = {f"{name}-terse": FAMILIES[name].in_terse_form() for name in ("counting", "operations", "addition")}
FORMS = {**FAMILIES, **TERSE}
CONTENTS = {name: family.content for name, family in FORMS.items() if family.content is not None}
ASKED = [name for name, content in CONTENTS.items() if not content.whole]
TEXTS = [name for name, content in CONTENTS.items() if content.whole]
STORY = (
    "Yesterday our neighbour planted seven yellow tulips beside the wooden fence. A curious squirrel watched him from "
    "the garden. When the rain started, everybody laughed and went inside for warm coffee."
)


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("name", ASKED)
def test_the_familys_own_questions_are_read_back(name: str) -> None:
    family = FORMS[name]
    for level in range(1, family.levels + 1):
        for seed in range(20):
            question = family.question(level, seed)
            item = written_item(family, level, "w", f"Well, {question.prompt} Thanks!")
            assert (item.prompt, item.answer) == (question.prompt, question.answer)
            assert item.grade(question.answer) == 1.0
            assert item.grade("of no use") == 0.0
            assert item.meta == {"level": level}


@pytest.mark.parametrize("name", ASKED)
def test_the_form_that_is_shown_can_be_read(name: str) -> None:
    """At whatever level it is of, if any."""
    kinds = set()
    for level in range(1, FORMS[name].levels + 1):
        try:
            written_item(FORMS[name], level, "w", CONTENTS[name].form)
            kinds.add("read")
        except Malformed as error:
            kinds.add(error.kind)
        assert CONTENTS[name].demand(level)
    assert "format" not in kinds


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_damaged_by_code_and_can_be_restored(name: str) -> None:
    family = FORMS[name]
    hidden = []
    for level in (1, 5, family.levels):
        item = written_item(family, level, "w", STORY)
        assert item.grade(STORY) == 1.0
        damaged = item.prompt.split("\n\n")[1]
        assert item.grade(damaged) < 1.0
        assert (
            item == written_item(family, level, "w", STORY)
            or item.prompt == written_item(family, level, "w", STORY).prompt
        )
        hidden.append(sum(a != b for a, b in zip(damaged.split(), item.answer.split(), strict=True)))
    assert hidden[0] < hidden[-1]
    assert written_item(family, 5, "other", STORY).prompt != written_item(family, 5, "w", STORY).prompt
    for bad in ("", "Too short.", "aaaa " * 50, "word " * 300, "12 34 56 " * 30, "日本語のテキスト。" * 20):
        with pytest.raises(Malformed):
            written_item(family, 1, "w", bad)


@pytest.mark.parametrize(
    ("name", "level", "told", "kind"),
    [
        ("addition", 2, "What is 12 + 345?", "level"),
        ("addition", 2, "What is 12 + 04?", "level"),
        ("addition", 2, "What is 12 + 34 + 56?", "format"),
        ("addition", 2, "What is 2 * 12 + 34?", "format"),
        ("addition", 2, "What is 12 + 34 - 1?", "format"),
        ("addition", 2, "What is 1.12 + 34?", "format"),
        ("addition", 2, "What is 12 + 34 or 56 + 78?", "format"),
        ("addition", 2, "What is twelve plus two?", "format"),
        ("counting", 1, "How many A are in ABCABCAB?", "level"),
        ("counting", 1, "How many Z are in ABCABCABC?", "format"),
        ("counting", 2, "How many A are in AAAAAAAAAAAA?", "level"),
        ("operations-terse", 2, "3 + 4", "level"),
        ("operations-terse", 2, "3 + 4 - 8", "level"),
        ("operations-terse", 2, "9 + 4 - 8", "level"),
        ("operations-terse", 2, "3 + 4.5 - 8", "format"),
        ("operations", 2, "3 + 4", "level"),
        ("operations", 2, "3 + 4 * 100", "level"),
        ("operations", 2, "0 + 4 * 10", "level"),
        ("operations", 4, "99 * 99 * 99 * 99 - 1", "level"),
        ("operations", 2, "3 + 4.5 - 8", "format"),
        ("operations", 2, "3 + (4 - 8", "format"),
        ("post_order", 2, "pre-order ABC and in-order CAB", "format"),
        ("post_order", 2, "pre-order ABC and in-order ABD", "format"),
        ("post_order", 2, "pre-order AAB and in-order AAB", "level"),
        ("post_order", 2, "pre-order ABC", "format"),
        ("decimals", 2, "What is 1.2 * 3?", "format"),
        ("decimals", 2, "What is 1.2 * 0.345?", "level"),
        ("decimals", 2, "What is 1.2 * 0.001?", "level"),
        ("path_nodes", 1, "A-B 25, B-C 31. From A to C?", "format"),
        ("path_nodes", 1, "A-B 25, B-C 31, from A to C", "level"),
        ("path_nodes", 1, "A-B 25, B-C 31, C-D 20, A-D 12, A-C 13, B-D 11, from A to Z", "format"),
        ("path_nodes", 1, "A-B 25, A-B 31, C-D 20, A-D 12, A-C 13, B-D 11, from A to C", "format"),
        ("path_nodes", 1, "A-B 5, B-C 31, C-D 20, A-D 12, A-C 13, B-D 11, from A to C", "level"),
    ],
)
def test_what_is_no_question_of_the_level_is_refused(name: str, level: int, told: str, kind: str) -> None:
    with pytest.raises(Malformed) as caught:
        written_item(FORMS[name], level, "w", told)
    assert caught.value.kind == kind
    assert str(caught.value)


@pytest.mark.parametrize(
    ("name", "level", "told", "answer"),
    [
        ("addition", 2, "**12+34**", "46"),
        ("addition", 2, "12 + 34? I mean 12 + 34.", "46"),
        ("operations-terse", 2, "Compute 3*2 - 4", "2"),
        ("operations-terse", 2, "2 + 3*1", "5"),
        ("operations", 2, "Compute 3 + 2*4", "11"),
        ("operations", 3, "Compute (3 - 2) * (4 + 5).", "9"),
        ("post_order", 2, "Pre-order: A B C; In-order: B, A, C", "BCA"),
        ("post_order", 2, "the preorder traversal is ABC and the inorder is BAC", "BCA"),
        ("decimals", 2, "1.2 x 0.34", "0.408"),
        ("path_nodes", 1, "A - B: 25, B-C 31, C-D 20, A-D 12, A-C 13, B-D 11. The way from B to C?", "31"),
    ],
)
def test_other_wordings_are_read(name: str, level: int, told: str, answer: str) -> None:
    item = written_item(FORMS[name], level, "w", told)
    assert item.grade(answer) == 1.0


def test_families_that_cannot_be_written_say_so() -> None:
    with pytest.raises(ConfigError, match="questions of 'code_repair' cannot be written by a model"):
        content_of(FAMILIES["code_repair"])


@given(st.sampled_from(sorted(CONTENTS)), st.text(max_size=300), st.integers(1, 6))
def test_any_text_is_a_question_or_malformed(name: str, told: str, level: int) -> None:
    try:
        item = written_item(FORMS[name], level, "w", told)
    except Malformed as error:
        assert error.kind in ("format", "level")  # noqa: PT017
        return
    assert item.grade(item.answer) == 1.0


def test_reading_takes_linear_time() -> None:
    rng = random.Random(1)
    begun = time.thread_time()
    for family in (FORMS[name] for name in CONTENTS):
        for piece in (
            "1 + ",
            "A-B 12 ",
            "pre-order A ",
            "in-order A>",
            "A in ABC",
            "1.1*",
            "a. ",
            "9" * 50,
            "pre-order: : : ",
        ):
            text = piece * (40_000 // len(piece)) + rng.choice("xyz")
            with contextlib.suppress(Malformed):
                written_item(family, 1, "w", text)
    assert time.thread_time() - begun < 30
