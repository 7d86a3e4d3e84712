"""Readers of the logs of evaluation tools."""
