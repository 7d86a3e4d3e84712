"""Answers that weigh, deny, suppose, correct, echo or list: which option a whole text affirms."""

from __future__ import annotations

import time

import pytest

from pytest_adaptive_eval import Item

METALS = ("tin", "lead", "steel", "gold")
BRIDGE = "Which metal carries a bridge?\nA. tin\nB. lead\nC. steel\nD. gold"

#: Texts that give C among the metals, and mention others.
STEEL = (
    "(A) tin is soft, so no.\n(B) lead is heavy, so no.\n(C) steel holds.\n(D) gold bends, so no.\n\nC",
    "A: Incorrect. C: Correct.",
    "A: wrong\nB: wrong\nC: right\nD: wrong",
    "A - no, C - yes",
    "A) No. B) No. C) Yes. D) No.",
    "| A | wrong |\n| B | wrong |\n| C | right |",
    "A → wrong; B → wrong; C → right",
    "A ✗ B ✗ C ✓ D ✗",
    "A (10%), C (65%)",
    "A: 0.2, C: 0.8",
    "I'd put 70% on C and 30% on A.",
    "A is less likely than C.",
    "C is a better fit than A.",
    "Between A and C, C is right.",
    "Both A and C are plausible, but C is better.",
    "A is tempting, but C is right.",
    "I prefer C to A.",
    "A, no wait, C",
    "A. EDIT: C",
    "A\n\nOn reflection, C.",
    "A. Oops, C.",
    "Is it A? No. Is it C? Yes.",
    "If the bridge were a toy, it would be A. Here it is C.",
    "A would be right if the bridge were small; since it is not, the answer is C.",
    "At first glance it is A, but actually it is C.",
    "Many would say A, but the answer is C.",
    "While A does not hold, C does.",
    "All of the options except C are wrong.",
    "None of A, B or D holds; C does.",
    "Incorrect: A. tin. Correct: C. steel.",
    "A\n\nWait, tin is soft. The correct answer is C.",
    "A错误，B错误，C正确",
    "本题选C，因为A不符合题意。",
    "A ist falsch. C ist richtig.",
    "Ce n'est pas A, mais C.",
    "So the metal that carries a bridge is steel.",
)
#: Texts that give none of them, or several.
NONE = (
    "A and C fit.",
    "Both A and C are correct.",
    "A: Correct. C: Correct.",
    "A (50%), C (50%)",
    "C is as likely as A.",
    "If it is hot, then C; otherwise A.",
    "C would be right if it were hot, but it is not.",
    "C seems right at first, but it is not.",
    "C... no, that is not right.",
    "C? I doubt it.",
    "C: no",
    "C: 0%",
    "Wrong: C, A",
    "C is eliminated. A is eliminated.",
    "Is it C?",
    "The answer is C... or maybe A.",
    "It depends: C if hot, A if cold.",
    "La respuesta no es C.",
    "C es incorrecta.",
    "Let me look at C first.",
)

TALK = (
    "He is not a doctor.",
    "If it rains, we stay at home, I hope.",
    "No, I was wrong about A or B.",
    "The answer is unknown",
    "他不会选择任何选项",
    "Neither of them is right, wait for C.",
)

DOG = "Is there a dog in the image?"
YES = (
    "Indeed.",
    "Indeed there is.",
    "There is a dog in the image.",
    "I can see a dog, so yes.",
    "Of course.",
    "Definitely yes.",
    "I think so.",
    "That's true.",
    "It is the case.",
    "No... on second thought, yes.",
    "Not no, but yes.",
    "It certainly is.",
    "Yes, there is no doubt about it.",
    "Is there a dog? Yes.",
    "The picture shows a dog.",
    "Das stimmt.",
    "I'd say yes.",
)
NO = (
    "Not really.",
    "There is no dog in the image.",
    "There's no dog.",
    "No dog is visible.",
    "I don't see any dog.",
    "Not at all.",
    "The image does not show a dog.",
    "I see no dog.",
    "Certainly not.",
    "I don't think so.",
    "It isn't.",
    "That's not true.",
    "Yes. Wait, actually no.",
    "No, it's a cat.",
    "None.",
    "Das stimmt nicht.",
    "I'm afraid not.",
)
NEITHER = (
    "No idea.",
    "No information is given.",
    "No one knows.",
    "No image was provided.",
    "No way to tell.",
    "There is a cat.",
    "I can see a cat.",
    "If so, yes.",
    "If it is visible, yes; otherwise no.",
    "Yes or no?",
    "The options are yes and no.",
    "It is on the right.",
    "Sure, I can help with that. Please upload the image.",
    "No lo sé.",
    "不知道。",
    "Yes: 50%, No: 50%",
)

