"""Whole runs of pytest with mistakes, damage and misfortune, and what each must not do.

Four groups: gates and flags, files, answers, endpoints. Every scenario is a small project of its own, whose run is a
process forked from this one. None may last 60 seconds, print a traceback of ours, end in an internal error, promote or
exit with 0 without a PASS, or do so where the model is known to be worse than the gate asks. Where a scenario must
pass, not passing is reported as well.

    python benchmarks/scenarios.py
    python benchmarks/scenarios.py --group files --show "nul byte"

Exits with 1 if any scenario does what it must not.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "subjects"))

from faulty_server import FAULTS, MODEL, FaultyServer, Handler, completion, replies, send

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.run_record import RunRecord

for module in ("plugin.activation", "subjects.endpoint", "cat.session", "reports.page"):
    importlib.import_module(f"pytest_adaptive_eval.{module}")  # once, before any run is forked

DEADLINE = 60.0
ITEMS = 30
RECORD = "record.json"

#: The fixture of a model that answers the first RIGHT of the items, or whatever ANSWER makes of ``word``, the answer.
CONFTEST = """
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Model:
    identity = SubjectIdentity("scenario", "", {})

    def generate(self, prompt):
        number, word = int(prompt.split()[1]), prompt.split()[2]
        if number >= RIGHT:
            return "no"
        ANSWER

@pytest.fixture(scope="module")
def model():
    return Model()
"""
QUESTIONS = """
import contextlib, math, os, sys
import pytest

@pytest.mark.adaptive_eval(bank="bank.jsonl", budget="100%"MARK)
def test_questions(item, model):
    assert item.grade(model.generate(item.prompt))
"""
GATE = """
@pytest.mark.adaptive_gate("bank", at_least=0.6)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


#: What a project holds, by path: text, bytes, or what makes the file at the path that it is given.
Files = Mapping[str, str | bytes | Callable[[Path], None]]


@dataclass(frozen=True)
class Scenario:
    """A project, its command line, and whether its gate is met.

    Args:
        flags: Of pytest, behind ``--adaptive-eval``.
        passes: Whether the run must exit with 0, must not, or may do either, where no gate judged or the user's code
            decides.
        handle, listing: Of the server behind the model, whose URL stands for ``{url}`` in the flags and files.
    """

    group: str
    name: str
    files: Files = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    passes: bool | None = None
    handle: Handler | None = None
    listing: Handler | None = None


def bank(items: int = ITEMS, **changes: object) -> str:
    """Return a bank in JSONL, each line with the changes."""
    lines = ({"id": f"q{n}", "prompt": f"word {n} w{n}", "answer": f"w{n}"} | changes for n in range(items))
    return "".join(json.dumps(line) + "\n" for line in lines)


def project(
    gate: str = GATE, right: int = ITEMS, answer: str = "return word", mark: str = "", questions: str = QUESTIONS
) -> Files:
    """Return the files of a project whose model answers that many items by that statement."""
    body = textwrap.indent(textwrap.dedent(answer), " " * 8).lstrip()
    return {
        "conftest.py": CONFTEST.replace("RIGHT", str(right)).replace("ANSWER", body),
        "test_it.py": questions.replace("MARK", mark) + textwrap.dedent(gate),
        "bank.jsonl": bank(),
        "pytest.ini": "[pytest]\n",
    }


def _evasions(gate: Callable[..., Scenario], mark: str, line: str) -> Iterator[Scenario]:
    """Yield gates whose body, with the verdict `line`, may keep a verdict from counting."""
    kind = "mark, " if mark else ""
    for name, body in {
        "negated": f"assert not {line}",
        "without assert": line,
        "returned": f"return {line}",
        "or True": f"assert {line} or True",
        "swallowed": f"with contextlib.suppress(BaseException):\n        assert {line}",
        "in raises": f"with pytest.raises(AssertionError):\n        assert {line}",
        "skipped behind": f"{line}\n    pytest.skip('not today')",
        "skipped before": "pytest.skip('not today')",
        "xfailed inside": f"{line}\n    pytest.xfail('known')",
        "exit 0": f"{line}\n    sys.exit(0)",
        "pytest.exit 0": f"{line}\n    pytest.exit('done', 0)",
        "os._exit(0)": "os._exit(0)",
        "unknown name": 'assert adaptive_eval["other"].accuracy.at_least(0.6)',
        "no claim": 'assert adaptive_eval["bank"]',
        "own figure": 'assert adaptive_eval["bank"].accuracy.value >= 0.1',
        "interrupted": f"{line}\n    raise KeyboardInterrupt",
        "recursion": "def f(): f()\n    f()",
    }.items():
        # the user's own code may end such a test well, so that only promoting is wrong
        yield gate(f"{kind}{name}, bad model", f"\n{mark}\ndef test_gate(adaptive_eval):\n    {body}\n", None, 6)
        yield gate(f"{kind}{name}", f"\n{mark}\ndef test_gate(adaptive_eval):\n    {body}\n", None)


