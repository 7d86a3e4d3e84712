"""Answers of a model that others wait for: they come in any thread, and are taken in the thread of the run."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue


class Arrivals:
    """What is left to do for each answer, in the order in which they came."""

    def __init__(self) -> None:
        self._steps: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def put(self, step: Callable[[], object]) -> None:
        """Add what is to do for an answer, from any thread."""
        self._steps.put(step)

    def take(self, *, wait: bool) -> None:
        """Do what is there, after the first step has come if this `wait`; raises what a step raises."""
        while wait or not self._steps.empty():
            self._steps.get()()
            wait = False

    def wake(self) -> None:
        """End a wait of `take`."""
        self._steps.put(lambda: None)
