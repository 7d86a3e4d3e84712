"""The scripts of the page on BFCL, terminal-bench and tau2-bench, beside programs that write what these write."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from fake_harness import Fake, items

from pytest_adaptive_eval.extensions.harness.model import HarnessModel

PAGE = Path(__file__).parents[2] / "docs/how-to/gate-by-a-script.md"
SCRIPTS = dict(re.findall(r'^```python title="([^"]+)"\n(.*?)^```', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
#: The programs, each with the ids that it is given in its own way: `a` is right, `b` wrong, and `c` fails.
BEGIN = """
import json, os, sys
from pathlib import Path

def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + chr(10) for row in rows))

def after(option):
    return [sys.argv[n + 1] for n, word in enumerate(sys.argv) if word == option]
"""
PROGRAMS = {
    "bfcl": """
root = Path(os.environ["BFCL_PROJECT_ROOT"])
assert sys.argv[1:] in (["generate", "--run-ids", "--model", "m"], ["evaluate", "--partial-eval", "--model", "m"])
results = root / "result/m/non_live/BFCL_v4_simple_result.json"
if sys.argv[1] == "generate":
    asked = json.loads((root / "test_case_ids_to_generate.json").read_text())
    rows = [{"id": item, "result": "f()"} for item in asked["simple"]]
    for row in rows:
        if row["id"] == "simple_c": row |= {"result": "Error during inference: HTTP 529", "traceback": "..."}
    write(results, *rows)
else:
    failed = [{"id": item, "valid": False} for item in ("simple_b", "simple_c") if item in results.read_text()]
    write(root / "score/m/non_live/BFCL_v4_simple_score.json", {"accuracy": 0.5}, *failed)
""",
    "tb": """
outcomes = {"a": (True, "unset"), "b": (False, "agent_timeout"), "c": (None, "agent_installation_failed")}
rows = []
for item in after("-t"):
    resolved, mode = outcomes[item[-1]]
    tokens = {"total_input_tokens": 9, "total_output_tokens": 2}
    rows.append({"task_id": item, "is_resolved": resolved, "failure_mode": mode, **tokens})
write(Path(*after("--output-path"), *after("--run-id"), "results.json"), {"results": rows})
""",
    "tau2": """
outcomes = {"a": (1.0, "user_stop"), "b": (0.0, "max_steps"), "c": (None, "infrastructure_error")}
rows = []
for item in sys.argv[sys.argv.index("--task-ids") + 1:]:
    reward, reason = outcomes[item[-1]]
    about = {"task_id": item, "termination_reason": reason, "duration": 4.0, "agent_cost": 0.25}
    rows.append({**about, "reward_info": None if reward is None else {"reward": reward}})
write(Path(os.environ["TAU2_DATA_DIR"], "simulations", *after("--save-to"), "results.json"), {"simulations": rows})
""",
}


@pytest.mark.parametrize(
    ("script", "program", "words", "measures"),
    [
        ("bfcl.py", "bfcl", "Error during inference: HTTP 529", {}),
        ("terminal_bench.py", "tb", "agent_installation_failed", {"input_tokens": 9.0, "output_tokens": 2.0}),
        ("tau2_bench.py", "tau2", "infrastructure_error", {"seconds": 4.0, "cost": 0.25}),
    ],
)
def test_a_script_hands_over_ids_and_converts_right_wrong_and_failed(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, script: str, program: str, words: str, measures: dict[str, float]
) -> None:
    (fake.path / script).write_text(SCRIPTS[script])
    executable = fake.path / program
    executable.write_text(f"#!{sys.executable}\n{BEGIN}{PROGRAMS[program]}")
    executable.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.path), prepend=":")
    monkeypatch.setenv("TAU2_DATA_DIR", str(fake.path / "data"))
    command = f"{sys.executable} {fake.path / script} {{ids_file}} {{output}} {{checkpoint}}"
    model = HarnessModel.load("command", "m", cache=fake.path / "run" / "cache", command=command)
    right, wrong, failed = model.answer(items(["simple_a", "simple_b", "simple_c"]))
    assert (right.score, wrong.score, failed.score) == (1.0, 0.0, None)
    assert words in failed.detail
    assert right.measures == measures
