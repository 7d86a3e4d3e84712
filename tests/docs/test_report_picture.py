"""The script that photographs the report: its two pages are of a checkpoint that passes and of one that does not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the pictures are of checkpoints (extra hf)")
pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
pytest.importorskip("PIL", reason="pictures need pillow")
SCRIPT = Path(__file__).parents[2] / "docs" / "_build" / "picture_report.py"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_both_pages_have_their_verdict_theme_and_history(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("picture_report", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    pages: dict[str, str] = {}
    monkeypatch.setattr(script, "LATE", range(1, 3))
    monkeypatch.setattr(script, "REGRESSED", range(13, 14))
    monkeypatch.setattr(script, "photograph", lambda page, path, _folder: pages.setdefault(path.name, page))
    script.main()
    assert [*pages] == ["report-light.png", "report-dark.png"]
    for name, title in (("report-light.png", "Not to be promoted"), ("report-dark.png", "May be promoted")):
        page = pages[name]
        assert f"<title>{title}: " in page
        assert f'data-theme="{name[7:-4]}"' in page
        assert 'id="history"' in page
        assert "<img src" in page, "questions have their pictures"
