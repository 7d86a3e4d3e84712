"""Built-in contenders of a backtest in formats."""
