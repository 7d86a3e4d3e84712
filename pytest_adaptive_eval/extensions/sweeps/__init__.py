"""Sweeps: grids of checkpoints, evaluations and seeds, with a pytest process per cell."""
