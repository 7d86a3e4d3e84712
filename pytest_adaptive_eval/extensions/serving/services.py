"""The server of a checkpoint that is loaded with the option ``serve``."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (Service("managed_server", "pytest_adaptive_eval.extensions.serving.subjects:MANAGED_SERVER"),)
