"""Bodies that check nothing, or something else than the answer, on banks with keys of four kinds, beside sound twins.

A model that is always wrong says the same to each question, shifts its words, or repeats the question. It passes none
of the bodies. One that is right, in a word or in sentences, passes each twin, and one that is right for two in three
passes what asks half. No body costs a call of the model more than it asks for itself.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

QUESTIONS, BUDGET = 48, 20
WORDS = [
    "amber",
    "basalt",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "iris",
    "jasper",
    "kelp",
    "larch",
    "maple",
    "nectar",
    "onyx",
    "poplar",
]
#: Key of a question's number by bank, with the grader.
BANKS = {
    "letters": ("ABCD", "exact"),
    "digits": ("0123456789", "numeric"),
    "words": (WORDS, "exact"),
    "labels": (["yes", "no"], "exact"),
}
#: Bodies that accept wrong answers, each beside a twin that does not, by what they do instead of checking the answer.
PAIRS = {
    # nothing
    "nothing": ("assert text", "assert text and last(text) == item.answer"),
    "caught": (
        "try: assert last(text) == item.answer\n    except AssertionError: pass",
        "try: assert last(text) == item.answer\n    except KeyError: pass",
    ),
    # the form
    "ends": ("assert text.rstrip()[-1] in '.?'", "assert last(text.rstrip('.')) == item.answer"),
    "length": ("assert 3 < len(text) < 4000", "assert 0 < len(text) < 4000 and item.answer in words(text)"),
    "manners": ("assert 'sorry' not in text.lower()", "assert 'sorry' not in text and words(text)[-1] == item.answer"),
    "many_words": (
        "assert re.search(r'\\w+ \\w+', text)",
        "assert re.search(r'\\w+\\W*$', text)[0].strip('.') == item.answer",
    ),
    # some items
    "third": (
        "if int(item.id) % 3 == 0: assert last(text) == item.answer",
        "if int(item.id) >= 0: assert last(text) == item.answer",
    ),
    "late": (
        "assert last(text) == item.answer or int(item.id) > 10",
        "assert last(text) == item.answer and int(item.id) < 99",
    ),
    # a likeness
    "ratio": (
        "item.score(ratio(text, LISTED + item.answer))",
        "item.score(float(ratio(last(text), item.answer) == 1))",
    ),
    "near": ("assert ratio(text, LISTED + item.answer) > 0.4", "assert ratio(last(text), item.answer) > 0.99"),
    "marks": (
        "item.score(0.6 * (len(text) > 3) + 0.4 * (last(text) == item.answer))",
        "item.score(0.2 * (len(text) > 0) + 0.8 * (last(text) == item.answer))",
    ),
    # a list of all keys
    "within": ("assert item.answer in text", "assert item.answer in words(text)[-1:]"),
    "among": ("assert item.answer in words(text)", "assert item.answer in words(text)[-2:]"),
    "counted": (
        "assert words(text).count(item.answer) >= 1",
        "assert [w for w in words(text) if w in KEYS][-1:] == [item.answer]",
    ),
    # two calls
    "reason": (
        "why = model.generate(f'{item.prompt} You said {text}. Why?'); assert text and why",
        "why = model.generate(f'{item.prompt} You said {text}. Why?'); assert why and last(text) == item.answer",
    ),
    "both": (
        "more = model.generate(f'{item.prompt} Again.'); assert item.answer in words(text + ' ' + more)",
        "more = model.generate(f'{item.prompt} Again.'); assert last(text) == last(more) == item.answer",
    ),
    # the key is in the request
    "hint": (
        "text = model.generate(f'{item.prompt} Hint: {item.answer}.'); assert item.answer in words(text)",
        "text = model.generate(f'{item.prompt} Say one of {LISTED}'); assert last(text) == item.answer",
    ),
}
TWO_CALLS = {"reason", "both", "hint"}
#: Bodies that tell the model the key, whose verdicts say so.
TELLING = {"hint"}
HEAD = """
import difflib, re
import pytest

