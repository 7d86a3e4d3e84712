"""MACEval's pictures over models, from records of models whose accuracies fall at a known level."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from climbs import climb, run
from made import several

from benchmarks import model_pictures
from benchmarks.network_agents import chance
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.records.run_files import write_record
from pytest_adaptive_eval.records.run_record import RunRecord, merged

#: Level at which each model's accuracy falls to zero, the best first.
LIMITS = {"apex": 7, "birch": 6, "cedar": 4, "dune": 3, "elm": 2}
NETWORK = {"queries": 20, "node": [{"task": "addition", "levels": 8}, {"task": "post_order", "levels": 8}]}


def accuracy(limit: int, level: int) -> float:
    return max(0.0, 1.0 - (level - 1) / (limit - 1))


class Declining(Model):
    def __init__(self, name: str) -> None:
        super().__init__(SubjectIdentity(name, name))

    def answer(self, items: list[Item]) -> list[Completion]:  # type: ignore[override]
        return [Completion(item.answer if self._knows(item) else "no") for item in items]

    def _knows(self, item: Item) -> bool:
        name = self.identity.name
        return chance(name, item.prompt) < accuracy(LIMITS[name], int(item.meta["level"]))


def of_model(day: int, name: str) -> RunRecord:
    """A run of one model: two ladders, with exact accuracies, and a network that asks it."""
    limit = LIMITS[name]
    right = [round(10 * accuracy(limit, level)) for level in range(1, limit + 1)]
    subject = {"name": name, "checkpoint": name}
    ladders = [
        climb(right, cap=8, name=task, nodeid=f"t.toml::{task}", subject=subject) for task in ("addition", "scrambled")
    ]
    record = run(day, *ladders)
    pool = ModelPool({name: partial(Declining, name)})
    account = hold_network(read_network(NETWORK, name), pool).to_json()
    record.evaluations.append(several("web", "t.toml::web", "network", name, account=account))
    return record


@pytest.fixture(scope="module")
def records() -> list[RunRecord]:
    return [of_model(day, name) for day, name in enumerate(LIMITS, 1)]


@pytest.mark.parametrize("one_file", [False, True])
def test_pictures_have_the_models_in_their_order(
    records: list[RunRecord], one_file: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [merged(records, "20310601T000000000Z-0000000a")] if one_file else records[::-1]
    paths = [tmp_path / f"{n}.json" for n in range(len(files))]
    for path, record in zip(paths, files, strict=True):
        write_record(path, record)
    model_pictures.main([*map(str, paths), "--output", str(tmp_path / "out")])
    told = capsys.readouterr().out
    for task in ("addition", "scrambled", "web: addition", "web: post_order"):
        (line,) = re.findall(rf"^{task}: (.*)$", told, re.MULTILINE)
        assert [part.split()[0] for part in line.split(", ")] == list(LIMITS)
    assert re.findall(r"^web \(energy\): (\w+)", told, re.MULTILINE) == list(LIMITS)
    assert float(re.findall(r"Pearson ([\d.]+)$", told, re.MULTILINE)[0]) == pytest.approx(0.988, abs=0.002)
    curves = ["curves-addition.svg", "curves-scrambled.svg", "curves-web--addition.svg", "curves-web--post-order.svg"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [*curves, "tasks.svg", "levels.svg", "energies.svg"]
    )
    for path in (tmp_path / "out").iterdir():
        root = ElementTree.parse(path).getroot()
        texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
        if path.name != "tasks.svg":
            assert [name for name in LIMITS if any(name in text for text in texts)] == list(LIMITS)


def test_a_curve_is_drawn_through_its_accuracies(records: list[RunRecord], tmp_path: Path) -> None:
    write_record(tmp_path / "elm.json", records[-1])
    found = model_pictures.read([tmp_path / "elm.json"])
    assert found.curves["addition"]["elm"].accuracies == (1.0, 0.0)
    picture = ElementTree.fromstring(model_pictures.curves_picture(found, "addition"))
    heights = [float(point.get("cy", "nan")) for point in picture.iter("{http://www.w3.org/2000/svg}circle")]
    assert heights[:2] == [model_pictures.TOP, model_pictures.BOTTOM]


def test_models_and_names_of_any_number_and_length_fit_into_the_pictures() -> None:
    names = [f"a-model-with-a-long-name-{n}" for n in range(1, 21)]
    curves = {name: model_pictures.Curve(name, "task", (1.0, 0.0), 1.0 + n / 10, 1) for n, name in enumerate(names)}
    energies = {"web": {name: Interval(0.5, 0.4, 0.6, 0.95, "") for name in names}}
    found = model_pictures.Found({"a-task-with-a-long-name": curves}, energies, names)
    for file, picture in model_pictures.pictures(found).items():
        root = ElementTree.fromstring(picture)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            length = model_pictures.LETTER * len(text.text or "")
            left = float(text.attrib["x"]) - {"end": length, "middle": length / 2}.get(text.get("text-anchor", ""), 0)
            if "rotate(-40" not in text.get("transform", ""):
                assert left >= 0, (file, text.text)
                assert left + length <= width, (file, text.text)
            assert float(text.attrib["y"]) < height
    points = ElementTree.fromstring(model_pictures.levels_picture(found)).iter("{http://www.w3.org/2000/svg}circle")
    marks = {(point.attrib["stroke"], point.attrib["fill"]) for point in points}
    assert len(marks) == 2 * len(model_pictures.COLOURS), "sixteen models have marks of their own"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = climb([9, 2, 0], name="<b>", subject={"name": "<script>", "checkpoint": "c"})
    write_record(tmp_path / "r.json", run(1, hostile))
    for picture in model_pictures.pictures(model_pictures.read([tmp_path / "r.json"])).values():
        assert "<script>" not in picture
        ElementTree.fromstring(picture)


def test_records_without_levels_are_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_record(tmp_path / "r.json", run(1))
    with pytest.raises(SystemExit):
        model_pictures.main([str(tmp_path / "r.json")])
    assert "neither a ladder nor a network" in capsys.readouterr().err


def test_correlations_of_tasks_are_pearsons() -> None:
    curves = {
        task: {name: model_pictures.Curve(name, task, (), area, 1) for name, area in zip("abc", areas, strict=True)}
        for task, areas in {"one": (1.0, 2.0, 4.0), "two": (2.0, 4.0, 8.0), "three": (3.0, 2.0, 1.0)}.items()
    }
    table = model_pictures.task_correlations(model_pictures.Found(curves, {}, ["a", "b", "c"]))
    assert table[0, 1] == pytest.approx(1.0)
    assert table[0, 2] == pytest.approx(np.corrcoef([1, 2, 4], [3, 2, 1])[0, 1])
