"""Faults that other plugins once caused, by their numbers in the order of harm."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from small_project import CONFTEST, MODELS, TESTS, missing, observe, run_pytest, write_project

pytestmark = pytest.mark.slow

USAGE_ERROR = 4

RERUNS = [
    ("pytest-rerunfailures", "--reruns=20"),
    ("pytest-retry", "--retries=20"),
    ("flaky", "--force-flaky --max-runs=20"),
]


def need(*distributions: str) -> None:
    if absent := missing(distributions):
        pytest.skip(f"not installed: {', '.join(absent)} (dependency group beside)")


@pytest.mark.parametrize(("plugin", "switches"), RERUNS)
@pytest.mark.parametrize("model", ["unreadable", "dead"])
def test_01_an_unreadable_model_is_not_asked_until_it_can_be_read(
    tmp_path: Path, model: str, plugin: str, switches: str
) -> None:
    need(plugin)
    seen = observe(write_project(tmp_path, model), [plugin], switches.split())
    assert seen.exit_code in (1, USAGE_ERROR), seen.output
    assert not seen.faults(), seen.output
    assert "PASS" not in [verdict[2] for verdict in seen.verdicts]


@pytest.mark.parametrize("seed", [1, 2])
def test_02_a_coin_is_not_the_same_at_each_question_where_tests_are_seeded(tmp_path: Path, seed: int) -> None:
    seeding = (
        f"\n\n@pytest.hookimpl(trylast=True)\ndef pytest_runtest_setup():\n    import random; random.seed({seed})\n"
    )
    seeding += f"\n\ndef pytest_runtest_call():\n    import random; random.seed({seed})\n"
    conftest = CONFTEST.format(answer=MODELS["coin"]) + seeding
    seen = observe(write_project(tmp_path, files={"conftest.py": conftest}))
    for interview in ("sums", "words"):
        assert {entry[-1] for entry in seen.administrations if entry[0] == interview} == {0.0, 1.0}, seen.output


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_02_a_coin_beside_pytest_randomly(tmp_path: Path, seed: int) -> None:
    need("pytest-randomly")
    seen = observe(write_project(tmp_path, "coin"), ["pytest-randomly"], [f"--randomly-seed={seed}"])
    for interview in ("sums", "words"):
        assert {entry[-1] for entry in seen.administrations if entry[0] == interview} == {0.0, 1.0}, seen.output


def test_03_a_required_gate_that_is_left_out_promotes_nothing(tmp_path: Path) -> None:
    path = write_project(tmp_path, ini="adaptive_eval_required_gates = test_both_gate\n")
    seen = observe(path, (), ["-k", "sums"])
    assert seen.exit_code != 0, seen.output
    assert not seen.promote
    assert "test_both_gate" in seen.output


def test_03_gates_that_are_left_out_are_named(tmp_path: Path) -> None:
    seen = observe(write_project(tmp_path), (), ["-k", "sums"])
    assert "test_both_gate" in seen.output


@pytest.mark.parametrize(("plugin", "switches"), RERUNS)
def test_04_a_gate_that_failed_once_fails_the_run(tmp_path: Path, plugin: str, switches: str) -> None:
    need(plugin)
    gate = """

TRIES = []

def test_changing_gate(adaptive_eval):
    TRIES.append(None)
    assert adaptive_eval["sums"].accuracy.at_least(0.99 if len(TRIES) == 1 else 0.1)
