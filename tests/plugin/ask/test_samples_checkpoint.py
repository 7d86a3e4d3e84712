"""A real checkpoint that samples its answers: each has a seed of its own, and the noise is that of its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")

FIXTURES = Path(__file__).parents[3] / "fixtures"
TOML = """
[[eval]]
name = "{name}"
bank = "{bank}#addition"
model = "{model}"
model_options = {{ temperature = {temperature}, batch_size = {batch} }}
budget = 24
seed = 3
policy = "fixed-form"
samples = 2
repeat = 8

[[eval.gate]]
at_least = 0.1
"""


def answers(interview: dict[str, Any]) -> dict[tuple[str, int], str]:
    return {(a["item"], a["sample"]): a["text"] for a in interview["administrations"]}


@pytest.mark.slow
def test_sampled_answers_differ_and_greedy_ones_do_not(lab: Any) -> None:
    bank, model = FIXTURES / "banks" / "text.bank", FIXTURES / "checkpoints" / "text-mid"
    (lab.path / "adaptive-eval.toml").write_text(
        "".join(
            TOML.format(name=name, bank=bank.as_posix(), model=model.as_posix(), temperature=temperature, batch=batch)
            for name, temperature, batch in (("drawn", 0.7, 16), ("alone", 0.7, 1), ("greedy", 0.0, 16))
        )
    )
    assert lab.spawn().ret in (0, 1)
    drawn, alone, greedy = lab.record["interviews"]
    told = {gate["interview"]: gate["verdict"]["notes"] for gate in lab.record["gates"]}
    texts = answers(drawn)
    assert (drawn["asked"], len(texts), drawn["costs"]["subject"]["calls"]) == (24, 56, 56)
    assert 0.1 < np.mean([texts[item, 0] != texts[item, 1] for item, _ in texts]) < 0.9
    noise = drawn["decoding_noise"]
    assert (noise["items"], noise["answers"], noise["samples"]) == (24, 56, 2)
    assert 0.01 < noise["variance"] < 0.25
    assert 0 < noise["error"] < 0.1
    assert drawn["subject"]["decoding"] == {**greedy["subject"]["decoding"], "temperature": 0.7, "seed": 0}
    assert any("decoding noise .0" in note for note in told["drawn"])
    same = answers(alone)  # whatever else is in a batch
    common = set(texts) & set(same)
    assert len(common) > 12
    assert all(texts[key] == same[key] for key in common)
    texts = answers(greedy)
    assert all(text == texts[item, 0] for (item, _), text in texts.items())
    assert greedy["decoding_noise"]["variance"] == 0
    assert any("greedy" in note for note in told["greedy"])
    assert not any("greedy" in note for note in told["drawn"])
