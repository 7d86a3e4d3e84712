"""Settings of evaluations and gates, declared once: markers, TOML files, JSON Schema and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.gates.condition import METHODS, ON_INCONCLUSIVE
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.items.likelihood import NORMALIZATIONS
from pytest_adaptive_eval.ladder.policy import LADDER
from pytest_adaptive_eval.typed_tables import Count, FewTimes, Index, Number, Size, Table, described

GENERATE, LIKELIHOOD = "generate", "likelihood"  #: Values of ``ask``.
#: Normalization of the choices' likelihoods by value of ``ask``; None where the model writes an answer.
WAYS_TO_ASK: Mapping[str, str | None] = {
    GENERATE: None,
    **{LIKELIHOOD if name == "raw" else f"{LIKELIHOOD}-{name}": name for name in NORMALIZATIONS},
}
AUTOJUDGER = "autojudger"  #: The selector that is led by an interviewer.
_SUFFIXES = (".bank", ".jsonl", ".items")  #: Of a bank's file, left out of names.


_UNANSWERED_GONE = "an answer that is empty, refused or cut is graded as it stands, and no text is a wrong answer"


class PriceTable(Table, frozen=True, kw_only=True):
    """``price`` of an evaluation, of its ``interview`` or its ``judge``: what calls of that model cost."""

    prompt: Annotated[Size, described("price per million prompt tokens")] = 0.0
    completion: Annotated[Size, described("price per million answer tokens")] = 0.0
    hour: Annotated[Size, described("price of an hour with a request open, as of a rented GPU")] = 0.0
    currency: Annotated[str, described("currency of the prices")] = "USD"


class SpendingTable(PriceTable, frozen=True, kw_only=True):
    """``price`` of an evaluation: prices of the model under evaluation, and what it alone may use."""

    most_tokens: Annotated[Count | None, described("tokens at most, of prompts and answers")] = None
    most_money: Annotated[Size | None, described("money at most, by these prices")] = None


class InterviewTable(Table, frozen=True, kw_only=True):
    """``interview`` of an evaluation whose selector is ``autojudger``."""

    interviewer: Annotated[str, described("model that picks items: a checkpoint folder or URL#MODEL; else code")] = ""
    mode: Annotated[Literal["rate", "reply"] | None, described("read likelihoods of a yes, or JSON replies")] = None
    options: Annotated[dict[str, Any], described("options for loading or reaching the interviewer")] = {}
    sort_candidates: Annotated[bool, described("the model sorts candidates into categories; for small models")] = False
    encoder: Annotated[str, described("checkpoint folder of the embedding model")] = ""
    responses: Annotated[str, described("responses of known models, whose ranking chooses the first items")] = ""
    part: Annotated[str | None, described("part of an item that open_clip embeds: text, image, mean or concat")] = None
    first: Annotated[Literal["cluster", "difficulty", "random", "none"], described("first items")] = "cluster"
    count: Annotated[Index, described("number of first items")] = 10
    window: Annotated[
        tuple[Number, Number] | Literal[False], described("range of predicted scores of candidates, or false for none")
    ] = (0.2, 0.8)
    retrieval: Annotated[
        Literal["farthest", "nearest-difficulty", "random"], described("selection of candidates in the window")
    ] = "farthest"
    candidates: Annotated[Count, described("candidates that the interviewer picks from")] = 5
    agent: Annotated[bool, described("false: nobody picks, and the item is drawn in the window")] = True
    visual: Annotated[bool, described("the interviewer sees images")] = True
    memory: Annotated[bool, described("the interviewer sees the table of earlier answers")] = True
    difficulty: Annotated[Literal["irt", "none"], described("source of difficulties")] = "irt"
    price: Annotated[PriceTable | None, described("prices of the interviewer's tokens")] = None


class JudgeTable(Table, frozen=True, kw_only=True):
    """``judge`` of an evaluation: a model that grades the answers."""

    model: Annotated[str, described("the judge: a checkpoint folder or URL#MODEL")] = ""
    options: Annotated[dict[str, Any], described("options for loading or reaching the judge")] = {}
    rubric: Annotated[str, described("meaning of the ranks 5 to 1, of items without meta.rubric")] = ""
    max_tokens: Annotated[Count | None, described("longest judgment, in tokens; the judge's cap by default")] = None
    price: Annotated[PriceTable | None, described("prices of the judge's tokens")] = None


class GateTable(Table, frozen=True, kw_only=True):
    """``[[eval.gate]]``, and keywords of the marker ``adaptive_gate``: exactly one condition."""

    metric: Annotated[
        str | None, described(f"{', '.join(metric_names())}, or ability.PART; accuracy by default, or a kind's first")
    ] = None
    at_least: Annotated[
        Number | str | None, described('condition: the metric reaches this threshold, such as 0.6 or "60%"')
    ] = None
    not_worse_than: Annotated[str | None, described("condition: no loss beyond the margin against a baseline")] = None
    margin: Annotated[Number | str | None, described('allowed loss against the baseline, such as 0.02 or "2%"')] = None
    rank_within: Annotated[
        int | None, described("condition: a rank among the first so many subjects, on a bank by their accuracies")
    ] = None
    above: Annotated[
        str | None, described("condition: above this subject, on a bank at least as accurate as this recorded one")
    ] = None
    confidence: Annotated[Number | None, described("confidence of each one-sided bound, .95 by default")] = None
    probability: Annotated[Number | None, described("probability of a rank in a panel or network, .95 by default")] = (
        None
    )
    on_inconclusive: Annotated[str | None, described("end of an undecided gate, fail by default", ON_INCONCLUSIVE)] = (
        None
    )
    method: Annotated[str | None, described("test of an ability or an accuracy, draws by default", METHODS)] = None
    subject: Annotated[str | None, described("one of several subjects or nodes; the candidate by default")] = None


class SuiteGateTable(GateTable, frozen=True, kw_only=True):
    """``[[suite.gate]]``: the keys of ``[[eval.gate]]``, but for those that belong to the suite."""

    eval: Annotated[str, described("name of the evaluation")] = ""


class SuiteTable(Table, frozen=True, kw_only=True):
    """``[[suite]]``, and keywords of the marker ``adaptive_suite`` of a test with several gates."""

    name: Annotated[str, described("name of the suite's test; TOML files only")] = ""
    at_least: Annotated[Count | None, described("number of gates that must pass")] = None
    confidence: Annotated[Number, described("confidence of each verdict on the suite")] = 0.95
    on_inconclusive: Annotated[str, described("end of an undecided suite", ON_INCONCLUSIVE)] = "fail"
    gate: Annotated[
        list[SuiteGateTable], described("gates, with the keys of [[eval.gate]] and eval = NAME; TOML files only")
    ] = []


class EvalTable(Table, frozen=True, kw_only=True):
    """``[[eval]]`` with a bank or a task, and keywords of the marker ``adaptive_eval``."""

    gone: ClassVar[Mapping[str, str]] = {
        "values": "write the items with other values in a bank of their own",
        "unanswered": _UNANSWERED_GONE,
        "temperature": "write model_options = { temperature = ... }",
        "shots": "write as many items into the file of examples",
        "normalization": 'write it into ask, such as ask = "likelihood-bytes"',
        "scale": "name the calibrated bank as bank, beside the task",
        "budget_tokens": "write price = { most_tokens = ... }",
        "budget_money": "write price = { ..., most_money = ... }",
    }

    name: Annotated[str | None, described("name of the evaluation; the bank's stem or the task by default")] = None
    bank: Annotated[
        str,
        described(
            "bank folder or JSONL file of items, or FILE#CATEGORY for one category of it; beside a task, a calibrated "
            "bank with items of it, for the levels' difficulties"
        ),
    ] = ""
    task: Annotated[str, described("family of generated tasks")] = ""
    model: Annotated[str | None, described("the subject: a checkpoint folder, URL#MODEL or replay:FILE[#NAME]")] = None
    model_options: Annotated[dict[str, Any], described("options for loading or reaching the model")] = {}
    budget: Annotated[
        int | str | None,
        described('items at most: a count, or a share such as "15%"', hint=' (a share is written in quotes: "15%")'),
    ] = None
    gate: Annotated[list[GateTable], described("conditions that the run is judged by")] = []

    max_tokens: Annotated[Count | None, described("longest answer, in tokens; the model's own cap by default")] = None
    system: Annotated[str, described("text of a system message before each item, for chat models")] = ""
    examples: Annotated[str, described("JSONL file of items that are shown with their answers")] = ""
    template: Annotated[
        str | None,
        described(
            "text with {prompt}, {choices} and {examples}, the prompt alone by default; it may end with space and "
            "{answer} or {letter}, the text or letter of a choice, by default a space and the letter with {choices}"
        ),
    ] = None
    ask: Annotated[
        str, described("the model writes an answer, or likelihoods of choices are read and compared", WAYS_TO_ASK)
    ] = GENERATE
    judge: Annotated[JudgeTable | None, described("model that grades the answers, in place of the items' graders")] = (
        None
    )
    samples: Annotated[FewTimes, described("times that each item is asked; its score is the mean")] = 1
    repeat: Annotated[
        int | str | None, described('items asked again to measure decoding noise: a count, or a share such as "10%"')
    ] = None

    formats: Annotated[str | list[str] | None, described("all, or a list of modality combinations of items")] = None
    must_pass: Annotated[
        list[str], described("ids or categories of items that are asked first, and of which none may be wrong")
    ] = []
    wrong_answer: Annotated[
        str | None, described("answer that the test has to fail, where it would pass any made-up one")
    ] = None

    levels: Annotated[int | None, described("highest level of the task; the family's own by default")] = None
    queries: Annotated[int | None, described("items of each level: 10 on a ladder, else 50 by default")] = None
    stop_at: Annotated[Number, described("a ladder ends at a level whose accuracy is at most this")] = 0.0
    size: Annotated[
        int | Literal["small"] | None,
        described("'small' for tiny models: few words, pictures of 48 pixels; or pixels of a picture, 448 to 2048"),
    ] = None

    policy: Annotated[str | None, described("ladder by default with a task, else decide", [*POLICIES, LADDER])] = None
    stop: Annotated[
        Number | str | None,
        described(
            "end at a 'decision' on all gates, at the 'budget', or at this standard error of the ability; on a ladder, "
            "end a level at a 'decision' by bets, or ask all levels until the area's interval is so many levels wide"
        ),
    ] = None
    selector: Annotated[
        str | None, described("rating of the items to draw", [*SELECTORS, AUTOJUDGER], closed=False)
    ] = None
    floor: Annotated[Number | None, described("share of draws that the selector does not rate")] = None
    interview: Annotated[InterviewTable | None, described("settings of the selector autojudger")] = None
    batch: Annotated[int | None, described("items drawn and answered together")] = None
    seed: Annotated[Index, described("seed of every draw")] = 0

    price: Annotated[SpendingTable | None, described("prices of the subject's tokens, and what may be spent")] = None

    @property
    def stem(self) -> str:
        """The task, or the bank's file name without its suffixes."""
        if self.task:
            return self.task
        stem = Path(self.source[0]).name
        for suffix in _SUFFIXES:
            stem = stem.removesuffix(suffix)
        return stem

    @property
    def source(self) -> tuple[str, str | None]:
        """File and category of the bank; a name such as ``a#b.jsonl`` has no category."""
        path, mark, category = self.bank.rpartition("#")
        return (path, category) if mark and not category.endswith(_SUFFIXES) else (self.bank, None)

    @property
    def default_name(self) -> str:
        """The bank's stem with the category."""
        category = self.source[1]
        return f"{self.stem}-{category}" if category else self.stem


