"""Answers of a model that others wait for: they come in any thread, and are taken in the thread of the run."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue


class Arrivals(SimpleQueue[Callable[[], object]]):
    """Queue of the remaining steps of each answer, in the order in which answers came."""

    def take(self, *, wait: bool) -> None:
        """Do what is there, after the first step has come if this `wait`; raises what a step raises."""
        while wait or not self.empty():
            self.get()()
            wait = False

    def wake(self) -> None:
        """End a wait of `take`."""
        self.put(lambda: None)
