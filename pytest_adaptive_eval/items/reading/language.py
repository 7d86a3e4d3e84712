"""The language of a text, by its script and its commonest words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

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
    """Return the ISO 639-1 code of the language of a text, empty where its words do not tell.

    The script that most letters have counts, and among the languages of one script the one with most of the common
    words that no other has.
    """
    letters = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha())
    if not letters:
        return ""
    script = max(letters, key=letters.__getitem__)
    if script == "CJK":
        return "ja" if letters["HIRAGANA"] + letters["KATAKANA"] > 0.1 * letters["CJK"] else "zh"
    if script in _ONE_LANGUAGE:
        return _ONE_LANGUAGE[script]
    language_of_word = _OWN_WORDS.get(script, {})
    words = re.findall(r"[^\W\d_]+(?:\w|[\u0900-\u097f\u0600-\u06ff])*", text.lower())
    counts = Counter(language_of_word[word] for word in words if word in language_of_word)
    return counts.most_common(1)[0][0] if counts else ""
