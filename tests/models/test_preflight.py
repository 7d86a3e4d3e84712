"""What a checkpoint folder is refused for, before any library reads it."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.models.checkpoint import weights as weights_module
from pytest_adaptive_eval.models.checkpoint.folder import checkpoint_hash, preflight, preflight_open_clip

pytest.importorskip("safetensors", reason="headers of weight files are read by safetensors (extra hf)")


def weights(path: Path, header: object = None, data: bytes = b"\0" * 8, *, length: int | None = None) -> None:
    """A safetensors file made by hand."""
    if header is None:
        header = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The least that passes."""
    made = tmp_path / "step-100"
    made.mkdir()
    (made / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    (made / "tokenizer.json").write_text("{}")
    (made / "tokenizer_config.json").write_text("{}")
    weights(made / "model.safetensors")
    return made


def test_a_sound_folder_passes(folder: Path) -> None:
    for name in ("pytorch_model.bin", "optimizer.pt", "README.md"):
        (folder / name).write_bytes(b"never opened")
    info = preflight(folder)
    assert (info.name, info.architecture, info.model_type, info.kind) == (
        "step-100",
        "LlamaForCausalLM",
        "llama",
        "text",
    )
    assert info.files == ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    assert info.hash == checkpoint_hash(folder)


@pytest.mark.parametrize("key", ["vision_config", "image_token_id", "image_token_index"])
def test_image_and_text_models_are_told_by_their_config(folder: Path, key: str) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llava", key: {} if "config" in key else 3}))
    assert preflight(folder).kind == "image-text"


def test_nothing_heavy_is_imported(folder: Path) -> None:
    import subprocess

    code = (
        "import sys; from pytest_adaptive_eval.models.checkpoint.folder import preflight;"
        "import pytest_adaptive_eval.models; import pytest_adaptive_eval.models.replay;"
        f"preflight({str(folder)!r});"
        "print([m for m in ('torch', 'transformers', 'PIL') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def refused(folder: Path | str, *words: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        preflight(folder)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"num_hidden_layers": 10**8}, "num_hidden_layers = 100000000"),
        ({"n_layer": 10**8}, "n_layer"),
        ({"vision_config": {"depth": 10**7}}, "depth = 10000000"),
        ({"depths": [2, 10**9]}, "depths = 1000000000"),
        ({"num_local_experts": 10**6}, "num_local_experts"),
        ({"hidden_size": 10**6}, "hidden_size = 1000000, and the weights are 1 tensors with dimensions of at most 2"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"num_attention_heads": 10**7}, "num_attention_heads"),
        ({"n_embd": 1e300}, "n_embd = 1e+300"),
        ({"intermediate_size": 10**400}, "intermediate_size = 1000"),
    ],
)
def test_a_model_far_larger_than_its_weights_is_refused_before_it_is_built(
    folder: Path, config: dict[str, object], word: str
) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    refused(folder, "config.json has", word, "do not belong together")


@pytest.mark.parametrize("name", ["conftest.py", "test_x.py", "x_test.py", "__init__.py", "pytest.ini", "tox.ini"])
def test_a_file_that_pytest_would_run_is_refused_by_name(folder: Path, name: str) -> None:
    (folder / name).write_text("")
    refused(folder, f"{folder / name} would be run by pytest")


def test_sizes_that_no_module_has_are_free(folder: Path) -> None:
    free = {"max_position_embeddings": 10**9, "rope_theta": 10**12, "pad_token_id": 10**9, "max_window_layers": 28}
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 4096, **free}))
    assert preflight(folder).model_type == "llama"


def test_a_name_that_is_no_folder_is_not_downloaded() -> None:
    refused("organisation/model", "organisation/model", "nothing is downloaded", "hf download")


def test_a_folder_without_config_is_none(folder: Path) -> None:
    (folder / "config.json").unlink()
    refused(folder, "config.json")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pkl"])
def test_pickles_alone_are_refused_with_the_way_out(folder: Path, name: str) -> None:
    (folder / "model.safetensors").rename(folder / name)
    refused(folder, name, "model.save_pretrained(dir, safe_serialization=True)")


