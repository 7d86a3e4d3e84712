"""``kind = "peers"``: a panel over a server on loopback, its gates, reports, processes and interruptions."""

from __future__ import annotations

import html
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

# loaded once: an in-process run forgets the modules that it loads
from fake_server import SKILLS, PeerServer, said

import pytest_adaptive_eval.extensions.studies.network.kind
import pytest_adaptive_eval.extensions.studies.peers.kind
import pytest_adaptive_eval.reports.page  # noqa: F401
from pytest_adaptive_eval.extensions.studies.peers.assessment import MemberCall
from pytest_adaptive_eval.extensions.studies.peers.kind import PanelEvaluation, _Asking
from pytest_adaptive_eval.extensions.studies.peers.settings import PeerSettings
from pytest_adaptive_eval.extensions.studies.several import Member as PlanMember
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.pool import ModelPool

TOPICS = [f"topic {n}" for n in range(60)]


@pytest.fixture
def server() -> Iterator[PeerServer]:
    with PeerServer() as running:
        yield running


def council(server: PeerServer, more: str = "", *, panel: str = "rounds = 8", model: str = "dog") -> str:
    """A study of all models of the server."""
    others = ", ".join(f'"{server.url}#{name}"' for name in SKILLS if name != model)
    return f"""
[[eval]]
kind = "peers"
name = "council"
model = "{server.url}#{model}"
peers = [{others}]
[eval.panel]
topics = {TOPICS}
{panel}
{more}
"""


def gate(text: str) -> str:
    return f"[[eval.gate]]\n{text}\n"


GATES = "".join(
    map(
        gate,
        [
            "at_least = 3.5",
            'metric = "rank"\nrank_within = 2\nprobability = 0.9',
            'above = "elk"',
            'subject = "ant"\nat_least = 3.8',
            'at_least = 4.15\non_inconclusive = "warn"',
        ],
    )
)
NAMES = [
    "council-score[at-least-3.5]",
    "council-score[rank-within-2]",
    "council-score[above-elk]",
    "council-score[at-least-3.8-of-ant]",
    "council-score[at-least-4.15]",
]
FOUND = list(zip(NAMES, ["PASS", "PASS", "FAIL", "FAIL", "INCONCLUSIVE"], strict=True))


def write(lab: Any, text: str) -> None:
    lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
    (lab.path / "adaptive-eval.toml").write_text(text)


def told(record: dict[str, Any]) -> dict[str, Any]:
    """A study without what differs between two runs that found the same."""
    (study,) = record["interviews"]
    account = {key: value for key, value in study["account"].items() if key not in ("recalled", "usage")}
    return {"metrics": study["metrics"], "account": account, "notes": study["notes"]}


def test_gates_pass_and_fail(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, GATES))
    files = [f"--adaptive-eval-{kind}={kind}" for kind in ("junit", "html")]
    result = lab.run("-v", "-rA", "--junitxml=pytest.xml", *files)
    assert result.ret == 1
    assert lab.outcomes() == FOUND
    (study,) = lab.record["interviews"]
    assert (study["kind"], study["subject"]["name"], study["asked"], study["size"]) == ("peers", "dog", 8, 8)
    assert [row["subject"] for row in study["metrics"]["score"]] == ["dog", "ant", "bee", "cat", "elk"]
    assert [member["name"] for member in study["members"]] == ["dog", "ant", "bee", "cat", "elk"]
    # three a model at the first look, and at its opening
    assert study["costs"]["total"]["calls"] == sum(server.asked.values()) - 10  # to connect to five models
    assert set(study["costs"]["loads"].values()) == {1}
    roles = study["costs"]["roles"]
    assert set(roles) == {"task", "vote", "answer", "judgment"}
    for amount in ("calls", "completion_tokens"):
        assert sum(role[amount] for role in roles.values()) == study["costs"]["total"][amount]
    assert f"judgment {roles['judgment']['calls']} calls, " in " ".join(result.stdout.str().split())
    assert lab.record["warnings"] == []
    assert not lab.journals
    text = result.stdout.str()
    assert "council: dog and 4 peers (ant, bee, cat, elk), 8 rounds of about 36 calls" in " ".join(text.split())
    lost = r"FAIL score of dog \(\S+\) above elk \(\S+\) with confidence \.0\d*, \.95 required, 8 of 8 rounds"
    assert re.search(lost, " ".join(text.split()))
    assert "adaptive-eval: council: round 1 of 8\n" in text
    assert "adaptive-eval: council: round 8 of 8\n" in text
    result.stdout.fnmatch_lines(
        [
            "adaptive-eval.toml::council PASSED*",
            "adaptive-eval.toml::council-score?at-least-3.5? PASSED*",
            "council (peers): score of dog 4.* rank 2.0 ?1, 2? of 5, 8 of*",
        ]
    )
    own = ElementTree.parse(lab.path / "junit").getroot()
    (suite,) = own
    assert suite.get("name") == "council"
    assert next(case.get("name") for case in suite.iter("testcase")) == "study"
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "3", "0")
    rank = {p.get("name"): p.get("value") for p in suite.iter("property")}["score_rank"]
    assert float(rank) == pytest.approx(2.0, abs=0.05)
    cases = {case.get("name"): case for case in ElementTree.parse(lab.path / "pytest.xml").iter("testcase")}
    properties = {p.get("name"): p.get("value") for p in cases["council"].iter("property")}
    assert properties["candidate"] == "dog"
    assert properties["rounds"] == "8"
    assert float(properties["score"]) == pytest.approx(study["metrics"]["score"][0]["estimate"], abs=1e-3)
    page = (lab.path / "html").read_text()
    for part in ("Ranks by score", "2 dog (candidate)", "Score by topic", "Who judged whom", "Judges"):
        assert part in page


