"""Constructions in which answers are given, in ten languages: each template is graded with each key.

``{x}`` is what a template gives, and ``{y}`` another value that it names. A text is right where the key is ``{x}`` and
wrong where it is ``{y}``. A template of `UNREAD` gives neither.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from pytest_adaptive_eval.items.item import Item

#: Grader, prompt, choices, and pairs of a key and another value.
KINDS = {
    "choice": ("Which one is it?", ("a red kite", "a blue boat", "a green door", "a horse"), (("B", "D"), ("D", "C"))),
    "numeric": ("How many are there?", (), (("42", "17"), ("1200", "30"))),
    "contains": ("What is the name of the town?", (), (("Lorn", "Marsk"), ("Dell", "Ada Finch"))),
    "exact": ("What is the name of the town?", (), (("Lorn", "Marsk"), ("Dell", "Ada Finch"))),
}
ALL = tuple(KINDS)
NAMES = ("contains",)
#: Graders and templates by construction.
Constructions = Mapping[str, tuple[Sequence[str], Mapping[str, str]]]
LETTERS = ("choice", "contains")

READ = {
    "states": (
        ALL,
        {
            "en": "The answer is {x}.",
            "de": "Die Antwort ist {x}.",
            "fr": "La réponse est {x}.",
            "es": "La respuesta es {x}.",
            "it": "La risposta è {x}.",
            "pt": "A resposta é {x}.",
            "nl": "Het antwoord is {x}.",
            "pl": "Odpowiedź to {x}.",
            "zh": "答案是{x}。",
            "ja": "答えは{x}です。",
        },
    ),
    "denies another": (
        ("choice", "numeric", "contains"),
        {
            "en": "Not {y} but {x}.",
            "de": "Nicht {y}, sondern {x}.",
            "fr": "Ce n'est pas {y}, mais {x}.",
            "es": "No es {y}, sino {x}.",
            "it": "Non è {y}, ma {x}.",
            "pt": "Não é {y}, mas {x}.",
            "nl": "Niet {y} maar {x}.",
            "pl": "Nie {y}, lecz {x}.",
            "zh": "不是{y}，而是{x}。",
            "ja": "{y}ではなく、{x}です。",
        },
    ),
    "corrects": (
        ALL,
        {
            "en": "{y}\nCorrection: {x}",
            "de": "{y}\nKorrektur: {x}",
            "fr": "{y}\nRectification : {x}",
            "es": "{y}\nCorrección: {x}",
            "it": "{y}\nCorrezione: {x}",
            "pt": "{y}\nCorreção: {x}",
            "nl": "{y}\nCorrectie: {x}",
            "pl": "{y}\nKorekta: {x}",
            "zh": "{y}\n更正：{x}",
            "ja": "{y}\n訂正：{x}",
            "brackets": "{y} (revised: {x})",
        },
    ),
    "leaves": (
        ("choice", "numeric"),
        {
            "en": "It is not {y}, which leaves {x}.",
            "de": "{y} scheidet aus, bleibt {x}.",
            "fr": "Pas {y}, il reste {x}.",
            "es": "Descarto {y}; queda {x}.",
            "it": "Scarto {y}; resta {x}.",
            "pt": "Descarto {y}; resta {x}.",
        },
    ),
    "asks and denies": (
        ("choice", "numeric", "contains"),
        {
            "en": "{y}? No, {x}.",
            "de": "{y}? Nein, {x}.",
            "fr": "{y} ? Non, {x}.",
            "es": "¿{y}? No, {x}.",
            "it": "{y}? No, {x}.",
            "pt": "{y}? Não, {x}.",
            "nl": "{y}? Nee, {x}.",
            "pl": "{y}? Nie, {x}.",
        },
    ),
    "strikes out": (
        ALL,
        {
            "Markdown": "~~{y}~~ {x}",
            "HTML": "<del>{y}</del> {x}",
            "LaTeX": "\\sout{{{y}}} {x}",
            "answer": "Answer: ~~{y}~~ {x}",
        },
    ),
    "was": (
        NAMES,
        {
            "en": "It used to be {y}, now it is {x}.",
            "de": "Früher war es {y}, heute ist es {x}.",
            "fr": "C'était {y} autrefois, maintenant c'est {x}.",
            "es": "Antes era {y}, ahora es {x}.",
            "it": "Un tempo era {y}, ora è {x}.",
            "pt": "Antigamente era {y}, agora é {x}.",
            "nl": "Vroeger was het {y}, nu is het {x}.",
            "pl": "Dawniej {y}, teraz {x}.",
            "zh": "以前是{y}，现在是{x}。",
            "ja": "かつては{y}、今は{x}です。",
        },
    ),
    "is near": (
        NAMES,
        {
            "en": "{x}, near {y}",
            "de": "{x}, nahe {y}",
            "fr": "{x}, près de {y}",
            "es": "{x}, cerca de {y}",
            "it": "{x}, vicino a {y}",
            "pt": "{x}, perto de {y}",
            "nl": "{x}, nabij {y}",
            "pl": "{x}, niedaleko {y}",
            "kin": "{x}, a pupil of {y}",
            "distance": "{x}, 300 km north of {y}.",
        },
    ),
}
UNREAD = {
    "denies": (
        LETTERS,
        {
            "en": "It is not {x}.",
            "de": "Es ist nicht {x}.",
            "fr": "Ce n'est pas {x}.",
            "es": "No es {x}.",
            "it": "Non è {x}.",
            "pt": "Não é {x}.",
            "nl": "Het is niet {x}.",
            "pl": "To nie {x}.",
            "zh": "不是{x}。",
            "ja": "{x}ではありません。",
        },
    ),
    "doubts": (
        LETTERS,
        {
            "en": "I doubt it is {x}.",
            "es": "Dudo que sea {x}.",
            "it": "Dubito che sia {x}.",
            "pt": "Duvido que seja {x}.",
            "fr": "Je doute que {x}.",
        },
    ),
    "judges wrong": (
        LETTERS,
        {
            "en": "{x} is wrong.",
            "de": "{x} ist falsch.",
            "fr": "{x} est fausse.",
            "es": "{x} es incorrecta.",
            "it": "{x} è sbagliata.",
            "pt": "{x} está errada.",
            "nl": "{x} is onjuist.",
            "pl": "{x} jest błędna.",
            "zh": "{x}不对。",
            "ja": "{x}は間違いです。",
        },
    ),
    "bounds": (
        ("numeric",),
        {
            "en": "at least {x}",
            "de": "mindestens {x}",
            "fr": "plus de {x}",
            "es": "al menos {x}",
            "it": "almeno {x}",
            "pt": "mais de {x}",
            "nl": "meer dan {x}",
            "pl": "co najmniej {x}",
            "zh": "超过{x}",
            "ja": "{x}以上",
            "zh below": "{x}未满",
            "ja below": "{x}未満",
            "answer": "Antwort: höchstens {x}",
            "sentence": "Es sind weniger als {x} Stifte.",
        },
    ),
    "lists": (ALL, {"or": "{x} or {y}", "oder": "{x} oder {y}", "lines": "- {x}\n- {y}\n- none"}),
    "asks": (LETTERS, {"en": "{x}?"}),
    "other name": (NAMES, {"new": "New {x}", "port": "Port {x}", "bay": "{x} Bay", "junior": "{x} Jr."}),
}


def cases(table: Constructions, construction: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield grader, key, other value and text."""
    graders, templates = table[construction]
    for grader in graders:
        for x, y in KINDS[grader][2]:
            for template in templates.values():
                yield grader, x, y, template.format(x=x, y=y)


