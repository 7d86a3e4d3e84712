"""The summary is read by people: what it says, how it fits, and that nothing breaks it."""

from __future__ import annotations

import io
import shlex
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.terminal import Line, summary_lines, verdict_lines, write_lines
from pytest_adaptive_eval.text import columns

HOSTILE = "::error::x\n##[group]y \x1b[31mred\x1b[0m\x00\ud800 模型" * 40


def text(lines: list[Line]) -> list[str]:
    return ["".join(part for part, _ in line) for line in lines]


@pytest.fixture
def big(make: SimpleNamespace) -> RunRecord:
    """Every kind of interview and of verdict."""
    plain = {"name": "maze", "calibrated": False}
    forced = {"name": "ocrbench", "calibrated": True, "trusted": False, "calibration_subject": True}
    record: RunRecord = make.record(
        [
            make.interview(),
            make.interview(
                name="maze",
                bank=plain,
                theta=None,
                standard_error=None,
                accuracy=make.interval(0.4, 0.4, 0.4, "exact uniform"),
                accuracy_model=None,
                asked=60,
                size=60,
                statuses={"ok": 57, "timeout": 2, "refused": 1},
                stop_sentence="every item of the bank was asked",
            ),
            make.interview(name="ocr", bank=forced, theta=[-0.402], accuracy=None, notes=["read me"]),
            make.interview(
                name="chart",
                bank={"name": "chart"},
                theta=None,
                accuracy=None,
                accuracy_model=None,
                asked=3,
                stop="ERRORS",
                stop_sentence="too many answers failed",
                error="3 errors in a row:\nConnectionError",
            ),
        ],
        [
            make.gate(),
            make.gate("INCONCLUSIVE", name="maze", of="maze"),
            make.gate("FAIL", name="test_ocr", of="ocr", notes=("read me", "its own note")),
            make.gate("ERROR", name="test_chart", of="chart"),
        ],
    )
    return record


def test_a_simple_run(make: SimpleNamespace) -> None:
    lines = summary_lines(make.record(), 100, written={"JUnit report": "gates.xml"})
    assert text(lines) == [
        "subject           bank     ability  accuracy               asked  ended because",
        "vlm-2b-step-4000  mmmu  1.23 ± .31  .612 [.551, .671]  96 of 640  the budget is spent",
        "ability is by the bank's model, in logits; intervals are two-sided at 90%",
        "",
        "PASS  test_promotion: accuracy .612 [.551, .671] >= .55 required, 95 %, 96 of 640 items,",
        "      design-based",
        "      61 % right, between 55.1 % and 67.1 %; at least 55 % required",
        "",
        "JUnit report: gates.xml",
    ]
    assert [markup for part, markup in lines[4] if part == "PASS  "] == [{"green": True, "bold": True}]


def test_a_narrow_terminal_gives_the_reason_a_line_of_its_own(make: SimpleNamespace) -> None:
    assert text(summary_lines(make.record(gates=[]), 80)) == [
        "subject           bank     ability  accuracy               asked",
        "vlm-2b-step-4000  mmmu  1.23 ± .31  .612 [.551, .671]  96 of 640",
        "    the budget is spent",
        "ability is by the bank's model, in logits; intervals are two-sided at 90%",
    ]


def test_a_very_narrow_terminal_gets_a_block_an_interview(make: SimpleNamespace) -> None:
    assert text(summary_lines(make.record(gates=[]), 60)) == [
        "vlm-2b-step-4000 on mmmu",
        "  ability 1.23 ± .31 · accuracy .612 [.551, .671]",
        "  asked 96 of 640 · the budget is spent",
        "ability is by the bank's model, in logits; intervals are",
        "two-sided at 90%",
    ]


def test_a_bank_that_is_not_calibrated_is_noted_where_no_verdict_says_so(big: RunRecord) -> None:
    big.gates = []
    assert "- maze: the bank is not calibrated" in "\n".join(text(summary_lines(big, 140)))


