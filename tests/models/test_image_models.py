"""Image-and-text checkpoints, without torchvision."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model

torch: Any = pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
transformers: Any = pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")
image_processing_auto: Any = pytest.importorskip("transformers.models.auto.image_processing_auto", reason="as above")
Image: Any = pytest.importorskip("PIL.Image", reason="images need pillow (extra hf)")

from pytest_adaptive_eval.models.base import asks_alike  # noqa: E402
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel  # noqa: E402

PLACE = "{% if p['type'] == 'image' %}HERE{% else %}{{ p['text'] }}{% endif %}"
CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>{% for p in m['content'] %}" + PLACE + "{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
FORMATS = ("image+text", "text", "image", "none")


def llava(checkpoints: Any, folder: Path, *, chat: bool) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    tokenizer = checkpoints.tokenizer()
    config = transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(**checkpoints.sizes(tie_word_embeddings=True)),
        vision_config=transformers.SiglipVisionConfig(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=16,
            patch_size=8,
            vision_use_head=False,
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
        initializer_range=0.4,
        tie_word_embeddings=True,
    )
    transformers.LlavaForConditionalGeneration(config).half().save_pretrained(folder)
    transformers.LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16}),
        tokenizer=tokenizer,
        patch_size=8,
        vision_feature_select_strategy="full",
        chat_template=CHAT.replace("HERE", "<image>") if chat else None,
    ).save_pretrained(folder)


def qwen(checkpoints: Any, folder: Path, *, nested: bool) -> None:
    """Qwen2.5-VL, whose processor asks for a video part that needs torchvision.

    `nested` is how release 5 saves a processor; otherwise as on the hub.
    """
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(0)
    tokenizer = checkpoints.tokenizer()
    ids = {f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{token}|>") for name, token in
           (("image", "image_pad"), ("video", "video_pad"), ("vision_start", "vision_start"),
            ("vision_end", "vision_end"))}  # fmt: skip
    config = transformers.Qwen2_5_VLConfig(
        text_config=checkpoints.sizes(
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
        ),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 4,
            "patch_size": 4,
            "window_size": 16,
            "out_hidden_size": 32,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.4,
        },
        tie_word_embeddings=False,
        **ids,
    )
    transformers.Qwen2_5_VLForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    images = Qwen2VLImageProcessorPil(patch_size=4, min_pixels=64, max_pixels=1024).to_dict()
    images["image_processor_type"] = "Qwen2VLImageProcessor"
    template = CHAT.replace("HERE", "<|vision_start|><|image_pad|><|vision_end|>")
    if nested:
        videos = {"video_processor_type": "Qwen2VLVideoProcessor", "patch_size": 4}
        whole = {"processor_class": "Qwen2_5_VLProcessor", "image_processor": images, "video_processor": videos}
        (folder / "processor_config.json").write_text(json.dumps(whole))
        (folder / "chat_template.jinja").write_text(template)
    else:
        images["processor_class"] = "Qwen2_5_VLProcessor"
        (folder / "preprocessor_config.json").write_text(json.dumps(images))
        (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))


KINDS: dict[str, Callable[[Any, Path], None]] = {
    "llava": lambda checkpoints, folder: llava(checkpoints, folder, chat=True),
    "llava-raw": lambda checkpoints, folder: llava(checkpoints, folder, chat=False),
    "qwen-nested": lambda checkpoints, folder: qwen(checkpoints, folder, nested=True),
    "qwen-hub": lambda checkpoints, folder: qwen(checkpoints, folder, nested=False),
}


@pytest.fixture(scope="module")
def made(checkpoints: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    base = tmp_path_factory.mktemp("images")

    def make(kind: str) -> Path:
        folder = base / kind
        if not folder.exists():
            KINDS[kind](checkpoints, folder)
            (folder / "training_args.bin").write_bytes(b"never opened")
            (folder / "optimizer.pt").write_bytes(b"never opened")
        return folder

    return make


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bank")
    for number in range(3):
        noise = random.Random(number).randbytes(20 * 20 * 3)
        Image.frombytes("RGB", (20, 20), noise).save(root / f"{number}.png")
    return root


def load(folder: Path, **options: Any) -> TransformersModel:
    return TransformersModel.load(folder, **{"device": "cpu", "max_tokens": 8, **options})


def item(bank: Path, number: int, prompt: str = "how many circles") -> Item:
    return Item(f"i{number}", prompt, images=(f"{number}.png",), formats=FORMATS, root=str(bank))


def plain(folder: Path, prompt: str, image: Path | None) -> str:
    """What `model.generate` gives, with placeholders expanded by hand."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    auto = transformers.AutoModelForImageTextToText
    model = auto.from_pretrained(folder, dtype=torch.float32)
    images = image_processing_auto.AutoImageProcessor.from_pretrained(folder, backend="pil")
    inputs = dict(images(Image.open(image).convert("RGB"), return_tensors="pt")) if image else {}
    before = after = ""
    if "qwen" in folder.name:
        place, count = "<|image_pad|>", int(inputs["image_grid_thw"].prod()) // 4 if image else 0
        before, after = "<|vision_start|>", "<|vision_end|>"
    else:
        place, count = "<image>", 4
    seen = before + place * count + after if image else ""
    text = seen + prompt if "raw" in folder.name else f"<|user|>{seen}{prompt}<|assistant|>"
    ids = tokenizer(text or tokenizer.bos_token, return_tensors="pt")["input_ids"]
    inputs |= {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if "qwen" in folder.name:
        inputs["mm_token_type_ids"] = (ids == tokenizer.convert_tokens_to_ids(place)).long()
    output = model.generate(**inputs, max_new_tokens=8, do_sample=False)
    return str(tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True))


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_text_is_that_of_plain_generate_in_all_four_formats(
    made: Callable[[str], Path], bank: Path, kind: str, no_network: list[object]
) -> None:
    folder = made(kind)
    subject = load(folder, batch_size=4)
    whole = item(bank, 0)
    asked = [whole.in_format(name) for name in FORMATS]
    expected = [
        plain(folder, "how many circles", bank / "0.png"),
        plain(folder, "how many circles", None),
        plain(folder, "", bank / "0.png"),
        plain(folder, "", None),
    ]
    assert len(set(expected)) == 4
    assert [subject.answer([one])[0].text for one in asked] == expected
    # Mixed with others of every format, and of other lengths.
    others = [
        item(bank, n, prompt).in_format(name) for n, prompt in ((1, "a"), (2, "seven 0 1 2 3")) for name in FORMATS
    ]
    together = subject.answer([*others[:5], *asked, *others[5:]])
    assert [c.text for c in together[5:9]] == expected
    assert {c.status for c in together} <= {Status.OK, Status.TRUNCATED}


