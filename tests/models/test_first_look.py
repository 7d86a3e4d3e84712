"""Each model of a run is looked at before anything is asked, those of studies and interviewers included."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
pytest.importorskip("torch", reason="checkpoints need torch (extra hf)")
pytest.importorskip("transformers", reason="checkpoints need transformers (extra hf)")

# loaded once: an in-process run forgets the modules that it loads
from fake_server import SKILLS, PeerServer

import pytest_adaptive_eval.extensions.studies.network.kind
import pytest_adaptive_eval.extensions.studies.peers.kind
import pytest_adaptive_eval.models.endpoint.model  # noqa: F401

PANEL = """
[[eval]]
kind = "peers"
model = "{url}#dog"
peers = ["{url}#ant", {member}]
panel = {{ topics = ["birds", "fish"], rounds = 1 }}
"""
NETWORK = """
[[eval]]
kind = "network"
model = "{url}#dog"
models = {{ judge = {member} }}
[eval.network]
topology = "line"
queries = 8
supervisor = {{ model = "judge", exchanges = 1 }}
[[eval.network.node]]
task = "addition"
levels = 2
"""


def folder(lab: Any, name: str = "judge-model", config: str = '{"model_type": "llama"}') -> str:
    """A folder that looks like a checkpoint, and has no weights."""
    (lab.path / name).mkdir()
    (lab.path / name / "config.json").write_text(config)
    return name


def refused(lab: Any, text: str, message: str, *args: str) -> None:
    """The run ends with exit code 4 and one sentence, nothing is asked and no record kept."""
    (lab.path / "adaptive-eval.toml").write_text(text)
    result = lab.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = " ".join((*result.outlines, *result.errlines))
    assert told.count(message) == 1
    assert "Traceback" not in told
    assert "TOPSECRET" not in told
    assert not lab.records


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("study", [PANEL, NETWORK], ids=["panel", "network"])
@pytest.mark.parametrize(
    ("member", "message"),
    [
        ('"nowhere"', "model 'nowhere' is not known; expected an existing checkpoint folder"),
        ('"gpt-4o"', "model 'gpt-4o' is not known; write 'openai:gpt-4o' for the model of that provider"),
        ('"opanai:gpt-4o"', "did you mean 'openai:gpt-4o'?"),
        ('"ann/tiny-7B"', "run `hf download ann/tiny-7B --local-dir tiny-7B` and give 'tiny-7B'"),
        ('"judge-model"', "holds neither model.safetensors"),
        ('{{ model = "judge-model", options = {{ dtyp = "float32" }} }}', "has no option dtyp; expected "),
        ('"{url}#nobody"', "there is no model nobody"),
        ('"{url}?api_key=TOPSECRET-1#elk"', "it has a query"),
    ],
)
def test_a_mistake_in_a_member_ends_the_run_before_it_begins(lab: Any, study: str, member: str, message: str) -> None:
    folder(lab)
    with PeerServer() as server:
        refused(lab, study.format(url=server.url, member=member.format(url=server.url)), message, "-n0")


@pytest.mark.slow
def test_a_mistake_in_a_member_is_told_once_by_several_workers(lab: Any) -> None:
    member = f'{{ model = "{folder(lab)}", options = {{ dtyp = "float32" }} }}'
    with PeerServer() as server:
        refused(lab, PANEL.format(url=server.url, member=member), "has no option dtyp; expected ", "-n2")


@pytest.mark.slow
def test_each_model_of_a_panel_is_looked_at_once(lab: Any) -> None:
    with PeerServer() as server:
        study = PANEL.format(url=server.url, member=f'"{server.url}#elk"')
        text = study.replace("[[eval]]", '[[eval]]\nname = "one"') + study.replace("[[eval]]", '[[eval]]\nname = "two"')
        with PeerServer({"elk": SKILLS["elk"]}, lambda *_: None) as broken:
            refused(lab, text.replace(f"{server.url}#elk", f"{broken.url}#elk"), "HTTP 500", "-n0")
        assert server.asked["dog"] == server.asked["ant"] > 0


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "{ max_token = 8 }",
            "has no option max_token; expected serve, device, dtype, device_map, attention, compile, max_tokens",
        ),
        ("{ batch_size = 0 }", "batch_size is 0, expected a whole number of at least 1"),
        ('{ dtype = "float31" }', "dtype is 'float31', expected 'auto' or 'bfloat16' or 'float16' or 'float32'"),
        ("{ temperature = -1.0 }", "temperature is -1.0"),
    ],
)
def test_a_mistaken_option_of_a_checkpoint_ends_the_run_before_it_begins(lab: Any, options: str, message: str) -> None:
    lab.bank()
    folder(lab)
    text = f'[[eval]]\nbank = "toy.jsonl"\nmodel = "judge-model"\nmodel_options = {options}\n'
    refused(lab, text, message, "-n0")


def test_a_model_that_leads_an_interview_is_looked_at(lab: Any) -> None:
    lab.calibrated(n=40)
    lab.toy()
    folder(lab)
    text = (
        '[[eval]]\nbank = "toy.bank"\nselector = "autojudger"\n'
        'interview = { interviewer = "judge-model", options = { batch_sise = 3 } }\n'
    )
    refused(
        lab,
        text,
        "has no option batch_sise; expected serve, device, dtype, device_map, attention, compile, max_tokens",
        "-n0",
    )
    assert lab.asked == []


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ('model = "{url}#nobody"', "there is no model nobody"),
        ('model = "{url}#ant", options = {{ key_env = "NO_SUCH_KEY" }}', "key_env names the environment variable"),
        ('model = "http://127.0.0.1:9/v1#ant", options = {{ start_timeout = 0 }}', "gives no answers"),
        ('model = "{url}?api_key=TOPSECRET-1#ant"', "it has a query"),
        ('model = "judge-model"', "holds neither model.safetensors"),
        ('model = "nowhere?token=TOPSECRET-1"', "model 'nowhere' is not known"),
    ],
)
def test_a_judge_is_looked_at(lab: Any, monkeypatch: pytest.MonkeyPatch, judge: str, message: str) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    lab.bank(n=10)
    lab.toy()
    folder(lab)
    with PeerServer() as server:
        text = f'[[eval]]\nbank = "toy.jsonl"\njudge = {{ {judge.format(url=server.url)} }}\n'
        refused(lab, text, message, "-n0")
    assert lab.asked == []


def test_what_a_plugin_makes_of_a_name_is_made_before_anything_is_asked(lab: Any) -> None:
    lab.bank()
    (lab.path / "conftest.py").write_text(
        "from pytest_adaptive_eval.errors import ConfigError\n"
        "def pytest_adaptive_eval_subject(spec):\n"
        "    if spec.startswith('parrot:'):\n"
        "        raise ConfigError(f'there is no parrot {spec}')\n"
    )
    refused(lab, '[[eval]]\nbank = "toy.jsonl"\nmodel = "parrot:x"\n', "there is no parrot parrot:x", "-n0")


@pytest.mark.slow
def test_other_names_are_looked_at_beside_such_a_plugin(lab: Any) -> None:
    lab.bank()
    (lab.path / "conftest.py").write_text("def pytest_adaptive_eval_subject(spec):\n    return None\n")
    refused(lab, '[[eval]]\nbank = "toy.jsonl"\nmodel = "nowhere"\n', "model 'nowhere' is not known", "-n0")
