"""Built-in contenders of a backtest."""