"""
    seen = observe(write_project(tmp_path, files={"test_small.py": TESTS + gate}), [plugin], switches.split())
    assert seen.exit_code in (1, USAGE_ERROR), seen.output
    assert not seen.promote
    assert not seen.faults(), seen.output


@pytest.mark.parametrize(
    ("plugin", "fixture", "statement"),
    [
        ("", "subtests", "with subtests.test(): assert item.grade(answer)"),
        ("", "subtests", "with subtests.test(): assert answer == item.answer"),
        ("pytest-check", "check", "check.is_true(item.grade(answer))"),
        ("pytest-check", "check", "with check: assert item.grade(answer)"),
        ("pytest-check", "check", "check.equal(answer, item.answer)"),
        ("pytest-assume", "request", "pytest.assume(item.grade(answer))"),
    ],
)
def test_05_a_soft_assertion_that_fails_is_no_right_answer(
    tmp_path: Path, plugin: str, fixture: str, statement: str
) -> None:
    need(*filter(None, [plugin]))
    tests = TESTS.replace("assert item.grade(answer)", statement).replace("(item, model)", f"(item, model, {fixture})")
    seen = observe(write_project(tmp_path, "wrong", files={"test_small.py": tests}), filter(None, [plugin]))
    assert seen.administrations, seen.output
    assert 1.0 not in [entry[-1] for entry in seen.administrations if entry[0] == "sums"], seen.output
    assert ("test_sums_gate", "PASS") not in [(verdict[0], verdict[2]) for verdict in seen.verdicts]
    assert seen.exit_code in (1, USAGE_ERROR), seen.output


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_06_a_gate_that_waits_is_not_timed(tmp_path: Path, method: str) -> None:
    need("pytest-timeout", "pytest-xdist")
    switches = ["-n2", "--timeout=2", f"--timeout-method={method}"]
    seen = observe(write_project(tmp_path, "slow"), ["pytest-timeout"], switches)
    assert seen.exit_code == 0, seen.output
    assert [verdict[2] for verdict in seen.verdicts] == ["PASS"] * 4
    assert not seen.faults()


def test_07_a_library_on_the_path_is_not_the_users_code(tmp_path: Path) -> None:
    target = tmp_path / "libraries"
    (target / "somelib-1.0.dist-info").mkdir(parents=True)
    (target / "somelib-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: somelib\nVersion: 1.0\n")
    (target / "somelib-1.0.dist-info" / "RECORD").write_text("somelib.py,,\n")
    (target / "somelib.py").write_text("def same(value):\n    return value\n")
    tests = TESTS.replace("import pytest\n", "import pytest\nimport somelib\n", 1)
    tests = tests.replace("assert item.grade(answer)", "assert item.grade(somelib.same(answer))")
    stop = 'if "STOP" in os.environ and self.calls.total() == 10: raise KeyboardInterrupt\n        '
    conftest = CONFTEST.format(answer=stop + MODELS["sound"])
    path = write_project(tmp_path / "project", files={"test_small.py": tests, "conftest.py": conftest})
    stopped = observe(path, (), (), PYTHONPATH=str(target), STOP="")
    assert stopped.calls.total() == 10, stopped.output
    (target / "somelib.py").write_text("def same(value):\n    return str(value)\n")
    resumed = observe(path, (), (), PYTHONPATH=str(target))
    assert resumed.exit_code == 0, resumed.output
    assert resumed.calls.total() <= 29, "a change in a library had the kept answers asked again"


def test_08_a_gate_may_use_subtests(tmp_path: Path) -> None:
    if not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests of its own")
    gate = """

def test_parts_gate(adaptive_eval, subtests):
    for least in (0.1, 0.2):
        with subtests.test(least=least):
            assert adaptive_eval["sums"].accuracy.at_least(least)
"""
    seen = observe(write_project(tmp_path, files={"test_small.py": TESTS + gate}))
    assert seen.exit_code == 0, seen.output
    assert [verdict[2] for verdict in seen.verdicts] == ["PASS"] * 6


FOUND_LATE = {
    "getfixturevalue": (
        (),
        'import pytest\n\n\n@pytest.mark.usefixtures("adaptive_eval")\n'
        'def test_late_gate(request):\n    results = request.getfixturevalue("adaptive_eval")\n'
        '    assert results["words"].accuracy.at_least(0.2)\n',
    ),
    "bdd": (
        ("pytest-bdd",),
        "import pytest\nfrom pytest_bdd import given, scenario, then\n\n\n"
        '@pytest.mark.usefixtures("adaptive_eval")\n'
        '@scenario("gate.feature", "Words")\ndef test_late_gate():\n    pass\n\n\n'
        '@given("the interviews")\ndef _():\n    pass\n\n\n'
        '@then("words are good enough")\ndef _(adaptive_eval):\n'
        '    assert adaptive_eval["words"].accuracy.at_least(0.2)\n',
    ),
    "lazy": (
        ("pytest-lazy-fixtures",),
        "import pytest\nfrom pytest_lazy_fixtures import lf\n\n\n"
        '@pytest.mark.usefixtures("adaptive_eval")\n'
        '@pytest.mark.parametrize("results", [lf("adaptive_eval")])\ndef test_late_gate(results):\n'
        '    assert results["words"].accuracy.at_least(0.2)\n',
    ),
}


@pytest.mark.parametrize("way", FOUND_LATE)
@pytest.mark.parametrize("switches", ["", "-n2", None], ids=["alone", "workers", "plain"])
def test_09_gates_that_take_the_fixture_late(tmp_path: Path, way: str, switches: str | None) -> None:
    plugins, tests = FOUND_LATE[way]
    need(*plugins)
    feature = "Feature: gates\n  Scenario: Words\n    Given the interviews\n    Then words are good enough\n"
    path = write_project(tmp_path, files={"test_late.py": tests, "gate.feature": feature})
    if switches is None:
        exit_code, output = run_pytest(path, plugins, (), active=False)
        assert exit_code == 0, output
        assert "error" not in output.lower(), output
        return
    seen = observe(path, plugins, switches.split())
    assert seen.exit_code == 0, seen.output
    assert [verdict[2] for verdict in seen.verdicts] == ["PASS"] * 5, seen.output


@pytest.mark.parametrize(("plugin", "switches"), [*RERUNS, ("pytest-run-parallel", "--parallel-threads=3")])
def test_10_void_interviews_and_gates_stand_once(tmp_path: Path, plugin: str, switches: str) -> None:
    need(plugin)
    seen = observe(write_project(tmp_path, "dead"), [plugin], switches.split())
    assert not seen.faults(), seen.output
    assert len(seen.cases) == len(set(seen.cases))
    assert not re.search(r"\[ *-\d+%\]", seen.output), seen.output


EDITOR_PROJECT = {
    "words.eval.toml": """[[eval]]
