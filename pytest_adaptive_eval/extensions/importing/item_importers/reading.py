"""Presets of question answering with short texts."""

from __future__ import annotations

from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset

_SHORT = "Answer with a few words."

REGISTERED = (
    preset(
        "squad",
        "SQuAD 1.1 and 2.0, XQuAD: unanswerable questions are refused",
        ItemMapping(
            rows="data[*].paragraphs[*].qas[*]",
            id="id",
            context="context",
            question="question",
            accepted=("answers",),
            grader="exact_match",
            category=("title",),
            instruction=_SHORT,
        ),
        ItemMapping(
            id="id",
            context="context",
            question="question",
            accepted=("answers.text",),
            grader="exact_match",
            category=("title",),
            instruction=_SHORT,
        ),
    ),
    preset(
        "drop",
        "DROP: a number, spans or a date, and the validated answers",
        ItemMapping(
            rows="*.qa_pairs[*]",
            id="query_id",
            context="passage",
            question="question",
            answer="answer",
            grader="exact_match",
            instruction=_SHORT,
        ),
        ItemMapping(
            id="query_id",
            context="passage",
            question="question",
            accepted=("answers_spans",),
            grader="exact_match",
            instruction=_SHORT,
        ),
    ),
    preset(
        "triviaqa",
        "TriviaQA: any alias counts",
        ItemMapping(
            rows="Data[*]",
            id="QuestionId",
            question="Question",
            answer="Answer",
            grader="exact_match",
            instruction=_SHORT,
        ),
        ItemMapping(id="question_id", question="question", answer="answer", grader="exact_match", instruction=_SHORT),
    ),
    preset(
        "nq-open",
        "NQ-open and EfficientQA: any answer counts",
        ItemMapping(question="question", accepted=("answer",), grader="exact_match", instruction=_SHORT),
        files="NQ-open.dev.jsonl*",
        few_shot="train",
    ),
    preset(
        "simpleqa",
        "SimpleQA: by comparing, where its authors let a model grade",
        ItemMapping(
            question="problem",
            answer="answer",
            grader="exact_match",
            category=("metadata | parse | values | first",),
            instruction=_SHORT,
        ),
    ),
    preset(
        "hotpotqa",
        "HotpotQA, closed book",
        ItemMapping(
            id="_id", question="question", answer="answer", grader="exact_match", category=("type",), instruction=_SHORT
        ),
        ItemMapping(
            id="id", question="question", answer="answer", grader="exact_match", category=("type",), instruction=_SHORT
        ),
    ),
    preset(
        "race",
        "RACE",
        ItemMapping(context="article", question="question", choices=("options",), answer="answer", counted="letter"),
        ask="likelihood",
    ),
)
