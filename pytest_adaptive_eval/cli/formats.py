"""Reading of responses in formats, and of their items of low quality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import FormatResponses
    from pytest_adaptive_eval.types import Bools


def read_in_formats(sources: Sequence[Path], bank: str | None, families: Path | None = None) -> FormatResponses:
    """Read responses in formats, for a fit of M2 or M3; `bank` and `families` as in `read_format_responses`."""
    from pytest_adaptive_eval.banks.responses import in_formats, read_format_responses

    try:
        import torch  # noqa: F401
    except ImportError:
        raise ConfigError("fits of M2 and M3 need torch: pip install pytest-adaptive-eval[hf]") from None
    if bank is not None and all(map(in_formats, sources)):
        raise ConfigError(f"--filter {bank}: the bank of recorded runs, and {sources[0]} is a table; leave it out")
    screen.progress(f"reading {sources[0]}")
    return read_format_responses(sources, bank=bank, families=families, note=screen.note)


def read_formats(
    sources: Sequence[Path],
    low_quality: Sequence[Path],
    items: Sequence[Item] | None,
    bank: str | None,
) -> tuple[FormatResponses, Bools]:
    """Read responses in formats, and mark their items of low quality.

    Args:
        low_quality: Responses to items that are all of low quality.
        items: Texts, some of them marked as of low quality.
        bank: See `read_format_responses`.
    """
    import numpy as np

    from pytest_adaptive_eval.banks.responses import read_format_responses
    from pytest_adaptive_eval.items.item import LOW_QUALITY

    responses = read_in_formats([*sources, *low_quality], bank)
    bad = {item.id for item in items or () if LOW_QUALITY in item.meta}
    for path in low_quality:
        bad |= set(read_format_responses([path], bank=bank).items)
    low = np.array([name in bad for name in responses.items])
    observed = ~np.isnan(responses.scores)
    if not (answered := observed.any(axis=(0, 2))).all():
        screen.note(f"left out: {int((~answered).sum())} items without a response")
        responses = responses.at(answered)
        low = low[answered]
    return responses, low
