"""Build the site of the main branch and of every release: ``python docs/_build/site_versions.py site``.

The working tree becomes ``site/dev``, and each tag such as ``v1.2.0`` becomes ``site/1.2.0``, built from its own tree.
``site/versions.json`` lists them for the switch in the head of each page.  The root leads to the newest release, or to
``dev`` before the first one.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Name of the main branch's site.
DEV = "dev"
REDIRECT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>pytest-adaptive-eval</title>
<meta http-equiv="refresh" content="0; url={newest}/">
<a href="{newest}/">pytest-adaptive-eval {newest}</a>
</html>
"""


def releases(tags: Sequence[str]) -> list[str]:
    """Return the tags of releases, newest first; tags of other kinds and of release candidates are left out."""
    found = [tag for tag in tags if re.fullmatch(r"v\d+(\.\d+)+", tag)]
    return sorted(found, key=lambda tag: [int(part) for part in tag[1:].split(".")], reverse=True)


def build(tree: Path, output: Path) -> None:
    """Build the site of a tree, with its pages as Markdown."""
    subprocess.run(["zensical", "build", "--strict", "--clean"], cwd=tree, check=True)
    subprocess.run([sys.executable, "docs/_build/llms_pages.py", "site"], cwd=tree, check=True)
    shutil.copytree(tree / "site", output)


def build_all(root: Path, output: Path, build_one: Callable[[Path, Path], None] = build) -> list[str]:
    """Build all versions into `output`, which is replaced; return their names, the root's first.

    Parameters
    ----------
    root : Path
        Working tree of a git repository.
    output : Path
        May be ``site`` within it, where a build leaves its pages.
    build_one : callable
        Builds the site of a tree into a folder that does not exist yet.
    """
    listed = subprocess.run(["git", "tag"], cwd=root, check=True, capture_output=True, text=True).stdout.split()
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "made"
        made.mkdir()
        build_one(root, made / DEV)
        for tag in (tags := releases(listed)):
            tree = Path(name) / tag
            subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), tag], cwd=root, check=True)
            try:
                build_one(tree, made / tag[1:])
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=root, check=True)
        names = [*(tag[1:] for tag in tags), DEV]
        versions = [
            {"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []} for name in names
        ]
        (made / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
        (made / "index.html").write_text(REDIRECT.format(newest=names[0]), encoding="utf-8")
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(made, output)
    return names


if __name__ == "__main__":
    build_all(ROOT, ROOT / (sys.argv[1] if len(sys.argv) > 1 else "site"))
