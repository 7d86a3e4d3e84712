"""A test of questions counts where a made-up answer fails it, however it is written."""

from __future__ import annotations

from typing import Any

import pytest

#: Bodies that judge nothing, with a part of what is said of them.
NOTHING = {
    "forgotten": ("ok = model.generate(item.prompt) == item.answer", "checked nothing"),
    "logged": ("logging.info(re.search('x', model.generate(item.prompt)))", "checked nothing"),
    "dumped": ("json.dumps(model.generate(item.prompt) == item.answer)", "checked nothing"),
    "graded_and_forgotten": ("ok = item.grade(model.generate(item.prompt))", "although item.grade(...) gave 0"),
    "not_negative": ("assert item.grade(model.generate(item.prompt)) >= 0", "although item.grade(...) gave 0"),
    "caught": (
        "try: assert model.generate(item.prompt) == item.answer\n    except AssertionError: pass",
        "checked nothing",
    ),
    "suppressed": (
        "with contextlib.suppress(Exception): assert item.grade(model.generate(item.prompt))",
        "although item.grade(...) gave 0",
    ),
    "never_reached": ("text = model.generate(item.prompt)\n    if text == 'x': assert 0", "checked nothing"),
    "empty_loop": ("for line in model.generate(item.prompt).splitlines()[1:]: assert line == '4'", "checked nothing"),
    "no_match": (
        "found = re.search(r'[0-9]+', model.generate(item.prompt))\n    if found: assert found[0] == item.answer",
        "checked nothing",
    ),
    "constant": ("model.generate(item.prompt); assert True", "checked nothing"),
    "of_a_tuple": ("assert (model.generate(item.prompt) == item.answer, 'must be right')", "checked nothing"),
    "of_the_item": ("model.generate(item.prompt); assert item.answer", "checked nothing"),
    "of_the_gold": ("model.generate(item.prompt); assert item.grade(item.answer)", "does not come from the model"),
    "in_a_thread": (
        "t = threading.Thread(target=check, args=(model.generate(item.prompt), item)); t.start(); t.join()",
        "checked nothing",
    ),
    "in_a_process": (
        "text = model.generate(item.prompt); subprocess.run([sys.executable, '-c', f'assert {text!r} == 4'], "
        "stderr=subprocess.DEVNULL)",
        "checked nothing",
    ),
    "scored_by_a_constant": ("model.generate(item.prompt); item.score(True)", "checked nothing"),
    "scored_by_a_part": ("model.generate(item.prompt); item.score(0.7)", "checked nothing"),
    "never_asked": ("item.score(True)", "without asking its model"),
    "never_asked_nor_scored": ("assert item.prompt", "without asking its model"),
    "asks_until_it_suits": (
        "while not (text := model.generate(item.prompt)): pass\n    assert isinstance(text, str)",
        "checked nothing",
    ),
    "negative": ("assert 'secret' not in model.generate(item.prompt)", "name a wrong one"),
    "number_only": ("ok = int(float(model.generate(item.prompt))) == 4", "checked nothing"),
    "object_only": ("ok = json.loads(model.generate(item.prompt))['answer'] == 4", "checked nothing"),
    "asked_by_a_fixture": ("ok = item.grade(ask(item.prompt))", "although item.grade(...) gave 0"),
    "wrongly_named": ("assert item.grade(model.generate(item.prompt))", "on the wrong_answer of its marker"),
}
#: Bodies that judge answers.
SOMETHING = {
    "graded": "assert item.grade(model.generate(item.prompt))",
    "compared": "assert model.generate(item.prompt) == item.answer",
    "scored": "item.score(item.grade(model.generate(item.prompt)))",
    "scored_in_part": "item.score(0.5 + item.grade(model.generate(item.prompt)) / 2)",
    "similar": "item.score(difflib.SequenceMatcher(None, model.generate(item.prompt), item.answer).ratio())",
    "of_a_variable": "ok = model.generate(item.prompt) == item.answer; assert ok",
    "by_a_helper": "check(model.generate(item.prompt), item)",
    "by_a_module": "helping.check(model.generate(item.prompt), item.answer)",
    "by_numpy": "np.testing.assert_equal(model.generate(item.prompt), item.answer)",
    "by_unittest": "unittest.TestCase().assertEqual(model.generate(item.prompt), item.answer)",
    "raised": "if model.generate(item.prompt) != item.answer: raise AssertionError('wrong')",
    "of_a_number": "assert int(float(model.generate(item.prompt).replace('right', '4'))) == 4",
    "of_an_object": "assert json.loads(json.dumps({'answer': model.generate(item.prompt)}))['answer'] == item.answer",
    "of_a_first_letter": "assert item.grade(model.generate(item.prompt).strip()[:5])",
    "in_upper_case": "assert model.generate(item.prompt).upper() == 'RIGHT'",
    "found": "assert re.search('[a-z]+', model.generate(item.prompt))[0] == item.answer",
    "negative": "assert 'wrong' not in model.generate(item.prompt)",
    "of_another_type": "assert type(model).__name__ and model.generate(item.prompt) == item.answer",
    "by_a_fixture": "judged(model.generate(item.prompt), item)",
    "asked_by_a_fixture": "assert item.grade(ask(item.prompt))",
}
MARKS = {("something", "negative"): ", wrong_answer='so wrong'", ("nothing", "wrongly_named"): ", wrong_answer='right'"}
HEAD = """
import contextlib, difflib, json, logging, re, subprocess, sys, threading, unittest
import helping, numpy as np, pytest

def check(text, item):
    assert text == item.answer

@pytest.fixture
def judged():
    return check

@pytest.fixture
def ask(model):
    return lambda prompt: model.generate(prompt)
"""
SUBJECT = """
    from pytest_adaptive_eval.models.calling import CallableModel
    yield CallableModel(Toy().generate, "toy", checkpoint="hash")
    return
"""


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("setup", ["", SUBJECT], ids=["object", "subject"])
@pytest.mark.parametrize(("kind", "bodies"), [("nothing", NOTHING), ("something", SOMETHING)])
def test_bodies(lab: Any, kind: str, bodies: dict[str, Any], setup: str) -> None:
    lab.bank()
    lab.toy(10, setup=setup)
    (lab.path / "helping.py").write_text(
        '"""PYTEST_DONT_REWRITE"""\ndef check(text, answer):\n    assert text == answer\n'
    )
    text = HEAD
    for name, body in bodies.items():
        code = body if isinstance(body, str) else body[0]
        mark = f"@pytest.mark.adaptive_eval('toy.jsonl', name='{name}', budget=2, stop='budget'"
        text += f"{mark}{MARKS.get((kind, name), '')})\ndef test_{name}(item, model, judged, ask):\n    {code}\n"
    lab.tests(text)
    result = lab.run("-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::SyntaxWarning")
    interviews = {interview["name"]: interview for interview in lab.record["interviews"]}
    assert interviews.keys() == bodies.keys()
    if kind == "something":
        assert {name: interview["error"] for name, interview in interviews.items() if interview["error"]} == {}
        assert result.ret == 0
        assert {interview["scored"] for interview in interviews.values()} == {2}
        return
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for name, (_, sentence) in bodies.items():
        assert sentence in interviews[name]["error"], name
        assert interviews[name]["scored"] == 0
    assert not (lab.path / "asked.txt").exists(), "no model was asked"


