"""A network of real checkpoints in this process: ability, loads with little memory, and going on after a kill."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from killed_store import KilledStore

pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")

from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.models.pool import ModelPool

pytestmark = pytest.mark.slow

CHECKPOINTS = Path(__file__).resolve().parents[3] / "fixtures" / "checkpoints"
NODES = [
    {"task": "unscramble", "size": "small", "levels": 3},
    {
        "task": "operations",
        "size": "small",
        "levels": 2,
        "queries": 1,
        "after": "unscramble",
        "interviewer": "interviewer",
    },
    {"task": "counting", "size": "small", "levels": 2, "after": "unscramble", "panel": ["text-mid"], "cycles": 1},
]
DATA = {"topology": "hybrid", "queries": 4, "retries": 0, "node": NODES}


def pool(capacity: int | None = None) -> ModelPool:
    from pytest_adaptive_eval.models.checkpoint.model import TransformersModel

    loaders: dict[str, Any] = {
        name: (lambda name=name: TransformersModel.load(CHECKPOINTS / name, device="cpu"))
        for name in ("text-early", "text-mid", "text-late")
    }
    loaders["interviewer"] = lambda: TransformersModel.load(CHECKPOINTS / "interviewer", device="cpu")
    return ModelPool(loaders, capacity)


def told(result: NetworkResult) -> dict[str, Any]:
    """All but what depends on the clock and on what was known."""
    data = result.to_json()
    for part in (data, *data["nodes"]):
        part.pop("usage")
    del data["loads"], data["recalled"]
    return data


@pytest.fixture(scope="module")
def late() -> NetworkResult:
    return hold_network(read_network(DATA, "text-late"), pool())


def test_a_late_checkpoint_has_more_energy_than_an_early_one(late: NetworkResult) -> None:
    early = hold_network(read_network({**DATA, "node": NODES[:1]}, "text-early"), pool())
    found = late
    assert found["unscramble"].area == 3.0 > early["unscramble"].area
    assert found.loads == {"interviewer": 1, "text-late": 1, "text-mid": 1}
    assert found.total.calls > 0
    assert found.total.flops > 0
    # This interviewer knows other prompts only: what it says is no question, and code asks.
    counts = found["operations"].counts
    assert counts["fallbacks"] == counts["attempts"] == counts["answers"]
    assert {one.source for one in found["operations"].exchanges} == {"fallback"}


def test_little_memory_costs_loads_and_changes_nothing(late: NetworkResult) -> None:
    found = hold_network(read_network(DATA, "text-late"), pool(1))
    assert told(found) == told(late)
    # What the interviewer writes next depends on the answers, and so does what the panel hears.
    assert found.loads["interviewer"] == len(found["operations"].scores)
    assert found.loads["text-late"] <= 1 + len(found["operations"].scores)
    assert found.loads["text-mid"] <= len(found["counting"].scores) + 1


def test_a_killed_run_goes_on_to_the_same_result(late: NetworkResult) -> None:
    store = KilledStore(20)
    with pytest.raises(KeyboardInterrupt):
        hold_network(read_network(DATA, "text-late"), pool(), replies=store)
    store.left = math.inf
    again = hold_network(read_network(DATA, "text-late"), pool(), replies=store)
    assert again.recalled == 20 < len(store)
    assert told(again) == told(late)
