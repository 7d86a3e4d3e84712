"""Output tokens: the length of the answers."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import Measured

METRIC = Measured("output_tokens", "tokens that the model wrote for an answer, reasoning included", "tokens")