@pytest.mark.parametrize(("body", "status"), [("assert item.grade({})", 0), ("ok = item.grade({})", 4)])
def test_a_class_of_tests_that_keeps_its_model(lab: Any, body: str, status: int) -> None:
    lab.bank()
    lab.toy(10)
    lab.tests(
        f"""
        import pytest
        class TestToy:
            @pytest.fixture(autouse=True)
            def _keep(self, model):
                self.kept = model
            @pytest.mark.adaptive_eval("toy.jsonl", budget=2, stop="budget")
            def test_toy(self, item):
                {body.format("self.kept.generate(item.prompt)")}
        """
    )
    assert lab.run().ret == status


@pytest.mark.slow
def test_an_exception_on_an_answer_is_a_refusal(lab: Any) -> None:
    lab.bank()
    lab.toy(10)
    mark = "@pytest.mark.adaptive_eval('toy.jsonl', budget=5, stop='budget')"
    body = "part = {'right': 1, 'wrong': 0}[model.generate(item.prompt)]; assert part"
    lab.tests(f"import pytest\n{mark}\ndef test_toy(item, model):\n    {body}")
    assert lab.run().ret == 0


#: Parts of a test that cannot be probed: fixtures, the body, and the reason.
UNPROBED = {
    "seen": (
        "SEEN = []",
        "assert item.id not in SEEN; SEEN.append(item.id); assert text == 'right'",
        "the same answer twice",
    ),
    "seen_twice": (
        "SEEN = []",
        "SEEN.append(item.id); assert SEEN.count(item.id) < 3 and text == 'right'",
        "the same answer twice",
    ),
    "a_file": ("", "open(f'{tmp}/{item.id}', 'x').write(text); assert text == 'right'", "the same answer twice"),
    "told": ("", "assert item.probing or text; assert item.grade(text)", ""),
    "told_first": ("", "assert item.grade(model.generate(item.prompt) if not item.probing else 'no')", "item.probing"),
    "another_model": (
        "@pytest.fixture(scope='module')\ndef judge():\n    from conftest import Toy\n    yield Toy()",
        "assert item.grade(text) and judge.generate(item.prompt)",
        "'judge' may ask another model",
    ),
    "by_a_fixture": (
        "@pytest.fixture\ndef said(item, model): return model.generate(item.prompt)",
        "assert item.grade(said)",
        "a fixture asks",
    ),
}