def test_identity(made: Callable[[str], Path]) -> None:
    identity = load(made("llava")).identity
    assert identity.decoding["template"] == "chat"
    assert identity.decoding["images"] == "pil"
    assert identity.environment["dtype"] == "float32"
    assert load(made("llava-raw")).identity.decoding["template"] == "raw"


def test_several_images_and_messages(made: Callable[[str], Path], bank: Path) -> None:
    subject = load(made("llava"))
    two = ("0.png", "1.png")
    text, image = {"type": "text", "text": "seven"}, {"type": "image"}

    def ask(*content: Any, images: tuple[str, ...] = two) -> str:
        messages = tuple({"role": "user", "content": part} for part in content)
        return subject._prompter.text(Item("m", messages=messages, images=images, root=str(bank)))

    assert subject._prompter.text(Item("p", "seven", images=two)) == "<|user|><image><image>seven<|assistant|>"
    assert ask("seven") == "<|user|><image><image>seven<|assistant|>"
    assert (
        ask([image, text, {**image, "url": "https://example.org/a.png"}]) == "<|user|><image>seven<image><|assistant|>"
    )
    assert ask("a", [image], [image]) == "<|user|>a<|user|><image><|user|><image><|assistant|>"
    assert ask(None, "a", images=()) == "<|user|><|user|>a<|assistant|>"
    given = subject.answer([Item("m", "seven", images=two, root=str(bank)), item(bank, 2)])
    assert {c.status for c in given} == {Status.TRUNCATED}
    for content in ([image, text], [{"type": "video"}], [{"type": "text"}], 3, ["seven"]):
        messages = ({"role": "user", "content": content},)
        wrong = subject.answer([Item("w", messages=messages, images=two, root=str(bank))])[0]
        assert wrong.status is Status.ERROR
        assert "'w'" in wrong.detail


def test_placeholders_of_a_raw_prompt(made: Callable[[str], Path], bank: Path) -> None:
    prompter = load(made("llava-raw"))._prompter
    assert prompter.text(item(bank, 0, "two <image> five")) == "two <image> five"
    assert prompter.text(item(bank, 0, "two")) == "<image>two"
    assert prompter.text(Item("none")) == "<s>"
    given = load(made("llava-raw")).answer([item(bank, 0, "<image><image>"), item(bank, 1)])
    assert [c.status for c in given] == [Status.ERROR, Status.TRUNCATED]
    assert "2 placeholders" in given[0].detail


def test_a_bad_image_costs_its_item_alone(made: Callable[[str], Path], bank: Path, tmp_path: Path) -> None:
    subject = load(made("llava"))
    (bank / "bad.png").write_bytes((bank / "0.png").read_bytes()[:200])
    good = [item(bank, n) for n in range(3)]
    bad = [
        Item(f"b{n}", "x", images=(name,), root=str(bank)) for n, name in enumerate(("bad.png", "../0.png", "no.png"))
    ]
    given = subject.answer([good[0], *bad, *good[1:]])
    assert [c.status for c in given[1:4]] == [Status.ERROR] * 3
    assert [given[0], *given[4:]] == subject.answer(good)


def test_a_bare_prompt_with_a_path(made: Callable[[str], Path], bank: Path) -> None:
    subject = load(made("llava"))
    one = item(bank, 0)
    assert asks_alike(one, Item("", one.prompt, images=one.image_paths))
    assert subject.answer([Item("", one.prompt, images=one.image_paths)]) == subject.answer([one])


def test_a_lost_processor_names_itself(made: Callable[[str], Path], tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "llava"
    shutil.copytree(made("llava"), folder)
    (folder / "processor_config.json").unlink()
    with pytest.raises(CheckpointError, match=r"its processor cannot be loaded .*processor\.save_pretrained"):
        load_model(str(folder), device="cpu")