KEYS = {keys!r}
LISTED = "The options are " + ", ".join(KEYS) + ". "

def words(text):
    return re.findall("[A-Za-z0-9]+", text)

def last(text):
    return words(text)[-1]

def ratio(text, other):
    return difflib.SequenceMatcher(None, text, other).ratio()
"""
MODEL = """
import re
import pytest
from pytest_adaptive_eval.models.calling import CallableModel

KEYS = {keys!r}
LISTED = "The options are " + ", ".join(KEYS) + "."
calls = []

def answer(prompt):
    n = int(re.search("[0-9]+", prompt)[0])
    key, other = KEYS[n * 7 % len(KEYS)], KEYS[(n * 7 + 1) % len(KEYS)]
    calls.append(n)
    return {answer}

@pytest.fixture(scope="session")
def model():
    return CallableModel(answer, "toy", checkpoint="1")

def pytest_unconfigure():
    open("calls.txt", "w").write(str(len(calls)))
"""
WRONG = {
    "constant": "LISTED",
    "shifting": "f'Reply {n}. {LISTED}'",
    "echoing": "prompt",
}
RIGHT = {
    "right": "key",
    "mixed": "f'I say {key if n % 3 else other}.'",
    "wordy": "f'Let me think about question {n}. It asks for one thing, and the answer is {key}.'",
}


def outcomes(lab: Any, bank: str, answer: str, which: int) -> dict[str, dict[str, Any]]:
    """Return the verdict of each body's gate."""
    keys, grader = BANKS[bank]
    keys = list(keys)
    listed = ", ".join(keys)
    rows = [
        {"id": str(n), "prompt": f"{n}: which of {listed} is it?", "answer": keys[n * 7 % len(keys)], "grader": grader}
        for n in range(QUESTIONS)
    ]
    (lab.path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (lab.path / "conftest.py").write_text(MODEL.format(keys=keys, answer=answer))
    text = HEAD.format(keys=keys)
    for name, bodies in PAIRS.items():
        asks = "" if name in TELLING else "text = model.generate(item.prompt)\n    "
        text += (
            f"@pytest.mark.adaptive_eval('items.jsonl', name='{name}', budget={BUDGET}, stop='budget')\n"
            f"def test_{name}(item, model):\n    {asks}{bodies[which]}\n"
            f"@pytest.mark.adaptive_gate('{name}', at_least=0.4)\n"
            f"def test_gate_{name}(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
        )
    lab.tests(text)
    lab.run("-q", "-W", "ignore")
    return {gate["interview"]: gate["verdict"] for gate in lab.record["gates"]}


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_a_model_that_is_always_wrong_passes_no_body(lab: Any, bank: str, answer: str) -> None:
    found = outcomes(lab, bank, answer, 0)
    assert found.keys() == PAIRS.keys()
    passed = [name for name, verdict in found.items() if verdict["outcome"] == "PASS"]
    assert [name for name in passed if "adds the expected answer" not in found[name].get("caveat", "")] == []
    assert set(passed) <= TELLING


@pytest.mark.slow
@pytest.mark.parametrize("bank", BANKS)
@pytest.mark.parametrize(("kind", "answer"), RIGHT.items(), ids=RIGHT)
def test_no_sound_twin_is_refused_and_none_costs_a_call_more(lab: Any, bank: str, kind: str, answer: str) -> None:
    found = outcomes(lab, bank, answer, 1)
    assert found.keys() == PAIRS.keys()
    errors = {name: verdict["notes"] for name, verdict in found.items() if verdict["outcome"] in ("ERROR", "FAIL")}
    assert errors == {}
    assert [name for name, verdict in found.items() if "not probed" in verdict.get("caveat", "")] == []
    if kind != "mixed":
        assert [name for name, verdict in found.items() if verdict["outcome"] != "PASS"] == []
    twice = len(TWO_CALLS - TELLING)
    assert int((lab.path / "calls.txt").read_text()) <= BUDGET * (len(PAIRS) + twice)