@pytest.mark.fast_rows(3)
@pytest.mark.parametrize(("fixtures", "body", "reason"), UNPROBED.values(), ids=UNPROBED)
def test_the_line_of_the_verdict_says_why_a_test_was_not_probed(
    lab: Any, fixtures: str, body: str, reason: str
) -> None:
    lab.bank()
    lab.toy(10)
    takes = "item, model" + "".join(f", {name}" for name in ("judge", "said") if f"def {name}" in fixtures)
    asks = "" if "model.generate" in body + fixtures else "text = model.generate(item.prompt)\n    "
    lab.tests(
        f"import pytest\ntmp = {str(lab.path)!r}\n{fixtures}\n"
        f"@pytest.mark.adaptive_eval('toy.jsonl', budget=8, stop='budget')\ndef test_toy({takes}):\n    {asks}{body}\n"
        "@pytest.mark.adaptive_gate('toy', at_least=0.3)\ndef test_gate(adaptive_eval): assert adaptive_eval.verdicts\n"
    )
    result = lab.run("--adaptive-eval-junit=gates.xml", "--adaptive-eval-html=page.html", "-W", "ignore")
    assert result.ret == 0
    line = lab.record["gates"][0]["verdict"].get("caveat", "")
    assert ("not probed" in line) is bool(reason)
    assert reason in line
    for shown in (result.stdout.str(), (lab.path / "gates.xml").read_text(), (lab.path / "page.html").read_text()):
        assert ("not probed" in shown) is bool(reason)


RETRY = """
import json, pytest
from pytest_adaptive_eval import SubjectIdentity
from pytest_adaptive_eval.models.calling import CallableModel

def retried(test):
    def again(item, model):
        for attempt in range(30):
            try:
                return test(item, model)
            except ValueError:
                pass
        raise ValueError("unreadable")
    return again

class Sampling(CallableModel):
    def __init__(self, *args):
        super().__init__(*args)
        self.identity = SubjectIdentity("toy", "hash", {"do_sample": {samples}, "temperature": {samples}})

@pytest.fixture(scope="module")
def model():
    from conftest import Toy
    yield Sampling(Toy().generate, "toy")

@pytest.mark.adaptive_eval("toy.jsonl", budget=20, stop="budget")
{decorator}
def test_toy(item, model):
    assert json.loads(model.generate(item.prompt)) == item.answer

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
RETRYING_HOOK = """
def pytest_pyfunc_call(pyfuncitem):
    if "item" not in pyfuncitem.fixturenames: return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for attempt in range(30):
        try:
            pyfuncitem.obj(**arguments)
            return True
        except ValueError: pass
    raise ValueError("unreadable")
"""
UNREADABLE = "if n % 3: return 'so'\nreturn '\"right\"'"


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("samples", [0, 1])
@pytest.mark.parametrize("by", ["decorator", "hook"])
def test_a_test_cannot_ask_until_it_can_read_the_answer(lab: Any, by: str, samples: int) -> None:
    lab.bank()
    lab.toy(10, fault=UNREADABLE, more=RETRYING_HOOK if by == "hook" else "")
    decorator = "@retried" if by == "decorator" else ""
    lab.tests(RETRY.replace("{decorator}", decorator).replace("{samples}", str(samples)))
    result = lab.run()
    (interview,) = lab.record["interviews"]
    assert len(lab.asked) == len({*lab.asked}), "every question is asked once"
    assert lab.outcomes() == [("test_gate", "ERROR")]
    if samples:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "'toy' got the same request twice for one question, and its decoding samples" in interview["error"]
    else:
        assert result.ret == 1
        assert interview["statuses"]["error"] >= 2


BY_FIXTURE = """
import pytest
from pytest_adaptive_eval import CallableModel

@pytest.fixture(scope="session")
def model():
    return CallableModel(lambda prompt: str({reply}), "toy", checkpoint="1")

@pytest.fixture
def answer(item, model):
    return model.generate(item.prompt)

@pytest.mark.adaptive_eval(items=[{{"prompt": f"{{n}} + 1?", "answer": str(n + 1)}} for n in range(20)])
def test_sums(item, answer):
    assert {check}

@pytest.mark.adaptive_gate("sums", at_least=0.4)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
RIGHT_SUM = "int(prompt.split()[0]) + 1"


@pytest.mark.parametrize(
    ("reply", "check", "outcome"),
    [
        ("77", "len(answer) > 1", "ERROR"),
        ("77", "answer.isdigit()", "ERROR"),
        (RIGHT_SUM, "item.grade(answer)", "PASS"),
        (RIGHT_SUM, "answer == item.answer", "PASS"),
    ],
)
def test_the_reply_that_a_fixture_returns_is_probed(lab: Any, reply: str, check: str, outcome: str) -> None:
    lab.tests(BY_FIXTURE.format(reply=reply, check=check))
    lab.run()
    (gate,) = lab.record["gates"]
    assert gate["verdict"]["outcome"] == outcome
    assert "not probed" not in gate["verdict"].get("caveat", "")
