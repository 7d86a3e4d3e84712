"""Drift of an ability or an accuracy over the runs of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Alarm", "Point", "Series", "monitor"]


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a series.

    Parameters
    ----------
    run, started : str
        Id, and start in ISO 8601, UTC.
    subject, checkpoint : str
    value, standard_error : float
        In the series' metric.
    """

    run: str
    started: str
    subject: str
    checkpoint: str
    value: float
    standard_error: float


@dataclass(frozen=True, slots=True)
class Series:
    """One evaluation, or one category of it, on one bank and scale, in the order of time.

    Parameters
    ----------
    evaluation, bank, bank_hash, scale : str
    metric : {"ability", "accuracy"}
    category : str
        Empty for the whole bank.
    points : tuple of Point
    """

    evaluation: str
    bank: str
    bank_hash: str
    scale: str
    metric: str
    category: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change of a series that chance seldom makes.

    Parameters
    ----------
    series : Series
    at : int
        Index of the point that raised it.
    since : int
        Index of the first point after the change, as far as can be told.
    before, after : float
        Level of the series before and since.
    sentence : str
        That can be read alone.
    """

    series: Series
    at: int
    since: int
    before: float
    after: float
    sentence: str


def monitor(series: Sequence[Series], *, average_run_length: float = 1000.0) -> list[Alarm]:
    """Alarms of several series, in the order of time."""
    raise NotImplementedError
