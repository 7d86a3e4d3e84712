"""Verbs of ``adaptive-eval``, one a file; see `pytest_adaptive_eval.cli.verb`."""
