"""Constructions of answers: the words of each in many languages, from which the readers build their patterns.

A table maps a language to alternatives in the notation of `re`. Readers know constructions, such as a denial or a
bound, and no phrases: a phrase that is missing is a word of a table.
"""

from __future__ import annotations

from collections.abc import Mapping

Words = Mapping[str, str]
#: Languages without spaces between words.
_UNSPACED = ("zh", "ja", "ko")
#: A letter or digit of a script with spaces.
_LETTER = r"[^\W_\u2e80-\U0010ffff]"


def either(*tables: Words) -> str:
    """Return a pattern of all words of tables, whole words where the language has spaces."""
    whole, parts = [], []
    for table in tables:
        for language, words in table.items():
            if language in _UNSPACED:
                parts.append(words)
            else:
                whole.append(words)
    if whole:
        parts.insert(0, rf"(?<!{_LETTER})(?:{'|'.join(whole)})(?!{_LETTER})")
    return f"(?:{'|'.join(parts)})"


#: Verbs between what is asked for and the answer.
STATES = {
    "en": r"is|are|was|were|be|becomes?|equals?",
    "de": r"ist|sind|heißt|heißen|lautet|beträgt|betragen|wäre|sei|ergibt",
    "fr": r"est|sont|était|étaient|s'appelle|vaut|serait|font|fait|c'est",
    "es": r"es|son|era|eran|fue|sería|se\s+llama|equivale\s+a",
    "it": r"è|sono|era|erano|fu|si\s+chiama|sarebbe",
    "pt": r"é|são|era|eram|foi|seria|chama-se|se\s+chama",
    "nl": r"is|zijn|was|waren|heet|luidt|wordt|bedraagt",
    "pl": r"jest|są|był[aoy]?|nazywa\s+się|wynosi",
    "ru": r"это|является|равно|равен|равна|составляет",
    "zh": r"是|为|為|叫|等于",
    "ja": r"は|が",
    "ko": r"은|는|이|가",
}
#: Verbs between what is measured or counted and a number.
MEASURES = {
    "en": r"weighs?|costs?|contains?|takes?|needs?|have|has|had",
    "de": r"hat|haben|wiegt|wiegen|kostet|kosten|braucht|dauert|enthält|es\s+gibt",
    "fr": r"a|ont|il\s+y\s+a|pèsent?|coûtent?|contient|faut",
    "es": r"tienen?|hay|pesan?|cuestan?|contiene|necesitan?|tardan?",
    "it": r"ha|hanno|ci\s+sono|c'è|pesano?|costano?|contiene|servono",
    "pt": r"tem|têm|há|pesam?|custam?|contém|precisam?",
    "nl": r"heeft|hebben|weegt|wegen|kost|kosten|bevat|er\s+zijn",
    "pl": r"ma|mają|waży|ważą|kosztują?e?|zawiera",
    "zh": r"有|重|需要|共有",
    "ja": r"には",
}
#: What a sentence adds behind the answer.
ENDS = {
    "ja": r"(?:です|である|だ|になります|となります|でした)",
    "ko": r"(?:입니다|이다|예요|이에요)",
    "zh": r"(?:了|的)",
}
ARTICLES = {
    "en": r"an?|the",
    "de": r"der|die|das|dem|den|eine?|eine[mnrs]",
    "fr": r"les?|la|une?|des|du|(?:l|d)'",
    "es": r"el|la|los|las|una?|unos|unas",
    "it": r"il|lo|la|i|gli|le|un[oa]?|(?:l|un)'",
    "pt": r"o|a|os|as|uma?",
    "nl": r"de|het|een",
}
#: Words of a sentence that only carry its answer, beside articles and verbs of `STATES`.
CARRIES = {
    "en": r"it|this|that|there|here|so|therefore|thus|only|in|of|on|at|to|as|by|still|its?|also|and|has|have|been",
    "de": r"es|das|dies|da|also|daher|somit|nur|in|im|von|vom|am|an|auf|wird|werden|wurde|handelt|sich|um|noch|und|hier",
    "fr": r"il|elle|ce|cela|ça|donc|seule?|dans|de|sur|à|au|en|s'agit|d'|se|et|encore|l'",
    "es": r"ello|eso|esto|por|tanto|sólo|solo|en|de|del|se|trata|y|al|sigue|aún",
    "it": r"esso|questo|quindi|solo|in|nel|nella|di|del|della|si|tratta|e|ancora|viene",
    "pt": r"ele|ela|isso|isto|portanto|só|em|no|na|de|do|da|se|trata|e|ainda",
    "nl": r"dat|dit|dus|alleen|in|van|op|te|er|en|nog|gaat|om|word(?:t|en)",
    "pl": r"tylko|więc|zatem|w|na|z|o|się|i|nadal|została?",
    "zh": r"所以|因此|它|这|那|在|中|里|仍然|还|的",
    "ja": r"それ|これ|よって|したがって|の|に|を|で|と|まだ",
}
#: Words before what they deny.
DENIES = {
    "en": r"not|never|neither|nor|no\s+longer|cannot|nobody|(?:is|are|was|were|do|does|did|ca|could|would|wo|should|must)n'?t"
    r"|rather\s+than|instead\s+of|(?<!nothing\s)(?<!none\s)other\s+than|different\s+from|differs\s+from|unlikely\s+to\s+be"
    r"|(?:any|every)(?:thing|one|body)\s+but|all\s+but|except(?:\s+for)?|excluding|unlike|as\s+opposed\s+to|opposite\s+of"
    r"|far\s+from|hardly|avoid(?:ing)?|refuse\s+to\s+(?:choose|pick|select|say)"
    r"|(?:rul|exclud|eliminat|discard|reject|dismiss)(?:e|es|ed|s|ing)?(?:\s+out)?",
    "de": r"nicht|nie|niemals|kein\w{0,2}|weder|keineswegs|keinesfalls|niemand|statt|anstatt",
    "fr": r"ne\s+\w+\s+(?:pas|plus|jamais)|n'\w+\s+(?:pas|plus|jamais)|pas|aucune?|ni(?=\s+\S+\s+ni\b)|plutôt\s+que|au\s+lieu\s+de",
    "es": r"no\s+(?:es|son|era|fue|ha|hay|está\w*|lo|la|los|las|se|me|creo|puede|aparece|tiene|sería)|ning[uú]n\w*|tampoco|nunca|nadie|en\s+lugar\s+de",
    "it": r"non|né|nessun\w*|invece\s+di|anziché",
    "pt": r"não|nem|nenhum\w?|nunca|ninguém|em\s+vez\s+de",
    "nl": r"niet|geen|nooit|noch(?=\s+\S+\s+noch\b)|niemand|in\s+plaats\s+van",
    "pl": r"nie|ani|żad\w+|nigdy|nikt|zamiast",
    "ru": r"не|ни|никогда",
    "zh": r"(?:并)?不(?:会|可能|应该|应)?[是选為为叫在]|并非|不等于|没有|而非|不存在|绝非",
}
#: The bare negation of a verb, behind it or before it.
NOT = {"en": "not|never", "de": "nicht|nie", "fr": "pas", "es": "no", "it": "non", "pt": "não", "nl": "niet", "pl": "nie", "ru": "не", "zh": "[没沒不未无]", "ja": "ません|ない|なかった"}
#: The same that do not deny: "not only".
AFFIRMS_MORE = {
    "en": r"only|just|sure|certain",
    "de": r"nur|allein|sicher|bloß",
    "fr": r"seulement|que|sûre?|uniquement",
    "es": r"s[oó]lo|segur[oa]|únicamente",
    "it": r"solo|soltanto|sicur[oa]",
    "pt": r"só|somente|apenas|cert[oa]",
    "nl": r"alleen|slechts|zeker",
    "pl": r"tylko|jedynie|pewn\w+",
}
#: Words with which a text goes on from what it denies to what it affirms.
CONTRASTS = {
    "en": r"but",
    "de": r"sondern|aber",
    "fr": r"mais",
    "es": r"sino|pero|más\s+bien",
    "it": r"ma|bensì",
    "pt": r"mas|senão",
    "nl": r"maar",
    "pl": r"lecz|tylko|ale",
    "ru": r"а|но",
    "zh": r"而是|但",
}
#: The same behind what is denied: "X ではなく Y".
REPLACES = {
    "ja": r"(?:では|じゃ|で)なく(?:て)?[、,]?|というより",
    "ko": r"[이가]?\s?아니라",
}
#: Words that deny what is before them.
DENIED = {
    "en": r"(?:do|does|did|will|wo)(?:n'?t|\s+not)\s+(?:fit|match|work|satisfy|apply|hold|make\s+sense|answer|qualify|count)|fails|contradicts?"
    r"|can(?:not|'?t|\s+not)\s+be|could(?:n'?t|\s+not)\s+be",
    "de": r"(?:stimmt|passt|gilt|genügt)\s+nicht|trifft\s+nicht\s+zu|scheidet\s+aus|entfällt",
    "fr": r"ne\s+(?:convient|correspond|marche|va|fonctionne)\s+pas",
    "es": r"no\s+(?:sirve|encaja|corresponde|cumple|vale)",
    "it": r"non\s+(?:va\s+bene|corrisponde|funziona|vale)",
    "pt": r"não\s+(?:serve|corresponde|funciona|vale)",
    "nl": r"(?:klopt|past|voldoet)\s+niet|valt\s+af",
    "pl": r"nie\s+(?:pasuje|spełnia|odpowiada)|odpada",
    "zh": r"不对|错误|不正确|不符合|是错的|有误|被排除|可以排除|不是(?=[。，,.]|$)",
    "ja": r"(?:では|じゃ)(?:ない|ありません|なかった|ございません)|[はが](?:間違い|誤り|不正解|違い|除外)",
    "ko": r"[이가은는]?\s?(?:아닙니다|아니다|틀렸|오답)",
}
#: Questions that a text answers by no, which denies what they ask for.
ASKED_AND_DENIED = {
    "en": r"no|nope|wrong|i\s+don'?t\s+think\s+so|i\s+doubt\s+it",
    "de": r"nein|falsch",
    "fr": r"non|faux",
    "es": r"no|falso",
    "it": r"no|sbagliato",
    "pt": r"não|errado",
    "nl": r"nee|fout",
    "pl": r"nie|błąd",
    "ru": r"нет",
    "zh": r"不是?|不对|错",
    "ja": r"いいえ|いや|違います",
}
WRONG = {
    "en": r"in(?:correct|valid|accurate)|wrong|false|untrue|excluded|eliminated|impossible|unlikely|rejected|discarded|ruled\s+out|mistaken"
    r"|(?:an?|the)\s+(?:\w+\s+)?(?:mistake|misconception|error|trap|distractor)|out",
    "de": r"falsch|unrichtig|inkorrekt|ausgeschlossen|unmöglich",
    "fr": r"faux|fausse|incorrecte?|exclue?|impossible|erronée?",
    "es": r"fals[ao]|incorrect[ao]|erróne[ao]|descartad[ao]|imposible|equivocad[ao]",
    "it": r"sbagliat[ao]|fals[ao]|errat[ao]|scorrett[ao]|esclus[ao]|impossibile",
    "pt": r"errad[ao]|fals[ao]|incorret[ao]|descartad[ao]|impossível",
    "nl": r"onjuist|fout|verkeerd|incorrect|uitgesloten|onmogelijk",
    "pl": r"błędn\w+|niepoprawn\w+|nieprawidłow\w+|fałszyw\w+|wykluczon\w+",
    "ru": r"неверн\w+|неправильн\w+|ошибочн\w+|ложн\w+",
}
RIGHT = {
    "en": r"right|correct|true|valid|possible|likely|suitable|accurate|appropriate|best|answer|solution|one",
    "de": r"richtig\w*|korrekt\w*|wahr|zutreffend|möglich",
    "fr": r"correcte?|juste|vraie?|bonne|exacte?|possible|réponse",
    "es": r"correct[ao]|verdader[ao]|ciert[ao]|respuesta|adecuad[ao]|posible",
    "it": r"corrett[ao]|giust[ao]|ver[ao]|esatt[ao]|risposta|possibile",
    "pt": r"corret[ao]|cert[ao]|verdadeir[ao]|resposta|possível",
    "nl": r"juiste?|correcte?|goede?|waar|antwoord|mogelijk",
    "pl": r"poprawn\w+|prawidłow\w+|prawdziw\w+|właściw\w+|odpowiedzi\w*",
    "ru": r"верн\w+|правильн\w+",
}
#: Verbs that link a subject and what is judged of it.
LINKS = {
    "en": r"is|are|was|were|looks?|seems?|appears?|(?:would|must|can|could|may|should)\s+be|(?:has|have)\s+been",
    "de": r"ist|sind|war|scheint|wird|wurde|kann|können",
    "fr": r"est|sont|était|semble|peut|peuvent",
    "es": r"es|está|son|era|fue|parece|pueden?(?:\s+ser)?",
    "it": r"è|sono|era|fu|sembra|può(?:\s+essere)?|possono",
    "pt": r"é|está|são|era|foi|parece|pode(?:m|\s+ser)?",
    "nl": r"is|zijn|was|lijkt|wordt|kan|kunnen",
    "pl": r"jest|są|był[aoy]?|może|wydaje\s+się",
}
#: Headings of what replaces the answer before it, each before a colon.
CORRECTS = {
    "en": r"(?:self-?)?correction|corrected|revised|revision|edit(?:ed)?|updated?|amended|rather|instead",
    "de": r"korrektur|korrigiert|berichtigt|berichtigung|verbessert|nachtrag|besser|vielmehr",
    "fr": r"correction|corrigée?|rectification|révisée?|rectifiée?|plutôt",
    "es": r"corrección|corregid[ao]|rectificación|revisad[ao]|rectifico|mejor\s+dicho",
    "it": r"correzione|rettifica|rivist[ao]|mi\s+correggo|anzi",
    "pt": r"correção|corrigid[ao]|retificação|revist[ao]|aliás",
    "nl": r"correctie|verbetering|gecorrigeerd|herzien|rectificatie",
    "pl": r"korekta|poprawka|sprostowanie|poprawiono|poprawnie",
    "ru": r"исправление|поправка|исправлено",
    "zh": r"更正|修正|纠正|订正|修改",
    "ja": r"訂正|修正",
    "ko": r"정정|수정",
}
#: Words with which a statement takes back the one before it.
TAKES_BACK = {
    "en": r"no|wait|actually|edit|correction|sorry|oops|(?:up)?on\s+reflection|update|scratch\s+that|on\s+second\s+thoughts?|i\s+meant?|let\s+me\s+(?:re|correct)\w*|or\s+rather",
    "de": r"nein|moment|halt|eigentlich|korrektur|entschuldigung|ich\s+meine|besser\s+gesagt|vielmehr",
    "fr": r"non|attendez|attends|en\s+fait|pardon|correction|je\s+veux\s+dire|ou\s+plutôt",
    "es": r"no|espera|esperen|en\s+realidad|perdón|corrección|quiero\s+decir|mejor\s+dicho",
    "it": r"no|aspetta|in\s+realtà|scusa|scusate|correzione|anzi|volevo\s+dire",
    "pt": r"não|espera|espere|na\s+verdade|desculpe|correção|quero\s+dizer|ou\s+melhor|aliás",
    "nl": r"nee|wacht|eigenlijk|sorry|correctie|ik\s+bedoel|of\s+liever",
    "pl": r"nie|czekaj|chwila|właściwie|przepraszam|korekta|poprawka|mam\s+na\s+myśli|a\s+raczej",
    "ru": r"нет|стоп|погоди\w*|на\s+самом\s+деле|точнее",
    "zh": r"不对[，,]|等等|更正|其实|抱歉|我的意思是|应该是",
    "ja": r"いや[、,]|いいえ[、,]|待って|訂正|実は|すみません|正しくは",
}
#: Words that say that something is there, or is not.
EXISTS = {
    "de": r"(?:es|da|hier)\s+(?:gibt|ist|sind)",
    "fr": r"il\s+(?:n')?y\s+a",
    "es": r"(?:no\s+)?hay",
    "it": r"(?:non\s+)?(?:c'è|ci\s+sono)",
    "pt": r"(?:não\s+)?(?:há|existem?)",
    "nl": r"er\s+(?:is|zijn)",
    "pl": r"nie\s+ma|jest|są",
    "zh": r"没?有",
    "ja": r"(?:い|あり)ま(?:す|せん)",
}
#: Words for what shows what is asked for.
SHOWN = {
    "en": r"image|picture|photo(?:graph)?|text|passage|visible|present|shown|seen",
    "de": r"bild|foto|text|sichtbar|sehen",
    "fr": r"image|photo|texte|visible",
    "es": r"imagen|foto|texto|visible",
    "it": r"immagine|foto|testo|visibile",
    "pt": r"imagem|foto|texto|visível",
    "nl": r"afbeelding|foto|tekst|zichtbaar|zien",
    "pl": r"obraz\w*|zdjęci\w*|tekście|widać",
    "zh": r"图片|图|照片",
    "ja": r"画像|写真",
}
#: Words before a number that bounds.
BOUNDS = {
    "en": r"at\s+(?:least|most)|no\s+(?:more|less|fewer)\s+than|a\s+(?:minimum|maximum)\s+of"
    r"|(?:less|fewer|more|greater|smaller|larger|bigger|higher|lower|shorter|longer|older|younger|better|worse|other)\s+than(?:\s+or\s+equal\s+to)?"
    r"|(?<!\d\s)(?:over|under|above|below)|(?<!add\s)(?<!adds\s)(?<!sums\s)(?<!sum\s)(?<!round\s)(?<!rounds\s)(?<!rounded\s)(?<!comes\s)up\s+to",
    "de": r"mindestens|höchstens|wenigstens|mehr\s+als|weniger\s+als|über|unter|bis\s+zu|maximal|minimal|größer\s+als|kleiner\s+als|nicht\s+mehr\s+als",
    "fr": r"au\s+(?:moins|plus|maximum|minimum)|(?:plus|moins)\s+(?:de|que)|supérieure?\s+à|inférieure?\s+à|jusqu'à|au-dessus\s+de|en\s+dessous\s+de",
    "es": r"al\s+menos|por\s+lo\s+menos|como\s+(?:mínimo|máximo)|a\s+lo\s+sumo|(?:más|menos)\s+(?:de|que)|mayor\s+(?:de|que|a)|menor\s+(?:de|que|a)|hasta",
    "it": r"almeno|al\s+(?:massimo|minimo)|(?:più|meno)\s+(?:di|che)|oltre|maggiore\s+di|minore\s+di|fino\s+a|superiore\s+a|inferiore\s+a",
    "pt": r"pelo\s+menos|no\s+(?:máximo|mínimo)|(?:mais|menos)\s+(?:de|que|do\s+que)|maior\s+(?:que|do\s+que)|menor\s+(?:que|do\s+que)|até|acima\s+de|abaixo\s+de",
    "nl": r"minstens|hoogstens|ten\s+(?:minste|hoogste)|tenminste|(?:meer|minder|groter|kleiner)\s+dan|maximaal|minimaal|boven\s+de|onder\s+de|tot\s+wel",
    "pl": r"co\s+(?:najmniej|najwyżej)|przynajmniej|(?:więcej|mniej)\s+niż|ponad|poniżej|powyżej|maksymalnie|minimalnie|nie\s+(?:więcej|mniej)\s+niż",
    "ru": r"не\s+(?:менее|более|меньше|больше)|более|менее|больше|меньше|свыше|минимум|максимум|до",
    "zh": r"至少|最多|超过|超過|不到|不足|多于|少于|大于|小于|不少于|不超过|不低于|不高于|高于|低于",
    "ja": r"少なくとも|最低でも|多くとも|最大で|最低で",
    "ko": r"최소|최대|적어도",
}
#: Words behind a number that bounds.
BOUNDED = {
    "en": r"or\s+(?:more|less|fewer|higher|lower|above|below|greater|over|under)|at\s+(?:least|most)",
    "de": r"oder\s+(?:mehr|weniger)|mindestens|höchstens|und\s+mehr",
    "fr": r"ou\s+(?:plus|moins)|au\s+(?:moins|plus|maximum|minimum)",
    "es": r"o\s+(?:más|menos)|como\s+(?:mínimo|máximo)|al\s+menos",
    "it": r"o\s+(?:più|meno)|al\s+(?:massimo|minimo)|almeno",
    "pt": r"ou\s+(?:mais|menos)|no\s+(?:máximo|mínimo)|pelo\s+menos",
    "nl": r"of\s+(?:meer|minder)|minstens|hoogstens",
    "pl": r"lub\s+(?:więcej|mniej)|co\s+najmniej",
    "zh": r"以上|以下|以内|未满|不到|或更[多少]|多(?=[个本支人岁元米公])",
    "ja": r"以上|以下|未満|以内|超|を超え|より(?:多|少|大き|小さ)",
    "ko": r"이상|이하|미만|초과",
}
#: Words behind a number that stands for hundredths, and before it.
PERCENT = {
    "en": r"percent|per\s?cent|pct\.?",
    "de": r"prozent",
    "fr": r"pour\s?cent",
    "es": r"por\s?ciento",
    "it": r"per\s?cento",
    "pt": r"por\s?cento",
    "nl": r"procent",
    "pl": r"procent\w*",
    "ru": r"процент\w*",
    "ja": r"パーセント",
    "ko": r"퍼센트|프로",
}
#: Words between a part and the whole: "3 out of 4".
OUT_OF = {
    "en": r"out\s+of(?:\s+(?:a\s+total\s+of|every))?|in\s+every",
    "de": r"von(?:\s+(?:den|insgesamt))?",
    "fr": r"sur",
    "es": r"de\s+cada|de\s+un\s+total\s+de",
    "it": r"su",
    "pt": r"em\s+cada|de\s+cada|de\s+um\s+total\s+de",
    "nl": r"van\s+de|op\s+de",
    "pl": r"na|z",
}
#: Words before a number that leave it a number.
ABOUT = {
    "en": r"about|approximately|approx|roughly|around|exactly|only|just|nearly|almost|some|circa|a\s+total\s+of|equal\s+to",
    "de": r"etwa|ungefähr|circa|ca|rund|genau|nur|fast|insgesamt|knapp",
    "fr": r"environ|exactement|seulement|presque|à\s+peu\s+près|au\s+total",
    "es": r"aproximadamente|unos|unas|exactamente|solo|sólo|casi|alrededor\s+de|en\s+total|un\s+total\s+de",
    "it": r"circa|esattamente|solo|quasi|in\s+totale|un\s+totale\s+di",
    "pt": r"aproximadamente|cerca\s+de|exatamente|só|apenas|quase|um\s+total\s+de",
    "nl": r"ongeveer|circa|precies|slechts|bijna|in\s+totaal",
    "pl": r"około|dokładnie|tylko|prawie|łącznie|w\s+sumie",
    "zh": r"大约|约|共|一共|总共|正好|只",
    "ja": r"約|およそ|ちょうど|全部で|合計",
}
#: Questions whose answer is a place, a time or a way, and not what their subject is.
ASKS_CIRCUMSTANCE = {
    "en": r"where|when|how|why",
    "de": r"wo|wann|wie|warum",
    "fr": r"où|quand|comment|pourquoi",
    "es": r"dónde|cuándo|cómo",
    "it": r"dove|quando|perché",
    "pt": r"onde|quando|como",
    "nl": r"waar|wanneer|hoe",
    "pl": r"gdzie|kiedy|jak",
    "zh": r"哪里|何时|怎么",
    "ja": r"どこ|いつ|どう",
}
#: Words that ask for one of several.
ASKS_WHICH = {
    "en": r"which|what",
    "de": r"welche[rsmn]?|was",
    "fr": r"quel(?:le)?s?|lequel|laquelle|qu'est-ce\s+qui",
    "es": r"cuál|qué",
    "it": r"quale|cosa|che",
    "pt": r"qual|que",
    "nl": r"welke?|wat",
    "pl": r"któr[yae]|co",
}
#: Words before what only accompanies the answer: "after adding 7 gallons".
ACCOMPANIES = {
    "en": r"after|before|by|in|for|from|with|at|when|if|within|per|during|on|step",
    "de": r"nach|vor|bei|mit|in|für|von|aus|pro|wenn|innerhalb|schritt",
    "fr": r"après|avant|avec|en|pour|dans|par|si|pendant|étape",
    "es": r"después\s+de|antes\s+de|tras|con|en|para|por|si|durante|paso",
    "it": r"dopo|prima|con|in|per|se|durante|passo",
    "pt": r"depois\s+de|antes\s+de|após|com|em|para|por|se|durante|passo",
    "nl": r"na|voor|met|in|per|bij|als|tijdens|stap",
    "pl": r"po|przed|z|w|za|przy|jeśli|podczas|krok",
}
#: Words of statements that say what may be, or what others say.
HEDGES = {
    "en": r"if|whether|might|may|could|would|perhaps|maybe|possibly|suppos\w+|assum\w+|unless|unclear|doubt|many|people|asked|question|depends|should|thought|either|or",
    "de": r"ob|wenn|falls|vielleicht|könnte|würde|möglicherweise|frage|angenommen|oder",
    "fr": r"si|peut-être|pourrait|serait|question|suppos\w+|ou",
    "es": r"si|quizás?|tal\s+vez|podría|sería|pregunta|suponiendo|o",
    "it": r"se|forse|potrebbe|sarebbe|domanda|supponendo|oppure|o",
    "pt": r"se|talvez|poderia|seria|pergunta|supondo|ou",
    "nl": r"of|als|misschien|zou|vraag|stel",
    "pl": r"czy|jeśli|może|mógłby|pytanie|gdyby|lub|albo",
    "zh": r"如果|是否|也许|可能|假如|或",
    "ja": r"もし|かもしれ|かどうか|または|たぶん",
}
#: Words before the reason of an answer.
BECAUSE = {
    "en": r"because|since|as|for|given\s+that|due\s+to",
    "de": r"weil|da(?!\s+(?:ist|sind|gibt))|denn",
    "fr": r"parce\s+qu\w*|car|puisqu\w*",
    "es": r"porque|ya\s+que|pues|puesto\s+que",
    "it": r"perché|poiché|siccome|dato\s+che",
    "pt": r"porque|pois|já\s+que|visto\s+que",
    "nl": r"omdat|want|aangezien",
    "pl": r"ponieważ|bo|gdyż",
    "zh": r"因为|由于",
    "ja": r"なぜなら|というのも",
}
#: What was, and may not be now. It does not give the answer unless the question asks for it.
FORMER = {
    "en": r"used\s+to\s+be|formerly|previously|was\s+once|once\s+(?:was|called)|no\s+longer|until",
    "de": r"früher|ehemals|einst|vormals|bis\s+\d{4}",
    "fr": r"autrefois|jadis|anciennement|auparavant|jusqu'en",
    "es": r"antes|antiguamente|solía|anteriormente|hasta\s+\d{4}",
    "it": r"un\s+tempo|in\s+passato|una\s+volta|precedentemente|fino\s+al\s+\d{4}|prima\s+era",
    "pt": r"antigamente|outrora|costumava|anteriormente|até\s+\d{4}|antes\s+era",
    "nl": r"vroeger|voorheen|ooit|tot\s+\d{4}",
    "pl": r"dawniej|kiedyś|niegdyś|wcześniej|do\s+\d{4}|poprzednio",
    "zh": r"曾经|以前|过去|曾是|原来是|曾为",
    "ja": r"かつて|以前は|昔は|元々は",
}
#: Words by which another thing is described: it is near what follows, or its kin.
RELATES = {
    "en": r"near(?:by)?|close\s+to|next\s+to|outside(?:\s+of)?|(?:north|south|east|west)(?:-?(?:east|west))?\s+of|(?:km|kilomet(?:er|re)s|miles)\s+from|far\s+from|beside|similar\s+to|unlike|bordering"
    r"|(?:brother|sister|father|mother|wife|husband|widow|son|daughter|cousin|uncle|aunt|nephew|niece|friend|rival|student|pupil|teacher|assistant|colleague|successor|predecessor|neighbou?r)\s+(?:of|to)"
    r"|(?:inspired|influenced|taught|illustrated|succeeded|preceded|followed|translated)\s+by|(?:falsely|wrongly|mistakenly|incorrectly)\s+(?:attributed|ascribed|credited)\s+to|confused\s+with",
    "de": r"nahe|neben|in\s+der\s+nähe\s+von|(?:nördlich|südlich|östlich|westlich)\s+von|(?:bruder|schwester|vater|mutter|frau|mann|sohn|tochter|freund(?:in)?|schüler(?:in)?|lehrer(?:in)?)\s+von",
    "fr": r"près\s+de|à\s+côté\s+de|au\s+(?:nord|sud)\s+de|à\s+l'(?:est|ouest)\s+de|(?:frère|sœur|père|mère|femme|mari|fils|fille|amie?|élève)\s+de",
    "es": r"cerca\s+de|junto\s+a|al\s+(?:norte|sur|este|oeste)\s+de|(?:hermano|hermana|padre|madre|esposa|esposo|hijo|hija|amig[oa]|alumn[oa])\s+de",
    "it": r"vicino\s+a|accanto\s+a|a\s+(?:nord|sud|est|ovest)\s+di|(?:fratello|sorella|padre|madre|moglie|marito|figlio|figlia|amic[oa]|allievo)\s+di",
    "pt": r"perto\s+de|junto\s+a|ao\s+(?:norte|sul)\s+de|a\s+(?:leste|oeste)\s+de|(?:irmão|irmã|pai|mãe|esposa|marido|filho|filha|amig[oa]|alun[oa])\s+de",
    "nl": r"nabij|dicht\s+bij|naast|ten\s+(?:noorden|zuiden|oosten|westen)\s+van|(?:broer|zus|vader|moeder|vrouw|man|zoon|dochter|vriend(?:in)?|leerling)\s+van",
    "pl": r"koło|niedaleko|w\s+pobliżu|obok|na\s+(?:północ|południe|wschód|zachód)\s+od",
}
#: Words behind what another thing is described by.
RELATED = {
    "en": r"'s\s+(?:\w+\s+)?(?:brother|sister|father|mother|wife|husband|son|daughter|cousin|friend|rival|student|pupil|teacher|assistant|neighbou?r|successor|predecessor)",
    "zh": r"附近|旁边|的(?:哥哥|弟弟|姐姐|妹妹|父亲|母亲|妻子|丈夫|儿子|女儿|朋友|学生)",
    "ja": r"の(?:近く|隣|そば|兄|弟|姉|妹|父|母|妻|夫|息子|娘|友人|弟子)",
}
#: Words that make another name of the name behind or before them.
NAMES_ANOTHER = {
    "en": r"new|old|north|south|east|west|upper|lower|port|fort|little|mount|lake|cape|saint|st\.?|san|santa",
    "de": r"neu|alt|ober|unter|bad|groß|klein|sankt",
    "fr": r"nouvelle|nouveau|vieux|vieille|haute?|basse?|saint-?|mont|port",
    "es": r"nuev[ao]|viej[ao]|puerto|villa|monte",
    "it": r"nuov[ao]|vecchi[ao]|porto|monte",
    "pt": r"nov[ao]|velh[ao]",
    "nl": r"nieuw|oud|groot|klein",
    "pl": r"now[aye]|star[aye]|wielk[aiye]|mał[aye]",
}
#: Words of languages that write 1.250 for 1250, and are no English words.
DECIMAL_COMMA = {
    "de": r"der|das|und|ist|sind|insgesamt|wie\s+viele?|lautet|beträgt",
    "es": r"el|los|las|son|cuántos?|cuántas?|hay|respuesta",
    "it": r"il|gli|sono|quant[iaeo]|totale|risposta|di",
    "pt": r"os|são|quant[oa]s|há|resposta|uma",
    "nl": r"het|zijn|hoeveel|een|antwoord",
}
#: Numbers in words: 0 to 20, then 30, 40 and so on to 90, 100 and 1000; a dash leaves one out.
COUNTS = {
    "de": "null ein|eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn"
    " neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend",
    "fr": "zéro un|une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf"
    " vingt|vingts trente quarante cinquante soixante septante quatre-vingts?|huitante nonante cents? mille",
    "es": "cero un[oa]? dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete dieciocho"
    " diecinueve veinte|veinti treinta cuarenta cincuenta sesenta setenta ochenta noventa cien|ciento mil",
    "it": "zero un[oa]? due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici diciassette diciotto"
    " diciannove venti? trenta quaranta cinquanta sessanta settanta ottanta novanta cento mille|mila",
    "pt": "zero um|uma dois|duas três quatro cinco seis sete oito nove dez onze doze treze quatorze|catorze quinze dezesseis dezessete dezoito"
    " dezenove vinte trinta quarenta cinquenta sessenta setenta oitenta noventa cem|cento mil",
    "nl": "nul een|één twee|tweeën drie|drieën vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien achttien"
    " negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig honderd duizend",
    "pl": "zero jeden dwa|dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście trzynaście czternaście piętnaście"
    " szesnaście siedemnaście osiemnaście dziewiętnaście dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt"
    " osiemdziesiąt dziewięćdziesiąt sto tysiące?|tysięcy",
    "zh": "零|〇 一 二|两 三 四 五 六 七 八 九 十 - - - - - - - - - - - - - - - - - 百 千",
}
#: Such words that are articles, or words of English; they count within longer numbers alone.
NO_COUNTS = r"null|ein|une?|un[oa]|uma?|een|once|due|sei|elf|cents?|mille|mil|zero|dix"
#: Words between those of one number.
COUNTS_JOINED = r"(?:\s?(?:und|et|y|e|en|i)\s?|[\s-]|)"
