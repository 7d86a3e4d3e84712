"""The summary says what was found, and text from elsewhere stays text under GitHub's own Markdown parser."""

from __future__ import annotations

import re
import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import html
from made import changed

from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.markup import clean_html

cmarkgfm = pytest.importorskip("cmarkgfm", reason="GitHub's Markdown parser comes with the dependency group test")

#: Elements that the summary itself has.
OURS = {
    *("html", "body", "h2", "h3", "p", "sub", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    *("strong", "pre", "code", "ul", "li", "br", "span"),
}
#: What GitHub looks for in the finished page: names, references to issues, emoji, addresses, mathematics.
LINKED = re.compile(r"@[a-z0-9]|#\d|\bgh-\d|:[a-z_+-][\w+-]*:|https?://|www\.|\$", re.IGNORECASE)
#: Characters that are not printable and may be there.
SHOWN = "\n\t\u200c\u200d"
PAYLOADS = [
    "a | b \\| c",
    "| a |\n| - |\n| b |",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></tr></table></details><h1>Promoted</h1>",
    "<!-- hidden -->",
    "--> <b>",
    "[click](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<https://evil.example>",
    "https://evil.example www.evil.example WWW.evil.example mail@evil.example xmpp:a@evil.example ftp://evil.example",
    "[x]: https://evil.example\n[x]",
    "@everyone @org/team #1 org/repo#12 GH-7 gh-8 :shipit: :+1: :100: 12:34:56",
    "```\nout\n```",
    "`````` six ``````",
    "~~~\nout\n~~~",
    "``` ```js\n````\n# out",
    "`code` ``code`` \\`code\\`",
    "*a* **b** _c_ __d__ ~~e~~ \\*f\\*",
    "# heading\n## heading\nheading\n===\nheading\n---",
    "- list\n* list\n+ list\n1. list\n2) list\n> quote\n- [x] task",
    "1.",
    "-",
    "#",
    "1)",
    "    code",
    "[^1]: foot [^1]",
    "&lt;b&gt; &amp;#64;x &copy; &#60;b&#62;",
    "$x$ $$y$$ $`z`$",
    "\\",
    "ends in \\",
    "a\r\nb\rc\x0bd\x85e\u2028f",
    "\u202egpj.exe \u200bzero \ufeffbom",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07",
    "\x00 \ud800 \ufffe \U000e0001",
    "::error::x ##[group]y",
    "模型 é \U0001f600 \U0001f468\u200d\U0001f469",
    "Z" + "\u0335" * 300,
    "x" * 5000,
    "`" * 5000,
    "<" * 5000,
    "\n" * 5000,
]


def rendered(text: str) -> Any:
    """As GitHub's parser has it, with all HTML let through: nothing but our escaping stands between."""
    flags = cmarkgfm.Options.CMARK_OPT_UNSAFE
    return html.document_fromstring(cmarkgfm.github_flavored_markdown_to_html(text, flags))


def told(element: Any) -> str:
    """Its text, without what parts names and addresses."""
    return str(element.text_content()).replace("\u200b", "")


def alarm(sentence: str) -> Alarm:
    return Alarm(Series("", "", "", "", "accuracy", "", ()), 0, 0, None, 0.5, 0.4, sentence)


def asked(position: int, item: str, score: float | None, text: str, predicted: float | None = 0.5) -> Administration:
    return Administration(position, item, "h", score=score, text=text, predicted=predicted)


def row(name: str, **changes: Any) -> dict[str, Any]:
    values = {"category": name, "size": 40, "asked": 12, "scored": 12, "accuracy": None, "standard_error": None}
    return {**values, **changes}


@pytest.fixture
def run(make: SimpleNamespace) -> RunRecord:
    """Every kind of interview and of verdict."""
    warned = make.gate("INCONCLUSIVE", name="test_warned")
    warned.verdict = changed(warned.verdict, on_inconclusive="warn")
    interview = make.interview(
        categories=[row("art", accuracy=make.interval(0.5, 0.4, 0.6)), row("law")],
        notes=["read me"],
        administrations=[
            asked(1, "q-1", 0.0, "seven", 0.31),
            asked(2, "q-2", 1.0, "right"),
            asked(3, "q-3", 0.0, "eight\nnine", 0.93),
            asked(4, "q-4", None, "no score"),
            asked(5, "q-5", 0.0, " ", None),
        ],
    )
    void = make.interview(
        name="chart", bank={"name": "chart"}, statuses={"ok": 1, "timeout": 2}, stop="ERRORS", error="3 errors in a row"
    )
    record: RunRecord = make.record(
        [interview, void],
        [make.gate(), warned, make.gate("FAIL", name="test_other", notes=("a note",)), make.gate("ERROR", of="chart")],
    )
    record.exit_status = 1
    return record


def test_what_a_reader_finds(run: RunRecord) -> None:
    run.gates[3].name = "test_chart"
    text = summary_markdown(run, alarms=[alarm("mmmu fell from .70 to .61")])
    page = rendered(text)
    assert text.splitlines()[:3] == [
        "## ⛔ Not to be promoted",
        "",
        "1 gate failed; 1 gate could not be judged; 1 interview gave no result; the run ended with exit status 1.",
    ]
    gates, interviews, categories = page.findall(".//table")
    rows = [[told(cell) for cell in line.findall("td")] for line in gates.iter("tr")][1:]
    assert [line[:2] for line in rows] == [
        ["🛑 ERROR", "test_chart"],
        ["❌ FAIL", "test_other"],
        ["⚠️ INCONCLUSIVE", "test_warned"],
        ["✅ PASS", "test_promotion"],
    ]
    assert rows[1][2] == (
        "61 % right, between 55.1 % and 67.1 %; at least 55 % required"
        "accuracy .612 [.551, .671] < .55 required, 95 %, 96 of 640 items, design-based; a note"
    )
    assert [[told(cell) for cell in line.findall("td")] for line in interviews.iter("tr")][1] == [
        "vlm-2b-step-4000",
        "mmmu",
        "1.23 ± .31",
        ".612 [.551, .671]",
        "96 of 640",
        "the budget is spent",
    ]
    assert told(interviews).rstrip().endswith("(no score: 2 timeout)void: 3 errors in a row")
    assert [[told(cell) for cell in line.findall("td")] for line in categories.iter("tr")][1:] == [
        ["art", "12 of 40", "-", ".500 [.400, .600]"],
        ["law", "12 of 40", "-", "-"],
    ]
    assert [told(summary) for summary in page.iter("summary")] == ["Accuracy by category: mmmu", "Wrong answers"]
    wrong = told(page.findall(".//details")[1])
    assert wrong.index("q-3 of mmmu, right with a chance of .93") < wrong.index("q-1 of mmmu")
    assert [told(block) for block in page.iter("pre")] == [
        "pytest --adaptive-eval tests/test_eval.py::test_promotion\n",
        "pytest --adaptive-eval --adaptive-eval-failed=20310506T070809000Z\n",
        "pytest --adaptive-eval --adaptive-eval-budget=192\n",
        "eight\nnine\n",
        "seven\n",
    ]
    assert "q-5 of mmmu\nan empty answer" in wrong
    assert "q-2" not in text
    assert "q-4" not in text
    assert [told(item) for item in page.iter("li")] == ["mmmu fell from .70 to .61", "read me"]
    assert "ability is by the bank's model, in logits; intervals are two-sided at 90 %" in told(page)
    assert {element.tag for element in page.iter()} <= OURS


def test_a_wrong_answer_stands_beside_its_question_where_the_bank_is_at_hand(make: SimpleNamespace) -> None:
    sums = Item("sum-7", f"What is {'1 + ' * 200}*17* + 25?", "42", "numeric")
    colours = Item("hue-1", "Sky?", "B", "choice", choices=("red", "_blue_"))
    bank = ItemBank.uncalibrated("questions", [sums, colours], content_hash="b")
    wrong = [
        Administration(n, item.id, item.content_hash, score=0.0, text="441", predicted=0.5)
        for n, item in enumerate(bank.items, 1)
    ]
    interview = make.interview(
        name="questions", bank={"name": "questions", "calibrated": False, "content_hash": "b"}, administrations=wrong
    )
    record = make.record([interview])
    told_without = told(rendered(summary_markdown(record)).findall(".//details")[-1]).rstrip()
    assert told_without == "Wrong answers\nsum-7\nanswered:\n441\n\nhue-1\nanswered:\n441"
    page = rendered(summary_markdown(record, banks={"questions": bank}))
    shown = told(page.findall(".//details")[-1])
    assert "sum-7\nasked: What is 1 + 1 + " in shown
    assert "expected: 42\nanswered:\n441\n" in shown
    assert len(shown) < 600, "a long question is cut"
    assert "asked: Sky? A. red B. _blue_\nexpected: B. _blue_\nanswered:" in shown
    wrong[0].item_hash = "of another time"
    assert "What is" not in summary_markdown(record, banks={"questions": bank})


def test_answers_to_one_item_are_told_apart(make: SimpleNamespace) -> None:
    answers = [Administration(1, "q-1", "h", sample=n, score=0.0, text=f"answer {n}") for n in range(3)]
    text = summary_markdown(make.record([make.interview(samples=2, administrations=answers)]))
    page = rendered(text)
    wrong = page.findall(".//details")[-1]
    assert [told(one) for one in wrong.iter("strong")] == ["q-1", "q-1#2", "q-1#3"]
    assert not LINKED.search(wrong.text_content()), "no reference to an issue"


def test_a_promotion(make: SimpleNamespace) -> None:
    record = make.record(gates=[make.gate(), make.gate("INCONCLUSIVE")])
    record.exit_status = 0
    record.gates[1].verdict = changed(record.gates[1].verdict, on_inconclusive="pass")
    assert summary_markdown(record).startswith(
        "## ✅ May be promoted\n\n1 of 2 gates passed, and 1 undecided was let through.\n"
    )
    record.gates.pop()
    assert "\n1 of 1 gate passed.\n" in summary_markdown(record)


@pytest.mark.parametrize(
    ("outcomes", "status", "why"),
    [
        ([], 0, "No gate judged the checkpoint."),
        (["PASS"], None, "The run did not come to its end."),
        (["PASS"], 3, "The run ended with exit status 3."),
        (["INCONCLUSIVE"], 1, "1 gate could not be decided; the run ended with exit status 1."),
        (["PASS", "notice"], 0, "1 gate had nothing to compare with yet."),
        (["FAIL", "FAIL", "PASS"], 1, "2 gates failed; the run ended with exit status 1."),
    ],
)
def test_why_there_is_no_promotion(make: SimpleNamespace, outcomes: list[str], status: int | None, why: str) -> None:
    gates = [make.gate("INCONCLUSIVE" if outcome == "notice" else outcome) for outcome in outcomes]
    for gate, outcome in zip(gates, outcomes, strict=True):
        gate.verdict = changed(gate.verdict, notice=outcome == "notice")
        assert gate.verdict.allowed is (outcome == "notice")
    record = make.record(gates=gates)
    record.exit_status = status
    assert summary_markdown(record).splitlines()[:3] == ["## ⛔ Not to be promoted", "", why]


def test_what_several_gates_note_is_told_once(make: SimpleNamespace) -> None:
    gates = [make.gate(notes=("mine", "ours  too")), make.gate(notes=("ours  too",))]
    text = summary_markdown(make.record(gates=gates))
    assert text.count("ours too") == text.count("- ours too\n") == 1
    assert "design-based; mine |" in text


def test_an_empty_run(make: SimpleNamespace) -> None:
    text = summary_markdown(make.record([], []))
    assert text.count("\n") == 5
    assert {element.tag for element in rendered(text).iter()} <= OURS


def hostile(make: SimpleNamespace, text: str) -> RunRecord:
    """A record with `text` wherever a text can be."""
    gate = make.gate("FAIL", name=text, of=text, notes=(text,))
    gate.verdict = changed(gate.verdict, metric=text, requirement=text, stated=text)
    gate.file = gate.nodeid = text
    interview = make.interview(
        name=text,
        nodeid=text,
        subject={"name": text},
        bank={"name": text, "calibrated": False},
        statuses={text: 1},
        stop=text,
        stop_sentence=text,
        error=text,
        notes=[text, f"two {text}"],
        categories=[row(text), row(text, accuracy=make.interval(0.5, 0.4, 0.6))],
        administrations=[asked(1, text, 0.0, text), asked(2, "q", 0.0, f"{text}\n{text}", None)],
    )
    record: RunRecord = make.record([interview, make.interview()], [gate, make.gate()])
    record.run = record.started = text
    return record


def skeleton(page: Any) -> list[tuple[str, ...]]:
    """Every element and where it stands, but for what only puts a dollar or an empty answer apart."""
    paths = []
    for element in page.iter():
        assert element.tag in OURS, element.tag
        assert set(element.keys()) <= {"lang"}
        if element.tag == "span":
            assert element.text == "$"
            assert len(element) == 0
            continue
        paths.append((element.tag, *(parent.tag for parent in element.iterancestors())))
    return paths


@pytest.fixture(scope="module")
def harmless(make: SimpleNamespace) -> list[tuple[str, ...]]:
    """The elements of a page with a harmless text."""
    return skeleton(rendered(summary_markdown(hostile(make, "word"), alarms=[alarm("word")])))


def inert(make: SimpleNamespace, harmless: list[tuple[str, ...]], text: str) -> None:
    """The page has the elements of a page with a harmless text, and nothing that GitHub would act on."""
    shown = summary_markdown(hostile(make, text), alarms=[alarm(text)])
    page = rendered(shown)
    if not text.strip():
        harmless = skeleton(rendered(summary_markdown(hostile(make, text), alarms=[alarm("word")])))
    assert skeleton(page) == harmless
    for element in page.iter():
        if element.tag not in ("pre", "code", "span"):  # where GitHub leaves text alone
            assert not LINKED.search(f"{element.text or ''}"), element.text
        assert not LINKED.search(f"{element.tail or ''}")
    cells = page.findall(".//table")[0].findall(".//td")
    assert told(cells[1]) == " ".join(clean_html(text, 100).split())
    assert not [c for c in shown if not c.isprintable() and c not in SHOWN and unicodedata.category(c) != "Zs"]


@pytest.mark.parametrize("text", PAYLOADS, ids=[ascii(text[:16]) for text in PAYLOADS])
def test_payloads(make: SimpleNamespace, harmless: list[tuple[str, ...]], text: str) -> None:
    inert(make, harmless, text)


MARKS = st.sampled_from([*"|`*_~[]()<>!#@:.-+=&;$\\/\"'{}^%1a \n\t", "```", "~~~", "https://", "www.", "&#", "  "])


@given(st.lists(MARKS | st.text(st.characters(exclude_categories=()), max_size=3), max_size=16).map("".join))
@example("a\\|b")
def test_any_text_is_inert(make: SimpleNamespace, harmless: list[tuple[str, ...]], text: str) -> None:
    inert(make, harmless, text)


def big(make: SimpleNamespace) -> RunRecord:
    """More of everything than fits."""
    gates = [make.gate("FAIL", name=f"test_{n}", notes=("é" * 500,)) for n in range(300)]
    interview = make.interview(
        notes=[f"{n} {'é' * 300}" for n in range(300)],
        categories=[row(f"category {n}") for n in range(40)],
        administrations=[asked(n, f"q{n}", 0.0, "é" * 900) for n in range(20)],
    )
    record: RunRecord = make.record([interview] * 3, gates)
    return record


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("limit", [2_000, 5_000, 12_000, 65_000, 150_000, 900_000])
def test_sections_that_do_not_fit_are_named(make: SimpleNamespace, limit: int) -> None:
    text = summary_markdown(big(make), limit=limit)
    assert len(text.encode()) <= limit
    assert text.startswith("## ⛔ Not to be promoted\n\n300 gates failed; the run")
    assert {element.tag for element in rendered(text).iter()} <= OURS
    sections = {
        "gates": "| verdict |",
        "interviews": "| subject |",
        "notes": "### Notes",
        "accuracy by category": "<summary>Accuracy",
        "wrong answers": "<summary>Wrong answers, the 5 least expected of 60",
    }
    left_out = [name for name, begin in sections.items() if begin not in text]
    if limit == 900_000:
        assert left_out == []
        assert "and 100 more in the record" in text
    else:
        assert left_out
        assert f"Left out for its length: {', '.join(left_out)}. The record" in text.splitlines()[-1]


def test_an_answer_is_shown_in_part(make: SimpleNamespace) -> None:
    record = make.record([make.interview(administrations=[asked(1, "q", 0.0, "line\n" * 40 + "x" * 4000)])])
    (block,) = rendered(summary_markdown(record)).iter("pre")
    assert told(block) == "line\n" * 12 + "… (29 more lines)\n"
