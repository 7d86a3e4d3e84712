"""Labels of exchanges by people or code, and the agreement of a supervisor's reviews with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.inputs import read_regular

_EXAMPLE = '{"node": "addition", "item": "addition-1-w0x0x0", "fault": false}'


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Review of an exchange by a person or code; a rating is from 1 to 5 (best), such as a mean of several."""

    node: str
    item: str
    fault: bool | None = None
    rating: Annotated[float, msgspec.Meta(ge=1, le=5)] | None = None


@dataclass(frozen=True, slots=True)
class SupervisorAgreement:
    """Agreement of reviews with labels; NaN without any.

    Args:
        judged: Labelled reviews of the scheme ``yes-no``; `accuracy` is the share that agrees.
        rated: Labelled ratings, with the rank correlation `spearman`.
    """

    judged: int
    accuracy: float
    rated: int
    spearman: float


def read_labels(path: Path) -> list[Label]:
    """Read labels from a file of JSON objects, one per line, with ``node``, ``item``, and ``fault`` or ``rating``.

    Raises:
        ConfigError: Names file and line.
    """
    labels = []
    where = str(path)
    try:
        for number, line in enumerate(read_regular(path).splitlines(), 1):
            where = f"{path}:{number}"
            labels.append(msgspec.json.decode(line, type=Label))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: {error}; expected lines such as {_EXAMPLE}") from None
    return labels


def supervisor_agreement(result: NetworkResult, labels: Iterable[Label]) -> SupervisorAgreement:
    """Compare a network's reviews with labels of the same exchanges."""
    by_key = {(label.node, label.item): label for label in labels}
    agreed = []
    ratings = []
    labelled_ratings = []
    for node in result.nodes:
        for review in node.reviews:
            label = by_key.get((node.name, review.item))
            if label is None or review.subject != "exchange":
                continue
            if review.fault is not None and label.fault is not None:
                agreed.append(review.fault == label.fault)
            if review.rating is not None and label.rating is not None:
                ratings.append(review.rating)
                labelled_ratings.append(label.rating)
    accuracy = np.nan
    if agreed:
        accuracy = sum(agreed) / len(agreed)
    spearman = np.nan
    if len(ratings) > 1:
        spearman = rank_correlation(ratings, labelled_ratings)
    return SupervisorAgreement(len(agreed), accuracy, len(ratings), spearman)
