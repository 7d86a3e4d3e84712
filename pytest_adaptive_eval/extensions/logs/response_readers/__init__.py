"""Readers of recorded responses, one per tool."""
