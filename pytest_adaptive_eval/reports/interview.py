"""The section of the page on one interview: its estimates, its settings and the results by category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_adaptive_eval.records.parts import Costs, InterviewerRecord, listed_kinds
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.figures import interview_figures
from pytest_adaptive_eval.reports.markup import Markup, clean_html
from pytest_adaptive_eval.reports.plots import minus
from pytest_adaptive_eval.reports.sections import Section, Table, interval_of
from pytest_adaptive_eval.reports.view import ReportView
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import counted, number


class InterviewSection(Section):
    """Parts of the page of an interview."""

    __slots__ = ()

    def parts(self, key: str, view: ReportView) -> dict[str, Any]:
        """Return tables, figures, facts, notes and the setting of one interview as the page's template takes them."""
        interview = view.record
        return {
            "facts": _facts(view, interview),
            "notes": [note for _, note in view.notes()],
            "made": _setup(interview) | interviewer_facts(interview),
            "figures": interview_figures(key, interview),
            "tables": [*_categories(interview), *_memory(interview), *_samples(interview), *_costs(interview)],
        }


SECTION = InterviewSection()


def _facts(view: ReportView, interview: EvaluationRecord) -> list[tuple[str, str, str]]:
    """Return name, value and remark of each figure in the head of an interview."""
    percent = words.percent(interview)
    title = "Accuracy over the whole bank"
    interval = interview.projection
    value, more = view.result, ""
    if interview.levels:
        title = "Area under the accuracy by level"
        interval = interview.levels.auc
        value, _, more = value.partition(", last level")
        value = value.removeprefix("AUC ")
        if more:
            more = f"last level{more}; "
    seconds = plottable(interview.seconds)
    facts = []
    if interview.theta:
        unit = words.ability_unit([interview])
        facts.append(("Ability", minus(view.ability), f"{unit}, two-sided {percent}"))
    if interval:
        remark = f"{more}{interval.method}, two-sided {percent}"
    else:
        remark = more
    facts.append((title, value, remark))
    noise = words.noise(interview)
    if noise:
        facts.append(("Decoding noise", noise, "standard error that it gives the accuracy; the interval allows for it"))
    facts.append(("Asked", view.asked, words.statuses(interview) or "each has a score"))
    duration = ""
    if seconds:
        duration = f"after {seconds:.1f} s"
    facts.append(("Ended because", words.stop(interview), duration))
    return facts


def _setup(interview: EvaluationRecord) -> dict[str, str]:
    subject, bank = interview.subject, interview.bank
    sizes = []
    for size, count in interview.call_sizes.items():
        sizes.append(f"{size} ({count} times)")
    bank_facts = {name: getattr(bank, name) for name in _BANK}
    return {
        "checkpoint": subject.checkpoint,
        "decoding": words.settings(subject.decoding) or subject.decoding_hash,
        "environment": words.settings(subject.environment),
        "bank": words.settings(bank_facts),
        "system": bank.presentation.system if bank.presentation else "",
        "policy": words.settings(interview.policy.to_json()),
        "questions a call": ", ".join(sizes),
    }


def _categories(interview: EvaluationRecord) -> list[Table]:
    """Return the table of categories; levels have a figure instead."""
    if interview.levels or not interview.categories:
        return []
    note = "Categories have no intervals here: as for the whole bank, the draws of this interview allow none."
    if words.ended_at_verdict(interview):
        note = "Categories have no intervals here: they would miss too often, since the interview ended at its verdict."
    rows = []
    for row in interview.categories:
        accuracy = words.category_accuracy(row, interview)
        interval = interval_of(accuracy)
        text = "-"
        bar = Markup()
        if accuracy and interval:
            text = accuracy.in_words()
            bar = plots.interval_bar(*interval)
            note = "Each interval holds by itself, not all at once."
        asked = words.count(row.asked, row.size)
        rows.append((clean_html(row.category or "none", 100), asked, words.category_counts(row), text, bar))
    heads = ("category", "asked", "right", f"accuracy, {words.percent(interview)}", "")
    return [Table("Accuracy by category", heads, rows, note)]


def _memory(interview: EvaluationRecord) -> list[Table]:
    """Return the table of the interviewer's memory, with the profile of abilities if there is one."""
    account = interview.interviewer
    if account is None or not account.memory or not account.memory[0]:
        return []
    memory = account.memory[0]
    profiled = any(row.ability is not None for row in memory)
    heads: tuple[str, ...] = ("category", "asked", "difficulties", "mean score")
    note = "As the interviewer was shown it. A question may be of several categories."
    if profiled:
        heads = (*heads, "ability")
        note += " Abilities are in logits with standard errors: the whole ability plus deviations, estimated together."
    rows: list[tuple[str | Markup, ...]] = []
    for row in memory:
        difficulties = "-"
        if row.lowest is not None and row.highest is not None:
            difficulties = minus(f"{number(row.lowest, 1)} to {number(row.highest, 1)}")
        if row.accuracy is None:
            score = "-"
        else:
            score = number(row.accuracy)
        cells: tuple[str | Markup, ...] = (clean_html(row.name, 100), str(row.count), difficulties, score)
        if profiled:
            cells = (*cells, _with_error(row.ability, row.standard_error))
        rows.append(cells)
    return [Table("The interviewer's memory", heads, rows, note)]


