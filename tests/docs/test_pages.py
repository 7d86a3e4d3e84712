"""Each command of a page runs as it is printed, links lead somewhere, and what the code knows is current.

A page is run from top to bottom in one folder: blocks with a ``title`` become files, ``bash`` blocks are run. Comments
before a block state another exit code, ``<!-- exit 1 -->``, or why it is left out, ``<!-- not run: REASON -->``.
"""

from __future__ import annotations

import csv
import gzip
import http.server
import json
import os
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ALL = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
PAGES = [page for page in ALL if re.search(r"^```(bash|\w+ title=)", (DOCS / page).read_text("utf-8"), re.MULTILINE)]
#: Other documents with links.
BESIDE = [
    *ROOT.glob("*.md"),
    ROOT / "benchmarks/README.md",
    ROOT / "fixtures/README.md",
    *(ROOT / "examples").rglob("README.md"),
]
#: Folders whose files name pages, and such a name.
NAMING = ("pytest_adaptive_eval", "benchmarks", "tests", "fixtures", "examples", ".github")
NAMED = re.compile(r"\bdocs/[\w/-]+\.(?:md|py|json|svg|png|jpg|txt)\b")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
#: Pages that load the checkpoint; on the others its recorded answers stand in for it.
WITH_CHECKPOINT = {"tutorial.md", *(f"how-to/{name}.md" for name in ("gate-a-checkpoint", "gate-a-base-model"))}
BLOCK = re.compile(
    r"(?:<!-- *(?P<remark>[^\n]*?) *-->\n\n?)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^```",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    file: str
    exit_code: int
    left_out: str


def blocks(page: str) -> Iterator[Block]:
    """Read the fenced blocks of a page, in order."""
    for match in BLOCK.finditer((DOCS / page).read_text("utf-8")):
        remark = match["remark"] or ""
        exits, skipped = re.fullmatch(r"exit (\d)", remark), re.fullmatch(r"not run: (.+)", remark)
        yield Block(
            match["language"],
            match["text"],
            match["title"] or "",
            int(exits[1]) if exits else 0,
            skipped[1] if skipped else "",
        )


def make_project(folder: Path) -> None:
    """Write what pages call yours: questions, checkpoints, recorded answers, responses and a calibrated bank."""
    items = (ROOT / "fixtures/banks/text.items.jsonl").read_text("utf-8").splitlines()[::3]
    (folder / "questions.jsonl").write_text("\n".join(items) + "\n", "utf-8")
    (folder / "checkpoints").mkdir()
    (folder / "answers").mkdir()
    for name in ("early", "late"):
        (folder / "checkpoints" / name).symlink_to(ROOT / f"fixtures/checkpoints/text-{name}")
    with gzip.open(ROOT / "fixtures/responses/released-text.answers.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            for name in ("early", "late"):
                if row["subject"] == f"text-{name}":
                    lines = (json.dumps({"id": item, "text": text}) for item, text in row.items() if item != "subject")
                    (folder / "answers" / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    with gzip.open(ROOT / "fixtures/responses/text.csv.gz", "rt") as file:
        (folder / "responses.csv").write_text(file.read())
    (folder / "my.bank").symlink_to(ROOT / "fixtures/banks/text.bank")


class _Chat(http.server.BaseHTTPRequestHandler):
    """A chat server with recorded answers, as a page's `localhost:8000`."""

    answers: dict[str, str]

    def do_GET(self) -> None:
        self._reply({"object": "list", "data": [{"id": "my-model", "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        message = {"role": "assistant", "content": self.answers.get(prompt, "I do not know.")}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        self._reply({"id": "1", "object": "chat.completion", "model": "my-model", "choices": [choice], "usage": usage})

    def _reply(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def address(project: Path) -> Iterator[str]:
    """Address of a chat server whose answers are those recorded of the late checkpoint."""
    items = [json.loads(line) for line in (ROOT / "fixtures/banks/text.items.jsonl").read_text("utf-8").splitlines()]
    recorded = [json.loads(line) for line in (project / "answers/late.jsonl").read_text("utf-8").splitlines()]
    texts = {row["id"]: row["text"] for row in recorded}
    handler = type("Chat", (_Chat,), {"answers": {item["prompt"]: texts.get(item["id"], "") for item in items}})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run_as_printed(page: str, project: Path, address: str) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "GITHUB_"))
    }
    environment |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    for package, extra in (("transformers", "hf"), ("httpcore2", "endpoint"), ("jinja2", "html"), ("xdist", "xdist")):
        pytest.importorskip(package, reason=f"pages need {package} (extra {extra})")
    ran = 0
    for block in blocks(page):
        text = block.text.replace("http://localhost:8000", address)
        text = text.replace("cp -r examples/", f"cp -r {ROOT}/examples/")
        if page not in WITH_CHECKPOINT:
            text = re.sub(r"(?<![\w/])checkpoints/(early|late)\b", r"replay:answers/\1.jsonl", text)
        if block.file and not block.left_out:
            (project / block.file).parent.mkdir(parents=True, exist_ok=True)
            (project / block.file).write_text(text, "utf-8")
        elif block.language == "bash" and not block.left_out:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=project,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == block.exit_code, f"{page}:\n{text}\n{done.stdout}\n{done.stderr}"
            ran += 1
    assert ran or any(block.left_out for block in blocks(page)) or any(block.file for block in blocks(page))


@pytest.mark.parametrize("page", ["command.md", "api.md"])
def test_reference_pages_are_written_from_the_code(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the help of verbs is that of an installation with torch (extra hf)")
    monkeypatch.setenv("COLUMNS", "100")  # the script sets it for good
    script = runpy.run_path(str(DOCS / "_build/reference_pages.py"))
    assert (DOCS / "reference" / page).read_text("utf-8") == script["PAGES"][page](), script["WRITTEN"]


def test_list_of_pages_for_assistants_is_current_and_complete(tmp_path: Path) -> None:
    script = runpy.run_path(str(DOCS / "_build/llms_pages.py"))
    written = script["list_of_pages"]()
    assert (DOCS / "llms.txt").read_text("utf-8") == written, "run: python docs/_build/llms_pages.py"
    assert sorted(re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", written, re.MULTILINE)) == ALL
    script["write_markdown"](tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == set(ALL)
    whole = (tmp_path / "llms-full.txt").read_text("utf-8")
    assert all((DOCS / page).read_text("utf-8").strip() in whole for page in ALL)


def test_index_of_measurements_has_every_script() -> None:
    script = runpy.run_path(str(DOCS / "_build/benchmark_index.py"))
    written = (ROOT / "benchmarks/README.md").read_text("utf-8")
    assert written == script["index"](), "run: python docs/_build/benchmark_index.py"
    assert {path.name for path in (ROOT / "benchmarks").glob("*.py")} == set(re.findall(r"`(\w+\.py)`", written))


def test_drawings_are_written_by_their_script_and_shown() -> None:
    drawings = runpy.run_path(str(DOCS / "_build/drawings.py"))["DRAWINGS"]
    shown = "".join((DOCS / page).read_text("utf-8") for page in ALL)
    for name, draw in drawings.items():
        assert (DOCS / "images" / name).read_text("utf-8") == draw(), "run: python docs/_build/drawings.py"
        assert f"](../images/{name})" in shown


def test_every_page_stands_in_the_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    named = set(re.findall(r"[\w/-]+\.md", json.dumps(navigation)))
    assert named == set(ALL)


def without_code(text: str) -> str:
    """Leave out the fenced blocks of a page."""
    return re.sub(r"^( *)```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path: Path) -> list[str]:
    """Return the anchors of a page's headings, as Markdown makes them."""
    headings = re.findall(r"^#+ (.*)$", without_code(path.read_text("utf-8")), re.MULTILINE)
    return [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings]


@pytest.mark.parametrize(
    "path", [*(DOCS / page for page in ALL), *BESIDE], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_of_a_page_lead_to_a_file_and_a_heading(path: Path) -> None:
    own = anchors(path)
    assert len(own) == len(set(own)), "a link to one of two equal headings is ambiguous"
    for target, anchor in LINK.findall(without_code(path.read_text("utf-8"))):
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


def test_files_of_documents_that_others_name_exist() -> None:
    files = [
        path
        for folder in NAMING
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".toml", ".yml")
    ]
    named = {name for path in files for name in NAMED.findall(path.read_text("utf-8"))}
    assert len(named) >= 10
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_what_is_not_run_says_why() -> None:
    remarks = [block.left_out for page in PAGES for block in blocks(page) if block.left_out]
    assert all(len(remark.split()) >= 3 for remark in remarks), remarks
