"""Kinds of studies by name; the module of a kind is loaded when a study of that kind is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.config.study import StudyKind, StudySpec

__all__ = ["STUDIES", "study_spec"]


def _peers() -> StudyKind:
    from pytest_adaptive_eval.config.panel import PEERS

    return PEERS


def _network() -> StudyKind:
    from pytest_adaptive_eval.config.network import NETWORK

    return NETWORK


#: What loads each kind.
STUDIES: Mapping[str, Callable[[], StudyKind]] = {"peers": _peers, "network": _network}


def study_spec(data: Mapping[str, Any], where: str, base: Path) -> StudySpec:
    """Return a study as written, whose ``kind`` is one of `STUDIES`.

    Parameters
    ----------
    data : mapping
    where : str
        File and line, for errors.
    base : Path
        Folder of the file.

    Raises
    ------
    ConfigError
        A key is not known, or a value has another type than expected.
    """
    return StudySpec(data, where, base, STUDIES[data["kind"]]())
