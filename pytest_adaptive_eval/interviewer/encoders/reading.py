"""Input of encoders, and normalisation of their output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BankError, CheckpointError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.images import open_image
from pytest_adaptive_eval.types import Floats

if TYPE_CHECKING:
    from PIL.Image import Image

#: Length of rows below which squares lose their digits.
SHORTEST = 1e-100


def text_of(item: Item) -> str:
    """Return the prompt of an item, or the texts of its messages in their order."""
    if item.prompt or not item.messages:
        return item.prompt
    texts: list[str] = []
    for message in item.messages:
        texts += _texts(message.get("content"))
    return "\n".join(texts).strip()


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list | tuple):
        return []
    texts = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == "text":
            text = part.get("text")
            if isinstance(text, str):
                texts.append(text)
    return texts


def pictures_of(item: Item) -> list[Image]:
    """Return the decoded pictures of an item; raise BankError for a file that is not a picture."""
    try:
        return [open_image(name, item.root) for name in item.images]
    except BankError as error:
        raise BankError(f"item {item.id!r}: {error}") from error


def missing(items: Sequence[Item], part: str, fix: str) -> BankError:
    """Return the error for items without a part that an encoder reads."""
    text = f"item {items[0].id!r} has no {part}, and its embedding is made from that"
    if len(items) > 1:
        text += f"; so it is with {len(items) - 1} more"
    return BankError(f"{text}. {fix}")


def flops_of(compute: Callable[[], object]) -> float:
    """Run a computation of torch, and return its floating-point operations."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # fused attention on a processor is not counted
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        compute()
    return float(counter.get_total_flops())


def unit_rows(rows: NDArray[Any], encoder: str) -> Floats:
    """Return rows (n, d) scaled to length 1, zeros as the first axis; raise CheckpointError for values not finite."""
    wide = np.array(rows, dtype=np.float64)
    if not np.isfinite(wide).all():
        raise CheckpointError(
            f"{encoder} gave embeddings that are not finite; the weights have diverged, or the precision of the device "
            "is too low"
        )
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    without_direction = length[:, 0] < SHORTEST
    wide[without_direction], length[without_direction] = np.eye(1, wide.shape[1]), 1.0
    return np.asarray(wide / length, dtype=np.float32)
