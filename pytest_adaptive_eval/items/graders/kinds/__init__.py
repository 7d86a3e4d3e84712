"""Kinds of graders of this package, one module for each way to read an answer."""
