"""Constructions in which answers are given, in ten languages: each template is graded with each key.

``{x}`` is what a template gives, and ``{y}`` another value that it names. A text is right where the key is ``{x}`` and
wrong where it is ``{y}``. A template of `UNREAD` gives neither.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.reading.constructions import WORDS
from pytest_adaptive_eval.items.reading.language import languages_of

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
            "ru": "Ответ: {x}.",
            "zh": "答案是{x}。",
            "ja": "答えは{x}です。",
        },
    ),
    "chooses": (
        ("choice",),
        {
            "en": "{y} is close. I pick {x}.",
            "de": "{y} kenne ich, ich nehme {x}.",
            "fr": "Pas loin de {y} ; je choisis {x}.",
            "es": "Miro {y} y me quedo con {x}.",
            "it": "C'è anche {y}; scelgo {x}.",
            "pt": "Olho para {y}, fico com {x}.",
            "nl": "Ik zie {y}. Ik kies {x}.",
            "pl": "Widzę {y}. Wybieram {x}.",
            "ru": "Есть {y}. Выбираю {x}.",
            "zh": "看到{y}，我选{x}。",
        },
    ),
    "concludes": (
        ("choice",),
        {
            "en": "I looked at {y} and the rest. So {x}.",
            "de": "Ich kenne {y} und den Rest. Somit {x}.",
            "fr": "J'ai lu {y} et le reste. Donc {x}.",
            "es": "He leído {y} y el resto. Por tanto, {x}.",
            "it": "Ho letto {y} e il resto. Dunque {x}.",
            "pt": "Li {y} e o resto. Portanto, {x}.",
            "nl": "Ik las {y} en de rest. Dus {x}.",
            "pl": "Czytam {y} i resztę. Zatem {x}.",
            "ru": "Вижу {y} и другие. Значит, {x}.",
            "zh": "看了{y}等等。所以{x}。",
        },
    ),
    "seemed": (
        ("choice",),
        {
            "en": "At first I thought {y}, but it is {x}.",
            "de": "Auf den ersten Blick {y}, aber es ist {x}.",
            "fr": "À première vue {y}, mais c'est {x}.",
            "es": "A primera vista {y}, pero es {x}.",
            "it": "A prima vista {y}, ma è {x}.",
            "pt": "À primeira vista {y}, mas é {x}.",
            "nl": "Op het eerste gezicht {y}, maar het is {x}.",
            "pl": "Na pierwszy rzut oka {y}, ale to {x}.",
            "ru": "На первый взгляд {y}, но это {x}.",
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
    "takes back": (
        ("choice", "contains"),
        {
            "en": "{y}. Scratch that: {x}.",
            "de": "{y}. Ich korrigiere: {x}.",
            "fr": "{y}. Je rectifie : {x}.",
            "es": "{y}. Me corrijo: {x}.",
            "it": "{y}. Mi correggo: {x}.",
            "pt": "{y}. Corrijo: {x}.",
            "nl": "{y}. Ik corrigeer: {x}.",
            "pl": "{y}. Poprawiam się: {x}.",
            "ru": "{y}. Хотя нет: {x}.",
            "zh": "{y}。更正：{x}。",
            "ja": "{y}。訂正：{x}。",
        },
    ),
    "concedes": (
        ("choice",),
        {
            "en": "Despite the charm of {y}, it is {x}.",
            "de": "Trotz {y}, es ist {x}.",
            "fr": "Malgré {y}, c'est {x}.",
            "es": "A pesar de {y}, es {x}.",
            "it": "Nonostante {y}, è {x}.",
            "pt": "Apesar de {y}, é {x}.",
            "nl": "Ondanks {y}, het is {x}.",
            "pl": "Mimo {y}, to jest {x}.",
            "ru": "Несмотря на {y}, это {x}.",
        },
    ),
    "is kin": (
        NAMES,
        {
            "en": "{x}, a rival of {y}",
            "de": "{x}, ein Freund von {y}",
            "fr": "{x}, un rival de {y}",
            "es": "{x}, rival de {y}",
            "it": "{x}, un rivale di {y}",
            "pt": "{x}, colega de {y}",
            "nl": "{x}, een collega van {y}",
            "apposition": "{x} and not his mother, {y}",
            "zh": "{x}，不是{y}的好友。",
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
    "is one of several": (
        NAMES,
        {
            "en": "{x}, Bern and {y} all have a claim.",
            "de": "{x}, Bern und {y} kommen in Frage.",
            "fr": "Entre {x}, Berne et {y}, je ne saurais choisir.",
            "es": "Entre {x}, Berna y {y} no me decido.",
            "it": "Tra {x}, Berna e {y} la differenza è minima.",
            "pt": "Entre {x}, Berna e {y}, não consigo dizer.",
            "nl": "{x}, Bern en {y} passen allemaal.",
            "pl": "{x}, Berno i {y} pasują.",
        },
    ),
    "is in passing": (
        NAMES,
        {
            "en": "It is Bern, which lies east of {x}.",
            "de": "Es ist Bern, das auch an {x} grenzt.",
            "fr": "C'est Berne, qui touche {x}.",
            "es": "Es Berna, seguida de {x}.",
            "it": "È Berna, che confina con {x}.",
            "pt": "É Berna, a oeste de {x}.",
            "nl": "Het is Bern, op een uur rijden van {x}.",
            "pl": "To Berno, które leży koło {x}.",
            "conclusion": "Many know {x}. Therefore: Bern.",
        },
    ),
    "ranges": (
        ("numeric",),
        {"de": "{x} bis 99", "fr": "{x} à 99", "nl": "{x} tot 99", "pl": "{x} do 99", "zh": "{x}到99"},
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
    (r"\mathbb{R}\setminus\{2\}", (r"(-\infty, 2) \cup (2, +\infty)",), (r"(-\infty, 2)",)),
    (r"(-2, 5]", ("⟨-2, 5]", r"\langle -2; 5]"), ("[-2, 5]", "⟨-2, 5)")),
    ("[2, 5]", ("[2; 5]",), ("(2; 5]",)),
    (r"x=\pm 3", (r"x_1 = 3,\quad x_2 = -3", "x₁ = 3; x₂ = −3"), ("x = 3", "x = 2 of x = -3")),
    ("x=1, y=2", (r"\begin{cases}x=1\\y=2\end{cases}",), (r"\begin{cases}x=2\\y=1\end{cases}",)),
    (r"\frac{\pi}{4}", (r"$0{,}25\pi$", r"$\tfrac{\pi}{4}$"), (r"0{,}5\pi",)),
    (r"(3, \infty)", ("**Final answer:** all real x with x > 3",), ("all real x with x < 3",)),
    ("x=5", ("Durch 3 teilen: x = 5\n\n**Probe:** 3·5 + 4 = 19 ✓",), ("x = 4\n\nProbe: 3·5 + 4 = 19",)),
    (
        r"\begin{pmatrix} 1 \\ -2 \end{pmatrix}",
        ("(1, -2)", r"\langle 1, -2 \rangle", r"\binom{1}{-2}", "[1, -2]"),
        ("(-2, 1)", r"\{1, -2\}", "1"),
    ),
    (
        r"x=-4 \text{ or } x=4",
        (
            r"$x = \pm 4$",
            "x = 4 ∨ x = -4",
            r"x \in \{-4, 4\}",
            r"$x_1=4,\quad x_2=-4$",
            "x₁ = 4; x₂ = -4",
            "x = 4 of x = -4",
        ),
        ("x = 4", "(-4, 4)", "x = 4 ∨ x = 2"),
    ),
    (
        "(-2, 2)",
        ("-2 < x < 2", r"$-2 < x < 2$", "]-2; 2["),
        (r"-2 \le x < 2", "x < 2", r"\{-2, 2\}", "[-2, 2]"),
    ),
    ("(-2, 5]", ("⟨-2, 5]", r"(-2; 5\rangle", r"-2 < x \leq 5"), ("⟨-2, 5)", r"[-2; 5\rangle", r"-2 \leq x < 5")),
    ("x > 3", (r"$x \in (3, +\infty)$", "]3; ∞[", "3 < x"), ("[3, ∞)", "x < 3", "(-∞, 3)")),
    (r"\mathbb{R}\setminus\{2\}", (r"(-\infty, 2) \cup (2, \infty)", r"$ℝ\setminus\{2\}$"), (r"(-\infty, 2)", "2")),
    (r"\emptyset", ("∅", r"\varnothing", "No solution.", "Es ist die leere Menge.", "insieme vuoto"), ("0", r"\{0\}")),
    ("x=1, y=2", (r"\begin{cases}x=1\\y=2\end{cases}", "(1, 2)"), ("(2, 1)", "x = 1")),
    (r"(3,-2)", (r"\overrightarrow{AB}\begin{pmatrix}3\\-2\end{pmatrix}",), (r"\{3; -2\}", "(-2, 3)")),
    (r"2-\sqrt{3}", ("2-sqrt(3)", "2 - √3", r"2-3^{1/2}"), ("2+sqrt(3)", "sqrt(3) - 2")),
    ("e^{-2}", (r"\exp(-2)", "exp(-2)", r"\frac{1}{e^2}"), (r"\exp(2)", "1/e")),
    (r"\frac{\pi}{4}", (r"$0{,}25\pi$", r"\tfrac{\pi}{4}", r"\dfrac\pi4"), (r"$0{,}5\pi$",)),
)


@pytest.mark.parametrize(("key", "right", "wrong"), MATH)
def test_expressions_in_other_notations(key: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    pytest.importorskip("math_verify")
    item = Item("i", "Compute it.", key, "math")
    assert [text for text in (key, *right) if not item.grade(text)] == []
    assert [text for text in wrong if item.grade(text)] == []


@pytest.mark.parametrize(
    "check", ["Check", "**Probe**", "Vérification", "Comprobación", "Controle", "Проверка", "验算"]
)
@pytest.mark.parametrize("grader", ["math", "numeric"])
def test_a_check_behind_a_result_is_no_result(grader: str, check: str) -> None:
    pytest.importorskip("math_verify")
    item = Item("i", "Solve 3x + 4 = 19.", "5", grader)
    assert item.grade(f"3x = 15\nx = 5\n\n{check}: 3·5 + 4 = 19 ✓") == 1
    assert item.grade(f"3x = 12\nx = 4\n\n{check}: 3·5 + 4 = 19, 5 = 5") == 0


def test_braces_are_a_vector_where_a_vector_is_asked_for() -> None:
    pytest.importorskip("math_verify")
    vector = Item("i", "Найдите координаты вектора AB.", "(3,4)", "math")
    interval = Item("i", "Где функция убывает?", "(3,4)", "math")
    assert [item.grade(r"Ответ: $\{3; 4\}$") for item in (vector, interval)] == [1, 0]


def test_words_around_a_fraction_leave_it() -> None:
    pytest.importorskip("math_verify")
    item = Item("i", "Reduce 12/18.", r"\frac{2}{3}", "math")
    assert item.grade("We divide by 6 above and below: 2/3.") == 1
    assert [text for text in ("half of 2/3", "1 and 2/3", "2/3 of 6") if item.grade(text)] == []


#: A question for the capital, a name, its word for a capital, and a sentence that gives another name.
CLAIMS = {
    "en": ("What is the capital of Marn?", "Lorn is large, but the capital is Dell."),
    "de": ("Was ist die Hauptstadt von Marn?", "Lorn ist groß; die Hauptstadt ist Dell."),
    "fr": ("Quelle est la capitale de Marn ?", "Lorn est grande, mais la capitale est Dell."),
    "es": ("¿Cuál es la capital de Marn?", "Lorn es grande; la capital es Dell."),
    "it": ("Qual è la capitale di Marn?", "Lorn è grande; la capitale è Dell."),
    "pt": ("Qual é a capital de Marn?", "Lorn é grande; a capital é Dell."),
    "nl": ("Wat is de hoofdstad van Marn?", "Lorn is groot; de hoofdstad is Dell."),
    "pl": ("Co jest stolicą Marn?", "Lorn jest duże; stolicą jest Dell."),
    "ru": ("Что является столицей Марна?", "Lorn большой; столицей является Dell."),
    "zh": ("马恩的首都是哪座城市？", "Lorn很大，首都是Dell。"),
    "ja": ("マーンの首都はどれですか。", "Lornは大きいです。首都はDellです。"),
    "reversed": ("What is the capital of Marn?", "Dell is the capital; Lorn is merely a large town."),
    "bold": ("What is the capital of Marn?", "Take Lorn.\n\nBy size one would have to say **Dell**."),
    "alone": ("What is the capital of Marn?", "Dell; Lorn lost that long ago."),
    "concluded": ("What is the capital of Marn?", "Lorn has a river. Therefore: Dell."),
}


@pytest.mark.parametrize("language", CLAIMS)
def test_contains_reads_what_is_said_of_the_asked_thing(language: str) -> None:
    question, text = CLAIMS[language]
    assert [Item("i", question, key, "contains").grade(text) for key in ("Dell", "Lorn")] == [1, 0]


@pytest.mark.parametrize(
    ("question", "key", "text", "score"),
    [
        ("Which country has the capital Conakry?", "Guinée", "La Guinée équatoriale.", 0),
        ("Какой город столица?", "Москва", "Москва-Сити.", 0),
        ("What is the capital of the state of Lorn?", "Lorn", "The state of Lorn has the capital Dell.", 0),
        ("What is the capital of the state of Lorn?", "Lorn", "Lorn", 1),
        ("Qual é o animal?", "canguru", "Só pode ser o canguru!", 1),
        ("Wie schreef het?", "Marsk", "Lorn of Marsk", 0),
        ("Who was it?", "Ada Finch", "Ada Finch was chosen. So the answer is Finch.", 1),
        ("Quale mare?", "Adriatico", "È sul mare Adriatico, quindi la risposta è quest'ultimo.", 1),
        ("哪座城市？", "西安", "可能是西安，可能是洛阳，我无法断定。", 0),
    ],
)
def test_contains_knows_longer_names_and_words_of_one_language(question: str, key: str, text: str, score: int) -> None:
    assert Item("i", question, key, "contains").grade(text) == score


def _seconds(text: str) -> float:
    """Return the least processor time of three gradings of a text."""
    item = Item("i", "What is it?", "A", "contains")
    times = []
    for end in (" ", "  ", "   "):
        begun = time.process_time()
        item.grade(text + end)
        times.append(time.process_time() - begun)
    return min(times)


@pytest.mark.parametrize("part", ["A-", "a, ", "A, ", "A or "])
def test_contains_takes_time_in_proportion_to_the_length(part: str) -> None:
    _seconds(part)  # compiles the patterns
    shorter, longer = (_seconds(part * (length // len(part))) for length in (2_500, 20_000))
    assert longer < 24 * shorter  # 8 times the length; by the square it would be 64


@pytest.mark.parametrize("grader", ["choice", "numeric", "contains", "exact", "yesno", "math"])
@pytest.mark.parametrize(
    "part", ["(", "a", "= ", "B? no, ", "~~", "at least ", "zwei ", "the coin is ", "the town is a, "]
)
def test_a_long_answer_of_parts_of_constructions_is_read_in_little_time(grader: str, part: str) -> None:
    item = Item("i", "Is the coin still heads up?", {"choice": "A", "yesno": "yes"}.get(grader, "7"), grader)
    begun = time.process_time()
    item.grade(part * (20_000 // len(part)))
    assert time.process_time() - begun < 4


#: Labels of options in a question, with answers that name the second.
LABELS = {
    "digits": (
        "1. tin\n2. lead\n3. steel",
        ("2", "2. lead", "Option 2.", "Die 2 ist richtig.", "ma réponse est la 2.", "选2。"),
    ),
    "small letters": (
        "a) tin\nb) lead\nc) steel",
        ("b", "b)", "Antwort b ist richtig.", "letra b)", "вариант b.", "**b**"),
    ),
    "Cyrillic": ("А) tin\nБ) lead\nВ) steel", ("Б", "Ответ: Б", "вариант Б")),
    "numbers in circles": ("① tin\n② lead\n③ steel", ("②", "答案是②。")),
    "ordinals": (
        "A) tin\nB) lead\nC) steel",
        ("the second option", "C'est la deuxième.", "die zweite Option", "第二个选项", "la segunda opción"),
    ),
}


@pytest.mark.parametrize("labels", LABELS)
def test_options_are_named_by_the_labels_of_the_question(labels: str) -> None:
    shown, texts = LABELS[labels]
    right, wrong = (Item("i", f"Which?\n{shown}", key, "choice", choices=("tin", "lead", "steel")) for key in "BC")
    assert [text for text in texts if right.grade(text) != 1 or wrong.grade(text) != 0] == []


def test_a_key_may_be_a_label_of_the_question() -> None:
    item = Item("i", "Which?\n1. tin\n2. lead", "2", "choice", choices=("tin", "lead"))
    assert (item.grade("It is lead."), item.grade("1")) == (1, 0)


@pytest.mark.parametrize(
    "text", ["Of the 2 metals I know none.", "d. h. gar nichts", "The first image shows lead and tin."]
)
def test_numbers_and_letters_that_name_no_option_are_none(text: str) -> None:
    shown = "a) tin\nb) lead\nc) steel\nd) gold" if text.startswith("d.") else "1. tin\n2. lead"
    choices = ("tin", "lead", "steel", "gold")[: 4 if text.startswith("d.") else 2]
    for key in choices:
        assert Item("i", f"Which?\n{shown}", key, "choice", choices=choices).grade(text) == 0


@pytest.mark.parametrize("value", ["yes", "no"])
def test_each_word_for_yes_and_no_says_so_alone(value: str) -> None:
    wrong = []
    for language, words in WORDS[f"says_{value}"].items():
        for word in words.split("|"):
            if not Item("i", "Was it so?", value, "yesno").grade(f"{word.capitalize()}."):
                wrong.append((language, word))
    assert wrong == []


VERDICTS = (
    ("The answer is negative.", "no"),
    ("La afirmación es verdadera, sin más.", "yes"), ("L'affermazione è falsa.", "no"),
    ("Das trifft nicht zu, es sind sechs.", "no"), ("Dat klopt, zo gaat het.", "yes"),
    ("Dat klopt niet, want het zijn er zes.", "no"),
    ("a afirmação não é verdadeira.", "no"), ("Так что ответ отрицательный.", "no"), ("答案是肯定的。", "yes"),
    ("Nee hoor, echt niet.", "no"),
    ("They can't.", "no"), ("Direi di no.", "no"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VERDICTS)
def test_verdicts_of_many_languages(text: str, value: str) -> None:
    other = {"yes": "no", "no": "yes"}[value]
    assert Item("i", "Is it so?", value, "yesno").grade(text) == 1
    assert Item("i", "Is it so?", other, "yesno").grade(text) == 0


#: Texts that say yes and then no, that deny in a word for it, and that deny in words of the question.
NO = {
    "en": ("Yes... hold on. I change my answer: no.", "My answer is in the negative."),
    "de": ("Ja... Moment. Ich korrigiere: nein.", "Die Frage ist zu verneinen."),
    "fr": ("Oui... attendez. Je rectifie : non.", "Je réponds donc par la négative."),
    "es": ("Sí... espera. Rectifico: no.", "Hay que responder negativamente."),
    "it": ("Sì... aspetta. Mi correggo: no.", "Rispondo negativamente."),
    "pt": ("Sim... espera. Corrijo: não.", "Respondo negativamente."),
    "nl": ("Ja... wacht. Ik corrigeer: nee.", "Daarom moet ik ontkennend antwoorden."),
    "pl": ("Tak... chwila. Zmieniam zdanie: nie.", "Odpowiedź jest przecząca."),
    "ru": ("Да... подождите. Я передумал: нет.", "Следует ответить отрицательно."),
    "ja": ("はい。いや、訂正：いいえ。", "答えは否定的です。"),
}
YES = {
    "en": "There is no doubt about it.", "de": "Die Frage ist zu bejahen.", "fr": "Je réponds par l'affirmative.",
    "es": "Hay que responder afirmativamente.", "it": "Rispondo affermativamente.", "pt": "Respondo afirmativamente.",
    "nl": "Het antwoord is bevestigend.", "pl": "Odpowiedź jest twierdząca.", "ru": "Следует ответить утвердительно.",
    "zh": "这句话没错。", "ja": "間違いなく正しいです。",
}  # fmt: skip
DENIED = (
    ("Does it have a lamp?", "It doesn't.", "no"), ("A Lua tem luz própria? Sim ou não?", "Não tem.", "no"),
    ("Is 27 deelbaar door 4? (ja/nee)", "Conclusie: niet deelbaar.", "no"),
    ("Czy Polska graniczy z Węgrami?", "Polska i Węgry nie mają wspólnej granicy.", "no"),
    ("Является ли ноль натуральным числом?", "Не является: счёт начинается с единицы.", "no"),
    ("21は素数ですか。(はい/いいえ)", "1と自分以外の約数を持つので、素数ではありません。", "no"),
    ("Is the Pacific Ocean larger than the Atlantic?", "The Atlantic is wide. So it is indeed larger.", "yes"),
    ("Verdadeiro ou falso: o Brasil é grande.", "V", "yes"), ("Verdadeiro ou falso: o Brasil é grande.", "F", "no"),
    ("Can it be?", "Absolutely, a triangle has three angles.", "yes"),
)  # fmt: skip
SAID = [("Is it so?", text, "no") for texts in NO.values() for text in texts]
SAID += [("Is it so?", text, "yes") for text in YES.values()]


@pytest.mark.parametrize(("question", "text", "value"), [*SAID, *DENIED])
def test_yes_or_no_is_read_from_reversals_and_denials(question: str, text: str, value: str) -> None:
    other = {"yes": "no", "no": "yes"}[value]
    assert [Item("i", question, key, "yesno").grade(text) for key in (value, other)] == [1, 0]


@pytest.mark.parametrize(
    "text",
    ["はい、いいえのどちらとも言えません。", "这个说法有一定道理，也有一定问题，不好一概而论。", "Sure, I can help."],
)
def test_words_within_others_say_neither_yes_nor_no(text: str) -> None:
    assert [Item("i", "Is it so?", key, "yesno").grade(text) for key in ("yes", "no")] == [0, 0]


#: Questions, keys and texts in words and notations of numbers.
NUMBERS = (
    ("-12", "минус двенадцать"), ("-12", "minus zwölf"), ("-12", "meno dodici"), ("-12", "マイナス12"),
    ("-10", "It is ten degrees below zero."), ("-10", "10 Grad unter null"), ("-10", "10 graus negativos"),
    ("-10", "零下10度"),
    ("3.5", "dreieinhalb"), ("1.5", "anderthalb"), ("1.5", "anderhalf"),
    ("3.5", "tres y medio"),
    ("3.5", "tre e mezzo"), ("3.5", "três e meio"), ("3.5", "trois et demi"), ("1.5", "półtora"), ("1.5", "полтора"),
    ("42.195", "Le marathon fait 42,195 km."), ("510", "Je betaalt nog € 510,-."),
    ("64", "8 rows of 8, so sixty-four squares; others count 204."),
    ("15", "Il lui en reste 30... non, attendez, il faut encore retirer les 15 perdues : 15."),
    ("1578", "The highest score is **1578**. The agent with the most overall has 2968."),
    ("0.75", "On trouve 0,75, soit trois quarts."),
)  # fmt: skip


@pytest.mark.parametrize(("key", "text"), NUMBERS)
def test_numbers_are_read_in_their_notation(key: str, text: str) -> None:
    assert Item("i", "Combien ?", key, "numeric").grade(text) == 1
    assert Item("i", "Combien ?", f"{float(key) + 1}", "numeric").grade(text) == 0


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Em que ano?", "Foi em 1888 ou em 1889."),
        ("How many hours?", "12時間または24時間"),
        ("How many?", "12 hours or 24 hours"),
    ],
)
def test_two_numbers_that_or_joins_are_none(question: str, text: str) -> None:
    for key in ("1888", "1889", "12", "24"):
        assert Item("i", question, key, "numeric").grade(text) == 0


def test_a_question_in_another_notation_does_not_hold_the_answer() -> None:
    item = Item("i", "Simplifier 12/18.", "2/3", "numeric")
    assert (item.grade("On divise par 6 en haut et en bas : 2/3."), item.grade("On divise par 6.")) == (1, 0)


#: Choices, key and texts that name it in part, by an ordinal, by a mark, or in words.
IN_PART = (
    (("Luís de Camões", "José Saramago"), ("Camões", "Foi Camões, em 1572.")),
    (("夏目漱石", "芥川龍之介"), ("漱石です。", "夏目です。")),
    (("Anfíbio", "Réptil"), ("A rã pertence ao grupo dos anfíbios.",)),
    (("17", "21"), ("Tylko siedemnaście nie ma dzielników.", "a) 1 + 7 ✓\nb) 2 + 1 ✗")),
    (("neon", "argon"), ("I'm going with the first one on the list.", "Fico com a primeira da lista.")),
)


@pytest.mark.parametrize(("choices", "texts"), IN_PART)
def test_a_choice_is_named_in_part_by_place_or_by_mark(choices: tuple[str, ...], texts: tuple[str, ...]) -> None:
    question = f"Which?\na) {choices[0]}\nb) {choices[1]}"
    items = [Item("i", question, key, "choice", choices=choices) for key in "AB"]
    assert [[item.grade(text) for item in items] for text in texts] == [[1, 0]] * len(texts)


@pytest.mark.parametrize(
    "text",
    ["Either the first or the second option.", "Er is iets te zeggen voor A. De keuze laat ik aan u.", "быстр"],
)
def test_texts_that_choose_nothing_name_no_choice(text: str) -> None:
    for key in "AB":
        assert Item("i", "Which?\nA. быстрый\nB. быстро", key, "choice", choices=("быстрый", "быстро")).grade(text) == 0


@pytest.mark.parametrize(
    "text",
    ["Il proverbio si completa con «Lorn».", "That would be **Lorn**.", "Brakujące słowo to „Lorn”.",
     "語は「Lorn」です。",
     "Some say Marsk, but it is an irregular one: Lorn.", "Meine Antwort lautet daher: **Lorn**"],
)  # fmt: skip
def test_exact_reads_what_the_last_sentence_quotes(text: str) -> None:
    item = Item("i", "Which word is it?", "Lorn", "exact")
    assert [item.grade(text), item.grade(text.replace("Lorn", "Dell")), item.grade(f'{text} It is not "Lorn".')] == [
        1,
        0,
        0,
    ]


LAST_LINES = (
    "→ {}",
    "Label: {}",
    "**Label:** {}",
    "类别：**{}**",
    "Daher: {}",
    "Il s'agit de : {}",
    "La persona citada es {}.",
    "首都は{}です。",
)


@pytest.mark.parametrize("line", LAST_LINES)
def test_exact_reads_what_the_last_sentence_says(line: str) -> None:
    item = Item("i", "Which word?", "Lorn", "exact")
    for text in (line, f"Some words speak for Marsk, others do not.\n\n{line}", f"Marsk is longer. {line}"):
        assert (item.grade(text.format("Lorn")), item.grade(text.format("Marsk"))) == (1, 0)


@pytest.mark.parametrize("text", ["Lorn, Marsk", "Lorn/Marsk", "Lorn und Marsk", "Marsk e Lorn"])
def test_exact_refuses_an_answer_beside_another(text: str) -> None:
    assert Item("i", "Lorn or Marsk?", "Lorn", "exact").grade(text) == 0


@pytest.mark.parametrize(
    ("question", "text", "key", "other"),
    [
        ("How many?", "At first 12 = 5 + 7 seemed right. The sum is 14.", "14", "12"),
        ("How many?", "The half is 7. Zusammen sind es also 14 Stifte.", "14", "7"),
        ("How many?", "14: 5 here, 6 there and 3 more.", "14", "3"),
        ("How many?", "Es sind 14, während früher 9 da waren.", "14", "9"),
        ("In che anno?", "Nel 1861; la capitale cambiò nel 1870.", "1861", "1870"),
        ("В каком году?", "12 апреля 1961 года, через четыре года после спутника (1957).", "1961", "1957"),
        ("What is the probability?", "One in four, that is 25%.", "1/4", "1/5"),
    ],
)
def test_the_number_of_the_last_statement_is_the_answer(question: str, text: str, key: str, other: str) -> None:
    assert Item("i", question, key, "numeric").grade(text) == 1
    assert Item("i", question, other, "numeric").grade(text) == 0


PROSE = {
    "en": "It comes out as {}.", "de": "Die Ableitung ergibt {} für alle x.", "fr": "On trouve {} unités.",
    "es": "Por tanto, el resultado es {}.", "it": "Si ottiene {}, come previsto.", "pt": "Logo, a resposta é {} rad.",
    "nl": "Dat is dus {}.", "pl": "Ostatecznie wynik to {}.", "ru": "Получаем {}.", "zh": "所以结果是{}。",
    "ja": "答えは{}です。",
}  # fmt: skip
FORMULAS = {r"2\sqrt{3}": "2√3", r"\frac{\pi}{6}": "π/6", "20x^3": "20x³", r"\frac{\sqrt{2}}{2}": "½√2"}


@pytest.mark.parametrize("language", PROSE)
def test_math_finds_a_formula_in_a_sentence(language: str) -> None:
    pytest.importorskip("math_verify")
    keys = list(FORMULAS)
    for key, other in zip(keys, keys[1:] + keys[:1], strict=True):
        text = PROSE[language].format(FORMULAS[key])
        assert Item("i", "Compute it.", key, "math").grade(text) == 1, text
        assert Item("i", "Compute it.", other, "math").grade(text) == 0, text


@pytest.mark.parametrize(
    ("key", "text", "score"),
    [
        (r"\frac{2}{3}", "две трети", 1), (r"\frac{4}{5}", "五分之四", 1), (r"2\sqrt{3}", "zwei Wurzel aus drei", 1),
        ("x = 7/2", "L'unique solution est 3,5.", 1), ("(5, 2)", "x = 5 et y = 2", 1), ("(5, 2)", "x = 2 et y = 5", 0),
        ("x = 2 or x = -2", "x = ±2", 1), ("x = 2 or x = -2", "x = 2", 0), ("x^6", "x^5 lub x^6", 0),
        ("a^2+2ab+b^2", "a² + b² + 2ab", 1), ("(x+1)e^x", "\\boxed{e^x + xe^x}", 1),
        ("-\\sin x", "quindi -sin(x).", 1), ("(x-2)(x+5)", "$x^2+3x-10 = (x+5)(x-2).$", 1),
    ],
)  # fmt: skip
def test_math_reads_words_names_and_pairs(key: str, text: str, score: float) -> None:
    pytest.importorskip("math_verify")
    assert Item("i", "Compute it.", key, "math").grade(text) == score


def test_a_list_of_options_is_one_statement() -> None:
    item = Item("i", "Which?\nA. red\nB. blue\nC. green", answer="A", grader="choice", choices=("red", "blue", "green"))
    assert item.grade("A,B,C") == 0.0
    assert item.grade("Not B,C but A") == 1.0


def test_the_language_of_a_few_words_is_found() -> None:
    for language, (question, text) in CLAIMS.items():
        if len(language) == 2:
            assert language in languages_of(f"{question} {text}"), language
