"""A gate in Python, on the evaluation that ``adaptive-eval.toml`` declares."""

import pytest


@pytest.mark.adaptive_gate("text", metric="ability", at_least=1.2, confidence=0.9)
def test_candidate_is_able(adaptive_eval):
    assert adaptive_eval.verdicts
