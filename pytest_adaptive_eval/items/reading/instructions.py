"""Checks of instructions on the form of an answer, by the names and arguments with which IFEval publishes them.

Each check follows the description of its instruction: `check` says whether a text obeys.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

#: Scripts, as the first word of a character's Unicode name, that one language writes with.
_ONE_LANGUAGE = {
    "BENGALI": "bn",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HANGUL": "ko",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KANNADA": "kn",
    "KATAKANA": "ja",
    "MALAYALAM": "ml",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
}
#: Common words that tell the languages of one script apart.
_WORDS = {
    "LATIN": {
        "de": "der die das und ist nicht ein eine ich mit zu den von für auf sich auch wir sie es dem im werden",
        "en": "the and is of to a in that it for you with are this be on was not have as will your from or we",
        "es": "el la los las de y que es en un una por con para no se del su como más pero lo al este",
        "fi": "ja on ei se että hän oli ovat mutta myös kun tai niin joka minä olen ole voi kuin sekä mitä tämä",
        "fr": "le la les des et est un une que dans pour pas vous nous il elle qui sur avec ce au plus sont je",
        "id": "yang dan di ini itu dengan untuk tidak dari dalam akan pada adalah ke saya kami bisa juga oleh ada",
        "it": "il di che e la un una per non è con sono del della le gli si come ma al anche nel lo i",
        "nl": "de het een en van is dat niet op te in met voor zijn ik je maar ook aan wij hij er worden",
        "pl": "i w na nie się jest to z do że jak ale o dla po są przez co tak czy od może tym",
        "pt": "o a os as de e que é um uma para com não do da em por se mais no na são você seu ao como",
        "sv": "och att det är en som på av för med den till inte har jag ett om vi kan men du var så",
        "sw": "na ya wa kwa ni katika za la kuwa hii yake cha kama lakini pia sana mimi yangu huo wake hiyo au vya",
        "tr": "ve bir bu için ile de da çok olarak ne daha gibi ama olan ben var en değil mi her sonra kadar",
        "vi": "và của là có không một cho được trong với các người này đã những tôi bạn khi để đó cũng",
    },
    "CYRILLIC": {
        "bg": "и на да се не е за от с във със това са ще по като но че който си ги му както или към която",
        "ru": "и в не на я что он с как это по но они мы за от из у то так же вы для или быть когда если",
        "uk": "і в не на що він з як це та за від до у про або але ми ви її його є який для коли",
    },
    "DEVANAGARI": {
        "hi": "है के में की को और का से पर यह हैं एक नहीं भी कि लिए इस मैं हो था ने आप तो",
        "mr": "आहे आणि या मध्ये ते एक आहेत नाही हे ती तो मी की पण च्या तर होते साठी करण्यासाठी मला हा",
        "ne": "छ र को मा यो हो गर्न लागि छन् पनि एक भएको गर्छ म तपाईं थियो हुन्छ गरेको हरू लाई",
    },
    "ARABIC": {
        "ar": "في من على إلى أن هذا هذه التي الذي مع عن لا ما كان هو هي ذلك لم قد أو كل بعد",
        "fa": "در به از که این را با است برای آن یک می های شما من بود هم تا خود ما اما شود کرد",
        "ur": "کے میں کی ہے اور سے کا کو ہیں پر یہ نے ایک بھی کہ نہیں ہو اس لیے وہ تھا گیا",
    },
}
_OWN_WORDS = {
    script: {
        word: language
        for word, count in Counter(word for words in languages.values() for word in set(words.split())).items()
        if count == 1
        for language, words in languages.items()
        if word in words.split()
    }
    for script, languages in _WORDS.items()
}
#: Codes of the languages that are told apart.
LANGUAGES = frozenset(_ONE_LANGUAGE.values()) | {"zh"} | {code for group in _WORDS.values() for code in group}


def language_of(text: str) -> str:
    """Return the ISO 639-1 code of the language of a text, empty if its words do not show it.

    The script that most letters have counts, and among the languages of one script the one with most of the common
    words that no other has.
    """
    letters = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())
    if not letters:
        return ""
    script = max(letters, key=letters.__getitem__)
    if script == "CJK":
        if letters["HIRAGANA"] + letters["KATAKANA"] > 0.1 * letters["CJK"]:
            return "ja"
        return "zh"
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script]
    language_of_word = _OWN_WORDS.get(script, {})
    words = re.findall(r"[^\W\d_]+(?:\w|[\u0900-\u097f\u0600-\u06ff])*", text.lower())
    counts = Counter(language_of_word[word] for word in words if word in language_of_word)
    if counts:
        return counts.most_common(1)[0][0]
    return ""


Arguments = Mapping[str, Any]


class Instruction(NamedTuple):
    """An instruction whose obedience code can check.

    Args:
        check: ``check(text, arguments)`` returns whether the text obeys.
    """

    check: Callable[[str, Arguments], bool]
    arguments: Mapping[str, type] = {}


_RELATIONS = ("at least", "less than")
#: Abbreviations whose point ends no sentence.
_ABBREVIATIONS = (
    *("mr", "mrs", "ms", "dr", "prof", "jr", "sr", "vs", "etc", "e.g", "i.e", "p.s", "p.p.s", "inc", "ltd", "corp"),
    *("vol", "approx", "dept", "est", "u.s", "u.k", "a.m", "p.m"),
)
_MARKERS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _related(count: int, relation: str, limit: int) -> bool:
    if relation == "less than":
        return count < limit
    return count >= limit


def _sentences(text: str) -> int:
    """Return the number of sentences: runs of words that end with a mark and white space, or at a paragraph's end."""
    count = 0
    for paragraph in re.split(r"\n\s*\n", text):
        begun = False
        for word in paragraph.split():
            begun = begun or any(letter.isalnum() for letter in word)
            bare = word.strip("\"'”’)(]*_")
            ends = bare.endswith((".", "!", "?", "…", "。", "！", "？", "।"))
            if begun and ends and bare.rstrip(".").lower() not in _ABBREVIATIONS and not re.fullmatch(r"\d+\.", bare):
                count = count + 1
                begun = False
        count += begun
    return count


