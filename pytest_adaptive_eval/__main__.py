"""The command ``adaptive-eval``, as ``python -m pytest_adaptive_eval``."""

import sys

from pytest_adaptive_eval.cli import main

if __name__ == "__main__":
    sys.exit(main())
