"""Interviews led by an interviewer, who picks each question from a few candidates and remembers earlier ones."""
