"""Registry of study kinds by name.  A kind's module is imported when a study of that kind is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.study import StudyKind
from pytest_adaptive_eval.registry import Service, registered

#: Loaders of the built-in kinds.
STUDIES: Mapping[str, Callable[[], StudyKind]] = {
    name: kind.load for name, kind in registered(None, "adaptive_eval.study_kinds", Service).items()
}


def merge_kinds(provided: Iterable[Mapping[str, Callable[[], StudyKind]]]) -> Mapping[str, Callable[[], StudyKind]]:
    """Return the loaders of several plugins by kind.

    Args:
        provided: Results of the hook ``pytest_adaptive_eval_study_kinds``.

    Raises:
        ConfigError: Two plugins provide one kind.
    """
    kinds: dict[str, Callable[[], StudyKind]] = {}
    for loaders in provided:
        for name, load in loaders.items():
            if name in (*kinds, "bank", "ladder"):
                raise ConfigError(f"plugins provide the study kind {name!r} more than once: rename one of them")
            kinds[name] = load
    return kinds
