"""A metric, accuracy in percent, and a model."""

import re

import pytest

from pytest_adaptive_eval import SubjectIdentity
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim
from pytest_adaptive_eval.gates.condition import Metric
from pytest_adaptive_eval.gates.planning import threshold_outlooks
from pytest_adaptive_eval.inference.betting import Claim


class Percent(Metric):
    """Mean score over the bank, in percent."""

    name = "percent"
    description = "mean score over the whole bank, in percent"
    unit = "percent"
    minimum, maximum = 0.0, 100.0
    by_bets = True

    def check_value(self, condition):
        """Refuse a value outside [0, 100]."""
        if not 0 <= condition.value <= 100:
            raise ConfigError(f"{self.call(condition)}: expected a percentage in [0, 100]")

    def claims(self, condition, bank, baselines):
        """Return the claim on the bank's sum of scores."""
        return (Claim(condition.value / 100 * len(bank), condition.confidence),)

    def judge(self, result, condition, verdict):
        """Return the verdict by bets on the draws."""
        return judge_claim(result, condition, verdict, lambda accuracy: 100 * accuracy, guessing=result.chance)

    def forecast(self, condition, bank, policy, baseline, margin):
        """Return the outlooks of the accuracy."""
        return threshold_outlooks(condition, bank, policy, condition.value / 100, baseline, margin)

    def threshold(self, condition, bank):
        """Return the line in the accuracy figure."""
        return condition.value / 100, f"{condition.requirement} %"


def pytest_adaptive_eval_metrics(config):
    return [Percent()]


class Adder:
    identity = SubjectIdentity("adder", "1", {"temperature": 0})

    def generate(self, prompt):
        return str(sum(map(int, re.findall(r"[0-9]+", prompt))))


@pytest.fixture(scope="session")
def model():
    return Adder()
