"""From an interview's result to a verdict: conditions, verdicts, and what a gate will cost."""
