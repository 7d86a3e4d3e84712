"""Import of published data sets: proposed mappings, ids, images and presets."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import ClassVar

import pytest
from hostile_data import HOSTILE
from published_rows import PUBLISHED

from pytest_adaptive_eval.errors import ConfigError, DatasetError, Unscored
from pytest_adaptive_eval.extensions.importing.base import ImportSettings
from pytest_adaptive_eval.extensions.importing.importer import IMPORTERS, import_items
from pytest_adaptive_eval.mappings import split_list


def png(colour=(200, 30, 30)):
    image = pytest.importorskip("PIL.Image")
    data = io.BytesIO()
    image.new("RGB", (12, 12), colour).save(data, "PNG")
    return data.getvalue()


def write(folder, name, records):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(records, str):
        lines = path.suffix == ".jsonl" and isinstance(records, list)
        records = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    path.write_text(records, encoding="utf-8")
    return path


def imported(path, preset="", settings=None, **mapping):
    settings = settings or ImportSettings(**mapping)
    with import_items(str(path), settings, preset) as found:
        return found


def reason(found):
    """The commonest reason of a refusal."""
    return found.reasons()[0][1]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_form_is_understood_without_options(name, tmp_path):
    form = PUBLISHED[name]
    picture = png()
    (tmp_path / "dog.png").write_bytes(picture)
    records = form.records
    if isinstance(records, str):
        records = records.replace("{png}", base64.b64encode(picture * 3).decode())
    path = write(tmp_path, form.file, records)
    labels = None
    if "labels" in form.options:
        labels = tmp_path / "labels.lst"
        labels.write_text(form.options["labels"])
    found = imported(path, settings=ImportSettings(labels=str(labels or "")))
    item = found.items[0]
    assert found.refused == []
    assert form.question in (item.prompt or "\n".join(message["content"] for message in item.messages))
    assert len(item.choices) == form.choices
    if form.answers:
        assert (item.grader, item.answers) == (form.grader, tuple(form.answers))


def test_options_win_over_names(tmp_path):
    rows = [{"question": "Who?", "prompt": "Who is tall?", "answer": "Ann", "target": "Bo", "kind": "x"}] * 2
    item = imported(write(tmp_path, "a.jsonl", rows), question="prompt", answer="target", category=("kind",)).items[0]
    assert item.prompt.startswith("Who is tall?")
    assert (item.answer, item.category) == ("Bo", ("x",))


def test_expressions_reach_nested_values_and_constants_name_classes(tmp_path):
    rows = [{"doc": {"text": f"film {n} was {'good' if n % 2 else 'bad'}"}, "label": n % 2} for n in range(6)]
    path = write(tmp_path, "a.jsonl", rows)
    why = reason(imported(path, question="doc.text", answer="label"))
    assert re.search(r"mean 2 classes.*--set choices=.'name of 0','name of 1'.*--set counted=0", why)
    options = {"question": "Review: {doc.text}", "choices": split_list("'negative','positive'"), "counted": "0"}
    items = imported(path, **options).items
    assert items[1].prompt == (
        "Review: film 1 was good\n\nA. negative\nB. positive\n\nAnswer with the letter of the right choice."
    )
    assert (items[0].answer, items[1].answer) == ("A", "B")


def test_numbers_that_may_count_from_zero_or_one_are_asked_for(tmp_path):
    rows = [{"question": f"Which, {n}?", "options": ["p", "q", "r", "s"], "answer": 1 + n % 2} for n in range(6)]
    path = write(tmp_path, "a.jsonl", rows)
    assert "--set counted=0, or --set counted=1" in reason(imported(path))
    assert [imported(path, counted=start).items[0].answer for start in ("0", "1")] == ["B", "A"]


@pytest.mark.parametrize("mark", [int, float, bool])
def test_a_list_of_a_mark_for_each_choice_is_not_taken_for_numbers_of_choices(mark, tmp_path):
    marks = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]]
    rows = [
        {"question": f"Which, {n}?", "choices": list("pqrs"), "label": list(map(mark, row))}
        for n, row in enumerate(marks)
    ]
    path = write(tmp_path, "a.jsonl", rows)
    assert "name a choice in 0 of 3 rows only" in reason(imported(path))
    assert imported(path, answer_kind="all", counted="0").items == []


def test_numbers_that_are_places_or_texts_of_choices_are_asked_for_unless_both_are_the_same(tmp_path):
    rows = [
        {"question": "1+1?", "options": ["3", "2", "1", "0"], "answer": "2"},
        {"question": "0+1?", "options": ["3", "2", "1", "0"], "answer": "1"},
    ]
    path = write(tmp_path, "a.jsonl", rows)
    assert re.search(r"by text or by numbers from 0.*--set counted=text, or --set counted=0", reason(imported(path)))
    assert [item.answer for item in imported(path, counted="text").items] == ["B", "C"]
    rows.append({"question": "0+0?", "answer": "0"})
    same = [{**row, "options": ["0", "1", "2", "3"]} for row in rows]
    assert [item.answer for item in imported(write(tmp_path, "b.jsonl", same)).items] == ["C", "B", "A"]


def test_a_right_choice_that_always_comes_first_is_shuffled_and_stays_where_it_is(tmp_path):
    rows = [{"input": f"Pick {n}", "target_scores": {"right": 1, "x": 0, "y": 0, "z": 0}} for n in range(40)]
    first = imported(write(tmp_path, "task.json", {"name": "t", "canary": "c", "examples": rows}))
    again = imported(write(tmp_path, "more.json", {"name": "t", "canary": "c", "examples": [*rows[5:], rows[0]]}))
    assert "shuffled" in first.notes[0]
    assert {item.answer for item in first.items} == set("ABCD")
    assert all(item.choices["ABCD".index(item.answer)] == "right" for item in first.items)
    by_prompt = {item.prompt: item.answer for item in first.items}
    assert all(by_prompt[item.prompt] == item.answer for item in again.items)


def test_several_best_scores_each_count(tmp_path):
    rows = [{"input": f"Pick {n}", "target_scores": {"x": 1, "y": 1, "z": 0}} for n in range(3)]
    item = imported(write(tmp_path, "task.json", {"examples": rows})).items[0]
    assert (item.grader, item.to_json()["answer"]) == ("choice", ["A", "B"])
    assert [item.grade(text) for text in ("A", "The answer is B.", "C", "A and B")] == [1, 1, 0, 0]


def test_ids_stay_when_rows_are_added_and_repeated_names_are_told_apart_by_content(tmp_path):
    rows = [{"id": name, "question": f"{name} {n}?", "answer": "Ann"} for n, name in enumerate("abb")]
    before = {item.prompt: item.id for item in imported(write(tmp_path, "a.jsonl", rows), id="id").items}
    moved = [{"id": "c", "question": "new?", "answer": "Bo"}, *reversed(rows)]
    after = {item.prompt: item.id for item in imported(write(tmp_path, "b.jsonl", moved), id="id").items}
    assert before.items() <= after.items()
    assert sorted(name[0] for name in before.values()) == ["a", "b", "b"]
    assert len(set(before.values())) == 3
    same = [{"question": "Who?", "answer": "Ann"}] * 3
    ids = [item.id for item in imported(write(tmp_path, "c.jsonl", same)).items]
    assert ids[1:] == [f"{ids[0]}-2", f"{ids[0]}-3"]


def test_a_changed_data_set_has_another_hash(tmp_path):
    path = write(tmp_path, "a.jsonl", [{"question": "Who?", "answer": "Ann"}] * 2)
    before = imported(path).facts["files"]
    write(tmp_path, "a.jsonl", [{"question": "Who?", "answer": "Bo"}] * 2)
    assert imported(path).facts["files"] != before


def test_a_folder_of_several_splits_names_them_and_asks_for_one(tmp_path):
    write(tmp_path, "LICENSE", "MIT License\n\nCopyright")
    for split in ("test", "dev"):
        write(tmp_path, f"one_{split}.csv", f"question,A,B,answer\nOne in {split}?,x,y,A\nTwo is?,x,y,B\n")
    with pytest.raises(DatasetError, match="it has the splits test, dev: give --set split=test"):
        imported(tmp_path)
    found = imported(tmp_path, settings=ImportSettings(split="dev"))
    assert found.items[0].prompt.startswith("One in dev?")
    assert found.facts["licence"] == "MIT"


def test_several_files_are_read_as_one_data_set(tmp_path, capsys):
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli import main

    parts = [write(tmp_path, f"part-{n}.jsonl", [{"question": f"{n} + 1?", "answer": n + 1}] * 2) for n in range(3)]
    command = ["import", *map(str, parts), "-o", str(tmp_path / "sums.bank")]
    assert main([*command, "--yes"]) == 0
    bank = read_bank(tmp_path / "sums.bank")
    assert [item.answer for item in bank.items] == ["1", "1", "2", "2", "3", "3"]
    assert list(bank.report["source"]["files"]) == ["part-0.jsonl", "part-1.jsonl", "part-2.jsonl"]


def test_images_are_found_beside_the_data_and_copied_once(tmp_path):
    red, blue = png(), png((10, 10, 250))
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").write_bytes(red)
    rows = [
        {"question": "Colour?", "answer": "red", "image": "repository/pictures/a.png"},
        {
            "question": "Colour now?",
            "answer": "blue",
            "image": f"data:image/png;base64,{base64.b64encode(blue).decode()}",
        },
        {"question": "Colour again?", "answer": "red", "image": "pictures/a.png"},
        {"question": "Colour there?", "answer": "red", "image": "pictures/missing.png"},
    ]
    path = write(tmp_path, "a.jsonl", rows)
    with import_items(str(path)) as found:
        items = found.items
        stored = {item.images[0]: Path(item.image_paths[0]).read_bytes() for item in items}
    assert [item.images for item in items] == [items[0].images, items[1].images, items[0].images]
    assert set(stored.values()) == {red, blue}
    assert "missing.png" in found.refused[0][1]
    assert not Path(items[0].image_paths[0]).exists()


IMPORT_WITHOUT_CONTEXT = """
import sys, tempfile
from pytest_adaptive_eval.extensions.importing.importer import import_items
tempfile.tempdir = sys.argv[2]
found = import_items(sys.argv[1])
print(len(found.items), sum(len(item.images) for item in found.items))
if sys.argv[3] == "error":
    raise KeyError("after the import")
