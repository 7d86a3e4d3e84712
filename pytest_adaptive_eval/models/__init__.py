"""Subjects: what is interviewed.

`load_subject` makes one from a word of the command line; the classes live in
their own modules, so that asking for recorded answers imports no torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.base import Completion, Subject, SubjectIdentity

__all__ = ["Completion", "Subject", "SubjectIdentity", "load_subject"]

REPLAY = "replay:"


def load_subject(spec: str, **options: Any) -> Subject:
    """Make the subject that `spec` names.

    Parameters
    ----------
    spec : str
        A checkpoint folder, or ``replay:PATH`` or ``replay:PATH#SUBJECT`` for
        recorded answers.
    **options
        For a checkpoint those of
        `pytest_adaptive_eval.models.transformers.TransformersSubject.load`.

    Raises
    ------
    ConfigError
        `spec` names nothing known, an option is not known, or what it needs is
        not installed.
    CheckpointError
        The folder is no checkpoint that can be used.
    """
    if spec.startswith(REPLAY):
        from pytest_adaptive_eval.models.replay import ReplaySubject

        path, name = spec.removeprefix(REPLAY), None
        if not Path(path).exists() and "#" in path:
            path, _, name = path.rpartition("#")
        return _load(ReplaySubject.load, spec, (path, name), options)
    if spec and Path(spec).expanduser().is_dir():
        try:
            from pytest_adaptive_eval.models.transformers import TransformersSubject
        except ImportError as error:
            raise ConfigError(
                f"model {spec!r} is a checkpoint folder, which needs torch and transformers ({error}); "
                "install pytest-adaptive-eval[hf]"
            ) from error
        return _load(TransformersSubject.load, spec, (spec,), options)
    raise ConfigError(
        f"model {spec!r} is not known; expected an existing checkpoint folder (nothing is downloaded), "
        "replay:FILE.csv#SUBJECT or replay:FILE.jsonl"
    )


def _load(load: Callable[..., Subject], spec: str, given: tuple[Any, ...], options: dict[str, Any]) -> Subject:
    accepted = list(inspect.signature(load).parameters)[len(given) :]
    if unknown := sorted(set(options) - set(accepted)):
        raise ConfigError(
            f"model {spec!r} has no option {', '.join(unknown)}; expected {', '.join(accepted) or 'no options'}"
        )
    return load(*given, **options)
