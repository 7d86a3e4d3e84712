"""Verbs of ``adaptive-eval``, one per file; see `pytest_adaptive_eval.cli.verb`."""
