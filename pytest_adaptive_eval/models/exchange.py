"""Facts on one answer besides its request and its text, for the page of a run."""

from __future__ import annotations

import msgspec

from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.models.base import Completion, sent_request

#: Most steps that are kept of one answer.
MOST_STEPS = 200


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts on one answer.

    Args:
        measures: ``seconds``, ``input_tokens``, ``output_tokens``, ``reasoning_tokens`` (part of the output), ``cost``,
            ``steps``; unknown ones are left out.
        reasoning: Reasoning before the answer, if the model shows it.
        judged: Replies of the judge.
        steps: Steps of an agent, as its log has them.
    """

    measures: dict[str, float] = {}
    reasoning: str = ""
    judged: list[str] = []
    steps: list[AgentStep] = []

    @classmethod
    def of(cls, completion: Completion) -> Exchange:
        """Return the facts on a completion, without keys and the content of files."""
        cost = completion.cost
        tokens = {
            "input_tokens": cost.prompt_tokens,
            "output_tokens": cost.completion_tokens,
            "reasoning_tokens": cost.reasoning_tokens,
        }
        measures = {name: float(count) for name, count in tokens.items() if count}
        steps = [AgentStep(step.role, sent_request(step.text)) for step in completion.steps[:MOST_STEPS]]
        return cls({**measures, **completion.measures}, sent_request(completion.reasoning), [], steps)

    def to_text(self) -> str:
        """Return the facts as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_text(cls, text: str) -> Exchange:
        """Return the facts of `to_text`; none of a text that is damaged, such as by another version."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError:
            return cls()
