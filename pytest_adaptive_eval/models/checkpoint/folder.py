"""Examine checkpoint folders before they are loaded, and hash them.

Everything in a checkpoint is untrusted. `preflight` reads names, JSON files and the headers of safetensors files.
Nothing is unpickled or downloaded, and neither torch nor transformers is imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import CheckpointError
from pytest_adaptive_eval.file_hashes import FileHashes
from pytest_adaptive_eval.inputs import StrPath, files_of_pytest, read_regular, reading
from pytest_adaptive_eval.models.checkpoint.weights import (
    INDEX,
    check_header,
    check_sizes,
    open_clip_weights,
    other_layout,
    read_object,
    weight_files,
)

#: Files besides the weights that determine the model, tokenizer, template or processor.
_PARTS = re.compile(
    r"(config|open_clip_config|generation_config|tokenizer[\w.-]*|special_tokens_map|added_tokens|vocab|chat_template"
    r"|preprocessor_config|processor_config|video_preprocessor_config|tekken)\.json"
    r"|[\w.-]+\.(jinja|model|tiktoken)|(vocab|merges|bpe)\.(txt|codes|bpe)"
)
_TEMPLATES = "additional_chat_templates"

#: Keys that make a library run other code or read other files.  They are refused at any depth.
_REFUSED = {
    "auto_map": "names Python code to run; use an architecture that transformers itself has",
    "quantization_config": "asks for a quantisation of a part; save the checkpoint with plain floating-point weights",
    "transformers_weights": "names another weight file; keep the weights in model.safetensors",
    "fusion_config": "asks for patched layers; remove the key",
    "kernel_config": "asks for compute kernels from elsewhere; remove the key",
    "audio_tokenizer": "names another repository to load; remove the key",
}
#: Methods of quantisation whose weights are numbers that an installed package computes with, and these packages.
QUANTISATION = {
    "bitsandbytes": ("accelerate", "bitsandbytes"),
    "gptq": ("accelerate", "gptqmodel", "optimum"),
    "awq": ("accelerate", "gptqmodel"),
    "compressed-tensors": ("accelerate", "compressed_tensors"),
    "fp8": ("accelerate",),
}
_ATTENTION = re.compile(r"_?(attn|experts)_implementation.*")

#: File that makes the loader read another repository.
_TOKENIZER_OF_SOUNDS = "audio_tokenizer_config.json"


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """Result of examining a checkpoint.

    Args:
        folder: Folder with the files, symbolic links resolved.
        name: Name of the folder; ``organisation/name`` for a folder of the hub cache.
        architecture: First entry of ``architectures`` in config.json, or empty.
        files: Files that determine the model, sorted, relative to `folder`.
        hash: SHA-256 over these files' names and contents.
        quantised: Method of quantisation, one of `QUANTISATION`; empty for plain weights.
    """

    folder: Path
    name: str
    architecture: str
    model_type: str
    kind: Literal["text", "image-text"]
    files: tuple[str, ...]
    hash: str
    quantised: str = ""


def preflight(folder: StrPath, *, cache: Path | None = None) -> CheckpointInfo:
    """Examine a checkpoint without loading it.

    Args:
        folder: A local folder in Hugging Face format, a snapshot of the hub cache, or the
            ``models--organisation--name`` folder of the hub cache.
        cache: Folder for file hashes, shared by runs.

    Raises:
        CheckpointError: The folder does not exist, or it is unsafe or incomplete.
    """
    with reading(folder, CheckpointError):
        root, name = _resolve(folder)
        files, documents = _read_safely(root, weight_files)
        digest = _digest(root, files, cache)
    config = documents["config.json"]
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise CheckpointError(
            f"{root / 'config.json'} has model_type {model_type!r}, expected the name of an architecture; "
            "save the checkpoint again with `model.save_pretrained(dir)`"
        )
    architectures = config.get("architectures") or [""]
    return CheckpointInfo(
        folder=root,
        name=name,
        architecture=str(architectures[0] if isinstance(architectures, list) else architectures),
        model_type=model_type,
        kind="image-text" if reads_images(config) else "text",
        files=files,
        hash=digest,
        quantised=_quantisation(root / "config.json", config),
    )


def _quantisation(path: Path, config: dict[str, Any]) -> str:
    """Return the method of quantisation of a ``config.json``, empty for none."""
    settings = config.get("quantization_config")
    if not settings:
        return ""
    method = str(settings.get("quant_method") if isinstance(settings, dict) else settings)
    check_faults(_quantisation_faults(method), str(path), CheckpointError)
    return method


def _quantisation_faults(method: str) -> Iterator[str]:
    if method not in QUANTISATION:
        yield (
            f"the key `quantization_config` has the method {method!r:.80}, expected one of {', '.join(QUANTISATION)}; "
            "save the checkpoint with one of them, or with plain floating-point weights"
        )
    missing = []
    for name in QUANTISATION[method]:
        if importlib.util.find_spec(name) is None:
            missing.append(name)
    if missing:
        extra = {"fp8": "accelerate", "awq": "gptq"}.get(method, method)
        yield (
            f'weights quantised by {method} need {" and ".join(missing)}; pip install "pytest-adaptive-eval[{extra}]"'
        )
    if method == "bitsandbytes" and importlib.util.find_spec("kernels") is not None:
        yield "bitsandbytes fetches code from the hub where the package kernels is installed; pip uninstall kernels"


def reads_images(config: Mapping[str, Any]) -> bool:
    """Return whether the model of a ``config.json`` reads images."""
    return isinstance(config.get("vision_config"), dict) or "image_token_id" in config or "image_token_index" in config


def preflight_open_clip(folder: StrPath, *, cache: Path | None = None) -> CheckpointInfo:
    """Examine an open_clip model without loading it, by the same rules.

    Args:
        folder: A local folder in the layout of open_clip's ``local-dir:``, or a ``models--organisation--name`` folder
            of the hub cache, where ``open_clip_config.json`` may be missing.
        cache: Folder for file hashes, shared by runs.

    Raises:
        CheckpointError: The folder does not exist, or it is unsafe or incomplete.
    """
    with reading(folder, CheckpointError):
        root, name = _resolve(folder, config=False)
        files, _ = _read_safely(root, open_clip_weights)
        return CheckpointInfo(root, name, "", "open_clip", "image-text", files, _digest(root, files, cache))


def _read_safely(
    root: Path, weights: Callable[[Path], tuple[Path, ...]]
) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
    """Return the files that determine a model, and the objects in its JSON files; raise if one of them is refused."""
    check_faults(_refused_files(root), error=CheckpointError)
    files = _files(root, weights)
    documents = {file: read_object(root / file) for file in files if file.endswith(".json")}
    for file, document in documents.items():
        # a vocabulary may hold any word as a key, and is never read as settings
        if file == "config.json" or file.endswith("_config.json"):
            _refuse_keys(root / file, document)
    sizes = [check_header(root / file) for file in files if file.endswith(".safetensors")]
    tensors = sum(size[0] for size in sizes)
    largest = max(size[1] for size in sizes)
    for file in ("config.json", "open_clip_config.json"):
        check_sizes(root / file, _walk(documents.get(file)), tensors, largest)
    return files, documents


def _refused_files(root: Path) -> Iterator[str]:
    """Return sentences on files that make a checkpoint unusable or unsafe."""
    if (root / "adapter_config.json").exists():
        yield f"{root} {other_layout(root)}"
    if (root / _TOKENIZER_OF_SOUNDS).exists():
        yield f"{root / _TOKENIZER_OF_SOUNDS} names another repository to load; remove it"
    for name in files_of_pytest(root):
        yield f"{root / name} would be run by pytest and does not belong in a checkpoint; inspect and remove it"


def checkpoint_hash(folder: StrPath, *, cache: Path | None = None) -> str:
    """Return the SHA-256 over weights, configuration, tokenizer, templates and processor files.

    Optimiser state, training arguments, logs and read-me files do not count. With `cache`, a file is read again only if
    its path, size, times or inode changed.

    Raises:
        CheckpointError: The folder does not exist, or one of its files is missing or is a link to another folder.
    """
    with reading(folder, CheckpointError):
        root, _ = _resolve(folder)
        return _digest(root, _files(root, weight_files), cache)


def file_hash(path: Path, *, cache: Path | None = None) -> str:
    """Return the SHA-256 of a single file with weights; parameters and errors as of `checkpoint_hash`."""
    with reading(path, CheckpointError):
        return _digest(path.parent, (path.name,), cache)


def _resolve(folder: StrPath, *, config: bool = True) -> tuple[Path, str]:
    """Return the folder with the files, and the checkpoint's name."""
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        if path.suffix == ".gguf" and path.is_file():
            fault = f"{path} is a GGUF file; give the model serve:llama.cpp#{path}, which serves it"
        else:
            fault = (
                f"no checkpoint folder {os.fspath(folder)!r}, expected a local folder with config.json and "
                "model.safetensors; nothing is downloaded here: save the model with `model.save_pretrained(dir)`, or "
                "fetch it with `hf download ORGANISATION/NAME --local-dir dir`, and pass that folder"
            )
        raise CheckpointError(fault)
    if path.name.startswith("models--") and (path / "snapshots").is_dir():
        path = _snapshot(path)
    root, names = path.resolve(), os.listdir(path)  # noqa: PTH208 -- by its own name, which may be a link
    if config and "config.json" not in names:
        layout = other_layout(root)
        fault = layout or "has no config.json, so it is not a checkpoint in Hugging Face format; pass its folder"
        raise CheckpointError(f"{path} {fault}")
    hub = _hub(root)
    return root, hub.name.removeprefix("models--").replace("--", "/") if hub else path.name


