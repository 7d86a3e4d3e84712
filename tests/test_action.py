"""The action and the workflows: their steps, run one after another as a runner would, and what they must not do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_adaptive_eval.cli.verbs.init import WORKFLOW, files_of
from tests.reports.runner import Command, commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / "action.yml"
PROMOTE = ROOT / "examples" / "promotion" / ".github" / "workflows" / "promote.yml"
WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), PROMOTE]
ITEMS = 300
TOML = """
[[eval]]
bank = "toy.jsonl"
budget = 200

[[eval.gate]]
at_least = 0.4

[[eval.gate]]
not_worse_than = "baseline"
margin = 0.1
"""


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def expand(text: str, context: dict[str, str]) -> str:
    """The value of a text with ``${{ }}`` in it, for the few things that the action says there."""

    def value(match: re.Match[str]) -> str:
        words = re.findall(r"'[^']*'|[\w.-]+(?:\(\))?|\|\||&&|==|!=|!|[()]", match[1])
        python = {"||": "or", "&&": "and", "!": "not", "always()": "True", "cancelled()": "False"}
        out = [python.get(word) or (word if word[0] in "'()=!" else f"context.get({word!r}, '')") for word in words]
        found = eval(" ".join(out), {"context": context})  # of this repository's own files
        return str(found).lower() if isinstance(found, bool) else str(found)

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


@dataclass
class Job:
    """What came of an action's steps."""

    failed: bool = False
    status: int = 0
    log: str = ""
    logs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    uploads: list[dict[str, str]] = field(default_factory=list)

    @property
    def commands(self) -> list[Command]:
        return commands(self.log)


def read_outputs(path: Path) -> dict[str, str]:
    """Lines of key=value, as the runner reads them."""
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if line)


