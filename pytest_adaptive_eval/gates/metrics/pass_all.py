"""pass^k: the chance that all of k samples of an item are right."""

from __future__ import annotations

from pytest_adaptive_eval.gates.measured import PassOf

METRIC = PassOf("pass^k", "chance that all of k samples of an item are right, over the whole bank", "proportion")
