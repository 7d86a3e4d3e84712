"""The policies `form` and `estimate` on a bank with a predictor, in pytest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.irt.prediction import Design, Predictor

INTERVIEW = """
import pytest

@pytest.mark.adaptive_eval("toy.bank", policy="{policy}", budget=12{more})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""
GATE = """
@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def predictor() -> Predictor:
    rng = np.random.default_rng(1)
    designs = (Design("estimate", 12, uniform=0.5, weight=0.5), Design("form", 12, "form", residual=0.5))
    return Predictor(rng.normal(size=(3, 60)) * 0.05, rng.normal(size=60), rng.permutation(60), designs)


def run(lab: Any, policy: str, *, known: Predictor | None = None, more: str = "", gate: str = "") -> dict[str, Any]:
    lab.calibrated(predictor=known or predictor())
    lab.toy()
    lab.tests(INTERVIEW.format(policy=policy, more=more) + gate)
    lab.run()
    (found,) = lab.record["interviews"]
    return dict(found)


UNIFORM = "drawn uniformly, to correct the bank's predictions"


def chosen(interview: dict[str, Any]) -> list[str]:
    """Items that were not drawn uniformly."""
    return [a["item"] for a in interview["administrations"] if a["reason"] != UNIFORM]


def test_a_form_asks_the_items_of_the_bank_and_is_recorded(lab: Any) -> None:
    interview = run(lab, "form")
    asked = chosen(interview)
    assert asked == [f"q{i}" for i in predictor().order if f"q{i}" in asked]
    assert len(asked) == 12
    assert interview["policy"]["selector"] == "form"
    assert interview["policy"]["predictor"] == predictor().hash
    assert {a["reason"] for a in interview["administrations"]} == {"next of the bank's form"}
    assert interview["accuracy"] is None  # chosen items are no sample
    assert 0.0 <= interview["accuracy_model"]["estimate"] <= 1.0


@pytest.mark.slow
def test_the_last_items_of_an_assisted_estimate_are_drawn_uniformly(lab: Any) -> None:
    interview = run(lab, "estimate")
    reasons = [a["reason"] for a in interview["administrations"]]
    assert reasons == ["drawn by variance"] * 6 + [UNIFORM] * 6


def test_a_gate_on_a_form_is_refused_with_what_to_use(lab: Any) -> None:
    lab.calibrated(predictor=predictor())
    lab.toy()
    lab.tests(INTERVIEW.format(policy="form", more="") + GATE)
    result = lab.run()
    assert result.ret == 4
    assert "'fixed-form', which asks all checkpoints the same items" in result.stderr.str()


@pytest.mark.parametrize(("more", "message"), [(", floor=0.5", "floor does not go with a form"), ("", "needs a form")])
def test_wrong_settings_of_a_form_are_told(lab: Any, more: str, message: str) -> None:
    lab.calibrated(predictor=predictor() if more else None)
    lab.toy()
    lab.tests(INTERVIEW.format(policy="form", more=more))
    result = lab.run()
    assert result.ret == 4
    assert message in " ".join((result.stdout.str() + result.stderr.str()).split())


@pytest.mark.slow
def test_an_interview_does_not_go_on_with_another_predictor(lab: Any) -> None:
    run(lab, "form")
    other = replace(predictor(), order=predictor().order[::-1].copy())
    lab.path.joinpath("toy.bank").rename(lab.path / "old")
    interview = run(lab, "form", known=other)
    asked = chosen(interview)
    assert asked == [f"q{i}" for i in other.order if f"q{i}" in asked]


def test_a_reversed_subject_is_named_in_the_terminal_and_the_record(lab: Any) -> None:
    bank = read_bank(lab.calibrated(n=200))
    hardest = (-bank.difficulty).argsort()[:100].tolist()  # ids of the bank end with their places
    lab.toy(fault=f"return 'right' if number in {hardest} else 'wrong'")
    lab.tests(INTERVIEW.format(policy="estimate", more="").replace("budget=12", "budget=60"))
    result = lab.run()
    assert result.ret == 0
    (interview,) = lab.record["interviews"]
    assert interview["misfit"].startswith("the answers are unlike the bank's population")
    assert interview["warnings"] == [
        f"{interview['misfit']}; its accuracy and ability rest on 60 answers, by a model that does not describe them"
    ]
    assert "the answers are unlike the bank's population" in " ".join(result.stdout.str().split())
