"""Adaptive evaluation of model checkpoints inside pytest, with gates whose error rate is what they say."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Public names and the modules they live in; loaded on first use, so that importing this package costs nothing.
_NAMES = {
    "AdaptiveEvalError": "errors",
    "AdaptiveEvalWarning": "errors",
    "AgentPool": "subjects.pool",
    "Completion": "subjects.base",
    "Condition": "gates.condition",
    "Difficulty": "studies.peers.settings",
    "Estimate": "irt.estimation",
    "FormatInterview": "irt.multimodal_information",
    "Item": "items.item",
    "ItemBank": "items.bank",
    "Outcome": "gates.verdict",
    "PeerSettings": "studies.peers.settings",
    "Policy": "cat.policy",
    "Response": "items.item",
    "RunRecord": "records.run_record",
    "Selector": "cat.selection",
    "Session": "cat.session",
    "SessionResult": "gates.result",
    "Status": "items.item",
    "Subject": "subjects.base",
    "SubjectIdentity": "subjects.base",
    "Unscored": "errors",
    "Verdict": "gates.verdict",
    "assess": "studies.peers.assessment",
    "hold_network": "studies.network.run",
    "load_agent": "subjects",
    "load_subject": "subjects",
    "read_bank": "banks",
    "read_labels": "studies.network.supervision",
    "read_network": "studies.network.declare",
    "supervisor_agreement": "studies.network.supervision",
    "write_bank": "banks",
}

#: Documented modules by their earlier names, which stay importable, and by their present ones.
_EARLIER = {
    "core": "",
    "core.ladder": "ladder.result",
    "core.multimodal_selection": "irt.multimodal_information",
    "core.schedule": "ladder.schedule",
    "models": "subjects",
    "models.pool": "subjects.pool",
    "network": "studies.network",
    "network.declare": "studies.network.declare",
    "network.hold": "studies.network.run",
    "network.result": "studies.network.result",
    "network.supervision": "studies.network.supervision",
    "peers": "studies.peers",
    "peers.assessment": "studies.peers.assessment",
    "peers.settings": "studies.peers.settings",
}

__all__ = sorted(_NAMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _EarlierNames:
    """Imports a documented module by its earlier name: its names are those of the module of today."""

    @staticmethod
    def find_spec(name: str, *_location: object) -> ModuleSpec | None:
        """Return a spec for one of the earlier names, and None for any other."""
        package, _, earlier = name.partition(".")
        if package != __name__ or earlier not in _EARLIER:
            return None
        return ModuleSpec(name, _EarlierNames, is_package=True)  # type: ignore[arg-type]  # a loader by its methods

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType | None:
        """Return None, so that Python creates the module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Look up names where they are now."""
        present = _EARLIER[module.__name__.partition(".")[2]]

        def lookup(name: str) -> Any:
            if name.startswith("__") or not present:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return getattr(import_module(f"{__name__}.{present}"), name)

        module.__dict__["__getattr__"] = lookup


sys.meta_path.append(_EarlierNames)
