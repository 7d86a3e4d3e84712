"""Presets of benchmarks of reasoning and common sense."""

from __future__ import annotations

from pathlib import Path

from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset


def _labels_beside(source: Path) -> Path | None:
    """Return the file ``SPLIT-labels.lst`` beside ``SPLIT.jsonl``."""
    folder, split = (source, "valid") if source.is_dir() else (source.parent, source.name.partition(".")[0])
    path = folder / f"{split}-labels.lst"
    return path if path.is_file() else None


REGISTERED = (
    preset(
        "hellaswag",
        "HellaSwag",
        ItemMapping(
            id="ind",
            question="ctx",
            choices=("endings",),
            answer="label",
            counted="0",
            category=("activity_label",),
            meta=("split_type",),
        ),
        ItemMapping(question="query", choices=("choices",), answer="gold", counted="0"),
        ask="likelihood",
        few_shot="train",
    ),
    preset(
        "winogrande",
        "WinoGrande: which option fills the blank",
        ItemMapping(question="sentence", choices=("option1", "option2"), answer="answer", counted="1", id="qID"),
        ItemMapping(question="sentence", choices=("option1", "option2"), answer="answer", counted="1"),
        ask="likelihood",
        few_shot="train",
    ),
    preset(
        "piqa",
        "PIQA: labels in SPLIT-labels.lst beside SPLIT.jsonl",
        ItemMapping(question="goal", choices=("sol1", "sol2"), answer="label", counted="0"),
        ItemMapping(question="goal", choices=("sol1", "sol2"), counted="0"),
        files="valid.jsonl*",
        labels=_labels_beside,
        ask="likelihood",
        few_shot="train",
    ),
    preset(
        "siqa",
        "SocialIQA: labels in SPLIT-labels.lst, or in the hub's column, from 1",
        ItemMapping(
            context="context",
            question="question",
            choices=("answerA", "answerB", "answerC"),
            answer="label",
            counted="1",
        ),
        ItemMapping(context="context", question="question", choices=("answerA", "answerB", "answerC"), counted="1"),
        labels=_labels_beside,
        ask="likelihood",
    ),
    preset(
        "boolq",
        "BoolQ, in its own form and that of SuperGLUE",
        ItemMapping(
            context="passage", question="question", answer="label", grader="yesno", instruction="Answer yes or no."
        ),
        ItemMapping(
            context="passage", question="question", answer="answer", grader="yesno", instruction="Answer yes or no."
        ),
        ask="likelihood",
        few_shot="train",
    ),
    preset(
        "copa",
        "COPA: cause or effect of a premise",
        ItemMapping(
            question="{premise}\n\nWhat was the {question} of this?",
            choices=("choice1", "choice2"),
            answer="label",
            counted="0",
        ),
        ask="likelihood",
        few_shot="train",
    ),
    preset(
        "bbh",
        "BIG-Bench Hard: each task graded by the form of its targets",
        ItemMapping(rows="examples[*]", question="input", answer="target", category=("$set",)),
        files="*.json*",
        few_shot="cot-prompts",
    ),
    preset(
        "bigbench",
        "BIG-bench task.json: target or target_scores, with the canary",
        ItemMapping(
            rows="examples[*]",
            question="input",
            choices=("target_scores",),
            accepted=("target",),
            category=("$set",),
            meta=("canary",),
        ),
        ItemMapping(rows="examples[*]", question="input", accepted=("target",), category=("$set",), meta=("canary",)),
        files="**/task.json*",
    ),
    preset(
        "lambada",
        "LAMBADA: the last word of a passage",
        ItemMapping(
            question="context", answer="continuation", grader="exact", instruction="Answer with the next word alone."
        ),
        ItemMapping(
            question="{text | extract(\\A(.*)\\s\\S+\\s*\\Z)}",
            answer="text | extract((\\S+)\\s*\\Z)",
            grader="exact",
            instruction="Answer with the next word alone.",
        ),
        ask="likelihood",
    ),
    preset(
        "strategyqa",
        "StrategyQA",
        ItemMapping(id="qid", question="question", answer="answer", grader="yesno", instruction="Answer yes or no."),
    ),
    preset(
        "mt-bench",
        "MT-bench: two turns, which a judge ranks together",
        ItemMapping(id="question_id", messages="turns", answer="reference", category=("category",), grader="judge"),
    ),
)
