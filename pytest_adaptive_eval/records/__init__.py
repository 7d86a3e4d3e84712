"""Records of runs: the journal, the history, baselines, and comparisons over runs."""
