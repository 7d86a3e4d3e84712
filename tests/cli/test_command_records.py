"""The verbs about past runs: what they refuse, and that what they found survives a reader that has gone."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from climbs import bare, run

from pytest_adaptive_eval.records.run_files import write_record, write_run
from pytest_adaptive_eval.records.run_record import Administration, RunRecord


def held(day: int, **changes: Any) -> RunRecord:
    return run(day, bare(bank={"name": "q", "path": "q.jsonl", "content_hash": "b1", "scale": "s1"}, **changes))


@pytest.fixture
def records(place: Path) -> Path:
    """Two records as files, and the history of both with a good half of a month and a drop on the last two days."""
    for day in range(1, 16):
        asked = [Administration(1, "q0", "h", text="x")]
        one = held(day, theta=[2.0 + 0.01 * (day % 3)] if day < 14 else [-2.0], standard_error=[0.1], asked=1)
        one.interviews[0].administrations = asked
        write_run(place / ".adaptive-eval", one)
        if day < 3:
            write_record(place / f"r{day}.json", one)
    (place / "q.jsonl").write_text("no bank\n")
    return place


class Closed(io.TextIOWrapper):
    """A pipe whose reader has gone."""

    def __init__(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        super().__init__(os.fdopen(writer, "wb"), encoding="utf-8")


def test_a_reader_that_has_gone_changes_neither_the_code_nor_the_files(
    records, command, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch, Closed() as out:
        patch.setattr(sys, "stdout", out)
        code, *_ = command("history", "--drift", "--alert-file", "alert.json", "--json", "d.json")
    assert code == 1
    assert "ability of text fell" in json.loads(Path("alert.json").read_text())["text"]
    assert json.loads(Path("d.json").read_text())["alarms"]
    with monkeypatch.context() as patch, Closed() as out, Closed() as err:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        assert command("report", "r1.json", "--export", "responses=a.jsonl", "--markdown", "a.md")[0] == 0
        assert command("merge", "r1.json", "r2.json", "-o", "m.json")[0] in (0, 1)
        assert command("history", "--evaluation", "text", "--last", "0")[0] == 4
    assert all(Path(name).stat().st_size for name in ("a.jsonl", "a.md", "m.json"))


def test_an_alarm_lasts_until_its_level_is_accepted_by_name(records, command):
    for day in range(16, 18):
        write_run(records / ".adaptive-eval", held(day, theta=[-2.0], standard_error=[0.1], asked=1))
        assert command("history", "--drift")[0] == 1
    code, out, err = command("history", "--drift", "--accept", "latest", "--json", "d.json")
    assert code == 0
    kept = Path(".adaptive-eval/accepted-levels.jsonl")
    assert f"accepted in {kept}" in err
    line = "accepted level: ability of text from 2031-05-17 on (run "
    assert line in out
    (level,) = json.loads(Path("d.json").read_text())["accepted"]
    assert [level[name] for name in ("evaluation", "metric", "category", "started")] == [
        "text",
        "ability",
        "",
        held(17).started,
    ]
    for day in range(18, 29):
        write_run(records / ".adaptive-eval", held(day, theta=[-2.0], standard_error=[0.1], asked=1))
    assert command("history", "--drift")[0] == 0
    write_run(records / ".adaptive-eval", held(29, theta=[-6.0], standard_error=[0.1], asked=1))
    write_run(records / ".adaptive-eval", held(30, theta=[-6.0], standard_error=[0.1], asked=1))
    code, out, _ = command("history", "--drift")
    assert code == 1
    assert "fell from -2.00 (12 runs) to -6.00" in " ".join(out.split())
    kept.unlink()
    assert "fell from 2.0" in " ".join(command("history", "--drift")[1].split())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--accept", held(3).run), "is not one since a drop that alarms; name one, such as the first, "),
        (("--accept", "nothing"), "has no run 'nothing'"),
        (("--accept", "latest", "--evaluation", "other"), "nothing would be watched"),
        (("--accept", "latest", "--from", "r1.json"), "in the history's folder, and r1.json is a file"),
    ],
)
def test_a_level_that_cannot_be_accepted_is_refused_and_nothing_is_kept(records, command, arguments, reason):
    code, _, err = command("history", "--drift", *arguments)
    assert code == 4
    assert reason in " ".join(err.split())
    assert not Path(".adaptive-eval/accepted-levels.jsonl").exists()


def test_a_damaged_file_of_accepted_levels_is_named(records, command):
    Path(".adaptive-eval/accepted-levels.jsonl").write_text('{"run": "x"}\n')
    code, _, err = command("history", "--drift")
    assert code == 4
    assert "accepted-levels.jsonl, line 1: expected an accepted level" in " ".join(err.split())


def test_alarm_is_shown_when_the_service_does_not_take_the_alert(records, command, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("apprise", reason="alerts need apprise (extra alerts)")
    monkeypatch.setenv("ALERTS", "json://127.0.0.1:1/secret?retry=0")
    code, out, err = command("history", "--drift", "--webhook", "ALERTS")
    assert code == 1
    assert "ALARM: ability of text fell" in out
    assert "JSON did not take the alert: no answer" in err


def test_url_of_no_service_is_an_error_before_any_output(records, command, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("apprise", reason="alerts need apprise (extra alerts)")
    monkeypatch.setenv("ALERTS", "https://hooks.example/secret")
    code, out, err = command("history", "--drift", "--webhook", "ALERTS")
    assert (code, out) == (4, "")
    assert "the alert's URL cannot be used" in err
    assert "secret" not in err


def test_streams_that_are_closed_or_cannot_say_it(records, command, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert command("history")[0] == 0
        sys.stdout.close()
    write_run(records / ".adaptive-eval", held(20, subject={"name": "schön"}))
    raw = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
        assert command("history")[0] == 0
        assert b"sch\\xf6n" in raw.getvalue()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["history", "--drift", "--last", "2"], "--last goes with lists; leave it out"),
        (["history", "--link", "x"], "--link goes with --drift; leave it out"),
        (["history", "--compare", "r1.json", "r2.json", "--subject", "s"], "--subject is not for --compare"),
        (["history", "--flicker"], "history --flicker is gone: compare two runs"),
        (["report", "--export=studies=a"], "report --export studies is gone: read the record"),
        (
            ["report", "--export", "csv=a"],
            "'csv=a': known kinds are responses, mlflow, wandb",
        ),
        (["report", "--export", "responses"], "'responses': expected responses=PATH"),
        (["report", "--export", "mlflow=x"], "'mlflow=x': expected mlflow alone"),
        (["report", "--export", "responses=a", "--export", "responses=b"], "--export: a kind is given twice"),
        (["gate", "--rescore", "r1.json"], "gate --rescore is gone: run pytest with --adaptive-eval-model=replay:"),
        (["history", "--drift", "--evaluation", "txet"], "--evaluation txet: nothing in .adaptive-eval matches"),
        (
            ["history", "--drift", "--subject", "two", "--evaluation", "q"],
            "--evaluation q --subject two: nothing in .adaptive",
        ),
        (["report", "r1.json", "--bank", "txet=q.jsonl"], "evaluations of a bank are text; name one of them"),
        (["report", "r1.json", "--bank", "text=q.jsonl", "--bank", "text=q.jsonl"], "'text' was named before"),
        (["report", "r1.json", "--markdown", "."], ". is not a regular file, and the summary would replace it"),
        (["report", "r1.json", "--junit", ""], ". is not a regular file, and the gate report would replace it"),
        (["report", "r1.json", "--export", "responses=."], ". is not a regular file, and the answers would replace it"),
        (
            ["report", "r1.json", "--export", "responses=r1.json"],
            "--export responses r1.json is a file that is read, and would be",
        ),
        (["report", "latest", "--markdown", "run.json"], "--markdown run.json is a file that is read"),
        (
            ["report", "r1.json", "--bank", "text=q.jsonl", "--export", "responses=q.jsonl"],
            "responses q.jsonl is a file that",
        ),
        (["merge", "r1.json", "r2.json", "-o", "./r2.json"], "-o r2.json is a file that is read"),
        (["history", "--compare", "r1.json", "r2.json", "--json", "r2.json"], "--json r2.json is a file that is read"),
        (["history", "--from", "r1.json", "--json", "r1.json"], "--json r1.json is a file that is read"),
        (["history", "--drift", "--json", "run.json"], "--json run.json is a file that is read"),
        (["history", "--correlate", "g.toml", "--json", "g.toml"], "--json g.toml is a file that is read"),
    ],
)
def test_mistakes_leave_the_files_as_they_were(records, command, arguments, message):
    Path("g.toml").write_text("")
    Path("run.json").symlink_to(next(Path(".adaptive-eval/runs").glob("20310515*")))
    before = {path: path.read_bytes() for path in records.glob("*.*") if path.is_file()}
    code, _, err = command(*arguments)
    assert code == 4
    assert message in err
    assert {path: path.read_bytes() for path in before} == before


def test_a_report_shows_what_its_bank_does_not_tell(records, command):
    code, out, err = command("report", "r1.json", "--markdown", "a.md", "--export", "responses=a.CSV")
    assert code == 0
    assert "note: shown without questions: " in err
    assert "q.jsonl:1" in err
    assert out
    assert Path("a.CSV").read_text().startswith('"schema_version","run"')


@pytest.mark.parametrize("fault", ["its list", "a record"])
@pytest.mark.parametrize("verb", [("history", "--drift"), ("history",)])
def test_a_damaged_archive_raises_no_alarm(records, command, verb, fault):
    path = Path(shutil.make_archive("a", "zip", ".adaptive-eval"))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        member = next(one for one in archive.infolist() if one.filename.endswith(".json"))
        at = archive.start_dir if fault == "its list" else member.header_offset + 60 + len(member.filename)
    data[at : at + 40] = b"\xff" * 40
    path.write_bytes(data)
    code, out, err = command(*verb, "--from", "a.zip")
    if fault == "its list":
        assert (code, out) == (4, "")
        assert "a.zip is a damaged zip archive" in err
    else:
        assert "left out: a.zip!runs/2031" in err
        assert "cannot be unpacked (" in err
