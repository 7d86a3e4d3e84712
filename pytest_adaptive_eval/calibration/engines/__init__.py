"""Fit engines, one per module; each module registers its engine."""
