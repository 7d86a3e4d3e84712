"""Adaptive evaluation of model checkpoints inside pytest, with gates whose error rate is what they say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Public names and the modules they live in; loaded on first use, so that importing this package costs nothing.
_NAMES = {
    "AdaptiveEvalError": "errors",
    "AdaptiveEvalWarning": "errors",
    "CallableModel": "models.calling",
    "Completion": "models.base",
    "CompletionStore": "models.store",
    "Condition": "gates.condition",
    "Difficulty": "extensions.studies.peers.settings",
    "FormatInterview": "irt.multimodal_information",
    "Item": "items.item",
    "ItemBank": "items.bank",
    "Model": "models.base",
    "ModelPool": "models.pool",
    "Outcome": "gates.verdict",
    "PeerSettings": "extensions.studies.peers.settings",
    "Policy": "cat.policy",
    "RecordedModel": "models.recorded",
    "RunRecord": "records.run_record",
    "Selector": "cat.selection",
    "Session": "cat.session",
    "SessionResult": "gates.result",
    "Status": "items.item",
    "SubjectIdentity": "models.base",
    "Unscored": "errors",
    "Verdict": "gates.verdict",
    "assess": "extensions.studies.peers.assessment",
    "Interviewed": "plugin.notebook",
    "hold_network": "extensions.studies.network.network_run",
    "interview": "plugin.notebook",
    "load_model": "models",
    "read_bank": "banks",
    "read_labels": "extensions.studies.network.labels",
    "read_network": "extensions.studies.network.declare",
    "supervisor_agreement": "extensions.studies.network.labels",
    "write_bank": "banks",
}

__all__ = sorted(_NAMES)
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if (module := _NAMES.get(name)) is not None:
        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
