"""A first run has no baseline: a notice, a new baseline, or a failure, and never a promotion."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

PAIRED = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", budget=200, seed=3)
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", not_worse_than="baseline", margin=0.1)
def test_paired(adaptive_eval):
    assert adaptive_eval.verdicts
"""
ABLE = """
@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_able(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def project(lab: Any, *, able: bool = True, tenths: int = 9) -> None:
    lab.bank(n=300)
    lab.toy(tenths, identity=f'"toy", "hash{tenths}"')
    lab.tests(PAIRED + (ABLE if able else ""))


def verdict(lab: Any, name: str = "test_paired") -> dict[str, Any]:
    (found,) = [gate["verdict"] for gate in lab.record["gates"] if gate["name"] == name]
    return found


def test_warnings_alone_are_told_to_those_who_want_quiet(lab: Any) -> None:
    project(lab)
    told = [line for line in lab.run("-q").outlines if line.startswith("adaptive-eval:")]
    assert told
    assert all("WARNING" in line for line in told)


@pytest.mark.slow
def test_a_first_run_is_told_and_passes_by_its_other_gate(lab: Any) -> None:
    project(lab)
    result = lab.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["adaptive-eval: WARNING: toy: no baseline*"])
    found = verdict(lab)
    assert (found["outcome"], found["notice"], found["interval"]) == ("INCONCLUSIVE", True, None)
    assert found["sentence"].startswith("INCONCLUSIVE no baseline yet for accuracy less that of baseline >= -.10")
    assert verdict(lab, "test_able")["notice"] is False
    # asked in full, although the other gate was decided long before: the next run has something to compare with
    assert lab.record["interviews"][0]["asked"] == 200
    assert any("can serve as a baseline" in note for note in found["notes"])


def test_a_climb_without_a_baseline_does_not_say_that_all_was_asked(lab: Any) -> None:
    lab.pytester.makeconftest(
        """
        import pytest

        class Dull:
            def generate(self, prompt):
                return "-1"

        @pytest.fixture(scope="session")
        def model():
            return Dull()
        """
    )
    gate = '[[eval.gate]]\nmetric = "auc"\nnot_worse_than = "baseline"\nmargin = 0.5\n'
    (lab.path / "adaptive-eval.toml").write_text(f'[[eval]]\ntask = "addition"\nqueries = 5\nlevels = 3\n{gate}')
    lab.run()
    assert lab.record["interviews"][0]["asked"] == 5, "no answer is right, so that the first level ends it"
    found = lab.record["gates"][0]["verdict"]
    assert found["notice"] is True
    assert not any("whole budget" in note for note in found["notes"])


@pytest.mark.slow
def test_no_gate_that_passes_means_no_run_that_passes(lab: Any) -> None:
    project(lab, able=False)
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*= 2 passed in *", "*no gate gave PASS, and one had no baseline*-missing-baseline=record*"], consecutive=True
    )
    assert lab.record["exit_status"] == 1


MISSPELT = [
    (["--adaptive-eval-baseline=mian.json"], ""),
    (["--adaptive-eval-baseline=mian"], ""),
    (["--adaptive-eval-baseline=mian.csv#late"], ""),
    (["--adaptive-eval-baseline=replay:mian.jsonl"], ""),
    (["--adaptive-eval-baseline=mian.json", "--adaptive-eval-missing-baseline=warn"], ""),
    (["--adaptive-eval-baseline=mian.json", "-n2"], ""),
    ([], "adaptive_eval_baseline = mian.zip"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "setting"), MISSPELT, ids=lambda value: " ".join(value) if value else "-")
def test_a_baseline_that_is_named_and_not_there_is_a_mistake_before_any_question(
    lab: Any, flags: list[str], setting: str
) -> None:
    project(lab)
    (lab.path / "main.json").write_text("{}")
    if setting:
        lab.ini(setting)
    result = lab.run(*flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = result.stderr.str() + result.stdout.str()
    assert "no baseline at" in told
    assert "mian" in told
    assert "--adaptive-eval-missing-baseline=record" in told
    assert not (lab.path / ".adaptive-eval" / "runs").exists()


@pytest.mark.parametrize("content", ["", "{", "{}", "version https://git-lfs.github.com/spec/v1\n"])
def test_a_baseline_that_cannot_be_read_is_a_mistake_also_where_no_gate_compares(lab: Any, content: str) -> None:
    project(lab)
    lab.tests(PAIRED.partition("@pytest.mark.adaptive_gate")[0] + ABLE)
    (lab.path / "main.json").write_text(content)
    result = lab.run("--adaptive-eval-baseline=main.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "main.json" in result.stderr.str() + result.stdout.str()


@pytest.mark.slow
def test_a_first_run_with_no_other_gate_keeps_its_record_and_the_next_compares(lab: Any) -> None:
    project(lab, able=False)
    flags = ("--adaptive-eval-baseline=main/base.json", "--adaptive-eval-missing-baseline=record")
    result = lab.run(*flags)
    assert result.ret == 1, "there was nothing to compare with"
    result.stdout.fnmatch_lines(["new baseline: main/base.json", "*the next run is compared with it*"])
    lab.toy(10, identity='"toy", "hash10"')
    assert lab.run(*flags).ret == 0
    assert verdict(lab)["outcome"] == "PASS"
    assert not any("did not pass" in note for note in verdict(lab)["notes"]), "a first run is no run that failed"


@pytest.mark.slow
def test_a_gate_that_stays_open_is_none_that_passes(lab: Any) -> None:
    project(lab, able=False)
    lab.tests(PAIRED + ABLE.replace("at_least=0.5", "at_least=0.9, on_inconclusive='pass'"))
    assert lab.run().ret == 1
    assert verdict(lab, "test_able")["outcome"] == "INCONCLUSIVE"
    assert lab.record["exit_status"] == 1


@pytest.mark.slow
def test_workers_agree(lab: Any) -> None:
    project(lab)
    assert lab.spawn("-n2").ret == 0
    assert verdict(lab)["notice"] is True


def test_a_missing_baseline_may_fail(lab: Any) -> None:
    project(lab)
    result = lab.run("--adaptive-eval-missing-baseline=fail")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_paired: no baseline: name one" in result.stderr.str()
    lab.ini("adaptive_eval_missing_baseline = fail")
    assert lab.run().ret == pytest.ExitCode.USAGE_ERROR
    lab.ini("adaptive_eval_missing_baseline = never")
    assert "expected warn, record, fail" in lab.run().stderr.str()


def test_a_gate_that_names_a_file_wants_that_file(lab: Any) -> None:
    project(lab)
    lab.tests(PAIRED.replace('"baseline"', '"none.json"') + ABLE)
    assert lab.run().ret == pytest.ExitCode.USAGE_ERROR


def test_the_first_run_is_recorded_and_the_second_compares(lab: Any) -> None:
    project(lab)
    flags = ("--adaptive-eval-baseline=main/base.json", "--adaptive-eval-missing-baseline=record")
    result = lab.run(*flags)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["new baseline: main/base.json"])
    first = json.loads((lab.path / "main/base.json").read_text())
    assert first["interviews"][0]["asked"] == 200
    lab.toy(10, identity='"toy", "hash10"')
    assert lab.run(*flags).ret == 0
    assert (verdict(lab)["outcome"], verdict(lab)["notice"]) == ("PASS", False)
    assert json.loads((lab.path / "main/base.json").read_text()) == first, "a baseline is never replaced"
    lab.toy(6, identity='"toy", "hash6"')
    assert lab.run(*flags).ret == 1
    assert verdict(lab)["outcome"] == "FAIL"


def test_a_first_run_whose_gates_compare_with_nothing_is_recorded_and_predicts_the_next(lab: Any) -> None:
    project(lab)
    lab.tests(PAIRED.partition("@pytest.mark.adaptive_gate")[0] + ABLE)
    flags = ("--adaptive-eval-baseline=base.json", "--adaptive-eval-missing-baseline=record")
    result = lab.run(*flags)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["new baseline: base.json"])
    lab.toy(10, identity='"toy", "hash10"')
    assert lab.run(*flags).ret == 0
    assert lab.record["interviews"][0]["predictions"]


@pytest.mark.slow
def test_a_run_that_fails_makes_no_baseline(lab: Any) -> None:
    project(lab, tenths=2)
    flags = ("--adaptive-eval-baseline=base.json", "--adaptive-eval-missing-baseline=record")
    assert lab.run(*flags).ret == 1
    assert not (lab.path / "base.json").exists()
    nowhere = lab.run("--adaptive-eval-missing-baseline=record")
    assert nowhere.ret == pytest.ExitCode.USAGE_ERROR
    assert "--adaptive-eval-baseline=FILE.json" in nowhere.stderr.str()


@pytest.mark.slow
@pytest.mark.parametrize("more", ["@pytest.mark.skip\n" + ABLE.lstrip(), "def test_other():\n    assert 0\n"])
def test_a_run_that_fails_beside_its_gates_makes_no_baseline(lab: Any, more: str) -> None:
    project(lab)
    (lab.path / "test_more.py").write_text(f"import pytest\n{more}")
    assert lab.run("--adaptive-eval-baseline=base.json", "--adaptive-eval-missing-baseline=record").ret == 1
    assert not (lab.path / "base.json").exists()


@pytest.mark.slow
def test_a_record_without_the_evaluation_has_no_baseline_and_stays(lab: Any) -> None:
    project(lab)
    assert lab.run("--adaptive-eval-record=base.json").ret == 0
    text = (lab.path / "base.json").read_text().replace('"toy"', '"other"')
    (lab.path / "base.json").write_text(text)
    result = lab.run("--adaptive-eval-baseline=base.json", "--adaptive-eval-missing-baseline=record")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*base.json has no baseline for every gate, and is not overwritten: remove it first"])
    assert (lab.path / "base.json").read_text() == text


def zipped(lab: Any, folder: Path) -> str:
    return Path(shutil.make_archive(str(lab.path / "artifact"), "zip", folder)).name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["run folder", "committed folder", "zip"])
def test_a_history_stands_for_its_newest_run_that_passed(lab: Any, kind: str) -> None:
    project(lab)
    assert lab.run().ret == 0
    good = lab.record["run"]
    lab.toy(3, identity='"toy", "hash3"')
    assert lab.run().ret == 1
    history = lab.path / ".adaptive-eval"
    if kind != "run folder":
        (lab.path / "evals").mkdir()
        for path in (history / "runs").iterdir():
            shutil.copy(path, lab.path / "evals" / path.name)
    source = {"run folder": ".adaptive-eval", "committed folder": "evals", "zip": zipped(lab, history)}[kind]
    lab.toy(10, identity='"toy", "hash10"')
    assert lab.run(f"--adaptive-eval-baseline={source}").ret == 0
    assert verdict(lab)["outcome"] == "PASS"
    assert good < lab.record["run"]
    # on a bank that changed there is nothing to compare with, and that is no notice
    path = lab.path / "toy.jsonl"
    path.write_text(path.read_text().replace('question 7"', 'question 7 7"'))
    changed = lab.run(f"--adaptive-eval-baseline={source}")
    assert changed.ret == pytest.ExitCode.USAGE_ERROR
    assert "the bank 'toy' changed since the baseline was recorded" in changed.stderr.str()


@pytest.mark.slow
def test_a_history_without_a_run_that_passed_has_no_baseline(lab: Any) -> None:
    project(lab, tenths=2)
    assert lab.run().ret == 1
    lab.toy(9, identity='"toy", "hash9"')
    result = lab.run("--adaptive-eval-baseline=.adaptive-eval")
    assert result.ret == 0
    assert "of its 1 runs none has passed with the evaluation 'toy'" in " ".join(verdict(lab)["notes"])


@pytest.mark.slow
def test_a_history_begins_with_a_run_that_lacked_nothing_but_its_baseline(lab: Any) -> None:
    project(lab, able=False)
    (lab.path / ".adaptive-eval").mkdir()
    for passes in (False, True):
        assert lab.run("--adaptive-eval-baseline=.adaptive-eval").ret == (not passes)
        assert verdict(lab)["notice"] is not passes
    (lab.path / "test_more.py").write_text("def test_other():\n    assert 0\n")
    for path in (lab.path / ".adaptive-eval/runs").iterdir():
        path.unlink()
    for _ in "12":  # a run that fails otherwise begins nothing
        assert lab.run("--adaptive-eval-baseline=.adaptive-eval").ret == 1
        assert verdict(lab)["notice"] is True


@pytest.mark.slow
def test_a_baseline_that_is_the_candidate_or_failed_is_named(lab: Any) -> None:
    project(lab, tenths=3)
    assert lab.run("--adaptive-eval-record=base.json").ret == 1
    lab.run("--adaptive-eval-baseline=base.json")
    notes = verdict(lab)["notes"]
    assert "the baseline toy is the same checkpoint as the candidate" in notes
    assert "the baseline toy is of a run that did not pass (FAIL of test_able): compare with one that passed" in notes
    lab.toy(9, identity='"toy", "hash9"')
    assert lab.run("--adaptive-eval-baseline=base.json").ret == 0
    notes = verdict(lab)["notes"]
    assert not any("same checkpoint" in note for note in notes)
    assert any("did not pass" in note for note in notes)


@pytest.mark.slow
def test_an_old_baseline_is_told(lab: Any) -> None:
    project(lab)
    assert lab.run("--adaptive-eval-record=base.json").ret == 0
    record = json.loads((lab.path / "base.json").read_text())
    record["started"] = "2021-03-04T05:06:07+00:00"
    (lab.path / "base.json").write_text(json.dumps(record))
    assert lab.run("--adaptive-eval-baseline=base.json").ret == 0
    assert any("the baseline toy was recorded" in note and "days ago" in note for note in verdict(lab)["notes"])


NO_GATE = PAIRED.partition("@pytest.mark.adaptive_gate")[0]
OTHER = """
@pytest.mark.adaptive_gate("toy", not_worse_than="other", margin=0.5)
def test_other(adaptive_eval):
    assert adaptive_eval.verdicts

