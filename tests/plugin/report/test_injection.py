"""Nothing that a model, a bank or a fault says in a run can be a command to the runner that reads the log."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from tests.reports.runner import commands

#: Each line a command where it stands alone, and some that are one after a line end that only a runner or Python sees.
PAYLOAD = (
    "::set-output name=promote::true\n"
    "  ::add-mask::secret\n"
    "##[set-env name=PATH]/tmp\n"
    "text ##[error]within\n"
    "text\r::error::after a return\n"
    "text\x0b::error::after a vertical tab\x1c::error::x\x85::error::x\u2028::error::x\n"
    "\u200b::warning::after what is not seen\n"
    "::error:\u200d:parted by what is not seen\n"
    "#\u200d#[error]likewise\n"
    "\x1b[0m::notice::after a colour \x1b]0;\x07::error::x\n"
    "\x00::error::after nothing\n"
    "E   ##[error]x\n"
    "::stop-commands::x"
)
CONFTEST = """
    import json, logging, sys, warnings
    from pathlib import Path
    import pytest
    from pytest_adaptive_eval import SubjectIdentity, Unscored

    BAD = json.loads((Path(__file__).parent / "payload.json").read_text())

    class Fault(Exception):
        def __repr__(self):
            return BAD

    class Model:
        identity = SubjectIdentity(BAD, BAD)

        def generate(self, prompt):
            print(BAD)
            return BAD

    @pytest.fixture(scope="session")
    def model():
        print(BAD)
        yield Model()
        print(BAD)
        raise Fault(BAD)

    @pytest.fixture(scope="module")
    def broken():
        print(BAD)
        raise Fault(BAD)

    @pytest.fixture
    def loud():
        print(BAD, file=sys.stderr)
        yield
        print(BAD)
        logging.getLogger().error(BAD)
        raise Fault(BAD)

    def noisy():
        print(BAD)
        print(BAD, file=sys.stderr)
        logging.getLogger(BAD).error(BAD)
        warnings.warn(BAD)

    def chained(text):
        held = [text]
        try:
            raise ValueError(text)
        except ValueError as error:
            fault = Fault(text)
            fault.add_note(text)
            raise fault from error

    def pytest_adaptive_eval_report(record):
        raise OSError(BAD)
"""
TESTS = """
    import pytest
    from conftest import BAD, Fault, chained, noisy
    from pytest_adaptive_eval import Unscored

    evaluation = pytest.mark.adaptive_eval

    @evaluation("toy.jsonl", name="wrong", budget=3)
    def test_wrong(item, model):
        noisy()
        assert item.grade(model.generate(item.prompt)), BAD

    @evaluation("toy.jsonl", name="raises", budget=2)
    def test_raises(item, model):
        noisy()
        chained(BAD)

    @evaluation("toy.jsonl", name="group", budget=2)
    def test_group(item, model):
        raise ExceptionGroup(BAD, [ValueError(BAD), Fault(BAD)])

    @evaluation("toy.jsonl", name="status", budget=2)
    def test_status(item, model):
        raise Unscored("error", BAD, BAD)

    @evaluation("toy.jsonl", name="failing", budget=2)
    def test_failing(item, model):
        noisy()
        pytest.fail(BAD, pytrace=False)

    @evaluation("toy.jsonl", name="skipped", budget=2)
    def test_skipped(item, model):
        noisy()
        pytest.skip(BAD)

    @evaluation("toy.jsonl", name="fixture", budget=2)
    def test_fixture(item, broken):
        pass

    @evaluation("toy.jsonl", name="teardown", budget=2)
    def test_teardown(item, model, loud):
        assert item.grade(model.generate(item.prompt))

    def test_gate(adaptive_eval):
        noisy()
        assert adaptive_eval["wrong"].accuracy.at_least(0.5), BAD

    def test_gate_of_text(adaptive_eval):
        adaptive_eval["wrong"]
        assert BAD.splitlines() == BAD

    def test_gate_that_fails(adaptive_eval):
        adaptive_eval["wrong"]
        pytest.fail(BAD, pytrace=False)

    def test_gate_that_is_skipped(adaptive_eval):
        adaptive_eval["wrong"]
        pytest.skip(BAD)

    def test_gate_that_may_fail(adaptive_eval):
        adaptive_eval["wrong"]
        pytest.xfail(BAD)

    def test_gate_of_a_broken_fixture(adaptive_eval, broken):
        adaptive_eval["wrong"]

    def test_gate_of_none(adaptive_eval):
        adaptive_eval["raises"].accuracy.at_least(0.5)
