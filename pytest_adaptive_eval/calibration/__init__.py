"""Calibration of banks from responses."""

from pytest_adaptive_eval.calibration.engines.variational import Fit, fit_map

__all__ = ["Fit", "fit_map"]
