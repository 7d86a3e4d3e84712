"""Instructions on the form of an answer: each check tells an answer that obeys from one that does not."""

import json

import pytest

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.reading.instructions import INSTRUCTIONS, language_of, obeys

CASES = [
    ("keywords:existence", {"keywords": ["mom", "grow"]}, "Mom, they Grow!", "Mom is tall."),
    ("keywords:frequency", {"keyword": "war", "relation": "at least", "frequency": 2}, "War and war", "war"),
    ("keywords:frequency", {"keyword": "a.b", "relation": "less than", "frequency": 1}, "axb", "a.b"),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "rocket", "A Rock."),
    ("keywords:letter_frequency", {"letter": "#", "let_relation": "at least", "let_frequency": 2}, "# a #", "#"),
    ("keywords:letter_frequency", {"letter": "t", "let_relation": "less than", "let_frequency": 2}, "Two", "To tea"),
    ("language:response_language", {"language": "de"}, "Das ist nicht der Weg.", "This is not the way."),
    ("length_constraints:number_words", {"relation": "at least", "num_words": 3}, "one two, three", "one two"),
    ("length_constraints:number_words", {"relation": "less than", "num_words": 3}, "one two", "one two three"),
    (
        "length_constraints:number_sentences",
        {"relation": "less than", "num_sentences": 3},
        'Dr. Ho said: "Go!" It costs 3.50 e.g. today.',
        "One. Two? Three",
    ),
    ("length_constraints:number_sentences", {"relation": "at least", "num_sentences": 2}, "Yes. No", "Yes, no."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n***\n***\nb"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\na\n***\nb***", "a\n\nb"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Summary"},
        'One.\n\n"summary", it is.',
        "Summary.\n\nOne.",
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\nP. S. Write.", "Bye. Postscript."),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S Write.", "P.S. Write."),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] at [address]", "[name"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b\n**c**", "* a\n* b\n* c"),
    ("detectable_format:constrained_response", {}, "Well. My answer is maybe.", "Maybe."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b c**", "*a* and ** **"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\na\nSECTION 2\nb",
        "SECTION 1\na\nsection 2\nb",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', '{"a": 1'),
    ("detectable_format:title", {}, "<<joy>>\nLa.", "<< >>\nLa <joy>."),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "say hi.\nHi", "Hi. Say hi."),
    ("combination:two_responses", {}, "a\n******\nb", "a\n******\na"),
    ("startend:end_checker", {"end_phrase": "Any more?"}, 'Bye. "any more?"', "Any more? No."),
    ("startend:quotation", {}, ' "Hello" ', '"'),
    ("change_case:english_capital", {}, "THE END OF IT.", "THE End."),
    ("change_case:english_capital", {}, "YES", "DAS IST NICHT DER WEG UND DIE STADT"),
    ("change_case:english_lowercase", {}, "the end of it.", "the End of it."),
    (
        "change_case:capital_word_frequency",
        {"capital_relation": "at least", "capital_frequency": 2},
        "NASA's is not WELL-KNOWN, I say",
        "Nasa is OK",
    ),
    ("punctuation:no_comma", {}, "a; b", "a, b"),
]


@pytest.mark.parametrize(("name", "arguments", "right", "wrong"), CASES)
def test_an_instruction_tells_obedience(name, arguments, right, wrong):
    assert obeys(name, arguments, right)
    assert not obeys(name, arguments, wrong)
    assert not obeys(name, arguments, "  ")