ANSWERED = (
    "Canberra.",
    "It is Canberra, not Sydney.",
    "Not Sydney, but Canberra.",
    "Sydney? No, it is Canberra.",
    "It can only be Canberra.",
    "Many think of Sydney, but the answer is Canberra.",
    "While Sydney is better known, Canberra is right.",
    "None other than Canberra.",
    "There is no doubt that it is Canberra.",
    "Canberra, which is not the same as Sydney.",
    "If I remember correctly, it was Canberra.",
    "I am not sure, but I think it is Canberra.",
    "Neither Sydney nor Perth; it is Canberra.",
    "Canberra\n\nExplanation: Sydney is larger.",
    "The parliament moved to Canberra in 1927 and stayed there.",
    "Unlike Sydney, Canberra fits.",
    "答案是Canberra。",
)
UNANSWERED = (
    "It is not Canberra.",
    "It is Sydney, not Canberra.",
    "Canberra? No, it is Sydney.",
    "Canberra. Correction: Sydney",
    "Anything but Canberra.",
    "Canberra or Sydney.",
    "Canberra, Sydney, Perth",
    "Canberra, Sydney or Perth",
    "Canberra/Sydney",
    "- Canberra\n- Sydney",
    "Both Canberra and Sydney.",
    "1) Canberra 2) Sydney 3) Perth",
    "Maybe Canberra, maybe Sydney.",
    "It is one of Canberra, Sydney and Perth.",
    "Is it Canberra?",
    "I don't know whether it is Canberra.",
    "If it were Canberra, the text would say so.",
    "I doubt that it is Canberra.",
    "There is no Canberra.",
    "Although Canberra is often named, the answer is Sydney.",
    r"\boxed{Sydney} Canberra is wrong.",
    "Not Canberra, sondern Sydney",
)

LABELLED = (
    "not spam",
    "NOT SPAM.",
    "**not spam**",
    "Answer: not spam",
    "**Answer:** not spam",
    "**Final Answer:** not spam",
    "答案：not spam",
    "The answer is not spam. Let me know if you need more.",
    "Answer: spam\nWait, no.\nAnswer: not spam",
    "Answer: not spam\nConfidence: 90%",
    r"\boxed{\text{not spam}}",
    "### Answer\nnot spam",
    '{"answer": "not spam"}',
    "La respuesta es not spam.",
    "Let me think.\nnot spam",
)
UNLABELLED = (
    "spam",
    "Answer: spam",
    "not spam or spam",
    "not spam\nAnswer: spam",
    "It isn't not spam.",
    "Answer: not spam, spam",
    "more not spam than spam",
    "La respuesta no es not spam.",
    "I don't know whether it is not spam.",
    "not spam -> spam",
    "everything except not spam",
    "not spam\nspam",
    "The answer is either not spam or spam.",
    "Is it not spam?",
    "unlike not spam",
)


def misread(item: Item, right: tuple[str, ...], wrong: tuple[str, ...]) -> list[str]:
    return [text for text in right if item.grade(text) != 1.0] + [text for text in wrong if item.grade(text) == 1.0]


def test_a_text_that_weighs_options_gives_the_one_it_affirms() -> None:
    assert misread(Item("i", BRIDGE, "C", "choice", choices=METALS), STEEL, NONE) == []
    assert misread(Item("i", BRIDGE, "A", "choice", choices=METALS), (), STEEL + NONE) == []