@pytest.mark.slow
def test_a_promotion_by_opinion_alone_warns(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, gate("at_least = 3.5"), panel="rounds = 6"))
    result = lab.run("--adaptive-eval-html=page.html", "--adaptive-eval-reuse")
    assert result.ret == 0
    assert any("--adaptive-eval-reuse shares replies" in note for note in lab.record["interviews"][0]["notes"])
    (warning,) = lab.record["warnings"]
    assert "only models' opinion of each other speaks for this promotion" in warning
    assert "WARNING: only models' opinion of each other speaks for this promotion" in result.stdout.str()
    assert "only models&#39; opinion of each other" in (lab.path / "page.html").read_text()
    lab.bank()
    lab.toy()
    lab.tests()
    assert lab.run().ret == 0  # another gate, on a truth
    assert lab.record["warnings"] == []


@pytest.mark.slow
def test_selection_and_collection(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, GATES, panel="rounds = 8"))
    lines = lab.run("--collect-only", "-q").stdout.lines
    assert [line for line in lines if "::" in line] == [f"adaptive-eval.toml::{n}" for n in ("council", *NAMES)]
    assert not server.asked
    lab.run("-k", "rank-within")
    assert [name for name, _ in lab.outcomes()] == ["council-score[rank-within-2]"]
    assert len(lab.record["interviews"]) == 1  # brought back, since the gate needs it
    lab.run("adaptive-eval.toml::council-score[above-elk]")
    assert lab.outcomes() == [("council-score[above-elk]", "FAIL")]
    lab.run("adaptive-eval.toml::council")
    assert lab.outcomes() == []
    assert len(lab.record["interviews"]) == 1
    asked = sum(server.asked.values())
    assert lab.run("--setup-plan").ret == 0
    assert sum(server.asked.values()) == asked


@pytest.mark.slow
def test_gates_in_python(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, panel="rounds = 6"))
    lab.tests(
        """
        import pytest
        from pytest_adaptive_eval.errors import ConfigError

        @pytest.mark.adaptive_gate("council", metric="score", at_least=3.5)
        @pytest.mark.adaptive_gate("council", metric="score", rank_within=2, probability=0.9)
        @pytest.mark.adaptive_gate("council", metric="score", above="cat")
        def test_panel(adaptive_eval):
            assert adaptive_eval.verdicts
            assert adaptive_eval["council"].account["mode"] == "reliability"

        def test_mistake(adaptive_eval):
            with pytest.raises(ConfigError, match="'owl' is not a subject"):
                adaptive_eval["council"].score.above("owl")
            assert adaptive_eval["council"].score.at_least(3.5)
        """
    )
    assert lab.run().ret == 0
    assert lab.outcomes() == [
        *[("test_panel", "PASS")] * 3,
        ("test_mistake", "PASS"),
    ]


@pytest.mark.slow
def test_two_workers_find_the_same(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, GATES, panel="rounds = 6"))
    lab.run()
    alone, outcomes = told(lab.record), lab.outcomes()
    result = lab.spawn("-n2")
    assert result.ret == 1
    assert lab.outcomes() == outcomes
    assert told(lab.record) == alone
    assert "council: dog and 4 peers" in result.stdout.str()


