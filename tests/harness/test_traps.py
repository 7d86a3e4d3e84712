"""What a harness does behind an exit status of 0: each case ends right, or with the sentence that names it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_harness import Fake, items

from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, ResponsesError
from pytest_adaptive_eval.extensions.harness.calls import Question
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import TIMED_OUT, Completion

#: A harness that writes logs of others, which `BODY` makes.
LOG = """
def log(name, data):
    file = output / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))

{body}
"""


def outcomes(completions: list[Completion]) -> list[tuple[float | None, str]]:
    return [(completion.score, completion.detail) for completion in completions]


def test_a_result_is_taken_with_what_the_log_states_of_it(fake: Fake) -> None:
    script = 'for n, item in enumerate(ids): write(item, score=n / 2, text="done", cost=0.25, steps=3, input_tokens=7)'
    model = fake.model(script)
    first, second = model.answer(items(["a", "b"]))
    assert (first.score, second.score, second.text) == (0.0, 0.5, "done")
    assert second.measures == {"cost": 0.25, "steps": 3.0, "input_tokens": 7.0}
    assert (model.usage.calls, model.usage.prompt_tokens) == (2, 14)
    assert fake.calls == [["a", "b"]]


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("print('no key'); sys.exit(0)", Status.ERROR, "no result of it (exit status 0; its last line: no key"),
        ("sys.exit(3)", Status.ERROR, "no result of it (exit status 3; it printed nothing"),
        ("write(ids[0], score=None, error='image not built')", Status.ERROR, "image not built"),
        ("time.sleep(30)", Status.TIMEOUT, "the call was ended after 0.4 s"),
        ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(30)", Status.ERROR, "exit status unknown"),
    ],
    ids=["silent", "failed", "named", "slow", "without-supervisor"],
)
def test_an_item_without_a_score_is_asked_twice_and_then_missing(
    fake: Fake, script: str, status: Status, words: str
) -> None:
    limit = 0.2 if status is Status.TIMEOUT else 0.0
    model = fake.model(script, item_timeout=limit, grace=0.2)
    (completion,) = model.answer(items(["a"]))
    assert (completion.score, completion.status) == (None, status)
    assert words in completion.detail
    assert len(list(model.calls.folder.glob("*/asked.json"))) == 2


def test_an_exit_status_that_is_not_0_means_nothing(fake: Fake) -> None:
    (completion,) = fake.model("write(ids[0], score=0.0); sys.exit(100)").answer(items(["a"]))
    assert completion.score == 0.0
    assert fake.calls == [["a"]]


def test_only_what_failed_is_asked_again(fake: Fake) -> None:
    script = """
for item in ids:
    if item == "b" and len((here / "calls.txt").read_text().splitlines()) == 1:
        write(item, score=None, error="API error")
    else:
        write(item)
"""
    assert [each.score for each in fake.model(script).answer(items(["a", "b", "c"]))] == [1.0, 1.0, 1.0]
    assert fake.calls == [["a", "b", "c"], ["b"]]


def test_an_item_that_ends_its_call_loses_no_item_behind_it(fake: Fake) -> None:
    """The harness dies at `b` and at `d`, after it has written what came before."""
    script = """
for item in ids:
    begin(item)
    if item in "bd": sys.exit("crashed at " + item)
    write(item)
