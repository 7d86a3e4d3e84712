"""The committed encoder is useful for the project's questions: pictures find their words, and tasks lie together."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

torch: Any = pytest.importorskip("torch", reason="encoders need torch (extra clip)")
open_clip: Any = pytest.importorskip("open_clip", reason="the encoder is open_clip's (extra clip)")

from pytest_adaptive_eval.interviewer.encoders.openclip import OpenClipEmbedder  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CLIP = FIXTURES / "checkpoints" / "clip"

Array = NDArray[np.float32]


@pytest.fixture(scope="module")
def banks() -> dict[str, ItemBank]:
    torch.set_num_threads(1)
    return {kind: read_bank(FIXTURES / "banks" / f"{kind}.bank") for kind in ("text", "vision")}


@functools.cache
def encoder(part: str) -> OpenClipEmbedder:
    return OpenClipEmbedder.load(str(CLIP), part=part, device="cpu")


def embed(bank: ItemBank, part: str) -> Array:
    return encoder(part).embed(bank)


def same_task(bank: ItemBank) -> NDArray[np.bool_]:
    tasks = np.array(list(bank.categories))
    return np.asarray(tasks[:, None] == tasks[None])


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("kind", "part", "nearest"),
    [("text", "text", 0.99), ("vision", "text", 0.99), ("vision", "mean", 0.95), ("vision", "concat", 0.95),
     ("vision", "image", 0.85)],
)  # fmt: skip
def test_items_of_a_task_lie_together(banks: dict[str, ItemBank], kind: str, part: str, nearest: float) -> None:
    bank = banks[kind]
    rows = embed(bank, part)
    alike = (rows @ rows.T).astype(np.float64)
    np.fill_diagonal(alike, np.nan)
    same = same_task(bank)
    assert np.nanmean(alike[same]) > np.nanmean(alike[~same]) + 0.3
    assert same[np.arange(len(bank)), np.nanargmax(alike, axis=1)].mean() >= nearest
    far = np.nanmin(np.where(same, alike, np.nan), axis=1)
    assert far.max() < 0.9999 if part != "text" else far.min() < 0.9999  # a task is no single point


def test_levels_of_a_task_can_be_told_apart(banks: dict[str, ItemBank]) -> None:
    bank = banks["text"]
    levels = np.array([item.meta["level"] for item in bank.items])
    alike = (rows := embed(bank, "text")) @ rows.T
    np.fill_diagonal(alike, -2.0)
    assert (levels[alike.argmax(axis=1)] == levels).mean() > 0.9


@pytest.mark.parametrize(("task", "found"), [("caption", 0.25), ("grid", 0.4), ("noise", 0.5)])
def test_words_find_their_picture_among_those_of_the_task(banks: dict[str, ItemBank], task: str, found: float) -> None:
    """Question and answer are a caption, and no picture of the bank was trained on; one with the same words counts."""
    bank = banks["vision"].only(task)
    items = list(bank.items)
    captions = [f"{item.prompt} {item.answer}" for item in items]
    words = embed(ItemBank.uncalibrated("captions", [Item(str(n), text) for n, text in enumerate(captions)]), "text")
    chosen = (words @ embed(bank, "image").T).argmax(axis=1)
    right = np.array([captions[picture] == caption for picture, caption in zip(chosen, captions, strict=True)])
    chance = np.mean([captions.count(caption) / len(captions) for caption in captions])
    assert right.mean() >= found > 3 * chance


def test_open_clip_itself_gives_the_same(banks: dict[str, ItemBank]) -> None:
    model, _, look = open_clip.create_model_and_transforms(f"local-dir:{CLIP}")
    read = open_clip.get_tokenizer(f"local-dir:{CLIP}")
    from PIL import Image

    items = list(banks["vision"].items)[::40]
    with torch.no_grad():
        words = model.eval().encode_text(read([item.prompt for item in items]), normalize=True).numpy()
        views = torch.stack([look(Image.open(item.image_paths[0]).convert("RGB")) for item in items])
        pictures = model.encode_image(views, normalize=True).numpy()
    bank = ItemBank.uncalibrated("some", items)
    np.testing.assert_allclose(embed(bank, "text"), words, atol=1e-5)
    np.testing.assert_allclose(embed(bank, "image"), pictures, atol=1e-5)


def test_the_encoder_is_small() -> None:
    files = list(CLIP.iterdir())
    assert {path.name for path in files} == {
        "open_clip_config.json",
        "open_clip_model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert sum(path.stat().st_size for path in files) < 2e6
