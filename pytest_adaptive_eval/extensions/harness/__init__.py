"""Harnesses as models: a command runs the drawn items, and its log says what they scored."""
