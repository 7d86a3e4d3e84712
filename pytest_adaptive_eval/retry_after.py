"""Read the HTTP header ``Retry-After``."""

from __future__ import annotations

import datetime
import email.utils
import re


def retry_after(value: str, now: datetime.datetime) -> float | None:
    """Return the seconds that a ``Retry-After`` header asks a client to wait.

    Args:
        value: Of the header: seconds, which some servers send with decimals, or an HTTP date.
        now: With a time zone; a date is relative to it.

    Returns:
        At least 0, which a date in the past gives, and infinite for numbers above about 1e308. None for anything else,
        such as a negative number or an empty text.
    """
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", value := value.strip()):
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        return max(0.0, (date.replace(tzinfo=date.tzinfo or datetime.UTC) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):  # no date, or one that lies outside the calendar
        return None
