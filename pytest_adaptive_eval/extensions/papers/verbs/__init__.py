"""The verbs ``adaptive-eval study NAME``."""
