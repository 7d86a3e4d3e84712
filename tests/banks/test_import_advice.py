"""Advice of imports: followed to the letter, it leads to a bank that grades as the data mean, or says why none does."""

from __future__ import annotations

import json
import re
import shlex
from typing import NamedTuple

import pytest

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing import check as check_module
from pytest_adaptive_eval.extensions.importing.base import ImportSettings
from pytest_adaptive_eval.extensions.importing.check import KeyCheck, spread
from pytest_adaptive_eval.extensions.importing.choices import read_choices
from pytest_adaptive_eval.extensions.importing.importer import import_items
from pytest_adaptive_eval.items.presentation import with_choices

COUNT = 24
WORDS = ("apple", "birch", "crane", "delta", "eagle", "frost", "grape", "heron", "ivory", "jewel", "koala")


class Form(NamedTuple):
    """A published form: its files, what a prompt needs, and a right and a wrong answer, each by the record's number."""

    files: dict[str, str]
    needed: object
    right: object
    wrong: object
    calls: int = 2
    absent: object = lambda n: []


def lines(row):
    return "".join(json.dumps(row(n), ensure_ascii=False) + "\n" for n in range(COUNT))


def whole(row):
    return json.dumps([row(n) for n in range(COUNT)], ensure_ascii=False)


def four(n):
    return [WORDS[(n + 3 * k) % len(WORDS)] for k in range(4)]


def letter(n):
    return "ABCD"[n % 4]


def other(n):
    return "ABCD"[(n + 1) % 4]


def asked(n):
    return f"How many stamps has clerk {n}?"


def number(n):
    return str(n + 5)


def far(n):
    return str(n + 900)


def lore(n):
    return f"The scroll {n} says that each clerk holds some stamps."


def tale(n):
    return f"Clerk {n} came to the town hall in the spring."


def chosen(**more):
    return lambda n: {"question": f"Which fits hall {n}?", **{name: value(n) for name, value in more.items()}}


def choosing(row, calls=1):
    return Form({"quiz.jsonl": lines(row)}, lambda n: [f"hall {n}", *four(n)], letter, other, calls)


def with_letters(mark):
    return lambda n: mark.join(f"{name}) {text}" for name, text in zip("ABCD", four(n), strict=True))