def gates() -> Iterator[Scenario]:
    """Yield gates and marks that a user may write, and command lines."""

    def gate(name: str, text: str, passes: bool | None = None, right: int = ITEMS) -> Scenario:
        return Scenario("gates and flags", name, project(text, right), passes=passes)

    def asserted(expression: str) -> str:
        return f'\ndef test_gate(adaptive_eval):\n    assert adaptive_eval["bank"].{expression}\n'

    for value, passes in (
        ("0.6", True),
        ("0.9", True),
        ("1", None),
        ("0", None),
        ("1.5", False),
        ("-1", None),
        ("math.nan", False),
        ("math.inf", False),
        ('"0.6"', False),
        ("None", False),
        ("True", False),
        ("[0.6]", False),
        ("0.6 + 0j", False),
    ):
        yield gate(f"at_least({value})", asserted(f"accuracy.at_least({value})"), passes)
        yield gate(f"at_least({value}), bad model", asserted(f"accuracy.at_least({value})"), value == "0" or None, 6)
    for confidence, passes in (
        ("0.5", None),
        ("0.8", True),
        ("0.99", None),
        ("0.9999999", None),
        ("0", False),
        ("1", False),
        ("95", False),
        ('"x"', False),
        ("math.nan", False),
    ):
        yield gate(f"confidence={confidence}", asserted(f"accuracy.at_least(0.6, confidence={confidence})"), passes)
    for expression in (
        'accuracy.not_worse_than("baseline")',
        'accuracy.not_worse_than("missing.json")',
        "accuracy.not_worse_than(7)",
        'accuracy.not_worse_than("baseline", margin=-1)',
        'accuracy.not_worse_than("bank.jsonl", margin=0.1)',
        'accuracy.not_worse_than("baseline", margin="x")',
        "accuracy.rank_within(1)",
        "accuracy.rank_within(0)",
        'accuracy.above("nobody")',
        "ability.at_least(0)",
        "ability.cross.at_least(0)",
        "ability.nothing.at_least(0)",
        "gain.at_least(0.1)",
        "auc.at_least(0.1)",
        "last_level.at_least(1)",
        "energy.at_least(1)",
        "nothing",
        'accuracy.at_least(0.6, on_inconclusive="maybe")',
        "accuracy.at_least(0.6, nothing=1)",
        "accuracy.at_least()",
        "accuracy.at_least(0.6).nothing",
        "accuracy.at_most(0.6)",
        'accuracy.at_least(0.6, method="magic")',
    ):
        yield gate(expression, asserted(expression), False)
    for keys, passes in (
        ("at_least=0.6", True),
        ("at_least=0.6, confidence=0.99", True),
        ("at_least=1.5", False),
        ("at_least=math.nan", False),
        ("at_last=0.6", False),
        ("at_least=0.6, confidence=2", False),
        ('at_least=0.6, method="magic"', False),
        ('not_worse_than="none.json", margin=0.1', False),
        ("", False),
    ):
        mark = f'\n@pytest.mark.adaptive_gate("bank"{", " * bool(keys)}{keys})\n'
        yield gate(f"mark {keys}", f"{mark}def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n", passes)
    for what in ("pass", "warn", "fail"):
        yield gate(f"on_inconclusive={what}", asserted(f'accuracy.at_least(0.55, on_inconclusive="{what}")'), None, 17)
        bad = asserted(f'accuracy.at_least(0.9, on_inconclusive="{what}")')
        yield gate(f"on_inconclusive={what}, bad model", bad, False, 6)
    yield from _evasions(gate, "", 'adaptive_eval["bank"].accuracy.at_least(0.6)')
    yield from _evasions(gate, '@pytest.mark.adaptive_gate("bank", at_least=0.6)', "adaptive_eval.verdicts")
    for mark in (
        "xfail",
        "skip",
        "xfail(strict=True)",
        "xfail(run=False)",
        "skipif(True, reason='x')",
        "usefixtures('model')",
        "parametrize('x', [1, 2])",
        "parametrize('x', [])",
        "adaptive_eval(bank='bank.jsonl')",
    ):
        text = GATE.replace("adaptive_eval)", "adaptive_eval, x)") if "parametrize" in mark else GATE
        yield gate(
            f"gate marked {mark}, bad model", f"\n@pytest.mark.{mark}{text}", None if "xfail" in mark else False, 6
        )
    for mark in (
        "budget=0",
        "budget=-1",
        "budget=1.5",
        "budget='0%'",
        "budget='300%'",
        "budget=None",
        "budget=True",
        "seed=-1",
        "seed='x'",
        "batch=0",
        "batch=10**9",
        "floor=2",
        "floor=-1",
        "policy='none'",
        "selector='none'",
        "estimator='x'",
        "samples=0",
        "repeat=-1",
        "repeat=3",
        "samples=3",
        "stop='never'",
        "name='a b'",
        "name=''",
        "nothing=1",
        "formats='all'",
    ):
        given = project(
            mark=f", {mark}",
            right=6,
            questions=QUESTIONS.replace(', budget="100%"', "") if "budget" in mark else QUESTIONS,
        )
        yield Scenario("gates and flags", f"marked {mark}, bad model", given, passes=False)
    yield from flags()


