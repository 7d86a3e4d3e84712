"""Turn off what a server adds to the decoding by itself, and learn which fields it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.subjects.endpoint.outcome import Delivery

__all__ = ["NEUTRAL", "find_accepted_fields"]

#: Values that change nothing.  Without them servers use their own, often those of a checkpoint's generation_config:
#: vLLM and llama.cpp take all from the request; `transformers serve` sets its repetition penalty to 1 + the
#: frequency penalty; `repeat_penalty` is llama.cpp's name for `repetition_penalty`.
NEUTRAL: Mapping[str, float] = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
#: HTTP status codes by which a server refuses a field.
REFUSALS = frozenset({400, 422})


def find_accepted_fields(
    probe: Callable[[Mapping[str, Any]], Delivery], fields: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Delivery]:
    """Ask with all fields, and again without those that the server refuses.

    Parameters
    ----------
    probe : callable
        Sends one short question with the given fields.
    fields : mapping
        Fields that may be left out.

    Returns
    -------
    accepted : mapping
        The fields that the server did not refuse.
    delivery : Delivery
        The last reply to all of them together; a failure where the question fails without any of them, too.
    """
    left = dict(fields)
    delivery = probe(left)
    while left and _refuses(delivery):
        if not (named := [name for name in left if re.search(rf"(?<!\w){name}(?!\w)", delivery.detail)]):
            return _one_by_one(probe, left, delivery)
        left = {name: value for name, value in left.items() if name not in named}
        delivery = probe(left)
    return left, delivery


def _one_by_one(
    probe: Callable[[Mapping[str, Any]], Delivery], fields: Mapping[str, Any], refused: Delivery
) -> tuple[Mapping[str, Any], Delivery]:
    """Add each field to those that were accepted before it: the server names none of those that it refuses."""
    accepted: dict[str, Any] = {}
    last = probe(accepted)
    if last.status is not Status.OK:
        return accepted, last if _refuses(last) else refused
    for name, value in fields.items():
        delivery = probe({**accepted, name: value})
        if delivery.status is Status.OK:
            accepted[name], last = value, delivery
    return accepted, last


def _refuses(delivery: Delivery) -> bool:
    return delivery.code in REFUSALS and delivery.status is Status.ERROR