FORMS = {
    "two fields that no name tells": Form(
        {"quiz.jsonl": lines(lambda n: {"lore": lore(n), "tale": tale(n), "question": asked(n), "answer": n + 5})},
        lambda n: [lore(n), tale(n), asked(n)],
        number,
        far,
    ),
    "two fields that names tell": Form(
        {"quiz.jsonl": lines(lambda n: {"rule": lore(n), "premises": tale(n), "question": asked(n), "answer": n + 5})},
        lambda n: [lore(n), tale(n), asked(n)],
        number,
        far,
        1,
    ),
    "stories in a second file": Form(
        {
            "quiz.jsonl": lines(lambda n: {"story_id": f"s{n}", "question": asked(n), "answer": n + 5}),
            "stories.jsonl": lines(lambda n: {"id": f"s{n}", "narrative": tale(n)}),
        },
        lambda n: [tale(n), asked(n)],
        number,
        far,
    ),
    "documents by the id of the question": Form(
        {
            "quiz.jsonl": lines(lambda n: {"id": f"s{n}", "question": asked(n), "answer": n + 5}),
            "documents.jsonl": lines(lambda n: {"id": f"s{n}", "text": tale(n)}),
        },
        lambda n: [tale(n), asked(n)],
        number,
        far,
    ),
    "answers in a second file, a line each": Form(
        {
            "dev.jsonl": lines(lambda n: {"goal": asked(n), "sol1": four(n)[0], "sol2": four(n)[1]}),
            "dev-labels.lst": "".join(f"{n % 2}\n" for n in range(COUNT)),
        },
        lambda n: [asked(n), *four(n)[:2]],
        lambda n: "AB"[n % 2],
        lambda n: "BA"[n % 2],
    ),
    "answers in a second file, by id": Form(
        {
            "quiz.jsonl": lines(chosen(id=lambda n: f"q{n}", choices=four)),
            "quiz_answers.jsonl": lines(lambda n: {"id": f"q{n}", "answer": letter(n)}),
        },
        lambda n: [f"hall {n}", *four(n)],
        letter,
        other,
    ),
    "a table without a header": Form(
        {"quiz.tsv": "".join(f"{asked(n)}\t{n + 5}\n" for n in range(COUNT))}, lambda n: [asked(n)], number, far
    ),
    "records that are lists": Form(
        {"quiz.json": whole(lambda n: [asked(n), n + 5])}, lambda n: [asked(n)], number, far
    ),
    "lists in lines": Form({"quiz.jsonl": lines(lambda n: [asked(n), number(n)])}, lambda n: [asked(n)], number, far),
    "questions in paragraphs": Form(
        {
            "quiz.json": json.dumps(
                {
                    "version": "1",
                    "data": [
                        {
                            "title": f"t{n}",
                            "paragraphs": [{"context": tale(n), "qas": [{"question": asked(n), "answer": number(n)}]}],
                        }
                        for n in range(COUNT)
                    ],
                }
            )
        },
        lambda n: [tale(n), asked(n)],
        number,
        far,
        1,
    ),
    "questions in an array beside their dialogue": Form(
        {
            "quiz.json": whole(
                lambda n: [
                    [f"A: {tale(n)}", "B: So I heard."],
                    [{"question": f"Which fits hall {n}?", "choice": four(n), "answer": four(n)[n % 4]}],
                    f"7-{n}",
                ]
            )
        },
        lambda n: [tale(n), f"hall {n}", *four(n)],
        letter,
        other,
        1,
    ),
    "splits in one file": Form(
        {
            "quiz.json": json.dumps(
                {
                    name: [{"question": f"{name}: {asked(n)}", "answer": number(n)} for n in range(COUNT)]
                    for name in ("train", "test")
                }
            )
        },
        lambda n: [f"test: {asked(n)}"],
        number,
        far,
    ),
    "a template with its values": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "instruction": "Answer the question with a number. {text}",
                    "inputs": {"text": asked(n), "topic": "stamps"},
                    "outputs": number(n),
                }
            )
        },
        lambda n: [f"Answer the question with a number. {asked(n)}"],
        number,
        far,
        1,
    ),
    "a template beside its filled form": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {"question": asked(n), "answer": n + 5, "question_template": "How many stamps has clerk {x}?"}
            )
        },
        lambda n: [asked(n)],
        number,
        far,
        1,
    ),
    "a whole prompt beside its parts": choosing(
        chosen(
            options=four,
            prompt=lambda n: f"This is an exam.\nWhich fits hall {n}?\n" + with_letters("\n")(n),
            label=letter,
        ),
        2,
    ),
    "an answer of key and content": choosing(
        chosen(
            options=lambda n: [{"key": k, "content": v} for k, v in zip("ABCD", four(n), strict=True)],
            answer=lambda n: [{"key": letter(n), "content": four(n)[n % 4]}],
        )
    ),
    "answers by letter under another name": choosing(
        chosen(answers=lambda n: dict(zip("ABCD", four(n), strict=True)), solution=letter)
    ),
    "answers with ids": choosing(
        chosen(
            ra=lambda n: n % 4 + 1, answers=lambda n: [{"aid": k, "atext": text} for k, text in enumerate(four(n), 1)]
        )
    ),
    "a letter with the text of its choice": choosing(
        chosen(choices=four, answer=lambda n: f"{letter(n)}) {four(n)[n % 4]}")
    ),
    "numbered columns": choosing(
        lambda n: {
            "citing_prompt": f"Which fits hall {n}?",
            **{f"holding_{k}": text for k, text in enumerate(four(n))},
            "label": n % 4,
        }
    ),
    "an order of the choices": Form(
        {"quiz.jsonl": lines(chosen(choices=four, answer=lambda n: ["B, A, D, C", "C, D, A, B"][n % 2]))},
        lambda n: [f"hall {n}", *four(n)],
        lambda n: ["B, A, D, C", "C, D, A, B"][n % 2],
        lambda n: ["B, A, C, D", "D, C, A, B"][n % 2],
    ),
    "spellings in one text": Form(
        {"quiz.jsonl": lines(lambda n: {"question": asked(n), "answer": f'["Ann {n}", "Miss Ann {n}"]'})},
        lambda n: [asked(n)],
        lambda n: f"Miss Ann {n}",
        lambda n: "Bo",
    ),
    "codes in one text": Form(
        {"quiz.jsonl": lines(lambda n: {"question": asked(n), "codes": f"J{n}.1; I10"})},
        lambda n: [asked(n)],
        lambda n: f"I10; J{n}.1",
        lambda n: "I10",
    ),
    "codes with their names": Form(
        {"quiz.jsonl": lines(lambda n: {"question": asked(n), "answer": f"CWE-{n + 20}: Use After {WORDS[n % 11]}"})},
        lambda n: [asked(n)],
        lambda n: f"The answer is CWE-{n + 20}.",
        lambda n: f"CWE-{n + 500}",
        1,
    ),
    "formulas in signs of LaTeX": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": asked(n),
                    "answer": [f"${n + 2}-i$", f"\\({n + 2}-i\\)", f"\\boxed{{{n + 2}-i}}", f"$${n + 2}-i$$"][n % 4],
                }
            )
        },
        lambda n: [asked(n)],
        lambda n: f"Thus $\\boxed{{{n + 2}-i}}$.",
        lambda n: f"$\\boxed{{{n + 90}-i}}$",
        1,
    ),
    "answers with their places": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {"question": asked(n), "answers": [[n + 30, f"{number(n)} stamps"], [n + 30, number(n)]]}
            )
        },
        lambda n: [asked(n)],
        number,
        lambda n: str(n + 30),
        1,
    ),
    "files of some questions": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {"question": asked(n), "answer": n + 5, "file_name": "" if n % 3 else f"f{n}.xlsx"}
            )
        },
        lambda n: [asked(n)] if n % 3 else ["a question with a file is not asked"],
        number,
        far,
    ),
    "chats that end with the answer": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {"conversations": [{"from": "human", "value": asked(n)}, {"from": "gpt", "value": number(n)}]}
            )
        },
        lambda n: [asked(n)],
        number,
        far,
    ),
    "turns of a user": Form(
        {"quiz.jsonl": lines(lambda n: {"prompt": [asked(n), "And twice that?"], "reference": ["", str(2 * n + 10)]})},
        lambda n: [asked(n), "And twice that?"],
        lambda n: str(2 * n + 10),
        far,
    ),
    "tests of promptfoo": Form(
        {
            "tests.json": whole(
                lambda n: {"vars": {"question": asked(n)}, "assert": [{"type": "icontains", "value": f"lamp{n}"}]}
            )
        },
        lambda n: [asked(n)],
        lambda n: f"I am sure that it is lamp{n}.",
        lambda n: "It is a candle.",
        1,
    ),
    "calls of tools": Form(
        {
            "quiz.json": whole(
                lambda n: {
                    "query": f"What is the weather on day {n}?",
                    "answers": json.dumps([{"name": "weather", "arguments": {"day": n}}]),
                    "tools": json.dumps([{"name": "weather", "parameters": {"day": {"type": "int"}}}]),
                }
            )
        },
        lambda n: [f"day {n}"],
        lambda n: json.dumps([{"name": "weather", "arguments": {"day": n}}]),
        lambda n: json.dumps([{"name": "weather", "arguments": {"day": n + 1}}]),
        1,
    ),
    "a part of the answer is no question": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "answer_pivot": {"text": [f"pivot {n}"], "start": [n]},
                    "context": tale(n),
                    "question_own": f"Ni stampi ngapi, {n}?",
                    "question_english": asked(n),
                    "title": f"A title {n}",
                    "answer_own": f"{n + 5}",
                }
            )
        },
        lambda n: [tale(n), f"Ni stampi ngapi, {n}?"],
        number,
        far,
        absent=lambda n: [f"pivot {n}", asked(n)],
    ),
    "measures and denials of an answer are none": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": asked(n),
                    "label_confidence": 0.9 + n / 1000,
                    "answer_not_matching": n + 900,
                    "answer_matching": n + 5,
                }
            )
        },
        lambda n: [asked(n)],
        number,
        far,
    ),
    "choices that are empty lists, and an instruction in an object": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "prompt": {"default": "Answer with a number, and nothing else."},
                    "question": asked(n),
                    "choices": {"text": [], "label": []},
                    "answer": n + 5,
                }
            )
        },
        lambda n: ["Answer with a number, and nothing else.", asked(n)],
        number,
        far,
        absent=lambda n: ["default"],
    ),
    "code that restates the question, and its equations": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "lEquations": [f"X = {n} + 5"],
                    "input": f"A clerk of the town hall has {n} stamps and gets some more. {asked(n)}",
                    "code": f"def f():\n    # A clerk of the town hall has 3 stamps and gets some more. {asked(n)}\n",
                    "target": n + 5,
                }
            )
        },
        lambda n: [asked(n)],
        number,
        far,
        absent=lambda n: ["def f", "X ="],
    ),
    "the place of an answer in a list of another name": Form(
        {"quiz.jsonl": lines(lambda n: {"question": asked(n), "actions": four(n), "answer_index": n % 4})},
        lambda n: [asked(n), *four(n)],
        letter,
        other,
        1,
    ),
    "distractors that are passages": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": asked(n),
                    "facts": [[n], [n + 1]],
                    "distractors": [[f"title {k}", [tale(k)], 0.5] for k in range(3)],
                    "answer": n + 5,
                }
            )
        },
        lambda n: [asked(n)],
        number,
        far,
        absent=lambda n: ["title", f"[{n}]"],
    ),
    "patterns without a header": Form(
        {"quiz.csv": "".join(f"{n},{asked(n)},\\b{n + 5}\\b|number-{n + 5}\n" for n in range(COUNT))},
        lambda n: [asked(n)],
        number,
        far,
    ),
    "marks of right answers beside the choices": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": f"Which fits hall {n}?",
                    "choices": four(n),
                    "all_targets": {"choices": [tale(n), lore(n)], "labels": [1, 0]},
                    "conversation": f"Ann: {tale(n)} Bo: {lore(n)}",
                    "answer": letter(n),
                }
            )
        },
        lambda n: [f"hall {n}", *four(n), f"Ann: {tale(n)}"],
        letter,
        other,
        absent=lambda n: ["labels"],
    ),
    "three annotators who agree": Form(
        {"quiz.jsonl": lines(lambda n: {"question": asked(n), "answers": [{"start": n, "text": f"{n + 5}"}] * 3})},
        lambda n: [asked(n)],
        number,
        far,
        1,
    ),
    "records in an object beside facts": Form(
        {
            "quiz.json": json.dumps(
                {
                    "metadata": {"count": COUNT},
                    "examples": {str(n): {"question": asked(n), "answer": n + 5} for n in range(COUNT)},
                }
            )
        },
        lambda n: [asked(n)],
        number,
        far,
        1,
    ),
    "marked alternatives as answers": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": f"Which fits hall {n}?",
                    "answers": [{"text": text, "correct": k == n % 4} for k, text in enumerate(four(n))],
                }
            )
        },
        lambda n: [f"hall {n}", *four(n)],
        letter,
        other,
        1,
    ),
    "a pair of sentences with labels in words": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "sentence1": lore(n),
                    "sentence2": tale(n),
                    "label": ("entailment", "neutral", "contradiction")[n % 3],
                }
            )
        },
        lambda n: [f"{lore(n)}\n\n{tale(n)}", "entailment", "neutral"],
        lambda n: ("entailment", "neutral", "contradiction")[n % 3],
        lambda n: ("entailment", "neutral", "contradiction")[(n + 1) % 3],
        1,
    ),
    "a passage that several questions share, with its id": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "article_id": f"t{n // 3}",
                    "context": tale(n // 3),
                    "question": asked(n),
                    "is_impossible": False,
                    "is_paid": {"date": None, "status": False},
                    "answers": {"text": [number(n)], "answer_start": [n]},
                }
            )
        },
        lambda n: [tale(n // 3), asked(n)],
        number,
        far,
        1,
    ),
    "names with a word for text at their end": Form(
        {
            "quiz.json": whole(
                lambda n: {
                    "context_id": f"c{n}",
                    "context_text": tale(n),
                    "qas": [{"query_text": asked(n), "query_id": f"q{n}", "answers": [number(n)]}],
                }
            )
        },
        lambda n: [tale(n), asked(n)],
        number,
        far,
    ),
    "instances of HELM": Form(
        {
            "quiz.json": json.dumps(
                {
                    "adapter_spec": {"instructions": "Answer with a number.", "max_tokens": 9},
                    "request_states": [
                        {
                            "instance": {
                                "input": {"text": asked(n)},
                                "references": [
                                    {"output": {"text": number(n)}, "tags": ["correct"]},
                                    {"output": {"text": far(n)}, "tags": []},
                                ],
                                "id": f"id{n}",
                            }
                        }
                        for n in range(COUNT)
                    ],
                }
            )
        },
        lambda n: ["Answer with a number.", asked(n)],
        number,
        far,
        absent=lambda n: ["max_tokens"],
    ),
    "letters of another script, and choices that only some records have": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": asked(n),
                    "answers": [{"answer": k, "text": text} for k, text in zip("АБВГ", four(n), strict=True)]
                    if n % 3
                    else [],
                    "correct_answer": ["АБВГ"[n % 4] if n % 3 else f"{n},5"],
                }
            )
        },
        lambda n: [asked(n), *four(n)],
        letter,
        other,
    ),
    "questions and answers side by side": Form(
        {
            "quiz.json": json.dumps(
                [
                    {
                        "story": tale(n),
                        "questions": [asked(2 * n), asked(2 * n + 1)],
                        "answers": [2 * n + 5, 2 * n + 6],
                    }
                    for n in range(COUNT // 2)
                ]
            )
        },
        lambda n: [tale(n // 2), asked(n)],
        number,
        far,
        1,
    ),
    "lists of values under splits": Form(
        {
            "quiz.json": json.dumps(
                {split: [[f"{split}: {asked(n)}", number(n)] for n in range(COUNT)] for split in ("train", "test")}
            )
        },
        lambda n: [f"test: {asked(n)}"],
        number,
        far,
    ),
    "a text with tabulators, and the question behind its answer": Form(
        {"quiz.txt": "".join(f"c{n}\t{n + 5}\t{asked(n)}\n" for n in range(COUNT))},
        lambda n: [asked(n)],
        number,
        far,
    ),
    "questions that need a picture: some": Form(
        {"quiz.jsonl": lines(lambda n: {"question": asked(n), "answer": n + 5, "with_photo": n % 3 == 2})},
        lambda n: [asked(n)],
        number,
        far,
    ),
    "files of pictures beside some questions: some": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "question": asked(n),
                    "answer": n + 5,
                    "associated_images": [f"{n}.png"] if n % 3 == 2 else [],
                }
            )
        },
        lambda n: [asked(n)],
        number,
        far,
        absent=lambda n: ["png"],
    ),
    "reasons of annotators and tokens of the question": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {
                    "context": tale(n),
                    "question": asked(n),
                    "question_tokens": [[word, 7] for word in asked(n).split()],
                    "reason": f"The scroll says that clerk {n} has {n + 5} stamps.",
                    "answer": n + 5,
                }
            )
        },
        lambda n: [tale(n), asked(n)],
        number,
        far,
        1,
        absent=lambda n: ["scroll", '"How"'],
    ),
    "corrections of answers": choosing(
        chosen(choices=four, correct_answer=lambda n: None if n % 8 else n % 4, answer=lambda n: n % 4 if n % 8 else 3)
    ),
    "two sentences of which the last is asked about": Form(
        {
            "quiz.tsv": "ori_sentence\tnew_sentence\tgold_label\n"
            + "".join(f"{lore(n)}\t{tale(n % 9)}\t{('entailment', 'neutral')[n % 2]}\n" for n in range(COUNT))
        },
        lambda n: [f"{lore(n)}\n\n{tale(n % 9)}"],
        lambda n: ("entailment", "neutral")[n % 2],
        lambda n: ("neutral", "entailment")[n % 2],
    ),
    "a table with semicolons that is called tsv": Form(
        {"quiz.tsv": "question;answer\n" + "".join(f"{asked(n)};{n + 5}\n" for n in range(COUNT))},
        lambda n: [asked(n)],
        number,
        far,
        1,
    ),
    "columns of pandas": Form(
        {
            "quiz.json": json.dumps(
                {
                    "question": {str(n): f"Which fits hall {n}?" for n in range(COUNT)},
                    **{f"op{k}": {str(n): four(n)["abcd".index(k)] for n in range(COUNT)} for k in "abcd"},
                    "answer_idx": {str(n): letter(n) for n in range(COUNT)},
                }
            )
        },
        lambda n: [f"hall {n}", *four(n)],
        letter,
        other,
        1,
    ),
    "stances on a topic": Form(
        {"quiz.jsonl": lines(lambda n: {"topic": WORDS[n % 3], "sentence": lore(n), "label": ["pro", "con"][n % 2]})},
        lambda n: [WORDS[n % 3], lore(n)],
        lambda n: ["pro", "con"][n % 2],
        lambda n: ["con", "pro"][n % 2],
    ),
    "categories that are asked for": Form(
        {"quiz.jsonl": lines(lambda n: {"text": lore(n), "category": ["sports", "health", "politics"][n % 3]})},
        lambda n: [lore(n), "health, politics, sports"],
        lambda n: ["sports", "health", "politics"][n % 3],
        lambda n: ["health", "politics", "sports"][n % 3],
    ),
    "material within an object": Form(
        {
            "quiz.json": json.dumps(
                {
                    "data": [
                        {"entry": {"norma": lore(n), "storia": tale(n), "domanda": asked(n), "risposta": n + 5}}
                        for n in range(COUNT)
                    ]
                }
            )
        },
        lambda n: [lore(n), tale(n), asked(n)],
        number,
        far,
    ),
    "a further text before the question": Form(
        {"quiz.jsonl": lines(lambda n: {"law": lore(n), "tale": tale(n), "question": asked(n), "answer": n + 5})},
        lambda n: [lore(n), tale(n), asked(n)],
        number,
        far,
    ),
    "answers that name all choices with commas": Form(
        {
            "quiz.csv": "question,A,B,C,D,correct\n"
            + "".join(
                f"Which fits hall {n}?,{','.join(four(n))},{('A', 'B;D', 'A;B;C;D')[n % 3]}\n" for n in range(COUNT)
            )
        },
        lambda n: [f"hall {n}", *four(n)],
        lambda n: ("A", "B, D", "A, B, C, D")[n % 3],
        lambda n: ("B", "B", "A, C")[n % 3],
    ),
    "a dialogue of objects": Form(
        {
            "quiz.json": whole(
                lambda n: {
                    "dialogue": [{"speaker": "A", "text": asked(n)}, {"speaker": "B", "text": tale(n)}],
                    "question": asked(n),
                    "answer": n + 5,
                }
            )
        },
        lambda n: [tale(n), asked(n)],
        number,
        far,
    ),
    "answers that some records lack, and more lack them than have them: some": Form(
        {
            "quiz.jsonl": lines(
                lambda n: {"question": asked(n), "answer": n + 5 if n < 16 else None, "field (a.b)": {"c [d]": n}}
            )
        },
        lambda n: [asked(n)],
        number,
        far,
    ),
}