def flags() -> Iterator[Scenario]:
    """Yield command lines of a project whose model is bad."""
    without_gate = {"--version", "--help", "--co", "--setup-plan", "--setup-only", "test_it.py::test_questions[q3]"}
    without_gate |= {"--deselect", "questions"}
    values = {
        "budget": ("0", "1", "100%", "0%", "101%", "5.5", "-3", "abc", "1e3", "٣", "%", "", "9" * 40),
        "seed": ("-1", "x", str(2**64), "1.5", ""),
        "dir": ("conftest.py", "/dev/null", "/proc/nothing", "a\nb", "."),
        "record": (".", "nowhere/deep/r.json", "/dev/full", "conftest.py/x", ""),
        "html": (".", "/dev/full", "nowhere/deep/r.html"),
        "junit": (".", "/dev/full", "nowhere/deep/r.xml"),
        "baseline": ("missing.json", "conftest.py", "bank.jsonl", ".", "/dev/null", "#", "pytest.ini#x"),
        "missing-baseline": ("maybe", ""),
        "unsafe-code": ("yes", ""),
        "model": ("", "nothing", "replay:", "replay:missing.csv", "http://", "http://[::", "magic:x", ".", "/dev/zero"),
    }
    lines: list[tuple[str, ...]] = [
        (f"--adaptive-eval-{name}={value}",) for name, every in values.items() for value in every
    ]
    lines += [
        ("-k", "nothing"),
        ("-k", "gate"),
        ("-k", "questions"),
        ("-m", "nothing"),
        ("-x",),
        ("--maxfail=1",),
        ("--lf",),
        ("--ff",),
        ("--sw",),
        ("-n0",),
        ("-n2",),
        ("-n2", "--dist=each"),
        ("--co",),
        ("--setup-plan",),
        ("--setup-only",),
        ("--setup-show",),
        ("--deselect", "test_it.py::test_gate"),
        ("--deselect", "test_it.py::test_questions[aeval:bank]"),
        ("--ignore=test_it.py",),
        ("-p", "no:terminal"),
        ("-p", "no:cacheprovider"),
        ("-p", "no:capture"),
        ("--tb=no",),
        ("-qqq",),
        ("-rA",),
        ("-s",),
        ("--runxfail",),
        ("--noconftest",),
        ("--junitxml=tests.xml",),
        ("--pyargs", "os"),
        ("test_it.py::test_gate",),
        ("test_it.py::test_questions[q3]",),
        ("test_it.py::test_nothing",),
        ("--import-mode=importlib",),
        ("-W", "error"),
        ("--strict-markers", "--strict-config"),
        ("--timeout=1",),
        ("--pdbcls=nothing:nothing",),
        ("--version",),
        ("--help",),
    ]
    for line in lines:
        shown = " ".join(line)[:60].replace("\n", "\\n")
        plain = without_gate & {*line}
        yield Scenario("gates and flags", f"{shown}, bad model", project(right=6), line, None if plain else False)


