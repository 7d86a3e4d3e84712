"""What is run, in which order, and what the command line says about it."""

from __future__ import annotations

from typing import Any

import pytest

TWO_FILES = {
    "test_a_ask": """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=10, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """,
    "test_b_judge": """
        import pytest
        @pytest.mark.adaptive_gate("toy", at_least=0.99)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """,
    "test_c_plain": """
        def test_plain():
            pass
        """,
}


@pytest.fixture
def files(lab: Any) -> Any:
    """The interview in one file, its gate, which fails, in another."""
    lab.bank()
    lab.toy(tenths=5)
    for name, text in TWO_FILES.items():
        lab.tests(text, name)
    return lab


def test_collection_costs_one_item(lab: Any) -> None:
    lab.bank(n=300)
    lab.toy()
    lab.tests()
    result = lab.run("--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["test_it.py::test_toy?aeval:toy?", "test_it.py::test_gate", "", "2 tests collected*"])
    assert not (lab.path / ".adaptive-eval").exists()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("args", [("-k", "test_gate"), ("test_it.py::test_gate",)])
def test_a_gate_brings_its_interview(project: Any, args: tuple[str, ...]) -> None:
    result = project.run(*args)
    result.assert_outcomes(passed=2)
    assert project.outcomes() == [("test_gate", "PASS")]
    result.stdout.no_fnmatch_line("*deselected*")


def test_an_interview_alone(project: Any) -> None:
    for args in (
        ("-k", "test_toy"),
        ("test_it.py::test_toy",),
        ("test_it.py::test_toy[aeval:toy]",),
    ):
        project.run(*args).assert_outcomes(passed=1, deselected=int(args[0].startswith("-")))
        assert project.record["interviews"][0]["asked"] == 30
        assert project.record["gates"] == []


def test_single_questions(project: Any) -> None:
    result = project.run("test_it.py::test_toy[q3]", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_toy?q3? PASSED *"])
    result = project.run("test_it.py::test_toy[q9]")
    result.assert_outcomes(failed=1)
    shown = ["*asked: *", "*answered: *", "*expected: * (by the grader exact)"]
    result.stdout.fnmatch_lines(["E *assert 0.0", "*Captured question call*", *shown])
    project.run("test_it.py::test_toy[q9]", "test_it.py::test_toy[q1]").assert_outcomes(passed=1, failed=1)
    project.run("test_it.py::test_toy[q1]", "test_it.py::test_gate").assert_outcomes(passed=3)
    assert len(project.records) == 1
    result = project.run("test_it.py::test_toy[zzz]")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["test_it.py::test_toy?aeval:toy?: bank 'toy' has no item 'zzz'*"])


@pytest.mark.slow
def test_single_questions_with_a_score(lab: Any) -> None:
    lab.bank("my-bank")
    lab.tests(
        """
        import pytest
        @pytest.mark.parametrize("style", ["a-b", "c"])
        @pytest.mark.adaptive_eval("my-bank.jsonl")
        def test_toy(item, style):
            item.score(0.5 if style == "c" else 1)
        """
    )
    lab.toy()
    lab.run("test_it.py::test_toy[q1-a-b]").assert_outcomes(passed=1)
    result = lab.run("test_it.py::test_toy[q1-c]")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["score 0.5 of 1"])


@pytest.mark.slow
def test_questions_of_another_file_of_the_same_name(project: Any) -> None:
    project.tests(name="test_other")
    project.run("test_other.py::test_toy[q1]", "test_it.py::test_toy[q2]", "-v").assert_outcomes(passed=2)


def test_last_failed(files: Any) -> None:
    files.run().assert_outcomes(passed=2, failed=1)
    result = files.run("--lf")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)
    assert files.outcomes() == [("test_gate", "FAIL")]
    files.toy(tenths=10)
    files.tests(TWO_FILES["test_b_judge"].replace("0.99", "0.5"), "test_b_judge")
    files.run("--lf").assert_outcomes(passed=2)
    files.run("--lf").assert_outcomes(passed=3)


@pytest.mark.slow
def test_last_failed_after_errors(files: Any) -> None:
    files.toy(fault="raise OSError('down')")
    files.run().assert_outcomes(failed=3, passed=1)  # one question, the interview, the gate
    files.toy(tenths=5)
    result = files.run("--lf", "-v")
    result.assert_outcomes(passed=1, failed=1)
    assert files.record["interviews"][0]["error"] == ""


