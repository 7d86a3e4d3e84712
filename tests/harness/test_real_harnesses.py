"""Gates over real harnesses, offline.

``ADAPTIVE_EVAL_HARNESSES`` names the folder into which ``.ci/harnesses`` has installed them, each in an environment of
its own. What is not there is skipped by name.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks.responses import read_responses

FOLDER = Path(os.environ.get("ADAPTIVE_EVAL_HARNESSES", "no-harnesses"))
EVALUATION = """
[[eval]]
name = "real"
bank = "bank.jsonl"
model = "harness:{harness}#none"
stop = "budget"
budget = {budget}

[eval.model_options]
command = {command}
parallel = 4
env = {{ PYTHONPATH = ".", PROMPTFOO_DISABLE_TELEMETRY = "1", PROMPTFOO_DISABLE_UPDATE = "1", HOME = "." }}

[[eval.gate]]
at_least = 0.3
"""

pytestmark = pytest.mark.slow


def program(harness: str, path: str) -> Path:
    """Return the program of a harness; skip the test where it is not installed."""
    found = FOLDER.absolute() / harness / path
    if not found.exists():
        pytest.skip(f"the harness {harness} is not installed: .ci/harnesses FOLDER, ADAPTIVE_EVAL_HARNESSES=FOLDER")
    return found


def scores(folder: Path, harness: str, command: str, ids: list[str], budget: int = 0) -> dict[str, Any]:
    """Run a gate, and return the score of each item that it asked, or the reason why it has none."""
    (folder / "bank.jsonl").write_text("".join(json.dumps({"id": item}) + "\n" for item in ids))
    text = EVALUATION.format(harness=harness, budget=budget or len(ids), command=json.dumps(command))
    (folder / "adaptive-eval.toml").write_text(text)
    words = [sys.executable, "-m", "pytest", "--adaptive-eval", "-q", "-p", "no:cacheprovider"]
    subprocess.run(words, cwd=folder, check=False, timeout=300)
    (record,) = (folder / ".adaptive-eval/runs").glob("*.json")
    (interview,) = json.loads(record.read_text())["interviews"]
    assert interview["subject"]["environment"]["harness version"]
    found = {}
    for row in interview["administrations"]:
        found[row["item"]] = row["detail"] if row["score"] is None else row["score"]
    return found


INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model._model import ModelAPI
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, solver

async def count(self, text):
    return len(text.split())  # its own counter downloads a vocabulary

ModelAPI.count_text_tokens = count

@solver
def failing():
    async def solve(state, generate):
        if state.sample_id == "item-3":
            raise RuntimeError("the tool broke")
        return await generate(state)
    return solve

@task
def sums():
    samples = [Sample(id=f"item-{n}", input="x", target="Default" if n % 2 else "no") for n in range(12)]
    return Task(dataset=MemoryDataset(samples), solver=failing(), scorer=includes())
"""


def test_inspect(tmp_path: Path) -> None:
    inspect = program("inspect", "bin/inspect")
    (tmp_path / "sums.py").write_text(INSPECT)
    command = (
        f"{inspect} eval sums.py --model mockllm/model --sample-id {{ids}} --log-dir {{output}} --display plain "
        "--no-fail-on-error"
    )
    for form in ("item-{}", "sums:item-{}"):
        ids = [form.format(n) for n in range(8)]
        folder = tmp_path / form[:4]
        folder.mkdir()
        (folder / "sums.py").write_text(INSPECT)
        found = scores(folder, "inspect", command, ids)
        assert "the tool broke" in found.pop(form.format(3))
        assert found == {form.format(n): float(n % 2) for n in range(8) if n != 3}


PROMPTFOO = {
    "prompts": ["{{word}}"],
    "providers": ["echo"],
    "tests": [
        {
            "description": f"sum-{n}",
            "vars": {"word": f"word {n}"},
            "assert": [{"type": "contains", "value": "word" if n % 2 else "nothing"}],
        }
        for n in range(14)
    ],
}


def test_promptfoo(tmp_path: Path) -> None:
    promptfoo = program("promptfoo", "node_modules/.bin/promptfoo")
    (tmp_path / "config.json").write_text(json.dumps(PROMPTFOO))
    command = f"{promptfoo} eval -c config.json --filter-pattern {{regex}} -o {{output}}/results.json --no-cache"
    ids = [f"sum-{n}" for n in (1, 2, 3, 12)]
    assert scores(tmp_path, "promptfoo", command, ids) == {"sum-1": 1, "sum-2": 0, "sum-3": 1, "sum-12": 0}


#: An environment of Harbor that runs in a folder, with the absolute paths of a task below it.
HARBOR = """
import asyncio, os, re, shutil
from pathlib import Path
from harbor.environments.base import BaseEnvironment, ExecResult

PLACES = ("app", "tests", "logs", "solution")

class Folder(BaseEnvironment):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.root = Path(self.trial_paths.trial_dir).resolve() / "root"

    @staticmethod
    def type():
        return "folder"

    def _validate_definition(self):
        pass

    def at(self, path):
        return self.root / str(path).lstrip("/")

    def below(self, text):
        for place in PLACES:
            text = re.sub(rf"(?<![\\w./-])/{place}\\b", str(self.root / place), text)
        return text

    async def start(self, force_build):
        for place in (*PLACES, "logs/agent", "logs/verifier"):
            self.at(place).mkdir(parents=True, exist_ok=True)

    async def stop(self, delete):
        pass

    async def prepare_logs_for_host(self):
        pass

    async def upload_file(self, source_path, target_path):
        self.at(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self.at(target_path))

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self.at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy(self.at(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self.at(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None, **more):
        for script in self.root.rglob("*.sh"):
            script.write_text(self.below(script.read_text()))
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", self.below(command), cwd=self.at(cwd or "/app"), env={**os.environ, **(env or {})},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode)
"""
AGENT = """
import asyncio
from harbor.agents.base import BaseAgent

class Halves(BaseAgent):
    @staticmethod
    def name():
        return "halves"

    def version(self):
        return "1"

    async def setup(self, environment):
        pass

    async def run(self, instruction, environment, context):
        number = int(instruction.split()[-1])
        if number == 2:
            await asyncio.sleep(60)
        if number == 3:
            raise RuntimeError("the agent's server is gone")
        context.n_input_tokens, context.n_output_tokens, context.cost_usd = 10, 5, 0.25
        await environment.exec(f"echo {number % 2} > /app/answer.txt")
"""


