"""From responses to a bank."""

from pytest_adaptive_eval.calibration.variational import Fit, fit_map

__all__ = ["Fit", "fit_map"]