"""
    model = fake.model(script)
    found = dict(zip("abcde", model.answer(items("abcde")), strict=True))
    assert [name for name, completion in found.items() if completion.status is Status.OK] == ["a", "c", "e"]
    assert "its last line: crashed at b" in found["b"].detail
    assert fake.calls == [list("abcde"), list("cdeb"), list("ebd"), list("d")]


def test_a_log_of_another_name_is_named(fake: Fake) -> None:
    model = fake.model("(output / 'results.json').write_text('[]')")
    (completion,) = model.answer(items("a"))
    assert (
        "exit status 0; it printed nothing; {output} has no *.jsonl, but results.json; all of it" in completion.detail
    )


def test_an_item_that_was_not_asked_ends_the_run_after_what_was_asked_is_kept(fake: Fake) -> None:
    model = fake.model("for item in [*ids, 'all-others']: write(item)")
    kept: dict[int, Completion] = {}
    arrived: dict[int, Completion] = {}

    def keep(index: int, completion: Completion) -> bool:
        kept[index] = completion
        return True

    model.begin([(item, 0) for item in items(["a", "b"])], arrived.__setitem__, keep)
    with pytest.raises(ConfigError, match="ran 'all-others', which was not asked for"):
        model.take_arrived(wait=True)
    assert ({*kept}, arrived) == ({0, 1}, {})


def test_results_are_taken_while_the_harness_runs_and_a_call_that_nobody_wants_ends(fake: Fake) -> None:
    model = fake.model("write(ids[0]); begin(ids[1]); time.sleep(30)", grace=0.2)
    arrived: dict[int, Completion] = {}
    cancel = model.begin([(item, 0) for item in items(["a", "b"])], arrived.__setitem__)
    while not arrived:
        model.take_arrived(wait=True)
    assert {*arrived} == {0}
    assert model.call_size(10) == 0
    cancel()
    while not model.call_size(10):
        model.take_arrived(wait=True)
    assert fake.calls == [["a", "b"]]


def test_samples_are_calls_of_their_own(fake: Fake) -> None:
    model = fake.model()
    arrived: dict[int, Completion] = {}
    (item,) = items(["a"])
    model.begin([(item, 0), (item, 1), (item, 2)], arrived.__setitem__)
    while len(arrived) < 3:
        model.take_arrived(wait=True)
    assert fake.calls == [["a"]] * 3


def test_half_a_line_is_no_result(fake: Fake) -> None:
    script = """
write("a")
if len(ids) > 1:
    with (output / "results.jsonl").open("a") as file:
        file.write('{"id": "b", "sco')
"""
    first, second = fake.model(script.replace('write("a")', 'if "a" in ids: write("a")')).answer(items(["a", "b"]))
    assert first.score == 1.0
    assert "no result" in second.detail


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "expected one JSON object"),
        ('{"score": 1.0}', "missing required field `id`"),
        ('{"id": "a"}', "score is None and error is None"),
        ('{"id": "a", "score": 1, "error": "x"}', "expected one JSON object"),
        ('{"id": "a", "score": 7}', "Expected `float` <= 1.0"),
    ],
)
def test_a_malformed_line_ends_the_run_with_its_place(fake: Fake, line: str, words: str) -> None:
    model = fake.model(LOG.format(body=f"log('results.jsonl', {line + chr(10)!r})"))
    with pytest.raises(ResponsesError, match=r"results\.jsonl, line 1: ") as raised:
        model.answer(items(["a"]))
    assert words in str(raised.value)


def trial(name: str, reward: float | None, exception: str = "") -> dict[str, Any]:
    return {
        "task_name": name,
        "trial_name": f"{name}__x",
        "agent_info": {"name": "my-agent", "model_info": {"name": "gpt"}},
        "agent_result": {"cost_usd": 0.5, "n_input_tokens": 100, "n_output_tokens": 10},
        "agent_execution": {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:30Z"},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": {"exception_type": exception, "exception_message": "why"} if exception else None,
        "finished_at": "2026-01-01T00:01:00Z",
    }


def with_log(fake: Fake, body: str, more: str = "") -> str:
    """Return a command that writes a log, whatever the row's placeholder for items is."""
    command = fake.write(LOG.format(body=body))
    return f"{command} {more}"


def test_harbor_counts_what_the_agent_did_and_not_what_its_environment_did(fake: Fake) -> None:
    trials = [
        trial("solved", 1.0),
        trial("wrong", 0.0),
        trial("timed-out", 0.0, "AgentTimeoutError"),
        trial("crashed", 0.0, "RuntimeError"),
        trial("no-reward", None, "RewardFileNotFoundError"),
        {**trial("runs", None), "finished_at": None},
    ]
    body = f"""
trials = {{each["task_name"]: each for each in json.loads({json.dumps(trials)!r})}}
for item in ids: log(f"job/{{item}}__x/result.json", trials[item])
log("job/result.json", {{"n_total_trials": 4}})
"""
    model = fake.model(name="harbor", command=with_log(fake, body, "{items}"))
    names = [each["task_name"] for each in trials]
    completions = model.answer(items(names))
    scores = dict(zip(names, (each.score for each in completions), strict=True))
    assert scores == {"solved": 1, "wrong": 0, "timed-out": 0, "crashed": None, "no-reward": None, "runs": None}
    assert "RuntimeError: why" in completions[3].detail
    assert completions[0].measures == {"cost": 0.5, "input_tokens": 100, "output_tokens": 10, "seconds": 30}
    assert completions[2].measures == {**completions[0].measures, TIMED_OUT: 1.0}  # above any bound of seconds