bank = "words.jsonl"
budget = 8
stop = "budget"

[[eval.gate]]
at_least = 0.3

[[eval.gate]]
at_least = 0.2
""",
    "sub/test_more.py": """import pytest


class TestMore:
    @pytest.mark.adaptive_eval("../sums.jsonl", name="more", budget=4, stop="budget")
    def test_more(self, item, model):
        assert item.grade(model.generate(item.prompt))

    @pytest.mark.adaptive_gate("more", at_least=0.1)
    def test_more_gate(self, adaptive_eval):
        assert adaptive_eval.verdicts
""",
}
#: Tests of that project by file, as node ids, with their lines.
EDITOR_TESTS = {
    "sub/test_more.py": {"::TestMore::test_more[aeval:sums]": 5, "::TestMore::test_more_gate": 9},
    "test_small.py": {"::test_sums[aeval:sums]": 5, "::test_sums_gate": 13, "::test_both_gate": 18},
    "words.eval.toml": {
        "::words[aeval:words]": 1,
        "::words-accuracy[at-least-0.3]": 6,
        "::words-accuracy[at-least-0.2]": 9,
    },
}


def run_editor(path: Path, model: str, *switches: str) -> tuple[int, str, Any]:
    """Run the project with a stand-in for an editor's plugin: exit code, output, and what the editor would show."""
    (path / "sub").mkdir(parents=True)
    write_project(path, model, files=EDITOR_PROJECT)
    shown = path / "shown.json"
    here = str(Path(__file__).parent)
    arguments = ["-p", "editor_runner", *switches]
    exit_code, output = run_pytest(path, (), arguments, PYTHONPATH=here, EDITOR_SHOWS=str(shown))
    return exit_code, output, json.loads(shown.read_text()) if shown.exists() else None


def test_11_an_editor_discovers_evaluations_and_gates_where_they_stand(tmp_path: Path) -> None:
    exit_code, output, shown = run_editor(tmp_path / "p", "sound", "--collect-only", "-q")
    assert exit_code == 0, output
    root = tmp_path / "p"
    found = {
        file: {test.removeprefix(str(root / file)): line for test, (_, line) in shown[str(root / file)].items()}
        for file in EDITOR_TESTS
    }
    assert found == EDITOR_TESTS
    assert len(shown) == len(EDITOR_TESTS)


def test_11_items_of_toml_files_are_no_parametrized_functions_in_any_run(tmp_path: Path) -> None:
    hook = """


def pytest_collection_finish(session):
    parametrized = [item.nodeid for item in session.items if hasattr(item, "callspec")]
    assert parametrized == ["test_small.py::test_sums[aeval:sums]"]
"""
    path = write_project(tmp_path, files={"conftest.py": CONFTEST.format(answer=MODELS["sound"]) + hook})
    assert observe(path).exit_code == 0


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize(("model", "exit_code"), [("sound", 0), ("wrong", 1), ("dead", 1)])
def test_11_an_editor_gets_the_outcome_of_each_test(tmp_path: Path, model: str, exit_code: int, workers: str) -> None:
    need("pytest-xdist")
    root = tmp_path / "p"
    code, output, shown = run_editor(root, model, workers)
    assert code == exit_code, output
    if workers == "-n2":  # reports of workers come without the path, which such an editor takes from the item
        return
    tests = {f"{root / file}{test}" for file, tests in EDITOR_TESTS.items() for test in tests}
    assert tests <= shown.keys(), output
    gates = {shown[test] for test in tests if "aeval:" not in test}
    assert gates == {"passed" if model == "sound" else "failed"}, output


