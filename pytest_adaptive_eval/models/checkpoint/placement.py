"""Placement of a checkpoint's weights: devices, types, attention, and the memory that they need.

The settings are checked without torch, so a mistake ends the run before anything is loaded.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.typed_tables import Count, FiniteSize, Share, Table

#: Package of an implementation of attention.
_PACKAGES = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}
#: Bytes of a number by the name that safetensors gives its type; those of 4 and 6 bits count as stored.
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
#: Types of a checkpoint's weights besides ``auto``, and their bytes.
DTYPES = {"float32": 4, "float16": 2, "bfloat16": 2}
GIB = 2.0**30


class Placement(Table, frozen=True):
    """Devices, number format and attention of a checkpoint's computation.

    Args:
        device: ``auto`` is CUDA if available, otherwise the CPU.
        dtype: ``float32``, ``float16``, ``bfloat16`` or ``auto``: float32 on a CPU, the checkpoint's own elsewhere.
        device_map: Devices of the model's modules, by name; ``auto`` fills all devices.
        attention: Implementation of attention; the model's default when omitted, and others would be fetched.
        compile: Whether torch compiles the model.

    Raises:
        ConfigError: The device map is none, or a package is missing.
    """

    device: str = "auto"
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device_map: str | dict[str, Any] | None = None
    attention: Literal["eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3"] | None = None
    compile: bool = False

    def __post_init__(self) -> None:
        check_faults(self._faults())

    def _faults(self) -> Iterator[str]:
        package = _PACKAGES.get(self.attention or "", "")
        if package and importlib.util.find_spec(package) is None:
            yield f"attention {self.attention!r} needs the package {package}, which is not installed; or use sdpa"
        if self.device_map is not None:
            yield from self._map_faults()

    def _map_faults(self) -> Iterator[str]:
        if self.device != "auto":
            yield f"device is {self.device!r} beside a device_map; give one of them"
        devices: list[Any] = [self.device_map]
        if isinstance(self.device_map, Mapping):
            devices = list(self.device_map.values())
        named = isinstance(self.device_map, Mapping) and devices and "disk" not in map(str, devices)
        if not named and self.device_map != "auto":
            yield (
                f'device_map is {self.device_map!r:.200}, expected "auto", or a table of modules with devices such as '
                '{ "" = "cuda:0" }, without disk'
            )
        if importlib.util.find_spec("accelerate") is None:
            yield "device_map needs the package accelerate; install pytest-adaptive-eval[accelerate]"


class CheckpointSettings(Placement, frozen=True):
    """Options of a checkpoint.

    Args:
        max_tokens: Cap on the tokens of an answer, reasoning included. 1024 by default, and 16384 for a model that
            reasons.
        reasoning: Whether the model reasons before it answers; by default whether its chat template has think tags.
        batch_size: Number of items in a batch. By default 16 on a CPU, and on GPUs as many as their memory holds,
            up to 256.
        temperature: 0 is greedy.
        top_p: Share of the probability that sampling is limited to; without effect at temperature 0.
        seed: Seed of the sampling; without effect at temperature 0.
    """

    max_tokens: Count | None = None
    reasoning: bool | None = None
    batch_size: Count | None = None
    temperature: FiniteSize = 0.0
    top_p: Share = 1.0
    seed: int = 0


def weight_bytes(folder: Path, files: tuple[str, ...], dtype: str) -> int:
    """Return the bytes in memory of safetensors files, loaded as `dtype`; ``auto`` keeps the type of the files."""
    from safetensors import safe_open

    total = 0
    for name in files:
        if not name.endswith(".safetensors"):
            continue
        with safe_open(folder / name, framework="np") as tensors:
            for key in tensors.keys():  # noqa: SIM118 -- not a mapping
                tensor = tensors.get_slice(key)
                stored = _BYTES.get(tensor.get_dtype())
                if stored is None:
                    size = 1
                else:
                    size = DTYPES.get(dtype, stored)
                total += size * math.prod(tensor.get_shape())
    return total


def free_bytes(device: str) -> int | None:
    """Return the free memory of a device such as ``cuda:0`` or ``cpu``; None where it is unknown."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    if device == "cpu":
        with contextlib.suppress(OSError, ValueError):  # memory that a process could get, with the file cache
            lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
            return None
    return None


def check_memory(folder: Path, needed: int, devices: Mapping[str, int | None]) -> None:
    """Raise ConfigError if `needed` bytes of weights do not fit into the free bytes of the devices, None if unknown."""
    measured = [free for free in devices.values() if free is not None]
    if len(measured) < len(devices) or needed <= sum(measured):
        return
    free_by_device = ", ".join(f"{free / GIB:.1f} free on {device}" for device, free in devices.items() if free)
    raise ConfigError(
        f"{folder}: {needed / GIB:.1f} GiB of weights, {free_by_device or 'nothing free'}; free memory, take a smaller "
        'dtype such as bfloat16 or a quantised checkpoint, share the weights with device_map = "auto", or ask a server '
        'that holds them (serve = "vllm")'
    )


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error of torch says that the memory of a device, or of the machine, is spent."""
    import torch

    return isinstance(error, torch.cuda.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )
