"""Interviews led by an interviewer: who picks each question from a few candidates, with a memory of what was seen."""