def harbor_tasks(folder: Path, count: int) -> None:
    for n in range(count):
        task = folder / "tasks" / f"task-{n}"
        for place in ("environment", "tests", "solution"):
            (task / place).mkdir(parents=True)
        (task / "environment/Dockerfile").write_text("FROM scratch\n")
        (task / "instruction.md").write_text(f"write {n}\n")
        (task / "task.toml").write_text('version = "1.0"\n[verifier]\ntimeout_sec = 20\n[agent]\ntimeout_sec = 3\n')
        (task / "solution/solve.sh").write_text("echo 1 > /app/answer.txt\n")
        (task / "tests/test.sh").write_text(
            "cat /app/answer.txt > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
        )


def test_harbor(tmp_path: Path) -> None:
    harbor = program("harbor", "bin/harbor")
    for agent, options in (("oracle", "-a oracle"), ("halves", "--agent halves:Halves")):
        folder = tmp_path / agent
        folder.mkdir()
        (folder / "folderenv.py").write_text(HARBOR)
        (folder / "halves.py").write_text(AGENT)
        harbor_tasks(folder, 6)
        command = (
            f"{harbor} run -p tasks {options} {{items}} --env folderenv:Folder -n {{parallel}} --jobs-dir {{output}}"
        )
        found = scores(folder, "harbor", command, [f"task-{n}" for n in range(6)])
        if agent == "oracle":
            assert set(found.values()) == {1.0}
            continue
        assert "the agent's server is gone" in found.pop("task-3")
        assert found == {"task-0": 0, "task-1": 1, "task-2": 0, "task-4": 0, "task-5": 1}


LM_EVAL = """
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 16, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
ROOT = Path(__file__).parents[2]
DOCUMENTS, AT_LEAST = 120, 0.5


def test_lm_eval_on_a_checkpoint_scores_documents_and_decides_as_its_whole_run(tmp_path: Path) -> None:
    harness = program("lm-eval", "bin/lm_eval")
    lines = (ROOT / "fixtures/banks/text.items.jsonl").read_text().splitlines()
    documents = [json.loads(line) for line in random.Random(5).sample(lines, DOCUMENTS)]
    rows = [json.dumps({"prompt": each["prompt"], "answer": each["answer"]}) + "\n" for each in documents]
    (tmp_path / "sums.jsonl").write_text("".join(rows))
    (tmp_path / "sums.yaml").write_text(LM_EVAL)
    checkpoint = ROOT / "fixtures/checkpoints/text-late"
    start = f"{harness} run --model hf --device cpu --batch_size 16 --include_path . --log_samples"
    common = f"{start} --model_args pretrained={{checkpoint}},dtype=float32"
    environment = {**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}

    def run(*words: str, codes: Sequence[int] = (0,)) -> None:
        ended = subprocess.run(words, cwd=tmp_path, check=False, timeout=500, env=environment)
        assert ended.returncode in codes

    whole = common.format(checkpoint=checkpoint)
    run(*whole.split(), "--tasks", "sums", "--output_path", "whole")
    command = [sys.executable, "-m", "pytest_adaptive_eval"]
    run(*command, "calibrate", "whole", "--uncalibrated", "-o", "sums.bank")
    options = json.dumps(f"{common} --tasks {{tasks}} --samples {{samples}} --output_path {{output}}")
    (tmp_path / "adaptive-eval.toml").write_text(
        f'[[eval]]\nbank = "sums.bank"\nmodel = "harness:lm-eval#{checkpoint}"\n'
        f"[eval.model_options]\ncommand = {options}\n[[eval.gate]]\nat_least = {AT_LEAST}\n"
    )
    run(sys.executable, "-m", "pytest", "--adaptive-eval", "-p", "no:cacheprovider", codes=(0, 1))
    run(*command, "gate", "whole", "--at-least", str(AT_LEAST), "--json", "whole.json", codes=(0, 1))
    (path,) = (tmp_path / ".adaptive-eval/runs").glob("*.json")
    record = json.loads(path.read_text())
    (interview,) = record["interviews"]
    asked = {row["item"]: row["score"] for row in interview["administrations"] if row["status"] != "not_awaited"}
    responses = read_responses(tmp_path / "whole")
    recorded = responses.scores_of(responses.subjects[0])
    assert asked == {item: recorded[item] for item in asked}
    assert 0 < len(asked) < DOCUMENTS
    (of_whole,) = json.loads((tmp_path / "whole.json").read_text())["gates"]
    (of_part,) = record["gates"]
    assert of_part["verdict"]["outcome"] == of_whole["outcome"] in ("PASS", "FAIL")
    assert interview["subject"]["environment"]["weights"] == "files of this hash"