def follow(folder, capsys, monkeypatch, calls=2):
    """Import the first file of a folder, then do what is printed; return the calls that were made, and the bank."""
    monkeypatch.chdir(folder)
    command = [
        "import",
        min(path.name for path in folder.iterdir() if not re.search("answers|labels|stories|documents", path.name)),
    ]
    for number in range(1, calls + 1):
        status = main([*command, *(["-o", "new.bank", "--yes"] if number == 1 else [])])
        said = capsys.readouterr().out
        assert len(said.splitlines()) <= 60
        if status == 0:
            return number, read_bank("new.bank")
        printed = [line for line in said.splitlines() if line.startswith("  adaptive-eval import")]
        assert len(printed) == 1, said
        command = shlex.split(printed[0])[1:]
    raise AssertionError(said)


@pytest.mark.fast_rows(12)
@pytest.mark.parametrize("name", FORMS)
def test_printed_advice_leads_to_a_bank_that_grades_as_the_data_mean(name, tmp_path, capsys, monkeypatch):
    form = FORMS[name]
    for file, text in form.files.items():
        (tmp_path / file).write_text(text)
    calls, bank = follow(tmp_path, capsys, monkeypatch)
    assert calls == form.calls
    assert len(bank) == (COUNT if "some" not in name else COUNT * 2 // 3)
    for item in bank.items:
        n = item.meta["row"]
        shown = with_choices(item)
        text = "\n".join([shown.prompt, *(part["content"] for part in shown.messages), *shown.turns])
        assert [part for part in form.needed(n) if part not in text] == []
        assert [part for part in form.absent(n) if part in text] == []
        for answer, score in ((form.right(n), 1), (form.wrong(n), 0)):
            whole_answer = item.transcript([""] * len(item.turns) + [answer]) if item.turns else answer
            assert item.grade(whole_answer) == score, (answer, item.answer, item.grader)


UNDECIDED = {
    "classes without names": (
        lambda n: {"question": f"Is {n} red?", "label": n % 2},
        "whose names no field has: write --set choices=",
        "no setting that import can try leads to a bank",
    ),
    "an object as answer": (
        lambda n: {"question": asked(n), "answer": {"x": n, "y": 2}},
        "write --set answer=answer.KEY",
        "no setting that import can try leads to a bank",
    ),
    "no answer": (
        lambda n: {"question": asked(n)},
        "no field has the name of an answer: write --set answer=FIELD",
        "no setting that import can try leads to a bank",
    ),
    "scores of a pair of sentences": (
        lambda n: {"sentence1": lore(n), "sentence2": tale(n), "label": n / 10},
        "'sentence2' asks nothing by itself, and no field says what is asked",
        "no setting that import can try leads to a bank",
    ),
    "codes of a pair of sentences": (
        lambda n: {"sent1": lore(n), "sent2": tale(n), "label": "cen"[n % 3]},
        "'sent2' asks nothing by itself, and no field says what is asked",
        "no setting that import can try leads to a bank",
    ),
    "a guessed field that asks nothing": (
        lambda n: {"story": tale(n), "hints": lore(n), "answer": f"Clerk {n}"},
        "'hints' asks nothing by itself, and no field says what is asked",
        "no setting that import can try leads to a bank",
    ),
    "a video": (
        lambda n: {"video": f"{n}7", "question": asked(n), "answer": n},
        "'video' names sound or video, which cannot be asked: write --set where=EXPRESSION",
        "no setting that import can try leads to a bank",
    ),
    "questions that need an image, and others": (
        lambda n: {"text_only": n % 2 == 0, "question": asked(n), "answer": n},
        "'text_only' is true of some records: write --set where=EXPRESSION",
        "no setting that import can try leads to a bank",
    ),
    "objects as accepted answers": (
        lambda n: {"question": asked(n), "references": {"must_include": [f"Ann {n}"]}},
        "its answer is an object",
        "no setting that import can try leads to a bank",
    ),
    "tables of another file": (
        lambda n: {"question": asked(n), "table_id": f"t{n % 5}", "answer": n},
        "'table_id' names what several records share, and no file beside the data has it",
        "no setting that import can try leads to a bank",
    ),
    "choices that no answer names": (
        lambda n: {"question": asked(n), "choices": four(n), "target": f"{tale(n)} So it was.", "ID": n},
        "name a choice in 0 of 24 rows only",
        "no setting that import can try leads to a bank",
    ),
    "scores of sentences of several genres": (
        lambda n: {"genre": ("news", "forum")[n % 2], "score": n / 5, "sentence1": lore(n), "sentence2": tale(n)},
        "no field has the name of an answer: write --set answer=FIELD",
        "no setting that import can try leads to a bank",
    ),
    "codes that no field asks about": (
        lambda n: {"smiles": f"CC(=O)NC{n}CC(CO)=CCl", "label": ("train", "valid", "test")[n % 3]},
        "no field has the name of a question: write --set question=FIELD, or --set question='QUESTION {FIELD}'",
        "no setting that import can try leads to a bank",
    ),
    "annotators in columns": (
        lambda n: {"input": asked(n), **{f"annotator{k}": n % 2 for k in range(3)}, "cmp_key": f"a{n % 2}_b{n % 2}"},
        "no field has the name of an answer: write --set answer=FIELD",
        "no setting that import can try leads to a bank",
    ),
    "lists that may be wanted whole or in part": (
        lambda n: {"question": asked(n), "answer": [f"Ann {n}", f"Bo {n + 1}"]},
        "give --set answer_kind=all where all are wanted in any order",
        "no data say which of the settings is right: choose",
    ),
    "codes of a sentence beside its passage": (
        lambda n: {"context": lore(n), "statement": tale(n), "label": "cen"[n % 3]},
        "'statement' asks nothing by itself, and no field says what is asked",
        "no setting that import can try leads to a bank",
    ),
    "two fields with the names of answers": (
        lambda n: {"question": asked(n), "answer": n + 5 + n % 2, "target": n + 5},
        "'answer' and 'target' have the names of answers, and differ in some records",
        "no data say which of the settings is right: choose",
    ),
    "a remark or a second passage": (
        lambda n: {"context": lore(n), "question": asked(n), "update": tale(n), "answer": n + 5},
        "questions may need 'update'",
        "no data say which of the settings is right: choose",
    ),
    "categories that are more than a prompt lists": (
        lambda n: {"text": asked(n), "category": f"lost_card_{n // 2}"},
        "'text' asks nothing by itself, and no field says what is asked",
        "no setting that import can try leads to a bank",
    ),
    "tables that are files": (
        lambda n: {"utterance": asked(n), "context": f"csv/20{n % 5}.csv", "answer": n},
        "'context' names files, whose content no record has: write --set where=EXPRESSION",
        "no setting that import can try leads to a bank",
    ),
    "another version of the passage": (
        lambda n: (
            {"premises": lore(n), "premises-FOL": f"holds(clerk, {n}) and pays it", "question": asked(n)}
            | {"answer": n + 5}
        ),
        "questions may need 'premises-FOL'",
        "no data say which of the settings is right: choose",
    ),
    "categories of questions": (
        lambda n: {"question": asked(n), "category": ("rumour", "fraud")[n % 2]},
        "no field has the name of an answer: write --set answer=FIELD",
        "no setting that import can try leads to a bank",
    ),
    "spans that a label is about": (
        lambda n: {"text": lore(n), "target": {"span1_text": "scroll", "span1_index": n}, "label": n % 3 == 0},
        "'text' asks nothing by itself, and no field says what is asked",
        "no setting that import can try leads to a bank",
    ),
    "numbers where questions are expected": (
        lambda n: {"problem": [[n, [1, 2]]], "n": n},
        "no field has the name of a question: write --set question=FIELD",
        "no setting that import can try leads to a bank",
    ),
    "answers that are addresses": (
        lambda n: {"question": asked(n), "answer": f"www.freebase.com/m/0f{n}"},
        "the answers are addresses, such as 'www.freebase.com/m/0f0', and no texts: write --set answer=FIELD",
        "no setting that import can try leads to a bank",
    ),
    "answers that match texts with choices": (
        lambda n: {"question": asked(n), "choices": four(n), "answer": [["C", "A", "B"], ["D", "B", "A"]][n % 2]},
        "in an order of its own",
        "no setting that import can try leads to a bank",
    ),
    "numbers of choices from 0 or from 1": (
        lambda n: {"question": asked(n), "choices": four(n), "answer": n % 3 + 1},
        "give --set counted=0, or --set counted=1",
        "no data say which of the settings is right: choose",
    ),
}


def test_examples_with_one_task_are_no_splits(tmp_path, capsys):
    grid = {"input": [[0, 1], [2, 3]], "output": [[3, 2], [1, 0]]}
    (tmp_path / "task.json").write_text(json.dumps({"train": [grid] * 3, "test": [grid]}))
    assert main(["import", str(tmp_path / "task.json"), "-o", str(tmp_path / "a.bank"), "--yes"]) == 4
    said = " ".join(capsys.readouterr().err.split())
    assert "the splits train, test have 4 records" in said
    assert "write a line of JSON for each question, with its examples and its answer" in said


def test_lines_of_text_are_no_records(tmp_path, capsys):
    (tmp_path / "quiz.txt").write_text("".join(f"{letter(n)}\n{asked(n)}\n{tale(n)}\n\n" for n in range(COUNT)))
    assert main(["import", str(tmp_path / "quiz.txt")]) == 4
    assert "lines of text have no fields: write a line of JSON" in " ".join(capsys.readouterr().out.split())


def test_a_guessed_header_names_what_asks_and_no_constant(tmp_path, capsys):
    rows = "".join(
        f"A long tale of clerk {n} in the hall\t{asked(n)}\t{n + 5}\t{('red', 'blue')[n % 2]}\tdev\n"
        for n in range(COUNT)
    )
    (tmp_path / "quiz.tsv").write_text(rows)
    assert main(["import", str(tmp_path / "quiz.tsv"), "--yes"]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "header=column1,question,column3,answer,column5" in said
    assert "no data say which of the settings is right: choose" in said


def test_a_guessed_header_does_not_make_a_text_a_question(tmp_path, capsys):
    (tmp_path / "quiz.tsv").write_text("".join(f"( [MIN {n} 4 ) of a list of {n} numbers\t{n}\n" for n in range(COUNT)))
    assert main(["import", str(tmp_path / "quiz.tsv"), "-o", str(tmp_path / "a.bank"), "--yes"]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "'question' asks nothing by itself, and no field says what is asked" in said
    assert "no setting that import can try leads to a bank" in said


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_no_setting_decides_is_said(name, tmp_path, capsys):
    row, problem, end = UNDECIDED[name]
    (tmp_path / "quiz.jsonl").write_text(lines(row))
    assert main(["import", str(tmp_path / "quiz.jsonl"), "-o", str(tmp_path / "a.bank"), "--yes"]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert problem in said
    assert end in said


def test_a_record_that_no_setting_reads_is_left_out_by_the_printed_command(tmp_path, capsys, monkeypatch):
    rows = [{"lore": lore(n), "question": asked(n), "answer": n + 5 if n % 8 else None} for n in range(COUNT)]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["import", str(tmp_path / "quiz.jsonl"), "--yes"]) == 4
    assert "writes a bank, without 3 records" in " ".join(capsys.readouterr().out.split())
    _, bank = follow(tmp_path, capsys, monkeypatch)
    assert (len(bank), lore(1) in bank.items[0].prompt) == (21, True)


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        (["refutes", "no", "false"], "answer_kind=any"),
        ("(ivy,oak), (elm,ash)", "grader=judge"),
        ("word " * 40, "grader=judge"),
        (r"\\b33\\b|thirty-three", "grader=regex"),
    ],
)
def test_the_first_advice_follows_from_the_form_of_the_answers(answer, first, tmp_path, capsys):
    (tmp_path / "quiz.jsonl").write_text(lines(lambda n: {"question": asked(n), "answer": answer if n % 3 else "Ann"}))
    assert main(["import", str(tmp_path / "quiz.jsonl"), "--yes"]) == 4
    assert f"--yes --set {first}" in " ".join(capsys.readouterr().out.split())


def test_choices_that_few_answers_name_can_be_ignored(tmp_path, capsys, monkeypatch):
    rows = lines(lambda n: {"question": asked(n), "choices": four(n), "answer": f"{n + 5} stamps" if n else four(n)[0]})
    (tmp_path / "quiz.jsonl").write_text(rows)
    _, bank = follow(tmp_path, capsys, monkeypatch)
    assert {item.choices for item in bank.items} == {()}
    assert bank.items[3].grade("8 stamps") == 1


def test_a_judge_gets_no_question_without_the_key_that_others_have(tmp_path, capsys, monkeypatch):
    keys = {0: None, 1: "null"}
    rows = lines(lambda n: {"question": asked(n), "query": keys.get(n, f"select a{n} from the table of the clerks")})
    (tmp_path / "quiz.jsonl").write_text(rows)
    _, bank = follow(tmp_path, capsys, monkeypatch)
    assert (len(bank), {item.grader for item in bank.items}) == (COUNT - 2, {"judge"})


def test_tests_of_a_program_are_never_part_of_its_question(tmp_path, capsys, monkeypatch):
    rows = lines(
        lambda n: (
            {"code": f"def f(x):\n    return x + {n}", "input": str(n), "output": str(2 * n)}
            | {"test": f"assert f({n}) == {2 * n}", "test_list": [f"assert f({n}) == {2 * n} and True"]}
        )
    )
    (tmp_path / "quiz.jsonl").write_text(rows)
    _, bank = follow(tmp_path, capsys, monkeypatch)
    assert not any("assert" in item.prompt for item in bank.items)
    assert all("return x" in item.prompt for item in bank.items)


def test_a_proposal_with_many_fields_and_values_is_short(tmp_path, capsys):
    rows = lines(
        lambda n: (
            {"question": asked(n), "answer": f'it\'s "{WORDS[n % 11] * 30}" {n},5'}
            | {f"field_{chr(97 + k)}x": f"It's a long text {k} of record {n} with many words in it." for k in range(40)}
        )
    )
    rows = rows.replace('"answer": "', '"answer": "NA').replace("NAit", "it")
    (tmp_path / "quiz.jsonl").write_text(rows)
    assert main(["import", str(tmp_path / "quiz.jsonl"), "--yes"]) == 4
    said = capsys.readouterr().out
    assert len(said.splitlines()) <= 60
    assert len(said) < 12_000


def test_many_answers_that_may_be_missing_are_one_line(tmp_path, capsys):
    words = ("NaN", "NA", "N/A", "null", "None", "nan")
    (tmp_path / "quiz.jsonl").write_text(
        lines(lambda n: {"question": asked(n), "answer": words[n % 6] if n % 2 else n})
    )
    assert main(["import", str(tmp_path / "quiz.jsonl"), "--yes"]) == 4
    said = capsys.readouterr().out
    assert said.count("may mean no value") == 2  # as a refusal, and as an open point


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("A) ivy B) oak C) elm", ["ivy", "oak", "elm"]),
        ("(a) ivy; (b) oak; (c) elm", ["ivy", "oak", "elm"]),
        ("a ) 38 , b ) 27.675 , c ) 30", ["38", "27.675", "30"]),
        ("A. Mr. A. Bee\nB. oak", ["Mr. A. Bee", "oak"]),
        ("ivy\noak\n\nelm", ["ivy", "oak", "elm"]),
        ("1. ivy\n2. oak", ["ivy", "oak"]),
        ("ivy, oak", []),
        ("What? A) ivy B) oak", []),
    ],
)
def test_choices_in_one_text_are_read_by_their_marks(text, texts):
    assert list(read_choices(text, ()).texts) == texts


