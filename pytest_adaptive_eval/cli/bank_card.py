"""The card of a bank in Markdown: source, licence, items, subjects, fit, and the margins that a fifth of it decides."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_adaptive_eval.text import clean_terminal, counted, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

#: Share of a bank, and probability of a verdict, that the card tells margins of.
_SHARE, _POWER = "20%", 0.8
#: Margins that are tried, in hundredths, and licences that the hub knows by these names.
_MARGINS = (*range(1, 11), 12, 15, 20, 25, 30, 40)
_LICENCES = {
    *("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "gpl-3.0", "lgpl-3.0", "mpl-2.0", "openrail"),
    *("cc0-1.0", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("cc-by-nc-nd-4.0", "odc-by", "pddl"),
}


def licence_of(bank: ItemBank) -> str:
    """Return the licence that the bank records; empty if none."""
    source = bank.report.get("source")
    if isinstance(source, dict):
        return str(source.get("licence") or "")
    return ""


def decided_margins(bank: ItemBank) -> dict[str, float | None]:
    """Return the smallest margin that a fifth of the bank decides with a probability of .8, by kind of gate.

    A margin is the distance of the accuracy from a threshold, or the loss that a comparison with a baseline allows.
    None where no margin up to .4 is decided.
    """
    from pytest_adaptive_eval.cat.policy import POLICIES
    from pytest_adaptive_eval.cat.selectors import SELECTORS
    from pytest_adaptive_eval.cat.stopping import resolve_budget
    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.planning import outlooks

    policy = POLICIES["decide"]
    if not bank.calibrated:
        policy = replace(policy, selector=SELECTORS["random"], floor=0.0)
    budget = resolve_budget(_SHARE, len(bank))
    margins: dict[str, float | None] = {}
    for name in ("at_least", "not_worse_than"):
        margins[name] = None
        for margin in (hundredths / 100 for hundredths in _MARGINS):
            value, baseline = (0.5, "") if name == "at_least" else (margin, "baseline")
            forecasts = outlooks(Condition("accuracy", name, value, baseline), bank, policy, margin=margin)
            if min(forecast.chance(budget) for forecast in forecasts) >= _POWER:
                margins[name] = margin
                break
    return margins


def facts(bank: ItemBank) -> Iterator[tuple[str, str]]:
    """Yield the known facts about a bank, as names and texts."""
    source = bank.report.get("source")
    if isinstance(source, dict):
        source = source
    else:
        source = {}
    yield "items", str(len(bank))
    yield "content", bank.content_hash
    yield "source", clean_terminal(str(source.get("source") or "unknown"), 300)
    yield "licence", clean_terminal(licence_of(bank) or "unknown", 100)
    graders = Counter(item.grader for item in bank.items)
    yield "graders", ", ".join(f"{count} {grader}" for grader, count in graders.most_common())
    categories = Counter(category or "none" for category in bank.categories)
    listed = ", ".join(f"{clean_terminal(name, 60)} {count}" for name, count in categories.most_common(20))
    yield "categories", listed + (f" and {len(categories) - 20} more" if len(categories) > 20 else "")
    yield "with images", str(sum(bool(item.images) for item in bank.items))
    yield "parameters", _fit(bank)
    if bank.report.get("ready"):
        yield "ready bank", str(bank.report["ready"])
    for warning in [*bank.report.get("problems", ()), *bank.report.get("warnings", ())]:
        yield "warning", clean_terminal(str(warning), 400)
    for name, margin in decided_margins(bank).items():
        meaning = "from a threshold" if name == "at_least" else "of loss against a baseline"
        if margin is None:
            text = "no margin up to .4"
        else:
            text = f"a margin of {number(margin)} {meaning}"
        yield "a fifth decides", f"{text}, in 4 of 5 runs"


def _fit(bank: ItemBank) -> str:
    if not bank.calibrated:
        return "none: items are drawn uniformly"
    report = bank.report
    text = f"{bank.model}, {counted(bank.dimensions, 'dimension')}, scale {bank.scale}"
    if bank.subjects:
        text += f", of {counted(len(bank.subjects), 'subject')}"
    if len(bank.accuracies):
        text += f" with accuracies from {number(min(bank.accuracies))} to {number(max(bank.accuracies))}"
    loss = report.get("log_loss")
    if isinstance(loss, dict) and {"bank", "rasch", "mean accuracy"} <= loss.keys():
        text += (
            f"; held-out log-loss {number(loss['bank'], 4)} nats (Rasch {number(loss['rasch'], 4)}, each subject's own "
            f"mean {number(loss['mean accuracy'], 4)})"
        )
    return text + ("" if report.get("trusted", True) else "; it FAILED its checks and was written by force")


def card(bank: ItemBank) -> str:
    """Return the card, with the head that the Hugging Face hub reads."""
    licence = licence_of(bank)
    key = licence.lower().replace(" ", "-")
    head = ["---", f"license: {key if key in _LICENCES else 'other' if licence else 'unknown'}"]
    if licence and key not in _LICENCES:
        head.append(f"license_name: {json.dumps(licence[:100])}")
    head += ["tags:", "- evaluation", "- pytest-adaptive-eval", "configs:", "- config_name: items"]
    head += ["  data_files: items.jsonl", "---"]
    rows = [f"| {name} | {_cell(text)} |" for name, text in facts(bank)]
    subjects = []
    for name in bank.subjects[:50]:
        subjects.append(f"- {_cell(clean_terminal(name, 200))}")
    if len(bank.subjects) > 50:
        subjects.append(f"- and {len(bank.subjects) - 50} more")
    return "\n".join(
        [
            *head,
            "",
            f"# {_cell(bank.name)}",
            "",
            "A bank of questions for adaptive interviews with pytest-adaptive-eval.",
            "",
            "| | |",
            "| --- | --- |",
            *rows,
            "",
            "## Intended use",
            "",
            "Gates on the accuracy over these questions, of one checkpoint or against another.  The error rate of a "
            "verdict holds for these questions, whatever the quality of the parameters; it says nothing of other "
            "questions.  Models that were trained on the questions score too high.",
            "",
            "```toml",
            "[[eval]]",
            f"bank = {json.dumps(bank.name + '.bank')}",
            "[[eval.gate]]",
            "at_least = 0.5  # your own threshold",
            "```",
            *(["", "## Subjects of the calibration", "", *subjects] if subjects else []),
            "",
        ]
    )


def _cell(text: str) -> str:
    """Return a text that neither leaves its cell nor becomes a link or HTML."""
    return re.sub(r"([\\|`*_\[\]<>#])", r"\\\1", " ".join(text.split()))