def files() -> Iterator[Scenario]:
    """Yield banks, settings and folders that are damaged or strange."""

    def banked(name: str, content: bytes | str | Callable[[Path], None], passes: bool | None = False) -> Scenario:
        return Scenario("files", f"bank: {name}", dict(project(right=6)) | {"bank.jsonl": content}, passes=passes)

    good = bank().encode()
    first, rest = good.split(b"\n", 1)
    contents: dict[str, bytes | str] = {
        "empty": b"",
        "white space": b" \n\n ",
        "byte order mark": b"\xef\xbb\xbf" + good,
        "utf-16": good.decode().encode("utf-16"),
        "latin-1": good.replace(b"word 3", b"w\xe9rd 3"),
        "carriage returns": good.replace(b"\n", b"\r\n"),
        "nul byte": good.replace(b"word 3", b"word\x003"),
        "cut": good[:-20],
        "two on a line": good.replace(b"\n", b"", 1),
        "a list": json.dumps([json.loads(line) for line in good.splitlines()]),
        "a number": b"7\n" + good,
        "null": b"null\n" + good,
        "nan": good.replace(b'"w3"', b"NaN", 1),
        "huge number": good.replace(b'"w3"', b"1" * 5000, 1),
        "twice the same id": first + b"\n" + good,
        "twice the same key": good.replace(b'"id": "q3"', b'"id": "q3", "id": "q4"'),
        "deep": b'{"id": "x", "prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}\n" + rest,
        "html": b"<html>" + good,
        "gzip": b"\x1f\x8b\x08\x00" + good,
        "id with colons": good.replace(b'"q3"', b'"q::3"', 1),
        "id with brackets": good.replace(b'"q3"', b'"q[3]"', 1),
        "id is a path": good.replace(b'"q3"', b'"../../q3"', 1),
        "id empty": good.replace(b'"q3"', b'""', 1),
        "id of megabytes": good.replace(b'"q3"', b'"' + b"q" * 2_000_000 + b'"', 1),
        "id a number": good.replace(b'"q3"', b"3", 1),
        "prompt null": good.replace(b'"word 3 w3"', b"null"),
        "prompt empty": good.replace(b'"word 3 w3"', b'""'),
        "prompt of megabytes": good.replace(b'"word 3 w3"', b'"word 3 w3 ' + b"x" * 3_000_000 + b'"'),
        "lone surrogate": good.replace(b"word 3", b"word\\ud800 3"),
        "escapes": good.replace(b"word 3", b"word\\u001b[31m 3"),
        "one item": first + b"\n",
        "no answer": bank().replace('"answer"', '"other"'),
        "unknown field": bank(nothing=1),
        "answer a list": bank(answer=["a"]),
        "answer empty": bank(answer=""),
        "answer true": bank(answer=True),
        "grader unknown": bank(grader="magic"),
        "grader a number": bank(grader=3),
        "regex broken": bank(grader="regex", answer="("),
        "regex anything": bank(grader="regex", answer=".*"),
        "regex endless": bank(grader="regex", answer="^(w+)+$"),
        "regex empty branch": bank(grader="regex", answer="right|"),
        "contains punctuation": bank(grader="contains", answer="..."),
        "numeric word": bank(grader="numeric", answer="many"),
        "tolerance huge": bank(grader="numeric", answer="7", meta={"tolerance": 1e9}),
        "python grader": bank(grader="python:os:system"),
        "python grader missing": bank(grader="python:nothing:f"),
        "choice outside": bank(choices=["a", "b"], answer="z"),
        "choices twice": bank(choices=["a", "a"], answer="a"),
        "choices one": bank(choices=["a"], answer="a"),
        "image missing": bank(images=["no.png"]),
        "image outside": bank(images=["../../etc/passwd"]),
        "image absolute": bank(images=["/etc/passwd"]),
        "image with nul": bank(images=["a\0b.png"]),
        "image an address": bank(images=["http://127.0.0.1:9/x.png"]),
        "image no image": bank(images=["conftest.py"]),
        "messages broken": bank(messages=[{"role": "x"}]),
        "meta a list": bank(meta=[1]),
        "category a number": bank(category=[3]),
        "max_tokens negative": bank(meta={"max_tokens": -1}),
        "formats unknown": bank(formats=["smell"]),
    }
    for name, content in contents.items():
        yield banked(name, content, None if name == "one item" else False)  # its answer is right

    def fifo(path: Path) -> None:
        os.mkfifo(path)

    def folder(path: Path) -> None:
        path.mkdir()

    def link_to(target: str) -> Callable[[Path], None]:
        return lambda path: path.symlink_to(target)

    special = {
        "fifo": fifo,
        "folder": folder,
        "device": link_to("/dev/zero"),
        "link to itself": link_to("bank.jsonl"),
        "dangling link": link_to("none"),
    }
    for name, make in special.items():
        yield banked(name, make, False)
        picture = dict(project(right=6)) | {
            "bank.jsonl": bank(images=["a.png"]),
            "a.png": link_to("a.png") if "itself" in name else make,
        }
        yield Scenario("files", f"picture: {name}", picture, passes=False)
        yield Scenario(
            "files",
            f"baseline: {name}",
            dict(project(right=6)) | {"old.json": link_to("old.json") if "itself" in name else make},
            ("--adaptive-eval-baseline=old.json",),
            passes=False,
        )
        yield Scenario(
            "files",
            f"TOML: {name}",
            {"a.eval.toml": link_to("a.eval.toml") if "itself" in name else make, "pytest.ini": "[pytest]\n"},
            passes=False,
        )
    evaluation = '[[eval]]\nname = "a"\nbank = "bank.jsonl"\nmodel = "replay:answers.jsonl"\nbudget = "100%"\n'
    gate = '[[eval.gate]]\nmetric = "accuracy"\nat_least = 0.6\n'
    right = "".join(json.dumps({"id": f"q{n}", "text": f"w{n}"}) + "\n" for n in range(ITEMS))
    wrong = right.replace('"w', '"x')
    toml = {
        "good": (evaluation + gate, True),
        "without gate": (evaluation, None),
        "empty": ("", None),
        "broken": ("[[eval", False),
        "nul": ("\0", False),
        "duplicate key": (evaluation + 'name = "b"\n' + gate, False),
        "duplicate name": ((evaluation + gate) * 2, False),
        "unknown key": ("nothing = 1\n" + evaluation + gate, False),
        "unknown table": ("[nothing]\n" + evaluation + gate, False),
        "no bank": ('[[eval]]\nname = "a"\n' + gate, False),
        "bank a number": (evaluation.replace('"bank.jsonl"', "3") + gate, False),
        "budget a float": (evaluation.replace('"100%"', "0.5") + gate, False),
        "budget a date": (evaluation.replace('"100%"', "2020-01-01") + gate, False),
        "two conditions": (evaluation + gate + "above = 3\n", False),
        "unknown metric": (evaluation + gate.replace("accuracy", "accurracy"), False),
        "at_least text": (evaluation + gate.replace("0.6", '"0.6"'), False),
        "at_least nan": (evaluation + gate.replace("0.6", "nan"), False),
        "at_least inf": (evaluation + gate.replace("0.6", "-inf"), None),
        "gate a table": (evaluation.replace("[[", "[").replace("]]", "]") + gate, False),
        "kind unknown": (evaluation + 'kind = "magic"\n' + gate, False),
        "model a list": (evaluation.replace('"replay:answers.jsonl"', "[]") + gate, False),
        "bank elsewhere": (evaluation.replace("bank.jsonl", "/etc/passwd") + gate, False),
        "latin-1": ("# é\n".encode("latin-1").decode("latin-1") + evaluation + gate, True),
        "deep": ("a = " + "[" * 3000 + "]" * 3000 + "\n" + evaluation + gate, False),
        "seed huge": (evaluation + f"seed = {2**63 - 1}\n" + gate, None),
        "name with colons": (evaluation.replace('"a"', '"a::b"') + gate, False),
    }
    for name, (text, passes) in toml.items():
        shared = {"bank.jsonl": bank(), "answers.jsonl": right, "pytest.ini": "[pytest]\n"}
        yield Scenario("files", f"TOML: {name}", shared | {"a.eval.toml": text}, passes=passes)
        bad = passes and False if passes is not None else None
        yield Scenario(
            "files", f"TOML: {name}, bad model", shared | {"answers.jsonl": wrong, "a.eval.toml": text}, passes=bad
        )
    for name, text in {
        "empty": "",
        "cut": right[:-9],
        "an item missing": right.split("\n", 1)[1],
        "an item twice": right + right.split("\n")[0],
        "unknown items": right.replace('"q', '"z'),
        "scores text": '{"id": "q1", "score": "high"}\n',
        "score 2": '{"id": "q1", "score": 2}\n',
        "score nan": '{"id": "q1", "score": NaN}\n',
        "text a number": right.replace('"w3"', "3"),
        "status unknown": right.replace('"text": "w3"', '"text": "w3", "status": "splendid"'),
        "csv": "subject,q1\nx,1\n",
    }.items():
        given = {
            "bank.jsonl": bank(),
            "answers.jsonl": text,
            "pytest.ini": "[pytest]\n",
            "a.eval.toml": evaluation + gate,
        }
        yield Scenario("files", f"answers: {name}", given, passes=None)


