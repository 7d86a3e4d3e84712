"""Commands of known servers for a checkpoint folder."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.serving.server import HOST


@dataclass(frozen=True, slots=True)
class Preset:
    """A known server.

    Args:
        command: Takes a checkpoint folder and its served name. Returns program and arguments.
        weights: Takes a checkpoint folder. Returns the single file that the server reads, or None if it reads the
            folder.
        served_name: Takes a checkpoint folder. Returns the name that requests carry.
        aliases: Takes a checkpoint folder. Returns names that replies may carry besides that.
    """

    command: Callable[[Path, str], list[str]]
    weights: Callable[[Path], Path | None] = lambda _: None
    served_name: Callable[[Path], str] = lambda folder: folder.name
    aliases: Callable[[Path], tuple[str, ...]] = lambda _: ()


def _gguf(folder: Path) -> Path:
    """Return a GGUF file, the only one of a folder, or the first part of one in parts."""
    if folder.is_file():
        return folder
    files = sorted(file for file in folder.glob("*.gguf") if "mmproj" not in file.name)
    first = []
    for file in files:
        if "-of-" not in file.name or "-00001-of-" in file.name:
            first.append(file)
    if len(first) != 1:
        names = ", ".join(file.name for file in first) or "none"
        raise ConfigError(f"{str(folder)!r}: llama.cpp reads one GGUF file; expected one in the folder, found {names}")
    return first[0]


def _llama_server() -> tuple[str, ...]:
    """Return the program of llama.cpp, or the module that runs xllamacpp's server instead."""
    if shutil.which("llama-server") or importlib.util.find_spec("xllamacpp") is None:
        return ("llama-server",)
    return (sys.executable, "-m", "pytest_adaptive_eval.extensions.serving.llama_cpp")


_ADDRESS = ("--host", HOST, "--port", "{port}")
#: What decodes is what a request says, not what generation_config.json says.
_OWN_DECODING = ("--generation-config", "vllm")
_SGLANG = (sys.executable, "-m", "sglang.launch_server", "--model-path")
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "vllm": Preset(
            lambda folder, name: [
                *("vllm", "serve", str(folder), *_ADDRESS, "--served-model-name", name, *_OWN_DECODING)
            ]
        ),
        "sglang": Preset(lambda folder, name: [*_SGLANG, str(folder), *_ADDRESS, "--served-model-name", name]),
        "llama.cpp": Preset(
            lambda folder, name: [*_llama_server(), "--model", str(_gguf(folder)), *_ADDRESS, "--alias", name],
            weights=_gguf,
        ),
        "transformers": Preset(
            lambda folder, _: ["transformers", "serve", str(folder), *_ADDRESS],
            served_name=str,
            aliases=lambda folder: (f"{folder}@main",),
        ),
    }
)
