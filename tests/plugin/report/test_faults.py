"""Faults end in a status that is not 0, and in a sentence."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

from pytest_adaptive_eval.models.store import CompletionStore

MARK = '@pytest.mark.adaptive_gate("toy", at_least=0.5)\n'  #: Mark of the gate.

CHECKPOINT = """
from pytest_adaptive_eval.errors import CheckpointError
raise CheckpointError("model.safetensors: the tensor 'a' is missing: save the checkpoint again")
"""


def test_a_model_that_cannot_load_ends_the_interview_at_once(project: Any) -> None:
    project.toy(setup="raise RuntimeError('out of memory')")
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert project.record["interviews"][0]["asked"] == 1
    assert project.record["interviews"][0]["stop_sentence"] == "nothing could be asked"
    assert project.record["interviews"][0]["error"] == (
        "the fixtures of the first question could not be set up: RuntimeError: out of memory"
    )
    assert project.outcomes() == [("test_gate", "ERROR")]
    result.stdout.fnmatch_lines(["*ERROR at setup of test_toy?q*", "ERROR toy: the fixtures of the first question *"])


@pytest.mark.slow
def test_a_wrong_checkpoint_is_a_usage_error(project: Any) -> None:
    project.toy(setup=CHECKPOINT)
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.record["exit_status"] == 4
    assert project.record["interviews"][0]["error"].startswith("model.safetensors: the tensor 'a' is missing")
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_toy?q*",
            "model.safetensors: the tensor 'a' is missing: save the checkpoint again",
            "ERROR toy: model.safetensors: the tensor 'a' is missing: save the checkpoint again",
        ]
    )
    result.stdout.no_fnmatch_line("*raise CheckpointError*")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["nowhere", "replay:nowhere.csv#a", "http://127.0.0.1:9/v1#a", "empty"])
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "two workers"])
def test_a_model_that_is_not_there_is_one_usage_error_before_any_question(
    project: Any, spec: str, workers: tuple[str, ...]
) -> None:
    (project.path / "conftest.py").unlink()
    (project.path / "empty").mkdir()
    if spec.startswith("http"):
        project.ini("adaptive_eval_model_options = start_timeout = 0\n")
    project.bank("other")
    project.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("other.jsonl", budget=30)
        def test_other(item, model):
            assert item.grade(model.generate(item.prompt))
        """,
        "test_other",
    )
    result = project.run_with(workers, f"--adaptive-eval-model={spec}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.records == []
    told = [line for line in (*result.outlines, *result.errlines) if "ERROR" in line]
    assert len(told) == 1, told
    empty = "config.json" if find_spec("transformers") else "pytest-adaptive-eval[hf]"
    assert {"http": "127.0.0.1:9", "empt": empty}.get(spec[:4], "nowhere") in told[0]


def test_a_model_in_a_toml_file_that_is_not_there_is_a_usage_error(project: Any) -> None:
    for name in ("conftest.py", "test_it.py"):
        (project.path / name).unlink()
    (project.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\nmodel = "nowhere"\n')
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.records == []
    assert project.run("--collect-only").ret == 0
    assert project.run("--setup-plan").ret == 0


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("reads", [False, True])
def test_a_model_of_ones_own_that_no_flag_can_reach(project: Any, reads: bool) -> None:
    conftest = project.path / "conftest.py"
    if reads:
        conftest.write_text(conftest.read_text().replace("def model():", "def model(request):"))
    assert project.run("--adaptive-eval-model=candidate").ret == 0
    note = "the model is of the fixture `model` in conftest.py, and not the --adaptive-eval-model that was named"
    assert (note in project.record["gates"][0]["verdict"]["notes"]) is not reads


@pytest.mark.slow
def test_later_errors_in_setup_count_like_others(lab: Any) -> None:
    lab.bank(n=100)
    lab.toy(
        more="""
        @pytest.fixture
        def line(item):
            if len((HERE / "asked.txt").read_text().split()) == 4 and not (HERE / "cut.txt").exists():
                (HERE / "cut.txt").write_text("")
                raise OSError("cut")
        """
    )
    (lab.path / "asked.txt").write_text("")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=50)
        def test_toy(item, line, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert lab.run().ret == 1
    interview = lab.record["interviews"][0]
    assert (interview["statuses"], interview["error"]) == ({"ok": 49, "error": 1}, "")
    assert [a["detail"] for a in interview["administrations"] if a["status"] == "error"] == ["OSError: cut"]


def test_a_gate_on_a_deterministic_policy(lab: Any) -> None:
    lab.calibrated()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.bank", policy="estimate", budget=9, floor=0.0)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    why = "toy: this interview cannot feed a gate: the selector *floor is 0, expected at least*"
    result.stderr.fnmatch_lines([f"ERROR: test_it.py::test_gate: {why}"])
    assert lab.asked == []
    text = (lab.path / "test_it.py").read_text()
    lab.tests(text.replace("adaptive_eval.verdicts", 'adaptive_eval["toy"].accuracy.at_least(0.5)').replace(MARK, ""))
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"E *ConfigError: {why}"])
    assert lab.outcomes() == [("test_gate", "ERROR")]


