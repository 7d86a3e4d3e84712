"""Exceptions of this package.

::

    AdaptiveEvalError
    ├── UsageError              the user can correct it: a file, a setting, a gate
    │   ├── BaselineError       a baseline that cannot be compared with
    │   │   └── BaselineMissing there is none yet
    │   ├── BankError           a bank or one of its items is malformed
    │   ├── CheckpointError     a checkpoint is unsafe, incomplete or unreadable
    │   ├── ConfigError         a setting, marker argument, flag or TOML key
    │   ├── DatasetError        a published data set cannot be imported
    │   ├── JournalError        the journal or run folder cannot be written or read
    │   ├── ResponsesError      recorded responses are malformed or too few
    │   └── SandboxUnavailable  this machine cannot run a model's code in a sandbox
    ├── AlertError              an alert that a service did not take
    ├── EstimationError         no finite estimate follows from the numbers
    └── Unscored                nothing to grade

A message names the file, line or item, the value found and the value expected, and ends with the fix. The plugin turns
every `UsageError` into ``pytest.UsageError`` (exit code 4); the command line exits with 4 as well.
"""

from __future__ import annotations


class AdaptiveEvalWarning(UserWarning):
    """A warning on an undecided gate with ``on_inconclusive = "warn"``."""


class AdaptiveEvalError(Exception):
    """Base of all errors raised by this package."""


class UsageError(AdaptiveEvalError):
    """A mistake that the user can correct; the message says how."""


class BaselineError(UsageError):
    """A baseline is missing, incomplete, or of another bank, prompt or decoding."""


class BaselineMissing(BaselineError):
    """The baseline does not exist yet, as in a first run."""


class BankError(UsageError):
    """A bank or one of its items is malformed."""


class CheckpointError(UsageError):
    """A checkpoint is unsafe, incomplete or unreadable."""


class ConfigError(UsageError):
    """A setting, marker argument, flag or TOML key is wrong."""


class DatasetError(UsageError):
    """A published data set is malformed, unsafe or not understood."""


class JournalError(UsageError):
    """The journal or the run folder cannot be written or read."""


class ResponsesError(UsageError):
    """Recorded responses are malformed or too few."""


class AlertError(AdaptiveEvalError):
    """A service did not take an alert; the message contains nothing of its URL, which is a secret."""


class SandboxUnavailable(UsageError):
    """The machine or the requested sandbox cannot confine code that a model wrote."""


class EstimationError(AdaptiveEvalError):
    """No finite estimate follows from the numbers."""


class Unscored(AdaptiveEvalError):
    """Raised by a subject or a grader that has nothing to grade.

    A fault of the infrastructure leaves the item without a score. With any other status the answer is wrong.

    Args:
        status: A value of `pytest_adaptive_eval.items.item.Status` other than ``ok``.
        detail: Reason, for the report.
        text: The answer, perhaps incomplete or empty.
    """

    def __init__(self, status: str, detail: str = "", text: str = "") -> None:
        super().__init__(f"{status}: {detail}" if detail else status)
        self.status = status
        self.detail = detail
        self.text = text
