"""Check which model a server's replies come from, and record it."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.errors import AdaptiveEvalWarning
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.endpoint.body import excerpt
from pytest_adaptive_eval.models.endpoint.outcome import Delivery

#: Response headers in which gateways name the deployment that answered, in lower case.
DEPLOYMENT_HEADERS = frozenset(
    {
        *("x-litellm-model-group", "x-litellm-model-id", "x-litellm-model-name", "x-litellm-model-api-base"),
        *("x-litellm-version", "x-portkey-provider", "x-portkey-last-used-option-index"),
        *("cf-aig-provider", "cf-aig-model"),
    }
)
#: Headers with the number of models that a gateway tried before the one that answered.
FALLBACK_HEADERS = frozenset({"x-litellm-attempted-fallbacks", "cf-aig-step"})
#: Fields of a reply that distinguish deployments with one name.
DEPLOYMENT_FIELDS = ("system_fingerprint", "provider")
#: Date at the end of a model's name.
_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}", re.ASCII)
#: Number of values recorded of each field and header.
MOST_VALUES = 16


class Answerer:
    """A check that each reply names the requested model.  Several threads may use it.

    Args:
        environment: Filled with facts about the model from replies: a text if all agree, else a list of texts.
    """

    def __init__(self, model: str, accepted: Collection[str], environment: MutableMapping[str, Any]) -> None:
        self.model = model
        self._accepted = frozenset(accepted) | {model}
        #: Number of names besides the requested one that replies may carry.
        self.aliases = len(self._accepted) - 1
        #: Whether what replies say of the deployment changed.
        self.several_deployments = False
        self._named = False
        self._answered = False
        self._lock = threading.Lock()
        self._environment = environment

    def check(self, delivery: Delivery) -> Delivery:
        """Return the delivery, with status ``error`` if a model that is not accepted answered."""
        if delivery.status is not Status.OK:
            if delivery.code == 404 and self._answered:
                lost = (
                    "the model answered before, so the server lost it, or its generating thread died (MLX-LM answers "
                    "404 then): start the server again"
                )
                return replace(delivery, detail=f"{delivery.detail}; {lost}")
            return delivery
        if delivery.data.get("error"):  # in place of an answer: it names no model, and reading it says why
            return delivery
        if fault := self._fallback(delivery.headers) or self._other_name(delivery.data):
            return replace(delivery, status=Status.ERROR, data={}, detail=fault, headers={})
        self._note(delivery)
        self._answered = True
        return delivery

    def _fallback(self, headers: Mapping[str, str]) -> str:
        for name in sorted(FALLBACK_HEADERS & set(headers)):
            if not re.fullmatch(r"0*", headers[name]):
                return (
                    f"the gateway answered with a fallback, not with {self.model!r}: the header {name} is "
                    f"{excerpt(headers[name])}, expected 0; repair the deployment, or turn fallbacks off for it"
                )
        return ""

    def _other_name(self, data: Mapping[str, Any]) -> str:
        """Return the fault of the name in a reply, empty if none.  A server that never names a model is trusted."""
        name = data.get("model")
        if name is None or name == "":
            if self._named:
                return "the reply names no model, and earlier ones did"
            return ""
        if not isinstance(name, str):
            return f"the reply's model is {type(name).__name__}, expected a name"
        if name not in self._accepted and not self._is_snapshot(name):
            others = sorted(self._accepted - {self.model})
            line = ", ".join(_toml(accepted_name) for accepted_name in [*others, name])
            accepted = ", ".join(excerpt(accepted_name) for accepted_name in [self.model, *others])
            return (
                f"the reply comes from the model {excerpt(name)}, expected {accepted}; if that is the model you mean, "
                f"add accept_models = [{line}] to the model's options"
            )
        self._named = True
        return ""

    def _is_snapshot(self, name: str) -> bool:
        """Whether a name is the model's own with a date, as providers answer to a name that they move."""
        return name.startswith(self.model) and bool(_DATE.fullmatch(name, len(self.model)))

    def _note(self, delivery: Delivery) -> None:
        facts = {name: delivery.headers[name] for name in sorted(DEPLOYMENT_HEADERS & set(delivery.headers))}
        for name in ("model", *DEPLOYMENT_FIELDS):
            value = delivery.data.get(name)
            if isinstance(value, str) and value and value != self.model:
                facts["answered as" if name == "model" else name] = value
        with self._lock:
            changed = [name for name, value in facts.items() if self._add(name, value[:200])]
        self.several_deployments |= bool(changed)
        for name in changed:
            warnings.warn(
                AdaptiveEvalWarning(
                    f"{name} of {self.model!r} changed during the run, to {excerpt(facts[name])}: several deployments "
                    "may answer under one name, and the verdict is about all of them"
                ),
                stacklevel=2,
            )

    def _add(self, name: str, value: str) -> bool:
        """Record a value.  Return whether it is the second one of its name."""
        recorded = self._environment.get(name)
        if recorded is None:
            self._environment[name] = value
            return False
        if isinstance(recorded, list):
            values = recorded
        else:
            values = [recorded]
        if value in values or len(values) >= MOST_VALUES:
            return False
        self._environment[name] = [*values, value]
        return len(values) == 1


def _toml(text: str) -> str:
    """Write a name as a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