def _occurrences(text: str, word: str) -> int:
    return text.lower().count(word.lower())


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _parts(text: str, mark: str) -> list[str] | None:
    """Return the parts between marks; None where one in the middle is empty."""
    parts = [part.strip() for part in text.split(mark)]
    if not all(parts[1:-1]):
        return None
    return [part for part in parts if part]


def _paragraphs(text: str, arguments: Arguments) -> bool:
    parts = _parts(text, "***")
    return parts is not None and len(parts) == arguments["num_paragraphs"]


def _first_word(text: str, arguments: Arguments) -> bool:
    paragraphs = []
    for part in text.split("\n\n"):
        if part.strip():
            paragraphs.append(part.strip())
    number = arguments["nth_paragraph"]
    if len(paragraphs) != arguments["num_paragraphs"] or not 0 < number <= len(paragraphs):
        return False
    first = re.match(r"[\"'“”‘’*_(]*([\w'-]*\w)", paragraphs[number - 1])
    return first is not None and first[1].lower() == arguments["first_word"].lower()


def _postscript(text: str, arguments: Arguments) -> bool:
    marker = arguments["postscript_marker"]
    pattern = _MARKERS.get(marker, re.escape(marker))
    return re.search(rf"{pattern}.*$", text, re.IGNORECASE | re.MULTILINE) is not None


def _highlights(text: str, arguments: Arguments) -> bool:
    parts = [*re.findall(r"\*\*([^\n*]*)\*\*", text), *re.findall(r"(?<!\*)\*([^\n*]*)\*(?!\*)", text)]
    return bool(sum(bool(part.strip()) for part in parts) >= arguments["num_highlights"])


def _json(text: str, _: Arguments) -> bool:
    inner = re.fullmatch(r"```(?:json)?\s*(.*?)\s*```", text.strip(), re.DOTALL | re.IGNORECASE)
    try:
        json.loads(inner[1] if inner else text)
    except (ValueError, RecursionError):
        return False
    return True


def _two_responses(text: str, _: Arguments) -> bool:
    parts = _parts(text, "******")
    return parts is not None and len(parts) == 2 and parts[0] != parts[1]


def _english(text: str) -> bool:
    return language_of(text) in ("en", "")


def _capital_words(text: str, arguments: Arguments) -> bool:
    words = re.findall(r"\w+(?:['’-]\w+)*", text)
    count = sum(word.isupper() for word in words)
    return _related(count, arguments["capital_relation"], arguments["capital_frequency"])