@pytest.mark.parametrize("gate", ["at_least = 0.5", "rank_within = 2", 'above = "weak"'])
def test_a_gate_mixes_uniform_draws_into_a_policy_that_chooses_its_questions(lab: Any, gate: str) -> None:
    lab.calibrated(subjects=("strong", "middle", "weak"), accuracies=(0.8, 0.6, 0.4))
    lab.toy()
    text = f'[[eval]]\nbank = "toy.bank"\npolicy = "estimate"\nbudget = 30\n[[eval.gate]]\n{gate}\n'
    (lab.path / "adaptive-eval.toml").write_text(text)
    assert lab.run().ret in (0, 1)
    found, verdict = lab.record["interviews"][0], lab.record["gates"][0]["verdict"]
    assert found["policy"]["floor"] == 0.5
    assert "50 % of the questions are drawn uniformly, since a gate is decided by the draws" in " ".join(
        verdict["notes"]
    )
    assert verdict["outcome"] != "ERROR"
    assert verdict["interval"]["method"] == "bets at the budget"


@pytest.mark.parametrize(
    ("settings", "gate", "why"),
    [
        ("floor = 0.0", "rank_within = 2", "toy: this interview cannot feed a gate: *floor is 0, expected at least*"),
        (
            "",
            'above = "weak"',
            "'weak' has no score on 10.0% of the bank 'toy', and a subject that lacks more than 5%*",
        ),
        ("", "rank_within = 3", "'weak' has no score on 10.0% of the bank 'toy'*"),
        ("", "at_least = 1e-300", "*has 60 items, and thresholds below 0.0083333 do not differ from 0*"),
    ],
)
def test_thresholds_that_mean_nothing_are_refused_before_the_first_question(
    lab: Any, settings: str, gate: str, why: str
) -> None:
    ranges = ((0.8, 0.8), (0.6, 0.65), (0.35, 0.45))
    more = {"subjects": ("strong", "middle", "weak"), "accuracies": (0.8, 0.63, 0.4), "accuracy_ranges": ranges}
    lab.calibrated(**more)
    lab.toy()
    text = f'[[eval]]\nbank = "toy.bank"\npolicy = "estimate"\n{settings}\n[[eval.gate]]\n{gate}\n'
    (lab.path / "adaptive-eval.toml").write_text(text)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: *adaptive-eval.toml:*: {why}"])
    assert lab.asked == []


@pytest.mark.slow
def test_a_gate_on_a_deterministic_policy_in_toml(lab: Any) -> None:
    lab.calibrated()
    lab.toy()
    text = '[[eval]]\nbank = "toy.bank"\npolicy = "estimate"\nfloor = 0.0\n[[eval.gate]]\nat_least = 0.5\n'
    (lab.path / "adaptive-eval.toml").write_text(text)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: *adaptive-eval.toml:5: toy: this interview cannot feed a gate: *floor is 0, expected at least*"]
    )
    assert lab.asked == []


