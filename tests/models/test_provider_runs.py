"""A model of a provider by name in a run."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from provider_dialects import DIALECTS, served_provider


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("name", ["openai", *sorted(set(DIALECTS) - {"openai"})])
def test_one_line_of_settings_gives_a_verdict(name: str, lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.bank()
    (lab.path / "adaptive-eval.toml").write_text(
        f'[[eval]]\nbank = "toy.jsonl"\nmodel = "{name}:m"\n[[eval.gate]]\nat_least = 0.6\n'
    )
    with served_provider(name, monkeypatch):
        result = lab.run()
    assert result.ret == 0, result.stderr.str()
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]
    assert f"questions to {name}:m go to http://127.0.0.1" in result.stdout.str()
