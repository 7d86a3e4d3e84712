"""Gates: conditions, results, verdicts, and forecasts of the items to a verdict."""
