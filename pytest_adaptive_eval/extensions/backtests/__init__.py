"""Backtests of policies on recorded responses, and refinement of banks in formats."""
