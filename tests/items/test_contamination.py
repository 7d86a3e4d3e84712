"""The contaminated twin: what is swapped, what stays together, and that no key is right by accident."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.extensions.papers.decoys import SWAPS, contaminated, swapped
from pytest_adaptive_eval.items.item import LOW_QUALITY, Item


def item(n, prompt="", image="", answer="", **more):
    more = {"choices": (f"x{n}", f"y{n}"), "answer": answer or f"x{n}", "grader": "choice"} | more
    return Item(
        f"q{n}", prompt or f"What {n}?", images=(image or f"i/{n}.png",), formats=("image+text", "text"), **more
    )


BANK = [item(n) for n in range(30)]


def test_half_of_the_twin_is_bad_a_third_of_each_kind():
    twin = contaminated(BANK)
    assert twin[:30] == BANK
    bad = twin[30:]
    assert Counter(one.meta[LOW_QUALITY] for one in bad) == dict.fromkeys(SWAPS, 10)
    assert len({one.id for one in twin}) == 60
    assert {one.id for one in contaminated(BANK, share=0.25)[30:]} < {
        f"q{n}~{kind}" for n in range(30) for kind in SWAPS
    }
    assert len(contaminated(BANK, share=0.25)) == 40


def test_parts_come_from_whom_the_meta_says_and_the_key_stays_whole():
    by_id = {one.id: one for one in BANK}
    for one in contaminated(BANK)[30:]:
        own, kind = by_id[one.id.partition("~")[0]], one.meta[LOW_QUALITY]
        image, text = by_id[one.meta["image_of"]], by_id[one.meta["text_of"]]
        assert (one.choices, one.answer, one.grader, one.formats) == (own.choices, own.answer, own.grader, own.formats)
        assert one.images == image.images
        assert one.prompt == text.prompt
        assert (image.id != own.id) == (kind != "text")
        assert (text.id != own.id) == (kind != "image")
        if kind == "all":
            assert len({image.id, text.id, own.id}) == 3
        assert one.content_hash != own.content_hash


def test_the_seed_decides():
    assert contaminated(BANK, seed=3) == contaminated(BANK, seed=3)
    assert contaminated(BANK, seed=3) != contaminated(BANK, seed=4)


def test_what_is_bad_already_is_left_out_and_never_taken_from():
    twin = contaminated(BANK)
    assert contaminated(twin) == twin


@given(st.integers(2, 5), st.integers(2, 4), st.integers(0, 20))
def test_no_key_is_right_by_accident(prompts, answers, seed):
    """Few texts and few answers: an image with the text it had anyway must have another answer."""
    rng = random.Random(seed)
    key = {"choices": (), "grader": "exact"}
    bank = [item(n, prompt=f"p{n % prompts}", answer=f"a{rng.randrange(answers)}", **key) for n in range(12)]
    truth = {(one.images, one.prompt): one.answer for one in bank}
    for one in contaminated(bank, seed=seed)[12:]:
        assert truth.get((one.images, one.prompt)) != one.answer


def test_letters_are_told_from_what_they_stand_for():
    """B of one item and B of another are different answers, and x under two letters is one answer."""
    first = item(1, prompt="Which?", answer="B", choices=("x", "y"))
    same = item(2, prompt="Which?", answer="A", choices=("y", "z"))
    assert swapped(first, "image", [same], random.Random(0)) is None
    other = item(3, prompt="Which?", answer="B", choices=("y", "z"))
    assert swapped(first, "image", [other], random.Random(0)).images == other.images


def test_another_kind_is_made_where_one_cannot_be():
    """All texts are alike, so that only images can be swapped."""
    bank = [item(n, prompt="Which?", answer=f"a{n}", choices=(), grader="exact") for n in range(9)]
    assert {one.meta[LOW_QUALITY] for one in contaminated(bank)[9:]} == {"image"}


@pytest.mark.parametrize(
    ("bank", "message"),
    [
        (BANK[:2], "2 of 2 items have an image and a text; it takes three"),
        ([Item(f"t{n}", "?", "x") for n in range(9)], "0 of 9 items have an image"),
        ([item(0, prompt="?")] * 5, "no swap changes what is asked"),
    ],
)
def test_banks_that_have_no_twin(bank, message):
    with pytest.raises(BankError, match=message):
        contaminated(bank)


@pytest.mark.parametrize("share", [0.0, 0.6, float("nan")])
def test_shares_that_are_none(share):
    with pytest.raises(BankError, match="share of low-quality items"):
        contaminated(BANK, share=share)
