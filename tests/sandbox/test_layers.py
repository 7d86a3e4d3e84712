"""Each layer is needed: without it the self-check refuses, or a program gets through."""

from __future__ import annotations

from pathlib import Path

import pytest
from layers import PROGRAMS_WITHOUT, doubled, without

from pytest_adaptive_eval.errors import SandboxUnavailable
from pytest_adaptive_eval.extensions.sandbox import Sandbox
from pytest_adaptive_eval.extensions.sandbox.runner import LAYERS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("layer", [*sorted(LAYERS), "deadline", "size"])
def test_a_missing_layer_is_noticed(sandbox: Sandbox, layer: str) -> None:
    if layer in doubled(sandbox.tier) or layer not in {*sandbox.layers, "deadline", "size"}:
        pytest.skip("another layer does it too, or it is not part of the tier")
    noticed = without(sandbox.tier, layer)[layer]
    programs = PROGRAMS_WITHOUT.get((sandbox.tier, layer), ())
    assert noticed
    if layer not in ("deadline", "size"):
        assert noticed[0].startswith("self-check: ")
        assert set(programs) <= set(noticed), noticed


def test_a_process_that_is_not_locked_up_gets_no_code(best: Sandbox) -> None:
    run = Sandbox(best.tier, best.layers - {"seccomp"}).call("def f(): return 1", "f", [[]])
    assert (run.status, run.outputs) == ("sandbox_error", ())
    assert "Seccomp is 0" in run.detail
    assert "fork gives error 0" in run.detail


def test_code_that_gets_through_is_noticed(best: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_adaptive_eval.extensions.sandbox import probe, runner

    monkeypatch.setattr(Sandbox, "_faults", lambda self, report: [])
    Sandbox(best.tier, best.layers).check()
    with pytest.raises(SandboxUnavailable, match="'fork'"):
        Sandbox(best.tier, best.layers - {"seccomp"}).check()
    assert probe.__file__.startswith(str(Path(runner.__file__).parent))
