"""Run README's example: ``python .github/readme_example.py [WHEEL]``.

With a wheel, install it with the extra that README names into an empty virtual environment, and run there.  Without,
run in the environment of this Python.  The questions and the checkpoint are the fixtures of this repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def read_example() -> tuple[list[str], str]:
    """Return the commands of README's section on your own model, and its test in Python."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## Your own model and questions")[2].partition("\n## ")[0]
    commands = re.search(r"((?:^    (?:pip|printf|pytest) .*\n)+)", text, re.MULTILINE)
    test = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if commands is None or test is None:
        raise SystemExit("README.md: expected commands that begin with pip, printf and pytest, and a block of Python")
    return [line.strip() for line in commands[1].splitlines()], test[1]


def main(wheel: str | None) -> None:
    """Run the example in TOML and in Python, each in a folder of its own; a command that fails ends this."""
    (install, *commands), test = read_example()
    extra = re.search(r"\[[\w,]+\]", install)
    if extra is None:
        raise SystemExit(f"README.md: expected an extra in brackets in {install!r}")
    with tempfile.TemporaryDirectory() as name:
        scripts = Path(sys.executable).parent
        if wheel is not None:
            venv.create(Path(name, "empty"), with_pip=True)
            scripts = Path(name, "empty", "bin")
            path = Path(wheel).resolve(strict=True)
            subprocess.run([scripts / "python", "-m", "pip", "install", f"{path}{extra[0]}"], check=True)
        environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        items = (ROOT / "fixtures/banks/text.items.jsonl").read_text("utf-8").splitlines(keepends=True)
        for way, lines in (("toml", commands), ("python", commands[-1:])):
            folder = Path(name, way)
            folder.mkdir()
            (folder / "questions.jsonl").write_text("".join(items[::3]), "utf-8")
            if way == "python":
                (folder / "test_questions.py").write_text(test, "utf-8")
            for line in lines:
                print(f"$ {line}", flush=True)
                command = line.replace("path/to/checkpoint", str(ROOT / "fixtures/checkpoints/text-late"))
                subprocess.run(["bash", "-euc", command], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:] or [None])