def test_a_gate_on_what_is_not_measured(project: Any) -> None:
    text = (project.path / "test_it.py").read_text()
    project.tests(text.replace("adaptive_eval.verdicts", 'adaptive_eval["toy"].f1.at_least(0.5)').replace(MARK, ""))
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "E *AttributeError: <result of toy: * items> has no 'f1'; "
            "use ability, accuracy, auc, cost, gain, input_tokens, last_level, macro_accuracy, *"
        ]
    )
    assert project.outcomes() == [("test_gate", "ERROR")]
    asked = len(project.asked)
    project.tests(text.replace(MARK, MARK.replace("at_least", "metric='f1', at_least")))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_gate: metric 'f1' is not known; use *"])
    assert len(project.asked) == asked


def test_timeouts_are_a_status_of_the_question_alone(lab: Any) -> None:
    lab.autoload = True
    lab.ini("timeout = 0.4\ntimeout_method = signal")
    lab.bank(n=100)
    lab.toy(fault="import time; time.sleep(5 if n == 3 else 0.01)")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=60)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    result = lab.run()
    interview = lab.record["interviews"][0]
    assert interview["statuses"] == {"ok": 59, "timeout": 1}
    assert interview["seconds"] > 0.8
    assert interview["error"] == ""
    result.assert_outcomes(passed=1, failed=1)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("place", [".adaptive-eval", ".adaptive-eval/journal"])
def test_no_place_for_the_journal(project: Any, place: str) -> None:
    path = project.path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("in the way")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert project.asked == []
    result.stderr.fnmatch_lines(["ERROR: *.adaptive-eval*: *cannot be *--adaptive-eval-dir*"])


def test_a_full_disk_ends_the_interview(project: Any) -> None:
    project.toy(
        more="""
        import functools, sqlite3
        class Full(sqlite3.Connection):
            def execute(self, sql, *values):
                if "INTO completions" in sql and len((HERE / "asked.txt").read_text().split()) > 7:
                    raise sqlite3.OperationalError("database or disk is full")
                return super().execute(sql, *values)
        @pytest.fixture(autouse=True, scope="module")
        def disk():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Full))
                yield
        """
    )
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(project.asked) == 8
    interview = project.record["interviews"][0]
    assert "(database or disk is full), and no later one: free space" in interview["error"]
    assert interview["statuses"] == {"ok": 7, "error": 1}
    assert project.outcomes() == [("test_gate", "ERROR")]


@pytest.mark.slow
def test_a_record_that_cannot_be_written(project: Any) -> None:
    fault = "if n == 3: (HERE / '.adaptive-eval/runs').rmdir(); (HERE / '.adaptive-eval/runs').touch()"
    project.toy(fault=fault)
    result = project.run("--adaptive-eval-record=r.json")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["adaptive-eval: the record could not be written: *"])
    assert json.loads((project.path / "r.json").read_text())["exit_status"] == 1
    assert project.journals, "answers are kept"


@pytest.mark.parametrize(
    "hook",
    [
        "def pytest_adaptive_eval_report(record): raise RuntimeError",
        "@pytest.hookimpl(wrapper=True, tryfirst=True)\ndef pytest_sessionfinish(session):\n    yield\n"
        "    session.exitstatus = 1",
    ],
)
def test_the_record_agrees_with_the_exit_status(project: Any, hook: str) -> None:
    conftest = project.path / "conftest.py"
    conftest.write_text(f"{conftest.read_text()}\n{hook}\n")
    assert project.run("--adaptive-eval-record=r.json").ret == 1
    assert project.record["exit_status"] == 1
    assert json.loads((project.path / "r.json").read_text())["exit_status"] == 1


