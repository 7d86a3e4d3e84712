"""The HTML report at its largest: 2 000 questions with text answers, 200 of them with a picture, in headless Chromium.

Run with ``python benchmarks/report_page.py``; needs ``chromium``, the extra ``html`` and Pillow. The pictures are so
rich that each thumbnail comes near its limit of 5 kB, and every text is about as long as a paragraph. Printed are the
page's size and how long it took to make, then the medians of 5 loads, each in a fresh browser: the end of
DOMContentLoaded since navigation began, and one search, from the input event until the page is laid out anew.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import json
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.parts import converted
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports.page import html_page

BANK, ASKED, PICTURES = 4_000, 2_000, 200
SYLLABLES = ("ka", "lo", "mi", "ne", "ru", "sa", "to", "vi", "ba", "de", "fu", "gi")
CHROMIUM = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)
MEASURE = """
addEventListener("load", () => {
  const field = document.getElementById("words"), found = {};
  found.loaded = performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd;
  const start = performance.now();
  field.value = "WORD";
  field.dispatchEvent(new Event("input"));
  document.body.getBoundingClientRect();
  found.search = performance.now() - start;
  found.count = document.getElementById("count").textContent;
  const out = document.createElement("pre");
  out.id = "measured";
  out.textContent = JSON.stringify(found);
  document.body.append(out);
});
"""


def paragraph(rng: np.random.Generator, words: int) -> str:
    """Words of one to three syllables."""
    lengths = rng.integers(1, 4, words)
    return " ".join("".join(rng.choice(SYLLABLES, int(n))) for n in lengths).capitalize() + "."


def picture(rng: np.random.Generator, path: Path) -> None:
    """A picture of 640 x 480 with detail at every scale."""
    layers = np.zeros((480, 640, 3))
    for size in (3, 8, 20, 60):
        noise = Image.fromarray(rng.integers(0, 256, (size, size, 3), dtype=np.uint8)).resize((640, 480))
        layers += np.asarray(noise, dtype=float) / 4
    Image.fromarray(layers.astype(np.uint8)).save(path, quality=92)


def largest(folder: Path) -> tuple[RunRecord, ItemBank]:
    """The record of an interview by uniform draws, and its bank."""
    rng = np.random.default_rng(1)
    names = [f"picture-{n}.jpg" for n in range(PICTURES)]
    for name in names:
        picture(rng, folder / name)
    items = [
        Item(
            id=f"item-{n:04}",
            prompt=paragraph(rng, 30),
            answer=paragraph(rng, 2),
            images=(names[n],) if n < PICTURES else (),
            formats=("image+text",) if n < PICTURES else ("text",),
            category=(f"category {n % 12}",),
            root=str(folder),
        )
        for n in range(BANK)
    ]
    order = [*range(PICTURES), *rng.choice(np.arange(PICTURES, BANK), ASKED - PICTURES, replace=False)]
    slope, intercept = rng.uniform(0.5, 2.0, BANK), rng.normal(0.0, 1.5, BANK)
    bank = ItemBank("large", [item.id for item in items], items, slope, intercept, scale="s", content_hash="c")
    asked = []
    for k, n in enumerate(rng.permutation(order)):
        left, right = BANK - k, rng.random() < 1 / (1 + np.exp(-slope[n] - intercept[n]))
        asked.append(
            Administration(
                position=k + 1,
                item=items[n].id,
                item_hash=items[n].content_hash,
                format=items[n].formats[0],
                propensity=1 / left,
                predicted=0.5,
                rest=left / 2,
                variance=left**2 / 4,
                theta_before=[1.0 - 1 / (k + 1)],
                theta_after=[1.0 - 1 / (k + 2)],
                score=float(right),
                text=paragraph(rng, 60),
                reason="drawn uniformly",
                difficulty=float(-intercept[n] / slope[n]),
                category=list(items[n].category),
            )
        )
    interview = converted(
        EvaluationRecord,
        {
            "name": "large",
            "nodeid": "large.eval.toml::large",
            "subject": {"name": "subject"},
            "bank": {"name": "large", "content_hash": "c", "scale": "s", "size": BANK, "calibrated": True},
            "policy": {"selector": "uniform", "estimator": "map"},
            "asked": ASKED,
            "scored": ASKED,
            "size": BANK,
            "statuses": {"ok": ASKED},
            "stop": "BUDGET",
            "stop_sentence": "the budget is spent",
            "theta": [1.0],
            "standard_error": [0.05],
            "accuracy": None,
            "accuracy_model": None,
            "administrations": asked,
        },
    )
    return RunRecord("benchmark", "2031-05-06T07:08:09Z", exit_status=0, evaluations=[interview]), bank


def with_measuring(page: str, word: str) -> str:
    """A copy of the page whose policy allows one more script: the one that measures."""
    script = MEASURE.replace("WORD", word)
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", html.escape(f"script-src 'sha256-{allowed}' "), 1)
    return page.replace("</body>", f"<script>{script}</script></body>", 1)


def measure(page: Path, folder: Path) -> dict[str, float | str]:
    """One load and one search in a fresh browser."""
    browser = shutil.which("chromium") or "chromium"
    profile = tempfile.mkdtemp(dir=folder)
    done = subprocess.run(
        [browser, *CHROMIUM, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout)
    assert found, "the measuring script did not run"
    result: dict[str, float | str] = json.loads(html.unescape(found[1]))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        record, bank = largest(folder)
        start = time.perf_counter()
        page = html_page(record, banks={"large": bank})
        seconds = time.perf_counter() - start
        thumbnails = [len(found) * 3 // 4 for found in re.findall(r'src="data:image/\w+;base64,([^"]+)"', page)]
        shown = page.count('<li class="q ')
        print(f"{shown} questions, {len(thumbnails)} thumbnails of {statistics.mean(thumbnails):.0f} bytes on average,")
        print(f"{max(thumbnails)} at most; {len(page.encode()) / 1e6:.2f} MB, made in {seconds:.1f} s")
        path = folder / "page.html"
        path.write_text(with_measuring(page, "rukami"), encoding="utf-8")
        found = [measure(path, folder) for _ in range(repeats)]
        for key, what in (("loaded", "DOMContentLoaded"), ("search", "search")):
            times = sorted(float(one[key]) for one in found)
            print(f"{what}: median {statistics.median(times):.0f} ms of {', '.join(f'{t:.0f}' for t in times)}")
        print(f"found by the search: {found[0]['count']}")


if __name__ == "__main__":
    main()
