"""The container file: what it copies is there and enough to build, and it holds neither root nor secrets."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()


def instructions(name: str) -> list[str]:
    return [line.removeprefix(name).strip() for line in LINES if line.startswith(f"{name} ")]


def test_the_user_is_not_root_and_commands_run_as_pytest_would() -> None:
    assert instructions("USER") == ["evaluator"]
    assert LINES.index("USER evaluator") > max(i for i, line in enumerate(LINES) if line.startswith(("RUN ", "COPY ")))
    assert instructions("ENTRYPOINT") == ['["python", "-m", "pytest", "--adaptive-eval"]']


def test_only_what_the_package_is_built_of_is_copied() -> None:
    copied = {name for line in instructions("COPY") for name in line.split()[:-1]}
    assert copied == {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "pytest_adaptive_eval"}
    assert all((ROOT / name).exists() for name in copied)
    assert not instructions("ADD"), "nothing is fetched from an address"
    assert not re.search(r"(?i)secret|token|password|api_key", "\n".join(LINES).partition("\n")[2])


def test_its_python_and_extras_are_those_of_the_package() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (base,) = instructions("FROM")
    version = base.partition(":")[2].removesuffix("-slim")
    assert f'"Programming Language :: Python :: {version}"' in project
    extras = re.search(r"\[([\w,]+)\]\"", "\n".join(instructions("RUN")))
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras[1].split(","))