def answers() -> Iterator[Scenario]:
    """Yield what a model's code may return or raise; where it is no right answer, the gate must not pass."""
    returned = (
        "None",
        "True",
        "7",
        "1.5",
        "b'w'",
        "[word]",
        "(word,)",
        "{'text': word}",
        "object()",
        "type",
        "lambda: word",
        "(x for x in word)",
        "NotImplemented",
        "...",
        "''",
        "' '",
        "'\\n' * 1000",
        "'x' * 5_000_000",
        "'\\ud800'",
        "'\\0'",
        "'\\x1b[2J\\x1b]0;title\\x07'",
        "']]>'",
        "'<script>alert(1)</script>'",
        "'::error::no'",
        "'%s' * 100",
        "'{}' * 100",
        "'\\u202e' + word[::-1]",
        "'\\u200b'",
        "'a' + '\\u0301' * 10_000",
        "str(10**4000)",
        "'(' * 100_000",
        "'\\\\' * 10_000",
        "'not ' + word",
        "prompt[:4]",
        "'w' * 40 + '!'",
        "bytearray(b'w')",
        "memoryview(b'w')",
        "float('nan')",
        "float('inf')",
        "complex(1)",
        "range(3)",
        "Exception(word)",
        "type('S', (str,), {'__eq__': lambda *a: True, '__hash__': str.__hash__})('z')",
        "type('T', (), {'__getattr__': lambda s, n: s})()",
        "type('H', (), {'__repr__': lambda s: 1 / 0, '__str__': lambda s: 1 / 0})()",
        "type('B', (), {'__bool__': lambda s: 1 / 0})()",
    )
    for expression in returned:
        yield Scenario("answers", f"returns {expression[:60]}", project(answer=f"return {expression}"), passes=False)
    raised = (
        "ValueError",
        "AssertionError",
        "AssertionError('x' * 10**6)",
        "KeyError(None)",
        "UnicodeDecodeError('utf-8', b'x', 0, 1, 'no')",
        "RecursionError",
        "MemoryError",
        "OSError(28, 'full')",
        "BrokenPipeError",
        "TimeoutError",
        "StopIteration",
        "StopAsyncIteration",
        "GeneratorExit",
        "ExceptionGroup('many', [ValueError(1)])",
        "BaseException('bare')",
        "SystemExit(0)",
        "SystemExit('text')",
        "KeyboardInterrupt",
        "Warning('w')",
        "pytest.skip.Exception('x')",
        "pytest.fail.Exception('x')",
        "pytest.xfail.Exception('x')",
        "pytest.exit.Exception('x', 0)",
        "type('E', (Exception,), {'__str__': lambda s: 1 / 0, '__repr__': lambda s: 1 / 0})()",
        "ValueError('\\ud800\\0\\x1b[2J')",
    )
    for expression in raised:
        yield Scenario("answers", f"raises {expression[:60]}", project(answer=f"raise {expression}"), passes=False)
    done = {
        "os._exit(0)": "import os; os._exit(0)",
        "os.kill": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "closes stdout": "import os; os.close(1); return 'no'",
        "deletes the bank": "import os\nif os.path.exists('bank.jsonl'): os.remove('bank.jsonl')\nreturn 'no'",
        "changes folder": "import os; os.chdir('/'); return 'no'",
        "prints": "print('x' * 10**6); return 'no'",
        "warns": "import warnings; warnings.warn('w'); return 'no'",
        "removes the journal": "import shutil; shutil.rmtree('.adaptive-eval', ignore_errors=True); return 'no'",
        "changes random": "import random; random.seed(0); return 'no'",
        "recursion": "return self.generate(prompt)",
        "threads": "import threading; threading.Thread(target=lambda: 1 / 0).start(); return 'no'",
        "changes the assertion": "import builtins; builtins.AssertionError = ValueError; return 'no'",
        "some errors": "if number % 2: raise OSError(28, 'full')\nreturn word",
        "last errors": "if number > 25: raise OSError(28, 'full')\nreturn 'no'",
        "forks": "import os, time\npid = os.fork()\nif not pid: os._exit(0)\nos.waitpid(pid, 0)\nreturn 'no'",
    }
    for name, statement in done.items():
        yield Scenario("answers", f"does: {name}", project(answer=statement), passes=False)


