"""Steps: the replies of an agent to an item."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import Measured

METRIC = Measured("steps", "steps of an agent to an answer, by a harness's log", "steps")