class Runner:
    """A machine with a checkout, that runs steps in bash."""

    def __init__(self, home: Path) -> None:
        self.workspace, self.temp, self.files = home / "checkout", home / "temp", home / "files"
        for folder in (self.workspace, self.temp, self.files):
            folder.mkdir()

    def script(self, text: str, env: dict[str, str], folder: str = ".") -> subprocess.CompletedProcess[str]:
        """One step, as ``shell: bash`` runs it."""
        script = self.files / "script.sh"
        script.write_text(text)
        base = {"PATH": os.environ["PATH"], "HOME": str(self.files), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
        runner = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "owner/models",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
            **{f"GITHUB_{name}": str(self.files / name.lower()) for name in ("OUTPUT", "STEP_SUMMARY", "ENV", "PATH")},
        }
        for name in ("output", "step_summary", "env", "path"):
            (self.files / name).write_text("")
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.workspace / folder,
            env={**base, **runner, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def python(self, name: str, before: str) -> str:
        """A command that runs Python, but for what a line of bash does first."""
        fake = self.files / name
        fake.write_text(f'#!/usr/bin/env bash\n{before}\nexec {sys.executable} "$@"\n')
        fake.chmod(0o755)
        return str(fake)

    def action(self, **inputs: str) -> Job:
        """The action with these inputs, an underscore standing for a hyphen."""
        action, job = load(ACTION), Job()
        given = {"python": sys.executable, "html": "false"} | {k.replace("_", "-"): v for k, v in inputs.items()}
        assert set(given) <= set(action["inputs"])
        context = {f"inputs.{name}": given.get(name, one["default"]) for name, one in action["inputs"].items()}
        for step in action["runs"]["steps"]:
            condition = step.get("if", "${{ true }}")
            if job.failed and "always()" not in condition and "cancelled()" not in condition:
                continue
            if "if" in step and expand(condition, context) in ("", "false"):
                continue
            if "uses" in step:
                job.uploads.append({name: expand(value, context) for name, value in step["with"].items()})
                continue
            env = {name: expand(value, context) for name, value in step["env"].items()}
            done = self.script(step["run"], env, expand(step.get("working-directory", "."), context))
            assert commands(done.stderr) == [], "the runner reads it at any time, whatever stands on standard output"
            job.log += done.stdout
            job.logs[step["name"]] = done.stdout
            job.summary += (self.files / "step_summary").read_text()
            assert (self.files / "env").read_text() == (self.files / "path").read_text() == ""
            for name, value in read_outputs(self.files / "output").items():
                context[f"steps.{step.get('id')}.outputs.{name}"] = value
            if done.returncode:
                job.failed, job.status = True, done.returncode
        job.outputs = {name: expand(one["value"], context) for name, one in action["outputs"].items()}
        return job


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A checkout with a bank, recorded answers of checkpoints, and a gate of each kind."""
    made = Runner(tmp_path)
    rows = [{"id": f"q{i}", "prompt": f"question {i}", "answer": "yes"} for i in range(ITEMS)]
    write(made.workspace / "toy.jsonl", rows)
    for name, tenths in (("early", 7), ("good", 9), ("regressed", 5)):
        text = [("yes" if (7 * i + 3) % 10 < tenths else f"::set-output name=promote::{name}") for i in range(ITEMS)]
        write(made.workspace / f"{name}.jsonl", [{"id": f"q{i}", "text": text[i]} for i in range(ITEMS)])
    (made.workspace / "adaptive-eval.toml").write_text(TOML)
    (made.workspace / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p no:hypothesispytest\n")
    return made


def write(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def told(job: Job) -> list[tuple[str, str]]:
    """Kind and title of the annotations."""
    return [(c.name, c.properties["title"]) for c in job.commands if c.name in ("error", "warning", "notice")]


def test_from_the_first_run_to_a_regression(runner: Runner) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    record = runner.temp / "baseline" / "record.json"
    inputs = {"baseline": str(record), "missing_baseline": "record", "artifact": "reports", "html": "true"}
    first = runner.action(model="replay:early.jsonl", **inputs)
    assert not first.failed, first.log
    assert (first.outputs["promote"], first.outputs["verdict"]) == ("false", "INCONCLUSIVE")
    assert told(first) == [
        ("warning", "INCONCLUSIVE toy-accuracy[not-worse-than-0.1-baseline]"),
        ("notice", "PASS toy-accuracy[at-least-0.4]"),
    ]
    annotation = next(c for c in first.commands if c.name == "warning")
    assert (annotation.properties["file"], annotation.properties["line"]) == ("adaptive-eval.toml", "9")
    assert first.summary.startswith("## ⛔ Not to be promoted\n\n1 gate had nothing to compare with yet.\n"), (
        first.summary
    )
    reports = Path(first.outputs["record"]).parent
    assert first.uploads == [{"name": "reports", "path": str(reports), "if-no-files-found": "ignore"}]
    assert sorted(path.name for path in reports.iterdir()) == ["gates.xml", "record.json", "report.html"]
    assert first.outputs["report"] == str(reports / "report.html")

    assert record.read_text() == Path(first.outputs["record"]).read_text()
    second = runner.action(model="replay:good.jsonl", baseline=str(record))
    assert not second.failed, second.log
    assert (second.outputs["promote"], second.outputs["verdict"], second.outputs["report"]) == ("true", "PASS", "")
    assert second.uploads == []
    assert [kind for kind, _ in told(second)] == ["notice", "notice"]
    assert second.summary.startswith("## ✅ May be promoted\n\n2 of 2 gates passed.\n")
    row = "| ✅ PASS | toy-accuracy\\[not-worse-than-0.1-baseline\\] | **16 points above the baseline, between "
    assert row in second.summary
    assert "| good | toy | - | " in second.summary

    third = runner.action(model="replay:regressed.jsonl", baseline=str(record), artifact="reports")
    assert (third.failed, third.status) == (True, 1)
    assert (third.outputs["promote"], third.outputs["verdict"]) == ("false", "FAIL")
    assert told(third)[0] == ("error", "FAIL toy-accuracy[not-worse-than-0.1-baseline]")
    assert len(third.uploads) == 1
    verdict = third.logs["Verdict"]
    assert "\nFAIL  toy-accuracy[not-worse-than-0.1-baseline]: accuracy less that" in verdict, "the red step says why"
    assert "\n      16 points below the baseline, between 11 and 25; 10 are allowed\n" in verdict
    assert [command.name for command in commands(verdict)] == ["stop-commands", commands(verdict)[0].data]
    assert "\n1 gate failed; the run ended with exit status 1.\n" in third.summary
    assert "```text\n::set-output name=promote::regressed\n```" in third.summary, "answers are quoted, in a fence"


def test_a_drop_at_the_fifth_night_is_seen_wherever_people_look(runner: Runner) -> None:
    (runner.workspace / "adaptive-eval.toml").write_text(
        '[[eval]]\nbank = "toy.jsonl"\nbudget = 60\nstop = "budget"\n[[eval.gate]]\nat_least = 0.2\n'
    )
    nights = []
    for model in ["good"] * 4 + ["regressed"] * 4:
        nights.append(runner.action(model=f"replay:{model}.jsonl", folder="nightly", drift="fail"))
    assert [night.outputs["drift"] for night in nights] == ["unknown", *["none"] * 3, *["alarm"] * 4]
    assert [night.status for night in nights] == [0] * 4 + [1] * 4
    assert ("notice", "drift") in told(nights[0])
    fell = nights[4]
    assert fell.outputs["promote"] == "false"
    assert ("warning", "promotion") in told(fell)
    assert "FAILED adaptive-eval.toml::toy-drift - accuracy of toy fell from" in fell.logs["Interview and judge"]
    assert "1 level fell below that of earlier runs" in fell.summary
    assert "### Since the last run\n\n- toy: accuracy " in fell.summary
    junit = (Path(fell.outputs["record"]).parent / "gates.xml").read_text()
    assert '<testcase name="drift"' in junit
    assert 'failure type="drift" message="accuracy of toy fell from' in junit
    assert len(list((runner.workspace / "nightly" / "runs").glob("*.json"))) == 8


#: A service that keeps what it is sent, and has a comment of an earlier run once it was asked to write one.
COMMENTS = """#!/usr/bin/env bash
here=$(dirname "$0")
echo "$*" >> "$here/calls.txt"
for word in "$@"; do if [[ $word == body=@* ]]; then cp "${word#body=@}" "$here/body.md"; fi; done
if [[ $* == *--paginate* && -f $here/body.md ]]; then echo 17; fi
"""


def test_a_pull_request_has_one_comment(
    runner: Runner, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = tmp_path_factory.mktemp("service")
    (service / "gh").write_text(COMMENTS)
    (service / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{service}:{os.environ['PATH']}")
    for _ in range(2):
        assert not runner.action(model="replay:good.jsonl", comment="3", token="t").failed
    sent = [line.split(" --field")[0] for line in (service / "calls.txt").read_text().splitlines()]
    assert sent[1::2] == [
        "api repos/owner/models/issues/3/comments",
        "api --method PATCH repos/owner/models/issues/comments/17",
    ]
    body = (service / "body.md").read_text()
    assert body.startswith("<!-- adaptive-eval -->\n## ")
    assert "[The whole report](https://github.com/owner/models/actions/runs/)" in body
    assert len(body) < 65_536
    failed = runner.action(model="replay:good.jsonl", comment="3; rm", token="t")
    assert not failed.failed
    assert ("warning", "adaptive evaluation") in told(failed)


LOUD = """
import os, sys

def pytest_configure(config):
    for text in ("::error::loud", "::set-output name=promote::true", "##[warning]loud", "::stop-commands::", "::::"):
        print(text)
        print(text, file=sys.stderr)
        os.write(1, text.encode() + b"\\n")
        os.write(2, text.encode() + b"\\n")
    told = [name for name in os.environ if name.startswith("GITHUB_") and os.path.isfile(os.environ[name])]
    print("files of the runner:", told)
    if os.environ.get("ARGUMENTS") == "--collect-only":
        os.write(1, b"no end of the line")
        os._exit(0)
"""


def test_nothing_that_the_run_says_is_a_command(runner: Runner) -> None:
    (runner.workspace / "conftest.py").write_text(LOUD)
    no_page = runner.python(
        "no page",
        """
        if [[ $1 == -P ]]; then echo "##[error]y" >&2; fi
        if [[ " $*" == *" --html="* ]]; then echo ::error::x; exit 4; fi
        """,
    )
    job = runner.action(model="replay:good.jsonl", arguments="-s -v", html="true", python=no_page)
    assert not job.failed, job.log
    log = job.logs["Interview and judge"]
    assert "::error::loud\n" in log
    assert "files of the runner: []\n" in log
    stop, end = commands(log)
    assert stop.name == "stop-commands"
    assert end.name == stop.data
    assert re.fullmatch("[0-9a-f]{64}", end.name)
    assert log.startswith(f"::stop-commands::{end.name}\n")
    assert log.endswith(f"\n::{end.name}::\n")
    assert [c.name for c in commands(job.logs["Report"])][:3] == ["warning", "notice", "warning"]
    assert told(job)[-1] == ("warning", "adaptive evaluation")
    assert "##[error]y\n" in job.logs["Report"]
    assert "error" not in {command.name for command in job.commands}
    assert (job.outputs["promote"], job.outputs["report"]) == ("false", "")


def test_a_run_that_leaves_no_record_promotes_nothing(runner: Runner) -> None:
    (runner.workspace / "conftest.py").write_text(LOUD)
    job = runner.action(model="replay:good.jsonl", arguments="--collect-only", artifact="reports", html="true")
    assert job.failed
    assert commands(job.logs["Interview and judge"])[-1].name == commands(job.log)[0].data
    assert (job.outputs["promote"], job.outputs["verdict"]) == ("false", "ERROR")
    assert (job.outputs["record"], job.outputs["report"]) == ("", "")
    assert set(told(job)) == {("error", "adaptive evaluation")}
    assert len(job.uploads) == 1
    assert "Not to be promoted" in job.summary


FAKE = r"""
case $1 in
  -m) shift 2; printf '%s\0' "$@" > argv; exit 4 ;;
  -P) exit 4 ;;
