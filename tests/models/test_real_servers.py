"""Real model servers answer as the checkpoint that they serve does in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_servers import CHECKPOINT, RealServer

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.models import load_subject

BANK = Path(__file__).parents[2] / "fixtures" / "banks" / "text.bank"


def test_llama_cpp_answers_as_the_local_checkpoint(llama_server: RealServer) -> None:
    pytest.importorskip("torch", reason="the local checkpoint needs torch (extra hf)")
    items = list(read_bank(BANK).items)[::6]
    local, served = load_subject(str(CHECKPOINT)), load_subject(llama_server.spec)
    assert [answer.text for answer in served.answer(items)] == [answer.text for answer in local.answer(items)]
    served.close()
