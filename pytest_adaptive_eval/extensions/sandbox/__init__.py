"""Run code that a model wrote in a locked-down process, and read nothing but the values that it returns.

`Sandbox.open` finds the best tier that holds on this machine and raises
`pytest_adaptive_eval.errors.SandboxUnavailable` when there is none.
``docs/reference/sandbox.md`` lists the protections of each layer, and their limits.
"""

from __future__ import annotations

from pytest_adaptive_eval.extensions.sandbox.runner import Run, Sandbox
from pytest_adaptive_eval.extensions.sandbox.values import Failure, same

__all__ = ["Failure", "Run", "Sandbox", "same"]
