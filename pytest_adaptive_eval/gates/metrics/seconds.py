"""Seconds: the time that the model's call for an answer took."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import Measured

METRIC = Measured("seconds", "time of the model's call for an answer", "seconds")
