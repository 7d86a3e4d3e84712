"""Answers that deny, hedge or echo, and texts that differ in what nobody sees: what each grader takes and refuses."""

from __future__ import annotations

import json

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.reading.denial import without_denied

COLOURS = ("red", "green", "blue", "black")
CITIES = ("Paris", "London", "Rome")
FORMULAS = (r"$\frac{1}{2}$", r"$\frac{2}{3}$", r"$\sqrt{3}$", "$x^2+1$")

#: Grader, accepted answer, choices, right texts, wrong texts.
TABLE: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    # what is denied, bounded, or one of several
    (
        "numeric",
        "2",
        (),
        (
            "It's 2, not 3.",
            "The answer is not 3, it is 2.",
            "2 rather than 3",
            "2 (not 3)",
            "It cannot be 3. So it is 2.",
            "I don't think it's 3, it's 2.",
            "3... wait, no, 2",
            "There are 2 primes less than 5.",
            "Since 3 is wrong, the answer is 2.",
            "The answer is 2, which is less than 3.",
        ),
        (
            "The answer is not 2.",
            "The answer cannot be 2.",
            "It isn't 2.",
            "2 is incorrect",
            "2 is not the answer.",
            "anything but 2",
            "The answer is less than 2.",
            "more than 2",
            "x < 2",
            "≥ 2",
            "x ≠ 2",
            "x != 2",
            r"\boxed{x > 2}",
            r"\boxed{x \neq 2}",
            "The answer is at least 2.",
            "no more than 2",
            "neither 2 nor 3",
            "I don't think it's 2.",
            "I do not believe the answer is 2.",
            "The answer is unlikely to be 2.",
            "The wrong answer is 2",
            "Incorrect: 2",
            "2? I don't think so.",
            "2... actually 3",
            "2 or more",
            "2+",
            "2 or 3",
            "2 | 3",
            "2; 3",
            "2-3",
            "between 2 and 3",
            "2\n3",
            "- 2\n- 3",
            "{2, 3}",
            r"\boxed{2+3}",
            r"\boxed{2x}",
            r"\boxed{x + 2}",
            r"\boxed{2\pi}",
            r"\boxed{(2, \infty)}",
            "Answer:\n- 2\n- 3",
        ),
    ),
    (
        "choice",
        "A",
        COLOURS,
        (
            "I think it's A",
            "It must be A.",
            "My guess: A",
            "B, C and D are wrong. A is right.",
            "A, not B",
            "Not B. A.",
            "No doubt it's A.",
            "I don't think it's B; it's A.",
            "I do not believe that the correct answer is B. A is right.",
            "B, no wait, A",
            "B. Hmm, on second thought, A.",
            "A. Actually, B is wrong.",
            "A. No, B is not right.",
            "The answer is A. Wait, that's right.",
        ),
        (
            "A is incorrect.",
            "A can be ruled out.",
            "not red",
            "anything but A",
            "It isn't red.",
            "A|B",
            "A; B",
            "red, green",
            "(A) red\n(B) green",
            "A. red\nB. green\nC. blue\nD. black",
            "red\ngreen",
            "A or perhaps C",
            "(A) red or (B) green",
            "I would not choose A.",
            "Neither A nor B",
            "The answer is:\n(A) red\n(B) green",
            "A is unlikely",
            "I don't think it's A.",
            "I don't believe the answer is A.",
            "I doubt it's (A)",
            "I really doubt that the answer is A",
            "A? I don't think so.",
            "I don't think it's red.",
            "A would be a mistake",
            "A is a common misconception",
            "Anyone who says A is mistaken",
            "The answer A is a trap",
            "I'd avoid A",
            "I refuse to choose A",
            "The only wrong option is A",
            "Eliminated: A",
            "The answer is hardly red",
            "A\n\nWait, that's wrong. B",
            "A. Actually, B.",
            "A - no, B",
            "red... no, green",
        ),
    ),
    (
        "choice",
        "B",
        COLOURS,
        (
            "A is wrong because red is warm. C is wrong. D is wrong. So B.",
            "It is not red but green",
            "It's green, not blue.",
            "green rather than red",
            "not red, green",
            "D can be excluded, so I choose B.",
            "选项A不对，故选B。",
            "Wrong: A. Right: B",
            "I think it's (b).",
            "Probably (b)",
            "[[B]]",
            "«B»",
        ),
        ("B|A", "(B) or (C)", "B is incorrect. Also C.", "I don't think it's (b).", "Either (a) or (b).", "f(b) = 3"),
    ),
    (
        "choice",
        "London",
        CITIES,
        (
            "It's London, not Paris.",
            "Some say Paris, but the answer is London.",
            r"\boxed{1.6} km. So the answer is B.",
        ),
        (
            "Many would say London, but the answer is Berlin.",
            "London is what most say. \\boxed{Berlin}",
            "Not London",
            "London? No. The answer is Madrid.",
            '{"thought": "London?", "answer": "Berlin"}',
            "<answer>Berlin</answer> London",
        ),
    ),
    ("choice", "C", ("Maybe", "Unknown", "Yes", "No"), (), ("(C) Yes\n(D) No", "Yes\nNo")),
    (
        "choice",
        "True",
        ("True", "False"),
        ("The answer is Yes.", "yes.", "Correct."),
        ("not true", "True\nFalse", "No"),
    ),
    (
        "choice",
        FORMULAS[0],
        FORMULAS,
        (r"\frac12", r"$\dfrac{1}{2}$", "1/2", "0.5", "½", r"The answer is $\tfrac{1}{2}$."),
        ("2/3", r"\frac{1}{12}", "2"),
    ),
    ("choice", FORMULAS[2], FORMULAS, (r"\sqrt3", "√3", "sqrt(3)"), ("3",)),
    ("choice", FORMULAS[3], FORMULAS, ("x^{2} + 1", "x²+1", "x**2 + 1"), ("x^2",)),
    (
        "yesno",
        "yes",
        (),
        ("Yes, not no.", "Yes, it is.", "No, wait, yes"),
        ("yes|no", "Yes\nNo", "The answer is not yes.", "The answer is Berlin.", "Yes is wrong", "Yes... actually no"),
    ),
    ("yesno", "no", (), ("No, it is not.", "Yes, wait, no"), ("No answer", "No comment.", "No is wrong")),
    # numbers
    (
        "numeric",
        "10",
        (),
        (
            "10 cm^2",
            "10 m³/s",
            r"$10\ \mathrm{m/s^2}$",
            "10 kg m^{-3}",
            "The answer is 10 [2].",
            "The sum is 10 (4 + 6).",
            "10 (5 from Tom and 5 from Ann)",
            "CHF10",
            "10 out of 20",
            "10 CO2 molecules",
        ),
        ("10^2", "10²", "10^{10}", "-10", "10k", "367 + 10"),
    ),
    ("numeric", "0.001", (), ("10^{-3}", "10⁻³", "1 × 10⁻³"), ("10^3",)),
    ("numeric", "6.02e23", (), ("6.02 × 10²³", "6.02·10^23"), ("6.02 × 10²²", "6.02")),
    ("numeric", "1024", (), ("$2^{10}$", "2¹⁰", "2**10", r"\boxed{2^{10}}"), ("2^{11}", "10")),
    ("numeric", "2000", (), ("CHF2,000", "JPY2,000", "2k", "2 000 kr"), ("CHF2,000,000",)),
    ("numeric", "42", (), ("• 42", "1) 42", "forty-two", "“42”", "\ufeff42", "_42_"), ("-42", "- 42", "42nd and 43rd")),
    ("numeric", "1.570796", (), ("1.5708", "1.570796327"), ("1.57", "1.5709", "1.571")),
    ("numeric", "28800", (), ('{"step": 1, "result": 100}\nSo, the final answer is 28800.',), ('{"answer": 3}',)),
    ("numeric", "8714255", (), ("8714255",), ("8714255%",)),
    # formulas
    ("math", "5", (), ("5", r"\boxed{5}"), ("$5|6$", "5 or 6", "not 5", "x > 5", r"x \neq 5", "5, 6")),
    ("math", "(2,3)", (), ("(2, 3)",), ("3", "[2,3]", "(2,3]", r"\{2,3\}")),
    ("math", "[1,2)", (), ("$[1, 2)$", r"x \in [1,2)"), ("(1,2)", "[1,2]", "2", "1,2")),
    ("math", r"\frac{11}{2}", (), ("5.5",), (r"\frac{1}{12}", r"\frac{1}{2}")),
    # texts
    (
        "exact",
        "2025x",
        (),
        tuple(
            f"We get\n{form}"
            for form in (
                "[[2025x]]",
                "`2025x`",
                r"\[ 2025x \]",
                "$$\n2025x\n$$",
                "```\n2025x\n```",
                "**`2025x`**",
                "- 2025x",
                "“2025x”",
                r"$\text{2025x}$",
                "(2025x).",
            )
        ),
        ("not 2025x", "2025x\n2026x", "[[2025x, 3]]"),
    ),
    (
        "exact",
        "café",
        (),
        ("cafe\u0301", "“café”", "«café»", "„café“", "‹café›", "\ufeffcafé", "\u200ecafé\u200e", "café\u00a0", "CAFÉ."),
        ("cafe",),
    ),
    ("exact", "don't", (), ("don\u2019t", "don\u02bct"), ("dont",)),
    (
        "exact",
        "Paris",
        (),
        ("The capital of France is Paris.", "It's Paris", "The capital is **Paris**."),
        (
            "The capital of France is not Paris.",
            "It is Paris or Rome.",
            "It may be said that it is Paris.",
            "Not Paris",
        ),
    ),
    ("exact_match", "D, A, A", (), ("D, A, A", "d,a,a"), ("D", "D, A", "A, A, D")),
    ("exact_match", "A", (), ("A", "a."), ("the", "B")),
    ("exact_match", "red kite", (), ("A red kite", "the Red Kite.", "“red kite”", "A RED KITE"), ("red",)),
    ("contains", "5", (), ("It is 5.", "x=5", "(5)"), ("15", "5.5", "-5", "1,500")),
    ("contains", "art", (), ("It is art.", "modern-art"), ("start", "arts")),
    ("contains", "東京", (), ("私は東京に住んでいます",), ("京都",)),
    # code and names
    ("literal", "'ab'", (), ('"ab"', "`'ab'`", "Answer: 'ab'"), ("'ba'", "'AB'", "ab", "'ab '")),
    ("literal", "LL", (), ("LL", "The answer is LL."), ("ll", "L", "not LL")),
    ("literal", "init", (), ("init", "`init`"), ("__init__", "Init")),
    ("literal", "[1, 2]", (), ("[1,2]",), ("[2, 1]", "(1, 2)", "[1]", "[True, 2]")),
    ("literal", "4", (), ("4", "(4)", "`4`", r"\boxed{4}"), ("[4]", "`[4]`", "The answer is [4].", "{4}", "(4,)")),
    ("literal", "[4]", (), ("[4]", "`[4]`", "Answer: [4]"), ("4", "[[4]]", "(4,)")),
    ("literal", '{"a": true}', (), ("{'a': True}",), ('{"a": 1}', '{"A": true}')),
    ("literal", "C, A, C", (), ("C,A,C",), ("A, C, C", "C, A")),
    ("literal", r"'\d'", (), (r"'\d'",), ("'d'",)),
)


