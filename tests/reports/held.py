"""Interviews of simulated subjects, as records for the report tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from made import made

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.design import DESIGN, DesignLog
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord


def items(count: int, **changes: Any) -> list[Item]:
    """Items with texts of their own."""
    return [
        Item(
            id=f"sum-{n}",
            prompt=f"What is {n} + {n}?",
            answer=str(2 * n),
            category=(("even", "odd")[n % 2],),
            **changes,
        )
        for n in range(count)
    ]


def bank(of: Sequence[Item], *, guess: float = 0.0) -> ItemBank:
    """A calibrated bank of one dimension."""
    rng = np.random.default_rng(len(of))
    return ItemBank(
        "sums",
        [item.id for item in of],
        of,
        rng.uniform(0.6, 2.0, len(of)),
        rng.normal(0.0, 1.5, len(of)),
        np.full(len(of), guess),
        scale="s" * 16,
        content_hash="c" * 16,
        categories=[item.category[0] for item in of],
    )


def held(
    on: ItemBank, *, theta: float = 0.7, missing: Sequence[int] = (), seed: int = 3, **policy: Any
) -> EvaluationRecord:
    """An interview as the plugin records it; the draws numbered in `missing` get no score."""
    policy = {"budget": 30, "batch": 4, **policy}
    session = Session(on, Policy(**policy), seed=seed)
    rng = np.random.default_rng(seed)
    asked: list[Administration] = []
    while (proposal := session.ask()) is not None:
        before = session.estimate.theta[0].tolist()
        batch = []
        for k, n in enumerate(proposal.items[0]):
            p = 1 / (1 + np.exp(-on.discrimination[n, 0] * theta - on.intercept[n]))
            lost = len(asked) + k + 1 in missing
            batch.append(
                Administration(
                    position=len(asked) + k + 1,
                    item=str(on.ids[n]),
                    item_hash=on.items[n].content_hash,
                    theta_before=before,
                    status="timeout" if lost else "ok",
                    score=None if lost else float(rng.random() < p),
                    text="" if lost else f"It is {n}.",
                    detail="no answer in 30 s" if lost else "",
                    reason="drawn by spread",
                    difficulty=float(on.difficulty[n]),
                    category=list(on.items[n].category),
                    **{
                        {"propensities": "propensity", "predictions": "predicted"}.get(name, name): plain(value)
                        for name, value in zip(DESIGN, proposal.design[:, 0, k], strict=True)
                    },
                )
            )
        session.tell([[np.nan if a.score is None else a.score for a in batch]])
        for a in batch:
            a.theta_after = session.estimate.theta[0].tolist()
        asked += batch
    log: DesignLog = session.log()
    accuracy = interval_of_draws(log.with_missing_as(0.5)).to_json() if not np.isnan(log.propensities).any() else None
    return made(
        EvaluationRecord,
        name="sums",
        nodeid="sums.eval.toml::sums",
        subject={"name": "adder-2", "checkpoint": "f" * 64, "decoding": {"max_tokens": 8}},
        bank={"name": "sums", "content_hash": on.content_hash, "scale": on.scale, "size": len(on), "calibrated": True},
        policy={"selector": "spread", "estimator": session.policy.estimator.name, "seed": seed},
        asked=len(asked),
        scored=len(asked) - len(missing),
        size=len(on),
        statuses={"ok": len(asked) - len(missing), "timeout": len(missing)},
        stop="BUDGET",
        stop_sentence="the budget is spent",
        theta=session.estimate.theta[0].tolist(),
        standard_error=session.estimate.standard_error[0].tolist(),
        accuracy=accuracy,
        accuracy_model=None,
        categories=[
            {"category": name, "size": 20, "asked": 9, "scored": 9, "accuracy": accuracy, "standard_error": 0.1}
            for name in ("even", "odd")
        ],
        seconds=12.5,
        administrations=asked,
    )


def run(interview: EvaluationRecord, *gates: Any) -> RunRecord:
    """A run of one interview."""
    return RunRecord(
        run="20310506T070809000Z-00000000",
        started="2031-05-06T07:08:09Z",
        seconds=13.0,
        versions={"pytest": "9.2.0"},
        exit_status=0,
        evaluations=[interview],
        gates=list(gates),
    )
