"""Verbs that compare policies and refine banks."""