#: pytest where interrupts count, though a shell that starts this suite in the background has told it to ignore them.
HEEDS_INTERRUPTS = """
import signal
import pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
raise SystemExit(pytest.main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_goes_on_to_the_same_result(lab: Any, end: signal.Signals) -> None:
    process: subprocess.Popen[bytes] | None = None
    asked, counting = 0, threading.Lock()  # servers answer in threads

    def reply(model: str, text: str) -> str:
        nonlocal asked
        with counting:
            asked += 1
            now = asked == 100
        if now and process is not None:
            process.send_signal(end)
        return said(model, text, SKILLS)

    with PeerServer(reply=reply) as server:
        write(lab, council(server, GATES, panel="rounds = 6"))
        lab.run()
        whole, outcomes, needed = told(lab.record), lab.outcomes(), asked
        asked = 0
        command = [sys.executable, "-c", HEEDS_INTERRUPTS, "--adaptive-eval", "-p", "no:cacheprovider"]
        process = subprocess.Popen(command, cwd=lab.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        status = process.wait(60)
        assert status == (-signal.SIGKILL if end is signal.SIGKILL else pytest.ExitCode.INTERRUPTED)
        process = None
        assert len(lab.journals) == 1
        before = asked
        assert before < needed
        lab.run()
        assert told(lab.record) == whole
        assert lab.outcomes() == outcomes
        recalled = lab.record["interviews"][0]["account"]["recalled"]
        assert recalled > 50
        assert asked - before <= needed - recalled + 15  # to open the connections
        assert not lab.journals


def test_what_servers_say_is_kept_while_a_model_in_memory_is_asked() -> None:
    """Killed at the second question to the model in memory, the run has the server's replies to the same phase."""
    said_away = threading.Event()

    class Member:
        def __init__(self, name: str) -> None:
            self.name, self.asked = name, 0

        def ask(self, *_: Any, **__: Any) -> Completion:
            self.asked += 1
            if self.name == "away":
                said_away.set()
            elif self.asked == 2:
                raise OSError("killed")
            else:
                assert said_away.wait(10)
                time.sleep(0.05)
            return Completion(self.name)

    plan = PanelEvaluation(
        "council", (PlanMember("here", "x"), PlanMember("away", "http://x")), PeerSettings(), None, Path()
    )
    loaders: dict[str, Any] = {"here": lambda: Member("here"), "away": lambda: Member("away")}
    pool = ModelPool(loaders, remote=["away"])
    members: list[Any] = [Member(name) for name in plan.subjects]
    calls = [MemberCall(members[n], n, "vote", (0, 0, 0), (), 8) for n in (0, 0, 1)]
    asking = _Asking(plan, pool, lambda *_: None)(calls)
    assert [next(asking)[0], next(asking)[0]] == [0, 2]
    with pytest.raises(OSError, match="killed"):
        next(asking)


def test_a_server_that_fails_ends_the_study_soon(lab: Any) -> None:
    def reply(model: str, text: str) -> str | None:
        return None if model == "bee" and not text.startswith("Write") and len(text) > 50 else said(model, text, SKILLS)

    with PeerServer(reply=reply) as server:
        bee = f'{{ model = "{server.url}#bee", options = {{ retries = 0 }} }}'
        text = council(server, gate("at_least = 3.5")).replace(f'"{server.url}#bee"', bee)
        write(lab, text)
        result = lab.run()
        assert result.ret == 1
        assert lab.outcomes() == [("council-score[at-least-3.5]", "ERROR")]
        (study,) = lab.record["interviews"]
        assert "3 replies of bee in a row failed; the last: " in study["error"]
        assert "void: 3 replies of bee in a row" in result.stdout.str()
        assert len(lab.journals) == 1  # it may go on later


def test_a_model_that_is_not_there_is_a_mistake(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, gate("at_least = 3.5")).replace("#bee", "#wasp"))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: model 'wasp' at * gives no answers: HTTP 404*"])
    assert not lab.records


