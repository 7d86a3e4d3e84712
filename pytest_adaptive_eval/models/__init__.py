"""Models under evaluation, and models that work for a run: interviewers, judges and supervisors.

Every kind of model is declared in one module of `models.kinds`, or in a module of an installed plugin.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gone import refuse_gone_model
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.registry import built_in, lacking, registered
from pytest_adaptive_eval.text import shown_address

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

__all__ = [
    "Completion",
    "Model",
    "ModelKind",
    "SubjectIdentity",
    "built_in_kinds",
    "load_model",
    "resolve",
    "subject_kinds",
]

_KINDS = "pytest_adaptive_eval.models.kinds"
#: Entry point group in which plugins register modules with kinds of subjects.
GROUP = "adaptive_eval.subjects"


def __getattr__(name: str) -> Any:
    """Import the classes of `models.base` on first use: the help text needs the kinds alone."""
    if name in ("Completion", "Model", "SubjectIdentity"):
        return getattr(import_module("pytest_adaptive_eval.models.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def built_in_kinds() -> list[ModelKind]:
    """Return the kinds of this package; the help lists them without loading plugins."""
    return [kind for module in built_in(_KINDS, GROUP) for kind in module.REGISTERED]


@functools.cache
def subject_kinds() -> Mapping[str, ModelKind]:
    """Return all kinds of subjects by name, including installed plugins'."""
    return registered(_KINDS, GROUP, ModelKind)


def resolve(spec: str, folders: Sequence[Path] = (), *, chats: bool = False) -> tuple[ModelKind, str]:
    """Return the kind of model that a text names, and the text with the path of its file or folder.

    Args:
        folders: Folders that a relative path may be relative to, in order.
        chats: Consider kinds alone whose models hold chats.

    Raises:
        ConfigError: No kind recognises the text.
    """
    refuse_gone_model(spec)
    kinds = [kind for kind in subject_kinds().values() if kind.chats or not chats]
    for kind in sorted(kinds, key=lambda kind: not kind.prefixes):  # a folder may be called like a prefix
        if (located := kind.locate(spec, folders)) is not None:
            return kind, located
    forms = ", ".join(kind.form for kind in kinds if kind.prefixes)
    meant = next(filter(None, (kind.suggestion(spec) for kind in kinds)), "")
    raise ConfigError(
        f"model {shown_address(spec)!r} is not known; {meant}expected an existing checkpoint folder "
        f"(nothing is downloaded), {forms}{lacking()}"
    )


def load_model(spec: str, *, chats: bool = False, **options: Any) -> Model:
    """Load the model that `spec` names.

    Args:
        spec: A checkpoint folder, ``replay:PATH`` or ``replay:PATH#SUBJECT`` for recorded answers,
            ``http://HOST:PORT/v1#MODEL`` (or ``https``) for a model on an OpenAI-compatible server, or a text of a
            plugin's kind.
        chats: Whether the model is to hold chats, as an interviewer, a judge or a member of a panel does.
        **options: For a checkpoint see `pytest_adaptive_eval.models.checkpoint.model.TransformersModel.load`, for a
            server `pytest_adaptive_eval.models.endpoint.model.EndpointModel.load`.

    Raises:
        ConfigError: No kind recognises `spec`, an option is unknown, a package is not installed, a server gives no
            answers, or the model holds no chats.
        CheckpointError: The folder is not a checkpoint that can be used.
    """
    kind, located = resolve(spec, chats=chats)
    return kind.load(located, options, chats=chats)
