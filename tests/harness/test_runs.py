"""Runs of pytest whose model is a harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from fake_harness import Fake

from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.markdown import summary_markdown

EVALUATION = """
[[eval]]
name = "{name}"
bank = "agent.jsonl"
model = "harness:command"
{more}

[eval.model_options]
command = {command}
{options}

[[eval.gate]]
at_least = 0.5
"""
#: Right on three of four.
RIGHT = "for item in ids: begin(item); write(item, score=float(int(item[1:]) % 4 > 0), cost=0.5)"


#: The rest of a harness with the results of promptfoo: it is right on everything.
VERSIONED = """
exec python3 - "$@" <<'END'
import json, re, sys
rows = [{"testCase": {"description": f"t{n}"}, "score": 1} for n in range(60) if re.match(sys.argv[1], f"t{n}")]
open(sys.argv[2] + "/r.json", "w").write(json.dumps({"results": {"results": rows}}))
END
"""


class Project(Fake):
    """A project with a bank of ids and a fake harness."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester.path)
        self._pytester = pytester
        lines = [json.dumps({"id": f"t{n}"}) + "\n" for n in range(60)]
        (self.path / "agent.jsonl").write_text("".join(lines))

    def evaluate(
        self, script: str = RIGHT, *, names: tuple[str, ...] = ("agent",), more: str = "", **options: Any
    ) -> None:
        command = json.dumps(self.write(script))
        written = "\n".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
        text = [EVALUATION.format(name=name, command=command, more=more, options=written) for name in names]
        (self.path / "adaptive-eval.toml").write_text(textwrap.dedent("".join(text)))

    def run(self, *flags: str) -> pytest.RunResult:
        plugins = ["-p", "adaptive_eval", "-p", "no:logging", "-p", "no:cacheprovider"]
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            return self._pytester.runpytest_inprocess(*plugins, "--adaptive-eval", *flags)

    @property
    def record(self) -> dict[str, Any]:
        newest = sorted(self.path.glob(".adaptive-eval/runs/*.json"))[-1]
        found: dict[str, Any] = json.loads(newest.read_text())
        return found

    @property
    def interview(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record["interviews"][0]
        return found


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def test_a_gate_asks_a_harness_for_a_part_of_a_bank_of_ids(project: Project) -> None:
    project.evaluate(parallel=4)
    result = project.run()
    assert result.ret == 0
    interview = project.interview
    result.stdout.fnmatch_lines(["cost: * calls, * s, $* of about $30 for the whole bank"])
    scores = {row["item"]: row["score"] for row in interview["administrations"] if row["status"] == "ok"}
    assert scores == {item: float(int(item[1:]) % 4 > 0) for item in scores}
    cost = interview["costs"]["prices"]["subject"]
    assert (cost["currency"], cost["whole"]) == ("USD", 30.0)
    # what the harness had begun when the verdict ended its call may have no result
    assert len(scores) / 2 <= cost["money"] <= len(project.begun) / 2
    assert len(project.calls[0]) == 8
    assert len(project.begun) == len(set(project.begun)) < 60
    assert interview["call_sizes"]
    assert interview["subject"]["decoding"]["command"][0].startswith("python")


def test_reports_have_what_items_took_and_what_the_whole_bank_would(project: Project) -> None:
    script = """
for item in ids:
    failed = {"score": None, "error": "no container"} if item == "t7" else {"score": 1.0}
    write(item, cost=0.5, steps=6, seconds=2, input_tokens=10, **failed)
"""
    project.evaluate(script, more='stop = "budget"\nbudget = 60\nsamples = 2')
    project.run("--adaptive-eval-junit=gates.xml", "--adaptive-eval-html=page.html")
    asked = 2 * 60 + 2  # a second try of both samples of an item
    whole = f"${asked / 2:g} of about $60 for the whole bank"
    spent = f"{whole}, 2.0 s and 6 steps per item"
    report = (project.path / "gates.xml").read_text()
    assert spent in report
    assert f'name="cost" value="{asked / 2:g}"' in report
    assert 'name="cost_of_whole_bank" value="60"' in report
    summary = summary_markdown(RunRecord.from_json(project.record)).replace("<span>$</span>", "$")
    assert spent in summary
    page = (project.path / "page.html").read_text()
    assert whole in page
    assert "On average 2.0 s and 6 steps per item." in page
    facts = page.partition('<p class="f">')[2].partition("<")[0]
    assert {"2.0 s", "$0.50", "10 tokens read", "6 steps"} < {*facts.split(" · ")}


FEW = 'stop = "budget"\nbudget = 6'


def test_a_run_that_has_ended_leaves_nothing_to_the_next_one(project: Project) -> None:
    project.evaluate(more=FEW)
    for begun in (6, 12):
        project.run()
        assert len(project.begun) == begun


def test_runs_share_answers_where_a_revision_names_the_checkpoint(project: Project) -> None:
    for revision, begun in (("", 6), ("", 12), ("v1", 18), ("v1", 18), ("v2", 24)):
        project.evaluate(more=FEW, revision=revision)
        project.run("--adaptive-eval-reuse")
        assert len(project.begun) == begun
        for journal in project.path.glob(".adaptive-eval/journal/*"):
            journal.unlink()  # so that the answers are those of another interview
        assert all(row["score"] is not None for row in project.interview["administrations"])


def test_evaluations_of_one_harness_do_not_mix_their_results(project: Project) -> None:
    project.evaluate(names=("one", "two"), more=FEW)
    project.run()
    for interview in project.record["interviews"]:
        rows = interview["administrations"]
        assert [row["score"] for row in rows] == [float(int(row["item"][1:]) % 4 > 0) for row in rows]
    assert len(project.begun) == 12


def test_a_harness_that_runs_what_was_not_asked_ends_the_run(project: Project) -> None:
    project.evaluate("for item in [*ids, 'zzz']: write(item)")
    result = project.run()
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*ran 'zzz', which was not asked for*"])


@pytest.mark.parametrize(("failing", "outcome"), [(3, "PASS"), (4, "ERROR")])
def test_three_missing_scores_do_not_end_a_run_and_four_do(project: Project, failing: int, outcome: str) -> None:
    script = f"""
for item in ids:
    if int(item[1:]) % 15 == 1 and int(item[1:]) < 15 * {failing}: write(item, score=None, error="no container")
    else: write(item)
"""
    project.evaluate(script, more='stop = "budget"\nbudget = 60')
    result = project.run()
    assert [gate["verdict"]["outcome"] for gate in project.record["gates"]] == [outcome]
    missing = [row for row in project.interview["administrations"] if row["status"] == "error"]
    assert {row["detail"] for row in missing} == {"no container"}
    assert len(missing) == failing
    assert result.ret == (outcome == "ERROR")  # a verdict that holds without them is the run's
    if outcome == "ERROR":
        result.stdout.fnmatch_lines(["*4 of the answers failed, more than 3; the last: no container*"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": "no-such-program {ids_file} {output}"}, "no such program is installed"),
        ({"command": "python rnu.py {ids_file} {output}"}, "runs 'rnu.py', and there is no such file in "),
        ({"command": "python x.py {output}"}, "does not say which items to run"),
        ({"command": "python x.py {ids_file}"}, "has no {output}"),
        ({"command": "python x.py {ids} {otput}"}, "has {otput}, which is not known; did you mean 'output'?"),
        ({"command": "python x.py {samples} {output}"}, "has {samples}, which is for lm-eval"),
        ({"command": "python x.py --only={items} {output}"}, "harness:command has no option for an item: write {ids}"),
        ({"command": "python x.py {ids} {output} -m {checkpoint}"}, "has {checkpoint}, and none is given"),
        ({"command": "python 'x.py {ids} {output}"}, "cannot be split into words"),
        ({"paralel": 3}, "has no option paralel"),
        ({"parallel": 0}, "parallel is 0"),
        ({"env": {"A": "$NO_SUCH_VARIABLE"}}, "takes the variable 'NO_SUCH_VARIABLE', which is not set"),
    ],
)
def test_a_mistake_in_the_command_is_refused_at_collection(
    project: Project, options: dict[str, Any], words: str
) -> None:
    text = EVALUATION.format(name="agent", command='"python -m x {ids} {output}"', more="", options="")
    for name, value in options.items():
        if name == "command":
            text = text.replace('"python -m x {ids} {output}"', json.dumps(value))
        elif isinstance(value, dict):
            (entry,) = value.items()
            text = text.replace("[[eval.gate]]", f'{name} = {{ {entry[0]} = "{entry[1]}" }}\n[[eval.gate]]')
        else:
            text = text.replace("[[eval.gate]]", f"{name} = {value}\n[[eval.gate]]")
    (project.path / "adaptive-eval.toml").write_text(text)
    result = project.run()
    assert result.ret == 4
    assert words in " ".join(result.stderr.str().split())


def test_an_id_that_the_harness_cannot_be_given_is_refused_at_collection(project: Project) -> None:
    (project.path / "agent.jsonl").write_text('{"id": "t1"}\n{"id": "with,comma"}\n')
    project.evaluate()
    file = project.path / "adaptive-eval.toml"
    file.write_text(file.read_text().replace("harness:command", "harness:inspect"))
    result = project.run("--collect-only")
    assert result.ret == 4
    told = " ".join(result.stderr.str().split())
    assert "adaptive-eval.toml:2" in told
    assert "item 'with,comma': the id has ',', which separates ids" in told


def test_a_bank_of_ids_needs_a_model_that_knows_them(project: Project) -> None:
    project.evaluate()
    result = project.run("--adaptive-eval-model=http://127.0.0.1:9/v1#model")
    assert result.ret == 4
    assert "has items without texts" in " ".join(result.stderr.str().split())
    (project.path / "answers.jsonl").write_text("".join(f'{{"id": "t{n}", "score": 1.0}}\n' for n in range(60)))
    assert project.run("--adaptive-eval-model=replay:answers.jsonl").ret == 0


def test_the_command_line_names_the_checkpoint_of_a_harness(project: Project) -> None:
    script = "(here / 'model.txt').write_text(sys.argv[3])\nfor item in ids: write(item)"
    project.evaluate(script, more=FEW)
    file = project.path / "adaptive-eval.toml"
    file.write_text(file.read_text().replace("{output}", "{output} {checkpoint}"))
    project.run("--adaptive-eval-model=harness:command#org/model-7")
    assert project.lines("model") == ["org/model-7"]
    assert project.interview["subject"]["name"] == "org/model-7"


def test_keys_of_other_models_do_not_reach_the_harness(
    project: Project, monkeypatch: pytest.MonkeyPatch, fake: Fake
) -> None:
    from pytest_adaptive_eval.models.endpoint.settings import key_from_environment

    monkeypatch.setenv("JUDGE_KEY", "sk-a-long-secret-of-the-judge")
    monkeypatch.setenv("AGENT_KEY", "sk-the-agent-may-have-this-one")
    monkeypatch.setenv("PLAIN", "value")
    monkeypatch.setenv("PLACE", f"/srv/{os.environ['JUDGE_KEY']}/bin")  # a short key may be a part of other values
    for name in ("JUDGE_KEY", "AGENT_KEY"):
        key_from_environment(name)
    model = fake.model(env={"AGENT_KEY": "$AGENT_KEY", "MODE": "fast"})
    environment = model.command.environment()
    assert "JUDGE_KEY" not in environment
    assert environment["AGENT_KEY"] == os.environ["AGENT_KEY"]
    assert (environment["PLAIN"], environment["MODE"]) == ("value", "fast")
    assert "PLACE" in environment
    assert model.identity.decoding["env"] == {"AGENT_KEY": "", "MODE": "fast"}
    assert "secret" not in json.dumps(model.identity.to_json())


def test_an_edited_script_or_settings_file_is_another_subject(fake: Fake) -> None:
    settings = fake.path / "settings.json"
    command = f"{fake.write()} --config={settings}"
    seen = []
    for script, content in (("", "1"), ("", "1"), ("print(1)", "1"), ("print(1)", "2")):
        fake.write(script)
        settings.write_text(content)
        seen.append(fake.model(command=command).identity)
    assert [seen.index(each) for each in seen] == [0, 0, 2, 3]
    assert len({each.decoding_hash for each in seen}) == 1, "a baseline of the script before it is still comparable"


def test_identity_has_no_paths_and_follows_command_and_checkpoint(fake: Fake) -> None:
    (fake.path / "elsewhere").mkdir()
    one = fake.model()
    other = Fake(fake.path / "elsewhere").model()
    assert one.identity.decoding == other.identity.decoding
    assert one.identity.checkpoint == other.identity.checkpoint
    command = fake.write() + " -m {checkpoint}"
    identities = {
        (model.identity.checkpoint, model.identity.decoding_hash)
        for model in (
            one,
            fake.model(command=command, checkpoint="a/b"),
            fake.model(command=command, checkpoint="c/b"),
            fake.model(command=command, checkpoint="a/b", revision="2"),
            fake.model(command=command + " --fast", checkpoint="a/b"),
            fake.model(env={"A": "1"}),
        )
    }
    assert len(identities) == 6
    assert fake.model(parallel=9).identity.decoding == one.identity.decoding


def test_another_version_beside_a_baseline_is_named_and_its_results_are_not_reused(project: Project) -> None:
    (project.path / "installed.txt").write_text("1.0")
    program = project.path / "promptfoo"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && exec cat {project.path}/installed.txt\n" + VERSIONED)
    program.chmod(0o755)
    gates = "[[eval.gate]]\nnot_worse_than = 'runs/first.json'\nmargin = 0.5"
    project.evaluate(more=FEW)
    file = project.path / "adaptive-eval.toml"
    text = file.read_text().replace("harness:command", "harness:promptfoo")
    command = json.dumps(f"{program} {{regex}} {{output}}")
    text = "\n".join(f"command = {command}" if line.startswith("command") else line for line in text.splitlines())
    file.write_text(text)
    project.run()
    (project.path / "runs").mkdir()
    newest = max(project.path.glob(".adaptive-eval/runs/*.json"))
    newest.rename(project.path / "runs/first.json")
    (project.path / "installed.txt").write_text("2.0")
    file.write_text(text.replace("[[eval.gate]]\nat_least = 0.5", gates))
    project.run()
    assert "had version 1.0, and now has 2.0" in json.dumps(project.record["gates"])


@pytest.mark.slow
def test_workers_of_xdist_wait_for_each_other(project: Project) -> None:
    pytest.importorskip("xdist")
    script = """
mark = here / "running"
if mark.exists(): (here / "overlap.txt").write_text("x")
mark.touch()
for item in ids: begin(item); write(item, score=float(int(item[1:]) % 4 > 0))
mark.unlink()
"""
    project.evaluate(script, names=("one", "two"), more=FEW)
    words = [sys.executable, "-m", "pytest", "--adaptive-eval", "-q", "-p", "no:cacheprovider", "-n2"]
    subprocess.run(words, cwd=project.path, check=False, timeout=120)
    assert len(project.begun) == 12
    assert not project.lines("overlap")
    assert [interview["name"] for interview in project.record["interviews"]] == ["one", "two"]
