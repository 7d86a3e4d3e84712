"""Choose the earlier run whose answers predict the answers of an interview, before its first question."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_adaptive_eval.errors import BaselineError, ConfigError, ResponsesError
from pytest_adaptive_eval.evaluation.interview import Interview
from pytest_adaptive_eval.evaluation.tables import AUTO, BANK, HISTORY
from pytest_adaptive_eval.gates.planning import predicted_outlooks
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.models.request_keys import request_key
from pytest_adaptive_eval.plugin.collect.fixtures import checkpoint_of
from pytest_adaptive_eval.plugin.state import EvaluationTest, RunState
from pytest_adaptive_eval.records.earlier import FEWEST, EarlierRun, newest_of_another, read_earlier
from pytest_adaptive_eval.text import counted

KEPT = "predictions"  #: Folder, in the run folder, of the answers that predicted for interviews.


def choose_predictions(node: EvaluationTest, state: RunState) -> None:
    """Have an earlier run predict the answers of an interview, if one may and its settings name one.

    Raises:
        BaselineError: The file that `predict_from` names cannot be read.
    """
    interview = node.evaluation
    plan = node.gate_plan
    if not isinstance(interview, Interview):
        return
    if not interview.predictable(plan):
        if interview.predict_from not in (AUTO, BANK):
            plan.remarks.append(
                f"WARNING: {interview.name}: predict_from = {interview.predict_from!r} has no effect: no gate is on "
                "accuracy by the draws, or one compares with a baseline"
            )
        return
    choice = _Choice(node, state, interview)
    chosen = json.loads(state.exchange.once(f"predictions of {node.nodeid}", choice.make))
    plan.remarks += chosen["remarks"]
    if chosen["earlier"] is not None:
        node.evaluation = interview.predicted_by(EarlierRun.from_json(chosen["earlier"]))
        node.predictions = chosen["kept"]


class _Choice:
    """Choice of an earlier run for one interview, in the process that plans it first.

    Attributes:
        remarks: What to say before the first question.
    """

    def __init__(self, node: EvaluationTest, state: RunState, interview: Interview) -> None:
        self._node = node
        self._state = state
        self._interview = interview
        self._checkpoint = ""
        self.remarks: list[str] = []

    def make(self) -> str:
        """Return the run, the path of its copy, and remarks as JSON."""
        copy: Path | None = None
        earlier = None
        if self._source:
            if not self._state.config.option.collectonly:
                self._checkpoint = checkpoint_of(self._state.config, self._node)
            copy = self._copy
            earlier = self._stored(copy) or self._named_run()
        if earlier is None:
            data = None
        else:
            data = earlier.to_json()
        return json.dumps({"earlier": data, "kept": copy and str(copy), "remarks": self.remarks})

    @property
    def _source(self) -> str:
        """A baseline's file, `HISTORY`, or nothing."""
        written = self._interview.predict_from
        if written == BANK:
            return ""
        if written == AUTO:
            return self._state.settings.baseline or (HISTORY if self._state.history else "")
        return written

    @property
    def _copy(self) -> Path | None:
        """File of the answers that predicted when this interview of a known checkpoint first took place."""
        if not self._checkpoint or self._state.settings.fresh:
            return None
        interview = self._interview
        key = request_key(
            *(self._node.nodeid, interview.bank.content_hash, interview.seed, interview.predict_from, self._source),
            self._checkpoint,
        )
        return self._state.folder / KEPT / f"{key[:24]}.json"

    @staticmethod
    def _stored(path: Path | None) -> EarlierRun | None:
        """Return the answers of an earlier run that a file keeps; None without one."""
        if path is None or not path.is_file():
            return None
        try:
            return EarlierRun.from_json(json.loads(read_regular(path)))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{path} is damaged ({error}): remove it, or run with --adaptive-eval-fresh") from None

    def _named_run(self) -> EarlierRun | None:
        """Return the run that the settings name; None, with a remark, where it predicts nothing."""
        if self._source == HISTORY:
            return self._in_history()
        folders = (self._state.config.invocation_params.dir, self._node.path.parent, self._state.config.rootpath)
        interview = self._interview
        try:
            earlier = read_earlier(self._source, folders, interview.bank, interview.name)
        except BaselineError as error:
            unread = error.__cause__ is not None and not isinstance(error.__cause__, ResponsesError)
            if interview.predict_from != AUTO or unread:
                raise  # a record that cannot be read, or not fetched, is as one that is not there
            if self._state.settings.missing_baseline != "record":  # in a first run there is none yet
                self.remarks.append(f"{interview.name}: the baseline predicts nothing: {error}")
            return None
        if earlier.is_of(self._checkpoint):
            label = earlier.source.label
            self.remarks.append(f"{interview.name}: {label} is the candidate itself and predicts nothing")
            return None
        return earlier

    def _in_history(self) -> EarlierRun | None:
        """Return the newest run of the run folder by another subject; with `AUTO` only say what it would save."""
        interview = self._interview
        history = self._state.history
        earlier = None
        if history is not None:
            earlier = newest_of_another(history, self._node.nodeid, interview.bank, self._checkpoint)
        if interview.predict_from == HISTORY:
            if earlier is None:
                self.remarks.append(
                    f"{interview.name}: the run folder has no run of another subject with {FEWEST} answers, so the "
                    "bank alone predicts"
                )
            return earlier
        if earlier is not None and (saving := self._saving(earlier)):
            source = earlier.source
            self.remarks.append(
                f"{interview.name}: {source.label} has {counted(source.answers, 'answer')} of this bank, and would "
                f'save about {100 * saving:.0f} % of the questions as predictions: write predict_from = "history"'
            )
        return None

    def _saving(self, earlier: EarlierRun) -> float:
        """Return the share of the expected questions that predictions save; 0 where they save none."""
        answers = earlier.on(self._interview.bank)
        predicted = self._interview.predicted_by(earlier)
        expected = []
        for interview, predictions in ((self._interview, None), (predicted, answers)):
            forecast = []
            for condition in self._node.gate_plan.conditions:
                forecast += predicted_outlooks(condition, interview.bank, interview.policy, predictions)
            expected.append(max(outlook.expected for outlook in forecast))
        return max(1.0 - expected[1] / expected[0], 0.0)
