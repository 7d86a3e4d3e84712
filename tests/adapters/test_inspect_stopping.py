"""An unedited task of Inspect with our early stopping asks and judges as pytest does."""

import json

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.hosts.inspect import GateStopping

pytest.importorskip("inspect_ai")

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import exact
from inspect_ai.solver import solver

# streams that Inspect itself leaves open
pytestmark = [
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ITEMS = 120
TOML = '[[eval]]\nname = "sums"\nbank = "q.jsonl"\nseed = {seed}\nrepeat = 0\nbudget = "100%"\n[[eval.gate]]\n'
RUN = """
import pytest
from pytest_adaptive_eval.models.calling import CallableModel

@pytest.fixture(scope="session")
def model():
    return CallableModel(lambda prompt: {text}, "wrong")
"""


def rows():
    return [{"id": f"s{n}", "prompt": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(ITEMS)]


def answer(prompt, wrong):
    """Return the answer of a model that is wrong on every item of which the number is divisible by `wrong`."""
    number = int(prompt.split()[2])
    return "no" if number % wrong == 0 else str(number + 1)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INSPECT_DISPLAY", "none")

    def write(seed=0, at_least=0.6):
        (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
        (tmp_path / "adaptive-eval.toml").write_text(TOML.format(seed=seed) + f"at_least = {at_least}\n")
        return tmp_path / "adaptive-eval.toml"

    return write


def run_task(stopping, wrong, *, ids=True, **options):
    @solver
    def counting():
        async def solve(state, generate):
            state.output = ModelOutput.from_content("mock", answer(state.input_text, wrong))
            return state

        return solve

    samples = [Sample(id=row["id"] if ids else None, input=row["prompt"], target=row["answer"]) for row in rows()]
    task = Task(dataset=MemoryDataset(samples), solver=counting(), scorer=exact(), early_stopping=stopping)
    settings = {"max_samples": ITEMS, **options}
    (log,) = eval(task, model="mockllm/model", log_dir="logs", display="none", **settings)
    return log


@pytest.mark.parametrize(("seed", "at_least", "wrong"), [(0, 0.6, 10), (3, 0.6, 10), (1, 0.8, 2)])
def test_draws_and_verdicts_are_those_of_pytest(project, pytester, tmp_path, seed, at_least, wrong):
    path = project(seed, at_least)
    stopping = GateStopping(path)
    log = run_task(stopping, wrong)
    assert log.status == "success"
    read = read_eval_log(log.location)
    asked = {sample.id for sample in read.samples}
    assert read.results.early_stopping.metadata["asked"] == len(asked) < ITEMS
    assert len(read.results.early_stopping.early_stops) == ITEMS - len(asked)

    for name in ("q.jsonl", "adaptive-eval.toml"):
        (pytester.path / name).write_text((tmp_path / name).read_text())
    text = f"'no' if int(prompt.split()[2]) % {wrong} == 0 else str(int(prompt.split()[2]) + 1)"
    pytester.makeconftest(RUN.format(text=text))
    pytester.runpytest_subprocess("--adaptive-eval", "--adaptive-eval-record=record.json")
    record = json.loads((pytester.path / "record.json").read_text())
    interview = record["interviews"][0]
    assert [entry["item"] for entry in interview["administrations"]] == [
        stopping.evaluation.bank.ids[place] for place in stopping.session.log().items
    ]
    assert asked == {entry["item"] for entry in interview["administrations"]}
    (gate,) = record["gates"]
    assert [gate["verdict"]] == [verdict.to_json() for verdict in stopping.verdicts]


def test_a_task_in_which_samples_cannot_wait_fails_and_says_what_to_set(project):
    log = run_task(GateStopping(project()), 10, max_samples=4)
    assert log.status == "error"
    assert f"set max_samples={ITEMS}" in log.error.message
    log = run_task(GateStopping(project()), 10, fail_on_error=False)
    assert "fail_on_error is False" in log.error.message


def test_imported_task_whose_samples_have_no_ids_is_matched_by_row_and_text(project, tmp_path):
    path = project()
    lines = [{**row, "id": f"sums-{n}", "prompt": row["prompt"] + "\n\nBriefly.", "meta": {"row": n}}
             for n, row in enumerate(rows())]  # fmt: skip
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stopping = GateStopping(path)
    log = run_task(stopping, 10, ids=False)
    assert (log.status, stopping.verdicts[0].outcome.name) == ("success", "PASS")
    lines[0]["meta"], lines[1]["meta"] = lines[1]["meta"], lines[0]["meta"]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    log = run_task(GateStopping(path), 10, ids=False)
    assert "2 of 120 items have no sample, and 2 of 120 samples no item, such as '1'" in log.error.message


def test_evaluations_that_need_more_of_a_run_are_refused(project):
    path = project()
    path.write_text(path.read_text() + '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.1\n')
    with pytest.raises(ConfigError, match="compares with another run"):
        GateStopping(path)
    with pytest.raises(ConfigError, match="0 evaluations named 'none'"):
        GateStopping(path, "none")
    text = project().read_text()
    for gate, said in (
        ('metric = "seconds"\nwithin = 2\nat_least = 0.5', "is on seconds, and early stopping gets scores alone"),
        ('metric = "pass^2"\nat_least = 0.5', "each item is asked 1 time, expected samples of at least 2"),
    ):
        path.write_text(f"{text}[[eval.gate]]\n{gate}\n")
        with pytest.raises(ConfigError, match=said):
            GateStopping(path)
