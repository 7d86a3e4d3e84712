"""Registry of study kinds by name.  A kind's module is imported when a study of that kind is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pytest_adaptive_eval.config.study import StudyKind
from pytest_adaptive_eval.errors import ConfigError

__all__ = ["STUDIES", "merge_kinds"]


def _peers() -> StudyKind:
    from pytest_adaptive_eval.config.panel import PEERS

    return PEERS


def _network() -> StudyKind:
    from pytest_adaptive_eval.config.network import NETWORK

    return NETWORK


def _ablation() -> StudyKind:
    from pytest_adaptive_eval.config.ablation import ABLATION

    return ABLATION


#: Loaders of the built-in kinds.
STUDIES: Mapping[str, Callable[[], StudyKind]] = {"peers": _peers, "network": _network, "ablation": _ablation}


def merge_kinds(provided: Iterable[Mapping[str, Callable[[], StudyKind]]]) -> Mapping[str, Callable[[], StudyKind]]:
    """Return the loaders of several plugins by kind.

    Parameters
    ----------
    provided : iterable of mapping
        Results of the hook ``pytest_adaptive_eval_study_kinds``.

    Raises
    ------
    ConfigError
        Two plugins provide one kind.
    """
    kinds: dict[str, Callable[[], StudyKind]] = {}
    for loaders in provided:
        for name, load in loaders.items():
            if name in (*kinds, "bank", "ladder"):
                raise ConfigError(f"plugins provide the study kind {name!r} more than once: rename one of them")
            kinds[name] = load
    return kinds