def accepts(grader: str, key: str, text: str) -> bool:
    prompt, choices, _ = KINDS[grader]
    return Item("i", prompt, key, grader, choices=choices).grade(text) == 1


@pytest.mark.parametrize("construction", READ)
def test_a_construction_gives_its_answer_in_each_language(construction: str) -> None:
    refused = [(grader, text) for grader, x, _, text in cases(READ, construction) if not accepts(grader, x, text)]
    accepted = [(grader, text) for grader, _, y, text in cases(READ, construction) if accepts(grader, y, text)]
    assert (refused, accepted) == ([], [])


@pytest.mark.parametrize("construction", UNREAD)
def test_a_construction_without_an_answer_gives_none_in_each_language(construction: str) -> None:
    accepted = []
    for grader, x, y, text in cases(UNREAD, construction):
        accepted += [(grader, key, text) for key in (x, y) if accepts(grader, key, text)]
    assert accepted == []


#: Question, a statement that affirms it in its words, and one that denies it.
RESTATED = {
    "en": ("Is the coin still heads up?", "The coin is still heads up.", "The coin is not heads up."),
    "de": ("Ist die Münze noch oben?", "Die Münze ist noch oben.", "Die Münze ist nicht oben."),
    "fr": ("La boîte est-elle ouverte ?", "La boîte est ouverte.", "La boîte n'est pas ouverte."),
    "es": ("¿La caja está abierta?", "La caja está abierta.", "La caja no está abierta."),
    "it": ("La scatola è aperta?", "La scatola è aperta.", "La scatola non è aperta."),
    "pt": ("A caixa está aberta?", "A caixa está aberta.", "A caixa não está aberta."),
    "nl": ("Is de doos open?", "De doos is open.", "De doos is niet open."),
    "pl": ("Czy pudełko jest otwarte?", "Pudełko jest otwarte.", "Pudełko nie jest otwarte."),
    "zh": ("盒子里有猫吗？", "盒子里有猫。", "盒子里没有猫。"),
    "ja": ("箱に猫がいますか？", "箱に猫がいます。", "箱に猫はいません。"),
}


