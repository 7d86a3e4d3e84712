"""A gate in Python, on the evaluation that ``adaptive-eval.toml`` declares."""


def test_candidate_is_able(adaptive_eval):
    assert adaptive_eval["text"].ability.at_least(1.2, confidence=0.9)
