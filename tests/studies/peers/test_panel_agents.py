"""A panel of real checkpoints: tiny ones, whose tasks and ranks are of no use, which must be said and not be scored."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")

CHECKPOINTS = Path(__file__).parents[3] / "fixtures" / "checkpoints"
STUDY = """
[[eval]]
kind = "peers"
name = "council"
model = "models/text-late"
peers = ["models/text-early", {{ name = "led", model = "{interviewer}", options = {{ device = "cpu" }} }}]
memory = 1
[eval.panel]
rounds = 2
topics = ["addition"]
task_tokens = 16
answer_tokens = 16
rank_tokens = 8
[[eval.gate]]
at_least = 3.5
[[eval.gate]]
rank_within = 1
on_inconclusive = "pass"
"""


@pytest.mark.slow
def test_checkpoints_that_cannot_do_it_are_an_error_that_says_why(lab: Any) -> None:
    for name in ("text-early", "text-late"):  # which have no chat template of their own
        shutil.copytree(CHECKPOINTS / name, lab.path / "models" / name)
        (lab.path / "models" / name / "chat_template.jinja").write_text(
            "{% for m in messages %}{{ m.content }}{% endfor %}"
        )
    (lab.path / "adaptive-eval.toml").write_text(STUDY.format(interviewer=CHECKPOINTS / "interviewer"))
    result = lab.spawn("-n0", "--adaptive-eval-html=page.html")
    assert result.ret == 1
    assert lab.outcomes() == [("council-score[at-least-3.5]", "ERROR"), ("council-score[rank-within-1]", "ERROR")]
    (study,) = lab.record["interviews"]
    assert study["error"].startswith("given up in round ")
    assert "; unusable: " in study["error"]
    assert [member["name"] for member in study["members"]] == ["text-late", "text-early", "led"]
    assert all(len(member["checkpoint"]) == 64 for member in study["members"])
    assert not study["metrics"]
    calls, loads = study["costs"]["total"]["calls"], study["costs"]["loads"]
    assert 3 <= sum(loads.values()) <= 3 + calls  # one for who each is, and no more than one a call
    assert "1 of 3 in memory at once" in result.stdout.str()
    assert "given up in round " in (lab.path / "page.html").read_text()
