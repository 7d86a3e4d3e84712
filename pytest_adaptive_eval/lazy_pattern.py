"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast


class _LazyPattern:
    """A pattern that compiles itself when it is first searched."""

    def __init__(self, text: str, flags: int, read: Callable[[str], str]) -> None:
        self._text, self._flags, self._read = text, flags, read

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._read(self._text), self._flags)
        # found before __getattr__ from now on
        vars(self).update({method: getattr(compiled, method) for method in dir(compiled) if not method.startswith("_")})
        return getattr(compiled, name)


def lazy_pattern(text: str, flags: int = 0, read: Callable[[str], str] = str) -> re.Pattern[str]:
    """Return the pattern of a text, compiled at its first use.

    Compiling the patterns that read answers takes half a second, and most runs need few of them.

    Args:
        flags: As of `re.compile`. An error in the text appears at the first use.
        read: Returns the pattern that a text stands for.

    Returns:
        With all methods of a pattern; the functions of `re` do not take it.
    """
    return cast("re.Pattern[str]", _LazyPattern(text, flags, read))
