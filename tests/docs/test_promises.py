"""The page of promises states the versions that the package, its records and its CI have."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pytest_adaptive_eval.records.run_record import SCHEMA_VERSION

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/reference/promises.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")


def versions_of(name: str) -> str:
    (cell,) = re.findall(rf"^\| {name} \| ([^|]*) \|", TEXT, re.MULTILINE)
    return cell.strip()


def test_versions_of_python_are_those_of_the_project_and_of_ci() -> None:
    promised = versions_of("Python").split(", ")
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert promised == classified
    assert PROJECT["requires-python"] == f">={promised[0]}"
    assert set(promised) <= set(re.findall(r'name: "(3\.\d+)"', WORKFLOW))


def test_least_versions_of_pytest_and_xdist_are_those_of_the_project() -> None:
    required = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["xdist"]]
    for name in ("pytest", "pytest-xdist"):
        assert f"{name}>={versions_of(name).removesuffix(' and later')}" in required
    assert f'name: "pytest {versions_of("pytest").partition(" ")[0]}"' in WORKFLOW


def test_the_schema_of_records_is_the_one_that_is_written() -> None:
    assert re.findall(r"`schema_version` (\d+)", TEXT) == [str(SCHEMA_VERSION)]
