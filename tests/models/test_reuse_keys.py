"""Whose answers are kept: the key of a completion names the model, its kind, its hash and its decoding."""

from __future__ import annotations

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.models.replay import ReplayModel
from pytest_adaptive_eval.models.reuse import completion_key, identity_key

ITEM = Item("a", "What is 1 + 1?", "2")


def callable_model(name: str = "a", checkpoint: str = "v1") -> CallableModel:
    return CallableModel(str, name, checkpoint=checkpoint)


def test_equal_models_share_their_answers() -> None:
    assert completion_key(callable_model(), ITEM, 0) == completion_key(callable_model(), ITEM, 0)


def test_models_with_the_same_checkpoint_value_share_no_answers() -> None:
    keys = {completion_key(callable_model(name), ITEM, 0) for name in ("strong", "weak")}
    keys.add(completion_key(callable_model("strong", "v2"), ITEM, 0))
    assert len(keys) == 3


def test_kinds_with_the_same_identity_share_no_answers() -> None:
    identity = SubjectIdentity("a", "v1")
    assert identity_key(callable_model(), identity) != identity_key(ReplayModel("a", {}), identity)
