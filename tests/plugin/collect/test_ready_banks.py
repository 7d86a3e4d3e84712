"""Verdicts by a harness on a ready bank, which has ids alone."""

from __future__ import annotations

from typing import Any

import pytest

RUN = """
import json, sys
from pathlib import Path

with Path(sys.argv[2], "results.jsonl").open("w") as log:
    for number, item in enumerate(Path(sys.argv[1]).read_text().split()):
        log.write(json.dumps({"id": item, "score": float(number % 5 > 0)}) + "\\n")
"""
SIX_LINES = """
[[eval]]
bank = "ready:swe-bench-verified"
model = "harness:command"
model_options = { command = "python run.py {ids_file} {output}", parallel = 8 }
[[eval.gate]]
at_least = 0.5
"""


def test_six_lines_give_a_verdict_by_a_harness(lab: Any) -> None:
    (lab.path / "run.py").write_text(RUN)
    (lab.path / "adaptive-eval.toml").write_text(SIX_LINES)
    result = lab.run()
    assert lab.outcomes() == [("swe-bench-verified-accuracy[at-least-0.5]", "PASS")]
    (interview,) = lab.record["interviews"]
    assert (interview["bank"]["path"], interview["bank"]["name"]) == ("ready:swe-bench-verified", "swe-bench-verified")
    assert interview["asked"] < 100
    result.stdout.fnmatch_lines(["*newest of 2025-12-15*"])


def test_a_model_that_needs_texts_is_told_how_to_add_them(lab: Any) -> None:
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval(bank="ready:swe-bench-verified", budget=10)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "import FILE --ready swe-bench-verified" in " ".join(result.stderr.str().split())
