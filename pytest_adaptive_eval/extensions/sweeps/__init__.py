"""Sweeps: grids of checkpoints, evaluations and seeds, each cell a pytest process of its own."""