@pytest.mark.parametrize("form", ["{}", "{}\n", "**{}**", "{letter}. {}", "({letter}) {}", "Answer: {}"])
def test_the_text_of_a_choice_is_an_answer_whatever_words_it_has(form: str) -> None:
    for index, choice in enumerate(TALK):
        text = form.format(choice, letter="ABCDEF"[index])
        for key, other in enumerate(TALK):
            right = key == index
            assert (Item("i", "What does he say?", other, "choice", choices=TALK).grade(text) == 1.0) == right, (
                text,
                other,
            )


def test_a_letter_on_the_first_line_counts_unless_a_later_line_affirms_another() -> None:
    item = Item("i", BRIDGE, "A", "choice", choices=METALS)
    assert (
        misread(
            item,
            ("A\n\n(B) is too heavy.", "A\nC is tempting, but it bends."),
            ("A\nC", "A\n\nC is correct.", "A\n\nSo C."),
        )
        == []
    )


def test_a_negation_in_a_choice_is_not_one_of_the_question() -> None:
    choices = ("No bird can swim", "Some birds cannot fly")
    prompt = "Which follows?\nA. No bird can swim\nB. Some birds cannot fly"
    assert (
        misread(Item("i", prompt, "B", "choice", choices=choices), ("A: Incorrect. B: Correct.",), ("A is correct.",))
        == []
    )


def test_an_answer_says_yes_or_no_or_neither() -> None:
    assert misread(Item("i", DOG, "yes", "yesno"), YES, NO + NEITHER) == []
    assert misread(Item("i", DOG, "no", "yesno"), NO, YES + NEITHER) == []


def test_a_text_contains_its_answer_if_it_affirms_it() -> None:
    assert misread(Item("i", "What is the capital of Australia?", "Canberra", "contains"), ANSWERED, UNANSWERED) == []


def test_a_repeated_question_does_not_contain_an_answer() -> None:
    question = "Which is larger, Canberra or Sydney?"
    echoes = (
        question,
        f"You ask: {question}",
        f"{question} I don't know.",
        f"{question}\nSydney",
        "Canberra or Sydney?",
    )
    assert (
        misread(Item("i", question, "Canberra", "contains"), (f"{question} Canberra.", "It is Canberra."), echoes) == []
    )


def test_the_words_of_an_exact_answer_deny_nothing() -> None:
    assert misread(Item("i", "Which class?", "not spam", "exact"), LABELLED, UNLABELLED) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["no. ", "A is ", "does not fit ", "A → ", "Canberra, x, ", "although ", "or A "])
def test_long_answers_are_read_in_time_that_grows_with_their_length(part: str) -> None:
    items = [
        Item("i", BRIDGE, "C", "choice", choices=METALS),
        Item("i", DOG, "yes", "yesno"),
        Item("i", "Capital?", "Canberra", "contains"),
    ]
    for item in items:
        start = time.process_time()
        item.grade(part * (20_000 // len(part)))
        assert time.process_time() - start < 5, item.grader


@pytest.mark.parametrize(
    "text",
    [
        "B → C", "B -> C", "B => C", "B ⇒ C.", "A → B → C", "lead → steel", "Answer: B → C", "(B) → (C)",
        "Either B or not B", "Either B or not B.", "B or not B", "either lead or not lead", "The answer is B or not B.",
    ],
)  # fmt: skip
def test_a_way_between_options_and_an_option_or_its_opposite_state_none(text: str) -> None:
    for key in "ABCD":
        assert Item("q", BRIDGE, key, "choice", choices=METALS).grade(text) == 0.0


@pytest.mark.parametrize("text", ["A → B → C. So C.", "A → wrong, C → right", "1 → C", "C, or not at all", "→ C"])
def test_a_text_with_an_arrow_may_state_an_option(text: str) -> None:
    assert Item("q", BRIDGE, "C", "choice", choices=METALS).grade(text) == 1.0
