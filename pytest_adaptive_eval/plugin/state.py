"""What interviews, studies and questions know of the run and of each other, as protocols."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pytest_adaptive_eval.config import Settings
    from pytest_adaptive_eval.gates.result import SessionResult
    from pytest_adaptive_eval.gates.study_result import StudyResult
    from pytest_adaptive_eval.items.item import Response
    from pytest_adaptive_eval.plugin.randomness import GeneratorStates

__all__ = ["QuestionOwner", "RunState"]


class RunState(Protocol):
    """The state of a run in one process, as far as an interview or a study needs it."""

    settings: Settings
    #: The run folder.
    folder: Path
    #: Whether this process is a worker of xdist.
    worker: bool
    #: Number of claims that FAIL verdicts are corrected for.
    family: int

    def lookup(self, name: str) -> tuple[Any, SessionResult | StudyResult]:
        """Return the interview or study of a name or a node id, and its result."""


class QuestionOwner(Protocol):
    """The interview of a question, as far as the question needs it."""

    #: Why the user's own marks or fixtures skip the interview; empty where they do not.
    skipped: str
    #: How often another plugin ran a question again, which asked nothing.
    reruns: int
    #: Random state that the questions share.
    generators: GeneratorStates

    @property
    def nodeid(self) -> str:
        """The node id of the interview."""

    def recall(self, test: Any) -> Response | None:
        """Return the answer that an earlier, killed run left to a question, if any."""

    def give_up(self, sentence: str, *, usage: bool = False) -> None:
        """End the interview as void; the first reason stands."""