def endpoints() -> Iterator[Scenario]:
    """Yield servers that fail in each reply, in every third, or when they are first looked at."""
    toml = (
        '[[eval]]\nname = "a"\nbank = "bank.jsonl"\nmodel = "{url}#MODEL"\nbudget = "100%"\nmodel_options = OPTIONS\n'
        '[[eval.gate]]\nmetric = "accuracy"\nat_least = 0.6\n'
    )
    options = "{ timeout = 1.5, start_timeout = 1, key_env = 'SCENARIO_KEY', retries = 1 }"

    def served(
        name: str, handle: Handler | None, given: str = options, listing: Handler | None = None, model: str = MODEL
    ) -> Scenario:
        text = toml.replace("OPTIONS", given).replace("MODEL", model)
        return Scenario(
            "endpoints",
            name,
            {"bank.jsonl": bank(), "a.eval.toml": text, "pytest.ini": "[pytest]\n"},
            (),
            False,
            handle,
            listing,
        )

    wrong = replies(completion("no"))
    for number, (name, (_, handle)) in enumerate(FAULTS.items()):
        if number % 3 == 0:
            yield served(f"always {name}", handle)
        elif number % 3 == 1:
            yield served(f"every third {name}", every_third(handle))
        else:
            yield served(f"list of models: {name}", wrong, listing=handle)
    for name, given in {
        "timeout negative": "{ timeout = -1 }",
        "timeout text": "{ timeout = 'x' }",
        "rate 0": "{ rate = 0 }",
        "concurrency 0": "{ concurrency = 0 }",
        "unknown option": "{ nothing = 1 }",
        "key not set": "{ key_env = 'NO_SUCH_KEY' }",
        "header not set": "{ headers = { x = '$NO_SUCH' } }",
        "header with a line": '{ headers = { x = "a\\nb" } }',
        "proxy dead": "{ proxy = 'http://127.0.0.1:9', start_timeout = 1, timeout = 2 }",
        "proxy garbage": "{ proxy = 'x' }",
        "extra model": "{ extra = { model = 'other' } }",
        "temperature nan": "{ temperature = nan }",
        "max_tokens 0": "{ max_tokens = 0 }",
        "accept_models text": "{ accept_models = 'x' }",
    }.items():
        yield served(f"option: {name}", wrong, given)
    yield served("another model", replies(completion("no") | {"model": "other"}))
    yield served("unknown model", wrong, model="nobody")
    yield served("model name empty", wrong, model="")


