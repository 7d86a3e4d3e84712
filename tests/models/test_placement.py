"""Devices, attention, quantised weights, and memory of checkpoints."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.checkpoint.placement import Placement, check_memory
from pytest_adaptive_eval.typed_tables import read_options

torch: Any = pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
transformers: Any = pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")

from pytest_adaptive_eval.models.checkpoint import loading, placement  # noqa: E402
from pytest_adaptive_eval.models.checkpoint import model as model_module  # noqa: E402
from pytest_adaptive_eval.models.checkpoint.generation import Generator  # noqa: E402
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel  # noqa: E402

PROMPTS = ["how many circles are there", "seven", "the answer is two plus five and the question was seven 0 1 2", "a"]
ITEMS = [Item(f"i{n}", prompt) for n, prompt in enumerate(PROMPTS)]
GIB = 2**30


def load(folder: Path, **options: Any) -> TransformersModel:
    return TransformersModel.load(folder, **{"max_tokens": 12, **options})


def texts(subject: TransformersModel) -> list[str]:
    return [completion.text for completion in subject.answer(ITEMS)]


def test_a_missing_device_is_refused_before_the_weights_are_loaded(checkpoints: Any) -> None:
    kind, spec = resolve(str(checkpoints.text("llama")))
    with pytest.raises(ConfigError, match=r"device 'cuda:99' is not there: torch finds [0-9]+ CUDA devices; use auto"):
        kind.examine(spec, {"device": "cuda:99"})
    assert kind.examine(spec, {"device": "cpu"}) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device_map": "all"}, "device_map is 'all', expected \"auto\", or a table of modules with devices"),
        ({"device_map": {}}, "a table of modules with devices"),
        ({"device_map": {"": "disk"}}, "without disk"),
        ({"device_map": "auto", "device": "cpu"}, "device is 'cpu' beside a device_map; give one of them"),
        ({"attention": "kernels/fast"}, "attention is 'kernels/fast', expected 'eager' or 'flash_attention_2'"),
        ({"attention": "flash_attention_3"}, "needs the package flash_attn_interface, which is not installed"),
        ({"compile": 1}, "compile is 1, expected true or false"),
    ],
)
def test_wrong_placement_is_refused_with_what_was_expected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_options(Placement, options, "a checkpoint")
    assert message in str(caught.value)


def test_a_device_map_gives_the_answers_of_one_device(checkpoints: Any) -> None:
    pytest.importorskip("accelerate", reason="device_map needs accelerate (extra accelerate)")
    folder = checkpoints.text("llama")
    expected = texts(load(folder, device="cpu"))
    for device_map in ({"": "cpu"}, "auto"):
        subject = load(folder, device_map=device_map)
        assert texts(subject) == expected
    assert load(folder, device_map={"": "cpu"}).identity.environment["device"] == "cpu"


def test_attention_is_as_asked(checkpoints: Any) -> None:
    subject = load(checkpoints.text("llama"), device="cpu", attention="eager")
    assert subject._generator is not None
    assert subject._generator.loaded.model.config._attn_implementation == "eager"
    assert texts(subject) == texts(load(checkpoints.text("llama"), device="cpu"))


def test_a_model_is_compiled_on_request(checkpoints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **options: compiled.append(options))
    load(checkpoints.text("llama"), device="cpu")
    assert compiled == []
    load(checkpoints.text("llama"), device="cpu", compile=True)
    assert compiled == [{"dynamic": True}]


# Memory


def test_weights_count_in_the_type_they_are_loaded_as(checkpoints: Any) -> None:
    folder = checkpoints.text("llama")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    numbers = sum(parameter.numel() for parameter in model.parameters())
    found = {dtype: placement.weight_bytes(folder, ("model.safetensors",), dtype) for dtype in ("float32", "bfloat16")}
    assert found == {"float32": 4 * numbers, "bfloat16": 2 * numbers}


def test_weights_that_do_not_fit_are_refused_before_loading(checkpoints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoints.text("llama")
    monkeypatch.setattr(loading, "free_bytes", lambda device: 1000)
    monkeypatch.setattr(loading, "_model", lambda *given: pytest.fail("loaded"))
    with pytest.raises(ConfigError, match=r"llama: 0\.0 GiB of weights, 0\.0 free on cpu; free memory"):
        load(folder, device="cpu")


def test_the_sentence_about_memory_names_need_and_devices() -> None:
    check_memory(Path("m"), 11 * GIB, {"cuda:0": 11 * GIB})
    check_memory(Path("m"), 99 * GIB, {"mps": None})
    check_memory(Path("m"), 15 * GIB, {"cuda:0": 11 * GIB, "cpu": 4 * GIB})
    with pytest.raises(ConfigError, match=r"m: 15\.2 GiB of weights, 11\.0 free on cuda:0; free memory, take a"):
        check_memory(Path("m"), int(15.2 * GIB), {"cuda:0": 11 * GIB})


@pytest.mark.slow
def test_spent_memory_halves_the_batch_and_says_so(
    checkpoints: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    subject = load(checkpoints.text("llama"), device="cpu", batch_size=8)
    items = [Item(f"i{n}", f"{PROMPTS[n % 4]} {n}") for n in range(20)]
    expected = subject.answer(items)
    generate, sizes = Generator.generate, []

    def short_of_memory(self: Any, batch: Any) -> Any:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
        return generate(self, batch)

    monkeypatch.setattr(Generator, "generate", short_of_memory)
    with caplog.at_level(logging.WARNING):
        assert subject.answer(items) == expected
    assert sizes == [8, 4, *[2] * 10]
    assert [record.getMessage() for record in caplog.records] == [
        "llama: out of memory, so its batches are of 4 questions from now on",
        "llama: out of memory, so its batches are of 2 questions from now on",
    ]


def test_batches_on_a_gpu_are_as_large_as_its_memory_holds(checkpoints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoints.text("llama"))
    config = model.config
    assert config.max_position_embeddings < 1024  # so that a row has the tokens of the window
    width = config.hidden_size // config.num_attention_heads * config.num_key_value_heads
    tokens = config.max_position_embeddings * (2 * config.num_hidden_layers * width + 3 * config.intermediate_size)
    row = 4 * (tokens + 3 * config.vocab_size)
    for free, devices, expected in (
        (int(20.4 * row / 0.8), ["cuda:0"], 20),
        (int(20.4 * row / 0.8), ["cuda:0", "cuda:1"], 40),
        (10**15, ["cuda:0"], 256),
        (0, ["cuda:0"], 1),
        (10**15, ["cuda:0", "cpu"], 16),
        (10**15, ["mps"], 16),
    ):
        monkeypatch.setattr(model_module, "free_bytes", lambda _device, free=free: free)
        assert model_module.find_batch_size(model, devices, 64) == expected


def test_the_batch_size_that_was_found_is_recorded(checkpoints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoints.text("llama")
    assert load(folder, device="cpu").identity.environment["batch_size"] == 16
    monkeypatch.setattr(model_module, "find_batch_size", lambda _model, _devices, _tokens: 100)
    assert load(folder, device="cpu", batch_size=7).identity.environment["batch_size"] == 7
    subject = load(folder, device="cpu")
    assert (subject.shared_batch, subject.identity.environment["batch_size"]) == (100, 100)
    assert subject._scorer is not None
    assert subject._scorer._rater._batch_size == 20  # a row of the prompt and four of texts each
    generate = Generator.generate

    def short_of_memory(self: Any, batch: Any) -> Any:
        if len(batch) > 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return generate(self, batch)

    monkeypatch.setattr(Generator, "generate", short_of_memory)
    subject.answer(ITEMS)
    assert subject.identity.environment["batch_size"] == 2


def test_one_question_that_takes_all_memory_is_an_error(checkpoints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = load(checkpoints.text("llama"), device="cpu", batch_size=2)

    def without_memory(self: Any, batch: Any) -> Any:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Generator, "generate", without_memory)
    assert {completion.status for completion in subject.answer(ITEMS)} == {Status.ERROR}


# Quantised weights


def copied(folder: Path, target: Path, settings: object) -> Path:
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))
    return target


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quant_method": "aqlm"}, "method 'aqlm', expected one of bitsandbytes, gptq, awq, compressed-tensors, fp8"),
        ({"bits": 4}, "method 'None', expected one of"),
        ("organisation/kernel", "method 'organisation/kernel'"),
        ({"quant_method": "fp8", "auto_map": {"A": "b.C"}}, "`auto_map`"),
    ],
)
def test_other_quantisations_are_refused(checkpoints: Any, tmp_path: Path, settings: object, message: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        load(copied(checkpoints.text("llama"), tmp_path / "model", settings))
    assert message in str(caught.value)


def test_a_quantisation_without_its_package_names_the_extra(
    checkpoints: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", {}.get)
    folder = copied(checkpoints.text("llama"), tmp_path / "model", {"quant_method": "awq", "bits": 4})
    with pytest.raises(CheckpointError, match=r"awq need accelerate and gptqmodel; pip install .*\[gptq\]"):
        load(folder)


def test_a_package_that_fetches_code_is_refused(
    checkpoints: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    folder = copied(checkpoints.text("llama"), tmp_path / "model", {"quant_method": "bitsandbytes"})
    with pytest.raises(CheckpointError, match="fetches code from the hub where the package kernels is installed"):
        load(folder)


def test_fp8_weights_are_read_as_plain_ones(checkpoints: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="8-bit weights need accelerate (extra accelerate)")
    from safetensors.torch import load_file, save_file

    source = checkpoints.text("llama")
    settings = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [16, 16]}
    quantised = copied(source, tmp_path / "fp8", settings)
    rounded = shutil.copytree(source, tmp_path / "rounded")
    small, plain = {}, {}
    for name, tensor in load_file(source / "model.safetensors").items():
        small[name], plain[name] = tensor, tensor
        if name.endswith("_proj.weight"):
            value = tensor.float()
            rows, columns = (-(-size // 16) for size in value.shape)
            scale = torch.full((rows, columns), float(value.abs().max()) / 448.0)
            small[name] = (value / scale[0, 0]).to(torch.float8_e4m3fn)
            small[f"{name}_scale_inv"] = scale
            plain[name] = (small[name].float() * scale[0, 0]).to(tensor.dtype)
    save_file(small, quantised / "model.safetensors", {"format": "pt"})
    save_file(plain, rounded / "model.safetensors", {"format": "pt"})
    assert texts(load(quantised, device="cpu")) == texts(load(rounded, device="cpu"))


@pytest.mark.slow
def test_4_bit_weights_are_read(checkpoints: Any, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="4-bit weights need bitsandbytes (extra bitsandbytes)")
    source, target = checkpoints.text("llama"), tmp_path / "nf4"
    shutil.copytree(source, target)
    larger = {"hidden_size": 128, "intermediate_size": 256, "head_dim": 32, "num_attention_heads": 4}
    config = transformers.AutoConfig.from_pretrained(source, **larger, num_key_value_heads=4)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(target)
    settings = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        target, quantization_config=settings, device_map={"": "cpu"}, dtype=torch.float32
    )
    model.save_pretrained(target)
    subject = load(target, device="cpu")
    assert subject._generator is not None
    assert subject._generator.info.quantised == "bitsandbytes"
    found = subject.answer(ITEMS)
    assert {completion.status for completion in found} <= {Status.OK, Status.TRUNCATED}
    assert found == load(target, device="cpu").answer(ITEMS)
