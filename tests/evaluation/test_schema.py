"""JSON Schema and reference page of the settings, made from their declarations."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.tables import TOML_KEYS, EvalTable
from pytest_adaptive_eval.evaluation.toml import file_schema
from pytest_adaptive_eval.typed_tables import Table, json_schema, read_table

ROOT = Path(__file__).parents[2]
TABLES = {"peers": "PeersTable", "network": "NetworkStudyTable"}  #: Definitions of evaluations of other kinds.
EXAMPLES = sorted(path for path in ROOT.glob("examples/*/*.toml") if path.name not in ("pyproject.toml", "sweep.toml"))


def test_reference_page_and_schema_file_equal_the_declarations() -> None:
    script = runpy.run_path(str(ROOT / "docs/_build/settings_table.py"))
    remedy = "run: python docs/_build/settings_table.py"
    assert (ROOT / "docs/reference/settings.md").read_text("utf-8") == script["settings_page"](), remedy
    assert (ROOT / "docs" / "adaptive-eval.schema.json").read_text("utf-8") == script["schema_text"](), remedy


def allowed_keys(schema: dict[str, Any], definition: str) -> set[str]:
    return set(schema["$defs"][definition]["properties"])


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_examples_name_the_schema_and_have_its_keys(path: Path) -> None:
    text = path.read_text("utf-8")
    (line,) = re.findall(r"^#:schema (.*)$", text.partition("\n")[0])
    schema = json.loads((path.parent / line).read_text("utf-8"))
    for evaluation in tomllib.loads(text)["eval"]:
        assert evaluation.keys() <= allowed_keys(schema, TABLES.get(evaluation.get("kind"), "EvalTable"))
        assert evaluation.get("panel", {}).keys() <= allowed_keys(schema, "PanelTable")
        assert evaluation.get("network", {}).keys() <= allowed_keys(schema, "NetworkTable")
        assert evaluation.get("interview", {}).keys() <= allowed_keys(schema, "InterviewTable")
        assert {key for gate in evaluation.get("gate", ()) for key in gate} <= allowed_keys(schema, "GateTable")


def test_schema_has_no_null_since_toml_has_none() -> None:
    assert "null" not in json.dumps(file_schema())


def test_init_writes_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--schema", "schema.json"]) == 0
    assert json.loads(Path("schema.json").read_text()) == file_schema()
    assert [path.name for path in tmp_path.iterdir()] == ["schema.json"]
    assert main(["init", "--schema", "missing/schema.json"]) == 4


def test_help_of_the_marker_names_every_key() -> None:
    text = (ROOT / "pytest_adaptive_eval" / "plugin" / "entry.py").read_text("utf-8")
    marker = text[text.index("{MARKER}(bank") : text.index("ask its items")]
    assert {
        key for key in {*EvalTable.__struct_fields__} - {*TOML_KEYS} if not re.search(rf"\b{key}\b", marker)
    } == set()


class Inner(Table, frozen=True, kw_only=True):
    """An inner table."""

    size: int = 0


class Outer(Table, frozen=True, kw_only=True):
    """A table with others."""

    inner: Inner | None = None
    row: list[Inner] = []  # noqa: RUF012 -- msgspec copies it
    named: dict[str, Inner] = {}  # noqa: RUF012 -- as above
    shares: dict[str, float] | list[str] | None = None
    names: tuple[str, ...] = ()
    pair: tuple[float, float] = (0.0, 1.0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"iner": {}}, "here: unknown setting 'iner'; did you mean 'inner'?"),
        ({"inner": {"colour": 1}}, "here: unknown setting 'inner.colour'; known are size"),
        ({"inner": {"size": "x"}}, "here: inner.size is 'x', expected a whole number"),
        ({"inner": 3}, "here: inner is 3, expected a table"),
        ({"row": [{}, {"size": 1.5}]}, "here: row 2: size is 1.5, expected a whole number"),
        ({"row": [{}, 3]}, "here: row 2 is 3, expected a table"),
        ({"row": [{"sizes": 1}]}, "here: row 1: unknown setting 'sizes'; did you mean 'size'?"),
        ({"named": {"x": {"sizes": 1}}}, "here: unknown setting 'named.sizes'; did you mean 'size'?"),
        (
            {"shares": {"a": "b"}},
            "here: shares is {'a': 'b'}, expected a table (a number under each name) or a list (text each)",
        ),
        ({"names": ["a", 1]}, "here: names 2 is 1, expected text"),
        ({"pair": [0.5, "b"]}, "here: pair 2 is 'b', expected a number"),
        ({"inner": {"size": 2**64}}, "here: inner.size is too large: numbers in TOML have 64 bits"),
        ({"inner": None}, "here: inner is None, expected a table"),
    ],
)
def test_error_names_place_key_value_and_expected_values(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_table(Outer, data, "here")
    assert str(caught.value) == message


def test_numbers_of_numpy_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    assert read_table(EvalTable, {"bank": "b", "floor": np.float64(0.5)}, "here").floor == 0.5


def test_json_schema_of_an_optional_table_is_its_reference() -> None:
    (reference,), definitions = json_schema([Outer])
    assert reference == {"$ref": "#/$defs/Outer"}
    assert definitions["Outer"]["properties"]["inner"] == {"$ref": "#/$defs/Inner"}
    assert definitions["Outer"]["additionalProperties"] is False
