"""The run without other plugins, which the others are compared with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_project import Observed, observe, write_project


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Observed]:
    """Give what the project does with a model and no other plugin."""
    runs: dict[str, Observed] = {}

    def give(model: str) -> Observed:
        if model not in runs:
            runs[model] = observe(write_project(tmp_path_factory.mktemp(model), model))
        return runs[model]

    return give
