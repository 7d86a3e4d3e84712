"""Bodies that do not check the answer never pass a model that is always wrong; twins that check it pass a right one.

Every key is another number, and each body runs as an interview of its own with a gate.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

#: Bodies of `text = model.generate(item.prompt)` that accept wrong answers, each beside a twin that does not.
PAIRS = {
    # they look at nothing
    "nothing": ("pass", "assert item.grade(text)"),
    "constant": ("assert True", "assert item.grade(text) == 1"),
    "forgotten": ("item.answer in text", "assert item.answer in text"),
    "forgotten_grade": ("item.grade(text)", "assert item.grade(text) > 0"),
    "kept": ("right = item.grade(text)", "right = item.grade(text); assert right"),
    "of_a_tuple": ("assert (item.answer in text, 'wrong')", "assert item.answer in text, 'wrong'"),
    "of_a_list": ("assert [item.grade(text)]", "assert [item.grade(text)] == [1.0]"),
    "of_a_function": ("assert lambda: item.grade(text)", "assert (lambda: item.grade(text))()"),
    "of_a_generator": (
        "assert (n for n in [item.grade(text)] if n)",
        "assert list(n for n in [item.grade(text)] if n)",
    ),
    "printed": ("print(item.grade(text))", "print(text); assert item.grade(text)"),
    "scored_high": ("item.score(1)", "item.score(item.grade(text))"),
    "scored_in_part": ("item.score(0.7)", "item.score(0.7 * item.grade(text) + 0.3 * item.grade(text))"),
    "grade_is_some": ("assert item.grade(text) is not None", "assert item.grade(text) is not 0.0 and item.grade(text)"),
    "grade_not_negative": ("assert item.grade(text) >= 0", "assert item.grade(text) >= 0.5"),
    "of_the_item": ("assert item.answer", "assert item.answer == numbers(text)[-1]"),
    "of_the_key": ("assert item.grade(item.answer)", "assert item.grade(item.answer) and item.grade(text)"),
    # something takes the failure away
    "caught": (
        "try: assert item.grade(text)\n    except AssertionError: pass",
        "try: assert item.grade(text)\n    except KeyError: pass",
    ),
    "suppressed": (
        "with contextlib.suppress(AssertionError): assert item.grade(text)",
        "with contextlib.suppress(KeyError): assert item.grade(text)",
    ),
    "in_a_thread": (
        "t = threading.Thread(target=check, args=(text, item)); t.start(); t.join()",
        "check(text, item)",
    ),
    "alternative": ("assert item.grade(text) or len(text) < 100", "assert item.grade(text) and len(text) < 100"),
    "default": (
        "assert next((n for n in numbers(text) if n == item.answer), '?')",
        "assert next(n for n in numbers(text)) == item.answer",
    ),
    "loop_that_ends": (
        "for n in numbers(text)[1:]: assert n == item.answer",
        "for n in numbers(text): assert n == item.answer",
    ),
    "all_of_none": (
        "assert all(n == item.answer for n in numbers(text)[1:])",
        "assert all(n == item.answer for n in numbers(text))",
    ),
    "zip_of_none": (
        "for n, key in zip(numbers(text)[1:], [item.answer]): assert n == key",
        "for n, key in zip(numbers(text), [item.answer]): assert n == key",
    ),
    "if_matched": (
        "if re.search('none', text): assert item.grade(text)",
        "if re.search('[0-9]', text): assert item.grade(text)",
    ),
    "empty_assertion": (
        "assert not set(numbers(text)) - set(numbers(text))",
        "assert not set(numbers(text)) - {item.answer}",
    ),
    # only some items are checked
    "every_third": (
        "if int(item.id) % 3 == 0: assert item.grade(text)",
        "if int(item.id) >= 0: assert item.grade(text)",
    ),
    "every_second": ("if int(item.id) % 2: check(text, item)", "check(text, item)"),
    "by_key": (
        "if item.answer.endswith('4'): assert item.grade(text)",
        "if item.answer.strip(): assert item.grade(text)",
    ),
    "small_keys": (
        "if int(item.answer) < 1400: assert item.grade(text)",
        "if int(item.answer) < 9999: assert item.grade(text)",
    ),
    "known_ids": (
        "assert item.id not in {'1', '2', '5'} or item.grade(text)",
        "assert item.id in {'1'} and item.grade(text) or item.grade(text)",
    ),
    "score_of_some": (
        "item.score(item.grade(text) if int(item.id) % 4 == 0 else 1)",
        "item.score(item.grade(text) if int(item.id) % 4 == 0 else item.grade(text))",
    ),
    # the text is repaired
    "key_behind": ("assert item.grade(text + item.answer)", "assert item.grade(text + ' ')"),
    "key_on_a_line": ("assert item.grade(f'{text}\\n{item.answer}')", "assert item.grade(f'{text}\\n')"),
    "key_before": ("assert item.answer in item.answer + text", "assert item.answer in '' + text"),
    "replaced": (
        "assert item.grade(re.sub('[0-9]+', item.answer, text))",
        "assert item.grade(re.sub('[0-9]+', '\\\\g<0>', text))",
    ),
    "key_if_wrong": (
        "assert item.grade(text if item.answer in text else item.answer)",
        "assert item.grade(text if item.answer in text else '')",
    ),
    "by_the_prompt": (
        "assert numbers(item.prompt)[0] + '1' == item.answer",
        "assert numbers(item.prompt)[0] + '1' in text",
    ),
    # only the form is checked
    "not_empty": ("assert text", "assert text.strip() and item.grade(text)"),
    "a_text": ("assert isinstance(text, str)", "assert isinstance(text, str) and item.grade(text)"),
    "long_enough": ("assert len(text) > 3", "assert len(text) > 3 and item.answer in text"),
    "short_enough": ("assert len(text) < 200", "assert len(text) < 200 and item.answer in text"),
    "a_number": ("assert re.search('[0-9]', text)", "assert re.search('[0-9]+', text)[0] == item.answer"),
    "one_number": ("assert len(numbers(text)) == 1", "assert numbers(text) == [item.answer]"),
    "readable_number": ("assert float(numbers(text)[-1]) > 0", "assert float(numbers(text)[-1]) == float(item.answer)"),
    "in_range": (
        "assert 0 <= int(numbers(text)[-1]) < 10 ** 6",
        "assert abs(int(numbers(text)[-1]) - int(item.answer)) < 1",
    ),
    "begins": ("assert text.startswith('The answer')", "assert text.startswith('The answer is ' + item.answer)"),
    "ends": ("assert text.endswith('.')", "assert text.endswith(item.answer + '.')"),
    "a_word": ("assert 'answer' in text", "assert 'answer' in text and item.answer in text"),
    "words": ("assert len(text.split()) == 4", "assert text.split()[3].rstrip('.') == item.answer"),
    "stripped": ("assert text == text.strip()", "assert text.strip().rstrip('.').split()[-1] == item.answer"),
    "pattern": (
        "assert re.fullmatch('The answer is [0-9]+[.]', text)",
        "assert re.fullmatch(f'The answer is {item.answer}[.]', text)",
    ),
    "computed": (
        "assert abs(int(numbers(text)[-1]) - int(numbers(item.prompt)[0])) < 1000",
        "assert numbers(text)[-1] == str(10 * int(numbers(item.prompt)[0]) + 1)",
    ),
    "repeats": (
        "assert numbers(item.prompt)[0] in text",
        "assert numbers(item.prompt)[0] in text and item.grade(text)",
    ),
    "no_refusal": ("assert 'sorry' not in text.lower()", "assert 'sorry' not in text.lower() and item.grade(text)"),
    "no_doubt": (
        "assert not re.search('maybe|perhaps', text)",
        "assert not re.search('maybe|perhaps', text) and item.grade(text)",
    ),
    "json": ("assert json.dumps(text)", "assert json.loads(numbers(text)[0]) == int(item.answer)"),
    "number_only": ("int(numbers(text)[-1])", "assert int(numbers(text)[-1]) == int(item.answer)"),
    # a floor
    "floor": ("item.score(max(0.7, item.grade(text)))", "item.score(max(0.0, item.grade(text)))"),
    "half": ("item.score(0.6 + 0.4 * item.grade(text))", "item.score(0.6 * item.grade(text) + 0.4 * item.grade(text))"),
    "penalty": ("item.score(1 - 0.3 * (not item.grade(text)))", "item.score(1 - 1.0 * (not item.grade(text)))"),
    "rounded": ("item.score(round(0.6 + 0.4 * item.grade(text)))", "item.score(round(item.grade(text)))"),
}
HEAD = """
import contextlib, json, re, threading
import pytest

