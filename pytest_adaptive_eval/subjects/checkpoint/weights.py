"""Which safetensors files a checkpoint has, and whether their headers are sane.

Nothing here needs torch: a header is eight bytes of length and then JSON.  A
header that lies about its offsets is refused before any other library maps the
file.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.inputs import open_regular, read_regular

__all__ = ["check_header", "open_clip_weights", "read_object", "weight_files"]

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

#: What open_clip calls its weights, the first that is there.
OPEN_CLIP = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", WEIGHTS)

#: The format's own limit for a header.
HEADER_BYTES = 100_000_000

#: A tokenizer of a quarter of a million words takes about 35 MB.
JSON_BYTES = 256_000_000

_BITS = (
    dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8)
    | dict.fromkeys(("U16", "I16", "F16", "BF16"), 16)
    | dict.fromkeys(("U32", "I32", "F32"), 32)
    | dict.fromkeys(("U64", "I64", "F64", "C64"), 64)
    | {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
)

#: Ends of files that are unpickled when they are opened, or that belong to another library.
_FOREIGN = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".h5", ".msgpack", ".gguf", ".onnx")

#: A folder with such a name is read by torch.distributed.checkpoint instead.
_DISTRIBUTED = re.compile(r"shard-\d{5}-model-\d{5}-of-\d{5}\.safetensors")

_CONVERT = (
    "convert it once where you trust it, with "
    "`AutoModelForCausalLM.from_pretrained(dir).save_pretrained(dir, safe_serialization=True)` "
    "(`model.save_pretrained(dir, safe_serialization=True)`), and pass that folder"
)


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of a checkpoint.

    Raises
    ------
    CheckpointError
        The file is too large, is no JSON, or holds something else than an object.
    """
    size = path.stat().st_size
    if size > JSON_BYTES:
        raise CheckpointError(f"{path} has {size} bytes, expected at most {JSON_BYTES}; is it the right file?")
    try:
        data = json.loads(read_regular(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}); save the checkpoint again") from error
    if not isinstance(data, dict):
        raise CheckpointError(
            f"{path} holds a JSON {type(data).__name__}, expected an object; save the checkpoint again"
        )
    return data


def weight_files(folder: Path) -> tuple[Path, ...]:
    """List the files that hold the weights: ``model.safetensors``, or what its index lists.

    Raises
    ------
    CheckpointError
        There are none, the index points out of the folder, or a shard is missing.
    """
    if strays := sorted(p.name for p in folder.iterdir() if _DISTRIBUTED.fullmatch(p.name)):
        raise CheckpointError(
            f"{folder} holds a distributed checkpoint ({strays[0]}), expected {WEIGHTS}; "
            "save it again with `model.save_pretrained(dir)`"
        )
    if (folder / WEIGHTS).exists():
        return (folder / WEIGHTS,)
    if (folder / INDEX).exists():
        return _shards(folder)
    names = sorted(path.name for path in folder.iterdir())
    if found := [name for name in names if name.endswith(".safetensors")]:
        raise CheckpointError(
            f"{folder} has {', '.join(found[:3])} but neither {WEIGHTS} nor {INDEX}; "
            "the copy is incomplete or uses names of its own: save it again with `model.save_pretrained(dir)`"
        )
    if found := [name for name in names if name.endswith(_FOREIGN)]:
        raise CheckpointError(
            f"{folder} has its weights only as {', '.join(found[:3])}, which may run code when opened and "
            f"is never read; expected {WEIGHTS}: {_CONVERT}"
        )
    raise CheckpointError(
        f"{folder} holds no weights, expected {WEIGHTS} or {INDEX}; save it with `model.save_pretrained(dir)`"
    )


def open_clip_weights(folder: Path) -> tuple[Path, ...]:
    """Find the one file that holds the weights of an open_clip model.

    Raises
    ------
    CheckpointError
        There is none.
    """
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


def check_header(path: Path) -> None:
    """See that a safetensors file is what its header says.

    Raises
    ------
    CheckpointError
        The file is cut off, or a tensor lies outside the file, overlaps
        another one, or has another size than its shape and type need.
    """
    size = path.stat().st_size
    with open_regular(path) as stream:
        start = stream.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > HEADER_BYTES or 8 + length > size:
            raise _broken(path, f"its header of {length} bytes does not fit its {size} bytes")
        raw = stream.read(length)
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"its header is not valid JSON ({error})") from error
    if not isinstance(header, dict):
        raise _broken(path, "its header is not a JSON object")
    header.pop("__metadata__", None)
    if not header:
        raise _broken(path, "it holds no tensor")
    spans = sorted((*_span(path, name, entry), name) for name, entry in header.items())
    end = 0
    for begin, stop, name in spans:
        if begin != end:
            raise _broken(path, f"tensor {name!r} begins at byte {begin} of the data, expected {end}")
        end = stop
    if 8 + length + end != size:
        raise _broken(path, f"its tensors take {end} bytes, and {size - 8 - length} are there")


def _span(path: Path, name: str, entry: object) -> tuple[int, int]:
    """Begin and end of one tensor, which must be as long as its shape and type need."""
    if not isinstance(entry, dict):
        raise _broken(path, f"tensor {name!r} is not described by an object")
    kind: Any = entry.get("dtype")
    shape: Any = entry.get("shape")
    offsets: Any = entry.get("data_offsets")
    if not isinstance(kind, str) or kind not in _BITS:
        raise _broken(path, f"tensor {name!r} has type {kind!r}, which is not known")
    if not _counts(shape) or not _counts(offsets) or len(offsets) != 2:
        raise _broken(path, f"tensor {name!r} has shape {shape!r} and offsets {offsets!r}, expected whole numbers")
    if 8 * (offsets[1] - offsets[0]) != math.prod(shape) * _BITS[kind]:
        raise _broken(path, f"tensor {name!r} of shape {shape} and type {kind} lies at {offsets}, not its size")
    return offsets[0], offsets[1]


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)


def _broken(path: Path, what: str) -> CheckpointError:
    return CheckpointError(f"{path} is not a sound safetensors file: {what}; copy or save the checkpoint again")
