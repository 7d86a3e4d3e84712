"""Recorded responses of many subjects, in the formats that evaluation tools write."""

from pytest_adaptive_eval.banks.responses.reader import FORMATS, read_responses

__all__ = ["FORMATS", "read_responses"]
