"""Global random generators: an interview has a state of its own, whatever other plugins seed between its questions."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["GeneratorStates"]


class GeneratorStates:
    """States of the generators of `random`, `numpy.random` and torch that belong to one interview.

    A sampling model may draw from a global generator.  A plugin that seeds the generators before every test would give
    it the same draws for every question, so that repeated answers are copies of one answer.

    Parameters
    ----------
    key : str
        Distinguishes the interview from others of the run.  The interview's first state depends on it and on the
        state that the user's program has then.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._states: tuple[Any, ...] | None = None

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Use the interview's states within, and give the states of before back at the end."""
        outside = _states()
        if self._states is None:
            _seed(random.Random(f"{self._key} {random.getrandbits(64)} {np.random.randint(2**31)}"))
        else:
            _restore(self._states)
        try:
            yield
        finally:
            self._states = _states()
            _restore(outside)


def _torch() -> Any:
    """The module torch if something has imported it."""
    return sys.modules.get("torch")


def _states() -> tuple[Any, ...]:
    torch = _torch()
    devices = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    return (
        random.getstate(),
        np.random.get_state(),
        None if torch is None else torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if devices else None,
    )


def _restore(states: tuple[Any, ...]) -> None:
    own, numpy, cpu, devices = states
    random.setstate(own)
    np.random.set_state(numpy)
    if (torch := _torch()) is not None and cpu is not None:
        torch.set_rng_state(cpu)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)


def _seed(source: random.Random) -> None:
    random.seed(source.getrandbits(64))
    np.random.seed(source.getrandbits(32))
    if (torch := _torch()) is not None:
        torch.manual_seed(source.getrandbits(63))