def test_a_prefix_that_a_question_asks_for_stays_in_the_key(tmp_path):
    def imported(question):
        rows = lines(lambda n: {"question": f"{n}? {question}", "answer": f"Verdict: {WORDS[n % 11]}"})
        (tmp_path / "quiz.jsonl").write_text(rows)
        return main(["import", str(tmp_path / "quiz.jsonl"), "-o", str(tmp_path / "a.bank"), "--yes"])

    assert imported("Which fruit?") == 4
    assert imported("End with `Verdict: FRUIT`.") == 0
    assert read_bank(tmp_path / "a.bank").items[0].answer == "Verdict: apple"


def test_checked_items_are_spread_over_graders_and_forms_of_keys():
    def item(n, answer, grader):
        return parse_item(json.dumps({"id": f"q{n}", "prompt": "?", "answer": answer, "grader": grader}), "quiz")

    items = [item(n, str(n), "numeric") for n in range(50)] + [item(50, "a b", "exact"), item(51, "1 to 2", "exact")]
    assert spread(items, 5) == [0, 1, 2, 50, 51]  # of all numbers three, and of each other form its only one
    assert spread(items, 52) == list(range(52))


@pytest.mark.parametrize(
    ("grader", "answer", "example"),
    [
        ("exact", "\\(1-i\\) or more", None),
        ("literal", "$x$", None),
        ("exact", "first\n\nThe answer is second", "first"),
    ],
)
def test_a_grader_that_refuses_a_form_of_its_key_is_named_with_the_example(grader, answer, example):
    item = parse_item(json.dumps({"id": "q", "prompt": "?", "answer": answer, "grader": grader}), "quiz")
    if example is None:
        KeyCheck().check(item)
        return
    with pytest.raises(DatasetError, match=f"its grader {grader}: gives its expected answer, .*{example}"):
        KeyCheck().check(item)


@pytest.mark.slow
def test_two_thousand_items_are_checked_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(check_module, "_SECONDS", 600.0)
    rows = "".join(json.dumps({"question": f"What is {n}?", "answer": n}) + "\n" for n in range(4000))
    (tmp_path / "quiz.jsonl").write_text(rows)
    with import_items(str(tmp_path / "quiz.jsonl"), ImportSettings()) as found:
        assert len(found.items) == 4000
        assert "graders checked on 2000 items: each accepts the key and rejects another item's" in found.notes


def test_another_split_beside_the_data_is_not_joined(tmp_path):
    for split in ("test", "train"):
        rows = lines(lambda n: {"id": n, "question": asked(n), "answer": n + 5, "rationale": tale(n)})
        (tmp_path / f"{split}.jsonl").write_text(rows)
    assert main(["import", str(tmp_path / "test.jsonl"), "-o", str(tmp_path / "a.bank"), "--yes"]) == 0
