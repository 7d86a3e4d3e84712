"""Settings of evaluations and gates, declared once: markers, TOML files, JSON Schema and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pytest_adaptive_eval.banks.ready import ready_name
from pytest_adaptive_eval.cat.policy import INTERVIEWING, PAPERS, POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import METHODS, ON_INCONCLUSIVE
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.inputs import DRIFT_ACTIONS, read_regular, reading
from pytest_adaptive_eval.items.likelihood import NORMALIZATIONS
from pytest_adaptive_eval.items.presentation import is_template
from pytest_adaptive_eval.ladder.policy import LADDER
from pytest_adaptive_eval.typed_tables import Count, FewTimes, Index, Number, Size, Table, hinted, named, replaced

GENERATE, LIKELIHOOD = "generate", "likelihood"  #: Values of ``ask``.
#: Normalization of the choices' likelihoods by value of ``ask``; None where the model writes an answer.
WAYS_TO_ASK: Mapping[str, str | None] = {
    GENERATE: None,
    **{LIKELIHOOD if name == "raw" else f"{LIKELIHOOD}-{name}": name for name in NORMALIZATIONS},
}
#: Values of ``predict_from`` beside a file: the named baseline, the newest run of the run folder, the bank alone.
AUTO, HISTORY, BANK = "auto", "history", "bank"
AUTOJUDGER = "autojudger"  #: The selector that is led by an interviewer.
_SUFFIXES = (".bank", ".jsonl", ".items")  #: Of a bank's file, left out of names.


_UNANSWERED_GONE = "an answer that is empty, refused or cut is graded as it is, and no text is a wrong answer"


class PriceTable(Table, frozen=True, kw_only=True):
    """``price`` of an evaluation, of its ``interview`` or its ``judge``: what calls of that model cost.

    Args:
        prompt: Price per million prompt tokens.
        completion: Price per million answer tokens.
        hour: Price of an hour with a request open, as of a rented GPU.
        currency: Currency of the prices.
    """

    prompt: Size = 0.0
    completion: Size = 0.0
    hour: Size = 0.0
    currency: str = "USD"


class SpendingTable(PriceTable, frozen=True, kw_only=True):
    """``price`` of an evaluation: prices of the model under evaluation, and what it alone may use.

    Args:
        most_tokens: Tokens at most, of prompts and answers.
        most_money: Money at most, by these prices.
    """

    most_tokens: Count | None = None
    most_money: Size | None = None


class InterviewTable(Table, frozen=True, kw_only=True):
    """``interview`` of an evaluation whose selector is ``autojudger``.

    Args:
        interviewer: Model that picks items: a checkpoint folder or URL#MODEL; else code.
        mode: Read likelihoods of a yes, or JSON replies.
        options: Options for loading or reaching the interviewer.
        sort_candidates: The model sorts candidates into categories; for small models.
        encoder: Checkpoint folder of the embedding model.
        responses: Responses of known models, whose ranking chooses the first items.
        part: Part of an item that open_clip embeds: text, image, mean or concat.
        first: First items.
        count: Number of first items.
        window: Range of predicted scores of candidates, or false for none.
        retrieval: Selection of candidates in the window.
        candidates: Candidates that the interviewer picks from.
        agent: False: nobody picks, and the item is drawn in the window.
        visual: The interviewer sees images.
        memory: The interviewer sees the table of earlier answers.
        difficulty: Source of difficulties.
        profile: Estimate abilities by category, and take candidates from the least certain one.
        price: Prices of the interviewer's tokens.
    """

    interviewer: str = ""
    mode: Literal["rate", "reply"] | None = None
    options: dict[str, Any] = {}
    sort_candidates: bool = False
    encoder: str = ""
    responses: str = ""
    part: str | None = None
    first: Literal["cluster", "difficulty", "random", "none"] = "cluster"
    count: Index = 10
    window: tuple[Number, Number] | Literal[False] = (0.2, 0.8)
    retrieval: Literal["farthest", "nearest-difficulty", "random"] = "farthest"
    candidates: Count = 5
    agent: bool = True
    visual: bool = True
    memory: bool = True
    difficulty: Literal["irt", "none"] = "irt"
    profile: bool | None = None
    price: PriceTable | None = None


class TextFileTable(Table, frozen=True, kw_only=True):
    """A text in a file.

    Args:
        file: Its path, relative to the file of the evaluation.
    """

    file: str


class JudgeTable(Table, frozen=True, kw_only=True):
    """``judge`` of an evaluation: a model that grades the answers.

    Args:
        model: The judge: a checkpoint folder or URL#MODEL.
        options: Options for loading or reaching the judge.
        rubric: Meaning of the ranks 5 to 1, of items without meta.rubric; a text, or { file = PATH }.
        max_tokens: Longest judgment, in tokens; the judge's cap by default.
        price: Prices of the judge's tokens.
    """

    model: str = ""
    options: dict[str, Any] = {}
    rubric: str | TextFileTable = ""
    max_tokens: Count | None = None
    price: PriceTable | None = None


class GateTable(Table, frozen=True, kw_only=True):
    """``[[eval.gate]]``, and keywords of the marker ``adaptive_gate``: exactly one condition.

    Args:
        metric: Quantity that is judged, ability.PART, pass^K, pass@K, or with within or cap a field that tests record;
            accuracy by default, or a kind's first.
        at_least: Condition: the metric reaches this threshold, such as 0.6 or "60%".
        at_most: Condition: the metric stays at or below this threshold.
        not_worse_than: Condition: no loss beyond the margin against a baseline.
        margin: Allowed loss against the baseline, in the metric's unit, such as 0.02 or "2%".
        rank_within: Condition: a rank among the first so many subjects, on a bank by their accuracies.
        above: Condition: above this subject, on a bank at least as accurate as this recorded one.
        within: Bound of a measured value; the metric is the share of answers up to it.
        cap: Value at which measured values are cut; the metric is their mean.
        confidence: Confidence of each one-sided bound, .95 by default.
        probability: Probability of a rank in a panel or network, .95 by default.
        on_inconclusive: End of an undecided gate, fail by default.
        method: Test of an accuracy, draws by default.
        subject: One of several subjects or nodes; the candidate by default.
    """

    metric: Annotated[str | None, named(metric_names(), closed=False)] = None
    at_least: Number | str | None = None
    at_most: Number | str | None = None
    not_worse_than: str | None = None
    margin: Number | str | None = None
    rank_within: int | None = None
    above: str | None = None
    within: Number | None = None
    cap: Number | None = None
    confidence: Number | None = None
    probability: Number | None = None
    on_inconclusive: Annotated[str | None, named(ON_INCONCLUSIVE)] = None
    method: Annotated[str | None, named(METHODS)] = None
    subject: str | None = None


class EvalTable(Table, frozen=True, kw_only=True):
    """``[[eval]]`` with a bank or a task, and keywords of the marker ``adaptive_eval``.

    Args:
        name: Name of the evaluation; the bank's stem or the task by default.
        bank: Bank folder or JSONL file of items, FILE#CATEGORY for one category of it, or ready:NAME for the parameters
            of a public benchmark; beside a task, a calibrated bank with items of it, for the levels' difficulties.
        task: Family of generated tasks.
        model: The subject: a checkpoint folder, URL#MODEL or replay:FILE[#NAME].
        models: Models to ask side by side, in TOML files; { NAME = MODEL, ... } names them in reports.
        model_options: Options for loading or reaching the model.
        budget: Items at most: a count, or a share such as "15%".
        gate: Conditions that the run is judged by.
        drift: 'warn' or 'fail' where a level fell below that of earlier runs.
        max_tokens: Longest answer, in tokens; the model's own cap by default.
        system: Text of a system message before each item, for chat models, or { file = PATH }.
        examples: JSONL file of items that are shown with their answers.
        template: Text with {prompt}, {choices} and {examples}, the prompt alone by default; it may end with space and
            {answer} or {letter}, the text or letter of a choice, by default a space and the letter with {choices}; or a
            file of such a text.
        templates: Templates to ask side by side, in TOML files.
        ask: The model writes an answer, or likelihoods of choices are read and compared.
        judge: Model that grades the answers, in place of the items' graders.
        samples: Times that each item is asked; its score is the mean.
        repeat: Items asked again to measure decoding noise: a count, or a share such as "10%".
        formats: All, or a list of modality combinations of items.
        must_pass: Ids or categories of items that are asked first; a wrong answer to one fails every gate.
        wrong_answer: Answer that the test has to fail, where it would pass any made-up one.
        levels: Highest level of the task; the family's own by default.
        queries: Items of each level: 10 on a ladder, else 50 by default.
        stop_at: A ladder ends at a level whose accuracy is at most this.
        size: 'small' for tiny models: few words, pictures of 48 pixels; or pixels of a picture, 448 to 2048.
        policy: Ladder by default with a task, else decide.
        stop: End at a 'decision' on all gates, at the 'budget', or at this standard error of the ability; on a ladder,
            end a level at a 'decision' by bets, or ask all levels until the area's interval is so many levels wide.
        selector: Rating of the items to draw.
        floor: Share of draws that the selector does not rate.
        interview: Settings of the selector autojudger.
        batch: Items drawn and answered together.
        seed: Seed of every draw.
        predict_from: Earlier run that predicts the answers of this one, for gates on accuracy: auto, the baseline
            that the options name; history, the newest run of another subject in the run folder; a file as of a
            baseline; or bank, for none.
        price: Prices of the subject's tokens, and what may be spent.
    """

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

    name: str | None = None
    bank: str = ""
    task: str = ""
    model: str | None = None
    models: list[str] | dict[str, str] = []
    model_options: dict[str, Any] = {}
    budget: Annotated[int | str | None, hinted(' (a share is written in quotes: "15%")')] = None
    gate: list[GateTable] = []
    drift: Annotated[str | None, named(DRIFT_ACTIONS)] = None

    max_tokens: Count | None = None
    system: str | TextFileTable = ""
    examples: str = ""
    template: str | None = None
    templates: list[str] = []
    ask: Annotated[str, named(WAYS_TO_ASK)] = GENERATE
    judge: JudgeTable | None = None
    samples: FewTimes = 1
    repeat: int | str | None = None

    formats: str | list[str] | None = None
    must_pass: list[str] = []
    wrong_answer: str | None = None

    levels: int | None = None
    queries: int | None = None
    stop_at: Number = 0.0
    size: int | Literal["small"] | None = None

    policy: Annotated[str | None, named([*POLICIES, *PAPERS, LADDER])] = None
    stop: Number | str | None = None
    selector: Annotated[str | None, named([*SELECTORS, AUTOJUDGER], closed=False)] = None
    floor: Number | None = None
    interview: InterviewTable | None = None
    batch: int | None = None
    seed: Index = 0
    predict_from: str = AUTO

    price: SpendingTable | None = None

    def with_files(self, base: Path) -> EvalTable:
        """Return the table with the texts of the files that it names, relative to `base`, in their place.

        Raises:
            ConfigError: A file cannot be read.
        """
        texts: dict[str, Any] = {}
        if self.template is not None and not is_template(self.template) and (base / self.template).is_file():
            texts["template"] = _read_text(base / self.template)
        if isinstance(self.system, TextFileTable):
            texts["system"] = _read_text(base / self.system.file)
        if self.judge is not None and isinstance(self.judge.rubric, TextFileTable):
            texts["judge"] = replaced(self.judge, rubric=_read_text(base / self.judge.rubric.file))
        if texts:
            return replaced(self, **texts)
        return self

    @property
    def stem(self) -> str:
        """The task, or the bank's file name without its suffixes."""
        if self.task:
            return self.task
        stem = ready_name(self.source[0]) or Path(self.source[0]).name
        for suffix in _SUFFIXES:
            stem = stem.removesuffix(suffix)
        return stem

    @property
    def selector_name(self) -> str | None:
        """Name of the selector that the settings say; None for that of the policy."""
        if self.policy in INTERVIEWING:
            return AUTOJUDGER
        return self.selector

    @property
    def source(self) -> tuple[str, str | None]:
        """File and category of the bank; a name such as ``a#b.jsonl`` has no category."""
        path, mark, category = self.bank.rpartition("#")
        if mark and not category.endswith(_SUFFIXES):
            return (path, category)
        return (self.bank, None)

    @property
    def default_name(self) -> str:
        """The bank's stem with the category."""
        category = self.source[1]
        if category:
            return f"{self.stem}-{category}"
        return self.stem