esac
"""


@pytest.mark.parametrize(
    ("hook", "recorded"),
    [("pytest_runtest_logreport(report)", False), ("pytest_unconfigure()", True)],
    ids=["before the record", "after the record"],
)
def test_a_process_that_ends_itself_with_status_0_does_not_pass(runner: Runner, hook: str, recorded: bool) -> None:
    ending = f"import os, pytest\n@pytest.hookimpl(trylast=True)\ndef {hook}:\n    os._exit(0)\n"
    (runner.workspace / "conftest.py").write_text(ending)
    (runner.workspace / "adaptive-eval.toml").write_text(TOML.replace("0.4", "0.9"))
    ended = runner.action(model="replay:regressed.jsonl", arguments="-q -x")
    assert ended.failed
    assert ended.outputs["promote"] == "false"
    assert bool(ended.outputs["record"]) is recorded


def page(name: str) -> str:
    """Read a how-to page."""
    return (ROOT / "docs/how-to" / f"{name}.md").read_text()


def test_every_snippet_of_the_documentation_tests_for_the_record() -> None:
    ended = page("require-gates").partition("\n## Make sure that it came to its end\n")[2].partition("\n## ")[0]
    text = ended + page("gate-in-github-actions")
    blocks = re.findall(r"```\w+[^\n]*\n(.*?)```", text, re.DOTALL)
    runs = [block for block in blocks if "pytest --adaptive-eval" in block]
    assert len(runs) == 4
    for block in runs:
        before, _, after = block.partition("pytest --adaptive-eval")
        assert "rm -f record.json" in before, block
        assert "--adaptive-eval-record=record.json" in after, block
        assert "adaptive-eval report record.json --exit-code" in after, block


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("-k 'a b' \"c d\"", ["-k", "a b", "c d"]),
        ("-q\n  --maxfail=1\n", ["-q", "--maxfail=1"]),
        ("'$(touch hacked)' `touch hacked` ; touch", ["$(touch hacked)", "`touch", "hacked`", ";", "touch"]),
        ("$HOME * ~ \\* '' é a.csv#b # c", ["$HOME", "*", "~", "*", "", "é", "a.csv#b", "#", "c"]),
    ],
)
def test_arguments_are_words_and_nothing_more(runner: Runner, text: str, words: list[str]) -> None:
    model, baseline = 'replay:x "y".jsonl; touch hacked', "$(touch hacked)"
    python = runner.python("a python", FAKE)
    jobs = [runner.action(python=python, model=model, baseline=baseline, arguments=text) for _ in "12"]
    assert [job.status for job in jobs] == [4, 4]
    argv = (runner.workspace / "argv").read_text().split("\0")[:-1]
    assert argv[0] == "--adaptive-eval"
    assert [word.partition("=")[0] for word in argv[1:3]] == ["--adaptive-eval-record", "--adaptive-eval-junit"]
    assert argv[3:] == [
        f"--adaptive-eval-model={model}",
        f"--adaptive-eval-baseline={baseline}",
        "--adaptive-eval-missing-baseline=warn",
        *words,
    ]
    assert [path.name for path in runner.workspace.iterdir() if path.name == "hacked"] == []
    first, second = ({command.data for command in job.commands if command.name == "stop-commands"} for job in jobs)
    assert len(first | second) == 4, "each part of each run ends with a word of its own"


@pytest.mark.parametrize("inputs", [{"arguments": "'unfinished"}, {"python": "no-such-python"}, {"install": "no==a"}])
def test_a_mistake_in_the_inputs_promotes_nothing(runner: Runner, inputs: dict[str, str]) -> None:
    job = runner.action(model="replay:good.jsonl", **inputs)
    assert job.failed
    assert (job.outputs["promote"], job.outputs["verdict"]) == ("false", "ERROR")


def test_a_folder_elsewhere_and_a_record_as_the_baseline(runner: Runner) -> None:
    folder, record = runner.temp / "history", runner.workspace / "main.json"
    inputs = {"folder": str(folder), "baseline": "main.json", "missing_baseline": "record"}
    job = runner.action(model="replay:early.jsonl", **inputs)
    assert (job.failed, job.outputs["promote"]) == (False, "false")
    assert record.is_file()
    assert len(list((folder / "runs").iterdir())) == 1
    assert not (runner.workspace / ".adaptive-eval").exists()


def test_the_workflow_keeps_a_baseline_at_its_first_run_and_at_promotions(runner: Runner) -> None:
    (runner.workspace / "adaptive-eval.toml").write_text(TOML.replace("[[eval.gate]]\nat_least = 0.4\n", ""))
    jobs = load(PROMOTE)["jobs"]
    gate = next(step for step in jobs["gate"]["steps"] if step.get("id") == "gate")["with"]
    inputs = {name: gate[name].replace("/srv", str(runner.temp)) for name in ("baseline", "missing-baseline", "folder")}
    kept = Path(inputs["baseline"])
    first = runner.action(model="replay:early.jsonl", **inputs)
    assert (first.status, first.outputs["promote"]) == (1, "false"), "nothing to compare with, and no other gate"
    record = kept.read_text()
    assert json.loads(record)["interviews"][0]["subject"]["name"] == "early"
    second = runner.action(model="replay:good.jsonl", **inputs)
    assert (second.status, second.outputs["promote"]) == (0, "true")
    assert kept.read_text() == record, "a run that passes is no promotion"
    (runner.temp / "models").mkdir()
    shutil.copytree(Path(second.outputs["record"]).parent, runner.temp / "gate")
    promote = jobs["promote"]["steps"][-1]["run"].replace("/srv", str(runner.temp))
    assert runner.script(promote, {"CHECKPOINT": str(runner.workspace)}).returncode == 0
    assert (runner.temp / "models" / "current").resolve() == runner.workspace
    assert json.loads(kept.read_text())["interviews"][0]["subject"]["name"] == "good"


def steps(path: Path) -> list[dict[str, Any]]:
    data = load(path)
    jobs = data["jobs"].values() if "jobs" in data else [data["runs"]]
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_workflows_take_no_risk(path: Path) -> None:
    for step in steps(path):
        assert "${{" not in step.get("run", ""), "texts reach a script through its environment alone"
        if step.get("uses", "./") != "./":
            line = next(line for line in path.read_text().splitlines() if step["uses"] in line)
            assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
        if step.get("shell") == "bash":
            assert step["run"].startswith("set -euo pipefail\n")
    if path != ACTION:
        data = load(path)
        triggers = data[True]  # YAML takes `on` for a truth value
        assert not {"pull_request_target", "workflow_run", "issue_comment"} & set(triggers)
        assert data["permissions"] in ({}, {"contents": "read"})
        assert all("timeout-minutes" in job for job in data["jobs"].values())
        assert "secrets." not in path.read_text()


#: What brings files of another job: caches, artifacts, and folders that stay on a runner.
RESTORING = re.compile(r"actions/(cache|download-artifact)|\bgh run download\b|\bactions/cache/restore\b")
FOLDER = re.compile(r"adaptive-eval-dir|\.adaptive-eval\b|\bfolder\b")


def untrusted(triggers: Any) -> bool:
    """Whether a pull request can start the workflow."""
    return any("pull_request" in trigger or trigger in ("workflow_run", "issue_comment") for trigger in triggers)


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.name)
def test_no_job_that_a_fork_can_start_restores_the_journal(path: Path) -> None:
    if path == ACTION:
        assert not RESTORING.search(path.read_text()), "the action restores nothing by itself"
        assert load(path)["inputs"]["folder"]["default"] == "", "the folder of a checkout, unless the user names one"
        return
    data = load(path)
    for job in data["jobs"].values():
        for step in job["steps"]:
            settings, text = step.get("with", {}), json.dumps(step)
            assert "actions/cache" not in text, "a cache is shared with pull requests"
            assert settings.get("cache") in (None, "pip"), text
            if untrusted(data[True]):
                assert not RESTORING.search(text), text
                assert not FOLDER.search(text), text
        if untrusted(data[True]):
            assert "self-hosted" not in json.dumps(job["runs-on"])


def test_no_snippet_of_the_documentation_shares_the_journal_with_pull_requests() -> None:
    other_systems = page("gate-in-github-actions").partition("\n## Gate in GitLab, Jenkins or a container\n")[2]
    for language, block in re.findall(r"```(\w+)[^\n]*\n(.*?)```", other_systems, re.DOTALL):
        if language == "yaml":
            assert not RESTORING.search(block), block
            for job in yaml.safe_load(block).values():
                assert "cache" not in job, block
                assert "CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in json.dumps(job["rules"])
        elif language == "groovy":
            assert "adaptive-eval-dir" in block
            gate = block.partition("stage('Gate')")[2].partition("steps")[0]
            assert "when { not { changeRequest() } }" in gate, "the folder is shared by all builds of the agent"
    for block in re.findall(r"```yaml[^\n]*\n(.*?)```", page("gate-in-github-actions"), re.DOTALL):
        assert not FOLDER.search(block), block


def test_the_nightly_job_keeps_the_runs_alone_on_the_protected_branch() -> None:
    (text,) = re.findall(r'^```yaml title="\.github/workflows/nightly\.yml"\n(.*?)^```', page("watch-for-drift"), BLOCK)
    data = yaml.safe_load(text)
    assert set(data[True]) == {"schedule", "workflow_dispatch"}
    (job,) = data["jobs"].values()
    assert job["if"] == "github.ref == 'refs/heads/main'"
    assert "cache" not in text
    fetch, upload = job["steps"][1]["run"], job["steps"][-1]
    assert upload["with"] == {"name": "runs", "path": "nightly/runs"}
    assert '.event == "schedule" or .event == "workflow_dispatch"' in fetch, "a branch of a fork can be called main"
    (action,) = (step["with"] for step in job["steps"] if "pytest-adaptive-eval" in step.get("uses", ""))
    assert action["drift"] == "fail"
    assert set(action) <= set(load(ACTION)["inputs"])


def test_promotion_waits_for_the_gate() -> None:
    jobs = load(PROMOTE)["jobs"]
    assert jobs["promote"]["needs"] == "gate"
    assert jobs["promote"]["if"] == "${{ needs.gate.outputs.promote == 'true' }}"
    assert jobs["promote"]["permissions"] == {}
    assert jobs["gate"]["outputs"] == {"promote": "${{ steps.gate.outputs.promote }}"}
    assert jobs["gate"]["permissions"] == {"contents": "read"}
    gate = next(step for step in jobs["gate"]["steps"] if step.get("id") == "gate")
    assert gate["uses"] == f"your-organisation/pytest-adaptive-eval@{'0' * 40}", "nobody can put an action there"
    assert set(gate["with"]) <= set(load(ACTION)["inputs"])
    assert load(PROMOTE)["concurrency"]["cancel-in-progress"] is False


def samples() -> dict[str, str]:
    """All workflows that the project has, shows or writes, by a name of their own."""
    found = {path.name: path.read_text() for path in WORKFLOWS}
    pages = ("tutorial", "how-to/gate-in-github-actions", "how-to/gate-an-agent", "how-to/watch-for-drift")
    for page_name in pages:
        path = ROOT / f"docs/{page_name}.md"
        for name, text in re.findall(
            r'^```yaml title="\.github/workflows/([^"]*)"\n(.*?)^```', path.read_text(), BLOCK
        ):
            found[f"{path.stem}-{name}"] = text
    server = "http://localhost:9/v1#a"
    cases = [("bank", []), ("ladder", [server]), ("network", [server]), ("panel", [server, "openai:b", "azure:c"])]
    return found | {f"init-{kind}.yml": files_of(kind, models)[WORKFLOW] for kind, models in cases}


BLOCK = re.MULTILINE | re.DOTALL
#: Linters by name, with the words that check files in the folder of a repository.
LINTERS = {
    "zizmor": ("--offline", "--no-config", "."),
    "actionlint": (),
    "check-jsonschema": ("--builtin-schema", "vendor.github-workflows"),
}


@pytest.mark.parametrize("linter", LINTERS)
def test_every_sample_passes_the_linters(linter: str, tmp_path: Path) -> None:
    if shutil.which(linter) is None:
        pytest.skip(f"{linter} is not installed")
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".github" / "actionlint.yaml").write_text("self-hosted-runner:\n  labels: [gpu]\n")
    for name, text in samples().items():
        (folder / name).write_text(text)
    (tmp_path / "action.yml").write_text(ACTION.read_text())
    files = () if linter == "zizmor" else sorted(folder.iterdir())
    done = subprocess.run(
        [linter, *LINTERS[linter], *files], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("check-jsonschema") is None, reason="check-jsonschema is not installed")
def test_the_sample_of_gitlab_fits_its_schema(tmp_path: Path) -> None:
    (text,) = re.findall(r'^```yaml title="\.gitlab-ci\.yml"\n(.*?)^```', page("gate-in-github-actions"), BLOCK)
    (tmp_path / ".gitlab-ci.yml").write_text(text)
    command = ["check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", ".gitlab-ci.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_scripts_pass_shellcheck(path: Path) -> None:
    for step in steps(path):
        if "run" in step:
            done = subprocess.run(
                ["shellcheck", "--shell=bash", "-"], input=step["run"], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout


def test_the_documentation_names_every_input_and_output() -> None:
    action = load(ACTION)
    text = page("gate-in-github-actions")
    rows = re.findall(r"^\| (`[^|]*`) \| ", text, re.MULTILINE)
    assert re.findall(r"`([\w-]+)`", " ".join(rows)) == [*action["inputs"], *action["outputs"]]
    for block in re.findall(r"^```yaml[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        assert yaml.safe_load(block)