def test_every_kind_of_result_shows(big: RunRecord) -> None:
    lines = text(summary_lines(big, 140))
    told = "\n".join(lines)
    assert "60 of 60\n    every item of the bank was asked (1 of 60 refused; no score: 2 timeout)" in told
    assert ".400 exact" in told
    assert "ocr (ocrbench)" in told
    assert "-.40 ± .31  ~.605 [.580, .630]" in told
    assert "    void: 3 errors in a row: ConnectionError" in lines
    assert "the bank is not calibrated" not in told, "the verdict says so"
    assert "- ocr: the bank was written although" in told
    assert "- ocr: vlm-2b-step-4000 is one of the bank's calibration subjects" in told
    assert "- ocr: ~ is the bank's own projection" in told
    assert lines.count("- read me") == 1
    assert told.count("read me") == 1, "a verdict does not repeat what the notes say"
    assert "; its own note" in told
    colours = {part: markup for line in summary_lines(big, 140) for part, markup in line if markup}
    assert colours["FAIL          "] == {"red": True, "bold": True}
    assert colours["INCONCLUSIVE  "] == {"yellow": True, "bold": True}


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 140, 200])
def test_lines_fit(big: RunRecord, width: int) -> None:
    commands = ("  pytest ", "  adaptive-eval ")  # in one piece, to be copied
    lines = [line for line in text(summary_lines(big, width)) if not line.startswith(commands)]
    assert max(map(columns, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_quiet_shows_the_formula_of_each_verdict_its_sentence_and_its_reason(big: RunRecord) -> None:
    assert text(verdict_lines(big, 300)) == [
        "PASS          test_promotion (mmmu): accuracy .612 [.551, .671] >= .55, 96 of 640",
        "              61 % right, between 55.1 % and 67.1 %; at least 55 % required",
        "INCONCLUSIVE  maze: accuracy .612 [.551, .671] against .55, 96 of 640",
        "              61 % right, between 55.1 % and 67.1 %; at least 55 % required",
        "FAIL          test_ocr (ocr): accuracy .612 [.551, .671] < .55, 96 of 640",
        "              61 % right, between 55.1 % and 67.1 %; at least 55 % required",
        "ERROR         test_chart (chart): accuracy .612 [.551, .671] for .55, 96 of 640",
        "              61 % right, between 55.1 % and 67.1 %; at least 55 % required",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_without_details_a_gate_has_its_verdict_alone(big: RunRecord, width: int) -> None:
    lines = text(verdict_lines(big, width))
    heads = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in heads] == ["PASS", "INCONCLUSIVE", "FAIL", "ERROR"]
    assert max(map(columns, lines)) <= width
    brief = text(summary_lines(big, width, details=False))
    assert [line for line in brief if line in lines] == lines
    assert not any(line.startswith("- ") or "ended because" in line for line in brief)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_name_of_a_gate_is_never_cut(make: SimpleNamespace, width: int) -> None:
    names = ["mmmu-accuracy[at-least-0.6]", "mmmu-accuracy[at-least-0.65]", "test_the_candidate_is_able_to_reason"]
    gates = [make.gate(outcome, name=name) for name in names for outcome in ("PASS", "INCONCLUSIVE")]
    other = make.interview(name="maze", nodeid="t.py::maze")
    lines = text(verdict_lines(make.record([make.interview(), other], gates), width))
    told = [line.split()[1].rstrip(":") for line in lines if not line.startswith(" ")]
    assert told == [name for name in names for _ in range(2)]
    assert not any("…" in line for line in lines)
    assert sum(".612 [.551, .671]" in line for line in lines) == len(gates), "nor is what was found"
    assert not any("(mmmu)" in line for line in lines if "mmmu-" in line), "the name tells the evaluation already"


def test_a_reason_is_cut_between_words(make: SimpleNamespace) -> None:
    gate = make.gate("INCONCLUSIVE", notes=("alpha beta gamma delta " * 20,))
    *_, last = text(verdict_lines(make.record(gates=[gate]), 60))
    assert last.endswith(" …")
    assert set(last.split()) <= {"alpha", "beta", "gamma", "delta", "…"}


def test_an_interview_that_no_gate_judges_has_a_line(make: SimpleNamespace) -> None:
    void = make.interview(name="void", nodeid="t.py::void", error="the server is gone")
    lines = text(summary_lines(make.record([make.interview(), void], []), 120, details=False))
    assert "accuracy .612 [.551, .671], 96 of 640, " in lines[0]
    assert lines[1].endswith("void: the server is gone")


def test_an_empty_run_says_nothing(make: SimpleNamespace) -> None:
    assert summary_lines(make.record([], []), 80) == []


def test_several_dimensions(make: SimpleNamespace) -> None:
    wide = make.interview(theta=[0.1, -0.001, 2.0, 3.0], standard_error=[0.5, None, 0.25, 1.0])
    assert ".10 ± .82, .00, 2.00 ± .41, ..." in "\n".join(text(summary_lines(make.record([wide]), 140)))


def test_an_interview_cut_off_is_void(make: SimpleNamespace) -> None:
    lines = text(summary_lines(make.record([make.interview(stop="", stop_sentence="")]), 100))
    assert "    void: the interview did not finish" in lines


def test_hostile_text_breaks_nothing(make: SimpleNamespace) -> None:
    gate = make.gate("FAIL", name=HOSTILE, of=HOSTILE, notes=(HOSTILE,))
    interview = make.interview(
        name=HOSTILE,
        subject={"name": HOSTILE},
        bank={"name": HOSTILE, "calibrated": False},
        stop_sentence=HOSTILE,
        statuses={HOSTILE: 3},
        error=HOSTILE,
        notes=[HOSTILE],
    )
    record = make.record([interview, make.interview()], [gate])
    for width in (40, 80, 140):
        lines = text(summary_lines(record, width, written={"JUnit report": HOSTILE}))
        for line in lines:
            assert line.isprintable()
            assert "::" not in line
            assert "##" not in line
        assert len(lines) < 200


def test_pytest_writes_the_lines_and_their_colours(make: SimpleNamespace) -> None:
    from _pytest._io import TerminalWriter

    for colours in (False, True):
        out = io.StringIO()
        writer = TerminalWriter(out)
        writer.hasmarkup = colours
        write_lines(verdict_lines(make.record(), 200), writer.write)
        begin = "\x1b[32m\x1b[1mPASS  \x1b[0mtest_promotion: " if colours else "PASS  test_promotion: "
        assert out.getvalue().startswith(begin)
        assert "accuracy .612 [.551, .671] >= .55, 96 of 640\n" in out.getvalue()
        assert out.getvalue().endswith("      61 % right, between 55.1 % and 67.1 %; at least 55 % required\n")


def test_the_noise_of_decoding_stands_with_the_end(make: SimpleNamespace) -> None:
    measured = make.interview(decoding_noise=DecodingNoise(0.1, 1, 2, 1, 0.00314, 0.1))
    text = "".join(part for line in summary_lines(make.record([measured]), 200) for part, _ in line)
    assert "(decoding noise .0031, by 2 answers to 1 item)" in text
    for unknown in (None, DecodingNoise(None, 0, 0, 1, None, 0.25)):
        assert words.noise(make.interview(decoding_noise=unknown)) == ""


def test_wrong_answers_are_shown_with_their_questions_where_the_bank_is_at_hand(make: SimpleNamespace) -> None:
    items = [Item(f"q{n}", f"How much is {n} + {n}?", answer=str(2 * n)) for n in range(8)]
    bank = ItemBank.uncalibrated("sums", items)
    asked = [
        Administration(n + 1, item.id, item.content_hash, score=float(n == 0), text="" if n == 1 else "7")
        for n, item in enumerate(items)
    ]
    about = {"name": "sums", "content_hash": bank.content_hash, "calibrated": False}
    record = make.record([make.interview(name="sums", bank=about, administrations=asked)], [])
    lines = "\n".join(text(summary_lines(record, 80, banks={"sums": bank})))
    assert "wrong answers, the first 5 of 7\n  q1\n    asked:    How much is 1 + 1?\n    answered: nothing\n" in lines
    assert "  q5\n    asked:    How much is 5 + 5?\n    answered: 7\n    expected: 10" in lines
    assert "q6" not in lines
    assert "asked:" not in "\n".join(text(summary_lines(record, 80)))
    assert "wrong answers" not in "\n".join(text(summary_lines(record, 80, details=False, banks={"sums": bank})))


def test_a_comparison_with_a_baseline_lists_the_questions_that_were_lost(make: SimpleNamespace) -> None:
    items = [Item(f"q{n}", f"How much is {n} + {n}?", answer=str(2 * n)) for n in range(4)]
    bank = ItemBank.uncalibrated("sums", items)
    asked = [Administration(n, item.id, item.content_hash, score=0.0, text="7") for n, item in enumerate(items, 1)]
    about = {"name": "sums", "content_hash": bank.content_hash, "calibrated": False}
    lost = {"baseline": {"lost": ["q2"], "common": 4}}
    interview = make.interview(name="sums", bank=about, administrations=asked, baselines=lost)
    condition = {"metric": "accuracy", "kind": "not_worse_than", "name": "baseline", "value": 0.1}
    gate = make.gate("FAIL", of="sums", condition=condition)
    lines = text(summary_lines(make.record([interview], [gate]), 80, details=False, banks={"sums": bank}))
    start = lines.index("lost against the baseline: 1 of 4 common questions")
    assert lines[start + 1 : start + 5] == [
        "  q2",
        "    asked:    How much is 2 + 2?",
        "    answered: 7",
        "    expected: 4",
    ]
    assert not any("q1" in line or "q3" in line for line in lines)


def test_calls_beyond_the_questions_that_counted_stand_beside_the_count(make: SimpleNamespace) -> None:
    for calls, count in ((120, "96 of 640, 120 calls"), (96, "96 of 640")):
        record = make.record([make.interview(costs={"subject": {"calls": calls}})])
        assert (
            text(verdict_lines(record, 120))[0] == f"PASS  test_promotion: accuracy .612 [.551, .671] >= .55, {count}"
        )
        assert words.share(record.interviews[0]) == count


@pytest.mark.parametrize(
    ("nodeid", "shown"),
    [
        ("adaptive-eval.toml::my sums[aeval:my-sums]", "'adaptive-eval.toml::my sums[q1#2]'"),
        ("test_it.py::test_sums[aeval:sums]", "'test_it.py::test_sums[q1#2]'"),
        ("test_it.py::test_sums[aeval:sums-b]", ""),  # the bank's name, or another parameter
        ("", ""),
    ],
)
def test_a_wrong_answer_has_a_node_id_that_a_shell_takes(make: SimpleNamespace, nodeid: str, shown: str) -> None:
    asked = [Administration(1, "q1", "h", sample=1, score=0.0, text="7")]
    record = make.record([make.interview(name="sums", nodeid=nodeid, administrations=asked)], [])
    lines = text(summary_lines(record, 40))
    assert [line for line in lines if "node id:" in line] == ([f"    node id:  {shown}"] if shown else [])
    if shown:
        assert shlex.split(shown) == [nodeid.partition("[")[0] + "[q1#2]"]


def test_answers_are_least_expected_only_where_all_have_a_prediction(make: SimpleNamespace) -> None:
    asked = [Administration(n, f"q{n}", "h", score=0.0, predicted=0.5) for n in range(1, 9)]
    calibrated = make.interview(name="a", bank={"name": "a"}, administrations=asked[:4])
    plain = make.interview(name="b", bank={"name": "b", "calibrated": False}, administrations=asked[4:])
    assert "wrong answers, the first 5 of 8" in text(summary_lines(make.record([calibrated, plain], []), 80))
    calibrated.administrations = asked
    assert "wrong answers, the 5 least expected of 8" in text(summary_lines(make.record([calibrated], []), 80))


def test_costs_of_several_interviews_have_a_total(make: SimpleNamespace) -> None:
    def costs(calls: int, currency: str = "USD") -> dict[str, Any]:
        judge = {"calls": 10, "completion_tokens": 5, "seconds": 1.0}
        prices = {role: {"money": money, "currency": currency} for role, money in (("judge", 0.25), ("subject", 0.5))}
        return {"subject": {"calls": calls, "prompt_tokens": 100}, "judge": judge, "prices": prices}

    first, second = make.interview(name="a", costs=costs(3)), make.interview(name="b", costs=costs(4))
    shown = "\n".join(text(summary_lines(make.record([first, second], []), 80)))
    assert (
        "cost of     calls  tokens read  tokens written  seconds  price\n"
        "a: subject      3          100               0      0.0  $0.50\n"
        "a: judge       10            0               5      1.0  $0.25\n"
        "b: subject      4          100               0      0.0  $0.50\n"
        "b: judge       10            0               5      1.0  $0.25\n"
        "total          27          200              10      2.0  $1.50"
    ) in shown
    assert "cost: a: 3 calls, 100 tokens, $0.50; " in " ".join(
        text(summary_lines(make.record([first, second], []), 40))
    )
    second.costs = make.interview(costs=costs(4, "EUR")).costs
    assert words.cost_rows([first, second])[-1] == ("total", "27", "200", "10", "2.0", "-")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_gates_of_one_name_say_which_evaluation_they_judge(make: SimpleNamespace, width: int) -> None:
    names = ["mmmu", "mmmu[candidate-step-4000]", "mmmu[candidate-step-8000]"]
    interviews = [make.interview(name=name, nodeid=f"t.py::{name}") for name in names]
    gates = [make.gate(name="test_promotion", of=name) for name in names]
    whole = " ".join(text(verdict_lines(make.record(interviews, gates), width)))
    assert [f"({name})" in whole or (width == 40 and name[-8:] in whole) for name in names] == [True] * 3