def test_every_instruction_is_tried():
    assert {name for name, *_ in CASES} == INSTRUCTIONS.keys()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ar", "هذا هو الطريق إلى المدينة التي كان فيها"),
        ("bg", "Това е пътят към града, който не се вижда"),
        ("bn", "এটি শহরের পথ"),
        ("en", "It is the way to the city, and you are in it"),
        ("fa", "این راه شهر است که در آن هستم"),
        ("fi", "Tämä ei ole tie, mutta se on hyvä"),
        ("gu", "આ શહેરનો માર્ગ છે"),
        ("hi", "यह शहर का रास्ता है और मैं यहाँ नहीं था"),
        ("it", "Questa è la strada della città, che non si vede"),
        ("ja", "これは町への道です"),
        ("kn", "ಇದು ನಗರದ ದಾರಿ"),
        ("ko", "이것은 도시로 가는 길입니다"),
        ("mr", "हे शहर आहे आणि ते मोठे नाही"),
        ("ne", "यो सहर हो र म यहाँ छन् भएको"),
        ("pa", "ਇਹ ਸ਼ਹਿਰ ਦਾ ਰਸਤਾ ਹੈ"),
        ("pt", "Este não é o caminho da cidade, mas um outro"),
        ("ru", "Это не та дорога, которая была в городе, но она как эта"),
        ("sw", "Hii ni njia ya kwenda katika mji huo"),
        ("ta", "இது நகரத்தின் வழி"),
        ("te", "ఇది నగరానికి దారి"),
        ("th", "นี่คือทางไปเมือง"),
        ("ur", "یہ شہر کا راستہ ہے اور میں اس میں نہیں تھا"),
        ("vi", "Đây là con đường của thành phố và không có người"),
        ("zh", "这是去城市的路"),
        ("", "123 !?"),
        ("", "Xylophon"),
    ],
)
def test_the_language_of_a_text(language, text):
    assert language_of(text) == language


def item(*instructions, grader="instructions"):
    data = {"id": "a", "prompt": "Write.", "answer": "form", "grader": grader}
    return parse_item(json.dumps({**data, "meta": {"instructions": list(instructions)}}), "line 1")


def test_all_instructions_have_to_be_obeyed():
    both = item({"id": "punctuation:no_comma"}, {"id": "startend:quotation"})
    assert both.grade('<think>a, b</think>"a b"') == 1.0
    assert both.grade('"a, b"') == 0.0
    assert both.grade("a b") == 0.0


QUOTED, COMMALESS = {"id": "startend:quotation"}, {"id": "punctuation:no_comma"}


@pytest.mark.parametrize(
    ("instructions", "text", "strict", "loose"),
    [
        ([QUOTED], '"a"', 1, 1),
        ([QUOTED], 'Sure:\n"a"', 0, 1),  # without the first line
        ([QUOTED], '"a"\nDone', 0, 1),  # without the last
        ([QUOTED], 'Sure:\n\n"a"\n\nDone', 0, 1),  # without both, and white space around
        ([QUOTED], '**"a"**', 0, 1),  # without asterisks
        ([QUOTED], 'Sure:\n*"a"*\nDone', 0, 1),
        ([QUOTED], 'Sure: "a"', 0, 0),  # nothing is left without its only line
        ([QUOTED], 'Sure\nyes:\n"a"', 0, 0),  # one line alone is left out
        ([QUOTED, COMMALESS], 'Yes, sure:\n"a"', 0, 1),
        # each by a variant of its own
        ([QUOTED, {"id": "keywords:existence", "keywords": ["sure"]}], 'Sure:\n"a"', 0, 1),
        ([QUOTED, {"id": "keywords:existence", "keywords": ["no"]}], 'Sure:\n"a"', 0, 0),
    ],
)
def test_loose_grading_leaves_out_first_line_last_line_and_asterisks(instructions, text, strict, loose):
    assert item(*instructions).grade(text) == strict
    assert item(*instructions, grader="instructions_loose").grade(f"<think>,\n</think>{text}") == loose


@pytest.mark.parametrize(
    ("instructions", "part"),
    [
        ([], "needs meta.instructions"),
        (["punctuation:no_comma"], "needs meta.instructions"),
        ([{"id": "punctuation:none"}], "the instruction 'punctuation:none' is not known"),
        ([{"id": "keywords:existence", "keywords": "mom"}], "keywords is 'mom', expected list"),
        ([{"id": "keywords:existence", "keywords": [1]}], "keywords is [1], expected words"),
        (
            [{"id": "length_constraints:number_words", "relation": "about", "num_words": 3}],
            "relation is 'about', expected one of at least, less than",
        ),
        ([{"id": "length_constraints:number_paragraphs", "num_paragraphs": True}], "expected int"),
        ([{"id": "language:response_language", "language": "xx"}], "language is 'xx', expected one of ar,"),
    ],
)
def test_instructions_that_cannot_be_checked_are_refused_with_the_line(instructions, part):
    with pytest.raises(BankError) as error:
        item(*instructions)
    assert part in str(error.value)
    assert "line 1: item 'a'" in str(error.value)
