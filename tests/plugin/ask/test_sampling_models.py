"""Models whose decoding samples: the noise is measured without being asked for, or the verdict says that it was not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_adaptive_eval import SubjectIdentity

ASK = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", {settings})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least={threshold})
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
SAMPLING = '"toy", "hash", {{"temperature": 0.7}}'.replace("{{", "{").replace("}}", "}")
GREEDY = SAMPLING.replace("0.7", "0.0")
WHOLE = 'budget="100%", stop="budget"'
#: Right with the chance of one half, by the count of its calls.
HALF = "return 'right' if n * 0.618 % 1 < 0.5 else 'wrong'"


def ask(lab: Any, settings: str = WHOLE, threshold: float = 0.5, **toy: Any) -> dict[str, Any]:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    lab.bank()
    lab.toy(**{"identity": SAMPLING, "fault": HALF, **toy})
    lab.tests(ASK.format(settings=settings, threshold=threshold))
    lab.run("--adaptive-eval-junit=gates.xml", "--adaptive-eval-html=page.html")
    found: dict[str, Any] = lab.record["interviews"][0]
    return found


def sentence(lab: Any) -> str:
    told: str = lab.record["gates"][0]["verdict"]["sentence"]
    return told


def again(interview: dict[str, Any]) -> int:
    return sum(a["sample"] > 0 for a in interview["administrations"])


@pytest.mark.parametrize(
    ("decoding", "samples"),
    [
        ({}, None),
        ({"temperature": 0}, False),
        ({"temperature": 0.0, "extra": {"top_p": 0.9}}, False),
        ({"temperature": 0.7}, True),
        ({"temperature": 0.0, "extra": {"temperature": 1}}, True),
        ({"do_sample": True}, True),
        ({"do_sample": False, "temperature": 0.7}, False),
        ({"temperature": "warm"}, None),
    ],
)
def test_an_identity_says_whether_decoding_samples(decoding: dict[str, Any], samples: bool | None) -> None:
    assert SubjectIdentity("toy", "hash", decoding).samples is samples


def test_a_sampling_model_is_measured_by_default_and_the_whole_bank_leaves_the_gate_open(lab: Any) -> None:
    found = ask(lab)
    assert again(found) == 10
    assert found["decoding_noise"]["items"] == 10
    assert lab.outcomes() == [("test_gate", "INCONCLUSIVE")]
    assert "the whole bank was asked, and the noise of decoding leaves it open: another run may decide otherwise" in (
        sentence(lab)
    )
    for name in ("gates.xml", "page.html"):
        assert "the noise of decoding leaves it open" in (lab.path / name).read_text()


@pytest.mark.slow
def test_a_tenth_of_the_items_is_asked_again(lab: Any) -> None:
    lab.bank(n=150)
    lab.toy(identity=SAMPLING)
    lab.tests(ASK.format(settings='budget=120, stop="budget"', threshold=0.5))
    result = lab.run()
    assert again(lab.record["interviews"][0]) == 12
    result.stdout.fnmatch_lines(["*[[]100%]*"])


@pytest.mark.slow
@pytest.mark.parametrize(("repeat", "noted"), [(5, True), (4, False)])
def test_equal_answers_to_each_of_five_repeated_items_are_told(lab: Any, repeat: int, noted: bool) -> None:
    settings = f'budget=30, stop="budget", repeat={repeat}'
    ask(lab, settings, fault="")
    assert (f"all answers to each of {repeat} repeated items are the same" in sentence(lab)) is noted
    ask(lab, settings)
    assert "repeated items are the same" not in sentence(lab)


@pytest.mark.slow
def test_a_greedy_model_is_asked_once(lab: Any) -> None:
    found = ask(lab, identity=GREEDY)
    assert again(found) == 0
    assert found["decoding_noise"] is None
    assert "decod" not in sentence(lab)


@pytest.mark.slow
def test_a_verdict_says_that_the_noise_was_not_measured(lab: Any) -> None:
    found = ask(lab, WHOLE + ", repeat=0")
    assert again(found) == 0
    assert "decoding samples, and the noise was not measured: another run may decide otherwise" in sentence(lab)
    assert "another run may decide otherwise" in (lab.path / "page.html").read_text()


@pytest.mark.slow
def test_different_answers_of_an_earlier_run_are_noise(lab: Any) -> None:
    ask(lab, identity='"toy", "hash"', fault="", threshold=0.85)
    assert lab.outcomes() == [("test_gate", "PASS")]
    found = ask(lab, identity='"toy", "hash"', fault="return 'right' if number % 10 != 3 else 'wrong'", threshold=0.85)
    assert again(found) == 10
    told = "an earlier run of this checkpoint answered 12 of 60 items differently: another run may decide otherwise"
    assert told in sentence(lab)  # the answers of this run to one item are all alike
    assert lab.outcomes() == [("test_gate", "INCONCLUSIVE")]
    found = ask(lab, WHOLE + ", repeat=0", identity='"toy", "hash"', fault="", threshold=0.8)
    assert "differently, and the noise was not measured: another run may decide otherwise" in sentence(lab)
    # another checkpoint's answers say nothing of this one's
    found = ask(lab, identity='"toy", "other"', fault="", threshold=0.8)
    assert again(found) == 0


@pytest.mark.slow
def test_noise_that_an_earlier_run_measured_is_allowed_for_from_the_first_question_on(lab: Any) -> None:
    ask(lab, WHOLE + ", repeat=20", identity='"toy", "hash"')
    found = ask(lab, identity='"toy", "hash"')
    assert again(found) == 10
    assert "an earlier run of this checkpoint gave different answers to the same item" in sentence(lab)


def test_a_model_that_says_nothing_of_its_decoding_is_named_on_the_whole_bank(lab: Any) -> None:
    ask(lab, identity='"toy"', fault="")
    assert "the model does not say how it decodes: where it samples, another run may decide otherwise" in sentence(lab)
    ask(lab, 'budget=30, stop="budget"', identity='"toy"', fault="")
    assert "another run" not in sentence(lab)


def test_a_ladder_and_items_with_samples_of_their_own_are_asked_as_they_were(lab: Any) -> None:
    lab.toy(identity=SAMPLING, fault="return '1'")
    lab.bank()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval(task="addition", levels=2, queries=5)
        def test_toy(item, model):
            text = model.generate("question 1")
            item.score(item.grade(text))
        """
    )
    assert lab.run().ret == 0
    (lab.path / "toy.jsonl").write_text('{"id": "a", "prompt": "1", "answer": "right", "meta": {"sample": 1}}\n')
    lab.tests(ASK.format(settings='budget="100%"', threshold=0.5))
    lab.run()
    assert again(lab.record["interviews"][0]) in (0, 1)
    assert "the noise was not measured" in sentence(lab)