@pytest.mark.parametrize(("grader", "answer", "choices", "right", "wrong"), TABLE)
def test_what_a_grader_takes_and_refuses(
    grader: str, answer: str, choices: tuple[str, ...], right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    item = Item("i", "Which?", answer, grader, choices=choices)
    scores = {text: item.grade(text) for text in (*right, *wrong)}
    assert [text for text in right if scores[text] != 1.0] == []
    assert [text for text in wrong if scores[text] != 0.0] == []


@pytest.mark.parametrize("grader", ["exact", "exact_match", "contains", "choice", "literal"])
def test_invisible_characters_and_forms_of_quotes_do_not_count(grader: str) -> None:
    choices = ("Zoë’s", "other") if grader == "choice" else ()
    item = Item("i", "?", "Zoë’s", grader, choices=choices)
    assert item.grade("\u200eZoe\u0308's\u00a0") == 1.0


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A is wrong, so B.", ", so B."),
        ("It's black, not blue.", "It's black, ."),
        ("Not blue: black", ": black"),
        ("It is not red but green", "It is but green"),
        ("I rule out A.", "I ."),
        ("nothing is denied", "nothing is denied"),
    ],
)
def test_what_a_text_denies_is_left_out(text: str, left: str) -> None:
    assert " ".join(without_denied(text).split()) == left


