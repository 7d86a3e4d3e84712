"""Random states of an interview: each question has its own."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random.mtrand import get_bit_generator, set_bit_generator


class GeneratorStates:
    """States of the generators of `random`, `numpy.random` and torch that belong to one interview.

    A sampling model may draw from a global generator. A plugin that seeds the generators before every test would give
    it the same draws for every question, so repeated answers are copies of one answer. Each question has states of its
    own. A resumed run therefore has the same, although it asks for fewer answers.

    Attributes:
        seed: Seed of all states, drawn when the interview begins, so two runs differ.
    """

    def __init__(self, key: str) -> None:
        self._key, self._position = key, ""
        self._numpy = np.random.MT19937(0)
        self._torch: tuple[Any, Any] | None = None  #: States of torch before the interview.
        self.seed = ""

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Restore at the end of this context, which holds the interview, the states that the generators have now."""
        python_state = random.getstate()
        numpy = get_bit_generator()
        self.seed = str(random.Random(f"{self._key} {python_state} {np.random.get_state()}").getrandbits(64))
        try:
            yield
        finally:
            random.setstate(python_state)
            set_bit_generator(numpy)
            if self._torch is not None:
                cpu, devices = self._torch
                sys.modules["torch"].set_rng_state(cpu)
                if devices is not None:
                    sys.modules["torch"].cuda.set_rng_state_all(devices)

    def begin(self, *position: object) -> None:
        """Set the states of a question's phase."""
        self._position = repr(position)
        self._set()

    def resume(self, seed: str) -> None:
        """Use the seed of an earlier run, from now on."""
        self.seed = seed
        self._set()

    def _set(self) -> None:
        words = hashlib.sha512(f"{self.seed} {self._position}".encode()).digest()
        random.seed(words[:24])
        set_bit_generator(self._numpy)
        np.random.seed(int.from_bytes(words[24:28], "little"))  # a number is fifteen times as quick as an array
        if (torch := sys.modules.get("torch")) is not None:
            if self._torch is None:
                devices = torch.cuda.is_available() and torch.cuda.is_initialized()
                self._torch = torch.get_rng_state(), torch.cuda.get_rng_state_all() if devices else None
            torch.manual_seed(int.from_bytes(words[28:36], "little"))


def drawn_so_far() -> object:
    """Return what differs after a draw from the generators of `random` or `numpy.random`."""
    state: Any = np.random.get_state(legacy=False)
    return random.getstate(), state["state"]["pos"], state["state"]["key"].tobytes()
