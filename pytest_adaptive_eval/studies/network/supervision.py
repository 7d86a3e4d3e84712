"""How a supervisor agrees with people or a coded truth: accuracy and F1 of its yes and no, ranks of its ratings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.studies.network.result import NetworkResult

__all__ = ["Label", "SupervisorAgreement", "read_labels", "supervisor_agreement"]

_KEYS = ("item", "node", "subject", "fault", "rating")


@dataclass(frozen=True, slots=True)
class Label:
    """What somebody else thinks of a question or an exchange.

    Parameters
    ----------
    item : str
        Its id.
    node : str
        Empty where the id alone tells.
    subject : {"question", "exchange"}
    fault : bool, optional
    rating : float, optional
        From 1 to 5, of which 5 is the best; a mean of several may have decimals.
    """

    item: str
    node: str = ""
    subject: str = "exchange"
    fault: bool | None = None
    rating: float | None = None


@dataclass(frozen=True, slots=True)
class SupervisorAgreement:
    """NaN where there is nothing to compare.

    Parameters
    ----------
    judged : int
        Reviews by yes and no with a label.
    accuracy, f1 : float
        Of a fault.
    rated : int
        Ratings with a label.
    spearman : float
    unread : int
        Reviews with a label that could not be read.
    """

    judged: int
    accuracy: float
    f1: float
    rated: int
    spearman: float
    unread: int


def read_labels(path: Path) -> list[Label]:
    """Labels of a file: one JSON object a line, with ``item`` and ``fault`` or ``rating``.

    Raises
    ------
    ConfigError
        Names file and line.
    """
    try:
        lines = read_regular(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: it cannot be read as text ({error}); expected one JSON object a line") from None
    return [_label(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _label(line: str, where: str) -> Label:
    form = '{"item": "addition-1-0", "fault": false} or {"item": "addition-1-0", "rating": 4}'
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, Mapping) or not isinstance(data.get("item"), str) or not set(data) <= set(_KEYS):
        raise ConfigError(f"{where}: {line!r:.60} is no label, expected such as {form}")
    fault, rating, subject = data.get("fault"), data.get("rating"), data.get("subject", "exchange")
    known = isinstance(rating, int | float) and not isinstance(rating, bool) and 1 <= rating <= 5
    if (fault is None and rating is None) or not isinstance(fault, bool | None) or not (rating is None or known):
        raise ConfigError(f"{where}: fault is {fault!r:.40} and rating {rating!r:.40}, expected such as {form}")
    if subject not in ("question", "exchange"):
        raise ConfigError(f"{where}: subject is {subject!r:.40}, expected question or exchange")
    return Label(data["item"], str(data.get("node", "")), subject, fault, rating)


def supervisor_agreement(result: NetworkResult, labels: Iterable[Label]) -> SupervisorAgreement:
    """Compare a network's reviews with labels of the same questions and exchanges."""
    known = {(label.node, label.subject, label.item): label for label in labels}
    faults: list[tuple[bool, bool]] = []
    ratings: list[tuple[float, float]] = []
    unread = 0
    for node in result.nodes:
        for one in node.reviews:
            label = known.get((node.name, one.subject, one.item)) or known.get(("", one.subject, one.item))
            if label is None:
                continue
            unread += one.fault is None and one.rating is None
            if one.fault is not None and label.fault is not None:
                faults.append((one.fault, label.fault))
            if one.rating is not None and label.rating is not None:
                ratings.append((one.rating, label.rating))
    both = sum(a and b for a, b in faults)
    either = sum(a + b for a, b in faults)
    values = np.array(ratings, dtype=np.float64).reshape(-1, 2)
    return SupervisorAgreement(
        len(faults),
        sum(a == b for a, b in faults) / len(faults) if faults else float("nan"),
        2 * both / either if either else float("nan"),
        len(ratings),
        rank_correlation(values[:, 0], values[:, 1]) if len(ratings) > 1 else float("nan"),
        unread,
    )