def _read_text(path: Path) -> str:
    with reading(path, ConfigError):
        return read_regular(path).decode("utf-8-sig", "replace")


#: Keys of ``[[eval]]`` that a marker has not.
TOML_KEYS = ("model", "models", "model_options", "templates", "gate")


class KindTable(Table, frozen=True, kw_only=True):
    """``[[eval]]`` of another kind than an interview.

    Args:
        name: Name of the evaluation; its kind by default.
        model: The candidate, unless --adaptive-eval-model names it.
        model_options: Options for loading or reaching the candidate.
        system: System message before each chat of the candidate.
        price: Prices of the candidate's tokens.
        memory: Checkpoints in memory at once; all by default.
        max_tokens: Longest reply of each model without a cap of its own, in tokens.
        seed: Seed of every draw.
        gate: Conditions that the run is judged by.
    """

    gone: ClassVar[Mapping[str, str]] = {"unanswered": _UNANSWERED_GONE}

    kind: str
    name: str | None = None
    model: str | None = None
    model_options: dict[str, Any] = {}
    system: str = ""
    price: PriceTable | None = None
    memory: Count | None = None
    max_tokens: Count | None = None
    seed: Index = 0
    gate: list[GateTable] = []

    @property
    def default_name(self) -> str:
        """The kind."""
        return self.kind


class RunTable(Table, frozen=True, kw_only=True):
    """``[run]`` of a file.

    Args:
        required: Names of gates without whose results the run fails.
    """

    required: list[str] = []
