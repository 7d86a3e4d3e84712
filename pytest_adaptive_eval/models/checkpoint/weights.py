"""Find the weight files of a checkpoint and check their headers, without torch."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.inputs import read_regular

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

#: Names that open_clip gives its weights, in order of preference.
OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", WEIGHTS)

#: Upper limit of a JSON file.  A tokenizer with 250 000 words has about 35 MB.
JSON_BYTES = 256_000_000

#: What to do with a damaged file, or with one of Git LFS that only points to another.
_AGAIN = "copy or save the checkpoint again, or fetch its files (git lfs pull)"

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


#: What a folder of another layout is, by the name of a file in it.
_LAYOUTS = {
    re.compile(r".*\.gguf"): (
        'holds GGUF weights; give serve = "llama.cpp" beside it, or the model serve:llama.cpp#{file}'
    ),
    re.compile(r"zero_to_fp32\.py|global_step\d+"): (
        "is a checkpoint of DeepSpeed; convert it with `python zero_to_fp32.py . out --safe_serialization` in it, "
        "and pass out with config.json and the tokenizer"
    ),
    re.compile(r".*\.distcp|pytorch_model_fsdp.*"): (
        "is a distributed checkpoint of torch (DCP); convert it with `accelerate merge-weights dir out`, and pass "
        "out with config.json and the tokenizer"
    ),
}


def other_layout(folder: Path) -> str:
    """Return what a folder of another layout is, and what to do with it; empty for any other folder."""
    names = sorted(path.name for path in folder.iterdir())
    steps = [name for name in names if re.fullmatch(r"checkpoint-\d+", name)]
    if steps:
        last = max(steps, key=lambda name: int(name.removeprefix("checkpoint-")))
        return f"is the output folder of a Trainer; pass a checkpoint in it: {folder / last}"
    if "adapter_config.json" in names:
        base = read_object(folder / "adapter_config.json").get("base_model_name_or_path")
        return (
            f"has an adapter_config.json: it is a PEFT adapter of {base!r:.120}; merge it once, with "
            "`AutoPeftModelForCausalLM.from_pretrained(dir).merge_and_unload().save_pretrained(out)`, the "
            "tokenizer beside it, and pass that folder"
        )
    for pattern, layout in _LAYOUTS.items():
        matching = [name for name in names if pattern.fullmatch(name)]
        if matching:
            return layout.format(file=folder / matching[0])
    return ""


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of a checkpoint; raise CheckpointError if there is none, or it is too large."""
    if path.stat().st_size > JSON_BYTES:
        fault = f"it has more than {JSON_BYTES} bytes"
    else:
        try:
            text = read_regular(path).decode()  # json refuses a byte-order mark in a text, as transformers does
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            fault = str(error)
        else:
            if isinstance(data, dict):
                return data
            fault = f"it holds a {type(data).__name__}"
    raise CheckpointError(f"{path} is not a JSON object ({fault}); {_AGAIN}")


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the files with the weights: ``model.safetensors``, or the files of its index; or raise CheckpointError."""
    names = sorted(path.name for path in folder.iterdir())
    strays = []
    for name in names:
        if _DISTRIBUTED.fullmatch(name):
            strays.append(name)
    if strays:
        fault = (
            f"holds a distributed checkpoint ({strays[0]}), expected {WEIGHTS}; "
            "save it again with `model.save_pretrained(dir)`"
        )
    elif WEIGHTS in names:
        return (folder / WEIGHTS,)
    elif INDEX in names:
        return _shards(folder)
    else:
        fault = other_layout(folder) or _missing_weights(names)
    raise CheckpointError(f"{folder} {fault}")


def _missing_weights(names: list[str]) -> str:
    """Return what a folder without weights has in their place, and what to do."""
    foreign = []
    for name in names:
        if name.endswith(_FOREIGN):
            foreign.append(name)
    if foreign:
        return (
            f"has its weights only as {', '.join(foreign[:3])}, which may run code when opened and is never read; "
            f"expected {WEIGHTS}: {_CONVERT}"
        )
    return f"holds neither {WEIGHTS} nor {INDEX}; save it again with `model.save_pretrained(dir)`"


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
    if isinstance(listed, dict):
        names = list(listed.values())
    else:
        names = []
    for name in names or [None]:
        plain = isinstance(name, str) and name.endswith(".safetensors") and not set(name) & set("/\\\0")
        if not plain or not (folder / name).exists():
            raise CheckpointError(
                f"{index}: its weight_map lists {name!r}, expected plain names of .safetensors files in this folder; "
                "copy or save the checkpoint again, and do not use it unless you know where it comes from"
            )
    return tuple(folder / name for name in sorted(set(names)))


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
        raise CheckpointError(f"{path} is not a sound safetensors file: {fault}; {_AGAIN}")
    return len(shapes), max(itertools.chain.from_iterable(shapes), default=0)


def check_sizes(path: Path, entries: Iterable[tuple[str, object]], tensors: int, largest: int) -> None:
    """Refuse a configuration whose model is far larger than the weights: building it could take for ever.

    Args:
        entries: Keys of the configuration with their values, at any depth.
        tensors, largest: Number of tensors in the files, and their largest dimension.

    Raises:
        CheckpointError: Names the key.
    """
    limits = ((_COUNT, max(tensors, _LEAST_COUNT)), (_SIZE, max(_PACKED * largest, _LEAST_SIZE)))
    for key, value in entries:
        if isinstance(value, list):
            numbers = value
        else:
            numbers = [value]
        for kind, most in limits:
            above = []
            for number in numbers:
                if isinstance(number, int | float) and abs(number) > most:
                    above.append(number)
            if above and kind.search(key):
                raise CheckpointError(
                    f"{path} has {key} = {str(above[0])[:20]}, and the weights are {tensors} tensors with dimensions "
                    f"of at most {largest}; config.json and the weights do not belong together: save both with "
                    "`model.save_pretrained(dir)`"
                )
