"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import re
from typing import Any, cast


class _LazyPattern:
    """A pattern that compiles itself when it is first searched."""

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        # found before __getattr__ from now on
        vars(self).update({method: getattr(compiled, method) for method in dir(compiled) if not method.startswith("_")})
        return getattr(compiled, name)


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of a text, compiled at its first use.

    Compiling the patterns that read answers takes half a second, and most runs need few of them.

    Args:
        flags: As of `re.compile`. An error in the text appears at the first use.

    Returns:
        With all methods of a pattern; the functions of `re` do not take it.
    """
    return cast("re.Pattern[str]", _LazyPattern(text, flags))
