"""Make ``docs/terminal.svg``: the promotion example as a terminal shows it.

Run from the repository's root with ``python docs/picture.py``; needs ``rich`` besides the extras ``hf`` and ``test``.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 112
#: One thread is enough, and plugins of this environment have no place in the picture.
SETTINGS = {
    "COLUMNS": str(COLUMNS),
    "OMP_NUM_THREADS": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_adaptive_eval.plugin.entry",
}


def main() -> None:
    """Run the example on two checkpoints and draw what it printed."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    with tempfile.TemporaryDirectory() as folder:
        for model in ("", "../../fixtures/checkpoints/text-regressed"):
            shown = ["pytest", "--adaptive-eval", *([f"--adaptive-eval-model={model}"] if model else [])]
            hidden = ["-p", "no:cacheprovider", "--color=yes", f"--adaptive-eval-dir={folder}/.adaptive-eval"]
            done = subprocess.run(
                [sys.executable, "-m", *shown, *hidden],
                cwd=ROOT / "examples" / "promotion",
                env={**os.environ, **SETTINGS},
                capture_output=True,
                text=True,
                check=False,
            )
            output = done.stdout.replace(folder, ".").replace(str(ROOT), "~/pytest-adaptive-eval")
            console.print(Text.assemble(("$ ", "bold green"), (" ".join(shown), "bold")))
            console.print(Text.from_ansi(output))
            console.print(Text(f"exit code {done.returncode}\n", style="dim"))
    picture = console.export_svg(title="examples/promotion")
    # the picture must not fetch a font from anywhere
    picture = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", picture, flags=re.DOTALL)
    (ROOT / "docs" / "terminal.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
