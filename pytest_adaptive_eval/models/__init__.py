"""Subjects: the models under evaluation, and agents: models that work for a run.

Every kind of subject is declared in one module of `models.kinds`, or in a module of an installed plugin.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.kind import SubjectKind
from pytest_adaptive_eval.registry import built_in, lacking, registered
from pytest_adaptive_eval.text import shown_address

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Agent, Completion, Subject, SubjectIdentity

__all__ = [
    "Completion",
    "Subject",
    "SubjectIdentity",
    "SubjectKind",
    "built_in_kinds",
    "load_agent",
    "load_subject",
    "resolve",
    "subject_kinds",
]

_KINDS = "pytest_adaptive_eval.models.kinds"
#: Entry point group in which plugins register modules with kinds of subjects.
GROUP = "adaptive_eval.subjects"


def __getattr__(name: str) -> Any:
    """Import the classes of `models.base` on first use: the help text needs the kinds alone."""
    if name in ("Completion", "Subject", "SubjectIdentity"):
        return getattr(import_module("pytest_adaptive_eval.models.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def built_in_kinds() -> list[SubjectKind]:
    """Return the kinds of this package; the help lists them without loading plugins."""
    return [kind for module in built_in(_KINDS, GROUP) for kind in module.REGISTERED]


@functools.cache
def subject_kinds() -> Mapping[str, SubjectKind]:
    """Return all kinds of subjects by name, those of installed plugins included."""
    return registered(_KINDS, GROUP, SubjectKind)


def resolve(spec: str, folders: Sequence[Path] = (), *, agent: bool = False) -> tuple[SubjectKind, str]:
    """Return the kind of model that a text names, and the text with the path of its file or folder.

    Args:
        folders: Folders that a relative path may be relative to, in order.
        agent: Consider kinds that can serve as agents alone.

    Raises:
        ConfigError: No kind recognises the text.
    """
    kinds = [kind for kind in subject_kinds().values() if not agent or kind.agent]
    for kind in sorted(kinds, key=lambda kind: not kind.prefixes):  # a folder may be called like a prefix
        if (located := kind.locate(spec, folders)) is not None:
            return kind, located
    forms = ", ".join(kind.form for kind in kinds if kind.prefixes)
    raise ConfigError(
        f"{'agent' if agent else 'model'} {shown_address(spec)!r} is not known; expected an existing checkpoint folder "
        f"(nothing is downloaded), {forms}{lacking()}"
    )


def load_subject(spec: str, **options: Any) -> Subject:
    """Load the subject that `spec` names.

    Args:
        spec: A checkpoint folder, ``replay:PATH`` or ``replay:PATH#SUBJECT`` for recorded answers,
            ``http://HOST:PORT/v1#MODEL`` (or ``https``) for a model on an OpenAI-compatible server, or a text of a
            plugin's kind.
        **options: For a checkpoint those of `pytest_adaptive_eval.models.checkpoint.subject.TransformersSubject.load`,
            for a server those of `pytest_adaptive_eval.models.endpoint.subject.EndpointSubject.load`.

    Raises:
        ConfigError: No kind recognises `spec`, an option is unknown, a package is not installed, or a server gives no
            answers.
        CheckpointError: The folder is no checkpoint that can be used.
    """
    kind, located = resolve(spec)
    subject: Subject = kind.load(located, options)
    return subject


def load_agent(spec: str, **options: Any) -> Agent:
    """Load the agent that `spec` names: a model that works for the run, as an interviewer or a judge.

    Args:
        spec: A checkpoint folder of a chat model, or ``http://HOST:PORT/v1#MODEL``.
        **options: Those of `pytest_adaptive_eval.models.checkpoint.subject.TransformersAgent.load` or
            `pytest_adaptive_eval.models.endpoint.subject.EndpointAgent.load`.

    Raises:
        ConfigError, CheckpointError: As `load_subject`.
    """
    kind, located = resolve(spec, agent=True)
    agent: Agent = kind.load(located, options, agent=True)
    return agent
