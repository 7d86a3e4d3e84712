"""What a setting may be, and the sentence for one that is something else."""

from __future__ import annotations

from pytest_adaptive_eval.errors import ConfigError

__all__ = ["check_count"]


def check_count(name: str, number: object, least: int = 1) -> None:
    """Refuse what is no whole number, or too small.

    Parameters
    ----------
    name : str
        Of the setting, with its place where there may be several.
    number : object
    least : int

    Raises
    ------
    ConfigError
        Names the setting.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ConfigError(f"{name} is {number!r}, expected a whole number of at least {least}")
