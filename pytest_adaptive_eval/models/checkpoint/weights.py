"""Find the weight files of a checkpoint and check their headers, without torch."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.inputs import open_regular, read_regular

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

#: Names that open_clip gives its weights, in order of preference.
OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", WEIGHTS)

#: Upper limit of a JSON file.  A tokenizer with 250 000 words has about 35 MB.
JSON_BYTES = 256_000_000

#: First bytes of the file that stands for another one in a repository with Git LFS.
_LFS = b"version https://git-lfs.github.com/spec/"

#: Suffixes of files that are unpickled when opened, or that belong to another library.
_FOREIGN = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack", ".gguf", ".onnx")

#: Files of torch.distributed.checkpoint, which transformers would read instead.
_DISTRIBUTED = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")

#: Keys of a configuration with the number of its modules; each has a tensor.  Small models keep defaults of large ones.
_COUNT = re.compile(r"(^|_)(n_?)?(layers?|depths?|experts?|blocks?|stages?|towers?)$")
_LEAST_COUNT = 1000
#: Keys with a dimension of its tensors, which fused and packed weights multiply or divide.
_SIZE = re.compile(r"(^|_)(size|dim|heads?|features|channels|rank|width|d_model|d_ff|n_embd|n_inner)s?$")
_LEAST_SIZE, _PACKED = 100_000, 8

_CONVERT = (
    "convert it once where you trust it, with "
    "`AutoModelForCausalLM.from_pretrained(dir).save_pretrained(dir, safe_serialization=True)` "
    "(`model.save_pretrained(dir, safe_serialization=True)`), and pass that folder"
)


def other_layout(folder: Path) -> str:
    """Return what a folder of another layout is, and what to do with it; empty for any other folder."""
    names = sorted(path.name for path in folder.iterdir())
    steps = sorted(int(match[1]) for name in names if (match := re.fullmatch(r"checkpoint-(\d+)", name)))
    if steps:
        return f"is the output folder of a Trainer; pass a checkpoint in it: {folder / f'checkpoint-{steps[-1]}'}"
    if "adapter_config.json" in names:
        base = read_object(folder / "adapter_config.json").get("base_model_name_or_path")
        return (
            f"has an adapter_config.json: it is a PEFT adapter of {base!r:.120}; merge it once, with "
            "`AutoPeftModelForCausalLM.from_pretrained(dir).merge_and_unload().save_pretrained(out)`, the "
            "tokenizer beside it, and pass that folder"
        )
    if gguf := [name for name in names if name.endswith(".gguf")]:
        return (
            f'holds GGUF weights; give serve = "llama.cpp" beside it, or the model serve:llama.cpp#{folder / gguf[0]}'
        )
    if "zero_to_fp32.py" in names or any(re.fullmatch(r"global_step\d+", name) for name in names):
        return (
            "is a checkpoint of DeepSpeed; convert it with `python zero_to_fp32.py . out --safe_serialization` in it, "
            "and pass out with config.json and the tokenizer"
        )
    if any(name.endswith(".distcp") or name.startswith("pytorch_model_fsdp") for name in names):
        return (
            "is a distributed checkpoint of torch (DCP); convert it with `accelerate merge-weights dir out`, and pass "
            "out with config.json and the tokenizer"
        )
    return ""


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of a checkpoint; raise CheckpointError if there is none, or it is too large."""
    size = path.stat().st_size
    if size > JSON_BYTES:
        raise CheckpointError(f"{path} has {size} bytes, expected at most {JSON_BYTES}; is it the right file?")
    content = read_regular(path)
    if content.startswith(_LFS):
        raise CheckpointError(f"{path} is a pointer of Git LFS and not the file; fetch it: git lfs pull")
    if content.startswith(b"\xef\xbb\xbf"):
        raise CheckpointError(
            f"{path} begins with a byte-order mark, which transformers does not read; save it as UTF-8 without one"
        )
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}); save the checkpoint again") from error
    if not isinstance(data, dict):
        raise CheckpointError(
            f"{path} holds a JSON {type(data).__name__}, expected an object; save the checkpoint again"
        )
    return data


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the files with the weights: ``model.safetensors``, or the files of its index; or raise CheckpointError."""
    if strays := sorted(p.name for p in folder.iterdir() if _DISTRIBUTED.fullmatch(p.name)):
        raise CheckpointError(
            f"{folder} holds a distributed checkpoint ({strays[0]}), expected {WEIGHTS}; "
            "save it again with `model.save_pretrained(dir)`"
        )
    if (folder / WEIGHTS).exists():
        return (folder / WEIGHTS,)
    if (folder / INDEX).exists():
        return _shards(folder)
    if layout := other_layout(folder):
        raise CheckpointError(f"{folder} {layout}")
    names = sorted(path.name for path in folder.iterdir())
    if others := [name for name in names if name.endswith(".safetensors")]:
        raise CheckpointError(
            f"{folder} has {', '.join(others[:3])} but neither {WEIGHTS} nor {INDEX}; "
            "the copy is incomplete or uses names of its own: save it again with `model.save_pretrained(dir)`"
        )
    if foreign := [name for name in names if name.endswith(_FOREIGN)]:
        raise CheckpointError(
            f"{folder} has its weights only as {', '.join(foreign[:3])}, which may run code when opened and "
            f"is never read; expected {WEIGHTS}: {_CONVERT}"
        )
    raise CheckpointError(
        f"{folder} holds no weights, expected {WEIGHTS} or {INDEX}; save it with `model.save_pretrained(dir)`"
    )


def open_clip_weights(folder: Path) -> tuple[Path, ...]:
    """Return the one file with the weights of an open_clip model; raise CheckpointError if it does not exist."""
    for name in OPEN_CLIP:
        if (folder / name).exists():
            return (folder / name,)
    raise CheckpointError(
        f"{folder} has no weights in {' or '.join(OPEN_CLIP)}, and files of other kinds are never opened, since that "
        "may run code; save the model once where you trust it, with "
        f"`safetensors.torch.save_model(model, '{OPEN_CLIP[0]}')`"
    )


def _shards(folder: Path) -> tuple[Path, ...]:
    index = folder / INDEX
    listed = read_object(index).get("weight_map")
    if not isinstance(listed, dict) or not listed or not all(isinstance(name, str) for name in listed.values()):
        raise CheckpointError(f"{index} has no `weight_map` of tensor to file name; save the checkpoint again")
    for name in sorted(set(listed.values())):
        if not name.endswith(".safetensors") or "\\" in name or "\0" in name or PurePosixPath(name).name != name:
            raise CheckpointError(
                f"{index} lists the file {name!r}, expected the plain name of a .safetensors file in the same folder; "
                "do not use this checkpoint unless you know where it comes from"
            )
        if not (folder / name).exists():
            raise CheckpointError(
                f"{index} lists {name!r}, which is missing from {folder}; copy or save the checkpoint again"
            )
    return tuple(folder / name for name in sorted(set(listed.values())))


def check_header(path: Path) -> tuple[int, int]:
    """Return a safetensors file's number of tensors and their largest dimension; raise CheckpointError if none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as tensors:
            shapes = [tensors.get_slice(name).get_shape() for name in tensors.keys()]  # noqa: SIM118 -- not a mapping
            fault = "" if shapes else "it holds no tensor"
    except SafetensorError as error:
        fault = str(error)
    if fault:
        with open_regular(path) as file:
            if file.read(len(_LFS)) == _LFS:
                raise CheckpointError(f"{path} is a pointer of Git LFS and not the weights; fetch them: git lfs pull")
        raise CheckpointError(f"{path} is not a sound safetensors file: {fault}; copy or save the checkpoint again")
    return len(shapes), max(itertools.chain.from_iterable(shapes), default=0)


def check_sizes(path: Path, entries: Iterable[tuple[str, object]], tensors: int, largest: int) -> None:
    """Refuse a configuration whose model is far larger than the weights: building it could take for ever.

    Args:
        entries: Keys of the configuration with their values, at any depth.
        tensors, largest: Number of tensors in the files, and their largest dimension.

    Raises:
        CheckpointError: Names the key.
    """
    for key, value in entries:
        numbers = value if isinstance(value, list) else [value]
        for kind, most in ((_COUNT, max(tensors, _LEAST_COUNT)), (_SIZE, max(_PACKED * largest, _LEAST_SIZE))):
            above = [number for number in numbers if isinstance(number, int | float) and abs(number) > most]
            if above and kind.search(key):
                raise CheckpointError(
                    f"{path} has {key} = {str(above[0])[:20]}, and the weights are {tensors} tensors with dimensions "
                    f"of at most {largest}; config.json and the weights do not belong together: save both with "
                    "`model.save_pretrained(dir)`"
                )
