"""From responses to a bank."""

from pytest_adaptive_eval.calibration.marginal import Calibration, fit

__all__ = ["Calibration", "fit"]
