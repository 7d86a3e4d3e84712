"""Model servers that the run starts as a kind of model."""

from __future__ import annotations

import re

from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.models.kinds.endpoint import REGISTERED as ENDPOINTS
from pytest_adaptive_eval.text import shown_command

(_ENDPOINT,) = ENDPOINTS


class ManagedServer(ModelKind):
    """A model on a server that the run starts and ends."""

    name = "managed server"
    form = "serve:COMMAND"
    help = "a server that the run starts"
    prefixes = ("serve:",)
    model = "pytest_adaptive_eval.extensions.serving.model:ServedModel"
    options = ("serve", "serve_args", "cache", *_ENDPOINT.options)
    extra = "endpoint"
    remote = True
    hashes_files = True

    def arguments(self, spec: str) -> tuple[str]:
        """Return the command, or the checkpoint folder."""
        return (spec.removeprefix(self.prefixes[0]),)

    def label(self, spec: str) -> str:
        """Return `spec` without the values of options that are keys."""
        return " ".join(shown_command(spec.split(" ")))

    def model_name(self, spec: str) -> str:
        """Return the name after ``#`` at the end of a command, else the command."""
        match = re.search(r"#([^\s#]+)\Z", spec)
        if match:
            return match[1]
        return self.label(spec)


MANAGED_SERVER = ManagedServer()
REGISTERED = (MANAGED_SERVER,)
