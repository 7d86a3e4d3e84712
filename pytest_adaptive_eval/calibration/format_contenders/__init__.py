"""Contenders of backtests in formats; each module registers its contenders."""
