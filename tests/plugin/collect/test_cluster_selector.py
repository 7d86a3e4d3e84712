"""The selector `cluster` in markers and TOML files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.irt.prediction import Predictor

MARKED = """
import pytest

@pytest.mark.adaptive_eval("toy.bank", selector="cluster", policy="estimate", budget=12)
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""
TOML = """
[[eval]]
bank = "toy.bank"
selector = "cluster"
floor = 0.5
budget = 30
[[eval.gate]]
at_least = 0.01
"""


def predictor() -> Predictor:
    rng = np.random.default_rng(1)
    return Predictor(rng.normal(size=(3, 60)) * 0.05, rng.normal(size=60), rng.permutation(60))


def asked(interview: dict[str, Any]) -> list[str]:
    return [a["item"] for a in interview["administrations"]]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("known", [None, predictor()], ids=["parameters", "residuals"])
def test_the_middles_of_clusters_are_asked_and_recorded(lab: Any, known: Any) -> None:
    lab.calibrated(predictor=known)
    lab.toy()
    lab.tests(MARKED)
    lab.run()
    (interview,) = lab.record["interviews"]
    assert len(set(asked(interview))) == 12
    assert interview["policy"]["selector"] == "cluster"
    assert interview["policy"]["predictor"] == (known.hash if known else "")
    reasons = Counter(a["reason"] for a in interview["administrations"])
    assert reasons == {"from the middle of a cluster of items": 12}


def test_a_gate_in_a_toml_file_counts_its_draws(lab: Any) -> None:
    lab.calibrated()
    lab.toy()
    lab.path.joinpath("adaptive-eval.toml").write_text(TOML)
    lab.run()
    (interview,) = lab.record["interviews"]
    assert lab.record["gates"][0]["verdict"]["outcome"] == "PASS"
    assert {a["reason"] for a in interview["administrations"]} == {"drawn by cluster, 50% uniformly"}


def test_a_bank_without_parameters_is_refused(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(MARKED.replace("toy.bank", "toy.jsonl"))
    result = lab.run()
    assert result.ret == 4
    assert "selector 'cluster' needs a calibrated bank" in " ".join(result.stderr.str().split())