@pytest.mark.slow
def test_useless_replies_are_an_error_that_says_why(lab: Any) -> None:
    with PeerServer(reply=lambda *_: "I would rather not say") as server:
        write(lab, council(server, gate('at_least = 3.5\non_inconclusive = "pass"'), panel="rounds = 2"))
        assert lab.run().ret == 1
    (study,) = lab.record["interviews"]
    assert study["error"] == (
        "given up in round 1 of 2, without a readable vote so far: 1 of 1 attempt gave a task; unusable: 1 vote of ant "
        "(no-rank), 1 vote of bee (no-rank), 1 vote of cat (no-rank), 1 vote of dog (no-rank) and 1 more. Choose "
        "chat models that follow instructions; if replies are truncated, raise task_tokens and rank_tokens in "
        "[eval.panel]"
    )
    assert lab.outcomes() == [("council-score[at-least-3.5]", "ERROR")]
    assert not lab.journals  # it would say the same again


@pytest.mark.slow
def test_too_few_rounds_are_inconclusive(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, gate("at_least = 1.5") + gate('above = "ant"'), panel="rounds = 2"))
    assert lab.run().ret == 1
    assert {outcome for _, outcome in lab.outcomes()} == {"INCONCLUSIVE"}
    assert "it takes 3 rounds with a task to estimate how sure a score is" in json.dumps(lab.record["gates"])


@pytest.mark.slow
def test_the_paper_s_mode_is_told_and_takes_no_gate(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, panel='rounds = 4\nmode = "paper"'))
    assert lab.run("--adaptive-eval-html=page.html").ret == 0
    row = lab.record["interviews"][0]["metrics"]["score"][0]
    assert {name for name, value in row.items() if value not in (None, "")} == {"subject", "estimate"}
    assert "Ranks by score" in (lab.path / "page.html").read_text()
    write(lab, council(server, gate("at_least = 3.0"), panel='mode = "paper"'))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "mode 'paper' has no errors of its scores" in result.stderr.str()


@pytest.mark.slow
def test_the_candidate_of_the_command_line(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, gate("at_least = 3.5") + gate('above = "ant"'), panel="rounds = 4", model="cat"))
    text = (lab.path / "adaptive-eval.toml").read_text().replace(f', "{server.url}#elk"', "")
    (lab.path / "adaptive-eval.toml").write_text(text)
    lab.run(f"--adaptive-eval-model={server.url}#elk", "--adaptive-eval-seed=4")
    (study,) = lab.record["interviews"]
    assert study["subject"]["name"] == "elk"
    assert [member["name"] for member in study["members"]] == ["elk", "ant", "bee", "dog"]
    assert study["account"]["settings"]["seed"] == 4
    result = lab.run(f"--adaptive-eval-model={server.url}#ant")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "2 models are called 'ant'" in result.stderr.str()


