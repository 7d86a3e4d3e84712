"""Draw terminal runs of ``examples/promotion``: ``python docs/_build/picture.py``.

``docs/images/terminal.svg`` shows one gate in at most 20 lines.  ``terminal-WIDTH.svg`` show a run with two workers and one
with an unknown model, at 60, 80 and 120 columns.  Needs ``rich`` besides the extras ``hf``, ``test`` and ``xdist``.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
WIDTHS = (60, 80, 120)
#: One thread is enough, and plugins of this environment have no place in the picture.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_adaptive_eval.plugin.entry",
}


def run(console: Console, folder: str, *more: str) -> None:
    """Print a run of the example as it stands in a terminal of the console's width."""
    shown = ["pytest", "--adaptive-eval", *more]
    hidden = ["-p", "xdist", "-p", "no:cacheprovider", "--color=yes", f"--adaptive-eval-dir={folder}/.adaptive-eval"]
    done = subprocess.run(
        [sys.executable, "-m", *shown, *hidden],
        cwd=ROOT / "examples" / "promotion",
        env={**os.environ, **SETTINGS, "COLUMNS": str(console.width)},
        capture_output=True,
        text=True,
        check=False,
    )
    output = (done.stdout + done.stderr).replace(folder, ".").replace(str(ROOT), "~/pytest-adaptive-eval")
    console.print(Text.assemble(("$ ", "bold green"), (" ".join(shown), "bold")))
    console.print(Text.from_ansi(output))
    console.print(Text(f"exit code {done.returncode}\n", style="dim"))


def draw(name: str, columns: int, runs: Sequence[Sequence[str]]) -> None:
    """Draw what runs with these options print."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for options in runs:
        with tempfile.TemporaryDirectory() as folder:
            run(console, folder, *options)
    picture = console.export_svg(title="examples/promotion")
    # the picture must not fetch a font from anywhere
    picture = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", picture, flags=re.DOTALL)
    (ROOT / "docs" / "images" / name).write_text(picture, encoding="utf-8")


def main() -> None:
    """Draw all pictures."""
    draw("terminal.svg", COLUMNS, [["--no-header", "adaptive-eval.toml"]])
    for columns in WIDTHS:
        draw(f"terminal-{columns}.svg", columns, [["-n2"], ["--adaptive-eval-model=nowhere"]])


if __name__ == "__main__":
    main()
