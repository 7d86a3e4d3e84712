"""Turn off decoding settings of a server's own, and find out which fields it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.endpoint.outcome import Delivery

#: Values without effect.  Without them servers use their own, often those of a checkpoint's generation_config.  vLLM
#: and llama.cpp take all of them from the request; `transformers serve` sets its repetition penalty to 1 + the
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
    """Send a request with all fields, and again without those that the server refuses.

    Args:
        probe: Sends one short request with the given fields.
        fields: Fields that may be left out.

    Returns:
        accepted: The fields that the server did not refuse.
        delivery: The last reply with all of them; a failure if the request fails without any of them, too.
    """
    remaining = dict(fields)
    delivery = probe(remaining)
    while remaining and _refuses(delivery):
        if not (named := [name for name in remaining if re.search(rf"(?<!\w){name}(?!\w)", delivery.detail)]):
            return _one_by_one(probe, remaining, delivery)
        remaining = {name: value for name, value in remaining.items() if name not in named}
        delivery = probe(remaining)
    return remaining, delivery


def _one_by_one(
    probe: Callable[[Mapping[str, Any]], Delivery], fields: Mapping[str, Any], refused: Delivery
) -> tuple[Mapping[str, Any], Delivery]:
    """Add the fields one at a time, because the server does not name those that it refuses."""
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