#: Keys of ``[[eval]]`` that a marker has not.
TOML_KEYS = ("model", "model_options", "gate")


class KindTable(Table, frozen=True, kw_only=True):
    """``[[eval]]`` of another kind than an interview."""

    gone: ClassVar[Mapping[str, str]] = {"unanswered": _UNANSWERED_GONE}

    kind: str
    name: Annotated[str | None, described("name of the evaluation; its kind by default")] = None
    model: Annotated[str | None, described("the candidate, unless --adaptive-eval-model names it")] = None
    model_options: Annotated[dict[str, Any], described("options for loading or reaching the candidate")] = {}
    system: Annotated[str, described("system message before each chat of the candidate")] = ""
    price: Annotated[PriceTable | None, described("prices of the candidate's tokens")] = None
    memory: Annotated[Count | None, described("checkpoints in memory at once; all by default")] = None
    max_tokens: Annotated[
        Count | None, described("longest reply of each model without a cap of its own, in tokens")
    ] = None
    seed: Annotated[Index, described("seed of every draw")] = 0
    gate: Annotated[list[GateTable], described("conditions that the run is judged by")] = []

    @property
    def default_name(self) -> str:
        """The kind."""
        return self.kind


class RunTable(Table, frozen=True, kw_only=True):
    """``[run]`` of a file."""

    required: Annotated[list[str], described("names of gates without whose results the run fails")] = []