def test_no_weights_at_all(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    refused(folder, "holds neither model.safetensors nor")


@pytest.mark.parametrize(
    "name", ["open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors"]
)
def test_a_folder_of_open_clip_passes_by_each_name_of_its_weights(folder: Path, name: str) -> None:
    whole = preflight_open_clip(folder).hash
    (folder / "config.json").rename(folder / "open_clip_config.json")
    (folder / "model.safetensors").rename(folder / name)
    info = preflight_open_clip(folder)
    assert (info.folder, info.name, info.model_type, info.kind) == (folder, "step-100", "open_clip", "image-text")
    assert info.files == tuple(sorted(["open_clip_config.json", name, "tokenizer.json", "tokenizer_config.json"]))
    assert info.hash != whole


def test_a_folder_of_open_clip_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "open_clip_pytorch_model.bin")
    with pytest.raises(CheckpointError, match="has no weights in open_clip_model"):
        preflight_open_clip(folder)


def test_weights_by_another_name(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    refused(folder, "holds neither model.safetensors nor model.safetensors.index.json")


def test_a_distributed_checkpoint_is_refused(folder: Path) -> None:
    weights(folder / "shard-00000-model-00001-of-00001.safetensors")
    refused(folder, "distributed")


@pytest.mark.parametrize("name", ["adapter_config.json", "audio_tokenizer_config.json"])
def test_files_that_lead_to_another_repository_are_refused(folder: Path, name: str) -> None:
    (folder / name).write_text('{"base_model_name_or_path": "/elsewhere"}')
    refused(folder, name)


@pytest.mark.parametrize(
    "entry",
    ["../model.safetensors", "/tmp/model.safetensors", "model.bin", "sub/a.safetensors", "..", "a\\b.safetensors"],
)
def test_an_index_may_only_list_files_beside_it(folder: Path, entry: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": entry}}))
    refused(folder, "index.json", repr(entry))


@pytest.mark.parametrize("weight_map", [None, {}, [], {"w": 3}])
def test_an_index_needs_a_weight_map(folder: Path, weight_map: object) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    refused(folder, "weight_map")


def test_listed_shards_must_exist(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    listed = {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    refused(folder, "lists 'model-00002-of-00002.safetensors'")
    weights(folder / "model-00002-of-00002.safetensors")
    assert len(preflight(folder).files) == 6


@pytest.mark.parametrize(
    "key",
    ["auto_map", "attn_implementation", "_attn_implementation", "_attn_implementation_internal", "quantization_config",
     "_experts_implementation", "transformers_weights", "fusion_config"],
)  # fmt: skip
@pytest.mark.parametrize("nested", [False, True], ids=["top", "nested"])
def test_config_keys_that_run_other_code_are_refused(folder: Path, key: str, nested: bool) -> None:
    extra = {key: {"AutoModel": "evil.Model"} if key == "auto_map" else "organisation/kernel"}
    config = {"model_type": "llama", **({"parts": [{"text_config": extra}]} if nested else extra)}
    (folder / "config.json").write_text(json.dumps(config))
    refused(folder, "config.json", f"`{key}`")


def test_what_older_releases_write_by_themselves_is_no_fault(folder: Path) -> None:
    config = {"model_type": "llama", "_attn_implementation_autoset": True, "quantization_config": None, "auto_map": {}}
    (folder / "config.json").write_text(json.dumps(config))
    assert preflight(folder).model_type == "llama"


@pytest.mark.parametrize("name", ["tokenizer_config.json", "processor_config.json", "preprocessor_config.json"])
def test_code_in_tokenizer_and_processor_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text(
        json.dumps({"image_processor": {"auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]}}})
    )
    refused(folder, name, "`auto_map`")


def test_a_vocabulary_may_hold_any_word(folder: Path) -> None:
    (folder / "vocab.json").write_text('{"auto_map": 1}')
    assert "vocab.json" in preflight(folder).files


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json", "chat_template.json"])
@pytest.mark.parametrize("text", ["{", "[1]", "\xff\xfe", "[" * 100_000])
def test_malformed_json_names_the_file(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="latin-1")
    refused(folder, str(folder / name))


def test_a_file_far_too_large_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_module, "JSON_BYTES", 70)
    (folder / "tokenizer.json").write_text(json.dumps({"vocab": "x" * 70}))
    refused(folder, "tokenizer.json", "more than 70 bytes")


@pytest.mark.parametrize("value", [None, 3, "", {}])
def test_a_config_needs_a_model_type(folder: Path, value: object) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": value}))
    refused(folder, "model_type")


def entry(**changes: object) -> dict[str, object]:
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


@pytest.mark.parametrize(
    ("header", "data"),
    [
        (entry(data_offsets=[0, 800]), b"\0" * 8),
        (entry(shape=[200], data_offsets=[0, 800]), b"\0" * 8),
        (entry(data_offsets=[-8, 0]), b"\0" * 8),
        (entry(data_offsets=[8, 0]), b"\0" * 8),
        (entry(data_offsets=[8, 16]), b"\0" * 16),
        (entry(shape=[True, 2]), b"\0" * 8),
        (entry(shape=2), b"\0" * 8),
        (entry(dtype="PICKLE"), b"\0" * 8),
        (entry(dtype=["F32"]), b"\0" * 8),
        (entry() | {"v": entry()["w"]}, b"\0" * 8),
        (entry(), b"\0" * 9),
        ({"w": 3}, b""),
        ({"__metadata__": {}}, b""),
        (b"[]", b""),
        (b"{", b""),
    ],
)
def test_a_header_that_lies_is_refused(folder: Path, header: object, data: bytes) -> None:
    weights(folder / "model.safetensors", header, data)
    refused(folder, "model.safetensors is not a sound safetensors file")


def test_a_pointer_in_place_of_the_weights_is_named(folder: Path) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")
    refused(folder, "model.safetensors is not a sound safetensors file", "git lfs pull")


#: Other layouts: files and folders instead of the sound folder's, and part of the refusal.
LAYOUTS = {
    "output of a Trainer": (
        {"checkpoint-50/": "", "checkpoint-200/": "", "trainer_state.json": "{}"},
        "checkpoint-200",
    ),
    "adapter": (
        {"adapter_config.json": '{"base_model_name_or_path": "org/base"}'},
        "it is a PEFT adapter of 'org/base'; merge it once, with `AutoPeftModelForCausalLM",
    ),
    "GGUF": ({"model.gguf": ""}, 'serve = "llama.cpp" beside it, or the model serve:llama.cpp#'),
    "DeepSpeed": ({"global_step12/": "", "zero_to_fp32.py": ""}, "python zero_to_fp32.py . out"),
    "DCP": ({".metadata": "", "__0_0.distcp": ""}, "accelerate merge-weights dir out"),
}


@pytest.mark.parametrize("config", [False, True], ids=["without config.json", "with config.json"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders_of_other_layouts_are_named_with_the_converter(folder: Path, layout: str, config: bool) -> None:
    (folder / "model.safetensors").unlink()
    if not config:
        (folder / "config.json").unlink()
    files, part = LAYOUTS[layout]
    for name, text in files.items():
        (folder / name).mkdir() if name.endswith("/") else (folder / name).write_text(text)
    refused(folder, part)


def test_a_gguf_file_a_pointer_and_a_byte_order_mark_are_named(folder: Path) -> None:
    (folder / "model.gguf").write_bytes(b"GGUF")
    refused(folder / "model.gguf", "give the model serve:llama.cpp#")
    config = (folder / "config.json").read_bytes()
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + config)
    refused(folder, "config.json is not a JSON object", "BOM")
    (folder / "config.json").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    refused(folder, "config.json", "Git LFS pointer", "git lfs pull")


@pytest.mark.parametrize("length", [10**18, 400])
def test_a_header_longer_than_its_file_is_refused(folder: Path, length: int) -> None:
    weights(folder / "model.safetensors", length=length)
    refused(folder, "model.safetensors", "header")


def test_an_empty_weight_file_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")
    refused(folder, "model.safetensors")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "notes.bin"])
def test_links_out_of_the_folder_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).touch()
    (folder / name).replace(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    refused(folder, str(folder / name), "symbolic link")


def test_a_link_inside_the_folder_and_to_the_folder_is_fine(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    (folder / "model.safetensors").symlink_to("weights.safetensors")
    (tmp_path / "latest").symlink_to(folder)
    assert preflight(tmp_path / "latest").name == "latest"


@pytest.mark.parametrize("target", ["model.safetensors", "gone"])
def test_links_that_lead_nowhere_are_refused(folder: Path, target: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(target)
    refused(folder, "model.safetensors", "cannot be followed")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_would_block_and_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "chat_template.jinja")
    refused(folder, "chat_template.jinja", "neither")


@pytest.fixture
def repository(folder: Path, tmp_path: Path) -> Path:
    """The same files as the hub cache lays them out."""
    made = tmp_path / "models--organisation--name"
    snapshot = made / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (made / "blobs").mkdir()
    (made / "refs").mkdir()
    (made / "refs" / "main").write_text("abc123")
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(made / "blobs" / str(number))
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    return made


def test_a_hub_cache_is_found_by_its_root_or_snapshot(repository: Path) -> None:
    by_root, by_snapshot = preflight(repository), preflight(repository / "snapshots" / "abc123")
    assert by_root == by_snapshot
    assert by_root.name == "organisation/name"


def test_a_folder_named_snapshots_alone_is_no_hub_cache(folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "snapshots"
    plain.mkdir()
    folder.rename(plain / "step-100")
    assert preflight(plain / "step-100").name == "step-100"
    beside = tmp_path / "models--me--mine" / "steps"
    beside.mkdir(parents=True)
    (plain / "step-100").rename(beside / "step-100")
    assert preflight(beside / "step-100").name == "step-100"


def test_a_reference_to_no_snapshot_is_an_error(repository: Path) -> None:
    (repository / "refs" / "main").write_text("../../elsewhere")
    refused(repository, "refs/main", "abc123")
    (repository / "refs" / "main").unlink()
    assert preflight(repository).folder.name == "abc123"


def test_a_snapshot_may_not_link_out_of_its_repository(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    (repository / "snapshots" / "abc123" / "vocab.json").symlink_to(tmp_path / "other.json")
    refused(repository, "vocab.json", "symbolic link")


def test_the_hash_covers_what_makes_the_model_and_no_more(folder: Path) -> None:
    before = checkpoint_hash(folder)
    for name in ("optimizer.pt", "trainer_state.json", "README.md", "all_results.json"):
        (folder / name).write_text("x")
    assert checkpoint_hash(folder) == before
    seen = {before}
    (folder / "additional_chat_templates").mkdir()
    changed = (
        "config.json generation_config.json tokenizer.json tokenizer.model vocab.txt merges.txt "
        "chat_template.jinja additional_chat_templates/tools.jinja preprocessor_config.json"
    )
    for name in changed.split():
        (folder / name).write_text('{"changed": 1}')
        seen.add(checkpoint_hash(folder))
    weights(folder / "model.safetensors", data=b"\1" * 8)
    seen.add(checkpoint_hash(folder))
    assert len(seen) == 11


def test_the_hash_does_not_depend_on_where_the_folder_is(folder: Path, tmp_path: Path) -> None:
    before = checkpoint_hash(folder)
    assert checkpoint_hash(folder.rename(tmp_path / "elsewhere")) == before


def test_cached_hashes_are_used_and_renewed(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = checkpoint_hash(folder, cache=cache)
    assert first == checkpoint_hash(folder)
    stored = cache / "checkpoint-hashes.json"
    forged = json.loads(stored.read_text())
    forged[str(folder / "model.safetensors")]["sha256"] = "0" * 64
    stored.write_text(json.dumps(forged))
    assert checkpoint_hash(folder, cache=cache) != first
    weights(folder / "model.safetensors", data=b"\1" * 8)
    assert checkpoint_hash(folder, cache=cache) == checkpoint_hash(folder)


@pytest.mark.parametrize("damage", ["", "[", "[]", '{"a": 1}'])
def test_a_damaged_cache_costs_time_only(folder: Path, tmp_path: Path, damage: str) -> None:
    (tmp_path / "checkpoint-hashes.json").write_text(damage)
    assert checkpoint_hash(folder, cache=tmp_path) == checkpoint_hash(folder)
    assert list(json.loads((tmp_path / "checkpoint-hashes.json").read_text()))
    assert checkpoint_hash(folder, cache=folder / "config.json") == checkpoint_hash(folder)