def _with_error(ability: float | None, error: float | None) -> str:
    if ability is None or error is None:
        return "-"
    return minus(f"{number(ability, 2)} ± {number(error, 2)}")


def _samples(interview: EvaluationRecord) -> list[Table]:
    """Return the table of items with flaky answers, and of all others where a gate is on samples."""
    estimates = interview.item_estimates
    scores: dict[str, list[float]] = {}
    for answer in interview.administrations:
        if answer.score is not None:
            scores.setdefault(answer.item, []).append(answer.score)
    flaky = set(interview.flaky)
    listed = [item for item in scores if item in flaky]
    if estimates:
        listed += [item for item in scores if item not in flaky]
    rows: list[tuple[str | Markup, ...]] = []
    for item in listed:
        right = f"{scores[item].count(1.0)} of {len(scores[item])}"
        values = []
        for by_item in estimates.values():
            values.append(number(by_item[item]) if item in by_item else "-")
        rows.append((clean_html(item, 100), right, *values))
    if not rows:
        return []
    heads = ("item", "right", *(clean_html(metric, 40) for metric in estimates))
    note = "Items with a right answer and one that is not come first."
    return [Table("Answers by item", heads, rows, note)]


def _costs(interview: EvaluationRecord) -> list[Table]:
    rows = words.cost_rows([interview])
    if not rows:
        return []
    measured = words.per_item(interview)
    note = f"On average {measured}." if measured else ""
    return [Table("Cost of this run", words.COST_HEADS, rows, note)]


_BANK = ("name", "content_hash", "scale", "size", "model")  #: Facts of a bank that the page shows.


def interviewer_facts(interview: EvaluationRecord) -> dict[str, str]:
    """Return facts on the interviewer, empty if a formula chose the questions."""
    account = interview.interviewer
    if account is None:
        return {}
    interviewer = account.interviewer
    distances = []
    semantic_distance = _mean(account.semantic_distance)
    if semantic_distance is not None:
        distances.append(f"{semantic_distance:.2f} apart on average by the embeddings (semantic distance)")
    off = _mean(account.difficulty_distance)
    if off is not None:
        distances.append(f"difficulties {off:.2f} logits from the ability, past the first questions")
    embeddings = account.embeddings
    if account.embedding_flops:
        embeddings += f", {account.embedding_flops:.2g} FLOPs"
    name = "none: drawn in the window"
    if interviewer:
        if interviewer.name == "deterministic":
            name = "by code"
        else:
            name = interviewer.name or "unnamed"
    return {
        "interviewer": name,
        "embeddings": embeddings,
        "window of chances": account.window,
        "chose": _choices(account, interview),
        "questions": "; ".join(distances),
        "fallbacks": _fallbacks(account),
        "cost": _cost(interview.costs),
    }


def _mean(distances: Sequence[float | None]) -> float | None:
    """Return the only subject's mean distance of questions if a page can show it."""
    if not distances:
        return None
    return plottable(distances[0])


def _cost(costs: Costs) -> str:
    """Return ``subject 96 calls, 3100 tokens; interviewer 40 calls, 12000 tokens; 1.2e+12 FLOPs, ...``."""
    parts = []
    for role, spent in (("subject", costs.subject), ("interviewer", costs.interviewer)):
        if spent and spent.calls:
            text = f"{role} {counted(spent.calls, 'call')}, {spent.tokens:,} tokens"
            if spent.flops:
                text += f", {spent.flops:.2g} FLOPs"
            parts.append(text)
    if costs.relative is not None:
        parts.append(f"{100 * costs.relative:.1f} % of the FLOPs of asking the whole bank")
    return "; ".join(parts)


def _choices(account: InterviewerRecord, interview: EvaluationRecord) -> str:
    if account.chosen is None:
        return ""
    text = f"{account.chosen} times, in {counted(interview.asked, 'question')}"
    if account.widened:
        text += f"; the window was empty and widened {account.widened} times"
    return text


def _fallbacks(account: InterviewerRecord) -> str:
    agent = account.interviewer
    if account.fallbacks is None or not agent:
        return ""
    text = f"choices {account.fallbacks}{listed_kinds(agent.fallbacks)}"
    if agent.category_fallbacks:
        text += f"; categories {account.fallback_counts[1]}{listed_kinds(agent.category_fallbacks)}"
    if agent.asked_again:
        text += f"; asked again {agent.asked_again} times"
    return text
