"""Fields of a record that follow from an interview's answers."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.findings import findings

ESTIMATES = ("theta", "standard_error", "accuracy", "accuracy_error", "accuracy_model", "accuracy_conformal", "levels")


@pytest.mark.parametrize(("score", "estimated"), [(1.0, ["accuracy", "accuracy_error"]), (np.nan, [])])
def test_an_interview_without_any_score_has_no_estimate(score: float, estimated: list[str]) -> None:
    bank = ItemBank.uncalibrated("toy", [Item(f"q{n}", "question", answer="42") for n in range(6)])
    session = Session(bank, Policy(selector=SELECTORS["random"], budget=4), seed=1)
    while (proposal := session.ask()) is not None:
        session.tell(np.full(proposal.items.shape, score))
    found = findings(SessionResult.of("toy", session, statuses={"ok": 4}), None)
    assert [name for name in ESTIMATES if found[name] is not None] == estimated
    assert (found["asked"], found["scored"], found["size"]) == (4, 0 if np.isnan(score) else 4, 6)
