"""Input tokens: the length of the requests."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import Measured

METRIC = Measured("input_tokens", "tokens that the model read for an answer", "tokens")
