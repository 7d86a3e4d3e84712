"""Rows in the forms in which benchmarks are published; the texts are made up.

Each entry: the file's name, its records (or its text), and of the first record what an import has to find: a part of
the question, the accepted answers, the grader, and the number of choices.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Published(NamedTuple):
    """One form; `records` is a list of objects, other JSON data, or the text of the file."""

    file: str
    records: Any
    question: str
    answers: tuple[str, ...]
    grader: str
    choices: int
    options: dict[str, Any] = {}  # noqa: RUF012 -- a constant


FOUR = ["red", "green", "blue", "white"]
LETTERED = {"A": "red", "B": "green", "C": "blue", "D": "white"}

PUBLISHED: dict[str, Published] = {
    "medqa": Published(
        "phrases_no_exclude_test.jsonl",
        [
            {
                "question": "A man of 30 has a fever. What next?",
                "answer": "green",
                "options": LETTERED,
                "meta_info": "step1",
                "answer_idx": "B",
            },
            {
                "question": "A woman of 40 has a rash. What next?",
                "answer": "white",
                "options": LETTERED,
                "meta_info": "step2",
                "answer_idx": "D",
            },
        ],
        "fever",
        ("B",),
        "choice",
        4,
    ),
    "medmcqa": Published(
        "dev.json",
        "\n".join(
            json.dumps(
                {
                    "id": f"u{n}",
                    "question": f"Which nerve is number {n}?",
                    **dict(zip(("opa", "opb", "opc", "opd"), FOUR, strict=True)),
                    "cop": cop,
                    "choice_type": "single",
                    "exp": "because",
                    "subject_name": "Anatomy",
                    "topic_name": None,
                }
            )
            for n, cop in enumerate((1, 4, 2, 3))
        ),
        "number 0",
        ("A",),
        "choice",
        4,
    ),
    "pubmedqa": Published(
        "test_set.json",
        {
            str(n): {
                "QUESTION": f"Is substance {n} harmful?",
                "CONTEXTS": ["Many took it.", "Some fell ill."],
                "LABELS": ["BACKGROUND", "RESULTS"],
                "final_decision": answer,
                "LONG_ANSWER": "It is said so.",
                "YEAR": "2001",
            }
            for n, answer in enumerate(["yes", "no", "maybe"] * 6, 100)
        },
        "substance 100",
        ("yes",),
        "yesno",
        3,
    ),
    "aqua_rat": Published(
        "test.json",
        "\n".join(
            json.dumps(
                {
                    "question": f"A car has speed {n}. How far?",
                    "options": ["A)21", "B)21.5", "C)22", "D)22.5", "E)23"],
                    "rationale": "Work it out",
                    "correct": letter,
                }
            )
            for n, letter in enumerate("EAB")
        ),
        "speed 0",
        ("E",),
        "choice",
        5,
    ),
    "svamp": Published(
        "SVAMP.json",
        [
            {
                "ID": f"chal-{n}",
                "Body": f"Ann has {n + 5} apples.",
                "Question": "How many are left after 2 are eaten?",
                "Equation": f"( {n + 5}.0 - 2.0 )",
                "Answer": float(n + 3),
                "Type": "Subtraction",
            }
            for n in range(4)
        ],
        "Ann has 5 apples.\n\nHow many",
        ("3",),
        "numeric",
        0,
    ),
    "multiarith": Published(
        "MultiArith.json",
        [
            {
                "iIndex": n,
                "sQuestion": f"Bo had {n} sheets. How many now?",
                "lEquations": ["X=1"],
                "lSolutions": [n + 0.5],
            }
            for n in range(3)
        ],
        "Bo had 0",
        ("0.5",),
        "numeric",
        0,
    ),
    "math_lighteval": Published(
        "algebra_test.jsonl",
        [
            {
                "problem": f"Find $x$ if $x = {n}/2$.",
                "level": "Level 1",
                "type": "Algebra",
                "solution": f"We have $x = \\boxed{{\\frac{{{n}}}{{2}}}}$.",
            }
            for n in (1, 3, 5)
        ],
        "x = 1/2",
        ("\\frac{1}{2}",),
        "math",
        0,
    ),
    "math_500": Published(
        "test.jsonl",
        [
            {
                "problem": f"What is {n} plus two?",
                "solution": f"It is $\\boxed{{{n + 2}}}$.",
                "answer": f"{n + 2}",
                "subject": "Algebra",
                "level": 1,
                "unique_id": f"test/algebra/{n}.json",
            }
            for n in range(3)
        ],
        "What is 0 plus",
        ("2",),
        "numeric",
        0,
    ),
    "gpqa": Published(
        "gpqa_main.csv",
        "Record ID,Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,High-level domain\n"
        + "\n".join(f"rec{n},Which particle has spin {n}?,right {n},wrong a,wrong b,wrong c,Physics" for n in range(3)),
        "spin 0",
        (),
        "choice",
        4,
    ),
    "commonsenseqa": Published(
        "dev_rand_split.jsonl",
        [
            {
                "answerKey": "A",
                "id": f"i{n}",
                "question": {
                    "question_concept": "door",
                    "stem": f"Where is door {n}?",
                    "choices": [{"label": label, "text": text} for label, text in zip("ABCD", FOUR, strict=True)],
                },
            }
            for n in range(3)
        ],
        "door 0",
        ("A",),
        "choice",
        4,
    ),
    "qasc": Published(
        "dev.jsonl",
        [
            {
                "id": f"q{n}",
                "question": {
                    "stem": f"What makes {n} move?",
                    "choices": [
                        {"text": text, "label": label}
                        for label, text in zip("ABCDEFGH", [*FOUR, "a", "b", "c", "d"], strict=True)
                    ],
                },
                "answerKey": "F",
                "fact1": "f",
                "fact2": "g",
            }
            for n in range(3)
        ],
        "makes 0",
        ("F",),
        "choice",
        8,
    ),
    "strategyqa": Published(
        "dev.json",
        [
            {
                "qid": f"s{n}",
                "term": "x",
                "description": "d",
                "question": f"Is {n} a bird?",
                "answer": bool(n % 2),
                "facts": ["f"],
                "decomposition": ["d"],
            }
            for n in range(4)
        ],
        "Is 0 a bird",
        ("no",),
        "yesno",
        2,
    ),
    "agieval": Published(
        "lsat-ar.jsonl",
        [
            {
                "passage": "Of eight students six gave reports.",
                "question": f"Which could be schedule {n}?",
                "options": [f"({letter}){text}" for letter, text in zip("ABCD", FOUR, strict=True)],
                "label": "C",
                "answer": None,
                "other": {"solution": ""},
            }
            for n in range(3)
        ],
        "Of eight students",
        ("C",),
        "choice",
        4,
    ),
    "ceval": Published(
        "accountant_val.csv",
        "id,question,A,B,C,D,answer\n0,第一题____,甲,乙,丙,丁,D\n1,第二题____,甲,乙,丙,丁,A\n",
        "第一题",
        ("D",),
        "choice",
        4,
    ),
    "cmmlu": Published(
        "anatomy.csv",
        ",Question,A,B,C,D,Answer\n0,第一题,甲,乙,丙,丁,C\n1,第二题,甲,乙,丙,丁,A\n",
        "第一题",
        ("C",),
        "choice",
        4,
    ),
    "gaokao": Published(
        "2010-2022_Biology_MCQs.json",
        {
            "keywords": "2010-2022_Biology_MCQs",
            "example": [
                {
                    "year": "2010",
                    "category": "(新课标)",
                    "question": f"{n}. 下列哪项正确\nA. 甲\nB. 乙\nC. 丙\nD. 丁\n",
                    "answer": ["B"],
                    "analysis": "略",
                    "index": n,
                    "score": 6,
                }
                for n in range(3)
            ],
        },
        "下列哪项正确",
        ("B",),
        "choice",
        0,
    ),
    "livebench": Published(
        "question.jsonl",
        [
            {
                "question_id": f"h{n}",
                "category": "math",
                "ground_truth": f"{n + 3}",
                "turns": [f"What is {n} plus 3?"],
                "task": "sum",
            }
            for n in range(3)
        ],
        "What is 0 plus 3",
        ("3",),
        "numeric",
        0,
    ),
    "aime": Published(
        "aime_2024_problems.csv",
        "ID,Problem,Solution,Answer\n2024-I-1,How many roads lead to 7?,Count,33\n2024-I-2,How many to 9?,Count,25\n",
        "roads lead",
        ("33",),
        "numeric",
        0,
    ),
    "bbq": Published(
        "Age.jsonl",
        [
            {
                "example_id": n,
                "question_index": "1",
                "question_polarity": "neg",
                "context": "I saw two people.",
                "question": f"Who was forgetful on day {n}?",
                "ans0": "The old one",
                "ans1": "The young one",
                "ans2": "Unknown",
                "label": n % 3,
                "category": "Age",
            }
            for n in range(4)
        ],
        "I saw two people.\n\nWho",
        ("A",),
        "choice",
        3,
    ),
    "siqa": Published(
        "dev.jsonl",
        [
            {
                "context": "Ann met Bo.",
                "question": f"How would Bo feel, {n}?",
                "answerA": "glad",
                "answerB": "sad",
                "answerC": "tired",
            }
            for n in range(3)
        ],
        "Ann met Bo",
        ("B",),
        "choice",
        3,
        {"labels": "2\n1\n3\n"},
    ),
    "siqa_hub": Published(
        "validation.jsonl",
        [
            {
                "context": "Ann met Bo.",
                "question": f"How would Bo feel, {n}?",
                "answerA": "glad",
                "answerB": "sad",
                "answerC": "tired",
                "label": str(n + 1),
            }
            for n in range(3)
        ],
        "Ann met Bo",
        ("A",),
        "choice",
        3,
    ),
    "cosmosqa": Published(
        "valid.csv",
        "id,context,question,answer0,answer1,answer2,answer3,label\nc1,It rained.,Why wet?,rain,sun,snow,None,0\n"
        "c2,It shone.,Why dry?,rain,sun,snow,None of these,1\n",
        "It rained",
        ("A",),
        "choice",
        4,
    ),
    "reclor": Published(
        "val.json",
        [
            {
                "context": "A geologist says so.",
                "question": f"Which weakens claim {n}?",
                "answers": FOUR,
                "label": n,
                "id_string": f"val_{n}",
            }
            for n in range(4)
        ],
        "A geologist",
        ("A",),
        "choice",
        4,
    ),
    "race": Published(
        "high_test.jsonl",
        [
            {
                "example_id": f"high{n}.txt",
                "article": "A long story.",
                "answer": "D",
                "question": f"What happened {n} times?",
                "options": FOUR,
            }
            for n in range(3)
        ],
        "A long story",
        ("D",),
        "choice",
        4,
    ),
    "sciq": Published(
        "test.json",
        [
            {
                "question": f"What is made by organism {n}?",
                "distractor3": "viruses",
                "distractor1": "protozoa",
                "distractor2": "gymnosperms",
                "correct_answer": "mesophilic organisms",
                "support": "They like it warm.",
            }
            for n in range(3)
        ],
        "organism 0",
        (),
        "choice",
        4,
    ),
    "logiqa_hub": Published(
        "test.jsonl",
        [
            {"context": "All birds fly.", "query": f"Which follows from {n}?", "options": FOUR, "correct_option": n}
            for n in range(4)
        ],
        "All birds fly",
        ("A",),
        "choice",
        4,
    ),
    "belebele": Published(
        "eng_Latn.jsonl",
        [
            {
                "link": "https://example.org",
                "question_number": n,
                "flores_passage": "A text about rivers.",
                "question": f"What is river {n}?",
                "mc_answer1": "long",
                "mc_answer2": "short",
                "mc_answer3": "deep",
                "mc_answer4": "wide",
                "correct_answer_num": str(n + 1),
                "dialect": "eng_Latn",
                "ds": "2023-05-03",
            }
            for n in range(4)
        ],
        "A text about rivers",
        ("A",),
        "choice",
        4,
    ),
    "copa": Published(
        "val.jsonl",
        [
            {
                "premise": "The man fell.",
                "choice1": "He laughed.",
                "choice2": "He slipped.",
                "question": "cause",
                "label": n % 2,
                "idx": n,
            }
            for n in range(4)
        ],
        "The man fell",
        ("A",),
        "choice",
        2,
    ),
    "rte": Published(
        "val.jsonl",
        [
            {
                "premise": f"It rained {n} days.",
                "hypothesis": "It was wet.",
                "label": ["entailment", "not_entailment"][n % 2],
                "idx": n,
            }
            for n in range(12)
        ],
        "It rained 0 days",
        ("entailment",),
        "choice",
        2,
    ),
    "anli": Published(
        "test.jsonl",
        [
            {
                "uid": f"u{n}",
                "context": f"Bo has {n} dogs.",
                "hypothesis": "Bo has pets.",
                "label": "enc"[n % 3],
                "reason": "",
            }
            for n in range(18)
        ],
        "Bo has 0 dogs",
        ("e",),
        "exact",
        3,
    ),
    "hotpotqa": Published(
        "hotpot_dev_distractor_v1.json",
        [
            {
                "_id": f"h{n}",
                "answer": "Paris",
                "question": f"Which town {n} has a tower?",
                "supporting_facts": [["T", 0]],
                "context": [["T", ["One.", "Two."]]],
                "type": "bridge",
                "level": "hard",
            }
            for n in range(3)
        ],
        "Which town 0",
        ("Paris",),
        "exact_match",
        0,
    ),
    "webquestions": Published(
        "webquestions.examples.test.json",
        [
            {"url": "http://example.org", "utterance": "", "question": f"who is {n}?", "answers": ["Ann", "Bo"]}
            for n in range(3)
        ],
        "who is 0",
        ("Ann", "Bo"),
        "exact_match",
        0,
    ),
    "squad_hub": Published(
        "validation.jsonl",
        [
            {
                "id": f"q{n}",
                "title": "Rivers",
                "context": "The Nile is long.",
                "question": f"Which river {n}?",
                "answers": {"text": ["Nile", "The Nile"], "answer_start": [4, 0]},
            }
            for n in range(3)
        ],
        "The Nile is long",
        ("Nile", "The Nile"),
        "exact_match",
        0,
    ),
    "triviaqa_hub": Published(
        "validation.jsonl",
        [
            {
                "question": f"Who wrote {n}?",
                "question_id": f"tc_{n}",
                "question_source": "x",
                "entity_pages": {"title": []},
                "search_results": {"title": []},
                "answer": {
                    "aliases": ["Bo B"],
                    "normalized_aliases": ["bo b"],
                    "value": "Bo",
                    "normalized_value": "bo",
                    "type": "FreeForm",
                },
            }
            for n in range(3)
        ],
        "Who wrote 0",
        ("Bo", "Bo B"),
        "exact_match",
        0,
    ),
    "coqa_like": Published(
        "popqa.tsv",
        "id\tsubj\tprop\tquestion\tpossible_answers\n"
        + "\n".join(
            f'{n}\tAnn\toccupation\tWhat is the work of {n}?\t["politician", "political leader"]' for n in range(3)
        ),
        "work of 0",
        ("politician", "political leader"),
        "exact_match",
        0,
    ),
    "mmbench": Published(
        "mmbench_dev.tsv",
        "index\tquestion\thint\tA\tB\tC\tD\tanswer\tcategory\timage\tsource\tl2-category\tcomment\tsplit\n"
        + "\n".join(
            f"{n}\tWhat colour is shape {n}?\tnan\tred\tgreen\tblue\t\tB\tcolour\t{{png}}\tx\tperception\tnan\tdev"
            for n in range(3)
        ),
        "colour is shape 0",
        ("B",),
        "choice",
        3,
    ),
    "pope": Published(
        "coco_pope_random.json",
        "\n".join(
            json.dumps(
                {"question_id": n, "image": "dog.png", "text": f"Is there a dog, {n}?", "label": ["no", "yes"][n % 2]}
            )
            for n in range(4)
        ),
        "Is there a dog, 0",
        ("no",),
        "yesno",
        2,
    ),
    "chartqa": Published(
        "test_human.json",
        [{"imgname": "dog.png", "query": f"How many food items in {n}?", "label": f"{n + 14}"} for n in range(3)],
        "food items in 0",
        ("14",),
        "numeric",
        0,
    ),
    "scienceqa": Published(
        "problems.json",
        {
            str(n): {
                "question": f"Which is heavier, {n}?",
                "choices": ["iron", "air"],
                "answer": n % 2,
                "hint": "Look.",
                "image": "dog.png" if n else None,
                "task": "closed choice",
                "grade": "grade2",
                "subject": "natural science",
                "topic": "physics",
                "category": "Materials",
                "skill": "compare",
                "lecture": "",
                "solution": "",
                "split": "test",
            }
            for n in range(4)
        },
        "Look.\n\nWhich is heavier, 0",
        ("A",),
        "choice",
        2,
    ),
    "mathvista": Published(
        "testmini.json",
        {
            str(n): {
                "question": f"When does spring {n} stop?",
                "image": "dog.png",
                "choices": None,
                "unit": None,
                "precision": 1.0,
                "answer": f"{n}.2",
                "question_type": "free_form",
                "answer_type": "float",
                "pid": str(n),
                "metadata": {"split": "testmini", "grade": "college"},
                "query": "Hint: please answer. Question",
            }
            for n in range(1, 4)
        },
        "When does spring 1",
        ("1.2",),
        "numeric",
        0,
    ),
    "seed_bench": Published(
        "SEED-Bench.json",
        {
            "question_type": {"Scene Understanding": 1},
            "questions": [
                {
                    "answer": "ABCD"[n],
                    "choice_a": "One",
                    "choice_b": "Two",
                    "choice_c": "Three",
                    "choice_d": "Four",
                    "data_id": "dog.png",
                    "data_type": "image",
                    "question": f"How many towels are in {n}?",
                    "question_id": f"10{n}",
                    "question_type_id": 5,
                }
                for n in range(4)
            ],
        },
        "towels are in 0",
        ("A",),
        "choice",
        4,
    ),
    "mm_vet": Published(
        "mm-vet.json",
        {
            f"v1_{n}": {
                "imagename": "dog.png",
                "question": f"What is x in equation {n}?",
                "answer": f"{n}",
                "imagesource": "x",
                "capability": ["ocr"],
            }
            for n in range(3)
        },
        "equation 0",
        ("0",),
        "numeric",
        0,
    ),
    "a_okvqa": Published(
        "aokvqa_v1p0_val.json",
        [
            {
                "split": "val",
                "image_id": 1,
                "question_id": f"q{n}",
                "question": f"What is in the hand of {n}?",
                "choices": FOUR,
                "correct_choice_idx": n,
                "direct_answers": ["red"],
                "difficult_direct_answer": False,
                "rationales": [],
            }
            for n in range(4)
        ],
        "hand of 0",
        ("A",),
        "choice",
        4,
    ),
    "hle": Published(
        "hle.jsonl",
        [
            {
                "id": f"i{n}",
                "question": f"Which element is {n}?",
                "image": "",
                "answer": f"word {n}",
                "answer_type": "exactMatch",
                "rationale": "",
                "raw_subject": "Chemistry",
                "category": "Chemistry",
            }
            for n in range(3)
        ],
        "element is 0",
        ("word 0",),
        "exact_match",
        0,
    ),
    "theoremqa": Published(
        "theoremqa_test.json",
        [
            {
                "Question": f"How many ways for {n}?",
                "Answer": str(11760 + n),
                "Answer_type": "integer",
                "Picture": None,
                "id": f"t{n}",
            }
            for n in range(3)
        ],
        "ways for 0",
        ("11760",),
        "numeric",
        0,
    ),
    "scibench": Published(
        "atkins.json",
        [
            {
                "problem_text": f"What is the pressure of {n}?",
                "answer_latex": " 1.2",
                "answer_number": f"{n + 1}.2",
                "unit": " bar",
                "source": "atkins",
                "problemid": f" e1.{n}",
                "comment": " ",
            }
            for n in range(3)
        ],
        "pressure of 0",
        ("1.2",),
        "numeric",
        0,
    ),
    "gsm_hard": Published(
        "gsmhardv2.jsonl",
        [
            {"input": f"Jan has {n} ducks. How many eggs?", "code": "def solution(): pass", "target": 1234567.0 + n}
            for n in range(3)
        ],
        "Jan has 0",
        ("1234567",),
        "numeric",
        0,
    ),
    "mmmlu": Published(
        "mmlu_DE-DE.csv",
        ",Question,A,B,C,D,Answer,Subject\n0,Wie heißt Grad 0?,0,4,2,6,B,abstract_algebra\n"
        "1,Und Grad 1?,0,4,2,6,C,abstract_algebra\n",
        "Wie heißt Grad 0",
        ("B",),
        "choice",
        4,
    ),
    "helm_like": Published(
        "instances.jsonl",
        [{"query": f"What is the capital of {n}?", "gold": n % 4, "choices": FOUR} for n in range(4)],
        "capital of 0",
        ("A",),
        "choice",
        4,
    ),
    "arc_easy_csv": Published(
        "ARC-Easy-Test.csv",
        "questionID,originalQuestionID,totalPossiblePoint,AnswerKey,isMultipleChoiceQuestion,includesDiagram,examName,schoolGrade,year,"
        "question,subject,category\nM_1,1,1,C,1,0,M,9,2015,Which is soft? (A) iron (B) steel (C) wool (D) glass,,Test\n"
        "M_2,2,1,A,1,0,M,9,2015,Which is hard? (A) iron (B) air (C) wool (D) milk,,Test\n",
        "Which is soft",
        ("C",),
        "choice",
        0,
    ),
    "numpy_options": Published(
        "test.csv",
        "question,options,answer_index,answer\nWhat is one?,\"['red' 'green'\n 'blue']\",1,B\n"
        "What is two?,\"['a' 'b'\n 'c']\",0,A\n",
        "What is one",
        ("B",),
        "choice",
        3,
    ),
    "chat_sft": Published(
        "eval.jsonl",
        [
            {
                "messages": [
                    {"role": "system", "content": "Be short."},
                    {"role": "user", "content": f"What is {n} and 1?"},
                ],
                "answer": str(n + 1),
            }
            for n in range(3)
        ],
        "What is 0 and 1",
        ("1",),
        "numeric",
        0,
    ),
    "sharegpt": Published(
        "eval.json",
        [
            {"id": f"i{n}", "conversations": [{"from": "human", "value": f"Name colour {n}."}], "reference": "red"}
            for n in range(3)
        ],
        "Name colour 0",
        ("red",),
        "exact_match",
        0,
    ),
    "byte_order_mark": Published(
        "made.csv",
        "\ufeffquestion,answer\nWho is tall?,Ann\nWho is small?,Bo\n",
        "Who is tall",
        ("Ann",),
        "exact_match",
        0,
    ),
}
