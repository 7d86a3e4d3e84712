"""Contenders of backtests; each module registers its contenders, which tables and help list in this order."""
