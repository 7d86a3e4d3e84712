"""An interview as pytest items: one placeholder that is collected, and questions made on the fly.

Collecting a bank costs one item whatever its size. When the placeholder's turn comes it asks its session for questions,
runs each through pytest's own protocol as an ordinary parametrized test, and then lets pytest run the placeholder,
which fails if the interview is void. Questions and placeholder have the same parent, so that module- and session-scoped
fixtures (the model) are set up once.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.evaluation import Evaluation
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.plugin.asking import AskingLoop
from pytest_adaptive_eval.plugin.finish import finish
from pytest_adaptive_eval.plugin.gate_plan import GatePlan
from pytest_adaptive_eval.plugin.state import EvaluationNode, sets_up_only
from pytest_adaptive_eval.records.run_record import InterviewRecord


class Interview(EvaluationNode):
    """The placeholder of one subject and one bank."""

    noun = "interview"
    evaluation: Evaluation
    gate_plan: GatePlan
    record: InterviewRecord | None = None
    result: SessionResult | None = None
    #: Why the user's own marks or fixtures skip this interview.
    skipped = ""

    @property
    def aliases(self) -> set[str]:
        """Names by which a gate may ask for this interview."""
        return super().aliases | {self.evaluation.bank.name}

    def administer(self) -> None:
        """Ask questions until the session ends."""
        start = clock.elapsed()
        loop = AskingLoop(self, self.gate_plan)
        with closing(loop.session):
            loop.run()
            self.skipped = loop.skipped
            if not sets_up_only(self.config):
                self.result, self.record = finish(loop, clock.elapsed() - start)

    def restore(self, data: dict[str, Any]) -> None:
        """Set the result from the JSON data of the process that ran the interview."""
        self.result = SessionResult.from_json(data, self.evaluation.bank, **self.gate_plan.result_arguments())

    def runtest(self) -> None:
        """Fail when the interview is void, or failed items that must pass with no gate to say so.

        Wrong answers to other items never fail it.
        """
        if self.skipped:
            pytest.skip(self.skipped)
        if self.record is None:
            pytest.fail("the interview did not take place", pytrace=False)
        for name in ("asked", "scored", "size", "stop_sentence"):
            self.user_properties.append((name, str(getattr(self.record, name))))
        if self.record.error:
            pytest.fail(f"ERROR {self.record.name}: {self.record.error}", pytrace=False)
        answers = self.result.must_pass if self.result is not None else ()
        if not self.gate_plan.judged and any(answer.failed for answer in answers):
            pytest.fail(f"FAIL {self.record.name}: {must_pass_sentence(answers)}; no gate judges it", pytrace=False)
