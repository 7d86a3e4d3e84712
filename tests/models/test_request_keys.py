"""Whose answers are kept: the key of a completion names the model, its kind, its hash and its decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import BitsPerByte
from pytest_adaptive_eval.models.base import Completion, Message, Model, SubjectIdentity
from pytest_adaptive_eval.models.calling import CallableModel
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.models.replay import ReplayModel
from pytest_adaptive_eval.models.request_keys import chat_key, completion_key, identity_key, may_share

ITEM = Item("a", "What is 1 + 1?", "2")


def callable_model(name: str = "a", checkpoint: str = "v1") -> CallableModel:
    return CallableModel(str, name, checkpoint=checkpoint)


def test_equal_models_share_their_answers() -> None:
    assert completion_key(callable_model(), ITEM) == completion_key(callable_model(), ITEM)


def test_another_version_of_this_package_reads_its_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    before, chat = completion_key(callable_model(), ITEM), chat_key(Own(), Own().identity, [Message("user", "?")])
    monkeypatch.setattr("pytest_adaptive_eval.models.request_keys.__version__", "0.0.0")
    assert completion_key(callable_model(), ITEM) != before
    assert chat_key(Own(), Own().identity, [Message("user", "?")]) != chat


def test_hashed_files_and_decoding_identify_a_subject_whatever_it_is_called() -> None:
    hashed = SubjectIdentity("a", "hash", {"temperature": 0}, hashes_files=True)
    model = Own()
    assert identity_key(model, hashed) == identity_key(callable_model(), replace(hashed, name="a copy"))
    assert identity_key(model, hashed) != identity_key(model, replace(hashed, decoding={"temperature": 1}))
    assert identity_key(model, hashed) != identity_key(model, replace(hashed, checkpoint="other"))
    stated = replace(hashed, hashes_files=False)
    assert identity_key(model, stated) != identity_key(model, replace(stated, name="a copy"))


def test_models_with_the_same_checkpoint_value_share_no_answers() -> None:
    keys = {completion_key(callable_model(name), ITEM) for name in ("strong", "weak")}
    keys.add(completion_key(callable_model("strong", "v2"), ITEM))
    assert len(keys) == 3


def test_kinds_with_the_same_identity_share_no_answers() -> None:
    identity = SubjectIdentity("a", "v1")
    assert identity_key(callable_model(), identity) != identity_key(ReplayModel("a", {}), identity)


GREEDY = {"temperature": 0.0}


class Own(Model):
    """A model of some identity."""

    def __init__(self, checkpoint: str = "hash", decoding: dict[str, Any] = GREEDY, **environment: Any) -> None:
        super().__init__(SubjectIdentity("m", checkpoint, decoding, environment))

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        return [Completion("yes") for _ in items]


@pytest.mark.parametrize(
    ("model", "item", "same"),
    [
        (Own(), Item("other", ITEM.prompt, "3", "numeric", category=("sums",)), True),
        (Own("other"), ITEM, False),
        (Own(decoding={**GREEDY, "template": "none"}), ITEM, False),
        (Own(dtype="bfloat16"), ITEM, False),
        (Own(device="cuda"), ITEM, True),
        (Own(), replace(ITEM, prompt="What?"), False),
        (Own(), replace(ITEM, choices=("1", "2")), False),
        (Own(), replace(ITEM, messages=({"role": "system", "content": "Be terse."},)), False),
        (Own(), replace(ITEM, turns=("And then?",)), False),
        (Own(), replace(ITEM, meta={"max_tokens": 9}), False),
        (Own(), replace(ITEM, meta={"sample": 1}), True),
        (Own(), replace(ITEM, likelihood=BitsPerByte()), False),
        (Own(), replace(ITEM, grader="schema", answer="{}"), False),
    ],
)
def test_a_key_covers_what_is_asked_and_not_how_it_is_graded(model: Model, item: Item, same: bool) -> None:
    assert (completion_key(model, item) == completion_key(Own(), ITEM)) is same
    assert completion_key(model, item, 1) != completion_key(model, item)


def test_a_cap_that_an_evaluation_sets_belongs_to_the_answer() -> None:
    keys = set()
    for tokens in (8, 8, 16):
        model = Own()
        model.cap = Cap(tokens, chosen=True)
        keys.add(completion_key(model, ITEM))
    assert len(keys) == 2


def test_a_picture_counts_by_its_content(tmp_path: Path) -> None:
    item = replace(ITEM, images=("a.png",), root=str(tmp_path))
    chat = [Message("user", "What?", ("a.png",), str(tmp_path))]
    keys, chats, shared = [], [], []
    for content in (None, b"one", b"one", b"two"):
        if content is not None:
            (tmp_path / "a.png").write_bytes(content)
        keys.append(completion_key(Own(), item))
        chats.append(chat_key(Own(), Own().identity, chat))
        shared.append(may_share(Own(), item))
    for found in (keys, chats):
        assert (found[1] == found[2], len(set(found))) == (True, 3)
    assert shared == [False, True, True, True]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Own(checkpoint=""), "no checkpoint hash"),
        (Own(decoding={"temperature": 0.7}), "samples"),
        (Own(decoding={}), "greedily"),
        (Own(decoding={"temperature": 0, "extra": {"temperature": 1.0}}), "samples"),
        (ReplayModel("r", {"q": Completion("yes")}), "recorded"),
        (Own(), ""),
    ],
)
def test_a_key_among_runs_is_for_models_that_may_be_reused(model: Model, reason: str) -> None:
    assert reason in model.no_reuse
    assert may_share(model, ITEM) == (not reason)
