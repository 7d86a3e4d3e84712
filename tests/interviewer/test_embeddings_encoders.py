"""Encoders from local folders: what they read, what they refuse, and that nothing is fetched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.errors import BankError, CheckpointError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

torch: Any = pytest.importorskip("torch", reason="encoders need torch (extra clip)")
transformers: Any = pytest.importorskip("transformers", reason="encoders need transformers (extra clip)")
pytest.importorskip("open_clip", reason="encoders need open_clip (extra clip)")
Image: Any = pytest.importorskip("PIL.Image", reason="pictures need pillow (extra clip)")

from pytest_adaptive_eval.interviewer.embeddings import (  # noqa: E402
    CachedEmbedder,
    best_embedder,
    load_embedder,
)
from pytest_adaptive_eval.interviewer.encoders.openclip import OpenClipEmbedder  # noqa: E402
from pytest_adaptive_eval.interviewer.encoders.sentences import SentenceFolderEmbedder  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CLIP = FIXTURES / "checkpoints" / "clip"
WEIGHTS = "open_clip_model.safetensors"

Array = NDArray[np.float32]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Any look-up or connection is noted and refused."""
    import socket

    torch.set_num_threads(1)
    tried: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        tried.append(args)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield
    assert not tried


@pytest.fixture(scope="module")
def vision() -> ItemBank:
    bank = read_bank(FIXTURES / "banks" / "vision.bank")
    return ItemBank.uncalibrated("some", list(bank.items)[::30])


@pytest.fixture(scope="module")
def text() -> ItemBank:
    bank = read_bank(FIXTURES / "banks" / "text.bank")
    return ItemBank.uncalibrated("some", list(bank.items)[::60])


def clip(folder: Path | str = CLIP, **options: Any) -> OpenClipEmbedder:
    return OpenClipEmbedder.load(str(folder), **{"device": "cpu", **options})


def one(*items: Item) -> ItemBank:
    return ItemBank.uncalibrated("b", items)


class TestOpenClip:
    def test_parts_are_what_they_say(self, vision: ItemBank) -> None:
        words, views = clip(part="text").embed(vision), clip(part="image").embed(vision)
        both = clip(part="concat").embed(vision)
        np.testing.assert_allclose(both, np.hstack([words, views]) / np.sqrt(2), atol=1e-6)
        mean = words + views
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        np.testing.assert_allclose(clip(part="mean").embed(vision), mean, atol=1e-6)

    @pytest.mark.parametrize("part", ["text", "image", "mean"])
    def test_neighbours_in_a_batch_change_nothing(self, vision: ItemBank, part: str) -> None:
        whole = clip(part=part).embed(vision)
        np.testing.assert_allclose(clip(part=part, batch_size=3).embed(vision), whole, atol=1e-5)
        turned = ItemBank.uncalibrated("turned", list(vision.items)[::-1])
        np.testing.assert_allclose(clip(part=part, batch_size=4).embed(turned), whole[::-1], atol=1e-5)

    def test_the_mean_takes_the_part_that_is_there(self, vision: ItemBank) -> None:
        whole = vision.items[-1]
        words, view = whole.in_format("text"), whole.in_format("image")
        rows = clip(part="mean").embed(one(words, Item("v", images=view.images, root=view.root)))
        np.testing.assert_allclose(rows[0], clip(part="text").embed(one(whole))[0], atol=1e-6)
        np.testing.assert_allclose(rows[1], clip(part="image").embed(one(whole))[0], atol=1e-6)

    def test_several_pictures_count_as_their_mean(self, vision: ItemBank) -> None:
        first, second, *_ = (item for item in vision.items if item.images)
        both = Item("both", images=first.images + second.images, root=first.root)
        rows = clip(part="image").embed(one(first, both, second))
        mean = rows[0] + rows[2]
        np.testing.assert_allclose(rows[1], mean / np.linalg.norm(mean), atol=1e-6)

    @pytest.mark.parametrize(
        ("part", "lacks"),
        [("text", "text"), ("image", "image"), ("mean", "text and no image"), ("concat", "or no image")],
    )
    def test_an_item_without_the_part_is_named(self, vision: ItemBank, part: str, lacks: str) -> None:
        picture = Item("picture", images=vision.items[0].images, root=vision.items[0].root)
        lacking = {"text": picture, "image": Item("words", "x"), "mean": Item("nothing"), "concat": picture}[part]
        with pytest.raises(BankError, match=f"{lacking.id}.*{lacks}"):
            clip(part=part).embed(one(vision.items[0], lacking))

    def test_long_texts_are_cut(self) -> None:
        rows = clip(part="text").embed(one(Item("a", "word " * 300), Item("b", "word " * 400), Item("c", "\ud800é")))
        np.testing.assert_allclose(rows[0], rows[1], atol=1e-6)

    @pytest.mark.parametrize("kind", ["missing", "link", "broken", "outside"])
    def test_pictures_are_opened_with_care(self, tmp_path: Path, kind: str) -> None:
        Image.new("RGB", (8, 8)).save(tmp_path / "real.png")
        (tmp_path / "link.png").symlink_to(tmp_path / "real.png")
        (tmp_path / "broken.png").write_bytes((tmp_path / "real.png").read_bytes()[:40])
        name = {"outside": "../real.png"}.get(kind, f"{kind}.png")
        with pytest.raises(BankError, match="item 'p'"):
            clip(part="image").embed(one(Item("p", images=(name,), root=str(tmp_path))))

    def test_operations_are_counted_once_a_text(self, text: ItemBank, tmp_path: Path) -> None:
        places, width, layers = 48, 96, 2
        weights = 4 * width**2 + 2 * width * 3 * width  # of attention and of the two others of a layer
        layer = 2 * places * weights + 4 * places**2 * width
        each = layers * layer + 2 * width * 64
        encoder = clip(batch_size=4)
        cached = CachedEmbedder(encoder, tmp_path)
        cached.embed(text)
        cached.embed(text)
        assert cached.flops == encoder.flops == len({item.prompt for item in text.items}) * each

    def test_names_tell_models_and_parts_apart(self) -> None:
        assert clip(part="text").name != clip(part="image").name
        assert clip(part="text").key != clip(part="image").key

    @pytest.mark.parametrize(("option", "value"), [("part", "sound"), ("batch_size", 0), ("batch_size", True)])
    def test_settings_are_checked(self, option: str, value: Any) -> None:
        with pytest.raises(ConfigError, match=repr(value)):
            clip(**{option: value})

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
    def test_cuda_agrees_with_the_cpu(self, vision: ItemBank) -> None:
        np.testing.assert_allclose(clip(device="cuda").embed(vision), clip().embed(vision), atol=2e-3)