#: Instructions by the names of IFEval.
INSTRUCTIONS: Mapping[str, Instruction] = {
    "keywords:existence": Instruction(
        lambda text, arguments: all(_occurrences(text, word) for word in arguments["keywords"]), {"keywords": list}
    ),
    "keywords:frequency": Instruction(
        lambda text, arguments: _related(
            _occurrences(text, arguments["keyword"]), arguments["relation"], arguments["frequency"]
        ),
        {"keyword": str, "relation": str, "frequency": int},
    ),
    "keywords:forbidden_words": Instruction(
        lambda text, arguments: not any(_has_word(text, word) for word in arguments["forbidden_words"]),
        {"forbidden_words": list},
    ),
    "keywords:letter_frequency": Instruction(
        lambda text, arguments: _related(
            _occurrences(text, arguments["letter"]), arguments["let_relation"], arguments["let_frequency"]
        ),
        {"letter": str, "let_relation": str, "let_frequency": int},
    ),
    "language:response_language": Instruction(
        lambda text, arguments: language_of(text) == arguments["language"], {"language": str}
    ),
    "length_constraints:number_words": Instruction(
        lambda text, arguments: _related(len(re.findall(r"\w+", text)), arguments["relation"], arguments["num_words"]),
        {"relation": str, "num_words": int},
    ),
    "length_constraints:number_sentences": Instruction(
        lambda text, arguments: _related(_sentences(text), arguments["relation"], arguments["num_sentences"]),
        {"relation": str, "num_sentences": int},
    ),
    "length_constraints:number_paragraphs": Instruction(_paragraphs, {"num_paragraphs": int}),
    "length_constraints:nth_paragraph_first_word": Instruction(
        _first_word, {"num_paragraphs": int, "nth_paragraph": int, "first_word": str}
    ),
    "detectable_content:postscript": Instruction(_postscript, {"postscript_marker": str}),
    "detectable_content:number_placeholders": Instruction(
        lambda text, arguments: len(re.findall(r"\[[^\[\]]*\]", text)) >= arguments["num_placeholders"],
        {"num_placeholders": int},
    ),
    "detectable_format:number_bullet_lists": Instruction(
        lambda text, arguments: (
            len(re.findall(r"^\s*(?:\*(?!\*)|-).*$", text, re.MULTILINE)) == arguments["num_bullets"]
        ),
        {"num_bullets": int},
    ),
    "detectable_format:constrained_response": Instruction(
        lambda text, _: any(answer in text for answer in _CONSTRAINED)
    ),
    "detectable_format:number_highlighted_sections": Instruction(_highlights, {"num_highlights": int}),
    "detectable_format:multiple_sections": Instruction(
        lambda text, arguments: (
            len(re.findall(rf"{re.escape(arguments['section_spliter'])}\s?\d+", text)) >= arguments["num_sections"]
        ),
        {"section_spliter": str, "num_sections": int},
    ),
    "detectable_format:json_format": Instruction(_json),
    "detectable_format:title": Instruction(lambda text, _: re.search(r"<<[^\n<>]*[^\s<>][^\n<>]*>>", text) is not None),
    "combination:repeat_prompt": Instruction(
        lambda text, arguments: text.strip().lower().startswith(arguments["prompt_to_repeat"].strip().lower()),
        {"prompt_to_repeat": str},
    ),
    "combination:two_responses": Instruction(_two_responses),
    "startend:end_checker": Instruction(
        lambda text, arguments: text.strip().strip('"').lower().endswith(arguments["end_phrase"].strip().lower()),
        {"end_phrase": str},
    ),
    "startend:quotation": Instruction(
        lambda text, _: len(text.strip()) > 1 and text.strip()[0] == text.strip()[-1] == '"'
    ),
    "change_case:english_capital": Instruction(lambda text, _: text.isupper() and _english(text)),
    "change_case:english_lowercase": Instruction(lambda text, _: text.islower() and _english(text)),
    "change_case:capital_word_frequency": Instruction(
        _capital_words, {"capital_relation": str, "capital_frequency": int}
    ),
    "punctuation:no_comma": Instruction(lambda text, _: "," not in text),
}


def obeys(name: str, arguments: Arguments, text: str) -> bool:
    """Return whether a text that is not empty obeys an instruction."""
    return bool(text.strip()) and INSTRUCTIONS[name].check(text, arguments)


def obeys_loosely(name: str, arguments: Arguments, text: str) -> bool:
    """Return whether a text obeys an instruction as it is, or without first line, last line, both, or asterisks."""
    lines = text.split("\n")
    cuts = (text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])))
    return any(obeys(name, arguments, variant) for cut in cuts for variant in (cut, cut.replace("*", "")))


def fault(name: object, arguments: Arguments) -> str:
    """Return why an instruction cannot be checked, empty if it can."""
    if not isinstance(name, str) or name not in INSTRUCTIONS:
        return f"the instruction {name!r:.80} is not known; known are {', '.join(INSTRUCTIONS)}"
    for argument, kind in INSTRUCTIONS[name].arguments.items():
        expected = _expected(argument, kind, arguments.get(argument))
        if expected:
            return f"{name}: {argument} is {arguments.get(argument)!r:.80}, expected {expected}"
    return ""


def _expected(argument: str, kind: type, value: Any) -> str:
    """Return what an argument should be; empty if it is."""
    if not isinstance(value, kind) or isinstance(value, bool):
        return kind.__name__
    if argument.endswith("relation") and value not in _RELATIONS:
        return f"one of {', '.join(_RELATIONS)}"
    if isinstance(value, list) and not (value and all(isinstance(word, str) and word for word in value)):
        return "words"
    if argument == "language" and value not in LANGUAGES:
        return f"one of {', '.join(sorted(LANGUAGES))}"
    return ""
