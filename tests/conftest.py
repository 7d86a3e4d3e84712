"""For all tests."""

import os

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
