"""A grid of checkpoints and evaluations: each cell is a pytest process, resumed by its record."""
