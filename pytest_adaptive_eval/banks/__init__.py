"""Formats of banks, read and written."""

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.writer import write_bank

__all__ = ["read_bank", "write_bank"]