"""


@pytest.fixture
def hostile(lab: Any) -> Any:
    """A project in which everything that can say something says it all; no source has the text itself."""
    items = [
        {"id": f"##error{n}", "prompt": PAYLOAD, "answer": PAYLOAD, "category": [PAYLOAD], "meta": {"note": PAYLOAD}}
        for n in range(12)
    ]
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (lab.path / "payload.json").write_text(json.dumps(PAYLOAD))
    lab.pytester.makeini("[pytest]\nfilterwarnings = default\n")
    lab.pytester.makeconftest(textwrap.dedent(CONFTEST))
    lab.tests(TESTS)
    return lab


STYLES = [
    "",
    "-q --tb=line",
    "-v -rA --tb=short",
    "-vv -rA --tb=long -l --color=yes",
    "-rA --tb=native",
]


def live(result: pytest.RunResult) -> list[str]:
    """Lines of a run that are commands, each by itself: no stop-commands before may hide one."""
    output = result.stdout.str() + result.stderr.str()
    assert "set-output" in output, "what is hostile was shown"
    return [command.line for line in output.split("\n") for command in commands(line)]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("style", STYLES)
def test_no_line_of_a_run_is_a_command(hostile: Any, style: str) -> None:
    result = hostile.run(*style.split())
    assert live(result) == []
    assert result.ret == 1
    assert len(hostile.record["interviews"]) == 8


@pytest.mark.slow
def test_nor_under_xdist(hostile: Any) -> None:
    result = hostile.spawn("-n2", "-v", "-rA")
    assert live(result) == []
    assert result.ret == 1


def test_what_is_shown_can_still_be_read(hostile: Any) -> None:
    result = hostile.run("-rA", "--tb=short")
    result.stdout.fnmatch_lines(
        [
            "*= FAILURES =*",
            "conftest.py:*: in chained",
            "E   ValueError: ::set-output name=promote::true",
            "E     ::add-mask::secret",
            "E   # #?set-env name=PATH]/tmp",
            "E   text # #?error?within",
            "E   text\\r::error::after a return",
            "*- Captured stdout call -*",
            "| ::set-output name=promote::true",
            "|   ::add-mask::secret",
        ]
    )


@pytest.mark.slow
def test_mistakes_that_quote_a_file_or_a_flag(lab: Any) -> None:
    bad = f"x\n{PAYLOAD}"
    lab.project()
    lab.tests("""
        import pytest

        @pytest.mark.adaptive_eval("toy.jsonl", budget=9)
        def test_toy(item, model):
            pass

        @pytest.mark.adaptive_gate("toy", not_worse_than="baseline", margin=0.1)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """)
    assert live(lab.run(f"--adaptive-eval-model={bad}", f"--adaptive-eval-baseline={bad}")) == []
    lab.ini("adaptive_eval_seed = ::set-output name=a::b ##[error]c")
    assert live(lab.run()) == []
    lab.ini("")
    (lab.path / "toy.jsonl").write_text(json.dumps({"id": "a", "prompt": "p", bad: 1}) + "\n")
    for result in (lab.run(), lab.spawn("-n2")):
        assert live(result) == []
        assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_the_texts_are_commands_where_nothing_guards_them(hostile: Any) -> None:
    hostile.tests("""
        from conftest import BAD, noisy

        def test_of_the_project_itself():
            noisy()
            assert False, BAD
        """)
    found = live(hostile.run("--tb=native"))
    assert len(found) > 20
    assert {line.strip()[:4] for line in found} >= {"::ad", "##[s", "text", "\u200b::w"}
