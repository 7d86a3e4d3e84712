"""Records of runs, their folder and history, baselines, and comparisons over runs."""
