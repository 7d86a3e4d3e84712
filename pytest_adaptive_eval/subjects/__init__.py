"""Subjects: what is interviewed.

`load_subject` makes one from a word of the command line; the classes live in
their own modules, so that asking for recorded answers imports no torch.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_adaptive_eval.checks import check_count, check_decoding
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.subjects.base import DTYPES, Completion, Subject, SubjectIdentity

if TYPE_CHECKING:
    from pytest_adaptive_eval.subjects.agent import Agent

__all__ = ["Completion", "Subject", "SubjectIdentity", "check_checkpoint_options", "load_agent", "load_subject"]

Made = TypeVar("Made")

REPLAY = "replay:"
ENDPOINT = ("http://", "https://")
#: Options of a checkpoint as an agent and as a subject; the signatures that have them cannot be read without torch.
_AGENT_OPTIONS = ("device", "dtype", "cache")
_SUBJECT_OPTIONS = ("device", "dtype", "max_tokens", "batch_size", "temperature", "seed", "cache")


def load_subject(spec: str, **options: Any) -> Subject:
    """Make the subject that `spec` names.

    Parameters
    ----------
    spec : str
        A checkpoint folder, ``replay:PATH`` or ``replay:PATH#SUBJECT`` for
        recorded answers, or ``http://HOST:PORT/v1#MODEL`` (or ``https``) for a
        model on an OpenAI-compatible server.
    **options
        For a checkpoint those of
        `pytest_adaptive_eval.subjects.checkpoint.subject.TransformersSubject.load`, for
        a server those of `pytest_adaptive_eval.subjects.endpoint.subject.EndpointSubject.load`.

    Raises
    ------
    ConfigError
        `spec` names nothing known, an option is not known, what it needs is
        not installed, or a server gives no answers.
    CheckpointError
        The folder is no checkpoint that can be used.
    """
    if spec.startswith(REPLAY):
        from pytest_adaptive_eval.subjects.replay import ReplaySubject

        path, name = spec.removeprefix(REPLAY), None
        if "#" in path and find_input(path, [Path()]) is None:
            path, _, name = path.rpartition("#")
        return _load(ReplaySubject.load, spec, (path, name), options)
    if spec.startswith(ENDPOINT):
        try:
            from pytest_adaptive_eval.subjects.endpoint.subject import EndpointSubject
        except ImportError as error:
            raise _missing(spec, "a model on a server", "endpoint", error) from error
        url, _, model = spec.partition("#")
        return _load(EndpointSubject.load, f"{url.rpartition('@')[2]}#{model}", (url, model), options)
    if spec and Path(spec).expanduser().is_dir():
        try:
            from pytest_adaptive_eval.subjects.checkpoint.subject import TransformersSubject
        except ImportError as error:
            raise _missing(spec, "a checkpoint folder", "hf", error) from error
        return _load(TransformersSubject.load, spec, (spec,), options)
    raise ConfigError(
        f"model {spec!r} is not known; expected an existing checkpoint folder (nothing is downloaded), "
        "replay:FILE.csv#SUBJECT, replay:FILE.jsonl or http://HOST:PORT/v1#MODEL"
    )


def load_agent(spec: str, **options: Any) -> Agent:
    """Make the agent that `spec` names: a model that works for the run, as an interviewer or a judge.

    Parameters
    ----------
    spec : str
        A checkpoint folder of a chat model, or ``http://HOST:PORT/v1#MODEL``.
    **options
        Of `pytest_adaptive_eval.subjects.checkpoint.agent.TransformersAgent.load` or
        `pytest_adaptive_eval.subjects.endpoint.subject.EndpointAgent.load`.

    Raises
    ------
    ConfigError, CheckpointError
        As `load_subject`.
    """
    if spec.startswith(ENDPOINT):
        try:
            from pytest_adaptive_eval.subjects.endpoint.subject import EndpointAgent
        except ImportError as error:
            raise _missing(spec, "an agent on a server", "endpoint", error) from error
        url, _, model = spec.partition("#")
        return _load(EndpointAgent.load, f"{url.rpartition('@')[2]}#{model}", (url, model), options)
    if spec and Path(spec).expanduser().is_dir():
        try:
            from pytest_adaptive_eval.subjects.checkpoint.agent import TransformersAgent
        except ImportError as error:
            raise _missing(spec, "a checkpoint as agent", "hf", error) from error
        return _load(TransformersAgent.load, spec, (spec,), options)
    raise ConfigError(
        f"agent {spec!r} is not known; expected an existing checkpoint folder (nothing is downloaded) or "
        "http://HOST:PORT/v1#MODEL"
    )


def check_checkpoint_options(spec: str, options: Mapping[str, Any], *, agent: bool = False) -> None:
    """Check that a checkpoint folder can be loaded with these options, without importing what loads it.

    Parameters
    ----------
    spec : str
        The folder.
    options : mapping
        Of `load_subject`, or of `load_agent`.
    agent : bool
        The checkpoint is an agent, not a subject.

    Raises
    ------
    ConfigError
        A package is missing, an option is not known, or its value is out of its range.  Whether there is such a device
        is not checked.
    """
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            error = ImportError(f"No module named {package!r}")
            raise _missing(spec, "a checkpoint folder", "hf", error)
    _check_names(spec, options, _AGENT_OPTIONS if agent else _SUBJECT_OPTIONS)
    for name in ("max_tokens", "batch_size"):
        check_count(name, options.get(name, 1))
    check_decoding(options.get("temperature", 0.0), options.get("seed", 0))
    if options.get("dtype", "auto") not in ("auto", *DTYPES):
        raise ConfigError(f"dtype {options['dtype']!r} is not known; use auto, {', '.join(DTYPES)}")


def _missing(spec: str, what: str, extra: str, error: ImportError) -> ConfigError:
    shown = spec.rpartition("@")[2]
    return ConfigError(f"{shown!r}: {what} needs a package ({error}); install pytest-adaptive-eval[{extra}]")


def _load(load: Callable[..., Made], spec: str, given: tuple[Any, ...], options: dict[str, Any]) -> Made:
    _check_names(spec, options, list(inspect.signature(load).parameters)[len(given) :])
    return load(*given, **options)


def _check_names(spec: str, options: Iterable[str], accepted: Iterable[str]) -> None:
    if unknown := sorted(set(options) - set(accepted)):
        raise ConfigError(
            f"model {spec!r} has no option {', '.join(unknown)}; expected {', '.join(accepted) or 'no options'}"
        )
