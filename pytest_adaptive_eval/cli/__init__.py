"""The command ``adaptive-eval``."""

from pytest_adaptive_eval.cli.command import main

__all__ = ["main"]