def _snapshot(repository: Path) -> Path:
    """Return the snapshot of a hub-cache folder that ``main`` names, or else the only one."""
    reference = repository / "refs" / "main"
    snapshots = sorted(path.name for path in (repository / "snapshots").iterdir() if path.is_dir())
    if reference.is_file():
        commit = read_regular(reference).decode("utf-8", "replace").strip()
    else:
        commit = ""
    if not commit and len(snapshots) == 1:
        commit = snapshots[0]
    if commit not in snapshots:
        raise CheckpointError(
            f"{repository}: refs/main names the snapshot {commit!r:.80}, which is not in the cache "
            f"({', '.join(snapshots) or 'no snapshot'}); pass the snapshot's own folder, or fetch the model again"
        )
    return repository / "snapshots" / commit


def _hub(root: Path) -> Path | None:
    """Return the ``models--...`` folder of the hub cache that has `root` as a snapshot, else None."""
    repository = root.parent.parent
    if root.parent.name == "snapshots" and repository.name.startswith("models--"):
        return repository
    return None


def _files(root: Path, find: Callable[[Path], tuple[Path, ...]]) -> tuple[str, ...]:
    """Return the relative paths of the files that determine the model, checked to be in the folder or its hub cache."""
    entries = [*sorted(root.iterdir()), *sorted((root / _TEMPLATES).glob("*.jinja"))]
    hub = _hub(root)
    for path in entries:
        _check_contained(path, root, hub)
    weights = {path.name for path in find(root)}
    parts = {path for path in entries if path.suffix == ".safetensors" or _PARTS.fullmatch(path.name)}
    parts |= {root / name for name in weights}
    if (root / INDEX).exists():
        parts.add(root / INDEX)
    for path in parts:
        if not path.is_file():
            raise CheckpointError(f"{path} is not a regular file; copy the checkpoint again")
    return tuple(sorted(path.relative_to(root).as_posix() for path in parts))


