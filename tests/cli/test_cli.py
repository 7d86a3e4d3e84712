"""The command: what it writes, what it says, and its exit codes."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.calibration.engines.variational import _State
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cli.command import command_parser
from pytest_adaptive_eval.cli.screen import Screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.backtest import Backtest
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS
from pytest_adaptive_eval.registry import registered

#: As it is, since the fixture `quiet` takes its place.
BEGIN = Screen.begin

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SUBJECTS, ITEMS = 24, 40


def planted(subjects=SUBJECTS, items=ITEMS, seed=1):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-1.5 * (rng.normal(size=(subjects, 1)) - rng.normal(size=items))))
    return (rng.random((subjects, items)) < p).astype(float)


def written(path, scores, subjects=None, items=None):
    """A CSV of subjects x items; NaN is an empty cell."""
    scores = np.asarray(scores)
    subjects = subjects or [f"m{s}" for s in range(len(scores))]
    items = items or [f"q{i}" for i in range(scores.shape[1])]
    rows = [["subject", *items]]
    rows += [
        [name, *("" if np.isnan(v) else f"{v:g}" for v in row)] for name, row in zip(subjects, scores, strict=True)
    ]
    Path(path).write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def matrix(place):
    return written("r.csv", planted())


def texts(path, count=ITEMS, **more):
    rows = [{"id": f"q{i}", "prompt": f"{i}?", "answer": "x", "category": ["abc"[i % 3]], **more} for i in range(count)]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


TWO = ("--model", "2pl")
QUICK = ("--model", "2pl", "--policy", "estimate", "--budget", "10%")


# The command itself


def test_the_package_is_run_as_the_command():
    command = [sys.executable, "-m", "pytest_adaptive_eval", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"pytest-adaptive-eval {__version__}\n"


def test_the_version(run):
    assert run("--version") == (0, f"pytest-adaptive-eval {__version__}\n", "")


@pytest.mark.parametrize("verb", ["plan", "gate", "report", "history", "merge"])
def test_help_shows_what_is_meant(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert "%%" not in out


def test_every_verb_has_examples_whose_options_it_takes():
    parser = command_parser()
    for verb in registered("pytest_adaptive_eval.cli.verbs", "adaptive_eval.verbs", Verb).values():
        assert verb.examples, verb.name
        for example in verb.examples:
            assert example.startswith(f"{verb.name} ") or example == verb.name
            parser.parse_args(shlex.split(example))


def test_examples_stand_at_the_end_of_a_help(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for verb in ("plan", "backtest"):
        out = run(verb, "--help")[1]
        assert out.rstrip().splitlines()[-1].startswith(f"  adaptive-eval {verb} ")


def test_a_url_in_place_of_a_variable_is_refused_and_not_shown(run, tmp_path):
    code, _, err = run("history", "--drift", "--webhook", "https://hooks.example/SECRET")
    assert code == 4
    assert "expected the name of an environment variable" in err
    assert "SECRET" not in err
    assert "--alert-file is a URL" in run("history", "--drift", "--alert-file", "https://hooks.example/SECRET")[2]


def test_a_plan_with_an_earlier_run_names_it_and_takes_fewer_questions(run, tmp_path):
    texts("q.jsonl")
    ids = [json.loads(line)["id"] for line in Path("q.jsonl").read_text().splitlines()]
    Path("main.csv").write_text(f"subject,{','.join(ids)}\nmain{',1' * 20}{',0' * (len(ids) - 20)}\n")
    code, out, _ = run("plan", "q.jsonl", "--predict-from", "main.csv")
    assert code == 0
    plain, predicted = (
        re.search(rf"{label}.*?  +(\d+)", out)
        for label in ("uniform draws", "predicted by main: 40 answers, joined by id")
    )
    assert plain is not None
    assert predicted is not None
    assert int(predicted[1]) < int(plain[1])


def test_a_plan_for_a_budget(run):
    texts("q.jsonl")
    for given, told in (("50%", "a budget of 20 questions gives"), ("30", "a budget of 30 questions gives")):
        code, out, _ = run("plan", "q.jsonl", "--budget", given)
        assert code == 0
        assert told in out
    told = run("plan", "q.jsonl")[1]
    found = re.search(r"the default budget of (\d+) questions gives .* probability (.*)", told)
    assert found is not None
    budget, chance = found.groups()
    assert 8 < int(budget) <= 40
    assert float(chance) >= 0.97


@pytest.mark.parametrize("arguments", [["--help"], ["calibrate", "--help"], ["backtest", "--help"]])
def test_help(run, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*arguments)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 90  # one choice list that argparse does not break
    if arguments[0] == "backtest":
        for name in CONTENDERS:
            assert name in out
        assert max(len(line) for line in out[out.index("policies:") :].splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Adaptive evaluation of model checkpoi"),
        ([], "show a run, and write it as"),
        (["calibrat"], "invalid choice: 'calibrat'"),
        (["calibrate"], "required: RESPONSES"),
        (["calibrate", "nowhere.csv"], "nowhere.csv does not exist"),
        (["calibrate", "r.csv", "-o", "x.txt"], "-o x.txt: a bank folder's name ends with .bank"),
        (["calibrate", "r.csv", "-o", "there.bank"], "-o there.bank exists: choose another name, or replace it ("),
        (["calibrate", "r.csv", "-o", "r.csv/x.bank"], "r.csv is not a folder that can be written to"),
        (
            ["calibrate", "r.csv", "--policy", "guess"],
            "--policy guess: known are estimate, form, decide, fixed-form, and none",
        ),
        (["calibrate", "r.csv", "--policy", ","], "--policy is empty"),
        (["calibrate", "r.csv", "--budget", "5%,abc"], "--budget 'abc': write a count such as 50 or a share"),
        (["calibrate", "r.csv", "--budget", "41"], "--budget 41: the bank has 40 items"),
        (
            ["calibrate", "r.csv", "--model", "mirt", "--set", "dimensions=0"],
            "--set: dimensions is '0', expected a whole",
        ),
        (["calibrate", "r.csv", "--model", "2pl", "--set", "dimensions=3"], "dimensions 3 goes with --model mirt"),
        (
            ["calibrate", "r.csv", "--model", "1pl", "--set", "dimensions=auto"],
            "dimensions auto goes with --model mirt",
        ),
        (
            ["calibrate", "r.csv", "--model", "mirt", "--set", "engine=svi"],
            "engine svi fits 1pl, 2pl and 3pl, not mirt",
        ),
        (["calibrate", "r.csv", "--set", "limit=0"], "--set: limit is '0', expected a whole number of at least 1"),
        (["calibrate", "r.csv", "--seed", "-1"], "--seed: '-1', expected a whole number of at least 0"),
        (["calibrate", "r.csv", "--items", "nowhere.jsonl"], "no bank at nowhere.jsonl"),
        (["calibrate", "r.csv", "--parameters", "nowhere.jsonl"], "nowhere.jsonl: not a readable JSONL of parameters"),
        (["calibrate", "r.csv", "--set", "families=nowhere.csv"], "nowhere.csv"),
        (["calibrate", "r.csv", "--set", "metric=acc"], "r.csv is read as csv, which takes orientation; leave metric"),
        (["backtest", "r.csv", "--policy", "guess"], "--policy guess: known are estimate, decide, random"),
        (["backtest", "r.csv", "--policy", "stratified"], "--policy stratified: the items have no categories"),
        (["backtest", "r.csv", "--policy", "item-total"], "backtest --policy item-total is gone: forms of papers are"),
        (["backtest", "r.csv", "--set", "confidence=95"], "backtest --set confidence is gone: bounds have a"),
        (["backtest", "r.csv", "--set", "encoder=m"], "backtest --set encoder is gone: items are placed by the"),
        (["backtest", "r.csv", "--set", "interviewer=m"], "backtest --set interviewer is gone: autojudger's"),
        (["backtest", "r.csv", "--budget", "1000"], "--budget 1000: the bank has 40 items"),
        (["backtest", "r.csv", "--splits", "0"], "--splits: '0', expected a whole number"),
        (["backtest", "r.csv", "--set", "test=23"], "24 subjects cannot give 23 to interview"),
        (["backtest", "two.csv"], "2 subjects cannot be split: four are needed, two to calibrate and two to interview"),
        (["plan", "q.jsonl", "--budget", "0.2"], "--budget '0.2': write a count such as 50 or a share"),
        (["plan", "q.jsonl", "--budget", "41"], "--budget 41: the bank has 40 items"),
        (["backtest", "r.csv", "--plot", "p.svg"], "backtest --plot is gone: write --json"),
        (["backtest", "r.csv", "--json", "no/x.json"], "--json no/x.json: no is not a folder that can be written to"),
        (["backtest", "r.csv", "--json", "folder.svg"], "--json folder.svg is a folder: name a file"),
        (["backtest", "r.csv", "--set", "stratify=s.csv"], "backtest --set stratify is gone: raise --splits"),
    ],
)
def test_mistakes_of_use(run, matrix, arguments, message):
    Path("there.bank").mkdir()
    Path("folder.svg").mkdir()
    written("two.csv", planted(subjects=2))
    texts("q.jsonl")
    code, out, err = run(*arguments)
    assert code == 4
    assert message in err
    assert out == ""
    assert err.endswith("\n")


def test_bad_input_is_told_with_its_place(run):
    Path("bad.csv").write_text("subject,q1,q2\nm1,1,0\nm2,2,0\n")
    code, _, err = run("calibrate", "bad.csv")
    assert code == 4
    assert "bad.csv, line 3, column 'q1': found '2'" in err
    Path("bad.csv").write_text("\x1b]0;title\x07,q1\nm1,1\n")
    code, _, err = run("calibrate", "bad.csv")
    assert code == 4
    assert "\x1b" not in err
    Path("bad.csv.gz").write_bytes(gzip.compress(b"subject,q1\nm1,1\n")[:-9])
    assert run("calibrate", "bad.csv.gz")[0] == 4


def test_a_device_that_is_none(run, matrix):
    pytest.importorskip("torch", reason="fits by VI need torch (extra hf)")
    code, _, err = run("calibrate", matrix, "--set", "device=abacus")
    assert code == 4
    assert "device abacus cannot be used" in err


@pytest.mark.slow
def test_a_reader_that_has_gone_is_no_error(matrix):
    given = ["calibrate", str(matrix), *TWO]
    code = f"import sys; from pytest_adaptive_eval.cli import main; sys.exit(main({given!r}))"
    command = f"{sys.executable} -c \"{code}\" | {sys.executable} -c 'pass'; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert found.stdout == "0\n"
    assert found.stderr == ""


@pytest.mark.slow
def test_the_progress_line_leaves_nothing_behind(run, matrix, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    twins = planted()
    twins[1] = twins[0]
    code, _, err = run("calibrate", written("twins.csv", twins), "-o", "b.bank", *QUICK)
    assert code == 0
    *shown, last = err.split("\r\x1b[K")
    assert last == ""  # the line was cleared before the report
    assert len(shown) > 10
    notes = [text for text in shown if text.startswith("note: ")]
    assert notes == ["note: near-duplicates: 1 subject answering nearly like another, counted as its family\n"]
    assert all(len(text) <= 29 and "\n" not in text for text in shown if text not in notes)
    _, _, err = run("calibrate", matrix, "--budget", "41")
    assert err.split("\r\x1b[K")[-1].startswith("adaptive-eval: error")


# calibrate


@pytest.mark.slow
def test_the_model_is_chosen_by_held_out_loss_and_said(run, matrix):
    code, out, err = run("calibrate", matrix, "-o", "b.bank", "--policy", "none")
    assert code == 0
    assert err.startswith("note: model 1pl; held-out loss over 24 families")
    assert "model 1pl" in out
    choice = json.loads(Path("b.bank/bank.json").read_text())["report"]["details"]["choice"]
    assert choice["model"] == "1pl"
    assert set(choice["losses"]) == {"1pl", "2pl-shrunk", "2pl", "mirt"}
    assert run("calibrate", matrix, "--model", "2pl-shrunk")[2] == ""
    few = planted()[:9]
    _, _, err = run("calibrate", written("few.csv", few), "--policy", "none")
    assert "note: model 2pl: 9 families are too few to choose one by held-out loss" in err


@pytest.mark.slow
def test_responses_become_a_bank(run, matrix):
    code, out, err = run(
        "calibrate", matrix, "-o", "new/b.bank", "--budget", "10%,25%", "--items", texts("t.jsonl"), *TWO
    )
    assert (code, err) == (0, "")
    assert "24 subjects, 40 items, 100 % of the scores are there" in out
    assert "the bank passed its checks" in out
    assert out.endswith("\n")
    assert not out.endswith("\n\n")
    bank = read_bank("new/b.bank")
    assert f"wrote new/b.bank: 40 items, scale {bank.scale}\n" in out
    assert bank.items[3].prompt == "3?"
    assert list(bank.categories[:3]) == ["a", "b", "c"]
    assert bank.subjects == tuple(f"m{s}" for s in range(SUBJECTS))
    assert bank.report["trusted"] is True
    assert bank.report["problems"] == []
    assert bank.report["textless"] is False
    assert bank.report["log_loss"]["bank"] < bank.report["log_loss"]["mean accuracy"]
    assert bank.report["details"]["engine"] == "map"
    assert "conformal intervals: 4 tables" in out
    keys = {replace(POLICIES[name], budget=b).key(bank) for name in ("estimate", "decide") for b in ("10%", "25%")}
    assert set(bank.conformal) == keys
    assert all(len(table.errors) == SUBJECTS for table in bank.conformal.values())
    assert bank.scale == read_bank("new/b.bank").scale
    before = bank.scale
    assert run("calibrate", matrix, "-o", "new/b.bank", "--replace", "--policy", "none", "--model", "1pl")[0] == 0
    assert read_bank("new/b.bank").scale != before
    assert not read_bank("new/b.bank").conformal


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bank(run, matrix):
    for name in ("a.bank", "b.bank"):
        assert run("calibrate", matrix, "-o", name, "--policy", "decide", "--budget", "10%", "--seed", "3")[0] == 0
    assert Path("a.bank/bank.json").read_bytes() == Path("b.bank/bank.json").read_bytes()


def test_without_an_output_there_is_only_the_report(run, matrix, place):
    code, out, _ = run("calibrate", matrix)
    assert code == 0
    assert "the bank passed its checks" in out
    assert "conformal" not in out  # tables are for a bank
    assert {path.name for path in place.iterdir()} == {"r.csv"}


@pytest.mark.slow
def test_a_bank_without_texts_says_so_and_cannot_be_asked(run, matrix):
    from pytest_adaptive_eval.evaluation import EvalSpec, Settings

    code, out, _ = run("calibrate", matrix, "-o", "b.bank", *QUICK)
    assert code == 0
    assert "it has no texts: a harness can be asked by its ids, and --items adds the texts" in " ".join(out.split())
    assert "it has no texts" in run("calibrate", matrix, "--items", "b.bank", "-o", "c.bank", *QUICK)[1]
    bank = read_bank("b.bank")
    assert bank.report["textless"] is True
    assert bank.items[0].prompt == ""
    with pytest.raises(ConfigError, match="without texts, so there is nothing to ask"):
        EvalSpec({"bank": "b.bank"}, "here", Path()).build(Settings(Path(), Path()))


def test_ids_that_no_bank_can_have_are_told_before_the_fit(run, monkeypatch):
    monkeypatch.setattr(Recipe, "__call__", lambda *_: pytest.fail("fitted"))
    written("r.csv", planted(), items=[f"what is {i} é?" for i in range(ITEMS)])
    code, _, err = run("calibrate", "r.csv", "-o", "b.bank")
    assert code == 4
    assert "r.csv: id 'what is 0 é?' cannot name a test" in err


@pytest.mark.slow
def test_texts_and_responses_that_do_not_meet(run, matrix):
    code, _, err = run("calibrate", matrix, "--items", texts("t.jsonl", 45))
    assert code == 0
    assert "left out: 5 items with a text and without responses" in err
    code, out, err = run("calibrate", matrix, "--items", texts("t.jsonl", 30))
    assert code == 0
    assert "left out: 10 items with responses and without a text" in err
    assert "24 subjects, 30 items" in out
    Path("t.jsonl").write_text('{"id": "other", "prompt": "?", "answer": "x"}\n')
    code, _, err = run("calibrate", matrix, "--items", "t.jsonl")
    assert code == 4
    assert "none of its items, such as 'q0', is among the items with texts, such as 'other'" in err


def noise(path="noise.csv"):
    """Responses that no model predicts: the checks refuse what is fitted to them."""
    return written(path, np.random.default_rng(2).integers(0, 2, (SUBJECTS, ITEMS)).astype(float))


def test_a_refused_bank_is_not_written(run, place):
    code, out, _ = run("calibrate", noise(), "-o", "b.bank", "--set", "limit=3", *QUICK)
    assert code == 1
    assert "REFUSED: the fit did not converge in 3 iterations" in out
    assert "nothing was written; --force writes it all the same, marked untrusted\n" in out
    assert "--uncalibrated writes the questions of the logs alone" in out
    assert {path.name for path in place.iterdir()} == {"noise.csv"}


@pytest.mark.slow
def test_force_writes_it_marked_untrusted(run):
    from pytest_adaptive_eval.evaluation import EvalSpec, Settings

    source = noise()
    code, out, _ = run(
        "calibrate", source, "-o", "b.bank", "--set", "limit=3", "--force", "--items", texts("t.jsonl"), *QUICK
    )
    assert code == 1
    assert "marked untrusted" in out
    bank = read_bank("b.bank")
    assert bank.report["trusted"] is False
    assert "did not converge" in bank.report["problems"][0]
    assert len(bank.conformal) == 1
    [note] = EvalSpec({"bank": "b.bank"}, "here", Path()).build(Settings(Path(), Path())).notes
    assert "failed its quality checks" in note


def test_published_parameters_are_checked(run, matrix):
    b = -np.log(planted().mean(axis=0).clip(0.05, 0.95) ** -1 - 1)
    for name, sign in (("bad", 1.0), ("good", -1.0)):
        rows = [{"id": f"q{i}", "difficulty": sign * float(v), "difficulty_std": 0.3} for i, v in enumerate(b)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = run("calibrate", matrix, "--parameters", "bad.jsonl", "-o", "bad.bank")
    assert code == 1
    assert "engine given: given parameters" in out
    assert "its difficulties say nothing" in out
    assert not Path("bad.bank").exists()
    code, out, err = run("calibrate", matrix, "--parameters", "good.jsonl", "-o", "good.bank")
    assert code == 0
    assert "no conformal intervals: given parameters" in err
    np.testing.assert_allclose(read_bank("good.bank").difficulty, -b)


def interrupted_at(monkeypatch, number):
    """Ctrl-C within a step of the engine, once."""
    step, calls = _State.step, []

    def stop(self, **given):
        calls.append(1)
        if len(calls) == number:
            raise KeyboardInterrupt
        return step(self, **given)

    monkeypatch.setattr(_State, "step", stop)
    return calls


def test_an_interrupted_fit_is_written_untrusted(run, matrix, monkeypatch):
    calls = interrupted_at(monkeypatch, 6)
    code, out, _ = run("calibrate", matrix, "-o", "b.bank", *QUICK)
    assert code == 2
    assert "interrupted after 5 iterations" in out
    assert "REFUSED: the fit was interrupted before it converged: run it again to the end" in out
    assert "marked untrusted" in out
    assert len(calls) == 6  # nothing is fitted after Ctrl-C
    bank = read_bank("b.bank")
    assert bank.report["trusted"] is False
    assert bank.report["details"]["interrupted"] is True
    assert not bank.conformal


@pytest.mark.slow
def test_an_interrupted_fit_takes_nobodys_place(run, matrix, monkeypatch):
    assert run("calibrate", matrix, "-o", "b.bank", *QUICK)[0] == 0
    before = Path("b.bank/bank.json").read_bytes()
    interrupted_at(monkeypatch, 6)
    code, out, _ = run("calibrate", matrix, "-o", "b.bank", "--replace", *QUICK)
    assert code == 2
    assert "nothing was written" in out
    assert Path("b.bank/bank.json").read_bytes() == before


@pytest.mark.slow
def test_ctrl_c_after_the_fit_writes_nothing(run, matrix, monkeypatch):
    with monkeypatch.context() as patch:
        calls = interrupted_at(patch, 10**9)
        assert run("calibrate", matrix)[0] == 0
    interrupted_at(monkeypatch, len(calls) - 2)  # in a fit of the checks
    code, out, err = run("calibrate", matrix, "-o", "b.bank", *QUICK)
    assert (code, out) == (2, "")
    assert "interrupted; nothing was written" in err
    assert not Path("b.bank").exists()


@pytest.mark.slow
def test_dimensions_by_held_out_likelihood(run, matrix):
    code, out, err = run("calibrate", matrix, "--model", "mirt", "--set", "dimensions=auto")
    assert code == 0
    assert "for dimensions = auto; held-out loss by dimensions: 1: ." in err.replace("1: 0.", "1: .")
    chosen = err.split("note: ")[-1].split(" ")[0]
    assert f"model mirt, {chosen} dimension" in out
    assert "model mirt, 2 dimensions" in run("calibrate", matrix, "--model", "mirt", "--set", "dimensions=2")[1]


def test_one_subject_is_too_few(run):
    code, _, err = run("calibrate", written("one.csv", planted(1)))
    assert code == 4
    assert "one subject, 'm0'" in err
    assert run("backtest", "one.csv")[0] == 4


@pytest.mark.slow
def test_items_right_for_everybody_are_kept_and_told(run):
    scores = planted()
    scores[:, 5], scores[:, 6] = 1.0, 0.0
    code, out, _ = run("calibrate", written("r.csv", scores), "-o", "b.bank", *QUICK)
    assert code == 0
    assert "warning: 2 of 40 items: right for everybody, or wrong for everybody; kept, with little information" in out
    bank = read_bank("b.bank")
    assert "q5" in list(bank.ids)
    assert np.isfinite(bank.discrimination).all()
    assert np.isfinite(bank.intercept).all()
    assert bank.intercept[5] > 0 > bank.intercept[6]
    assert bank.report["extreme"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_responses_that_are_all_alike_are_refused(run, constant):
    code, out, _ = run("calibrate", written("r.csv", np.full((12, 10), constant)), "--set", "limit=50")
    assert code == 1
    assert "REFUSED" in out


@pytest.mark.slow
def test_a_bank_in_place_of_responses(run, matrix):
    assert run("calibrate", matrix, "-o", "b.bank", "--policy", "none")[0] == 0
    code, _, err = run("calibrate", "b.bank")
    assert code == 4
    assert "b.bank is a bank, which holds questions and parameters; give the responses to it" in err
    code, _, err = run("calibrate", texts("t.jsonl"))
    assert code == 4
    assert "neither its name nor its beginning says a format" in err


@pytest.mark.slow
def test_too_few_subjects_for_conformal_intervals_are_told(run):
    _, _, err = run("calibrate", written("r.csv", planted(3)), "-o", "b.bank", "--force", *QUICK)
    assert "no conformal intervals: 4 families of subjects are needed for 80 %, 9 for 90 %, and these are of 3" in err
    assert not read_bank("b.bank").conformal
    _, _, err = run("calibrate", written("r.csv", planted(6)), "-o", "b.bank", "--force", "--replace", *QUICK)
    assert "conformal intervals up to 85 % only: 9 families" in err
    Path("f.csv").write_text("subject,family\n" + "".join(f"m{s},run-{s % 3}\n" for s in range(SUBJECTS)))
    _, _, err = run("calibrate", written("r.csv", planted()), "-o", "c.bank", "--set", "families=f.csv", *QUICK)
    assert "and these are of 3; gates use design-based intervals" in err


@pytest.mark.slow
def test_sparse_responses(run):
    scores = planted(40, 30)
    scores[np.random.default_rng(1).random(scores.shape) < 0.7] = np.nan
    scores[1:, 3] = np.nan  # one response: some folds have none
    scores[0, 3] = 1.0
    scores[:, 4] = np.nan
    code, out, err = run("calibrate", written("r.csv", scores), "-o", "b.bank", "--force", *QUICK)
    assert code in (0, 1)
    assert "note: left out: 1 item without a response" in err
    assert "40 subjects, 29 items" in out
    assert len(read_bank("b.bank").conformal) == 1
    assert run("backtest", "r.csv", "--splits", "2", "--jobs", "1", "--budget", "20%")[0] == 0


def test_more_dimensions_than_subjects_are_a_mistake_of_use(run, matrix):
    code, _, err = run("calibrate", matrix, "--model", "mirt", "--set", f"dimensions={SUBJECTS}")
    assert code == 4
    assert f"dimensions {SUBJECTS}: r.csv has {SUBJECTS} subjects, and there must be more of them" in err


@pytest.mark.slow
def test_responses_that_fall_apart_are_refused(run, place):
    scores = planted(60)
    scores[:30, :20] = scores[30:, 20:] = np.nan
    code, out, _ = run("calibrate", written("parts.csv", scores), "--policy", "none")
    assert code == 1
    assert "REFUSED: its items fall into 2 parts, and no subject has answered items" in " ".join(out.split())


@pytest.mark.slow
def test_copies_of_a_few_are_refused(run, place):
    rng = np.random.default_rng(5)
    scores = np.repeat((rng.random((4, 80)) < 0.6).astype(float), 10, axis=0)
    scores = np.where(rng.random(scores.shape) < 0.02, 1.0 - scores, scores)
    code, out, err = run("calibrate", written("copies.csv", scores))
    assert code == 1
    assert "near-duplicates: 36 subjects answering nearly like another" in err
    assert "half of the items have fewer than 5 subjects, near-copies counted once" in " ".join(out.split())


@pytest.mark.slow
def test_the_fixtures_are_calibrated(run):
    responses, items = FIXTURES / "responses/text.csv.gz", FIXTURES / "banks/text.items.jsonl"
    code, out, _ = run("calibrate", responses, "--items", items, "-o", "t.bank", "--policy", "none")
    assert code == 0
    assert "52 subjects, 624 items" in out
    assert read_bank("t.bank").content_hash == read_bank(items).content_hash


# backtest

FAST = ("--model", "2pl", "--splits", "2", "--jobs", "1", "--budget", "5%,20%")


@pytest.mark.slow
def test_a_backtest_prints_a_table(run, matrix):
    code, out, err = run("backtest", matrix, *FAST, "--json", "t.json", "--seed", "2")
    assert (code, err) == (0, "")
    assert "40 items, the mean of 2 splits" in out
    assert out.endswith("\n")
    data = json.loads(Path("t.json").read_text())
    assert data.keys() == {"items", "splits", "confidence", "rows", "smallest_budget", "complete"}
    assert data["complete"] is True
    assert [(row["policy"], row["budget"], row["items"]) for row in data["rows"]] == [
        (name, budget, items)
        for name in ("estimate", "random", "maximum-information")
        for budget, items in (("5%", 2), ("20%", 8))
    ]
    for row in data["rows"]:
        assert row.keys() == {
            *("policy", "budget", "items", "ranking_accuracy", "ranking_accuracy_se", "ranking_accuracy_spread"),
            *("spearman", "mean_absolute_error", "intervals"),
        }
        assert 0 <= row["ranking_accuracy"] <= 100
        assert list(row["intervals"]) == (["model-based"] if row["policy"] != "random" else [])
    assert data["smallest_budget"]["random"].keys() == {"85", "90"}
    run("backtest", matrix, *FAST, "--json", "again.json", "--seed", "2")
    assert Path("again.json").read_bytes() == Path("t.json").read_bytes()


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(run, matrix):
    for jobs in ("1", "2"):
        code, _, _ = run(
            "backtest", matrix, "--splits", "3", "--jobs", jobs, "--budget", "10%", "--json", f"{jobs}.json"
        )
        assert code == 0
    assert Path("1.json").read_bytes() == Path("2.json").read_bytes()


@pytest.mark.slow
def test_an_error_in_a_process_ends_the_others(run, matrix, monkeypatch):
    from multiprocessing import active_children

    from pytest_adaptive_eval.extensions.backtests.verbs import backtest as module

    monkeypatch.setattr(module, "_names", lambda *_: ["no-such"])
    with pytest.raises(KeyError):
        run("backtest", matrix, "--splits", "2", "--jobs", "2")
    assert not active_children()


@pytest.mark.slow
def test_all_policies_but_those_that_cannot_be(run, matrix):
    code, out, err = run("backtest", matrix, "--splits", "1", "--jobs", "1", "--budget", "10%", "--policy", "all", *TWO)
    assert code == 0
    assert err == "note: left out: stratified: the items have no categories; give --items with texts that have some\n"
    assert "stratified" not in out
    assert all(name in out for name in CONTENDERS if name != "stratified")
    for policy in ("all", "stratified"):
        code, out, err = run("backtest", matrix, *FAST, "--policy", policy, "--items", texts("t.jsonl"))
        assert (code, err) == (0, "")
        assert "stratified" in out
    code, _, err = run("backtest", matrix, "--items", texts("t.jsonl", category=[]), "--policy", "stratified")
    assert code == 4
    Path("t.jsonl").write_text('{"id": "other", "prompt": "?", "answer": "x"}\n')
    code, _, err = run("backtest", matrix, "--items", "t.jsonl")
    assert code == 4
    assert "--items t.jsonl: no text for any item, such as 'q0'" in err


@pytest.mark.slow
def test_intervals_in_a_backtest(run):
    source = written("r.csv", planted(50))
    code, out, err = run("backtest", source, *FAST, "--policy", "estimate,decide", "--intervals")
    assert (code, err) == (0, "")
    assert all(name in out for name in ("model-based", "design-based", "conformal", "combined"))
    code, out, err = run("backtest", source, *FAST, "--policy", "decide", "--intervals", "--set", "test=40")
    assert code == 0
    assert "left out: conformal intervals, for which 10 subjects are too few" in err
    assert "conformal" not in out


def test_responses_in_formats_are_interviewed_in_the_fullest_one(run):
    whole = planted(12, 10)
    rows = ["subject,item,format,score"]
    rows += [f"m{s},q{i},image+text,{whole[s, i]:.0f}" for s in range(12) for i in range(10)]
    rows += [f"m{s},q{i},text,0" for s in range(12) for i in range(10)]
    Path("f.csv").write_text("\n".join(rows) + "\n")
    few = ("--splits", "2", "--jobs", "1", "--budget", "50%", "--policy", "random", "--model", "2pl")
    code, out, err = run("backtest", "f.csv", *few)
    assert (code, err) == (0, "note: of the responses in formats, the ones to image+text are interviewed\n")
    assert out == run("backtest", written("w.csv", whole), *few)[1]


def test_responses_that_are_all_alike_rank_nobody(run):
    written("r.csv", np.ones((12, 10)))
    code, _, _ = run("backtest", "r.csv", *FAST, "--policy", "random", "--json", "t.json")
    assert code == 0
    assert json.loads(Path("t.json").read_text())["rows"][0]["ranking_accuracy"] is None


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupted_backtests_keep_the_splits_that_ended(run, matrix, monkeypatch, jobs):
    merge = Backtest.merge

    def merge_once(self, other):
        if self.splits == 2:
            raise KeyboardInterrupt
        merge(self, other)

    monkeypatch.setattr(Backtest, "merge", merge_once)
    few = ("--model", "2pl", "--budget", "5%,20%", "--policy", "random,maximum-information")
    code, out, err = run("backtest", matrix, *few, "--splits", "5", "--jobs", jobs, "--json", "t.json")
    assert (code, err) == (2, "adaptive-eval: interrupted; the results are of 2 of 5 splits\n")
    assert "the mean of 2 splits" in out
    table = json.loads(Path("t.json").read_text())
    assert (table["splits"], table["complete"]) == (2, False)
    run("backtest", matrix, *few, "--splits", "2", "--jobs", "1", "--json", "both.json")
    assert json.loads(Path("both.json").read_text())["rows"] == table["rows"]


def test_results_are_kept_after_every_split(run, matrix, monkeypatch):
    saved = []
    merge = Backtest.merge

    def merge_noted(self, other):
        saved.append(json.loads(Path("t.json").read_text()))
        merge(self, other)

    monkeypatch.setattr(Backtest, "merge", merge_noted)
    few = ("--model", "2pl", "--splits", "3", "--jobs", "1", "--budget", "20%", "--policy", "random")
    assert run("backtest", matrix, *few, "--json", "t.json")[0] == 0
    assert [(table["splits"], table["complete"]) for table in saved] == [(1, False), (2, False)]


def test_progress_is_told_without_a_terminal(run, matrix, monkeypatch):
    monkeypatch.setattr("pytest_adaptive_eval.cli.screen.INTERVAL", 0.0)
    _, _, err = run("backtest", matrix, *FAST, "--policy", "random")
    assert err.splitlines()[-2:] == ["interviewing, split 1 of 2", "interviewing, split 2 of 2"]


def test_backtests_tell_at_once_that_they_began(run, matrix, monkeypatch):
    monkeypatch.setattr(Screen, "begin", BEGIN)
    _, _, err = run("backtest", matrix, *FAST, "--policy", "random")
    assert err.splitlines()[0] == f"reading {matrix}"


def test_interrupted_backtests_write_nothing(run, matrix, monkeypatch):
    interrupted_at(monkeypatch, 5)
    code, out, err = run("backtest", matrix, *FAST, "--json", "t.json")
    assert (code, out) == (2, "")
    assert "interrupted; nothing was written" in err
    assert not Path("t.json").exists()