@pytest.mark.adaptive_eval("toy.jsonl", budget=20, stop="budget", name="other")
def test_other_questions(item, model):
    assert item.grade(model.generate(item.prompt))
"""


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("gates", [NO_GATE + ABLE, NO_GATE, NO_GATE + OTHER, PAIRED + ABLE])
@pytest.mark.parametrize(
    "flags",
    [
        ["--adaptive-eval-baseline=none.json"],
        ["--adaptive-eval-baseline=none.json", "--adaptive-eval-missing-baseline=fail"],
        ["--adaptive-eval-baseline=none.json", "--adaptive-eval-missing-baseline=warn"],
        ["--adaptive-eval-baseline=none.csv#main", "-k", "toy"],
        ["--adaptive-eval-baseline=replay:none.csv"],
        ["--adaptive-eval-baseline=runs/none"],
        ["--adaptive-eval-baseline=gone.json"],
        ["-o", "adaptive_eval_baseline=none.json"],
    ],
)
def test_a_named_baseline_that_is_not_there_is_a_mistake_whatever_the_gates(
    lab: Any, flags: list[str], gates: str
) -> None:
    lab.bank(n=300)
    lab.toy(9)
    lab.tests(gates)
    (lab.path / "gone.json").symlink_to("nowhere.json")
    result = lab.run("-q", *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no baseline at " in result.stderr.str()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("gates", "told"), [(NO_GATE + ABLE, False), (NO_GATE, True), (PAIRED, False)])
def test_a_baseline_that_nothing_uses_is_named(lab: Any, gates: str, told: bool) -> None:
    lab.bank(n=300)
    lab.toy(9)
    lab.tests(gates)
    items = [json.loads(line)["id"] for line in (lab.path / "toy.jsonl").read_text().splitlines()]
    (lab.path / "base.csv").write_text(f"subject,{','.join(items)}\nmain{',1' * len(items)}\n")
    out = lab.run("-q", "--adaptive-eval-baseline=base.csv").stdout.str()
    assert ("no gate of this run compares with the baseline base.csv" in " ".join(out.split())) is told