def test_swebench_lists_say_who_failed(fake: Fake) -> None:
    lists = {
        "total_instances": 500,
        "resolved_ids": ["a"],
        "unresolved_ids": ["b"],
        "empty_patch_ids": ["c"],
        "error_ids": ["d"],
        "infra_failure_ids": ["e"],
        "incomplete_ids": ["zzz"],
    }
    model = fake.model(
        name="swe-bench", command=with_log(fake, f"log('m.run.json', dict({lists}, submitted_ids=ids))", "-i {ids}")
    )
    scored = model.answer(items(["a", "b", "c", "d", "e"]))
    assert outcomes(scored) == [
        (1.0, ""),
        (0.0, ""),
        (0.0, ""),
        (None, "swebench lists it in error_ids"),
        (None, "swebench lists it in infra_failure_ids"),
    ]


def test_swebench_takes_cost_and_errors_of_the_server_from_trajectories(fake: Fake) -> None:
    lists = {"resolved_ids": ["a"], "unresolved_ids": [], "empty_patch_ids": ["b", "c"]}
    body = f"""
for item in "abc":
    info = {{"exit_status": "Submitted", "model_stats": {{"instance_cost": 0.5, "api_calls": 20}}}}
    if item == "c": info |= {{"exit_status": "APIError", "exception_str": "HTTP 529"}}
    log(f"patches/{{item}}/{{item}}.traj.json", {{"info": info}})
log("m.run.json", dict({lists}, submitted_ids=ids))
"""
    model = fake.model(name="swe-bench", command=with_log(fake, body, "{ids_file}"))
    right, empty, failed = model.answer(items(["a", "b", "c"]))
    assert outcomes([right, empty, failed]) == [(1.0, ""), (0.0, ""), (None, "HTTP 529")]
    assert right.measures == {"cost": 0.5, "steps": 20.0}
    assert model.usage.money == 2.0, "the failed one cost money twice"


def test_swebench_takes_all_ids_behind_one_option_since_it_reads_the_last_one_alone(fake: Fake) -> None:
    model = fake.model(name="swe-bench", command="python -m run -i {ids} {output}")
    assert model.command.filled(["a", "b"], {"output": "log"}) == ["python", "-m", "run", "-i", "a", "b", "log"]
    with pytest.raises(
        ConfigError, match=r"harness:swe-bench has no option for an item: write \{ids\} or \{ids_file\}"
    ):
        fake.model(name="swe-bench", command="python -m run {items} {output}")


def test_swebench_reports_of_instances_count_before_the_report_of_the_run(fake: Fake) -> None:
    body = "for item in ids: log(f'logs/run_evaluation/r/m/{item}/report.json', {item: {'resolved': item == 'a'}})"
    model = fake.model(name="swe-bench", command=with_log(fake, body, "-i {ids}"))
    assert [each.score for each in model.answer(items(["a", "b"]))] == [1.0, 0.0]


def sample(name: str, score: Any, error: str = "") -> dict[str, Any]:
    return {
        "id": name,
        "epoch": 1,
        "input": "q",
        "target": "t",
        "scores": {} if score is None else {"match": {"value": score}},
        "error": {"message": error} if error else None,
        "model_usage": {"m": {"input_tokens": 5, "output_tokens": 2}},
        "total_time": 1.5,
        "output": {"choices": [{"message": {"role": "assistant", "content": "said"}}]},
    }


def inspect_log(*samples: dict[str, Any], status: str = "success") -> dict[str, Any]:
    about = {"model": "mock", "task": "t", "created": "2026-01-01T00:00:00+00:00", "dataset": {}, "config": {}}
    return {"version": 2, "status": status, "eval": about, "samples": list(samples)}


def test_inspect_is_read_whatever_its_status(fake: Fake) -> None:
    log = inspect_log(sample("a", "C"), sample("b", "I"), sample("c", None, "the server broke"), status="error")
    body = f"""
asked = [item.removeprefix("t:") for item in ids]
data = {log}
data["samples"] = [sample for sample in data["samples"] if sample["id"] in asked]
log("t.json", data)
"""
    model = fake.model(name="inspect", command=with_log(fake, body, "{ids}"))
    for names in (["a", "b", "c"], ["t:a", "t:b", "t:c"]):  # a bank may have the task in its ids
        completions = model.answer(items(names))
        assert outcomes(completions) == [(1.0, ""), (0.0, ""), (None, "the server broke")]
        assert completions[0].measures == {"input_tokens": 5, "output_tokens": 2, "seconds": 1.5}


