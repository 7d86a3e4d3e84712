"""Pages in a headless browser."""

from __future__ import annotations

import base64
import hashlib
import html
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")


def scripted(source: str, script: str) -> str:
    """A copy of a page with one more script, which its policy is told to allow."""
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = source.replace("script-src ", html.escape(f"script-src 'sha256-{allowed}' "), 1)
    return source.replace("</body>", f"<script>{script}</script></body>", 1)


def load(source: str, folder: Path) -> str:
    """What a browser makes of a page in ``page.html`` of a folder."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the path")
    path = folder / "page.html"
    path.write_text(source, encoding="utf-8")
    quiet = ("gpu", "quic", "background-networking", "component-update", "sync")
    done = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)),
            *(f"--user-data-dir={folder / 'profile'}", "--window-size=1280,900", "--dump-dom", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    return done.stdout


def framed(source: str, script: str, folder: Path, width: int) -> str:
    """What a page in a frame of some width posts to its parent by ``parent.postMessage``."""
    (folder / "framed.html").write_text(scripted(source, script), encoding="utf-8")
    return (
        load(
            f"<iframe src='framed.html' width='{width}' height='800' style='border: 0'></iframe><p></p><script>"
            "onmessage = (event) => { document.querySelector('p').textContent = event.data; };</script>",
            folder,
        )
        .partition("<p>")[2]
        .partition("</p>")[0]
    )
