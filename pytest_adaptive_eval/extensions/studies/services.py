"""Agreement of panels with interviews of their members."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (Service("agree_with_truth", "pytest_adaptive_eval.extensions.studies.peers.truth:agree_with_truth"),)
