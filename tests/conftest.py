"""For all tests."""

import os

import pytest

pytest_plugins = ["pytester"]

try:
    from hypothesis import settings
except ImportError:  # the examples run without it, and pytest looks here all the same
    pass
else:
    settings.register_profile("same", derandomize=True, deadline=None)  # every run tries the same, on slow machines too
    settings.load_profile("same")

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: more threads than cores only wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

#: Files of a few long tests: begun last, they would keep one worker busy while the others are done.
LONG = ("test_examples.py", "test_panel_agents.py", "test_samples_checkpoint.py", "test_network_checkpoints.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first."""
    items.sort(key=lambda item: item.path.name not in LONG)