class TestAtHand:
    """What is loaded, and that nothing is ever downloaded."""

    @pytest.fixture
    def hub(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        return tmp_path

    def put(self, hub: Path, name: str, *files: str) -> Path:
        folder = hub / f"models--{name.replace('/', '--')}" / "snapshots" / "abc"
        folder.mkdir(parents=True)
        for file in files or [path.name for path in CLIP.iterdir()]:
            shutil.copy(CLIP / file, folder)
        return folder

    def test_a_model_in_the_hub_cache(self, hub: Path, vision: ItemBank) -> None:
        folder = self.put(hub, "org/tiny")
        found = clip(str(folder), part="text")
        assert "org/tiny" in found.name
        np.testing.assert_array_equal(found.embed(vision), clip(part="text").embed(vision))

    def test_a_model_without_its_settings(self, hub: Path) -> None:
        with pytest.raises(CheckpointError, match=r"has no open_clip_config\.json"):
            clip(str(self.put(hub, "org/tiny", WEIGHTS)))

    @pytest.mark.parametrize("spec", ["ViT-B-32", "ViT-B-32/nothing", "made-up/tag", ""])
    def test_names_that_are_none(self, spec: str) -> None:
        with pytest.raises((ConfigError, CheckpointError)):
            clip(spec)


class TestUnsafe:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(CLIP, tmp_path / "clip"))

    def edit(self, folder: Path, tower: str, **changes: Any) -> None:
        path = folder / "open_clip_config.json"
        about = json.loads(path.read_bytes())
        about["model_cfg"][tower].update(changes)
        path.write_text(json.dumps(about))

    def weigh(self, folder: Path, **changes: Any) -> None:
        from safetensors.torch import load_file, save_file

        tensors = {**load_file(folder / WEIGHTS), **changes}
        save_file({name: t for name, t in tensors.items() if t is not None}, folder / WEIGHTS)

    def refused(self, folder: Path, words: str) -> None:
        with pytest.raises(CheckpointError, match=words):
            clip(folder)

    def test_pickles_are_never_opened(self, folder: Path) -> None:
        (folder / "open_clip_pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
        clip(folder)
        (folder / WEIGHTS).unlink()
        self.refused(folder, "never opened")

    def test_a_link_out_of_the_folder(self, folder: Path, tmp_path: Path) -> None:
        shutil.move(folder / WEIGHTS, tmp_path / "w.safetensors")
        (folder / WEIGHTS).symlink_to(tmp_path / "w.safetensors")
        self.refused(folder, "symbolic link")

    def test_weights_that_are_cut_off(self, folder: Path) -> None:
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-10])
        self.refused(folder, "not a sound safetensors file")

    def test_code_in_the_settings(self, folder: Path) -> None:
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "auto_map": {"AutoTokenizer": "x.Y"}}))
        self.refused(folder, "auto_map")

    @pytest.mark.parametrize(
        ("tower", "changes", "words"),
        [
            ("text_cfg", {"hf_model_name": "org/text"}, "a tower from elsewhere"),
            ("vision_cfg", {"timm_model_name": "hf-hub:org/model"}, "from elsewhere"),
            ("text_cfg", {"tokenizer_kwargs": {"trust_remote_code": True}}, "trust_remote_code"),
            ("text_cfg", {"layers": 3}, "cannot be loaded"),
            ("text_cfg", {"context_length": 32}, "positional_embedding"),
            ("text_cfg", {"width": "wide"}, "cannot be loaded"),
            ("vision_cfg", {"image_size": 96}, "positional_embedding"),
        ],
    )
    def test_settings_that_fetch_or_do_not_fit(
        self, folder: Path, tower: str, changes: dict[str, Any], words: str
    ) -> None:
        self.edit(folder, tower, **changes)
        self.refused(folder, words)

    def test_tensors_that_are_missing_left_over_or_not_finite(self, folder: Path) -> None:
        self.weigh(folder, text_projection=None)
        self.refused(folder, "cannot be loaded")
        self.weigh(folder, text_projection=torch.full((96, 64), torch.nan))
        self.refused(folder, "not finite")
        self.weigh(folder, text_projection=torch.zeros(96, 64), stray=torch.zeros(1))
        self.refused(folder, "cannot be loaded")

    def test_a_folder_without_a_tokenizer(self, folder: Path) -> None:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (folder / name).unlink()
        self.refused(folder, "no tokenizer")

    @pytest.mark.parametrize("content", ["[]", "{", "{}", '{"model_cfg": 3}', '{"model_cfg": {"text_cfg": {}}}'])
    def test_settings_that_are_none(self, folder: Path, content: str) -> None:
        (folder / "open_clip_config.json").write_text(content)
        self.refused(folder, "open_clip_config.json")


