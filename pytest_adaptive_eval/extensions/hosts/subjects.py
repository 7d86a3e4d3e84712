"""Models of lm-evaluation-harness as a kind of model."""

from __future__ import annotations

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.text import shown_command


class HarnessKind(ModelKind):
    """A model of lm-evaluation-harness, with any of its backends."""

    name = "lm-eval"
    form = "lm-eval:BACKEND#KEY=VALUE,..."
    help = "a model of lm-evaluation-harness"
    prefixes = ("lm-eval:",)
    chats = False
    model = "pytest_adaptive_eval.extensions.hosts.harness:HarnessModel"
    options = ("max_tokens", "until", "chat")

    def arguments(self, spec: str) -> tuple[str, str]:
        """Return the backend's name, and its arguments."""
        backend, _, arguments = spec.removeprefix(self.prefixes[0]).partition("#")
        return backend, arguments

    def label(self, spec: str) -> str:
        """Return `spec` without the values of arguments that are keys."""
        backend, arguments = self.arguments(spec)
        shown = ",".join(shown_command(arguments.split(",")))
        return f"{self.prefixes[0]}{backend}" + (f"#{shown}" if shown else "")

    def model_name(self, spec: str) -> str:
        """Return the last part of the model's path or name, else the backend."""
        if not (name := model_name(*self.arguments(spec))):
            raise ConfigError(f"{self.label(spec)!r} names no backend: write {self.form}")
        return name


def model_name(backend: str, arguments: str) -> str:
    """Return the last part of the model's path or name in ``--model_args``, else the backend."""
    values = dict(part.partition("=")[::2] for part in arguments.split(","))
    path = values.get("pretrained") or values.get("model") or backend
    return path.rstrip("/").rpartition("/")[2]


REGISTERED = (HarnessKind(),)