@pytest.mark.slow
def test_last_failed_of_stacked_parameters(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.parametrize("style", ["a[1]", "b"])
        @pytest.mark.adaptive_eval("toy.jsonl", budget=10)
        def test_toy(item, model, style):
            if style == "a[1]":
                raise OSError("down")
            assert item.grade(model.generate(item.prompt))
        """
    )
    lab.run().assert_outcomes(failed=2, passed=1)
    result = lab.run("--lf")
    result.assert_outcomes(failed=2)
    assert [i["nodeid"] for i in lab.record["interviews"]] == ["test_it.py::test_toy[aeval:toy-a[1]]"]


def test_failed_first(files: Any) -> None:
    files.run()
    result = files.run("--ff", "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["test_a_ask.py::test_toy?aeval:toy? *", "test_b_judge.py::test_gate *", "test_c_plain*"]
    )


def test_exit_first_ignores_wrong_answers(project: Any) -> None:
    project.toy(tenths=0)
    result = project.run("-x")
    result.assert_outcomes(passed=1, failed=1)
    assert project.record["interviews"][0]["asked"] == 30
    assert project.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("args", "asked"), [(("-x",), 4), (("--maxfail=2",), 5)])
def test_exit_first_stops_at_an_error(lab: Any, args: tuple[str, ...], asked: int) -> None:
    lab.bank(n=200)
    lab.toy(fault="if n >= 4: raise OSError('down')")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=100, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = lab.run(*args)
    assert result.ret == 1
    assert len(lab.asked) == asked
    assert lab.record["missing"] == ["test_it.py::test_gate"]
    assert lab.record["interviews"][0]["error"] == "the run was interrupted before the interview ended"
    result.stdout.no_fnmatch_line("*no result from*")
    lab.toy()
    assert lab.run().ret == 0
    assert len(lab.asked) == asked + 97  # it goes on after the three answers that it has


def test_durations(project: Any) -> None:
    project.run("--durations=3", "-vv").stdout.fnmatch_lines(["*slowest 3 durations*", "*s * test_it.py::test_*"])


def test_pdb_stops_at_errors_only(project: Any) -> None:
    project.pytester.makepyfile(
        recorder="""
        class Recorder:
            quitting = False
            def __init__(self, *args, **kwargs): pass
            def reset(self): pass
            def interaction(self, frame, traceback):
                with open("pdb.txt", "a") as file:
                    file.write("stopped\\n")
        """
    )
    project.pytester.syspathinsert()
    project.toy(tenths=5, fault="if n == 3: raise OSError('down')")
    # pytest-timeout would stay off for the rest of this process
    result = project.run("--pdb", "--pdbcls=recorder:Recorder", "-k", "toy", "-p", "no:timeout")
    assert result.ret == 1
    assert len(project.lines("pdb.txt")) == 1
    assert project.record["interviews"][0]["asked"] == 30


@pytest.mark.slow
def test_setup_only_and_setup_plan(project: Any) -> None:
    for flag, loaded in (("--setup-only", 1), ("--setup-plan", 1)):
        result = project.run(flag)
        assert result.ret == 0
        assert len(project.lines("loaded.txt")) == loaded  # the plan loads nothing
        result.stdout.fnmatch_lines(["*test_it.py::test_toy?q* (fixtures used: item, model*)*"])
    assert project.asked == []
    assert project.records == []


@pytest.mark.slow
def test_setup_only_with_workers(project: Any) -> None:
    """No interview has a result to hand to the other workers."""
    pytest.importorskip("xdist")
    result = project.spawn("--setup-only", "-n2")
    assert result.ret == 0
    assert "INTERNALERROR" not in result.stdout.str()
    assert project.records == []


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    "args",
    [
        ("-p", "no:cacheprovider"),
        ("-p", "no:setuponly"),
        ("-p", "no:xdist"),
        ("-p", "no:timeout"),
        ("-p", "no:junitxml"),
        ("-s",),
        ("--assert=plain",),
        ("--import-mode=importlib",),
        ("--tb=native",),
        ("--no-header", "--no-summary"),
    ],
)
def test_other_options(project: Any, args: tuple[str, ...]) -> None:
    assert project.run(*args).ret == 0
    assert project.outcomes() == [("test_gate", "PASS")]


@pytest.mark.slow
def test_without_a_terminal(project: Any) -> None:
    """Assertions stay plain, since pytest 8.0 cannot explain them without its terminal plugin."""
    assert project.spawn("-p", "no:terminal", "--assert=plain").ret == 0
    assert project.outcomes() == [("test_gate", "PASS")]


def test_gates_come_after_their_interviews_only(lab: Any) -> None:
    for name in ("one", "two"):
        lab.bank(name)
    lab.toy()
    lab.tests(
        """
        import pytest
        def test_computed(adaptive_eval):
            names = ["one", "two"]
            assert all(adaptive_eval[name].accuracy.at_least(0.1) for name in names)
        @pytest.mark.adaptive_gate("two", at_least=0.1)
        def test_two_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        @pytest.mark.adaptive_gate("one", at_least=0.1)
        def test_one_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        @pytest.mark.adaptive_eval("one.jsonl", budget=5, stop="budget")
        def test_one(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval("two.jsonl", budget=5, stop="budget")
        def test_two(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    result = lab.run("--collect-only", "-q")
    names = [line.split("::")[1] for line in result.outlines if "::" in line]
    assert names == ["test_one[aeval:one]", "test_one_gate", "test_two[aeval:two]", "test_computed", "test_two_gate"]
    result = lab.run("-k", "one_gate")
    assert result.ret == 0
    assert [i["name"] for i in lab.record["interviews"]] == ["one"]
    (warning,) = lab.record["warnings"]
    assert warning.startswith("gates that were deselected did not judge this run: ")
    assert ": test_it.py::test_computed, test_it.py::test_two_gate; " in warning
    assert "WARNING: gates that were deselected" in result.stdout.str()
    assert lab.run().ret == 0
    assert lab.record["warnings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("own", [None, "20"])
def test_threads_of_numpy_start_asleep_and_no_setting_stays(
    project: Any, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    name = "OPENBLAS_THREAD_TIMEOUT"
    monkeypatch.delenv(name, raising=False)
    if own is not None:
        monkeypatch.setenv(name, own)
    project.toy(
        more=f"""
        import sys
        class Watch:
            def find_spec(module, path=None, target=None):
                if module == "numpy":
                    Path("seen").write_text(str(os.environ.get({name!r})))
        sys.meta_path.insert(0, Watch)
        """,
        fault=f"if os.environ.get({name!r}) != {own!r}: raise OSError",
    )
    assert project.spawn().ret == 0
    assert (project.path / "seen").read_text() == (own or "4")