@pytest.mark.parametrize("language", RESTATED)
@pytest.mark.parametrize("lead", ["{}", "Answer: {}"])
def test_a_statement_that_repeats_the_question_says_yes_or_no(language: str, lead: str) -> None:
    question, affirmed, denied = RESTATED[language]
    for key, text in (("yes", affirmed), ("no", denied)):
        other = {"yes": "no", "no": "yes"}[key]
        assert Item("i", question, key, "yesno").grade(lead.format(text)) == 1
        assert Item("i", question, other, "yesno").grade(lead.format(text)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "Is the coin still heads up?",
        "If nobody flips it, the coin is still heads up.",
        "The coin might be heads up.",
        "The coin was heads up.",
        "The coin is up.",
    ],
)
def test_a_question_a_condition_or_a_part_says_neither_yes_nor_no(text: str) -> None:
    for key in ("yes", "no"):
        assert Item("i", "A coin lies there. Is the coin still heads up?", key, "yesno").grade(text) == 0


#: Question and a sentence that gives the key in its words.
EXACT = {
    "en": ("Which animal is in the box?", "cat", "The animal in the box is a cat."),
    "de": ("Welches Tier ist in der Kiste?", "Katze", "In der Kiste ist eine Katze."),
    "fr": ("Quel animal est dans la boîte ?", "chat", "L'animal dans la boîte est un chat."),
    "es": ("¿Qué animal aparece?", "gato", "Aparece un gato."),
    "it": ("Quale animale è nella scatola?", "gatto", "Nella scatola è un gatto."),
    "pt": ("Que animal está na caixa?", "gato", "O animal na caixa é um gato."),
    "nl": ("Welk dier is in de doos?", "kat", "In de doos is een kat."),
    "pl": ("Jakie zwierzę jest w pudełku?", "kot", "W pudełku jest kot."),
}


@pytest.mark.parametrize("language", EXACT)
def test_exact_reads_a_sentence_in_words_of_the_question(language: str) -> None:
    question, key, text = EXACT[language]
    assert Item("i", question, key, "exact").grade(text) == 1
    assert Item("i", question, key, "exact").grade(text.replace(key, f"xyz {key}")) == 0
    assert Item("i", question, key, "exact").grade(f"{text} No, xyz.") == 0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("cat (as the second sentence says)", 1),
        ("Cat, because it purrs.", 1),
        ("cat\n\nExplanation: the animal purrs.", 1),
        ("Cat. The animal purrs.", 1),
        ("cat\ndog", 0),
        ("Cat. No, it is a dog.", 0),
        ("dog (not a cat)", 0),
        ("It is not a cat.", 0),
        ("Perhaps a cat.", 0),
    ],
)
def test_exact_reads_an_answer_before_its_explanation(text: str, score: float) -> None:
    assert Item("i", "Which animal is it?", "cat", "exact").grade(text) == score