def _check_contained(path: Path, root: Path, hub: Path | None) -> None:
    """Raise CheckpointError for a link out of the checkpoint, and for a file that may block when it is opened."""
    fault = ""
    try:
        target = path.resolve(strict=True)
        mode = target.stat().st_mode
    except (OSError, RuntimeError) as error:
        fault = f"cannot be followed ({error}); copy the checkpoint again"
    else:
        if hub:
            allowed = [hub / "blobs", hub / "snapshots"]
        else:
            allowed = []
        if not any(target.is_relative_to(folder) for folder in (root, *allowed)):
            fault = (
                f"is a symbolic link to {target}, outside the checkpoint; put a copy of the file there if you trust it"
            )
        elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            fault = "is neither a file nor a folder; remove it"
    if fault:
        raise CheckpointError(f"{path} {fault}")


def _refuse_keys(path: Path, document: dict[str, Any]) -> None:
    """Raise CheckpointError for a key that makes a library run other code or read other files."""
    quantised = None
    if path.name == "config.json":
        quantised = document.get("quantization_config")
    for key, value in _walk(document):
        if key == "quantization_config" and value is quantised:
            continue  # of the model itself, which `_quantisation` checks
        # older releases write the flag by themselves, and it selects nothing
        if value in (None, {}, [], "") or (key == "_attn_implementation_autoset" and isinstance(value, bool)):
            continue
        reason = _REFUSED.get(key)
        if _ATTENTION.fullmatch(key):
            reason = "chooses the implementation, which may be fetched from elsewhere; remove the key"
        if reason:
            raise CheckpointError(f"{path} has the key `{key}`, which {reason}")


def _walk(value: object) -> Iterator[tuple[str, object]]:
    """Yield every key with its value, at any depth."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield from node.items()
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _digest(root: Path, files: tuple[str, ...], cache: Path | None) -> str:
    hashes = FileHashes(cache / "checkpoint-hashes.json" if cache else None)
    total = hashlib.sha256()
    for name in files:
        total.update(json.dumps([name, hashes.of(root / name)]).encode())
    hashes.save()
    return total.hexdigest()
