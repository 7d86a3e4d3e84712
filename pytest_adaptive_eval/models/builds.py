"""A CPU build of torch beside torchvision for CUDA: pip takes them for a pair, and importing the second fails."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["allow_mixed_builds"]

#: The operators that torchvision describes at its import without looking whether it has them.
_DESCRIBED = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


@functools.cache
def allow_mixed_builds() -> Any:
    """Make torchvision importable where its compiled part does not fit the torch that is installed.

    The package index has torchvision for CUDA alone, and torch's CPU build comes from elsewhere.  Transforms of
    pictures need nothing compiled, so that open_clip and transformers work with such a pair once the operators that
    torchvision wants at its import are declared; calling one of them is still an error.  Nothing is done where
    torchvision is missing, or fits.

    Returns
    -------
    torch.library.Library or None
        What was declared; it lasts as long as the process.
    """
    found = importlib.util.find_spec("torchvision")
    if found is None or not found.submodule_search_locations:
        return None
    import torch

    load: Any = torch.ops.load_library  # without type hints, as is the class below
    folder = Path(found.submodule_search_locations[0])
    compiled = [path for path in (folder / "_C.so", folder / "_C.pyd") if path.exists()]
    try:
        for path in compiled:
            load(path)
        if compiled:
            return None
    except OSError:  # of another build
        pass
    fragment: Any = torch.library.Library
    library = fragment("torchvision", "FRAGMENT")
    for schema in _DESCRIBED:
        library.define(schema)
    return library