class TestOtherModels:
    def test_the_pooled_states_are_those_of_the_model(self, text: ItemBank) -> None:
        folder = FIXTURES / "checkpoints" / "text-late"
        rows = SentenceFolderEmbedder.load(folder, device="cpu", batch_size=4).embed(text)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for item, row in zip(text.items, rows, strict=True):
            with torch.no_grad():
                ids = tokenizer(item.prompt, return_tensors="pt")["input_ids"]
                states = model(ids, output_hidden_states=True).hidden_states[-1][0].mean(0).numpy()
            np.testing.assert_allclose(row, states / np.linalg.norm(states), atol=1e-5)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder as transformers saves it, without a pooler of its own."""
    folder = tmp_path_factory.mktemp("bert") / "bert"
    tokenizer = transformers.AutoTokenizer.from_pretrained(FIXTURES / "checkpoints" / "text-late")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
        initializer_range=0.4,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class TestSentences:
    def test_operations_are_those_of_the_tokens(self, bert: Path, text: ItemBank) -> None:
        encoder = SentenceFolderEmbedder.load(bert, device="cpu", batch_size=1)
        encoder.embed(text)
        tokens = np.array([len(encoder._loaded.tokenizer(item.prompt)["input_ids"]) for item in text.items])
        c = encoder._loaded.model.config
        weights = 4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size
        layers = c.num_hidden_layers * (2 * tokens * weights + 4 * tokens**2 * c.hidden_size)
        assert encoder.flops == (layers + 2 * c.hidden_size**2).sum()  # the last is the pooler's

    @pytest.fixture
    def folder(self, bert: Path, tmp_path: Path) -> Path:
        made = Path(shutil.copytree(bert, tmp_path / "encoder"))
        self.modules(made, "Transformer", "Pooling", "Normalize")
        (made / "1_Pooling").mkdir()
        self.pool(made, pooling_mode_mean_tokens=True, pooling_mode_cls_token=False)
        return made

    def modules(self, folder: Path, *kinds: str, paths: tuple[str, ...] = ("", "1_Pooling", "2_Normalize")) -> None:
        listed = [{"path": p, "type": f"sentence_transformers.models.{k}"} for k, p in zip(kinds, paths, strict=False)]
        (folder / "modules.json").write_text(json.dumps(listed))

    def pool(self, folder: Path, **modes: Any) -> None:
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, **modes}))

    @pytest.mark.parametrize(
        ("mode", "pool"),
        [
            ({"pooling_mode_mean_tokens": True}, lambda states: states.mean(0)),
            ({"pooling_mode_cls_token": True}, lambda states: states[0]),
            ({"pooling_mode_max_tokens": True}, lambda states: states.amax(0)),
            ({"pooling_mode_lasttoken": True}, lambda states: states[-1]),
            ({"pooling_mode": "mean"}, lambda states: states.mean(0)),
        ],
    )
    def test_tokens_are_pooled_as_the_folder_says(
        self, folder: Path, text: ItemBank, mode: dict[str, Any], pool: Any
    ) -> None:
        self.pool(folder, **mode)
        rows = SentenceFolderEmbedder.load(folder, device="cpu", batch_size=4).embed(text)
        model = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for item, row in zip(text.items, rows, strict=True):
            with torch.no_grad():
                ids = tokenizer(item.prompt, return_tensors="pt")["input_ids"]
                states = pool(model(ids).last_hidden_state[0]).numpy()
            np.testing.assert_allclose(row, states / np.linalg.norm(states), atol=1e-5)

    def test_texts_are_cut_and_folded_as_the_folder_says(self, folder: Path) -> None:
        (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 4, "do_lower_case": true}')
        rows = SentenceFolderEmbedder.load(folder, device="cpu").embed(
            one(Item("a", "How many F"), Item("b", "how many f"))
        )
        np.testing.assert_array_equal(rows[0], rows[1])
        SentenceFolderEmbedder.load(folder, device="cpu").embed(one(Item("long", "word " * 500)))

    def test_a_bare_encoder_is_pooled_by_the_mean(self, bert: Path, folder: Path, text: ItemBank) -> None:
        np.testing.assert_array_equal(
            SentenceFolderEmbedder.load(bert, device="cpu").embed(text),
            SentenceFolderEmbedder.load(folder, device="cpu").embed(text),
        )

    def test_what_is_not_known_is_refused(self, folder: Path) -> None:
        def refused(words: str) -> None:
            with pytest.raises(CheckpointError, match=words):
                SentenceFolderEmbedder.load(folder, device="cpu")

        for modes in ({}, {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, {"pooling_mode": "x"}):
            self.pool(folder, **modes)
            refused("pools by")
        self.modules(folder, "Transformer", "Pooling", "Dense")
        refused("Dense")
        self.modules(folder, "Transformer", "Pooling", paths=("", "../1_Pooling"))
        refused("plain one inside")
        (folder / "modules.json").write_text('[{"type": "x"}]')
        refused("not a list of modules")

    def test_an_item_without_text_is_named(self, bert: Path) -> None:
        with pytest.raises(BankError, match="'silent'"):
            SentenceFolderEmbedder.load(bert, device="cpu").embed(one(Item("a", "x"), Item("silent", " ")))


def test_a_folder_tells_which_encoder_it_holds(tmp_path: Path, vision: ItemBank) -> None:
    checkpoints = FIXTURES / "checkpoints"
    made = load_embedder(str(checkpoints / "text-late"), device="cpu")
    assert isinstance(made, SentenceFolderEmbedder)
    made, why = best_embedder(vision, encoder=str(CLIP), part="image", device="cpu", cache=tmp_path)
    assert isinstance(made, CachedEmbedder)
    assert why == f"embeddings: {made.name}, as configured"
    np.testing.assert_array_equal(made.embed(vision), clip(part="image").embed(vision))
    with pytest.raises(ConfigError, match="reads texts, and part is"):
        load_embedder(str(checkpoints / "text-late"), part="image")
    with pytest.raises(CheckpointError, match="is a model of images too"):
        load_embedder(str(checkpoints / "vision-late"), device="cpu")
