"""A whole run against a gateway: what another model answered decides no gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion

GATED = '[[eval]]\nbank = "toy.jsonl"\nbudget = "100%"\nmodel = "{url}"\n{options}\n[[eval.gate]]\nat_least = 0.6\n'


class Gateway:
    """Replies rightly as the model "m" to so many requests, and as another one from then on."""

    def __init__(self) -> None:
        self.good, self.asked = 0, 0

    def __call__(self, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        self.asked += 1
        return completion("m" if self.asked <= self.good else "spare", "right"), 200


@pytest.fixture
def gateway() -> Iterator[tuple[Gateway, str]]:
    answer = Gateway()
    with JsonServer(["m"], answer) as running:
        yield answer, f"{running.url}#m"


def prepared(lab: Any, url: str, options: str = "") -> Any:
    lab.bank(n=60)
    (lab.path / "adaptive-eval.toml").write_text(GATED.format(url=url, options=options))
    return lab.run()


def test_another_model_at_the_first_look_is_a_usage_error(lab: Any, gateway: tuple[Gateway, str]) -> None:
    result = prepared(lab, gateway[1])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert 'add accept_models = ["spare"]' in " ".join(" ".join((*result.outlines, *result.errlines)).split())
    assert gateway[0].asked == 1


def test_another_model_in_the_midst_is_an_error_and_never_a_pass(lab: Any, gateway: tuple[Gateway, str]) -> None:
    gateway[0].good = 4
    result = prepared(lab, gateway[1])
    assert [outcome for _, outcome in lab.outcomes()] == ["ERROR"]
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    statuses = [a["status"] for a in lab.record["interviews"][0]["administrations"]]
    assert statuses.count("ok") <= 3, "the answers of a batch arrive in any order"
    assert set(statuses) <= {"ok", "error"}


@pytest.mark.slow
def test_an_accepted_model_passes(lab: Any, gateway: tuple[Gateway, str]) -> None:
    result = prepared(lab, gateway[1], 'model_options = { accept_models = ["spare"] }')
    assert [outcome for _, outcome in lab.outcomes()] == ["PASS"]
    assert result.ret == pytest.ExitCode.OK
