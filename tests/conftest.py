"""For all tests."""

import os

pytest_plugins = ["pytester"]

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: more threads than cores only wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")