@pytest.mark.parametrize(
    ("question", "key", "right", "wrong"),
    [
        (
            "How many percent?",
            "75",
            ("75 Prozent", "75 pour cent", "75 por ciento", "百分之75", "75 procent"),
            ("25 Prozent",),
        ),
        ("What is the probability?", "3/4", ("3 out of 4", "3 von 4", "3 sur 4", "3 de cada 4"), ("3", "4 out of 3")),
        ("How many of the 4?", "3", ("3 out of 4", "3 von 4"), ("4 out of 3",)),
        ("How heavy is it?", "156", ("156kgs", "156 kgs", "It weighs 156kg."), ("156kgs or more", "156kg未満")),
        ("Wie viele sind es?", "1250", ("Es sind 1.250 Stifte.", "1250"), ("1,25", "Es sind 1.251 Stifte.")),
        ("How much is it?", "1.25", ("1.250", "The price is 1.250 dollars"), ("1250",)),
    ],
)
def test_numbers_with_words_of_many_languages(
    question: str, key: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    item = Item("i", question, key, "numeric")
    assert [text for text in right if not item.grade(text)] == []
    assert [text for text in wrong if item.grade(text)] == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("einundzwanzig", 21), ("siebenhundertfünfzig", 750), ("zweitausenddreihundertzwölf", 2312),
        ("quatre-vingt-dix-sept", 97), ("deux cent trente et un", 231), ("treinta y cinco", 35),
        ("Hay doce manzanas.", 12),
        ("trentacinque", 35), ("quaranta due", 42), ("trinta e cinco", 35), ("eenentwintig", 21), ("vijfendertig", 35),
        ("dwadzieścia pięć", 25), ("二十一", 21), ("三百五十", 350), ("Die Antwort ist zwölf.", 12),
    ],
)  # fmt: skip
def test_numbers_in_words_of_other_languages(text: str, key: int) -> None:
    assert Item("i", "How many?", str(key), "numeric").grade(text) == 1
    assert Item("i", "How many?", str(key + 1), "numeric").grade(text) == 0


@pytest.mark.parametrize(
    "text", ["due to rain", "once", "Sei vorsichtig.", "ein Kind", "mil gracias", "不知道", "per cent"]
)
def test_words_with_another_meaning_are_no_numbers(text: str) -> None:
    for key in ("1", "2", "6", "11", "100", "1000"):
        assert Item("i", "How many?", key, "numeric").grade(text) == 0


SENTENCES = (
    ("How many litres are in the tank?", "14.75", "After adding 7 litres, there are 14.75 litres."),
    ("How many books do they have?", "42", "Step 2: They have 42 books together."),
    ("How much do the two melons weigh?", "12.7", "The two melons weigh 12.7 pounds."),
    ("Wie viele Äpfel sind es?", "9", "Nach 3 Tagen sind es 9 Äpfel."),
    ("Combien de pommes ?", "9", "Après 3 jours, il y a 9 pommes."),
    ("¿Cuántas manzanas hay?", "9", "Después de 3 días, hay 9 manzanas."),
)


@pytest.mark.parametrize(("question", "key", "sentence"), SENTENCES)
@pytest.mark.parametrize("lead", ["", "Answer: ", "Work: done\n\nAnswer:\n\n", "Antwort: ", "Réponse : ", "答案："])
def test_a_sentence_behind_a_cue_is_read_as_it_is_alone(question: str, key: str, sentence: str, lead: str) -> None:
    assert Item("i", question, key, "numeric").grade(lead + sentence) == 1
    assert Item("i", question, "7", "numeric").grade(lead + sentence) == 0


