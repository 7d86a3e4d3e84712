"""Each extra that is missing is named with its line for pip, whatever needs it; nothing ends in an internal error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECKPOINT = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "text-mid"
#: Runs code without some packages, and prints the error as a user sees it.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({packages!r}))
from pathlib import Path
from pytest_adaptive_eval.errors import AdaptiveEvalError
try:
    {code}
except AdaptiveEvalError as error:
    print(error)
"""


def of_model(spec: str) -> str:
    return f"from pytest_adaptive_eval.models import resolve; kind, at = resolve({spec!r}); kind.load(at, {{}})"


def of_file(name: str) -> str:
    return f"from pytest_adaptive_eval.banks.rows import read_records; list(read_records(Path({name!r})))"


def of_verb(*arguments: str) -> str:
    return f"from pytest_adaptive_eval.cli import main; main({list(arguments)!r})"


TRACKERS = "from pytest_adaptive_eval.extensions.exports.trackers import fetch_run; fetch_run"
SCHEMA = "from pytest_adaptive_eval.items.item import Item; Item('q', 'Reply in JSON.', '{}', 'schema').grade('{}')"
PYRO = "from pytest_adaptive_eval.calibration.engines.svi import _pyro; _pyro('cpu', 0).__enter__()"


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("extra", "packages", "code"),
    [
        ("litellm", ["litellm"], of_model("litellm:ollama/x")),
        ("endpoint", ["httpcore2"], of_model("http://127.0.0.1:9/v1#x")),
        ("endpoint", ["httpcore2"], of_model("ollama:x")),
        ("endpoint", ["httpcore2"], of_model("serve:run --port {port}")),
        ("hf", ["torch", "transformers"], of_model(str(CHECKPOINT))),
        ("parquet", ["pyarrow"], of_file("rows.parquet")),
        ("xlsx", ["python_calamine"], of_file("rows.xlsx")),
        ("html", ["jinja2"], "from pytest_adaptive_eval.reports.page import need_jinja2; need_jinja2()"),
        (
            "alerts",
            ["apprise"],
            "from pytest_adaptive_eval.records.alerts import open_service; open_service('json://x')",
        ),
        ("wandb", ["wandb"], f"{TRACKERS}('wandb:a/b/c')"),
        ("mlflow", ["mlflow"], f"{TRACKERS}('mlflow:a')"),
        ("schema", ["jsonschema"], SCHEMA),
        ("datasets", ["datasets"], of_verb("import", "hf:owner/name", "-o", "items.bank")),
        ("pyro", ["pyro"], PYRO),
        ("ray", ["ray"], of_verb("sweep", "sweep.toml", "--ray")),
    ],
)
def test_a_missing_extra_is_named_with_its_line_for_pip(
    tmp_path: Path, extra: str, packages: list[str], code: str
) -> None:
    for name, head in (("rows.parquet", b"PAR1"), ("rows.xlsx", b"PK"), ("answers.jsonl", b"{}")):
        (tmp_path / name).write_bytes(head)
    (tmp_path / "sweep.toml").write_text('checkpoints = ["replay:answers.jsonl"]\n')
    program = WITHOUT.format(packages=packages, code=code)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert f"pytest-adaptive-eval[{extra}]" in done.stdout + done.stderr