def every_third(handle: Handler) -> Handler:
    """Return a handler that fails in every third reply, and gives a wrong answer in the others."""
    count = iter(range(10**9))

    def reply(connection: object, request: object) -> None:
        if next(count) % 3 == 2:
            handle(connection, request)
        else:
            send(connection, completion("no"))

    return reply


GROUPS: dict[str, Callable[[], Iterator[Scenario]]] = {
    "gates and flags": gates,
    "files": files,
    "answers": answers,
    "endpoints": endpoints,
}


def run(scenario: Scenario, folder: str, url: str) -> None:
    """Make the project in the folder and run pytest there; the body of a forked process."""
    os.setsid()
    os.chdir(folder)
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ |= {"SCENARIO_KEY": "not-a-secret-of-anyone", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "", "COLUMNS": "120"}
    sys.path.insert(0, folder)
    for name, content in scenario.files.items():
        path = Path(name)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content.replace("{url}", url), encoding="utf-8", newline="")
    flags = [flag.replace("{url}", url) for flag in scenario.flags]
    record = [] if any("-record" in flag for flag in flags) else [f"--adaptive-eval-record={RECORD}"]
    status = int(pytest.main(["--adaptive-eval", "-p", "no:cacheprovider", *record, *flags]))
    sys.stdout.flush()
    os._exit(status)