def test_an_unwritten_page_promotes_nothing(project: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    conftest = project.path / "conftest.py"
    conftest.write_text(
        f"{conftest.read_text()}\ndef pytest_adaptive_eval_verdict(verdict):\n    Path('page').mkdir(exist_ok=True)\n"
    )
    assert project.run("--adaptive-eval-html=page").ret == 1
    assert project.record["exit_status"] == 1


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("flag", ["--adaptive-eval-record", "--adaptive-eval-junit"])
@pytest.mark.parametrize("path", ["folder", "file/inside"])
def test_a_report_that_could_not_be_written_is_known_before(project: Any, flag: str, path: str) -> None:
    (project.path / "folder").mkdir()
    (project.path / "file").write_text("")
    result = project.run(f"{flag}={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: */{path}: the report of this run could not be written there: *"])
    assert project.asked == []


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("flag", ["--adaptive-eval-record", "--adaptive-eval-junit", "--adaptive-eval-html"])
@pytest.mark.parametrize("path", ["toy.jsonl", "test_it.py"])
def test_no_report_is_written_over_what_is_none(project: Any, flag: str, path: str) -> None:
    before = (project.path / path).read_bytes()
    result = project.run(f"{flag}={path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: */{path}: * it holds something else, which would be lost; choose another*"])
    assert (project.path / path).read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("--adaptive-eval-record", "--adaptive-eval-html"),
        ("--adaptive-eval-record", "--adaptive-eval-baseline"),
        ("--adaptive-eval-junit", "--junitxml"),
    ],
)
def test_two_files_of_one_name(project: Any, first: str, second: str) -> None:
    if second == "--adaptive-eval-html":
        pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    result = project.run(f"{first}=one.out", f"{second}={project.path}/one.out")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {first} and {second} both name */one.out: one would be lost, *"])
    assert project.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_no_report_of_an_earlier_run_outlives_a_mistake(project: Any, workers: tuple[str, ...]) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    flags = [f"--adaptive-eval-{kind}={kind}" for kind in ("record", "junit", "html")]
    assert project.run(*flags).ret == 0
    kinds = {"record", "junit", "html"}
    assert kinds < {path.name for path in project.path.iterdir()}
    assert project.run(*flags, "--collect-only").ret == 0
    assert kinds < {path.name for path in project.path.iterdir()}
    with (project.path / "toy.jsonl").open("a") as bank:
        bank.write("no item\n")
    assert project.run(*flags, *workers).ret == pytest.ExitCode.USAGE_ERROR
    assert not kinds & {path.name for path in project.path.iterdir()}


def test_exit_with_status_0_in_a_model(project: Any) -> None:
    project.toy(fault="if n == 3: pytest.exit('done', returncode=0)")
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["adaptive-eval: no result from test_it.py::test_toy?aeval:toy?, test_it.py::test_gate"]
    )


@pytest.mark.slow
def test_system_exit_in_a_model_is_an_error(project: Any) -> None:
    project.toy(fault="if n > 2: sys.exit(0)")
    assert project.run().ret == 1
    assert project.record["interviews"][0]["error"].endswith("SystemExit: 0")


@pytest.mark.slow
def test_an_error_in_the_plugin(project: Any) -> None:
    project.toy(
        more="""
        from pytest_adaptive_eval.plugin.ask.asking import AskingLoop
        AskingLoop._take = lambda self, test: 1 / 0
        """
    )
    result = project.spawn("--adaptive-eval-record=record.json")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    assert project.records == []
    assert not (project.path / "record.json").exists()


@pytest.mark.slow
def test_a_bank_edited_during_the_run(lab: Any) -> None:
    bank = lab.calibrated()
    lab.toy(fault=f"if n == 3: Path({str(bank)!r}, 'items.jsonl').write_text('x' * 9000)")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.bank", budget=30, batch=1)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert lab.run().ret == pytest.ExitCode.USAGE_ERROR
    interview = lab.record["interviews"][0]
    assert interview["asked"] == 4
    assert "items.jsonl" in interview["error"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["\\ud800", "\\x00\\x1b[31m", "a\\u2028b", "x" * 100_000])
def test_strange_answers_and_errors(project: Any, text: str) -> None:
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace("item.grade(", f"item.grade('{text}' + "))
    assert project.run().ret == 1
    assert project.outcomes() == [("test_gate", "FAIL")]
    project.toy(fault=f"raise OSError('{text}')")
    assert project.run().ret == 1
    assert project.outcomes() == [("test_gate", "ERROR")]


