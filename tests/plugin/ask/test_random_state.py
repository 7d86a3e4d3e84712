"""The random state of an interview goes on from question to question, whatever other plugins seed between tests."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

#: Seeds before each phase of each test, as pytest-randomly does.
SEEDS = """
import random
import numpy

def pytest_runtest_setup(item):
    random.seed(7); numpy.random.seed(7)
def pytest_runtest_call(item):
    random.seed(7); numpy.random.seed(7)
"""
COINS = {
    "random": 'import random\nreturn "right" if random.random() < 0.5 else "wrong"',
    "numpy": 'import numpy\nreturn "right" if numpy.random.random() < 0.5 else "wrong"',
}
SAMPLED = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget", samples=3)
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.8)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("generator", COINS)
@pytest.mark.parametrize("where", ["test", "fixture"])
def test_a_coin_stays_a_coin_where_every_test_is_seeded(lab: Any, generator: str, where: str) -> None:
    lab.bank(n=200)
    lab.toy(fault=COINS[generator], more=SEEDS, identity='"toy", "hash", {"temperature": 1.0}')
    text = SAMPLED
    if where == "fixture":
        text = text.replace("(item, model):", "(item, answer):").replace("model.generate(item.prompt)", "answer") + (
            "\n@pytest.fixture\ndef answer(item, model):\n    return model.generate(item.prompt)\n"
        )
    lab.tests(text)
    assert lab.run().ret == 1
    (interview,) = lab.record["interviews"]
    scores = [a["score"] for a in interview["administrations"]]
    assert 25 < sum(scores) < 65
    assert interview["decoding_noise"]["variance"] > 0.1
    assert lab.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.slow
def test_two_interviews_draw_differently_and_the_state_is_given_back(lab: Any) -> None:
    lab.bank("one", n=60)
    lab.bank("two", n=60)
    lab.toy(fault='import random\nreturn "right" if random.random() < 0.5 else "wrong"', more=SEEDS, scope="session")
    lab.tests(
        """
        import random
        import pytest

        @pytest.mark.adaptive_eval("one.jsonl", budget=40, stop="budget", seed=3)
        def test_one(item, model):
            assert item.grade(model.generate(item.prompt))

        @pytest.mark.adaptive_eval("two.jsonl", budget=40, stop="budget", seed=3)
        def test_two(item, model):
            assert item.grade(model.generate(item.prompt))

        @pytest.mark.adaptive_gate("one", at_least=0.1)
        @pytest.mark.adaptive_gate("two", at_least=0.1)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    random.seed(5)
    np.random.seed(5)
    wanted = random.Random(5).random()
    lab.run("-p", "no:randomly")
    one, two = ([a["score"] for a in i["administrations"]] for i in lab.record["interviews"])
    assert one != two
    random.seed(5)
    assert random.random() == wanted


@pytest.mark.slow
def test_the_state_outside_is_the_same_after_an_interview() -> None:
    from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates

    torch = pytest.importorskip("torch")
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    before = (
        random.getstate(),
        np.random.get_state(legacy=False)["state"]["key"].tolist(),
        torch.get_rng_state().tolist(),
    )
    states = GeneratorStates("an interview")
    draws = []
    with states.in_use():
        for place in range(3):
            states.begin(place)
            draws.append((random.random(), np.random.random(), float(torch.rand(1))))
            random.seed(1)  # as other plugins do between tests
    assert (
        random.getstate(),
        np.random.get_state(legacy=False)["state"]["key"].tolist(),
        torch.get_rng_state().tolist(),
    ) == before
    assert len(set(draws)) == 3
    with states.in_use():
        states.begin(1)
        assert (random.random(), np.random.random(), float(torch.rand(1))) == draws[1]
    other = GeneratorStates("another")
    with other.in_use():
        other.begin(0)
        assert (random.random(), np.random.random(), float(torch.rand(1))) != draws[0]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("answer", "told"), [("return 'right'", True), ("return f'{n} right'", False)])
def test_equal_samples_of_a_sampling_model_are_told(lab: Any, answer: str, told: bool) -> None:
    lab.bank(n=200)
    lab.toy(fault=answer, identity='"toy", "hash", {"temperature": 1.0}')
    lab.tests(SAMPLED)
    lab.run()
    (gate,) = lab.record["gates"]
    assert any("repeated items are the same" in note for note in gate["verdict"]["notes"]) is told
