"""Models on OpenAI-compatible servers as a kind of model."""

from __future__ import annotations

from dataclasses import fields

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.endpoint.settings import EndpointSettings
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.text import shown_address


class EndpointKind(ModelKind):
    """A model on an OpenAI-compatible server."""

    name = "endpoint"
    form = "http://HOST:PORT/v1#MODEL"
    help = "a model on a server"
    prefixes: tuple[str, ...] = ("http://", "https://")
    model = "pytest_adaptive_eval.models.endpoint.model:EndpointModel"
    options = tuple(option.name for option in fields(EndpointSettings))
    extra = "endpoint"
    remote = True

    def arguments(self, spec: str) -> tuple[str, str]:
        """Return the server's address and the model's name."""
        address, _, model = spec.partition("#")
        return address, model

    def label(self, spec: str) -> str:
        """Return `spec` without a user name, a password and a query."""
        return shown_address(spec)

    def model_name(self, spec: str) -> str:
        """Return the name after ``#``."""
        if name := spec.partition("#")[2].strip():
            return name
        raise ConfigError(f"{self.label(spec)!r} names no model: write {self.form}")


REGISTERED = (EndpointKind(),)
