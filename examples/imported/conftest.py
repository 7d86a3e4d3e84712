import re

import pytest

from pytest_adaptive_eval import SubjectIdentity


class Multiplier:
    identity = SubjectIdentity("multiplier", "1", {"temperature": 0})

    def generate(self, prompt):
        left, right = re.search(r"([0-9]+) times ([0-9]+)", prompt).groups()
        return re.search(rf"^([A-D])\. {int(left) * int(right)}$", prompt, re.MULTILINE)[1]


@pytest.fixture(scope="session")
def model():
    return Multiplier()