@pytest.mark.slow
def test_coded_truth_of_members_is_set_beside_their_opinion(lab: Any, server: PeerServer) -> None:
    """Members are found by their checkpoints, in this run and in earlier ones."""
    write(lab, council(server, panel="rounds = 6"))
    lab.run()
    members = {member["name"]: member["checkpoint"] for member in lab.record["interviews"][0]["members"]}
    assert lab.record["interviews"][0]["account"]["truth"] == []
    lab.bank()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval(bank="toy.jsonl", budget=60, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    for tenths, name in ((2, "ant"), (4, "bee"), (9, "elk"), (5, "dog")):
        lab.toy(tenths, identity=f'"{name} by another name", "{members[name]}"')
        lab.run("test_it.py")
    lab.toy(7, identity=f'"cat", "{members["cat"]}"')
    lab.run("--adaptive-eval-html=page.html")
    _, study = lab.record["interviews"]  # the interview is first
    (truth,) = study["account"]["truth"]
    assert truth["evaluation"] == "toy"
    assert truth["accuracies"] == pytest.approx({"ant": 0.2, "bee": 0.4, "elk": 0.9, "dog": 0.5, "cat": 0.7})
    assert truth["scores"] == pytest.approx({"subjects": 5, "spearman": 0.9, "kendall": 0.8})
    assert [judge["subjects"] for judge in truth["judges"]] == [4] * 5  # its own does not count
    assert "Agreement with coded truth: toy" in (lab.path / "page.html").read_text()


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "peers"', 'kind = "crowd"', ":LINE: kind 'crowd' is not known; known are bank, ladder, peers"),
        ("rounds = 8", "rounds = 0", ":LINE: rounds is 0, expected a whole number of at least 1"),
        ("rounds = 8", "round = 8", ":LINE: unknown setting 'panel.round'; did you mean 'rounds'?"),
        ("rounds = 8", 'rounds = "8"', ":LINE: panel.rounds is '8', expected a whole number"),
        ("rounds = 8", "difficulties = { hard = true }", "panel.difficulties is {'hard': True}, expected"),
        ("rounds = 8", 'mode = "mean"', "panel.mode is 'mean', expected 'paper' or 'reliability'"),
        (
            "rounds = 8",
            'mode = "paper"\njudge = "owl"',
            "the judge 'owl' is none of the panel: expected one of dog",
        ),
        ('name = "council"', 'name = "council"\nbudget = 3', ":LINE: unknown setting 'budget'"),
        (
            'name = "council"',
            'name = "council"\nmemory = 0',
            ":LINE: memory is 0, expected a whole number",
        ),
        ('name = "council"', 'name = "council"\nseed = -1', ":LINE: seed is -1"),
        ('name = "council"', 'name = "a::b"', ":LINE: name 'a::b' cannot name a test"),
        ("at_least = 3.5", "at_least = 3.5\nmargin = 0.1", ":LINE: not_worse_than and margin go together"),
        ("at_least = 3.5", "rank_within = 5", "rank_within(5) holds for each of the 5 subjects"),
        ("at_least = 3.5", 'above = "owl"', "'owl' is not a subject; use dog, ant, bee, cat, elk"),
        (
            "at_least = 3.5",
            'metric = "accuracy"\nat_least = 0.5',
            ":LINE: metric 'accuracy' is not known; use score or rank",
        ),
        ("at_least = 3.5", 'metric = "rank"\nat_least = 2', ":LINE: rank has no at_least; use rank_within, above"),
        ("at_least = 3.5", "at_least = 3.5\nprobability = 0.9", ":LINE: probability does not go with at_least"),
        ("at_least = 3.5", 'at_least = 3.5\nabove = "ant"', ":LINE: a gate has one condition of"),
    ],
)
def test_mistakes_are_told_before_anything_is_asked(
    lab: Any, server: PeerServer, old: str, new: str, message: str
) -> None:
    text = council(server, gate("at_least = 3.5"))
    assert old in text
    write(lab, text.replace(old, new, 1))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in lab.mistake(result, new)
    assert not server.asked


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("peers", "message"),
    [
        ('["nowhere", "{url}#ant"]', "model 'nowhere' is not known; expected an existing checkpoint folder"),
        ('["{url}", "{url}#ant"]', "names no model: write http://HOST:PORT/v1#MODEL"),
        ('["http://me:secret@127.0.0.1:1/v1", "{url}#ant"]', "'http://127.0.0.1:1/v1' names no model"),
        ('["{url}#ant", 3]', "peers 2 is 3, expected text or a table"),
        (
            '["{url}#ant", {{ model = "{url}#ant", nam = "x" }}]',
            "peers 2: unknown setting 'nam'; did you mean 'name'?",
        ),
        ('["{url}#ant", "{url}#ant"]', "2 models are called 'ant': give them names"),
        ('["{url}#ant"]', "2 models, expected at least 3"),
    ],
)
def test_mistakes_of_members(lab: Any, server: PeerServer, peers: str, message: str) -> None:
    text = f'[[eval]]\nkind = "peers"\nmodel = "{server.url}#dog"\npeers = {peers.format(url=server.url)}\n'
    write(lab, text)
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in " ".join(result.stderr.str().split())
    assert "secret" not in result.stderr.str() + result.stdout.str()


def test_without_a_candidate(lab: Any, server: PeerServer) -> None:
    write(lab, f'[[eval]]\nkind = "peers"\npeers = ["{server.url}#ant", "{server.url}#bee", "{server.url}#cat"]\n')
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no candidate: name one with --adaptive-eval-model" in " ".join(result.stderr.str().split())


