"""Parameters of tests of TOML files, which editors must not see, restored for the run."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["restore_parameters"]

#: Parameters of a test of a TOML file until it runs.
_PARAMETERS: pytest.StashKey[Any] = pytest.StashKey()


def restore_parameters(item: pytest.Item) -> None:
    """Give a test back what `hide_parameters` took: pytest sets up fixtures by it."""
    if _PARAMETERS in item.stash:
        item.callspec = item.stash[_PARAMETERS]  # type: ignore[attr-defined]  # of functions, as these are
