"""pass@k: the chance that any of k samples of an item is right."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import PassOf

METRIC = PassOf("pass@k", "chance that any of k samples of an item is right, over the whole bank", "proportion")
