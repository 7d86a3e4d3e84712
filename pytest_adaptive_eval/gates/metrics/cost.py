"""Cost: what the answers cost."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import Measured

METRIC = Measured("cost", "what an answer cost, by a harness's log or the evaluation's prices of tokens", "money")
