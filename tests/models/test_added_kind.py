"""Kinds of models: registration by this package and by plugins, and the documented example."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.harness.settings import HarnessSettings
from pytest_adaptive_eval.extensions.logs.replay import ReplayTable
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models import built_in_kinds, load_model, resolve, subject_kinds
from pytest_adaptive_eval.models.base import Message
from pytest_adaptive_eval.models.checkpoint.placement import CheckpointSettings
from pytest_adaptive_eval.models.endpoint.settings import EndpointSettings
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.models.kinds.providers import LiteLLMSettings

PAGE = (Path(__file__).parents[2] / "docs/reference/plugins.md").read_text("utf-8")
SECTION = PAGE.partition("\n## Add a kind of model\n")[2].partition("\n## ")[0]
#: Module of the plugin that the page describes.
MODULE = "constant_subject"


#: Kinds whose options the loader has; those of `replay:` belong to the reader of the file.
DECLARED = [kind for kind in built_in_kinds() if kind.name != "replay"]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the page's module as a plugin: a file and its metadata in a folder of the import path."""
    folder = tmp_path / "installed"
    metadata = folder / f"{MODULE}-1.dist-info"
    metadata.mkdir(parents=True)
    (code,) = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
    (folder / f"{MODULE}.py").write_text(code)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[adaptive_eval.subjects]\nconstant = {MODULE}\n")
    monkeypatch.syspath_prepend(folder)
    subject_kinds.cache_clear()
    yield folder
    subject_kinds.cache_clear()
    sys.modules.pop(MODULE, None)


@pytest.mark.parametrize("kind", DECLARED, ids=lambda kind: kind.name)
def test_declared_options_are_those_of_the_loader(kind: ModelKind) -> None:
    module, _, loader = kind.model.partition(":")
    if "checkpoint" in module:
        pytest.importorskip("transformers", reason="checkpoints need transformers (extra hf)")
    if "endpoint" in module or "serving" in module:
        pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
    load = getattr(importlib.import_module(module), loader).load
    parameters = inspect.signature(load).parameters.values()
    by_name = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    if "checkpoint" in module:  # the kind itself takes this one, and starts a server for the folder
        by_name.insert(0, "serve")
    if kind.name == "replay":
        read = {*ReplayTable.__struct_fields__} - {"families"}
        assert {*kind.options} == read
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        tables = {"checkpoint": CheckpointSettings, "litellm": LiteLLMSettings, "harness": HarnessSettings}
        by_name += tables.get(kind.name, EndpointSettings).__struct_fields__
    assert sorted(kind.options) == sorted(by_name)


def test_help_lists_every_built_in_kind(pytester: pytest.Pytester) -> None:
    output = " ".join(pytester.runpytest("--help").stdout.str().split())
    for kind in built_in_kinds():
        assert f"{kind.form} ({kind.help})" in output


def test_a_folder_is_found_in_the_first_folder_that_has_it(tmp_path: Path) -> None:
    for name in ("one/model", "two/model", "two/http:"):
        (tmp_path / name).mkdir(parents=True)
    folders = [tmp_path / "empty", tmp_path / "two", tmp_path / "one"]
    kind, located = resolve("model", folders)
    assert (kind.name, located) == ("checkpoint", str(tmp_path / "two" / "model"))
    assert resolve("http://host/v1#m", folders)[0].name == "endpoint"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("http://host/v1#ant", "ant"),
        ("serve:python server.py {port}#ant", "ant"),
        ("serve:llama.cpp#model.gguf", "model.gguf"),
        ("serve:vllm serve m --port {port}", "serve:vllm serve m --port {port}"),
    ],
)
def test_a_model_of_a_server_is_called_by_the_name_in_its_text(spec: str, name: str) -> None:
    kind, located = resolve(spec)
    assert kind.model_name(located) == name


def test_a_kind_of_a_plugin_is_loaded_and_named_in_errors(plugin: Path) -> None:
    assert plugin.is_dir()
    subject = load_model("constant:yes", repeat=2)
    assert subject.generate(Item("q", "?")) == "yes yes"
    with pytest.raises(ConfigError, match=r"model 'constant:yes' has no option times; expected repeat"):
        load_model("constant:yes", times=2)
    with pytest.raises(ConfigError, match=r"replay:FILE\[#NAME\], .*constant:TEXT"):
        load_model("nothing")
    assert load_model("constant:yes", chats=True).ask([Message("user", "Who?")]).text == "yes"


def test_a_name_that_is_taken_is_refused(plugin: Path) -> None:
    module = plugin / f"{MODULE}.py"
    module.write_text(module.read_text().replace('name = "constant"', 'name = "replay"'))
    with pytest.raises(ConfigError, match="'replay' exists already; rename it"):
        load_model("constant:yes")


@pytest.mark.slow
def test_a_kind_of_a_plugin_is_known_to_toml_record_and_page(plugin: Path, pytester: pytest.Pytester) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    bank = [{"id": f"q{n}", "prompt": "?", "answer": "yes yes" if n % 2 else "no"} for n in range(20)]
    (pytester.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in bank))
    (pytester.path / "adaptive-eval.toml").write_text(
        '[[eval]]\nname = "toy"\nbank = "toy.jsonl"\nmodel = "constant:yes"\nmodel_options = { repeat = 2 }\n'
        'budget = 20\n[[eval.gate]]\nmetric = "accuracy"\nat_least = 0.3\n'
    )
    result = pytester.runpytest_inprocess(
        "--adaptive-eval", "--adaptive-eval-html=page.html", "--adaptive-eval-record=run.json"
    )
    assert result.ret == 0
    interview = json.loads((pytester.path / "run.json").read_text())["interviews"][0]
    assert interview["subject"]["name"] == "always yes yes"
    assert "always yes yes" in (pytester.path / "page.html").read_text()