def faults(scenario: Scenario, folder: Path, status: int | None) -> list[str]:
    """Return what a finished run did that it must not do."""
    if status is None:
        return [f"did not end in {DEADLINE:.0f} s"]
    complaints = []
    output = printed(folder)
    raised_in = [re.findall(r'File "([^"]+)"', block)[-1:] for block in output.split("Traceback (most recent")[1:]]
    if "INTERNALERROR" in output or any("pytest_adaptive_eval" in path for paths in raised_in for path in paths):
        complaints.append("traceback")
    path = folder / RECORD
    record = RunRecord.from_json(json.loads(path.read_text("utf-8"))) if path.is_file() else None
    outcomes = [gate.outcome.value for gate in record.gates] if record else []
    if record and record.promote and (scenario.passes is False or Outcome.PASS not in outcomes):
        complaints.append(f"promoted with {outcomes}")
    if status == 0 and scenario.passes is False and not (record is None and "os._exit" in scenario.name):
        complaints.append(f"exit 0 with {outcomes}")
    if status != 0 and scenario.passes:
        complaints.append(f"exit {status} where the gate is met")
    return complaints


def printed(folder: Path) -> str:
    """Return what the run in the folder wrote to both streams."""
    path = folder / "output.txt"
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def start(scenario: Scenario) -> Running:
    """Start a run in a process of its own, and the server behind its model."""
    stack = ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    url = ""
    if scenario.group == "endpoints":
        url = stack.enter_context(FaultyServer(handle=scenario.handle, listing=scenario.listing)).url
    process = multiprocessing.get_context("fork").Process(target=run, args=(scenario, folder, url))
    process.start()
    return Running(scenario, Path(folder), process, time.monotonic() + DEADLINE, stack)


@dataclass(frozen=True)
class Running:
    """A run under way; `resources` are its folder and its server."""

    scenario: Scenario
    folder: Path
    process: multiprocessing.process.BaseProcess
    deadline: float
    resources: ExitStack

    @property
    def over(self) -> bool:
        """Whether the run ended or its time is up."""
        return not self.process.is_alive() or time.monotonic() > self.deadline

    def end(self, show: bool) -> tuple[int | None, list[str]]:
        """Return the exit status, None of an overdue run, which is killed; and what the run must not have done."""
        status: int | None = None
        if self.process.is_alive():
            self.process.kill()
        else:
            status = self.process.exitcode
        self.process.join()
        with self.resources:
            if show:
                print(printed(self.folder))
            return status, faults(self.scenario, self.folder, status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, action="append", help="only these groups")
    parser.add_argument("--show", metavar="TEXT", help="only scenarios whose name has TEXT, with their output")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    scenarios = [each for name in options.group or GROUPS for each in GROUPS[name]()]
    waiting = [each for each in scenarios if options.show is None or options.show in each.name]
    statuses: Counter[tuple[str, str]] = Counter()
    faulty = 0
    running: list[Running] = []
    while waiting or running:
        while waiting and len(running) < options.workers:
            running.append(start(waiting.pop(0)))
        for each in [each for each in running if each.over]:
            running.remove(each)
            status, complaints = each.end(options.show is not None)
            statuses[each.scenario.group, f"exit {status}"] += 1
            if complaints:
                faulty += 1
                print(f"{each.scenario.group}: {each.scenario.name}: {'; '.join(complaints)}", flush=True)
        time.sleep(0.005)
    for (group, status_name), count in sorted(statuses.items()):
        print(f"{group:16} {status_name:9} {count}")
    print(f"{statuses.total()} scenarios, {faulty} with a fault")
    sys.exit(bool(faulty))


if __name__ == "__main__":
    main()
