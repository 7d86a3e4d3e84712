"""For all tests."""

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)  # every run tries the same, however slow the machine
settings.load_profile("same")

pytest_plugins = ["pytester"]

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: more threads than cores only wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
