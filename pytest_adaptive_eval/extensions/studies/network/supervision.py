"""Agreement of a supervisor with labels by people or code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.extensions.studies.network.roles import Review
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.inputs import read_regular


@dataclass(frozen=True, slots=True)
class Label:
    """Review of a question or an exchange by a person or code.

    Args:
        node: Name of the node; empty if the id is unique in the network.
        rating: From 1 to 5, of which 5 is best, such as a mean of several ratings.
    """

    item: str
    node: str = ""
    subject: str = "exchange"
    fault: bool | None = None
    rating: float | None = None


_KEYS = {field.name for field in fields(Label)}


@dataclass(frozen=True, slots=True)
class SupervisorAgreement:
    """Agreement of reviews with labels; NaN without any.

    Args:
        judged: Labelled reviews of the scheme ``yes-no``.
        accuracy, f1: Accuracy and F1 of the faults.
        rated: Labelled ratings.
        unread: Labelled reviews whose reply was unreadable.
    """

    judged: int
    accuracy: float
    f1: float
    rated: int
    spearman: float
    unread: int


def read_labels(path: Path) -> list[Label]:
    """Read labels from a file with one JSON object per line, which has ``item`` and ``fault`` or ``rating``.

    Raises:
        ConfigError: Names file and line.
    """
    try:
        lines = read_regular(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: it cannot be read as text ({error}); expected one JSON object per line") from None
    return [_label(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _label(line: str, where: str) -> Label:
    form = '{"item": "addition-1-0", "fault": false} or {"item": "addition-1-0", "rating": 4}'
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, Mapping) or not isinstance(data.get("item"), str) or not set(data) <= _KEYS:
        raise ConfigError(f"{where}: {line!r:.60} is no label, expected such as {form}")
    label = Label(**{**data, "node": str(data.get("node", ""))})
    in_range = isinstance(label.rating, int | float) and not isinstance(label.rating, bool) and 1 <= label.rating <= 5
    has_opinion = label.fault is not None or label.rating is not None
    if not has_opinion or not isinstance(label.fault, bool | None) or not (label.rating is None or in_range):
        raise ConfigError(
            f"{where}: fault is {label.fault!r:.40} and rating {label.rating!r:.40}, expected such as {form}"
        )
    if label.subject not in ("question", "exchange"):
        raise ConfigError(f"{where}: subject is {label.subject!r:.40}, expected question or exchange")
    return label


def supervisor_agreement(result: NetworkResult, labels: Iterable[Label]) -> SupervisorAgreement:
    """Compare a network's reviews with labels of the same questions and exchanges."""
    by_key = {(label.node, label.subject, label.item): label for label in labels}
    labelled: list[tuple[Review, Label]] = []
    for node in result.nodes:
        for review in node.reviews:
            keys = ((name, review.subject, review.item) for name in (node.name, ""))
            labelled += [(review, by_key[key]) for key in keys if key in by_key][:1]
    faults, ratings = _both(labelled, "fault"), _both(labelled, "rating")
    both = sum(predicted and actual for predicted, actual in faults)
    total = sum(predicted + actual for predicted, actual in faults)
    values = np.array(ratings, dtype=np.float64).reshape(-1, 2)
    return SupervisorAgreement(
        len(faults),
        sum(predicted == actual for predicted, actual in faults) / len(faults) if faults else float("nan"),
        2 * both / total if total else float("nan"),
        len(ratings),
        rank_correlation(values[:, 0], values[:, 1]) if len(ratings) > 1 else float("nan"),
        sum(review.unread for review, _ in labelled),
    )


def _both(labelled: Iterable[tuple[Review, Label]], name: str) -> list[tuple[Any, Any]]:
    """Return the opinions of review and label, if both have one."""
    pairs = [(getattr(review, name), getattr(label, name)) for review, label in labelled]
    return [pair for pair in pairs if None not in pair]