def test_inspect_gets_ids_as_texts_and_not_as_patterns(fake: Fake) -> None:
    names = ["a[1]", "b*", "c?"]
    log = inspect_log(*(sample(name, "C") for name in names))
    body = f"(here / 'given.txt').write_text(sys.argv[3]); log('t.json', {log})"
    model = fake.model(name="inspect", command=with_log(fake, body, "{ids}"))
    model.answer(items(names))
    assert fake.lines("given") == ["a[[]1],b[*],c[?]"]
    with pytest.raises(ConfigError, match="the id has ',', which separates ids"):
        model.prepare(items(["with,comma"]))


def test_promptfoo_gets_an_anchored_pattern_and_is_joined_by_description(fake: Fake) -> None:
    rows = [
        {"testIdx": 0, "testCase": {"description": "sum-1"}, "score": 1, "failureReason": 0, "latencyMs": 2000},
        {"testIdx": 1, "testCase": {"description": "a.b"}, "score": 0.5, "failureReason": 1},
        {"testIdx": 2, "testCase": {"description": "down"}, "score": 0, "failureReason": 2, "error": "HTTP 500"},
    ]
    body = f"""
(here / "given.txt").open("a").write(sys.argv[3] + chr(10))
wanted = [*ids, "a.b"] if ids == ["sum-1"] else ids
rows = [row for row in {rows} if row["testCase"]["description"] in wanted]
log("r.json", {{"results": {{"results": rows}}}})
"""
    model = fake.model(name="promptfoo", command=with_log(fake, body, "{regex}"))
    completions = model.answer(items(["sum-1", "a.b", "down"]))
    assert outcomes(completions) == [(1.0, ""), (0.5, ""), (None, "HTTP 500")]
    assert completions[0].measures["seconds"] == 2.0
    assert fake.lines("given") == [r"^(sum\-1|a\.b|down)$", "^(down)$"]
    with pytest.raises(ConfigError, match="which was not asked for"):
        model.answer(items(["sum-1"]))


@pytest.mark.parametrize("row", [{"testCase": {}}, {"testCase": {"description": "a"}, "score": 1}])
def test_promptfoo_needs_one_result_for_each_description(fake: Fake, row: dict[str, Any]) -> None:
    body = f"log('r.json', {{'results': {{'results': {[row, row]}}}}})"
    model = fake.model(name="promptfoo", command=with_log(fake, body, "{regex}"))
    with pytest.raises(ResponsesError, match=r"no description|a second result"):
        model.answer(items(["a"]))


