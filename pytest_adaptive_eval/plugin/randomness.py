"""Give each interview its own state of the global random generators, which other plugins seed between questions."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator


class GeneratorStates:
    """States of the generators of `random`, `numpy.random` and torch that belong to one interview.

    A sampling model may draw from a global generator. A plugin that seeds the generators before every test would give
    it the same draws for every question, so that repeated answers are copies of one answer.

    Args:
        key: Distinguishes the interview from others of the run. The interview's first state depends on it and on the
            state that the user's program has then.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._states: tuple[Any, ...] | None = None

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Use the interview's random states in this context, and restore the earlier states at the end."""
        outside = _states()
        _restore(self._first() if self._states is None else self._states)
        try:
            yield
        finally:
            self._states = _states()
            _restore(outside)

    def _first(self) -> tuple[Any, ...]:
        source = random.Random(f"{self._key} {random.getstate()} {np.random.get_state()}")
        python_state = random.Random(source.getrandbits(64)).getstate()
        numpy = np.random.MT19937(source.getrandbits(64))
        if (torch := _torch()) is None:
            return python_state, numpy, None, None
        torch.manual_seed(source.getrandbits(63))
        return python_state, numpy, *_torch_states(torch)


def _torch() -> Any:
    return sys.modules.get("torch")


def _torch_states(torch: Any) -> tuple[Any, Any]:
    devices = torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if devices else None


def _states() -> tuple[Any, ...]:
    torch = _torch()
    # numpy's generator is exchanged as a whole, since its state takes a hundred times as long to copy
    numpy = get_bit_generator()
    return random.getstate(), numpy, *((None, None) if torch is None else _torch_states(torch))


def _restore(states: tuple[Any, ...]) -> None:
    python_state, numpy, cpu, devices = states
    random.setstate(python_state)
    set_bit_generator(numpy)
    if cpu is not None:
        torch = _torch()
        torch.set_rng_state(cpu)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)