INLINED = "Where is the lamp?\n(A) park (B) mall (C) table (D) shelf"


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Answer: (C) table", 1),
        ("A: (C) table. It is there.", 1),
        ("on the table", 1),
        ("Answer: (C) table (D) shelf", 0),
        ("The answer is (C) table, (D) shelf.", 0),
        ("Not A, B or D but C.", 1),
        ("Not A, B or C but D.", 0),
    ],
)
@pytest.mark.parametrize("prompt", [INLINED, INLINED.replace(" (", "\n("), f"Where?\n(A) sun (B) moon\n{INLINED}"])
def test_options_that_the_prompt_lists_are_read_as_choices(text: str, score: float, prompt: str) -> None:
    assert Item("i", prompt, "C", "choice").grade(text) == score


@pytest.mark.parametrize(
    ("question", "text", "score"),
    [
        ("Which object floats on water?", "A floats.", 1),
        ("Which object floats on water?", "A boat floats.", 0),
        ("Which object floats on water?", "Only A", 1),
        ("Which object floats on water?", "A sinks.", 0),
        ("Welcher Gegenstand schwimmt?", "A schwimmt.", 1),
    ],
)
def test_a_before_the_verb_of_the_question_is_a_letter(question: str, text: str, score: float) -> None:
    assert Item("i", question, "A", "choice", choices=("a cork", "a stone", "a nail")).grade(text) == score


MATH = (
    (
        r"1-\frac{1}{\mathrm{e}}",
        (r"1-\frac{1}{e}", "1-1/e", r"1-\mathrm{e}^{-1}"),
        (r"1+\frac{1}{\mathrm{e}}", r"\frac{1}{\mathrm{e}}"),
    ),
    (r"2+3\mathrm{i}", ("2+3i", r"3\mathrm{i}+2"), ("2+3", r"2-3\mathrm{i}", "3i")),
    (r"\frac{\pi}{6}", ("pi/6", "The angle is pi/6.", "角度はπ/6です。"), ("pi/3", "1/6")),
    (
        r"\{2, 3\}",
        ("x = 2 or x = 3", "$x=2$ und $x=3$", r"\{3;2\}", "x=2またはx=3", "Solutions: 2, 3"),
        ("x = 3", "(2, 3)"),
    ),
    (
        r"(-\infty, 2]",
        (r"]-\infty, 2]", r"x \le 2", "(-∞; 2]", r"{x | x <= 2}"),
        ("x < 2", r"[2, \infty)", r"]-\infty, 2["),
    ),
    ("y = 2x + 1", ("2x - y + 1 = 0", "y - 1 = 2x", "2y = 4x + 2"), ("y = 2x - 1", "x = 2y + 1", "y = 2x")),
    (
        r"\begin{pmatrix} 1 \\ -2 \end{pmatrix}",
        ("(1, -2)", r"\langle 1, -2 \rangle", r"\binom{1}{-2}", "[1, -2]"),
        ("(-2, 1)", r"\{1, -2\}", "1"),
    ),
)


@pytest.mark.parametrize(("key", "right", "wrong"), MATH)
def test_expressions_in_other_notations(key: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    pytest.importorskip("math_verify")
    item = Item("i", "Compute it.", key, "math")
    assert [text for text in (key, *right) if not item.grade(text)] == []
    assert [text for text in wrong if item.grade(text)] == []


@pytest.mark.parametrize("grader", ["choice", "numeric", "contains", "exact", "yesno", "math"])
@pytest.mark.parametrize(
    "part", ["(", "a", "= ", "B? no, ", "~~", "at least ", "zwei ", "the coin is ", "the town is a, "]
)
def test_a_long_answer_of_parts_of_constructions_is_read_in_little_time(grader: str, part: str) -> None:
    item = Item("i", "Is the coin still heads up?", {"choice": "A", "yesno": "yes"}.get(grader, "7"), grader)
    begun = time.process_time()
    item.grade(part * (20_000 // len(part)))
    assert time.process_time() - begun < 4