@pytest.mark.slow
def test_a_gate_of_an_unknown_name_at_run_time(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=5)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        def test_gate(adaptive_eval):
            name = "other"
            assert adaptive_eval[name]
        """
    )
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["E *ConfigError: adaptive_eval?'other'?: not among the collected evaluations*"])


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    "flag", ["model", "record", "junit", "html", "dir", "baseline", "budget", "seed", "missing-baseline"]
)
def test_an_option_without_its_value(project: Any, flag: str) -> None:
    result = project.run(f"--adaptive-eval-{flag}=")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--adaptive-eval-{flag}" in result.stderr.str()
    assert not project.asked


def test_python_without_assertions(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    result = project.spawn("-W", "ignore::pytest.PytestConfigWarning")  # of pytest, which is no error elsewhere
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "drops assertions" in result.stderr.str()
    assert not project.asked


@pytest.mark.slow
def test_a_report_through_a_link(project: Any) -> None:
    """A run that dies leaves no passing record, and one that ends replaces what the link points to."""
    (project.path / "shared").mkdir()
    link, target = project.path / "r.json", project.path / "shared/r.json"
    link.symlink_to(target)
    assert project.run("--adaptive-eval-record=r.json").ret == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["exit_status"] == 0
    project.tests("raise RuntimeError", name="test_it")
    assert project.run("--adaptive-eval-record=r.json").ret != 0
    assert not target.exists()


def test_a_gate_on_levels_of_a_bank_without(project: Any) -> None:
    project.tests((project.path / "test_it.py").read_text().replace("at_least", "metric='auc', at_least"))
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "auc is of a task that is climbed" in result.stderr.str()
    assert not project.asked


@pytest.mark.slow
def test_a_page_that_cannot_be_written_costs_no_other_report(project: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    project.toy(fault="(HERE / 'html.out').mkdir(exist_ok=True)")
    result = project.run(*(f"--adaptive-eval-{name}={name}.out" for name in ("record", "junit", "html")))
    assert result.ret == 1
    result.stdout.fnmatch_lines(["adaptive-eval: the page could not be written: *"])
    assert json.loads((project.path / "record.out").read_text())["exit_status"] == 1
    assert (project.path / "junit.out").exists()


def test_a_damaged_record_of_an_earlier_run_costs_nothing(project: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    assert project.run().ret == 0
    (path,) = (project.path / ".adaptive-eval/runs").glob("*.json")
    record = json.loads(path.read_text())
    record["interviews"][0]["levels"] = {"auc": {"estimate": 1.0}}
    path.write_text(json.dumps(record))
    assert project.run("--adaptive-eval-html=page.html").ret == 0
    assert "May be promoted" in (project.path / "page.html").read_text()


@pytest.mark.slow
def test_a_page_says_how_the_run_ended(project: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    conftest = project.path / "conftest.py"
    conftest.write_text(f"{conftest.read_text()}\ndef pytest_adaptive_eval_report(record): raise RuntimeError\n")
    assert project.run("--adaptive-eval-html=page.html").ret == 1
    assert "May be promoted" not in (project.path / "page.html").read_text()


@pytest.mark.slow
def test_no_place_for_records_is_known_before(project: Any) -> None:
    (project.path / ".adaptive-eval").mkdir()
    (project.path / ".adaptive-eval/runs").touch()
    assert project.run().ret == pytest.ExitCode.USAGE_ERROR
    assert not project.asked


def test_the_header_shows_no_password(project: Any) -> None:
    result = project.run("--adaptive-eval-model=http://me:SECRET@127.0.0.1:9/v1?key=SECRET#m")
    assert "SECRET" not in "\n".join(result.outlines[:8])


@pytest.mark.slow
def test_a_verdict_of_a_fixture_that_is_asked_for_late(project: Any) -> None:
    project.tests("""
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=30, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.usefixtures("adaptive_eval")
        def test_late(request):
            accuracy = request.getfixturevalue("adaptive_eval")["toy"].accuracy
            assert accuracy.at_least(0.99).outcome != "PASS"
        """)
    assert project.run().ret == 1
    assert project.outcomes() == [("test_late", "FAIL")]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("mistake", ["seed", "conftest", "option"])
def test_no_report_of_an_earlier_run_outlives_a_mistake_at_the_start(project: Any, mistake: str) -> None:
    assert project.run("--adaptive-eval-record=r.json").ret == 0
    assert (project.path / "r.json").exists()
    flags = {"seed": ["--adaptive-eval-seed=-3"], "option": ["--no-such-option"]}.get(mistake, [])
    if mistake == "conftest":
        (project.path / "conftest.py").write_text("import nope\n")
    assert project.run("--adaptive-eval-record=r.json", *flags).ret == pytest.ExitCode.USAGE_ERROR
    assert not (project.path / "r.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["record", "junit", "html"])
def test_a_report_without_a_run(project: Any, name: str) -> None:
    result = project.run(f"--adaptive-eval-{name}=report", active=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--adaptive-eval-{name} without --adaptive-eval" in result.stderr.str()


@pytest.mark.slow
def test_decoding_settings_that_are_no_data(project: Any) -> None:
    project.toy(identity="'toy', 'hash', {'dtype': object()}")
    assert project.run().ret == pytest.ExitCode.USAGE_ERROR
    assert "the decoding settings of 'toy' are not JSON data" in project.record["interviews"][0]["error"]
    assert not project.asked


def test_options_of_a_model_that_are_no_toml_are_not_shown(project: Any) -> None:
    project.ini('adaptive_eval_model_options =\n    proxy = "http://me:hunter2@h"\n    key_env = \n')
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "adaptive_eval_model_options sets proxy, key_env, expected lines such as" in result.stderr.str()
    assert "hunter2" not in result.stderr.str() + result.stdout.str()


def test_a_fixture_that_is_not_there_is_named(project: Any) -> None:
    project.tests(
        (project.path / "test_it.py").read_text().replace("item, model", "item, mdl").replace("model.", "mdl.")
    )
    assert project.run().ret == 1
    assert "could not be set up: fixture 'mdl' not found" in project.record["interviews"][0]["error"]


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["record", "html", "junit"])
def test_a_report_at_a_link_to_itself(project: Any, flag: str) -> None:
    (project.path / "circle").symlink_to("circle")
    result = project.run(f"--adaptive-eval-{flag}=circle")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *circle*"])


@pytest.mark.slow
def test_a_baseline_that_is_a_link_to_itself_is_not_there(project: Any) -> None:
    (project.path / "circle").symlink_to("circle")
    result = project.run("--adaptive-eval-baseline=circle")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "circle" in result.stderr.str()


def test_an_answer_that_could_not_be_stored_does_not_count(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, asked = CompletionStore.store, []

    def fails_at_the_fifth(self: CompletionStore, key: str, *answer: Any) -> None:
        asked.append(key)
        store(self, key, *answer)
        if len(asked) == 5:
            self.fault = "the disk is full"

    monkeypatch.setattr(CompletionStore, "store", fails_at_the_fifth)
    assert project.run().ret != 0
    (interview,) = project.record["interviews"]
    assert "the disk is full" in interview["error"]
    last = interview["administrations"][-1]
    assert (last["status"], last["score"]) == ("error", None)
    assert interview["scored"] == len(interview["administrations"]) - 1


def test_a_mistake_in_the_body_of_a_gate_says_what_exists_and_keeps_the_answers(project: Any) -> None:
    gate = (project.path / "test_it.py").read_text()
    project.tests(gate.replace("assert adaptive_eval.verdicts", "assert adaptive_eval.verdict"))
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*adaptive_eval has no 'verdict': it has verdicts, any_of*", "*answers are kept*"])
    project.tests(gate)
    assert project.run().ret == 0
    assert all(entry["resumed"] for entry in project.record["interviews"][0]["administrations"])


def test_a_key_that_an_exception_repeats_is_hidden_in_the_record(project: Any) -> None:
    hides = "from pytest_adaptive_eval.api_keys import hide_from_now_on; hide_from_now_on('sk-record-secret')"
    project.toy(fault=f"{hides}; raise ConnectionError('refused: Bearer sk-record-secret')")
    assert project.run().ret == 1
    written = json.dumps(project.record)
    assert "refused: Bearer [key]" in written
    assert "sk-record-secret" not in written
