"""Finished logs as models, for the core."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (Service("replay_log", "pytest_adaptive_eval.extensions.logs.replay:replay_log"),)