def numbers(text):
    return re.findall("[0-9]+", text)

def check(text, item):
    assert item.grade(text)
"""
MODEL = """
import re
import pytest
from pytest_adaptive_eval.models.calling import CallableModel

calls = []

def answer(prompt):
    number = int(re.search("[0-9]+", prompt)[0])
    calls.append(number)
    return "{answer}".format(number=number)

@pytest.fixture(scope="session")
def model():
    return CallableModel(answer, "toy", checkpoint="1")

def pytest_unconfigure():
    open("calls.txt", "w").write(str(len(calls)))
"""
#: Models that are always wrong, and one that is always right.
WRONG = {"constant": "The answer is 7.", "next": "The answer is {{number}}.", "word": "I do not know"}
RIGHT = "The answer is " + "{{number}}" + "1."
QUESTIONS, BUDGET = 48, 12


def outcomes(lab: Any, answer: str, which: int) -> dict[str, str]:
    """Return the outcome of each body's gate."""
    rows = [
        # the key is the number with a 1 behind it, so a wrong number never holds it
        {
            "id": str(n),
            "prompt": f"Which number is {100 + 3 * n} with a 1 behind it?",
            "answer": f"{100 + 3 * n}1",
            "grader": "numeric",
        }
        for n in range(QUESTIONS)
    ]
    (lab.path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (lab.path / "conftest.py").write_text(MODEL.replace("{answer}", answer.replace("{{", "{").replace("}}", "}")))
    text = HEAD
    for name, bodies in PAIRS.items():
        text += (
            f"@pytest.mark.adaptive_eval('items.jsonl', name='{name}', budget={BUDGET}, stop='budget')\n"
            f"def test_{name}(item, model):\n    text = model.generate(item.prompt)\n    {bodies[which]}\n"
            f"@pytest.mark.adaptive_gate('{name}', at_least=0.5)\n"
            f"def test_gate_{name}(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
        )
    lab.tests(text)
    lab.run("-q", "-W", "ignore")
    return {gate["interview"]: gate["verdict"]["outcome"] for gate in lab.record["gates"]}


@pytest.mark.slow
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_a_model_that_is_always_wrong_passes_no_body_that_does_not_check(lab: Any, answer: str) -> None:
    found = outcomes(lab, answer, 0)
    assert found.keys() == PAIRS.keys()
    assert [name for name, outcome in found.items() if outcome == "PASS"] == []


@pytest.mark.slow
def test_a_model_that_is_always_right_passes_every_twin_without_more_calls(lab: Any) -> None:
    found = outcomes(lab, RIGHT, 1)
    assert [name for name, outcome in found.items() if outcome != "PASS"] == []
    assert len(found) >= 60
    assert int((lab.path / "calls.txt").read_text()) == BUDGET * len(PAIRS)
