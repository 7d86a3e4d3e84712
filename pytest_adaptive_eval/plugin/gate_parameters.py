"""Hide parameters of tests of TOML files from editors during collection, and restore them for the run."""

from __future__ import annotations

from typing import Any

import pytest

#: Parameters of a test of a TOML file until it runs.
_PARAMETERS: pytest.StashKey[Any] = pytest.StashKey()


def hide_parameters(item: pytest.Item) -> None:
    """Remove the attribute `callspec` of a test of a TOML file.

    Editors and other plugins take a test that has it for a parametrized function of a Python file. VS Code's runner
    then looks for ".py" in the node id, and finds no test of the whole workspace where one has none.
    """
    if hasattr(item, "callspec"):
        item.stash[_PARAMETERS] = item.callspec
        del item.callspec


def restore_parameters(item: pytest.Item) -> None:
    """Restore the attribute `callspec`, which pytest needs to set up fixtures."""
    if _PARAMETERS in item.stash:
        item.callspec = item.stash[_PARAMETERS]  # type: ignore[attr-defined]  # of functions, as these are
