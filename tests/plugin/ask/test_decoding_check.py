"""When an earlier run shows that the same model replies otherwise, without a run of pytest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.plugin.ask.decoding_check import DecodingCheck, earlier_interviews
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_record import Administration

GREEDY = SubjectIdentity("m", "hash", {"temperature": 0.0})


def answer(said: str = "one", **changes: Any) -> Administration:
    """An administration of an item, with a hash of what the model said."""
    values: dict[str, Any] = {"position": 1, "item": "a", "item_hash": "h", "score": 1.0, "text": "7", "said": said}
    return Administration(**{**values, **changes})


def record(*answers: Administration, **changes: Any) -> Any:
    """An interview of an earlier run."""
    values: dict[str, Any] = {
        "whose": "w",
        "bank": SimpleNamespace(content_hash="bank"),
        "error": "",
        "nodeid": "n",
        "decoding_noise": None,
        "administrations": list(answers),
        "requests": {entry.place: entry.request for entry in answers},
    }
    return SimpleNamespace(**{**values, **changes})


def history_of(*records: Any, copied: str = "") -> History:
    run = SimpleNamespace(run="r", copied_from=copied, interviews=list(records))
    return cast(
        History, SimpleNamespace(evaluations=lambda: [(run, entry) for entry in records], whole=lambda name: run)
    )


def evaluation(repeat: int | None = None) -> Any:
    return SimpleNamespace(
        repeat=repeat, bank=SimpleNamespace(content_hash="bank"), decodings=lambda repeat: int(bool(repeat))
    )


def check(*records: Any, repeat: int | None = None, identity: SubjectIdentity = GREEDY) -> DecodingCheck:
    return DecodingCheck(history_of(*records), evaluation(repeat), identity, "w")


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        (answer(), answer(), False),
        (answer(), answer("two"), True),
        # what the test makes of a reply is no answer of the model
        (answer(score=0.0), answer(), False),
        (answer(text="7 apples"), answer(text="7"), False),
        (answer(status="error", score=None), answer(), False),
        (answer(score=0.5, text=""), answer(score=0.25, text=""), False),
        # nothing to compare
        (answer(""), answer("two"), False),
        (answer(), answer(""), False),
        (answer(), answer("two", item="b"), False),
        (answer(), answer("two", item_hash="edited"), False),
        (answer(), answer("two", sample=1), False),
        (answer(), answer("two", request="another prompt"), False),
        (answer(request="another prompt"), answer("two"), False),
        (answer(request="prompt"), answer("two", request="prompt"), True),
        (answer(request="unknown"), answer("two", request="unknown"), False),
    ],
)
def test_replies_to_the_same_request_are_compared_and_not_what_a_test_makes_of_them(
    before: Administration, after: Administration, differ: bool
) -> None:
    checked = check(record(before))
    assert checked.finds_changes([after]) is differ
    assert checked.reason == ("an earlier run of this checkpoint answered 1 of 1 item differently" if differ else "")


def test_a_number_of_repeats_that_is_set_stays() -> None:
    checked = check(record(answer()), repeat=0)
    assert not checked.finds_changes([answer("two")])
    assert "answered 1 of 1 item differently" in checked.reason


@pytest.mark.parametrize(
    ("changes", "copied", "found"),
    [
        ({}, "", True),
        ({"whose": "another model of the same version"}, "", False),
        ({"whose": ""}, "", False),
        ({"bank": SimpleNamespace(content_hash="another")}, "", False),
        ({"error": "void"}, "", False),
        ({}, "another run", False),
    ],
)
def test_only_whole_interviews_of_the_same_subject_on_the_bank_count(
    changes: dict[str, Any], copied: str, found: bool
) -> None:
    history = history_of(record(answer(), **changes), copied=copied)
    assert bool(list(earlier_interviews(history, evaluation(), "w"))) is found
    assert list(earlier_interviews(history, evaluation(), "")) == []
    assert list(earlier_interviews(None, evaluation(), "w")) == []


def test_a_model_that_samples_is_not_compared() -> None:
    checked = check(record(answer()), identity=SubjectIdentity("m", "hash", {"temperature": 0.7}))
    assert checked.reason == "decoding samples"
    assert not checked.finds_changes([answer("two")])