def test_a_question_for_what_is_wrong_has_a_wrong_choice_as_its_answer() -> None:
    item = Item("i", "Which statement is incorrect?", "A", "choice", choices=COLOURS)
    for text in ("A is incorrect.", "The incorrect answer is A.", "The wrong one is A", "The incorrect option is red."):
        assert item.grade(text) == 1.0


def test_a_choice_that_denies_is_named_by_its_text() -> None:
    item = Item("i", "?", "A", "choice", choices=("not possible", "possible"))
    assert (item.grade("It is not possible."), item.grade("It is possible.")) == (1.0, 0.0)


def test_a_tolerance_is_the_limit_where_there_is_one() -> None:
    assert Item("i", "?", "1.570796", "numeric", meta={"tolerance": 0}).grade("1.5708") == 0.0
    assert Item("i", "?", "1.570796", "numeric", meta={"tolerance": 0.001}).grade("1.571") == 1.0


def test_percent_counts_as_asked() -> None:
    assert Item("i", "What percent?", "50", "numeric").grade("50%") == 1.0
    assert Item("i", "How many?", "50", "numeric").grade("50%") == 0.0
    assert Item("i", "How many?", "0.5", "numeric").grade("50%") == 1.0


def test_contains_within_words_by_an_option() -> None:
    assert Item("i", "?", "art", "contains", meta={"within_words": True}).grade("start") == 1.0
    with pytest.raises(BankError, match="within_words is 'yes', expected true or false"):
        Item("i", "?", "art", "contains", meta={"within_words": "yes"}).grade("start")


def parsed(answer: str, grader: str) -> Item:
    return parse_item(json.dumps({"id": "i", "prompt": "?", "answer": answer, "grader": grader}), "bank.jsonl, line 1")


@pytest.mark.parametrize("answer", ["Evelyn", "ab", "C, A, C", r"\text{east}", "张三", "ABC"])
def test_math_refuses_words_and_names_a_grader(answer: str) -> None:
    with pytest.raises(BankError, match=r"is words or letters.*'exact'.*'literal'"):
        parsed(answer, "math")


@pytest.mark.parametrize("answer", ["x", "2x", "a*b", r"\pi", r"\sin x", r"\emptyset", "x y", "(a,b)", r"\frac{a}{b}"])
def test_math_takes_expressions(answer: str) -> None:
    parsed(answer, "math")


def test_a_sequence_of_letters_is_no_set_of_choices() -> None:
    with pytest.raises(BankError, match=r"names no choice.*'literal' compares sequences"):
        parsed("C, A, C", "choice")
