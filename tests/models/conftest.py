"""Tiny random checkpoints, saved as a trainer saves them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from laboratory import comparable, lab, project  # noqa: F401 - fixtures
from real_servers import gguf_file, llama_server, served_checkpoint, transformers_server  # noqa: F401 - fixtures

SENTENCES = [
    "how many circles are there in the picture",
    "the answer is seven and the question was two plus five",
    "a b c d e f g 0 1 2 3 4 5 6 7 8 9",
]
SPECIAL = ["<pad>", "</s>", "<s>", "<|user|>", "<|assistant|>", "<image>", "<|image_pad|>", "<|video_pad|>",
           "<|vision_start|>", "<|vision_end|>"]  # fmt: skip

CHAT = (
    "{% for m in messages %}<|{{ m['role'] }}|>"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}IMAGE{% else %}{{ p['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@dataclass
class Checkpoints:
    """Makes checkpoint folders, one of each kind, and hands out copies of them."""

    base: Path

    def tokenizer(self, **options: Any) -> Any:
        """A byte-level BPE over a few sentences."""
        import transformers
        from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
        from tokenizers.models import BPE

        backend = Tokenizer(BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=SPECIAL,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        backend.train_from_iterator(SENTENCES, trainer)
        fast: Any = transformers.PreTrainedTokenizerFast
        return fast(tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", bos_token="<s>", **options)

    def sizes(self, **more: Any) -> dict[str, Any]:
        """Configuration values that every text model here shares."""
        return {
            "vocab_size": 320,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": 128,
            # Far apart logits: rounding in another order must not turn an argmax.
            "initializer_range": 0.4,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "bos_token_id": 2,
            **more,
        }

    def text(self, name: str) -> Path:
        """The folder of a text model of a family; built once."""
        folder = self.base / name
        if not folder.exists():
            _FAMILIES[name](self, folder)
            trainer_output(folder)
        return folder

    def copy(self, name: str, to: Path) -> Path:
        """A copy of `text(name)` to spoil."""
        shutil.copytree(self.text(name), to / name)
        return to / name


def save_text(checkpoints: Checkpoints, folder: Path, model: str, *, half: bool = False, **options: Any) -> None:
    """Save a randomly initialised model and its tokenizer, as `Trainer.save_model` does."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{model}Config")(**checkpoints.sizes(**options.pop("config", {})))
    made = getattr(transformers, f"{model}ForCausalLM")(config)
    (made.half() if half else made).save_pretrained(folder, **options.pop("save", {}))
    checkpoints.tokenizer(**options).save_pretrained(folder)


def trainer_output(folder: Path) -> None:
    """What a trainer leaves beside the weights: pickles, none of which may ever be opened."""
    for name in ("training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (folder / name).write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    (folder / "trainer_state.json").write_text('{"global_step": 10}')


def _llama(checkpoints: Checkpoints, folder: Path) -> None:
    save_text(checkpoints, folder, "Llama", config={"tie_word_embeddings": True})


def _qwen2(checkpoints: Checkpoints, folder: Path) -> None:
    save_text(checkpoints, folder, "Qwen2", save={"max_shard_size": "20KB"})
    assert len(list(folder.glob("*.safetensors"))) > 1


def _qwen3(checkpoints: Checkpoints, folder: Path) -> None:
    save_text(checkpoints, folder, "Qwen3", chat_template=CHAT)


def _gemma2(checkpoints: Checkpoints, folder: Path) -> None:
    save_text(checkpoints, folder, "Gemma2", config={"sliding_window": 8, "query_pre_attn_scalar": 8})


def _phi3(checkpoints: Checkpoints, folder: Path) -> None:
    save_text(checkpoints, folder, "Phi3", half=True)


def _mistral(checkpoints: Checkpoints, folder: Path) -> None:
    save_text(checkpoints, folder, "Mistral", config={"sliding_window": 8})


_FAMILIES: dict[str, Callable[[Checkpoints, Path], None]] = {
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "gemma2": _gemma2,
    "phi3": _phi3,
    "mistral": _mistral,
}


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    """Checkpoint folders, each built when it is first asked for."""
    torch = pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
    pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")
    torch.set_num_threads(1)
    return Checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def edit_json() -> Callable[..., None]:
    """Change top-level keys of a JSON file."""

    def edit(path: Path, **changes: Any) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return edit


@pytest.fixture
def edit_weights() -> Callable[..., None]:
    """Rewrite model.safetensors: None drops a tensor, anything else is put there."""

    def edit(folder: Path, **changes: Any) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        for name, tensor in changes.items():
            if tensor is None:
                del tensors[name]
            else:
                tensors[name] = tensor
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return edit


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Any look-up or connection is noted and refused."""
    import socket

    tried: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        tried.append(args)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield tried
    assert not tried
