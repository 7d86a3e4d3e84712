"""Running code that a model wrote: locked up, proved to be, and believed in nothing but the values it returns.

`Sandbox.open` finds the best tier that holds on this machine and raises
`pytest_adaptive_eval.errors.SandboxUnavailable` when there is none.
``docs/sandbox.md`` says what is held, by which layer, and what is not.
"""

from __future__ import annotations

from pytest_adaptive_eval.sandbox.runner import Run, Sandbox
from pytest_adaptive_eval.sandbox.values import Failure, same

__all__ = ["Failure", "Run", "Sandbox", "same"]
