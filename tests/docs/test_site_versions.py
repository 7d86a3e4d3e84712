"""The site has a folder for the main branch and for each release, and a switch between them."""

from __future__ import annotations

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs/_build/site_versions.py"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose page says its version, with tags of releases and others."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=n", "-c", "user.email=e@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    for tag in ("v0.9.0", "v0.10.0", "v0.11.0rc1", "other", ""):
        (folder / "page.txt").write_text(tag or "main")
        git("add", "-A")
        git("commit", "-m", tag or "main")
        if tag:
            git("tag", tag)
    return folder


def copied(tree: Path, output: Path) -> None:
    """A build of one page."""
    output.mkdir()
    (output / "index.html").write_text((tree / "page.txt").read_text())


def test_each_release_is_built_from_its_own_tree(script: dict[str, Any], repository: Path) -> None:
    site = repository / "site"
    site.mkdir()
    (site / "left-over.html").write_text("old")
    assert script["build_all"](repository, site, copied) == ["0.10.0", "0.9.0", "dev"]
    pages = {path.parent.name: path.read_text() for path in site.glob("*/index.html")}
    assert pages == {"0.10.0": "v0.10.0", "0.9.0": "v0.9.0", "dev": "main"}
    versions = json.loads((site / "versions.json").read_text())
    assert [(v["version"], v["aliases"]) for v in versions] == [("0.10.0", ["latest"]), ("0.9.0", []), ("dev", [])]
    assert "url=0.10.0/" in (site / "index.html").read_text()
    assert not (site / "left-over.html").exists()
    trees = subprocess.run(["git", "worktree", "list"], cwd=repository, check=True, capture_output=True, text=True)
    assert len(trees.stdout.splitlines()) == 1, "no tree is left behind"


def test_before_the_first_release_the_root_leads_to_main(script: dict[str, Any], repository: Path) -> None:
    for tag in ("v0.9.0", "v0.10.0"):
        subprocess.run(["git", "tag", "-d", tag], cwd=repository, check=True, capture_output=True)
    assert script["build_all"](repository, repository / "site", copied) == ["dev"]
    assert "url=dev/" in (repository / "site" / "index.html").read_text()


def test_the_workflow_builds_them_and_the_theme_has_the_switch() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert settings["extra"]["version"] == {"provider": "mike", "default": "latest"}
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "docs.yml").read_text("utf-8"))
    checkout, *steps = workflow["jobs"]["build"]["steps"]
    assert checkout["with"]["fetch-depth"] == 0, "tags are needed"
    assert any("python docs/_build/site_versions.py site" in step.get("run", "") for step in steps)
    assert workflow[True]["push"]["tags"] == ["v*"]