"""


@pytest.mark.parametrize(("image", "end"), [("a.png", "exit"), ("a.png", "error"), ("", "exit")])
def test_no_copy_of_an_image_outlives_its_import(image, end, tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    path = write(tmp_path, "a.jsonl", [{"question": "Colour?", "answer": "red", "image": image or None}])
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-c", IMPORT_WITHOUT_CONTEXT, str(path), str(tmp_path / "temporary"), end]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout.split(), list((tmp_path / "temporary").iterdir())) == (["1", str(len(image) // 5)], [])


def test_an_import_without_images_makes_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: pytest.fail("a folder was made"))
    assert len(import_items(str(write(tmp_path, "a.jsonl", [{"question": "Colour?", "answer": "red"}]))).items) == 1


def test_a_chat_keeps_its_system_message_and_gives_its_images(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "a.png"}}]
    rows = [
        {
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Who?"}],
            "answer": "Ann",
        },
        {"messages": [{"role": "user", "content": parts}], "answer": "dog"},
    ]
    first, second = imported(write(tmp_path, "a.jsonl", rows)).items
    assert [dict(message) for message in first.messages] == rows[0]["messages"]
    assert second.prompt.startswith("What is it?")
    assert len(second.images) == 1


def test_parquet_gives_the_names_of_classes(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features = {"features": {"text": {}, "label": {"names": ["bad", "good"], "_type": "ClassLabel"}}}
    table = pyarrow.table({"text": [f"film {n}" for n in range(10)], "label": [n % 2 for n in range(10)]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": features})})
    parquet.write_table(table, tmp_path / "test.parquet")
    item = imported(tmp_path / "test.parquet").items[1]
    assert item.answer == "good"
    assert "one of: bad, good" in item.prompt


def test_more_than_half_refused_needs_partial(tmp_path, capsys):
    from pytest_adaptive_eval.cli import main

    rows = [
        {"question": f"Who {n}?", "options": ["p", "q"], "answer": letter} for n, letter in enumerate(["A", "", "", ""])
    ]
    path = write(tmp_path, "a.jsonl", rows)
    given = ["--question", "question", "--answer", "answer", "--choices", "options"]
    command = ["import", str(path), "-o", str(tmp_path / "a.bank"), *given]
    assert main(command) == 4
    assert "3 of 4 records are refused, 3 because no answer" in capsys.readouterr().err
    assert main([*command, "--partial"]) == 0
    assert main([*command, "--partial"]) == 4
    assert "replace" in capsys.readouterr().err


def test_a_proposal_is_shown_and_written_when_it_is_accepted(tmp_path, capsys, monkeypatch):
    from pytest_adaptive_eval.cli import main

    rows = [{"question": f"Who {n}?", "options": ["p", "q"], "answer": "AB"[n % 2], "note": "x"} for n in range(5)]
    path, bank = write(tmp_path, "sums_test.jsonl", rows), tmp_path / "a.bank"
    for options in ([], ["--yes"], ["-o", str(bank)]):
        assert main(["import", str(path), *options]) == 4
        shown = capsys.readouterr()
        assert shown.out.count("item sums-") == 2
        assert "proposed mapping of" in shown.out
        assert "  answer = 'answer'\n" in shown.out
        assert "  note = 'x' # always the same\n" in shown.out
        assert "nothing was written: the mapping is a proposal. Accept it with -o NAME.bank --yes" in shown.err
    assert not bank.exists()
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    for said, code in (("n", 4), ("y", 0)):
        monkeypatch.setattr("builtins.input", lambda _, said=said: said)
        assert main(["import", str(path), "-o", str(bank)]) == code
        assert bank.exists() is (code == 0)


def test_a_mapping_in_a_file_writes_a_bank(tmp_path):
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli import main

    rows = [{"question": f"Who {n}?", "options": ["p", "q"], "answer": "AB"[n % 2]} for n in range(5)]
    path = write(tmp_path, "sums_test.jsonl", rows)
    lines = ['question = "question"', 'choices = ["options"]', 'answer = "answer"', 'instruction = "Letter?"']
    settings = ["--config", str(write(tmp_path, "map.toml", "\n".join(lines))), "--set", "licence=MIT"]
    assert main(["import", str(path), "-o", str(tmp_path / "a.bank"), *settings]) == 0
    bank = read_bank(tmp_path / "a.bank")
    assert (len(bank), bank.calibrated, bank.model) == (5, False, "none")
    assert bank.items[0].prompt == "Who 0?\n\nA. p\nB. q\n\nLetter?"
    source = bank.report["source"]
    assert (source["licence"], source["read"], source["refused"]) == ("MIT", 5, 0)
    assert list(source["files"]) == ["sums_test.jsonl"]


UNUSUAL = [
    "ask",
    "asked",
    "wonder",
    "aufgabe",
    "fragestellung",
    "enigma",
    "kysymys",
    "domanda",
    "kerdes",
    "otazka",
    "spørsmål",
    "fråga",
    "soru",
    "مسألة",
    "题干",
    "问题描述",
    "質問文",
    "질문",
    "vopros",
    "вопрос",
    "ερώτηση",
    "sual",
    "pitanje",
    "klausimas",
    "jautajums",
    "pytanie",
    "cwestiwn",
    "galdera",
    "spurning",
    "tanong",
    "swali",
    "umbuzo",
    "utterance_in",
    "brief",
    "mission",
    "puzzle_body",
    "item_stem_text",
    "what_is_asked",
    "u_turn_1",
    "field_7",
]


@pytest.mark.fast_rows(10)
@pytest.mark.parametrize("name", UNUSUAL)
def test_a_question_under_an_unusual_name_is_asked_or_shown_as_unused_and_never_dropped(name, tmp_path, capsys):
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli import main

    passage = [f"The harbour of town {n} froze in winter." for n in range(12)]
    rows = [{"passage": text, name: f"When did town {n} freeze?", "answer": "winter"} for n, text in enumerate(passage)]
    rows = [{**row, "answer": f"winter {n}"} for n, row in enumerate(rows)]
    path, bank = write(tmp_path, "a.jsonl", rows), tmp_path / "a.bank"
    if main(["import", str(path), "-o", str(bank), "--yes"]) == 0:  # a name of the table
        assert "When did town 0 freeze?" in read_bank(bank).items[0].prompt
        return
    shown = capsys.readouterr()
    assert f"  {name} = 'When did town 0 freeze?' # may belong to the question" in shown.out
    assert f"give --set question={name}" in shown.out.replace("'", "")
    assert not bank.exists()
    assert main(["import", str(path), "-o", str(bank), "--yes", "--set", f'question="{name}"']) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["import"], "name a file or folder"),
        (["import", "{data}", "--yes"], "the mapping is a proposal. Accept it with -o NAME.bank --yes"),
        (["import", "{data}", "-o", "x.jsonl"], "ends with .bank"),
        (["import", "{data}", "--preset", "hellaswg"], "did you mean 'hellaswag'"),
        (["import", "nothing.jsonl"], "nothing at"),
        (["import", "{data}", "--set", "question=a.["], "question 'a.[': not understood"),
        (
            ["import", "{data}", "--set", "question=missing", "--set", "answer=answer"],
            "no question at 'missing'",
        ),
    ],
)
def test_mistakes_on_the_command_line_are_told_in_a_sentence(arguments, words, tmp_path, capsys):
    from pytest_adaptive_eval.cli import main

    data = write(tmp_path, "a.jsonl", [{"question": "Who?", "answer": "Ann"}] * 2)
    assert main([argument.replace("{data}", str(data)) for argument in arguments]) == 4
    assert words in capsys.readouterr().err


def test_presets_name_their_groups_and_are_many():
    presets = [importer for importer in IMPORTERS.values() if not importer.by_source]
    assert len(presets) >= 30
    assert all(importer.summary for importer in presets)


def test_a_preset_refuses_other_data(tmp_path):
    path = write(tmp_path, "a.jsonl", [{"text": "x", "value": 1}] * 2)
    with pytest.raises(DatasetError, match="not the ones that gpqa is published with"):
        imported(path, preset="gpqa")
    with pytest.raises(ConfigError, match="not known"):
        imported(path, preset="nothing-like-it")


def test_gzipped_json_and_labels_by_id(tmp_path):
    rows = {str(n): {"question": f"Which, {n}?", "options": ["p", "q", "r"]} for n in range(3)}
    path = tmp_path / "questions.json.gz"
    path.write_bytes(gzip.compress(json.dumps(rows).encode()))
    labels = write(tmp_path, "answers.json", {"0": {"answer": "C"}, "1": {"answer": "A"}, "2": {"answer": "B"}})
    settings = ImportSettings(answer="$label.answer", labels=str(labels))
    assert [item.answer for item in imported(path, settings=settings).items] == ["C", "A", "B"]


@pytest.mark.slow
def test_hostile_data_sets_are_refused_in_bounded_memory_and_run_nothing(tmp_path):
    pytest.importorskip("pyarrow")
    program = Path(__file__).with_name("hostile_data.py")
    run = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, check=True, timeout=300)
    found = {name: rest for name, *rest in map(json.loads, run.stdout.splitlines())}
    assert found.keys() == HOSTILE.keys()
    for name, (said, megabytes, ran) in found.items():
        expected = HOSTILE[name][1]
        assert (said.startswith("refused: ") and expected in said) if expected else said == "3 items", (name, said)
        assert megabytes <= 500, (name, megabytes)
        assert not ran, name


def instance(name, text, *references, split="test"):
    tagged = [{"output": {"text": said}, "tags": ["correct"] if right else []} for said, right in references]
    return {"input": {"text": text}, "references": tagged, "split": split, "id": name}


def test_instances_of_helm_are_choices_or_accepted_answers(tmp_path):
    rows = [
        instance("id1", "Which is red?", ("sky", False), ("blood", True)),
        instance("id2", "Who wrote it?", ("Ann", True), ("Ann B", True)),
        instance("id3", "Shown before", ("a", True), split="train"),
    ]
    first, second = imported(write(tmp_path, "instances.json", rows), preset="helm-instances").items
    assert (first.id, first.answer, first.choices) == ("id1", "B", ("sky", "blood"))
    assert (second.grader, second.to_json()["answer"]) == ("exact_match", ["Ann", "Ann B"])


def test_openai_evals_take_their_grader_from_the_yaml(tmp_path):
    pytest.importorskip("yaml")
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Who?"}]
    write(tmp_path, "data/a/samples.jsonl", [{"input": chat, "ideal": "Ann"}, {"input": chat, "ideal": "Bo"}])
    write(tmp_path, "data/b/samples.jsonl", [{"input": chat, "ideal": "Ann"}])
    kinds = {"a": "evals.elsuite.basic.includes:Includes", "b": "evals.elsuite.modelgraded.classify:ModelBasedClassify"}
    for name, kind in kinds.items():
        args = f"{{samples_jsonl: data/{name}/samples.jsonl}}"
        text = f"{name}:\n  id: {name}.v0\n{name}.v0:\n  class: {kind}\n  args: {args}\n"
        write(tmp_path, f"evals/{name}.yaml", text)
    found = imported(tmp_path, preset="openai-evals")
    assert [(item.grader, item.answer, item.category) for item in found.items] == [
        ("contains", "Ann", ("a",)),
        ("contains", "Bo", ("a",)),
    ]
    assert [note for note in found.notes if "ModelBasedClassify" in note]


def test_the_hub_needs_its_package_and_tells_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match=r"pip install 'pytest-adaptive-eval\[datasets\]'"):
        imported("hf:owner/name")


def test_a_data_set_of_the_hub_is_read_by_its_package(monkeypatch):
    class Names:
        names = ("no", "yes")

    class Loaded(list[dict[str, object]]):
        features: ClassVar = {"question": object(), "label": Names()}
        info = types.SimpleNamespace(license="mit")
        _fingerprint = "f00"

    def load(name, configuration, split):
        if name == "owner/missing":
            raise ConnectionError("no route to the hub")
        assert (name, configuration, split) == ("owner/name", "main", "validation")
        return Loaded({"question": f"Is {n} red?", "label": n % 2} for n in range(4))

    fake = types.SimpleNamespace(load_dataset=load, Image=type("Image", (), {}))
    monkeypatch.setitem(sys.modules, "datasets", fake)
    found = imported("hf:owner/name:main:validation")
    assert [item.to_json()["answer"] for item in found.items[:2]] == ["no", "yes"]
    assert found.facts["licence"] == "mit"
    with pytest.raises(DatasetError, match=r"no route to the hub.*Without a network"):
        imported("hf:owner/missing")


def test_programs_are_graded_by_calls_in_the_sandbox(tmp_path):
    tests = "def check(candidate):\n    assert candidate(2) == 1.0 / 4\n    assert abs(candidate(4) - 0.0625) < 1e-6\n"
    row = {"task_id": "T/0", "prompt": "import math\n\ndef inverse(n):\n", "entry_point": "inverse", "test": tests}
    computed = {**row, "task_id": "T/1", "test": "def check(candidate):\n    assert candidate(2) == sum([1])\n"}
    found = imported(write(tmp_path, "HumanEval.jsonl", [row, computed]), preset="humaneval", settings=ImportSettings())
    (item,) = found.items
    assert "its tests compute ('sum([1])'), which is not a literal" in found.refused[0][1]
    assert (item.id, item.grader, "0.25" in item.prompt) == ("T/0", "code", False)
    try:
        right = item.grade("Here:\n```python\ndef inverse(n):\n    return math.pow(n, -2)\n```\n")
    except Unscored as error:
        pytest.skip(f"no sandbox here: {error.detail}")
    assert right == 1.0
    assert item.grade("    return 1 / n ** 2\n") == 1.0
    assert item.grade("```python\ndef inverse(n):\n    return 0.25\n```") == 0.0
    assert item.grade("I do not know.") == 0.0


def test_a_task_of_mbpp_stands_once_in_its_question(tmp_path):
    row = {"task_id": 1, "text": "Write a function to double.", "test_list": ["assert double(2) == 4"]}
    (item,) = imported(write(tmp_path, "mbpp.jsonl", [{**row, "test_setup_code": ""}]), preset="mbpp").items
    assert item.prompt.count("to double") == 1


def test_tasks_of_tools_need_their_package_and_tell_so(monkeypatch, tmp_path):
    for package in ("lm_eval", "lm_eval.tasks", "inspect_ai"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DatasetError, match="pip install lm-eval"):
        imported("lm_eval:hellaswag")
    with pytest.raises(DatasetError, match="pip install inspect-ai"):
        imported(f"inspect:{tmp_path}/a.py@quiz")


def test_a_task_of_lm_eval_is_read_by_its_loader(tmp_path, monkeypatch):
    pytest.importorskip("lm_eval")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    data = write(
        tmp_path, "rows.jsonl", [{"q": f"Which {n}?", "opts": ["p", "q", "r"], "gold": n % 3} for n in range(4)]
    )
    lines = [
        "task: our_quiz",
        "dataset_path: json",
        f"dataset_kwargs: {{data_files: {{test: {data}}}}}",
        "test_split: test",
        "output_type: multiple_choice",
        'doc_to_text: "{{q}} Answer:"',
        'doc_to_choice: "{{opts}}"',
        "doc_to_target: gold",
        "metric_list: [{metric: acc}]",
    ]
    write(tmp_path, "quiz.yaml", "\n".join(lines))
    items = imported(f"lm_eval:our_quiz@{tmp_path}").items
    assert [(item.prompt, item.answer, item.choices) for item in items[:2]] == [
        ("Which 0? Answer:", "A", ("p", "q", "r")),
        ("Which 1? Answer:", "B", ("p", "q", "r")),
    ]


def test_a_task_of_inspect_takes_the_grader_of_its_scorer(tmp_path):
    pytest.importorskip("inspect_ai")
    lines = [
        "from inspect_ai import Task, task",
        "from inspect_ai.dataset import Sample",
        "from inspect_ai.scorer import choice, model_graded_qa",
        "@task",
        "def quiz():",
        "    return Task(dataset=[Sample(input='Which?', choices=['p', 'q'], target='B', id='one')], scorer=choice())",
        "@task",
        "def judged():",
        "    return Task(dataset=[Sample(input='Who?', target='Ann')], scorer=model_graded_qa())",
    ]
    path = write(tmp_path, "tasks.py", "\n".join(lines))
    (item,) = imported(f"inspect:{path}@quiz").items
    assert (item.id, item.answer, item.choices) == ("one", "B", ("p", "q"))
    with pytest.raises(DatasetError, match="model_graded_qa, which no grader stands for"):
        imported(f"inspect:{path}@judged")


def test_a_preset_for_yes_or_no_reads_truth_values(tmp_path):
    rows = [{"question": f"is {n} red", "passage": "Text.", "answer": bool(n % 2)} for n in range(4)]
    items = imported(write(tmp_path, "dev.jsonl", rows), preset="boolq", settings=ImportSettings()).items
    assert [item.answer for item in items[:2]] == ["no", "yes"]
    assert {item.choices for item in items} == {("yes", "no")}  # whose likelihoods can be compared


def test_another_split_is_a_bank_for_the_examples_of_an_evaluation(tmp_path, capsys):
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli import main
    from pytest_adaptive_eval.items.presentation import Presentation, example_of

    for split, count in (("test", 3), ("train", 2)):
        rows = [{"question": f"{split} {n}?", "answer": f"It is <<{n}={n}>>{n}.\n#### {n}"} for n in range(count)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    banks = {}
    for split in ("test", "train"):
        output = tmp_path / f"{split}.bank"
        command = ["import", str(tmp_path), "--preset", "gsm8k", "--set", f"split={split}", "-o", str(output)]
        assert main(command) == 0
        banks[split] = read_bank(output).items
    assert [(item.prompt.partition("?")[0], item.answer) for item in banks["train"]] == [
        ("train 0", "0"),
        ("train 1", "1"),
    ]
    shown = Presentation(examples=(example_of(banks["train"][0]),)).present(banks["test"][0]).prompt
    assert shown.startswith(f"{banks['train'][0].prompt}\nAnswer: 0\n\n{banks['test'][0].prompt}")
    capsys.readouterr()
    assert main(["import", str(tmp_path), "--set", "split=dev", "-o", str(tmp_path / "c.bank")]) == 4
    assert "no data file of the split 'dev'; the names of its files have test, train" in capsys.readouterr().err
    assert main(["import", str(tmp_path), "--examples", "shots.jsonl"]) == 4
    assert "import the split for examples into a bank of its own" in capsys.readouterr().err


def test_programs_of_any_data_set_are_graded_by_the_calls_of_their_assertions(tmp_path):
    rows = [
        {
            "task": f"Write f, which adds {n}.",
            "name": "f",
            "tests": [f"assert f(1) == {n + 1}", f"assert f(2) == {n + 2}"],
        }
        for n in range(6)
    ]
    rows[4]["tests"] = ["import os\nos.remove('x')"]
    del rows[5]["name"]
    mapping = ImportSettings(
        question="task", grader="code", meta=("function=name", "calls=calls(tests, name)"), instruction=""
    )
    found = imported(write(tmp_path, "own.jsonl", rows), settings=mapping)
    assert [item.meta["function"] for item in found.items] == ["f"] * 4
    assert found.items[0].meta["calls"][1] == {"arguments": "[2]", "expected": "2"}
    assert [why for _, why in found.refused] == [
        "its tests compute (\"os.remove('x')\"), which the sandbox does not allow",
        "it has no value for calls in meta",
    ]


def test_a_preset_of_a_package_uses_its_first_form_that_fits(tmp_path):
    from pytest_adaptive_eval.extensions.importing.item_importers.benchmarks import preset

    rows = [{"text": f"Which word is {n}?", "a": "red", "b": "blue", "key": "AB"[n % 2]} for n in range(4)]
    data = write(tmp_path, "quiz.jsonl", rows)
    own = preset("own", {"forms": [{"question": "none"}, {"question": "text", "choices": ["a", "b"], "answer": "key"}]})
    (dataset,) = own.open(str(data), ImportSettings())
    assert (dataset.mapping.question, dataset.facts["ask"]) == ("text", "generation")
    with pytest.raises(ConfigError, match="forms"):
        preset("own", {"summary": "no forms"})


def test_turns_of_the_user_follow_each_other_and_a_judge_or_the_last_reference_grades(tmp_path):
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cli import main

    rows = [{"question_id": n, "category": "math", "turns": [f"What is {n} + 3?", "Double it."]} for n in range(8)]
    rows = [{**row, "reference": [f"{n + 3}", f"{2 * n + 6}"]} if n % 2 else row for n, row in enumerate(rows)]
    data = write(tmp_path, "question.jsonl", rows)
    assert main(["import", str(data), "--preset", "mt-bench", "-o", str(tmp_path / "judged.bank")]) == 0
    items = list(read_bank(tmp_path / "judged.bank").items)
    assert [(item.grader, item.prompt, item.turns) for item in items[:2]] == [
        ("judge", "What is 0 + 3?", ("Double it.",)),
        ("judge", "What is 1 + 3?", ("Double it.",)),
    ]
    assert [item.answer for item in items[:2]] == ["", "4\n\n[turn 2] 8"]
    options = ["--partial", "--yes", "--set", "grader=numeric", "-o", str(tmp_path / "coded.bank")]
    assert main(["import", str(data), *options]) == 0
    first = read_bank(tmp_path / "coded.bank").items[0]
    assert (first.id, first.answers, first.prompt) == ("1", ("8",), "What is 1 + 3?")
    assert first.turns[0].startswith("Double it.\n\n")  # the instruction stands where the answer is graded
    assert first.grade(first.transcript(["4", "It is 8."])) == 1.0
    assert first.grade(first.transcript(["8", "It is 4."])) == 0.0
