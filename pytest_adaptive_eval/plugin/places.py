"""Refuse to run interviews and gates a second time, or in another process or thread."""

from __future__ import annotations

import os
import threading

from pytest_adaptive_eval.errors import ConfigError


class PlaceGuard:
    """Process and thread of the collection, the only ones in which interviews and gates run, each once."""

    def __init__(self) -> None:
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._begun: set[str] = set()
        self._repeated: set[str] = set()

    def begin(self, nodeid: str) -> bool:
        """Record that a test begins.  Return whether it may run."""
        if nodeid in self._begun:
            self._repeated.add(nodeid)
        self._begun.add(nodeid)
        return not self._refusal(nodeid)

    def check(self, nodeid: str) -> None:
        """Refuse a test that runs a second time or elsewhere.

        Raises:
            ConfigError: Another plugin does that.
        """
        if refusal := self._refusal(nodeid):
            raise ConfigError(
                f"{nodeid}: another plugin runs this test {refusal}; interviews and gates are run once, in the process "
                "and thread that collected them: leave that plugin out of a run with --adaptive-eval"
            )

    def _refusal(self, nodeid: str) -> str:
        """Return how a test runs now that it must not; empty if it may run."""
        if os.getpid() != self._process:
            return "in another process"
        if threading.get_ident() != self._thread:
            return "in another thread"
        return "for a second time" if nodeid in self._repeated else ""
