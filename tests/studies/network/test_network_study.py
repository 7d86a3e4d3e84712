"""``kind = "network"``: gates on energy and areas over a server on loopback, reports, processes, mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

# loaded once: an in-process run forgets the modules that it loads
from fake_server import PeerServer

import pytest_adaptive_eval.extensions.studies.network.kind
import pytest_adaptive_eval.extensions.studies.peers.kind
import pytest_adaptive_eval.reports.page  # noqa: F401
from benchmarks.network_agents import writer
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.text import number

NETWORK = """
[[eval]]
kind = "network"
name = "web"
model = "{url}#pupil"
models = {{ judge = "{url}#judge" }}
[eval.network]
topology = "line"
queries = 8
supervisor = {{ model = "judge", exchanges = 1 }}
[[eval.network.node]]
task = "addition"
name = "first"
levels = 2
[[eval.network.node]]
task = "addition"
name = "second"
levels = 4
"""
GATES = """
[[eval.gate]]
at_least = 0.3
[[eval.gate]]
at_least = 0.95
[[eval.gate]]
metric = "auc"
subject = "first"
at_least = 1.5
[[eval.gate]]
metric = "last_level"
subject = "second"
at_least = 4
"""


def reply(model: str, text: str) -> str:
    """A pupil that adds numbers below 100, and a judge that finds no fault."""
    if model == "judge":
        return "no"
    numbers = [int(number) for number in re.findall(r"\d+", text.splitlines()[-1])]
    return str(sum(numbers)) if numbers and max(numbers) < 100 else "0"


@pytest.fixture
def server() -> Iterator[PeerServer]:
    with PeerServer({"pupil": 0.0, "judge": 0.0}, reply) as running:
        yield running


def write(lab: Any, server: PeerServer, more: str = GATES, **changes: str) -> None:
    text = NETWORK.format(url=server.url) + more
    for old, new in changes.items():
        text = text.replace(old, new)
    (lab.path / "adaptive-eval.toml").write_text(text)


def test_gates_on_energy_and_areas(lab: Any, server: PeerServer) -> None:
    write(lab, server)
    result = lab.run("-v", "--adaptive-eval-html=page.html", "--adaptive-eval-junit=gates.xml")
    assert result.ret == 1
    assert lab.outcomes() == [
        ("web-energy[at-least-0.3]", "PASS"),
        ("web-energy[at-least-0.95]", "FAIL"),
        ("web-auc[at-least-1.5-of-first]", "PASS"),
        ("web-last_level[at-least-4-of-second]", "INCONCLUSIVE"),
    ]
    (study,) = lab.record["interviews"]
    assert (study["kind"], study["subject"]["name"], study["asked"], study["unit"]) == ("network", "pupil", 2, "nodes")
    assert [row["subject"] for row in study["metrics"]["auc"]] == ["first", "second"]
    assert [row["subject"] for row in study["metrics"]["energy"]] == ["pupil"]
    assert study["costs"]["loads"] == {"judge": 1, "pupil": 1}
    roles = study["costs"]["roles"]
    assert set(roles) == {"interviewee", "supervisor"}
    assert sum(role["calls"] for role in roles.values()) == study["costs"]["total"]["calls"]
    text = " ".join(result.stdout.str().split())
    assert all(f"{name} {role['calls']} calls, " in text for name, role in roles.items())
    assert "web: pupil in a line of 2 nodes, with judge, at most 48 questions" in text
    assert "web (network): energy of pupil ." in text
    assert 5 <= text.count("web: reply ") <= 10
    page = (lab.path / "page.html").read_text()
    assert "Accuracy by level: second" in page
    assert page.count("Share right by level") == 2
    for part in (
        "Nodes reached",
        "Nodes",
        "area under the accuracies",
        "From the interviewee to the last nodes",
    ):
        assert part in page
    assert 'name="web"' in (lab.path / "gates.xml").read_text()
    assert not lab.journals


@pytest.mark.slow
def test_a_promotion_by_coded_truth_does_not_warn(lab: Any, server: PeerServer) -> None:
    write(lab, server, "[[eval.gate]]\nat_least = 0.3\n")
    assert lab.run().ret == 0
    assert lab.record["warnings"] == []


@pytest.mark.slow
def test_two_workers_find_the_same(lab: Any, server: PeerServer) -> None:
    write(lab, server)
    lab.run()
    alone = [gate["verdict"]["sentence"] for gate in lab.record["gates"]]
    assert lab.spawn("-n2").ret == 1
    assert [gate["verdict"]["sentence"] for gate in lab.record["gates"]] == alone


@pytest.mark.slow
def test_gates_in_python(lab: Any, server: PeerServer) -> None:
    write(lab, server, "")
    lab.tests(
        """
        import pytest

        @pytest.mark.adaptive_gate("web", metric="energy", at_least=0.3)
        @pytest.mark.adaptive_gate("web", metric="auc", at_least=1.0, subject="first")
        def test_web(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    assert lab.run().ret == 0
    lab.tests(
        """
        import pytest

        @pytest.mark.adaptive_gate("web", metric="auc", above="second", subject="first")
        def test_web(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR, result.outlines


@pytest.mark.slow
def test_a_fault_of_a_grader_voids_it_and_nothing_else(lab: Any, server: PeerServer) -> None:
    items = [{"id": f"q{n}", "prompt": f"{n} + 1", "answer": "1", "grader": "python:grading:boo"} for n in range(8)]
    (lab.path / "bank.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (lab.path / "grading.py").write_text('def boo(item, text):\n    raise ZeroDivisionError("boo \\x1b[31m")\n')
    lab.pytester.syspathinsert()
    lab.ini("adaptive_eval_graders = grading\n")
    bank = {'task = "addition"\nname = "first"\nlevels = 2': 'bank = "bank.jsonl"'}
    write(lab, server, "[[eval.gate]]\nat_least = 0.3\n", **bank)
    lab.tests("def test_other():\n    assert True")
    result = lab.run()
    result.assert_outcomes(passed=1, failed=2)
    assert lab.outcomes() == [("web-energy[at-least-0.3]", "ERROR")]
    assert lab.record["interviews"][0]["error"].startswith("ZeroDivisionError: boo")
    assert "grading.py:2: ZeroDivisionError" in result.stdout.str()
    assert "\x1b" not in result.stdout.str()
    assert len(lab.journals) == 1  # it goes on when the grader is mended


@pytest.mark.slow
def test_questions_that_code_had_to_set_are_told(lab: Any, server: PeerServer) -> None:
    gate = "[[eval.gate]]\nat_least = 0.9\n"
    write(lab, server, gate, **{"queries = 8": 'queries = 2\nretries = 0\ninterviewer = "judge"'})
    lab.run()
    told = "10 of 10 questions that judge was to set were set by code: of its 9 attempts, 9 by faults of its own"
    (warning,) = lab.record["warnings"]
    assert told in warning


@pytest.mark.slow
def test_questions_that_a_supervisor_refuses_are_not_blamed_on_the_interviewer(lab: Any) -> None:
    write_question = writer()

    def said(model: str, text: str) -> str:
        if model == "ann":
            return write_question(text) if "of level" in text else "hello"  # the first request checks the server
        return "yes" if model == "judge" else reply(model, text)

    with PeerServer({"pupil": 0.0, "judge": 0.0, "ann": 0.0}, said) as server:
        asked_by = {
            'judge = "': f'ann = "{server.url}#ann", judge = "',
            "queries = 8": 'queries = 2\nretries = 0\ninterviewer = "ann"',
        }
        write(lab, server, "[[eval.gate]]\nat_least = 0.9\n", **asked_by)
        lab.run()
    sentence = lab.record["warnings"][0]
    set_by_code = "that ann was to set were set by code: of its 10 attempts"
    assert f"{set_by_code}, 9 refused by the supervisor 'judge' and 1 after the supervisor was given up" in sentence


@pytest.mark.slow
def test_faults_of_the_run_void_it(lab: Any) -> None:
    with PeerServer({"pupil": 0.0, "judge": 0.0}, lambda m, t: None if "+" in t and m == "pupil" else "no") as server:
        write(
            lab,
            server,
            **{f'"{server.url}#pupil"': f'"{server.url}#pupil"\nmodel_options = {{ retries = 0 }}'},
        )
        lab.run()
    assert {outcome for _, outcome in lab.outcomes()} == {"ERROR"}
    assert "of the answers failed" in json.dumps(lab.record["interviews"][0]["error"])


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('task = "addition"\nname = "first"', 'task = "sums"', ":LINE: node 1: task 'sums' is not known"),
        (
            'topology = "line"',
            'topology = "ring"',
            "topology is 'ring', expected 'hybrid' or 'line'",
        ),
        ("queries = 8", "questions = 8", ":LINE: "),
        ("models = {", 'models = { spare = "http://127.0.0.1:1/v1#x",', "the model 'spare' has no part in the network"),
        ("models = {", "memory = 0\nmodels = {", "memory is 0, expected a whole number of at least 1"),
        ('model = "judge", ', 'model = "owl", ', "'owl' is not a model of this file: add it under models"),
        ('name = "first"', 'name = "pupil"', "a node is called 'pupil', as the candidate is"),
        ('subject = "first"', 'subject = "third"', "'third' is not a subject; use pupil, first, second"),
        ('subject = "first"\n', "", "energy is of the interviewee, auc and last_level are of a node"),
        ("at_least = 0.3", 'subject = "first"\nat_least = 0.3', "energy is of the interviewee"),
        ("at_least = 0.3", "rank_within = 1", "energy has no rank_within; use at_least"),
    ],
)
def test_mistakes_are_told_before_anything_is_asked(
    lab: Any, server: PeerServer, old: str, new: str, message: str
) -> None:
    write(lab, server)
    text = (lab.path / "adaptive-eval.toml").read_text()
    assert old in text
    (lab.path / "adaptive-eval.toml").write_text(text.replace(old, new, 1))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in lab.mistake(result, new)
    assert (
        "not among the collected evaluations" not in result.stderr.str()
    )  # of the gates on it: the mistake is told once
    assert not server.asked


@pytest.mark.slow
def test_a_gate_in_python_on_a_node_names_it(lab: Any, server: PeerServer) -> None:
    write(lab, server, "")
    lab.tests(
        'import pytest\n@pytest.mark.adaptive_gate("web", metric="auc", at_least=1.0)\n'
        "def test_web(adaptive_eval):\n    assert adaptive_eval.verdicts"
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not server.asked
    assert 'are of a node: write subject = "NODE", one of first, second' in " ".join(result.stderr.str().split())


@pytest.mark.slow
def test_a_gate_on_a_node_that_stayed_closed_says_why(lab: Any, server: PeerServer) -> None:
    closed = NETWORK.format(url=server.url).replace('topology = "line"', 'topology = "tree"')
    closed = closed.replace('name = "second"\n', 'name = "second"\nafter = "first"\nopens_at = 2.0\n')
    gate = '[[eval.gate]]\nmetric = "auc"\nsubject = "second"\nat_least = 1.5\n'
    (lab.path / "adaptive-eval.toml").write_text(closed + gate)
    result = lab.run()
    assert lab.outcomes() == [("web-auc[at-least-1.5-of-second]", "INCONCLUSIVE")]
    said = " ".join(result.stdout.str().split())
    assert "second stayed closed, since first did not surely reach an area of 2" in said


STAR = """
[[eval]]
kind = "network"
name = "star"
model = "{url}#pupil"
models = {{ judge = "{url}#judge", ann = "{url}#ann", bob = "{url}#bob", pal = "{url}#pal" }}
[eval.network]
topology = "star"
queries = 4
supervisor = {{ model = "judge", scheme = "{scheme}", labels = "labels.jsonl" }}
[[eval.network.node]]
task = "addition"
levels = 2
interviewers = ["ann", "bob"]
[[eval.network.node]]
name = "debated"
task = "addition"
levels = 2
panel = ["pal"]
[[eval.gate]]
metric = "auc"
subject = "addition"
at_least = 1.0
"""


def staged(lab: Any, judge: str, scheme: str = "yes-no", labels: str = "") -> dict[str, Any]:
    """The record of a star of two interviewers with a debate, whose supervisor always says the same."""

    def said(model: str, text: str) -> str:
        if model in ("ann", "bob"):
            if not (found := re.findall(r"of level (\d+)", text)):
                return "ok"  # the first look at a server
            size = 10 ** int(found[-1])
            number = int(re.findall(r"number (\d+)", text)[-1])
            return f"Question: What is {size - number} + {size - 2 * number}?\nAnswer: 0"
        return judge if model == "judge" else reply("pupil", text)

    (lab.path / "labels.jsonl").write_text(
        labels or '{"node": "debated", "item": "addition-1-8", "fault": true, "rating": 1}\n'
    )
    lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
    with PeerServer(dict.fromkeys(("pupil", "judge", "ann", "bob", "pal"), 0.0), said) as server:
        (lab.path / "adaptive-eval.toml").write_text(STAR.format(url=server.url, scheme=scheme))
        lab.run("--adaptive-eval-html=page.html")
    return dict(lab.record)


@pytest.mark.slow
def test_a_star_tells_its_mean_opinion_and_is_gated_on_it(lab: Any) -> None:
    record = staged(lab, "no")
    assert lab.outcomes() == [("star-auc[at-least-1-of-addition]", "PASS")]
    (study,) = record["interviews"]
    opinion = study["account"]["opinions"]["addition"]
    rows = {row["subject"]: row for row in study["metrics"]["auc"]}
    assert rows["addition"]["estimate"] == pytest.approx(opinion["estimate"])
    areas = [rows[f"addition by {name}"]["estimate"] for name in ("ann", "bob")]
    assert opinion["estimate"] == pytest.approx(sum(areas) / 2)
    assert study["notes"] == []
    page = (lab.path / "page.html").read_text()
    for part in (
        "Mean opinions", "errors without messages", "Supervisor: judge", "Agreement with labels",
        "by guessing", "accuracy before and after each cycle", "debated: pal",
    ):  # fmt: skip
        assert part in page
    row = page[page.index("Agreement with labels") :].partition("</table>")[0]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row) == ["1", ".00", "0"], "counts have no decimals"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "scheme", "note"),
    [
        ("yes", "yes-no", "the supervisor 'judge' found a fault in all"),
        ("<rank>1</rank>", "scale", "the supervisor 'judge' found a fault in all"),
        ("perhaps", "yes-no", " by the supervisor 'judge' are unreadable"),
    ],
)
def test_a_supervisor_that_tells_nothing_is_named(lab: Any, judge: str, scheme: str, note: str) -> None:
    record = staged(lab, judge, scheme)
    assert any(note in line for line in record["interviews"][0]["warnings"])
    assert any(note in line for line in record["warnings"])


@pytest.mark.slow
def test_reviews_are_compared_with_labels_of_a_file(lab: Any) -> None:
    (study,) = staged(lab, "yes")["interviews"]
    debated = next(node for node in study["account"]["nodes"] if node["name"] == "debated")
    items = [review["item"] for review in debated["reviews"]]
    labels = "".join(
        f'{{"node": "debated", "item": "{item}", "fault": {"true" if n else "false"}}}\n'
        for n, item in enumerate(items)
    )
    (study,) = staged(lab, "yes", labels=labels)["interviews"]
    agreement = study["account"]["agreement"]
    assert agreement["judged"] == len(items)
    assert agreement["accuracy"] == pytest.approx((len(items) - 1) / len(items))


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("labels.jsonl", "none.jsonl", "none.jsonl: "),
        ('metric = "auc"', 'metric = "last_level"', "addition is the mean opinion of several interviewers"),
    ],
)
def test_mistakes_of_stars(lab: Any, old: str, new: str, message: str) -> None:
    lab.ini("")
    (lab.path / "labels.jsonl").write_text("")
    text = STAR.format(url="http://127.0.0.1:9/v1", scheme="yes-no").replace(old, new)
    (lab.path / "adaptive-eval.toml").write_text(text)
    result = lab.run()
    assert result.ret == 4
    assert message in " ".join((result.stderr.str() + result.stdout.str()).split())


AGAINST = """
[[eval.gate]]
not_worse_than = "baseline"
margin = 0.3
[[eval.gate]]
metric = "auc"
subject = "second"
not_worse_than = "baseline"
margin = 0.5
"""


@pytest.mark.slow
def test_a_network_is_compared_with_an_earlier_one(lab: Any, server: PeerServer) -> None:
    write(lab, server, AGAINST)
    lab.run("--adaptive-eval-record=main.json")
    assert lab.outcomes() == [
        ("web-energy[not-worse-than-0.3-baseline]", "INCONCLUSIVE"),
        ("web-auc[not-worse-than-0.5-baseline-of-second]", "INCONCLUSIVE"),
    ]
    assert all("no baseline yet for" in gate["verdict"]["sentence"] for gate in lab.record["gates"])
    lab.run("--adaptive-eval-baseline=main.json")
    sentences = {gate["name"]: gate["verdict"]["sentence"] for gate in lab.record["gates"]}
    assert sentences["web-auc[not-worse-than-0.5-baseline-of-second]"].startswith(
        "PASS auc of second less that of baseline .000 ["
    )
    server.reply = lambda model, text: "no" if model == "judge" else "0"
    lab.run("--adaptive-eval-baseline=main.json", "--adaptive-eval-fresh")
    assert dict(lab.outcomes())["web-auc[not-worse-than-0.5-baseline-of-second]"] == "FAIL"


@pytest.mark.slow
def test_a_baseline_of_other_nodes_is_refused(lab: Any, server: PeerServer) -> None:
    write(lab, server, "")
    lab.run("--adaptive-eval-record=main.json")
    write(lab, server, AGAINST, **{'"first"': '"third"'})
    result = lab.run("--adaptive-eval-baseline=main.json")
    assert result.ret == 4
    assert "the baseline has the nodes first, second, and this network third, second" in " ".join(
        result.stderr.str().split()
    )


@pytest.mark.slow
def test_labels_of_no_review_are_told(lab: Any) -> None:
    (study,) = staged(lab, "no", labels='{"node": "debated", "item": "elsewhere", "fault": true}\n')["interviews"]
    told = "no label is of a readable review of judge: check node and item of labels"
    assert told in study["notes"]


@pytest.mark.slow
def test_every_report_tells_what_guessing_has(lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with PeerServer({"pupil": 0.0, "judge": 0.0}, lambda *_: "2") as server:
        write(lab, server, "", **{'task = "addition"\nname = "second"': 'task = "counting"\nname = "second"'})
        result = lab.run("--adaptive-eval-html=page.html", "--adaptive-eval-junit=gates.xml")
    (study,) = lab.record["interviews"]
    (energy,) = study["metrics"]["energy"]
    areas = {row["subject"]: row["guess"] for row in study["metrics"]["auc"]}
    assert energy["guess"] == study["account"]["guess_energy"]
    assert areas == {node["name"]: node["guess_area"] for node in study["account"]["nodes"]}
    assert min(energy["guess"], *areas.values()) > 0
    told = f"{number(energy['guess'])} by guessing"
    capsys.readouterr()
    assert main(["history"]) == 0
    history = capsys.readouterr().out
    assert main(["report", "latest", "--markdown", "summary.md"]) == 0
    reports = {
        "terminal": result.stdout.str(),
        "history": history,
        **{name: (lab.path / name).read_text() for name in ("page.html", "gates.xml", "summary.md")},
    }
    assert [name for name, text in reports.items() if told not in " ".join(text.split())] == []
