"""Recorded responses of many subjects, in the formats that evaluation tools write."""

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.formats import in_formats, named_in_formats, read_format_responses
from pytest_adaptive_eval.banks.responses.reader import FORMATS, read_responses

__all__ = [
    "FORMATS",
    "ReadSettings",
    "ResponseReader",
    "in_formats",
    "named_in_formats",
    "read_format_responses",
    "read_responses",
]
