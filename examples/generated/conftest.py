import re

import pytest

from pytest_adaptive_eval import SubjectIdentity


class Adder:
    identity = SubjectIdentity("adder", "1", {"temperature": 0})

    def generate(self, prompt):
        return f"Answer: {sum(map(int, re.findall(r'[0-9]+', prompt)))}"


@pytest.fixture(scope="session")
def model():
    return Adder()
