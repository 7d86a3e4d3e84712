"""Subjects and adapters that live in lm-evaluation-harness or Inspect."""