@pytest.mark.parametrize("file", EDITOR_TESTS)
@pytest.mark.parametrize("number", [0, 1])
def test_11_an_editor_runs_one_test(tmp_path: Path, file: str, number: int) -> None:
    root = tmp_path / "p"
    test = f"{root / file}{list(EDITOR_TESTS[file])[number]}"
    code, output, shown = run_editor(root, "sound", f"--rootdir={root}", test)
    assert code == 0, output
    assert shown[test] == "passed", output
    others = [f"{root / other}" for other in EDITOR_TESTS if other != file]
    assert not [one for one in shown if one.startswith(tuple(others))], output


@pytest.mark.parametrize(
    "target", ["", "words.eval.toml::words-accuracy[at-least-0.3]", "test_small.py::test_sums_gate"]
)
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_11_teamcity_gets_each_test_once(tmp_path: Path, target: str, workers: str) -> None:
    """The runner of PyCharm and TeamCity (teamcity-messages) begins and ends each test, questions too."""
    need("teamcity-messages", "pytest-xdist")
    seen = observe(write_project(tmp_path), ["teamcity-messages"], filter(None, ["--teamcity", workers, target]))
    assert seen.exit_code == 0, seen.output
    started, finished = (
        Counter(re.findall(rf"##teamcity\[{message} .*?name='((?:[^'|]|\|.)*)'", seen.output))
        for message in ("testStarted", "testFinished")
    )
    assert started == finished
    assert set(started.values()) == {1}
    assert started.total() == len(seen.administrations) + len({gate for gate, *_ in seen.verdicts}) + len(
        {name for name, *_ in seen.administrations}
    )


@pytest.mark.parametrize(
    ("plugin", "switches"),
    [
        *(("pytest-split", f"--splits=3 --group={group}") for group in (1, 2, 3)),
        *(("pytest-shard", f"--num-shards=3 --shard-id={shard}") for shard in (0, 1, 2)),
    ],
)
def test_13_a_shard_promotes_nothing_by_itself(tmp_path: Path, plugin: str, switches: str) -> None:
    need(plugin)
    seen = observe(write_project(tmp_path), [plugin], switches.split())
    assert not seen.promote, seen.output
    assert seen.exit_code or seen.verdicts, seen.output
    assert "shard" in seen.output, seen.output


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize(
    ("plugin", "switch", "shown"),
    [
        ("pytest-sugar", "--force-sugar", r"(\d+)(%) *(?:\x1b\[[\d;]*m)*[█▉▊▋▌▍▎▏]"),
        ("pytest-progress", "--show-progress", r"(\d+) of (\d+) completed"),
    ],
    ids=["sugar", "progress"],
)
def test_14_progress_ends_at_the_total_and_never_above(
    tmp_path: Path, plugin: str, switch: str, shown: str, workers: str
) -> None:
    """The second interview ends before its budget is spent."""
    need(plugin, "pytest-xdist")
    early = '[[eval]]\nbank = "words.jsonl"\nbudget = 20\n\n[[eval.gate]]\nat_least = 0.1\n'
    tests = TESTS.partition('@pytest.mark.adaptive_gate("sums", at_least=0.2)')[0]
    path = write_project(tmp_path, files={"words.eval.toml": early, "test_small.py": tests})
    seen = observe(path, [plugin, "pytest-xdist"], [switch, workers])
    assert seen.exit_code == 0, seen.output
    assert len(seen.administrations) < 20 + 20, seen.output
    pairs = [(int(done), 100 if total == "%" else int(total)) for done, total in re.findall(shown, seen.output)]
    assert len(pairs) >= len(seen.administrations), seen.output
    assert all(done <= total for done, total in pairs), seen.output
    assert pairs[-1][0] == pairs[-1][1], seen.output


def test_14_teamcity_counts_each_question_when_it_begins(tmp_path: Path) -> None:
    need("teamcity-messages")
    seen = observe(write_project(tmp_path), ["teamcity-messages"], ["--teamcity"])
    counted = started = 0
    for message, count in re.findall(r"##teamcity\[(testCount|testStarted) (?:.*? count='(\d+)')?", seen.output):
        counted += int(count or 0)
        started += message == "testStarted"
        assert started <= counted, seen.output
    assert started == counted == len(seen.administrations) + 5, seen.output