@pytest.mark.slow
def test_a_gate_that_asks_another_evaluation_s_words(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, panel="rounds = 4"))
    lab.tests(
        """
        import pytest

        @pytest.mark.adaptive_gate("council", metric="accuracy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "metric 'accuracy' is not known; use score" in " ".join(result.stderr.str().split())


@pytest.mark.slow
def test_mode_paper_samples_and_shows_its_own_weights(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, panel='mode = "paper"\nrounds = 8'))
    lab.run("--adaptive-eval-html=page.html")
    (study,) = lab.record["interviews"]
    decodings = [member["decoding"] for member in study["members"]]
    assert [(one["temperature"], one["extra"]["top_p"]) for one in decodings] == [(0.8, 0.9)] * 5
    weights = study["account"]["weights"]
    assert weights == study["account"]["paper"]["weights"]
    page = (lab.path / "page.html").read_text()
    for part in (f"{weight:.3f}"[1:] for weight in weights):
        assert part in page
    assert "Change of the judges' weights" in html.unescape(page)
    assert "two-sided" not in page, "the rule has no errors"
    assert "Bars from" not in page
    assert any("of 60 topics not drawn" in note for note in study["notes"])


@pytest.mark.slow
def test_every_draw_of_a_panel_that_samples_reaches_the_server(lab: Any, server: PeerServer) -> None:
    sent: list[str] = []
    server.reply = lambda model, text: sent.append(text) or said(model, text, SKILLS)
    text = council(server, panel='mode = "paper"\nrounds = 12')
    write(lab, re.sub(r"topics = .*", 'topics = ["birds"]', text))
    lab.run()
    attempts = [one for cycle in lab.record["interviews"][0]["account"]["rounds"] for one in cycle["attempts"]]
    tasks = [text for text in sent if text.startswith("Write one")]
    assert len(tasks) == len(attempts) >= 12
    assert len(set(tasks)) < len(tasks), "equal requests, each of which is a draw of its own"


@pytest.mark.slow
def test_an_option_of_a_member_precedes_the_mode(lab: Any, server: PeerServer) -> None:
    text = council(server, panel='mode = "paper"\nrounds = 3')
    write(lab, text.replace("[eval.panel]", "model_options = { temperature = 0.5 }\n[eval.panel]"))
    lab.run()
    (study,) = lab.record["interviews"]
    assert [member["decoding"]["temperature"] for member in study["members"]] == [0.5, 0.8, 0.8, 0.8, 0.8]


@pytest.mark.slow
def test_a_single_judge_is_the_only_one_asked_to_judge(lab: Any, server: PeerServer) -> None:
    judged = []
    server.reply = lambda model, text: judged.append((model, text[:8])) or said(model, text, SKILLS)
    write(lab, council(server, panel='mode = "paper"\nrounds = 4\njudge = "elk"'))
    lab.run()
    assert {model for model, text in judged if text in ("How good", "You are ")} == {"elk"}
    assert lab.record["interviews"][0]["asked"] == 4


AGAINST = gate('not_worse_than = "baseline"\nmargin = 0.5')


@pytest.mark.slow
def test_a_panel_is_compared_with_an_earlier_one(lab: Any, server: PeerServer) -> None:
    write(lab, council(server, AGAINST))
    lab.run("--adaptive-eval-record=main.json")
    lab.run("--adaptive-eval-baseline=main.json")
    assert lab.outcomes() == [("council-score[not-worse-than-0.5-baseline]", "PASS")]
    assert "score of dog less that of baseline .000 [" in lab.record["gates"][0]["verdict"]["sentence"]
    server.skills["dog"] = 3.0
    lab.run("--adaptive-eval-baseline=main.json", "--adaptive-eval-fresh")
    assert lab.outcomes() == [("council-score[not-worse-than-0.5-baseline]", "FAIL")]
    write(lab, council(server, AGAINST, panel="rounds = 7"))
    result = lab.run("--adaptive-eval-baseline=main.json")
    assert (result.ret, "had other settings or other peers" in " ".join(result.stderr.str().split())) == (4, True)


def test_each_model_has_its_cost_and_system_text(lab: Any) -> None:
    seen: set[tuple[str, str]] = set()

    class Watched(PeerServer):
        def _answer(self, body: Any, headers: Any) -> Any:
            seen.add((body["model"], body["messages"][0]["role"]))
            return super()._answer(body, headers)

    with Watched(reply=lambda model, text: said(model, text, SKILLS)) as server:
        text = council(server, gate("at_least = 3.5"), panel="rounds = 8")
        bee = f'"{server.url}#bee"'
        changed = f'{{ model = {bee}, system = "Be brief.", price = {{ completion = 1000000.0 }} }}'
        (lab.path / "adaptive-eval.toml").write_text(text.replace(bee, changed))
        lab.run()
    (study,) = lab.record["interviews"]
    assert {role for model, role in seen if model == "bee"} == {"user", "system"}  # the first look has no system text
    assert {role for model, role in seen if model != "bee"} == {"user"}
    members = study["costs"]["members"]
    assert set(members) == set(SKILLS)
    assert sum(member["calls"] for member in members.values()) == study["costs"]["total"]["calls"]
    prices = {name: price["money"] for name, price in study["costs"]["prices"].items()}
    assert prices == {"bee": members["bee"]["completion_tokens"]}
    assert prices["bee"] > 0
