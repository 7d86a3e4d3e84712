"""Embeddings without an encoder, what is chosen where none is named, and what is kept between runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError, CheckpointError, ConfigError, ResponsesError
from pytest_adaptive_eval.interviewer.embeddings import (
    CachedEmbedder,
    CategoryEmbedder,
    Embedder,
    FactorsEmbedder,
    best_embedder,
    load_embedder,
)
from pytest_adaptive_eval.interviewer.encoders.reading import text_of, unit_rows
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float32]


def bank(n: int = 6, **more: Any) -> ItemBank:
    items = [Item(f"i{k}", f"question {k}") for k in range(n)]
    rng = np.random.default_rng(n)
    defaults: dict[str, Any] = {"discrimination": rng.lognormal(0, 0.3, n), "intercept": rng.normal(size=n)}
    return ItemBank("b", [i.id for i in items], items, **(defaults | more))


def responses(of: ItemBank, seed: int = 0, subjects: int = 20) -> Responses:
    scores = np.random.default_rng(seed).integers(0, 2, (subjects, len(of))).astype(float)
    return Responses(tuple(f"s{k}" for k in range(subjects)), tuple(of.ids), scores)


def check(embedder: Embedder, of: ItemBank) -> Array:
    """What every embedder has to keep."""
    assert isinstance(embedder, Embedder)
    assert embedder.name
    found = embedder.embed(of)
    assert found.dtype == np.float32
    assert found.shape[0] == len(of)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(found, embedder.embed(of))
    return found


class TestFactors:
    def test_items_that_subjects_answered_alike_lie_together(self) -> None:
        rng = np.random.default_rng(1)
        skill = rng.normal(size=(60, 2))
        of = bank(20)
        group = np.arange(20) % 2
        scores = (skill[:, group] + 0.2 * rng.normal(size=(60, 20)) > 0).astype(float)
        shuffled = rng.permutation(20)
        known = Responses(tuple(map(str, range(60))), tuple(of.ids[k] for k in shuffled), scores[:, shuffled])
        found = check(FactorsEmbedder(known), of)
        alike = found @ found.T
        same = group[:, None] == group[None]
        assert alike[same].min() > alike[~same].max()

    def test_missing_scores_are_no_answers(self) -> None:
        of = bank(8)
        full = responses(of)
        scores = np.array(full.scores)
        scores[::3, 2] = np.nan
        scores[:, 5] = np.nan
        check(FactorsEmbedder(replace(full, scores=scores)), of)

    def test_an_item_without_responses_is_named(self) -> None:
        of = bank(4)
        some = Responses(("a", "b"), tuple(of.ids[:3]), np.eye(2, 3))
        with pytest.raises(ResponsesError, match="'i3'"):
            FactorsEmbedder(some).embed(of)

    def test_another_matrix_has_another_name(self) -> None:
        of = bank()
        assert FactorsEmbedder(responses(of, 0)).name != FactorsEmbedder(responses(of, 1)).name

    def test_parameters_put_like_difficulties_together(self) -> None:
        of = bank(5, discrimination=np.ones(5), intercept=np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
        found = check(FactorsEmbedder(), of)
        away = np.linalg.norm(found - found[0], axis=1)
        assert (np.diff(away) > 0).all(), "a Rasch bank keeps its order"

    def test_one_item_or_equal_ones_have_a_place(self) -> None:
        check(FactorsEmbedder(), bank(1))
        check(FactorsEmbedder(), bank(3, discrimination=np.ones(3), intercept=np.ones(3)))

    def test_a_bank_without_parameters_is_refused(self) -> None:
        with pytest.raises(BankError, match="calibrate it"):
            FactorsEmbedder().embed(ItemBank.uncalibrated("plain", [Item("a", "?")]))


def test_categories_are_axes() -> None:
    found = check(CategoryEmbedder(), bank(4, categories=["x", "y", "x", ""]))
    np.testing.assert_allclose(found @ found.T, [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    assert check(CategoryEmbedder(), bank(3)).shape == (3, 1)


@given(arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.floats(-1e30, 1e30)))
def test_rows_become_directions(rows: NDArray[np.float64]) -> None:
    made = unit_rows(rows, "x")
    np.testing.assert_allclose(np.linalg.norm(made.astype(float), axis=1), 1.0, atol=1e-5)
    length = np.linalg.norm(rows, axis=1)
    some = length > 0
    np.testing.assert_allclose(made[some] * length[some, None], rows[some], rtol=1e-4, atol=1e-5 * (1 + length.max()))


def test_rows_too_short_for_a_direction_have_the_first_axis() -> None:
    np.testing.assert_array_equal(unit_rows(np.array([[0.0, 1e-162], [0.0, 1e-90]]), "x"), [[1.0, 0.0], [0.0, 1.0]])


def test_what_is_not_finite_is_no_direction() -> None:
    with pytest.raises(CheckpointError, match="encoder x gave"):
        unit_rows(np.array([[1.0, np.nan]]), "encoder x")


def test_the_text_of_a_chat_is_that_of_its_messages() -> None:
    parts = [{"type": "image"}, {"type": "text", "text": "two"}, {"type": "text", "text": 3}, "?"]
    item = Item("a", messages=({"role": "system", "content": "one"}, {"role": "user", "content": parts},
                               {"role": "user", "content": None}))  # fmt: skip
    assert text_of(item) == "one\ntwo"
    assert text_of(Item("a", "prompt")) == "prompt"
    assert text_of(Item("a")) == ""


class TestBest:
    def test_responses_come_before_parameters_and_those_before_categories(self) -> None:
        of = bank()
        first, why = best_embedder(of, responses=responses(of))
        assert isinstance(first, FactorsEmbedder)
        assert first.name in why
        assert "recorded responses" in why
        second, why = best_embedder(of, responses=responses(bank(3)))
        assert second.name == "parameter factors"
        assert "no encoder is configured" in why
        third, why = best_embedder(ItemBank.uncalibrated("plain", list(of.items)))
        assert isinstance(third, CategoryEmbedder)
        assert "not calibrated" in why

    def test_what_is_configured_is_taken(self) -> None:
        made, why = best_embedder(bank(), encoder="categories", responses=responses(bank()))
        assert isinstance(made, CategoryEmbedder)
        assert why == "embeddings: categories, as configured"

    @pytest.mark.parametrize("spec", ["no/such/folder", "local-dir:no/such/folder", "ViT-B-32"])
    def test_an_encoder_that_is_not_there_is_an_error(self, spec: str) -> None:
        pytest.importorskip("torch", reason="encoders need torch (extra clip)")
        with pytest.raises((ConfigError, CheckpointError)):
            load_embedder(spec)


class Counted:
    """An encoder that counts how often it is asked."""

    name, flops = "counted", 0.0

    def __init__(self, key: str = "k") -> None:
        self.key, self.asked = key, 0

    def embed(self, of: ItemBank) -> Array:
        self.asked += 1
        return unit_rows(np.random.default_rng(len(of)).normal(size=(len(of), 3)), "counted")


class TestCache:
    def test_a_bank_is_embedded_once(self, tmp_path: Path) -> None:
        encoder, folder = Counted(), tmp_path / "new" / "cache"
        first = check(CachedEmbedder(encoder, folder), bank())
        again = CachedEmbedder(encoder, folder).embed(bank())
        np.testing.assert_array_equal(first, again)
        assert encoder.asked == 1
        assert len(list(folder.iterdir())) == 1

    @pytest.mark.parametrize("change", ["text", "order", "key", "picture"])
    def test_what_was_changed_is_embedded_anew(self, tmp_path: Path, change: str) -> None:
        image = pytest.importorskip("PIL.Image", reason="pictures need pillow (extra clip)")
        image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
        items = [Item("a", "one", images=("a.png",), root=str(tmp_path)), Item("b", "two")]
        encoder, cache = Counted(), tmp_path / "cache"
        CachedEmbedder(encoder, cache).embed(ItemBank.uncalibrated("b", items))
        if change == "text":
            items[1] = Item("b", "three")
        elif change == "order":
            items.reverse()
        elif change == "key":
            encoder.key = "other weights"
        else:
            image.new("RGB", (4, 4), "blue").save(tmp_path / "a.png")
        CachedEmbedder(encoder, cache).embed(ItemBank.uncalibrated("b", items))
        assert encoder.asked == 2

    @pytest.mark.parametrize(
        "spoil",
        ["cut", "empty", "text", "npy", "other array", "wrong length", "long rows", "pickle", "not finite"],
    )
    def test_a_damaged_file_is_made_again_and_said(self, tmp_path: Path, spoil: str) -> None:
        encoder, notes = Counted(), list[str]()
        cached = CachedEmbedder(encoder, tmp_path, notes.append)
        whole = cached.embed(bank())
        (path,) = tmp_path.iterdir()
        if spoil == "cut":
            path.write_bytes(path.read_bytes()[:-40])
        elif spoil == "empty":
            path.write_bytes(b"")
        elif spoil == "text":
            path.write_text("no archive")
        elif spoil == "npy":
            with path.open("wb") as stream:
                np.save(stream, whole)
        elif spoil == "pickle":
            with path.open("wb") as stream:
                np.savez(stream, embeddings=np.array([print] * 6, dtype=object))
        else:
            name = "else" if spoil == "other array" else "embeddings"
            rows = {"wrong length": whole[:-1], "long rows": 2 * whole, "not finite": whole * np.float32(np.nan)}
            with path.open("wb") as stream:
                arrays: dict[str, Any] = {name: rows.get(spoil, whole)}
                np.savez(stream, **arrays)
        np.testing.assert_array_equal(cached.embed(bank()), whole)
        assert encoder.asked == 2
        (said,) = notes
        assert path.name in said
        assert "made again" in said
        np.testing.assert_array_equal(cached.embed(bank()), whole)
        assert encoder.asked == 2, "and is sound again"

    def test_a_folder_that_cannot_be_written_does_no_harm(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        encoder = Counted()
        check(CachedEmbedder(encoder, tmp_path / "file"), bank())

    def test_a_missing_picture_names_its_item(self, tmp_path: Path) -> None:
        of = ItemBank.uncalibrated("b", [Item("lost", "?", images=("gone.png",), root=str(tmp_path))])
        with pytest.raises(BankError, match="'lost'"):
            CachedEmbedder(Counted(), tmp_path).embed(of)
