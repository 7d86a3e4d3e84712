"""The sandbox for code that models wrote."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (Service("sandbox", "pytest_adaptive_eval.extensions.sandbox.runner:Sandbox"),)
