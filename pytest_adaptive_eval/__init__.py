"""Adaptive evaluation of model checkpoints inside pytest, with gates whose error rate is what they say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public names and the modules they live in; loaded on first use, so that importing this package costs nothing.
_NAMES = {
    "AdaptiveEvalError": "errors",
    "AdaptiveEvalWarning": "errors",
    "Completion": "models.base",
    "Condition": "core.conditions",
    "Estimate": "core.estimation",
    "Item": "core.item",
    "ItemBank": "core.bank",
    "Outcome": "core.verdict",
    "Policy": "core.session",
    "Response": "core.item",
    "RunRecord": "core.record",
    "Selector": "core.selection",
    "Session": "core.session",
    "SessionResult": "core.gates",
    "Status": "core.item",
    "Subject": "models.base",
    "SubjectIdentity": "models.base",
    "Unscored": "errors",
    "Verdict": "core.verdict",
    "load_subject": "models",
    "read_bank": "banks",
    "write_bank": "banks",
}

__all__ = sorted(_NAMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