def lm_eval(fake: Fake, monkeypatch: pytest.MonkeyPatch, body: str) -> Any:
    """Return a model of lm-eval whose task `sum` has documents 0 to 9 with the hashes h0 to h9."""
    module = fake.path / "lm_eval"
    (module).mkdir()
    (module / "__init__.py").write_text("")
    (module / "utils.py").write_text("import json\nhandle_non_serializable = str\nhash_string = json.loads\n")
    (module / "tasks.py").write_text(
        "class Task: eval_docs = [f'h{n}' for n in range(10)]\n"
        "class TaskManager:\n"
        "    def __init__(self, include_path=None): pass\n"
        "    def load(self, names): return {'tasks': {name: Task for name in names}}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(fake.path))
    command = with_log(fake, body, "--samples {samples} --tasks {tasks}")
    return fake.model(name="lm-eval", command=command)


SAMPLES = """
chosen = json.loads(Path(sys.argv[4]).read_text())
(here / "given.txt").write_text(json.dumps([chosen, sys.argv[6]]))
"""
LINES = """
for task, numbers in chosen.items():
    lines = [dict(doc_id=9 - n, doc_hash=f"h{n}", filter="none", metrics=["acc"], acc=n % 2,
        filtered_resps=[f"reply {n}"]) for n in numbers]
    log(f"model/samples_{task}_2026-01-01T00-00-00.jsonl", "".join(json.dumps(line) + chr(10) for line in lines))
"""


def test_lm_eval_gets_sorted_numbers_and_is_joined_by_hash(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    model = lm_eval(fake, monkeypatch, SAMPLES + LINES)
    completions = model.answer(items(["sum:h7", "sum:h2", "more:h3"]))
    assert [(each.score, each.text) for each in completions] == [(1.0, "reply 7"), (0.0, "reply 2"), (1.0, "reply 3")]
    assert json.loads(fake.lines("given")[0]) == [{"sum": [2, 7], "more": [3]}, "more,sum"]


def test_lm_eval_that_runs_everything_ends_the_run(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    model = lm_eval(fake, monkeypatch, SAMPLES + "chosen['sum'] = range(10)\n" + LINES)
    with pytest.raises(ConfigError, match="which was not asked for"):
        model.answer(items(["sum:h7"]))


def test_lm_eval_needs_the_placeholders_that_restrict_it(fake: Fake) -> None:
    for command in ("--samples {samples} --tasks mysum", "--tasks {tasks} {ids}"):
        with pytest.raises(ConfigError, match=r"needs \{samples\} and \{tasks\}: a task that --samples does not name"):
            fake.model(name="lm-eval", command=f"python {{output}} {command}")


@pytest.mark.parametrize("name", ["h7", "sum:", ":h7"])
def test_lm_eval_refuses_ids_without_task_or_hash(fake: Fake, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = lm_eval(fake, monkeypatch, SAMPLES + LINES)
    with pytest.raises(ConfigError, match="expected an id TASK:HASH"):
        model.prepare(items([name]))
    with pytest.raises(ConfigError, match="has no document of this hash"):
        model.answer(items(["sum:h99"]))


def test_graders_count_only_where_the_user_says_so(fake: Fake) -> None:
    script = 'for item in ids: write(item, score=0.0, text="4")'
    item = Item("a", "2 + 2?", "4")
    for grade, score in ((False, 0.0), (True, 1.0)):
        (completion,) = fake.model(script, grade=grade).answer([item])
        assert completion.response(item).score == score


def test_results_of_a_killed_run_are_taken_by_the_interview_that_asked(fake: Fake) -> None:
    model = fake.model()
    answered = []
    model.begin([(item, 0) for item in items(["a", "b"])], lambda n, _: answered.append(n), None, ["one"] * 2)
    while len(answered) < 2:
        model.take_arrived(wait=True)
    assert fake.begun == ["a", "b"]
    again = fake.model()
    arrived: dict[int, Completion] = {}
    again.begin([(item, 0) for item in items(["a", "b"])], arrived.__setitem__, lambda *_: True, ["one", "two"])
    while len(arrived) < 2:
        again.take_arrived(wait=True)
    assert fake.begun == ["a", "b", "b"], "another interview asks for itself"
    again.forget("one")
    third = fake.model()
    third.begin([(item, 0) for item in items(["b"])], lambda n, _: answered.append(n), None, ["one"])
    while len(answered) < 3:
        third.take_arrived(wait=True)
    assert fake.begun == ["a", "b", "b", "b"], "a forgotten result is not used"


def test_calls_wait_for_each_other(fake: Fake) -> None:
    script = """
mark = here / "running"
if mark.exists(): (here / "overlap.txt").write_text("x")
mark.touch()
time.sleep(0.2)
for item in ids: write(item)
mark.unlink()
"""
    models = [fake.model(script), fake.model(script)]
    arrived: list[int] = []
    for model in models:
        model.begin([(item, 0) for item in items(["a"])], lambda index, _: arrived.append(index))
    for model in models:
        model.take_arrived(wait=True)
    assert arrived == [0, 0]
    assert not fake.lines("overlap")


def test_the_list_of_asked_items_is_there_before_the_call(fake: Fake) -> None:
    script = "(here / 'seen.txt').write_text((output.parent / 'asked.json').read_text()); write(ids[0])"
    model = fake.model(script)
    model.begin([(Item("a"), 2)], lambda *_: None, None, ["gate 12ab"])
    model.take_arrived(wait=True)
    assert json.loads("".join(fake.lines("seen"))) == [Question("gate 12ab", "a", 2)._asdict()]


def test_a_bare_prompt_has_no_id(fake: Fake) -> None:
    with pytest.raises(ConfigError, match="a bare prompt has none"):
        fake.model().generate("2 + 2?")


def test_an_error_of_the_call_reaches_the_run(fake: Fake) -> None:
    model = fake.model()
    model.calls.folder.parent.mkdir(parents=True)
    model.calls.folder.write_text("in the way")
    with pytest.raises((AdaptiveEvalError, OSError)):
        model.answer(items(["a"]))
