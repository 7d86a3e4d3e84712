"""Constructions of answers: the words of each in many languages, from which the readers build their patterns.

Readers know constructions, such as a denial or a bound, and no phrases: a phrase that is missing is a word of a table.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping

from pytest_adaptive_eval.lazy_pattern import lazy_pattern

Words = Mapping[str, str]
#: Languages without spaces between words, and none.
_UNSPACED = ("zh", "ja", "ko", "")
#: A letter or digit of a script with spaces.  A range up to the last character would take `re` 10 ms to compile.
_LETTER = "[0-9A-Za-zÀ-ӿ]"
#: Tables by name: a line for each language, with alternatives in the notation of `re` and names of other tables in
#: ⟨⟩. Indented lines go on with the last.
_TABLES = r"""
# Parts of patterns, of no language: the character of an option, marks around it, and words between several answers.
[symbol]
: [\U00020000-\U000207ff]
[marks]
: [\s"'`$*_()\[\]{}<>:.,=~\\/-]
[open]
: [ "'`$*_(\[{<\\]
[close]
: [ "'`$*_)\]}>\\]
[joined]
: ⟨or and⟩(?:\s+(?:maybe|perhaps)\b)?|يا|أو
[joined_formulas]
: ⟨joined or_here⟩
[quality]
: (?:likely|plausible|suitable|appropriate|accurate|convincing|probable|correct)
[judged]
: ⟨close⟩{0,6}(?:[:=\u2013—-]\s*|\()\s*(?:correct|right|yes|true|✓|✔|✅|o\b)|
    [^\n\U00020000-\U000207ff.!?]{0,60}?(?:⟨links⟩|\b(?:remains|este)\b)(?:\s+(?:⟨surely articles⟩|(?:the|one|
    that\s+is|much|to\s+be)\b)){0,5}\s+(?:⟨right⟩|⟨bad⟩\b|most\s+\w+)(?!\s+(?:than|for\s+the\s+first|at\s+first))|
    [^\n\U00020000-\U000207ff.!?]{0,20}?⟨fits⟩(?!\s+(?:at\s+first|not|nicht|niet))|\s*(?:项|选项)?(?:是)?(?:正确|对|最佳)的?|
    \s*✓|\s*✅
[bad]
: (?:incorrect|wrong|false|untrue|invalid|inaccurate|exception|mistaken)
[cue]
: (?P<firm>⟨chooses⟩)|⟨concludes⟩,?(?:\s+the\s+\w+(?:\s+\w+){0,6}\s+(?:is|are))?|\b(?:it|that|this)(?:'s|\s+is|
    \s+(?:must|should|has\s+to|can\s+only)\s+be)(?!\s+(?:like|as))|\bmy\s+(?:\w+\s+)?(?:guess|choice|pick|
    vote)\s*(?:is|:)?|⟨remains⟩(?:\s+(?:que|nur|noch|solo|only))?|⟨right⟩(?:\s+⟨links⟩)?|\b(?:leaving|
    leaves)(?:\s+us)?(?:\s+with)?|\b(?:edit|correction)\b|(?:而|答案)是|⟨states⟩|⟨contrasts only⟩
# What may stand between words that announce an answer and it.
[then]
: (?:(?!\n)⟨marks⟩|\b⟨sure⟩){0,12}
[sure]
: (?:⟨surely articles option⟩|(?:a|é|là|to\s+be|it\s+is|it's)\b)
[joint]
: ⟨close⟩{0,6}(?:,? *(?P<or>⟨or⟩|\bof\b)|,? *⟨and⟩|(?P<bar>[|/;-])|[,&+、]|(?<= ))(?: *\b(?:(?P<also>or)|and|maybe|
    perhaps|possibly|even|else|either)\b){0,2}⟨open⟩{0,6}
[subject]
: (?:it|that|this|there|he|she|they|the\s+(?:statement|claim|sentence|answer|assertion))
[auxiliary]
: (?:is|was|are|were|does|do|did|can|could|would|will|has|have)
[not_right]
: ⟨not⟩⟨adverbs⟩⟨right possible⟩
[adverbs]
: (?:\s+(?:\w+ly|also|just|all|both|an?|the|la|le|el|il|de|die|das|het))*\s+
# Words before what they deny.
[denying]
: (?:\b⟨disbelieved⟩|⟨denies⟩)(?!\s+⟨only certain⟩)(?!-)\s*
# "I do not think that the answer is": words that take their verb with what they deny.
[disbelieved]
: (?:(?:(?:do|does|did|would|ca)n'?t|not|nobody|no\s+one)⟨think⟩|⟨doubt⟩)\s+(?:that\s+)?(?:it(?:'s|\s+is|\s+was)|
    this\s+is|(?:the\s+)?(?:\w+\s+)?(?:answer|choice|option|result)\s+(?:is|(?:w|c|sh)ould\s+be|can\s+be))
[think]
: \s+(?:\w+ly\s+)?(?:think|believe|suppose|expect|feel)s?\b
# Patterns of words that say, behind "not" and by themselves, that the text does not think so.
[doubt]
: i\s+(?:\w+ly\s+)?doubt\b
# Within a clause.
[gap]
: [^,;.、，。\n\U00020000-\U000207ff]{0,40}
[an]
: (?:⟨articles⟩\s+)?
[also]
: (?:⟨and⟩\s+(?!(?:not|so|it|that|this|is|was|has)\b))
[end_of_list]
: \s*(?:\.?\s*$|[,:])
[a_part]
: (?!⟨symbol⟩)[^\W_][^\s,;/|.:!?]*(?:\s(?!⟨symbol⟩)[^\s,;/|.:!?]+){0,2}
[short_part]
: (?!⟨symbol⟩)[^\W_][^\s,;/|.:!?]*(?:\s(?!⟨symbol⟩)[^\s,;/|.:!?]+)?
[english_answer]
: (?:\b(?:answers?|ans)\b(?!\s+(?:choices|options|as|(?:that|the|this|your)\s+(?:question|instruction|query|
    prompt))\b)|\b(?:correct|right|best|closest|nearest|appropriate|suitable|final|accurate|likely|
    logical)\s+(?:option|choice|response|result|solution|statement|value|output|letter|one|conclusion|
    match)\b)(?:[^\n.!?:=|]{0,80}?⟨copula⟩|[^\n.!?:=|;,]{0,40}?[:=|])|^[^\w\n]*(?:option|choice|result|output|
    conclusion|solution|verdict|fazit|urteil|verdetto|veredicto|вывод|结论|結論)[*_\s]*[:=]
[copula]
: \b(?:is|are|was|(?:would|will|should|must|could|has to) be|becomes|equals)\b
[digits]
: [$\s]*-?\{?\d[\d.,/]*(?<![.,])\}?
[atom]
: \\[A-Za-z]+|\\[,;:!{}|]|\d+(?:[.,]\d+)*(?:[A-Za-z]{1,2}(?!⟨any_letter⟩))?|(?<!⟨any_letter⟩)(?<!')(?:[A-Za-zα-ω]|
    ⟨functions⟩)(?!⟨any_letter⟩|'\w)|[πθ∞√∛ℝℤ∅½⅓⅔¼¾⅙⅛°%∈∪∩±⁰¹²³⁴-⁹⁻ⁿ₀-₉]
[any_letter]
: [A-Za-zÀ-ӿ]
# The name of what an expression gives, and the sign behind it.
[named]
: (?:(?:\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)|[a-zA-Z](?:_\{?\w\}?|[₀-₉])?(?:\([a-z]\))?|\\theta)\s*(?:=|\\in(?![a-z])|∈))
[argument]
: (?:\{\s*(-?\s*[\d.,]+)\s*\}|(\d))
[functions]
: sin|cos|tan|cot|sec|csc|arc(?:sin|cos|tan)|[sct](?:in|os|an)h|log|ln|exp|lim|max|min|mod|gcd|lcm|det|pi|sqrt|sgn
# Units that are written behind a number without a space; other letters there are symbols.
[units]
: (?-i:[kmcdµμn]?[mgslWVAJNF]s?|mms?|kms?|cms?|ft|in|yd|mi|lbs?|oz|h|hrs?|min|sec|d|t|[kMG]?Hz|[kM]?Pa|k?cal|kWh|mol|
    °?[CFK]|[kKMGT]i?B|mph|kph|pm|am|st|nd|rd|th|USD|EUR|GBP|[yY]rs?|wks?|mos?|pts?|ct|kr|zł|Kč|Fr|ha|bn|px|ppm|dB|
    deg|rad|[kKM])
[named_operator]
: (?:plus|minus|times|over|divided\s+by|multiplied\s+by|mod(?:ulo)?|choose|of|in|by|less|remainder)
# Begin of what an operator before it joins to a number.
[operand]
: \s?(?:[\d(\\{$√]|[.-]\s?\d|[A-Za-z](?![^\W_]))
[closed]
: \s?[)\]}]*\s?
[opened]
: \s?[({\[]*\s?
[short_functions]
: pi|ln|log\d*|sqrt|exp|abs|sin|cos|tan
[lone_letter]
: (?<![^\W\d_])[A-Za-z]
[function]
: \\(?!⟨layout⟩)[A-Za-z]+
# Commands of LaTeX that are not part of an expression.
[layout]
: (?:q?quad|approx|to|[Rr]ightarrow|[Ll]ong\w*|implies|therefore|because|iff|cong|equiv|sim|boxed|fbox|left|right|
    displaystyle|l?dots|square|blacksquare|checkmark|degree|circ|end|begin|math\w*|text\w*|boldsymbol|bf|rm|mbox|
    [bB]igg?|newline|hspace|lt|gt|[lg]eq?(?:slant)?|neq?|euro|pounds)(?![A-Za-z])
[begins]
: (?:\A|[\n=(:≈{|$]|\\approx|\b(?:is|are|was|were|be|equals|ist|est|es)\b|[是为為])
[currency]
: (?:(?:US|AU|CA|NZ|HK|A|C|R|S)\$|[$£¥¢฿\u20a0-\u20cf]|(?:USD|EUR|GBP|CNY|RMB|INR|CHF|JPY|SEK|NOK|DKK|AUD|CAD|NZD|HKD|
    SGD|KRW|BRL|MXN|ZAR|RUB|TRY|PLN|CZK|HUF|ILS|THB|IDR|MYR|PHP|VND|AED|SAR|NGN|EGP)|Rs\.?|Fr\.|kr\.?|zł|Kč)
[names]
: ⟨name⟩(?:\s(?:[a-z]{1,3}\s)?⟨name⟩){0,3}
[word]
: [^\W\d_]+
[cjk]
: [\u3400-\u9fff\u30a0-\u30ff]{2,10}?
[name]
: (?<![\w'’-])⟨capital⟩(?:[\w'’-]*\w|\.)
[capital]
: [^\W\d_a-zß-öø-ÿа-яąćęłńśźżœ]
[touches_before]
: (?:[\d)\]}%!]|⟨lone_letter⟩|\\[A-Za-z]+|\|(?=\S)|\b(?:⟨short_functions⟩))\s?(?:\*\*|[-\u2013+*/×·÷^_])|
    ⟨operator⟩|
    [\^_]|
    [-\u2013](?=⟨opened⟩[-\u2013])|
    ⟨function⟩(?:\s*\[\d*\])?|
    (?:⟨function⟩|⟨lone_letter⟩|\b(?:⟨short_functions⟩))\s?[({]|
    \}\s?(?=\{)|
    [\^_]\{?\w+\}?(?:\s|(?=[({\[]))|
    \d\s?x\s|\d:(?!\s)|\d\s:\s|\+/|\d\.(?=\()|分之|[)\]](?=\Z|[({])|(?:\\infty|∞)\s?,|
    \d[!%]?\s(?:⟨named_operator⟩|to\s+the(?:\s+power(?:\s+of)?)?)\s|
    \d[\d.]*[\s-]?(?:⟨english_parts⟩|%|percent)\s+of\s|
    \b(?:half|twice|double|triple|thrice|log|ln|sqrt|factorial|at\s+least|at\s+most)\s|
    \b(?:half|square|cube|root|reciprocal|inverse|negative|opposite|double|triple|quarter|third|logarithm|
    power)\s+(?:root\s+)?of\s
[touches_after]
: [.,'’_]+\d|[\d_]|
    ⟨closed⟩(?:\*\*|[-\u2013+*×·÷^±∓])⟨operand⟩|
    ⟨closed⟩/(?!\s?[^\W\d_]{2}|\s?[hsdm]\b)\s?[\w(\\{$√.-]|
    [)\]}]*[\^_]|
    :\d|\s:\s\d|\u2014\d|\s?(?:\u2026|\.{2,3})\s?\d|\s?\+/-|分之|\s?,\s?[-+]?\s?(?:\\infty|∞)|\sper\s(?:mille|thousand)\b|
    !\s?[-+*/^$}\\]|
    ⟨closed⟩(?:⟨operator⟩|⟨function⟩)|
    [)\]}]*(?!⟨units⟩(?!\s?[+*^]|[A-Za-z]))[A-Za-z]{1,3}(?![A-Za-z])|
    \s(?:[xyzquvw]|pi|(?-i:i))(?![\w'])|\s[nr](?![\w'.])|
    \((?:[\d-]|[A-Za-z](?![A-Za-z]))|
    \s(?:squared|cubed|factorial|to\s+the\s+(?:power|\w+(?:th|st|nd|rd)\b)|point\s\w|tens\b|pairs\b)|
    \s⟨named_operator⟩\s[$({]*-?\d|
    \sand\s+(?:an?\s+)?(?:half|third|quarter)s?\b
[operator]
: [±∓√∛∜∑∏∫∂∇∆∪∩∈∉⊂⊃⊕⊗∘∙⋅∗π∞⌊⌋⌈⌉‰]
[english_parts]
: hal(?:f|ves)|thirds?|(?:quarter|fourth)s?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?
# First a part of the question, "(a)", that a long answer repeats, and "A:" for the answer. Then letters of choices:
# with a word or in brackets in either case, by themselves as capitals.
[label]
: \A\s*\((?-i:[a-z])\)\s(?=[\s\S]{200})|\AA:\s(?=\W*[A-Z]\W*\Z|\s*[(\[]?[A-Z][)\].:])|
    (?:\b⟨option_word⟩[\s_:#]{0,4})?(?<!⟨latin⟩)[(\[]\s{0,2}([A-Za-z])\s{0,2}[)\]]|
    (?:\b⟨option_word⟩[\s_:#]{0,4}[*\"']{0,3})((?-i:[A-Z]))(?!⟨latin⟩)(?!'\w)|
    (?<![A-Za-z0-9À-ӿ\\])(?<!⟨latin⟩')(?<![A-Z]\.)(?!⟨a_word⟩)((?-i:[A-ZАВСЕ]))(?!⟨latin⟩)(?!'\w|\.[A-Z])\)?
# "A" and "I" where they are words.
[a_word]
: (?-i:I[^\S\n]+|[AАВС][^\S\n]+(?!(?i:⟨after_letter⟩)))(?=[A-Za-zÀ-ӿ])
# Words before which "A" is a letter.
[after_letter]
: (?:(?:with|rather|instead|over|would|can|could|cannot|must|should|does|will|follows|states|says|describes|answers|
    beats|means|shows|explains|\w{3,}ly|can't|isn't|fails|i\.e)\b|⟨states measures links fits because or and -fr⟩|
    (?:est|c'est|convient|correspond|ou|et)\\b)
[latin]
: [A-Za-z0-9À-ӿ]
[option_word]
: (?:(?:the\s+)?(?:options?|choices?|letters?|alternative|image|picture|candidate|statement|point|box|panel|region|
    output|opción|opção|вариант|буква|pilihan|opsi)(?![^\W_])|选项|選択肢|选择|項目|보기|विकल्प|الخيار|বিকল্প)
[label_word]
: \s*(?:\b⟨joined⟩\b|⟨states links fits because⟩)
[label_end]
: \s*(?:[)\].:,;!?*\"'`\u2013—-]|\Z|\n|[^\x00-ӿ])
# What does not follow a label, as "d. h." and "c'est"; what does, and words that do so behind a digit or a noun.
[unfollowed]
: (?!\.\s?\w\.|'\w|[.,]\d|\s?[-+*/=]\s?\d)
[answer_keys]
: (?:the[_ ]?)?(?:final[_ ]?|correct[_ ]?|right[_ ]?|predicted[_ ]?)?(?:answer|ans|choice|option|label|prediction|
    result|response|solution|output)(?:[_ ]?(?:choice|letter|index))?|答案
[answer_tags]
: answer|final_answer|final-answer|finalanswer|final|ans|result|output|response|choice|option|label|solution
# Words for the answer in other languages, with what may stand between them and it.
[answer_elsewhere]
: (?:最终|最後の|最后的?|正确|正確な|参考|标准|故|因此)*(?:答案|答え|解答|正解|回答|结果)(?:应该|
    应|选项|选择|就|可能)*\s*(?:应选|应为|[是为為選选应が]|
    は|[】\]*]*\s*[:=|]|
    】)\s*[:]?|
    (?:故|应|因此|所以|综上)(?:本题)?(?:答案)?选(?:择|项|为)*\s*[:]?|正确(?:的)?(?:选项|答案|选择)?(?:是|为|:)+|选项(?:是|为|:)+|選ぶのは|
    (?:정답|답변|답|결과)\s*(?:은|는|이|:|=|\|)+|
    \b(?:respuesta|resposta|risposta|solución|resultado|opción correcta|opção correta|
    alternativa correta)\b(?:[^\n.!?:=|]{0,50}?(?:\bes\b|\bsería\b|\bé\b|\bè\b|\bseria\b)|[^\n.!?:=|]{0,30}?[:=|])\s*:?|
    \b(?:réponse|solution correcte|résultat|option correcte)\b(?:[^\n.!?:=|]{0,50}?\best\b|[^\n.!?:=|]{0,30}?[:=|
    ])\s*:?|
    \b(?:antwort|lösung|ergebnis|antwoord)\b(?:[^\n.!?:=|]{0,50}?\b(?:ist|lautet|wäre|is)\b|[^\n.!?:=|]{0,30}?[:=|
    ])\s*:?|
    \b(?:ответ|решение|правильный вариант|odpowiedź|відповідь)\b(?:[^\n.!?:=|]{0,40}?(?:[\u2014\u2013]|\s-\s|\bэто\b|
    \bбудет\b|\bto\b)|[^\n.!?:=|]{0,30}?[:=|])\s*:?|
    (?:الإجابة|الاجابة|الجواب|إجابة|النتيجة|جواب|پاسخ)(?:[^\n.!?:=|؟]{0,40}?(?:\bهي\b|\bهو\b|ہے)|[^\n.!?:=|
    ]{0,30}?[:=|])\s*:?|
    (?:उत्तर|जवाब|परिणाम|উত্তর|উত্তরটি)(?:[^\n.!?:=|।]{0,30}?(?:है|হল|হলো|হচ্ছে)|[^\n.!?:=|।]{0,30}?[:=|])\s*:?|
    \b(?:jawaban|jawapan|jawabannya|cevap|yanıt|đáp án|câu trả lời|svar|svaret|răspuns|jibu)\b(?:[^\n.!?:=|
    ]{0,40}?\b(?:adalah|ialah|là|är|er|este|ni)\b|[^\n.!?:=|]{0,30}?[:=|])\s*:?
# Verbs between what is asked for and the answer.
[states]
en: is|are|was|were|be|becomes?|equals?
de: ist|sind|heißt|heißen|lautet|beträgt|betragen|wäre|sei|ergibt|
    steht\s+(?:bei|unter|in)|liegt\s+bei
fr: est|sont|était|étaient|s'appelle|vaut|serait|font|fait|c'est|
    se\s+trouve\s+(?:en|à|dans)
es: es|son|era|eran|fue|sería|se\s+llama|equivale\s+a|
    está\s+en(?:\s+la)?
it: è|sono|era|erano|fu|si\s+chiama|sarebbe|
    sta\s+(?:in|alla)|si\s+trova\s+(?:in|alla)
pt: é|são|era|eram|foi|seria|chama-se|se\s+chama|
    está\s+na
nl: is|zijn|was|waren|heet|luidt|wordt|bedraagt|
    staat\s+(?:bij|onder|in|op)
pl: jest|są|był[aoy]?|nazywa\s+się|wynosi|
    kryje\s+się\s+pod|znajduje\s+się\s+pod
ru: это|является|равно|равен|равна|составляет
zh: 是|为|為|叫|等于
ja: は|が
ko: 은|는|이|가
# Verbs between what is measured or counted and a number.
[measures]
en: weighs?|costs?|contains?|takes?|needs?|have|has|had
de: hat|haben|wiegt|wiegen|kostet|kosten|braucht|dauert|enthält|es\s+gibt
fr: a|ont|il\s+y\s+a|pèsent?|coûtent?|contient|faut
es: tienen?|hay|pesan?|cuestan?|contiene|necesitan?|tardan?
it: ha|hanno|ci\s+sono|c'è|pesano?|costano?|contiene|servono
pt: tem|têm|há|pesam?|custam?|contém|precisam?
nl: heeft|hebben|weegt|wegen|kost|kosten|bevat|er\s+zijn
pl: ma|mają|waży|ważą|kosztują?e?|zawiera
ru: весит|весят|стоит|стоят|содержит|имеет|длится|нужно|потребуется|было|будет
zh: 有|重|需要|共有
ja: には
# Verbs between a computation and its result.
[yields]
en: yields?|gives?|makes?|comes?\s+to|gets?|adds\s+up\s+to|results\s+in|totals?
de: ergibt|ergeben|macht|machen|erhält\s+man|erhalten\s+wir|bekommt\s+man|kommt\s+man\s+auf|landet\s+man\s+bei
fr: donnent?|obtient|obtenons|trouve|trouvons|arrive\s+à
es: dan?|obten\w+|obtien\w+|resultan?|salen?|suman?|queda\s+en
it: dà|danno|fanno|otten\w+|ottien\w+|risulta\w*|viene|vengono
pt: dá|dão|obtém(?:-se)?|obt[eé]mos|resulta\w*|ficam?|somam?
nl: geeft|geven|levert|maakt|maken|krijg\w*|komt\s+(?:uit\s+)?op|betaal\w*
pl: daje|dają|otrzymujemy|otrzymamy|wychodzi|uzyskujemy
ru: получа\w+|получи\w+|да[её]т|выходит|составит|получим
zh: 得到?|变成|就是
ja: になり|となり
# Verbs before what is left.
[remains]
en: leaves|remains
de: bleib(?:t|en)(?:\s+übrig)?
fr: il\s+(?:en\s+|lui\s+)?reste|reste
es: quedan?
it: restano?|rimane
pt: restam?|sobram?
nl: blijft(?:\s+over)?
pl: zostaje|pozostaje
ru: остаётся|остается
zh: 剩下的?|只剩
ja: 残るのは
# Nouns before the label of an option.
[option]
en: options?|choices?|letters?|alternative
de: antwort|option|buchstabe|alternative|möglichkeit|nummer|nr\.?|aussage|lösung|variante
fr: réponse|option|proposition|lettre|choix|numéro|n°|affirmation
es: opción|letra|alternativa|respuesta|número|inciso|afirmación
it: opzione|lettera|risposta|alternativa|numero|affermazione
pt: opção|letra|alternativa|resposta|número|afirmação
nl: optie|antwoord|keuze|nummer|stelling
pl: opcj[aęi]|odpowied[źz]i?|liter[aęy]|wariant|numer
ru: вариант\w*|ответ\w*|букв[ауы]|пункт\w*|номер
id: pilihan|opsi
zh: 选项|选择|答案|项(?!目)
ja: 選択肢|記号|番号
hi: 보기|विकल्प|الخيار|বিকল্প
# The first to fifth of several, and the last.
[ordinals]
en: first second third fourth fifth last
de: erste[rns]? zweite[rns]? dritte[rns]? vierte[rns]? fünfte[rns]? letzte[rns]?
fr: premi(?:er|ère) deuxième|seconde? troisième quatrième cinquième derni(?:er|ère)
es: primer[ao]? segund[ao] tercer[ao]? cuart[ao] quint[ao] últim[ao]
it: prim[ao] second[ao] terz[ao] quart[ao] quint[ao] ultim[ao]
pt: primeir[ao] segund[ao] terceir[ao] quart[ao] quint[ao] últim[ao]
nl: eerste tweede derde vierde vijfde laatste
pl: pierwsz\w+ drug\w+ trzeci\w* czwart\w+ piąt\w+ ostatni\w*
ru: перв\w+ втор\w+ трет\w+ четв[её]рт\w+ пят\w+ последн\w+
zh: 第[一1]个? 第[二2]个? 第[三3]个? 第[四4]个? 第[五5]个? 最后一?个?
ja: [一1]番目の? [二2]番目の? [三3]番目の? [四4]番目の? [五5]番目の? 最後の
# Verbs of who decides for an option before them.
[chooses]
en: (?:i|we)(?:'d|'ll|\s+(?:would|will|must|have\s+to|should|can))?(?:\s+(?:therefore|thus|rather))?\s+(?:choose|
    chose|pick|
    select|vote\s+for|prefer|go\s+with|opt\s+for|conclude|meant?|say|guess|settle\s+on|land\s+on)|
    i'?m\s+(?:going|sticking|settling|leaning)\s+(?:with|for|on|towards?)|i(?:'d|\s+would)?\s+(?:tick|mark|circle|
    take)|my\s+(?:choice|pick|vote)\s+(?:goes\s+to|falls\s+on)
de: ich\s+(?:\w+\s+)?(?:wähle|nehme|tippe|kreuze|entscheide|bleibe|sage|würde|setze|nenne|meine|stimme)(?:\s+mich)?
    (?:\s+(?:also|daher|somit|nun|hier|lieber|eher))?(?:\s+(?:für|auf|bei))?|(?:wähle|nehme|tippe|sage|
    entscheide)\s+ich
    (?:\s+mich)?(?:\s+(?:für|auf))?|
    meine\s+wahl\s+(?:fällt\s+auf|ist)|ich\s+gehe\s+mit
fr: je\s+(?:\w+\s+)?(?:choisis|dirais|dis|réponds|retiens|prends|coche|garde|sélectionne|(?:opte|penche|vote)\s+pour|
    mise\s+sur)|
    (?:on|nous)\s+(?:choisi(?:t|ssons)|retien(?:t|ons)|coche|prend|garde)(?:\s+donc)?|disons|j'opte\s+pour|
    je\s+vais\s+(?:avec|pour|sur)|mon\s+choix\s+(?:se\s+porte\s+sur|est)|je\s+pars\s+sur
es: elijo|escojo|marco|marca|opto\s+por|me\s+(?:quedo\s+con|(?:decanto|inclino)\s+por)|diría|digo|digamos|voto\s+por|
    respondo|
    selecciono|apuesto\s+por|marcaría|elegiría|
    voy\s+con|mi\s+(?:elección|opción|voto)\s+(?:es|va)|señalo
it: scelgo|opto\s+per|direi|dico|diciamo|segno|rispondo|voto|punto\s+su(?:l(?:la)?)?|propendo\s+per|indico|barro|
    sceglierei|
    metto|seleziono|
    vado\s+(?:con|per|su)|la\s+mia\s+scelta\s+(?:è|cade\s+su)|mi\s+(?:butto|oriento)\s+su
pt: escolho|marco|marque|opto\s+por|fico\s+com|diria|digo|assinalo|voto\s+em|respondo|seleciono|aposto\s+em|escolheria|
    vou\s+(?:com|de|na|pela)|a\s+minha\s+escolha\s+(?:é|recai)|aponto
nl: ik\s+(?:kies|neem|ga|zeg|denk|gok|hou(?:d)?\s+het|kom\s+uit)(?:\s+(?:dus|dan))?(?:\s+(?:voor|op|bij))?|
    mijn\s+keuze\s+(?:is|valt\s+op)|ik\s+(?:stem|duid|kruis|vink)
pl: wybieram|zaznaczam|stawiam\s+na|obstawiam|powiedział[ae]?bym|wskazuję|biorę|wybrał[ae]?bym|decyduję\s+się\s+na|
    mój\s+wybór\s+to|idę\s+w|typuję|stawiam
ru: выбираю|выберу|выбрала?\s+бы|голосую\s+за|склоняюсь\s+к|остановлюсь\s+на|отвечу|отмечаю|ставлю\s+на|
    мой\s+выбор|беру|скажу|пусть\s+будет
zh: 选择?(?!项|择题)|我(?:认为|猜)(?:是)?|
    我会选|选定|我的选择是
ja: 私は|選ぶなら
# Words behind an ordinal of what the options are in.
[listed]
en: (?:of|on|in)\s+the\s+list
de: (?:in|auf)\s+der\s+liste
fr: de\s+la\s+liste
es: de\s+la\s+lista
it: della\s+lista|dell\'elenco
pt: da\s+lista
nl: (?:van|in|op)\s+de\s+lijst|uit\s+het\s+rijtje
pl: z\s+listy|na\s+liście
ru: (?:из|в)\s+списк\w
# Adverbs and other words that may stand between such a verb and the option.
[surely]
en: most|simply|obviously|actually|\w+ly|therefore|thus|indeed|maybe|perhaps|both|either|only|just|sure|yes|then|now|
    that
de: wahrscheinlich|vermutlich|wohl|sicher|eindeutig|eher|lieber|vielleicht|klar|nur|doch|ganz|somit|also
fr: \w+ment|sans\s+doute|plutôt|seule?|forcément|donc|bien
es: \w+mente|más\s+bien|sin\s+duda|sól?o|solo|quizás?|entonces|mejor
it: \w+mente|piuttosto|senz'altro|solo|forse|quindi
pt: \w+mente|sem\s+dúvida|só|talvez|então
nl: waarschijnlijk|zeker|vermoedelijk|eerder|duidelijk|alleen|toch|dus|dan
pl: prawdopodobnie|raczej|na\s+pewno|chyba|zapewne|oczywiście|tylko|więc|jednak
ru: вероятно|скорее\s+всего|наверное|наверняка|конечно|очевидно|только|всё-таки|именно
zh: 应该|大概|可能|显然|肯定|就|只有|应
ja: おそらく|たぶん|きっと|明らかに
# Verbs behind an option that answers the question.
[fits]
en: fits|works|matches|holds|remains|makes\s+sense|applies|wins|qualifies
de: passt|stimmt|trifft\s+zu|bleibt|gilt|erfüllt
fr: convient|correspond|marche|reste|fonctionne
es: encaja|corresponde|cumple|sirve|queda|vale|funciona
it: va\s+bene|corrisponde|funziona|resta|rimane|soddisfa
pt: serve|corresponde|encaixa|cumpre|resta|funciona
nl: klopt|past(?=\s+(?:het|hier|bij|in|niet)\b|\s*[.,;]|\Z)|voldoet|blijft
pl: pasuje|spełnia|odpowiada|zostaje|pozostaje
ru: подходит|остаётся|остается|соответствует
zh: 才?(?:符合|成立|最佳|合适)
ja: (?:のほう|の方)?が(?:正し(?!くな)|正解|適切|当てはま|適当)|
    (?:のほう|の方)?(?:です|だ|である|でしょう)(?=[。.\s]|\Z)|
    を選(?:び|ぶ|択)|にします
# Verbs with which a sentence names what a text holds or lacks.
[mentions]
en: says?|reads?|mentions?|mentioned|names?|named|appears?|missing
de: steht|heißt|genannt|nennt|erwähnt|fehlt|sagt|gehört|man|vorkommt|
    stehen|vorkommt|gesucht\w*|lautet
fr: manque|apparaît|cite|citée?|mentionne|parle|trouve|dit|on|
    complète|recherchée?|manquant\w*
es: aparece|menciona|mencionad[ao]|citad[ao]|cita|habla|dice|falta|
    se\s+completa|completa|busca\w*
it: compare|appare|cita|citat[ao]|parla|dice|manca|si|
    completa|cercat[ao]|mancante
pt: aparece|menciona|citad[ao]|fala|diz|falta|
    completa|procurad[ao]|falta
nl: staat|staan|hoort|noemt|genoemd|ontbreekt|zegt|men|
    gezocht\w*|gevraagd\w*
pl: występuje|brakuje|mowa|pojawia|wymienion\w+|mówi|
    szukan\w+|brakując\w+
ru: упомянут\w?|пропущено|говорится|стоит|назван\w?|называется|говорят|
    искомо\w+|недостающ\w+
ja: という
# What a sentence adds behind the answer.
[ends]
ja: (?:です|である|だ|になります|となります|でした)
ko: (?:입니다|이다|예요|이에요)
zh: (?:了|的)
[articles]
en: an?|the
de: der|die|das|dem|den|eine?|eine[mnrs]
fr: les?|la|une?|des|du|(?:l|d)'
es: el|la|los|las|una?|unos|unas
it: il|lo|la|i|gli|le|un[oa]?|(?:l|un)'
pt: o|a|os|as|uma?
nl: de|het|een
# Words of a sentence that only carry its answer, beside articles and verbs of `STATES`.
[carries]
en: it|this|that|there|here|so|therefore|thus|only|in|of|on|at|to|as|by|still|its?|also|and|has|have|been
de: es|das|dies|da|also|daher|somit|nur|in|im|von|vom|am|an|auf|wird|werden|wurde|handelt|sich|um|noch|und|hier
fr: il|elle|ce|cela|ça|donc|seule?|dans|de|sur|à|au|en|s'agit|d'|se|et|encore|l'
es: ello|eso|esto|por|tanto|sólo|solo|en|de|del|se|trata|y|al|sigue|aún
it: esso|questo|quindi|solo|in|nel|nella|di|del|della|si|tratta|e|ancora|viene
pt: ele|ela|isso|isto|portanto|só|em|no|na|de|do|da|se|trata|e|ainda
nl: dat|dit|dus|alleen|in|van|op|te|er|en|nog|gaat|om|word(?:t|en)
pl: tylko|więc|zatem|w|na|z|o|się|i|nadal|została?
ru: этот?|эта|в|на|из|со?|от|у|к|по|и|то|так|тоже|также|ещё|здесь|там|только|был[аои]?|он[аои]?|его|её|их
zh: 所以|因此|它|这|那|在|中|里|仍然|还|的
ja: それ|これ|よって|したがって|の|に|を|で|と|まだ
# Words before what they deny.
[denies]
en: not|never|neither|nor|no\s+longer|cannot|nobody|(?:is|are|was|were|do|does|did|ca|could|would|wo|should|must)n'?t|
    rather\s+than|instead\s+of|(?<!nothing\s)(?<!none\s)other\s+than|different\s+from|differs\s+from|
    unlikely\s+to\s+be|(?:any|every)(?:thing|one|body)\s+but|all\s+but|except(?:\s+for)?|excluding|unlike|
    as\s+opposed\s+to|opposite\s+of|far\s+from|hardly|avoid(?:ing)?|refuse\s+to\s+(?:choose|pick|select|say)|
    (?:rul|exclud|eliminat|discard|reject|dismiss)(?:e|es|ed|s|ing)?(?:\s+out)?
de: bezweifle|ausgeschlossen\s+(?:ist|sind)|nicht|nie|niemals|kein\w{0,2}|weder|keineswegs|keinesfalls|niemand|
    statt|anstatt
fr: doute(?:\s+qu\w*)?|ne\s+\S+\s+(?:pas|plus|jamais)|ne\s+\w+\s+(?:pas|plus|jamais)|
    n'\w+\s+(?:pas|plus|jamais)|pas|aucune?|n'\w+\s+ni|ni(?=[^.;\n]{1,80}\sni\b)|plutôt\s+que|
    au\s+lieu\s+de
es: descart\w+|dudo(?:\s+que)?(?:\s+sea)?|no(?=\s+[\U00020000-\U000207ff])|
    no\s+(?:es|son|era|fue|ha|hay|está\w*|lo|la|los|las|se|me|creo|puede|aparece|tiene|sería)|ning[uú]n\w*|
    tampoco|
    nunca|nadie|en\s+lugar\s+de
it: scart\w+|dubito(?:\s+che)?(?:\s+sia)?|non|né|nessun\w*|invece\s+di|anziché
pt: descart\w+|duvido(?:\s+que)?(?:\s+seja)?|não|nem|nenhum\w?|nunca|ninguém|em\s+vez\s+de
nl: betwijfel|niet|geen|nooit|noch(?=[^.;\n]{1,80}\snoch\b)|niemand|in\s+plaats\s+van
pl: wątpię|nie|ani|żad\w+|nigdy|nikt|zamiast
ru: не|ни|никогда
zh: (?:并)?不(?:会|可能|应该|应)?[是选為为叫在]|并非|不等于|没有|而非|不存在|绝非
# The bare negation of a verb, behind it or before it.
[not]
en: not|never
de: nicht|nie
fr: pas
es: no
it: non
pt: não
nl: niet
pl: nie
ru: не
zh: [没沒不未无]
ja: ません|ない|なかった
# Words of what is the only one.
[only]
en: only|just
de: nur|allein|bloß|einzig
fr: seulement|seule?|uniquement
es: s[oó]lo|únicamente|solamente
it: solo|soltanto
pt: só|somente|apenas
nl: alleen|slechts|enkel
pl: tylko|jedynie
ru: только|лишь
zh: 只有|仅
# Other words behind "not" that do not deny: "not certain".
[certain]
en: sure|certain
de: sicher
fr: que|sûre?
es: segur[oa]
it: sicur[oa]
pt: cert[oa]
nl: zeker
pl: pewn\w+
ru: уверен\w?
# Words between several answers of which each may be right, and between those that are given together.
[or]
en: or|vs\.?
de: oder
fr: ou
es: o|u
it: o|oppure
pt: ou
nl: ofwel|dan\s+wel
pl: lub|albo|czy
ru: или
id: atau|veya
zh: 或者?|还是
ja: 又は|または|もしくは|か(?=\w)
ko: 또는
# The same that mean something else in other languages.
[or_here]
nl: of
[and]
en: and|as\s+well\s+as
de: und
fr: et
es: y|e
it: ed?
pt: e
nl: en
pl: i|oraz
ru: и
tr: va|ve
zh: 和|以及|及|与
ja: と|や
# Words with which a text goes on from what it denies to what it affirms.
[contrasts]
en: but
de: sondern|aber
fr: mais
es: sino|pero|más\s+bien
it: (?<!nie )ma|bensì
pt: mas|senão
nl: maar
pl: lecz|tylko|ale
ru: а|но
zh: 而是|但
ja: しかし|ただし
# The same behind what is denied: "X ではなく Y".
[replaces]
ja: (?:では|じゃ|で)なく(?:て)?[、,]?|というより
ko: [이가]?\s?아니라
# Words that deny what is before them.
[denied]
en: (?:do|does|did|will|wo)(?:n'?t|\s+not)\s+(?:fit|match|work|satisfy|apply|hold|make\s+sense|answer|qualify|count)|
    fails|contradicts?|can(?:not|'?t|\s+not)\s+be|could(?:n'?t|\s+not)\s+be
de: (?:stimmt|passt|gilt|genügt)\s+nicht|trifft\s+nicht\s+zu|scheide[tn]\s+(?:\w+\s+)?aus|fällt\s+(?:\w+\s+)?weg|
    entfällt|entfallen|
    fallen\s+(?:\w+\s+)?(?:weg|aus)|kommt?\s+nicht\s+in\s+frage
fr: ne\s+(?:convient|correspond|marche|va|fonctionne)\s+pas|
    (?:est|sont)\s+(?:à\s+)?(?:écarter|exclure|écartée?s?)
es: no\s+(?:sirve|encaja|corresponde|cumple|vale)|
    queda(?:n)?\s+descartad\w+|se\s+descarta\w*
it: non\s+(?:va\s+bene|corrisponde|funziona|vale)|
    (?:va|vanno)\s+(?:escluso|esclusa|scartat\w|esclus\w)
pt: não\s+(?:serve|corresponde|funciona|vale)|
    fica(?:m)?\s+(?:fora|excluíd\w+)
nl: (?:klopt|past|voldoet)\s+niet|valt\s+af|
    vallen\s+(?:\w+\s+)?af
pl: nie\s+(?:pasuje|spełnia|odpowiada)|odpada|
    odpadają|nie\s+wchodz\w+\s+w\s+grę
ru: не\s+(?:подходит|годится|соответствует|может)|отпадает|исключается|
    не\s+подход\w+|отпадают
zh: 不对|错误|不正确|不符合|是错的|有误|(?:被|可以|都|已)?排除|不是(?=[。，,.]|$)|
    都不对|均错误|不可能
ja: (?:では|じゃ)(?:ない|ありません|なかった|ございません)|[はが](?:間違い|誤り|不正解|違い|除外)|
    ではあり得|は違
ko: [이가은는]?\s?(?:아닙니다|아니다|틀렸|오답)
# Questions that a text answers by no, which denies what they ask for.
[asked_and_denied]
en: no|nope|wrong|i\s+don'?t\s+think\s+so|i\s+doubt\s+it
de: nein|falsch
fr: non|faux
es: no|falso
it: no|sbagliato
pt: não|errado
nl: nee|fout
pl: nie|błąd
ru: нет
zh: 不是?|不对|错
ja: いいえ|いや|違います
[wrong]
en: in(?:correct|valid|accurate)|wrong|false|untrue|excluded|eliminated|impossible|unlikely|rejected|discarded|
    ruled\s+out|mistaken|(?:an?|the)\s+(?:\w+\s+)?(?:mistake|misconception|error|trap|distractor)|out
de: falsch|unrichtig|inkorrekt|ausgeschlossen|unmöglich
fr: faux|fausse|incorrecte?|exclue?|impossible|erronée?
es: fals[ao]|incorrect[ao]|erróne[ao]|descartad[ao]|imposible|equivocad[ao]
it: sbagliat[ao]|fals[ao]|errat[ao]|scorrett[ao]|esclus[ao]|impossibile
pt: errad[ao]|fals[ao]|incorret[ao]|descartad[ao]|impossível
nl: onjuist|fout|verkeerd|incorrect|uitgesloten|onmogelijk
pl: błędn\w+|niepoprawn\w+|nieprawidłow\w+|fałszyw\w+|wykluczon\w+
ru: неверн\w+|неправильн\w+|ошибочн\w+|ложн\w+
[right]
en: right|correct|true|valid|likely|suitable|accurate|appropriate|best|better|answer|solution|closest|preferred|
    superior|
    consistent|plausible|it
de: richtig\w*|korrekt\w*|wahr|zutreffend\w*|antwort|lösung
fr: correcte?|juste|vraie?|bonne|exacte?|réponse
es: correct[ao]|verdader[ao]|ciert[ao]|respuesta|adecuad[ao]
it: corrett[ao]|giust[ao]|ver[ao]|esatt[ao]|risposta
pt: corret[ao]|cert[ao]|verdadeir[ao]|resposta
nl: juiste?|correcte?|goede?|waar|antwoord
pl: poprawn\w+|prawidłow\w+|prawdziw\w+|właściw\w+|odpowiedzi\w*
ru: верн\w+|верен|правильн\w+|прав\w{0,2}
zh: 正确|最佳|对
# What else a text says is not so.
[possible]
en: possible|one
de: möglich
fr: possible
es: posible
it: possibile
pt: possível
nl: mogelijk
pl: możliw\w+
ru: возможн\w+
# Verbs that link a subject and what is judged of it.
[links]
en: is|are|was|were|looks?|seems?|appears?|(?:would|must|can|could|may|should)\s+be|(?:has|have)\s+been
de: ist|sind|war|scheint|wird|wurde|kann|können
fr: est|sont|était|semble|peut|peuvent
es: es|está|son|era|fue|parece|pueden?(?:\s+ser)?
it: è|sono|era|fu|sembra|può(?:\s+essere)?|possono
pt: é|está|são|era|foi|parece|pode(?:m|\s+ser)?
nl: is|zijn|was|lijkt|wordt|kan|kunnen
pl: jest|są|był[aoy]?|może|wydaje\s+się
ru: был[аои]?|является|кажется|выглядит
# Headings of what replaces the answer before it, each before a colon.
[corrects]
en: (?:self-?)?correction|corrected|revised|revision|edit(?:ed)?|updated?|amended|rather|instead
de: korrektur|korrigiert|berichtigt|berichtigung|verbessert|nachtrag|besser|vielmehr
fr: correction|corrigée?|rectification|révisée?|rectifiée?|plutôt
es: corrección|corregid[ao]|rectificación|revisad[ao]|rectifico|mejor\s+dicho
it: correzione|rettifica|rivist[ao]|mi\s+correggo|anzi
pt: correção|corrigid[ao]|retificação|revist[ao]|aliás
nl: correctie|verbetering|gecorrigeerd|herzien|rectificatie
pl: korekta|poprawka|sprostowanie|poprawiono|poprawnie
ru: исправление|поправка|исправлено
zh: 更正|修正|纠正|订正|修改
ja: 訂正|修正
ko: 정정|수정
# Words with which a statement takes back the one before it.
[takes_back]
en: no(?!\s\w+\s*(?:[.!]|\Z))|wait|actually|edit|correction|sorry|oops|(?:up)?on\s+reflection|update|
    scratch\s+that|on\s+second\s+thoughts?|
    i\s+meant?|let\s+me\s+(?:re|correct)\w*|or\s+rather|
    hold\s+on|(?:scrap|strike|cancel|forget)\s+that|(?:i\s+)?(?:therefore\s+|must\s+|have\s+to\s+|
    need\s+to\s+)?(?:change|revise|correct|withdraw|take\s+back)\s+(?:my|what|that)
de: nein|moment|halt|eigentlich|korrektur|entschuldigung|ich\s+meine|besser\s+gesagt|vielmehr|
    ich\s+(?:ändere|korrigiere|revidiere|nehme\s+zurück)|stopp|falsch\s+gedacht|doch\s+(?:nicht|lieber)
fr: non|attendez|attends|en\s+fait|pardon|correction|je\s+veux\s+dire|ou\s+plutôt|
    je\s+(?:change|corrige|rectifie|me\s+(?:reprends|corrige|ravise|rétracte))|finalement|erreur
es: no(?!\s\w+\s*(?:[.!]|\Z))|espera|esperen|en\s+realidad|perdón|corrección|quiero\s+decir|mejor\s+dicho|
    cambio\s+(?:mi|de)|rectifico|me\s+(?:corrijo|retracto)|mejor\s+(?:dicho|pensado)|un\s+momento|pensándolo\s+bien
it: no(?!\s\w+\s*(?:[.!]|\Z))|aspetta|in\s+realtà|scusa|scusate|correzione|anzi|volevo\s+dire|
    cambio\s+(?:la|idea|risposta)|mi\s+(?:correggo|sbaglio)|ripensandoci|un\s+momento|ritiro
pt: não|espera|espere|na\s+verdade|desculpe|correção|quero\s+dizer|ou\s+melhor|aliás|
    mudo\s+(?:a|de|minha)|corrijo|retifico|retiro|pensando\s+melhor|um\s+momento
nl: nee|wacht|eigenlijk|sorry|correctie|ik\s+bedoel|of\s+liever|
    ik\s+(?:verander|wijzig|corrigeer|herzie)|bij\s+nader\s+inzien|toch\s+niet|momentje
pl: nie|czekaj|chwila|właściwie|przepraszam|korekta|poprawka|mam\s+na\s+myśli|a\s+raczej|
    zmieniam|poprawiam\s+się|cofam|jednak\s+nie|zaraz|po\s+namyśle
ru: нет|стоп|погоди\w*|на\s+самом\s+деле|точнее|
    (?:я\s+)?(?:меняю|исправляюсь|поправлюсь|передумал\w?|беру\s+назад)|хотя\s+нет|впрочем|подождите
zh: 不对[，,]|等等|更正|其实|抱歉|我的意思是|应该是|
    等一下|我改|修正一下|纠正|重新考虑
ja: いや[、,]|いいえ[、,]|待って|訂正|実は|すみません|正しくは|
    (?:答え|回答)を(?:変え|訂正|改め)|考え直す|やはり|やっぱり
# Words and sentences that say yes wherever they are.
[affirms]
en: in\s+the\s+affirmative|affirmatively|(?:no|without\s+(?:a\s+)?)\s?doubt(?=\s*[.,:;—]|\s+(?:about|that|here)\b)
de: bejah\w+|(?:kein(?:en)?|ohne)\s+zweifel
fr: par\s+l'affirmative|affirmativement|(?:aucun|sans|nul)\s+doute
es: afirmativamente|no\s+(?:hay|cabe)\s+(?:ninguna\s+|la\s+menor\s+)?duda
it: affermativamente|non\s+c'è\s+(?:alcun\s+)?dubbio|senza\s+dubbio
pt: afirmativamente|não\s+há\s+dúvidas?
nl: bevestigend\w*|geen\s+twijfel
pl: twierdząc\w+|nie\s+ma\s+wątpliwości|bez\s+wątpienia
ru: утвердительно|положительно|(?:нет|без)\s+сомнени[йя]
zh: 没错|毫无疑问|是肯定的
ja: 間違いな[くい]|疑いな[くい]
# The same for no.
[negates]
en: in\s+the\s+negative|negatively
de: vernein\w+
fr: par\s+la\s+négative|négativement
es: negativamente|en\s+negativo
it: negativamente
pt: negativamente|pela\s+negativa
nl: ontkennend\w*
pl: przecząc\w+|negatywnie
ru: отрицательно
zh: 是否定的
ja: 否定的
# Words and sentences that say yes, and no; several words do so wherever they are.
[says_yes]
en: it does seem so|it seems so|it would seem so|it appears so|i suppose so|i would say so|
    yes|yeah|yep|yup|true|correct|affirmative|right|entailment|in the affirmative|without a doubt|
    exactly|that's right|that is right|that's correct|that is correct|that's true|that is true|you bet|precisely|
    without question
de: ja|jawohl|wahr|richtig|korrekt|stimmt|genau|natürlich|selbstverständlich|bejahend|zu bejahen|trifft zu|so ist es|
    das stimmt|
    aber sicher|allerdings|
    sicher|gewiss|freilich|klar|na klar|durchaus|zweifellos|auf jeden fall|doch|das ist richtig|das ist wahr|
    das ist korrekt|in der tat
fr: oui|vrai|vraie|exact|exactement|affirmative|positive|c'est vrai|bien sûr|bien sûr que oui|c'est exact|
    c'est le cas|tout à fait|
    c'est bien le cas|
    absolument|effectivement|en effet|certainement|évidemment|sans aucun doute|parfaitement|c'est juste|
    c'est correct|c'est bien cela|bien entendu|affirmatif|juste
es: sí|si|verdadero|verdadera|cierto|correcto|correcta|exacto|afirmativa|afirmativo|claro|claro que sí|por supuesto|
    así es|
    es verdad|se cumple|se confirma|
    desde luego|efectivamente|en efecto|ciertamente|exactamente|naturalmente|sin duda|sin ninguna duda|eso es
it: sì|vero|vera|esatto|certo|certamente|affermativa|positiva|è vero|è così|proprio così|si conferma|lo è|
    ovviamente|naturalmente|assolutamente sì|senza dubbio|effettivamente|corretto|corretta|giusto|giusta|
    certo che sì|sicuramente|eccome
pt: sim|verdadeiro|verdadeira|correto|correta|exato|afirmativa|positiva|claro que sim|confirma-se|com certeza|
    exatamente|claro|certamente|efetivamente|sem dúvida|é isso|isso mesmo|evidentemente|certo|certa
nl: ja|jazeker|waar|klopt|natuurlijk|bevestigend|dat klopt|zeker weten|inderdaad|
    absoluut|zeker|uiteraard|vanzelfsprekend|precies|juist|dat is waar|dat is juist|jawel|wel degelijk
pl: tak|prawda|oczywiście|zgadza się|twierdząca|to prawda|jak najbardziej|owszem|
    dokładnie|z pewnością|na pewno|oczywiście że tak|oczywiście, że tak|prawdziwe|zdecydowanie tak|słusznie|poprawne
ru: да|верно|правда|истина|утвердительный|положительный|это так|это правда|конечно|ответ положительный|
    ответ утвердительный|
    разумеется|безусловно|именно так|так и есть|всё верно|правильно|несомненно|действительно|точно
zh: 是的|是|对的|对|正确|有|可以|当然|没错|肯定|肯定的|的确|确实|是这样|
    对啊|是啊|正确的|毫无疑问|真的|是真的|成立
ja: はい|真|正しい|そうです|もちろん|肯定|肯定的|その通り|そのとおり|ええ|
    本当です|事実です|当然です
ko: 예|네|참|맞습니다
hi: हाँ|हां|सही|सत्य
ar: نعم|صحيح|صواب
bn: হ্যাঁ|সত্য
id: ya|benar
tr: evet|doğru
vi: có|đúng
[says_unknown]
en: unknown|uncertain|undetermined|undecided|indeterminate|neutral|maybe|not given|not enough information|
    cannot be determined|can't be determined|can not be determined|cannot say|unclear
de: unbekannt|unklar|ungewiss
fr: inconnu
es: desconocido
ru: неизвестно
zh: 未知|不确定|无法确定|可能
ja: 不明
ko: 알 수 없음
[says_no]
en: hardly|i doubt it|i don't think so|unlikely|
    no|nope|false|incorrect|negative|wrong|untrue|contradiction|in the negative|not true|not the case|
    not at all|by no means|absolutely not|certainly not|definitely not|of course not|far from it|that's false|
    that's wrong|that is false|that is wrong|a myth
de: wohl kaum|kaum|eher nicht|das bezweifle ich|
    nein|falsch|negativ|verneinend|zu verneinen|unzutreffend|keineswegs|natürlich nicht|stimmt nicht|trifft nicht zu|
    keinesfalls|
    auf keinen fall|nicht wahr|mitnichten|im gegenteil|das stimmt nicht|das trifft nicht zu|so ist es nicht|
    quatsch|unsinn|irrtum|ganz und gar nicht|überhaupt nicht|sicher nicht|gewiss nicht|bestimmt nicht|das ist falsch|
    weit gefehlt|nie|niemals|auf gar keinen fall|leider nicht|leider nein|nicht richtig|
    von wegen
fr: j'en doute|à peine|
    non|faux|fausse|négative|pas du tout|bien sûr que non|ce n'est pas vrai|ce n'est pas le cas|absolument pas|
    aucunement|
    nullement|certainement pas|sûrement pas|jamais|négatif|c'est faux|en aucun cas|loin de là|au contraire|
    ce n'est pas exact|ce n'est pas correct|inexact|inexacte
es: lo dudo|difícilmente|
    falso|falsa|incorrecto|incorrecta|negativo|negativa|en absoluto|claro que no|por supuesto que no|para nada|
    qué va|no es cierto|
    no es verdad|de ninguna manera|de ningún modo|
    de eso nada|nada de eso|ni hablar|ni mucho menos|jamás|nunca|todo lo contrario|al contrario|no es así|
    no es correcto
it: ne dubito|difficilmente|
    falso|falsa|negativa|affatto|certo che no|non è vero|per niente|assolutamente no|macché|non è così|non lo è|
    niente affatto|per nulla|neanche per sogno|mai|al contrario|sbagliato|sbagliata|errato|errata|non è corretto|
    non è esatto|scorretto
pt: duvido|dificilmente|
    não|falso|falsa|incorreto|incorreta|negativa|claro que não|de modo algum|não é verdade|de jeito nenhum|
    de maneira nenhuma|de forma alguma|de modo nenhum|nem pensar|nunca|jamais|pelo contrário|não está correto|
    não está certo|errado|errada|nada disso|que nada
nl: nauwelijks|ik betwijfel het|waarschijnlijk niet|
    nee|neen|onwaar|ontkennend|natuurlijk niet|zeker niet|klopt niet|dat klopt niet|integendeel|niet waar|geenszins|
    helemaal niet|
    absoluut niet|niks van|nooit|dat is niet waar|dat is onjuist|onjuist|geen sprake van|in geen geval|allerminst|
    fout|welnee|
    klopt niet
pl: wątpię|raczej nie|
    nie|fałsz|fałszywe|nieprawda|przecząca|wcale nie|oczywiście że nie|to nieprawda|nie jest prawdą|skądże|bynajmniej|
    absolutnie nie|w żadnym razie|ani trochę|nigdy|to fałsz|zdecydowanie nie|niestety nie|to nie tak|niepoprawne|
    oczywiście, że nie
ru: вряд ли|сомневаюсь|едва ли|
    нет|ответ отрицательный|неверно|ложь|неправда|отрицательный|это не так|это неправда|неправильно|вовсе нет|ничуть|
    ничего подобного|ни в коем случае|отнюдь|никогда|конечно нет|совсем нет|конечно же нет|ложно|ошибка|миф|
    заблуждение|отнюдь нет|
    да нет
zh: 不是|不可能|不对|不正确|错误|错|否|没有|不|当然不是|否定|否定的|并非如此|并不是|不成立|
    并非|错误的|假的|绝不|绝对不是|当然不|从来没有
ja: いいえ|偽|誤り|間違い|違います|ちがいます|否定|否定的|そうではありません|いや|
    間違いです|誤りです|正しくありません|嘘です|違う|まさか|とんでもない|そんなことはありません|事実ではありません|いえ|
    誤りである
ko: 아니요|아니오|거짓
hi: नहीं|गलत|असत्य
ar: لا|خطأ
bn: না|মিথ্যা
id: tidak|salah
tr: hayır|yanlış
vi: không|sai
# Words that say that something is there, or is not.
[exists]
de: (?:es|da|hier)\s+(?:gibt|ist|sind)
fr: il\s+(?:n')?y\s+a
es: (?:no\s+)?hay
it: (?:non\s+)?(?:c'è|ci\s+sono)
pt: (?:não\s+)?(?:há|existem?)
nl: er\s+(?:is|zijn)
pl: nie\s+ma|jest|są
ru: есть|имеется
zh: 没?有
ja: (?:い|あり)ま(?:す|せん)
# Words for what shows what is asked for.
[shown]
en: image|picture|photo(?:graph)?|text|passage|sentence|visible|present|shown|seen
de: bild|foto|text|satz|sichtbar|sehen
fr: image|photo|texte|phrase|visible
es: imagen|foto|texto|frase|oración|visible
it: immagine|foto|testo|frase|visibile
pt: imagem|foto|texto|frase|visível
nl: afbeelding|foto|tekst|zin|zichtbaar|zien
pl: obraz\w*|zdjęci\w*|tekście|zdaniu|widać
ru: текст\w*|предложени\w+|фраз\w|виден\w*|фото
zh: 图片|图|照片|文中|句子
ja: 画像|写真|文中
# Words before a number that bounds.
[bounds]
en: at\s+(?:least|most)|no\s+(?:more|less|fewer)\s+than|a\s+(?:minimum|maximum)\s+of|
    (?:less|fewer|more|greater|smaller|larger|bigger|higher|lower|shorter|longer|older|younger|better|worse|
    other)\s+than(?:\s+or\s+equal\s+to)?|
    (?<!\d\s)(?:over|under|above|below)|
    (?<!add\s)(?<!adds\s)(?<!sums\s)(?<!sum\s)(?<!round\s)(?<!rounds\s)(?<!rounded\s)(?<!comes\s)up\s+to
de: mindestens|höchstens|wenigstens|mehr\s+als|weniger\s+als|über|unter|bis\s+zu|maximal|minimal|größer\s+als|
    kleiner\s+als|nicht\s+mehr\s+als
fr: au\s+(?:moins|plus|maximum|minimum)|(?:plus|moins)\s+(?:de|que)|supérieure?\s+à|inférieure?\s+à|jusqu'à|
    au-dessus\s+de|en\s+dessous\s+de
es: al\s+menos|por\s+lo\s+menos|como\s+(?:mínimo|máximo)|a\s+lo\s+sumo|(?:más|menos)\s+(?:de|que)|
    mayor\s+(?:de|que|a)|menor\s+(?:de|que|a)|hasta
it: almeno|al\s+(?:massimo|minimo)|(?:più|meno)\s+(?:di|che)|oltre|maggiore\s+di|minore\s+di|fino\s+a|superiore\s+a|
    inferiore\s+a
pt: pelo\s+menos|no\s+(?:máximo|mínimo)|(?:mais|menos)\s+(?:de|que|do\s+que)|maior\s+(?:que|do\s+que)|
    menor\s+(?:que|do\s+que)|até|acima\s+de|abaixo\s+de
nl: minstens|hoogstens|ten\s+(?:minste|hoogste)|tenminste|(?:meer|minder|groter|kleiner)\s+dan|maximaal|minimaal|
    boven\s+de|onder\s+de|tot\s+wel
pl: co\s+(?:najmniej|najwyżej)|przynajmniej|(?:więcej|mniej)\s+niż|ponad|poniżej|powyżej|maksymalnie|minimalnie|
    nie\s+(?:więcej|mniej)\s+niż
ru: не\s+(?:менее|более|меньше|больше)|более|менее|больше|меньше|свыше|минимум|максимум|до
zh: 至少|最多|超过|超過|不到|不足|多于|少于|大于|小于|不少于|不超过|不低于|不高于|高于|低于
ja: 少なくとも|最低でも|多くとも|最大で|最低で
ko: 최소|최대|적어도
# Words behind a number that bounds.
[bounded]
en: or\s+(?:more|less|fewer|higher|lower|above|below|greater|over|under)|at\s+(?:least|most)
de: oder\s+(?:mehr|weniger)|mindestens|höchstens|und\s+mehr
fr: ou\s+(?:plus|moins)|au\s+(?:moins|plus|maximum|minimum)
es: o\s+(?:más|menos)|como\s+(?:mínimo|máximo)|al\s+menos
it: o\s+(?:più|meno)|al\s+(?:massimo|minimo)|almeno
pt: ou\s+(?:mais|menos)|no\s+(?:máximo|mínimo)|pelo\s+menos
nl: of\s+(?:meer|minder)|minstens|hoogstens
pl: lub\s+(?:więcej|mniej)|co\s+najmniej
ru: или\s+(?:более|больше|менее|меньше)|и\s+более
zh: 以上|以下|以内|未满|不到|或更[多少]|多(?=[个本支人岁元米公])
ja: 以上|以下|未満|以内|超|を超え|より(?:多|少|大き|小さ)
ko: 이상|이하|미만|초과
# Words behind a number that stands for hundredths, and before it.
[percent]
en: percent|per\s?cent|pct\.?
de: prozent
fr: pour\s?cent
es: por\s?ciento
it: per\s?cento
pt: por\s?cento
nl: procent
pl: procent\w*
ru: процент\w*
ja: パーセント
ko: 퍼센트|프로
# Words between a part and the whole: "3 out of 4".
[out_of]
en: out\s+of(?:\s+(?:a\s+total\s+of|every))?|in\s+every
de: von(?:\s+(?:den|insgesamt))?
fr: sur
es: de\s+cada|de\s+un\s+total\s+de
it: su
pt: em\s+cada|de\s+cada|de\s+um\s+total\s+de
nl: van\s+de|op\s+de
pl: na|z
ru: из
# Sentences of an author who does not know, or does not choose.
[abstains]
en: i(?: a|')m (?:not (?:\w+ )?(?:sure|certain|able)|unsure|unable|afraid|sorry)|
    i (?:do not|don'?t)(?: really)? (?:know|have (?:an|the) answer|have enough)|i have no (?:idea|answer)|
    i (?:cannot|can not|can't|could not|couldn't) (?:answer|say|tell|determine|solve|find|compute|calculate|do)|
    (?:cannot|can not|can't|impossible to|not possible to) (?:be )?(?:determined?|answered?|said|say|tell|know)|
    (?:no idea|not sure|unsure|insufficient information|not enough information|hard to say)|
    (?:can't|cannot|won't|will not) (?:decide|choose)|
    (?:rather )?(?:leave|keep) (?:it|this|that) open|leave (?:the choice|it) to you|(?:can(?:not|'t)|won't) commit
de: ich weiß (?:es )?nicht|ich bin (?:mir )?nicht sicher|keine ahnung|nicht (?:festlegen|entscheiden|sagen)|
    hängt davon ab|
    überlasse ich|lasse ich offen|bleibt offen|kann (?:ich )?nicht (?:beurteilen|angeben)|
    weiß nicht|(?:kann|vermag) (?:ich )?(?:das |es )?nicht (?:zu )?sagen
fr: je (?:ne )?(?:sais pas|suis pas sûre?|saurais|peux (?:pas )?(?:dire|choisir|trancher))|
    je (?:vous )?laisse|impossible (?:de|à) (?:dire|trancher|savoir)|je ne me prononce|
    aucune idée|je l'ignore|je n'en sais rien
es: no (?:lo )?sé|no estoy segur[oa]|no (?:puedo|sabría|consigo|logro) (?:decir|elegir|decidir)\w*|depende|
    lo dejo|no me (?:decido|pronuncio)|imposible (?:de )?(?:decir|saber)|le dejo|
    ni idea|no tengo (?:ni )?idea|lo desconozco|lo ignoro
it: non (?:lo )?so|non sono sicur[oa]|non saprei|non (?:riesco|posso) (?:a )?(?:dire|scegliere|decidere)|
    lascio a|non mi (?:decido|pronuncio)|impossibile (?:dire|sapere|stabilire)|
    nessuna idea|non ho idea|\bboh\b|non ne ho
pt: não sei|não tenho certeza|não (?:consigo|posso|saberia) (?:dizer|indicar|escolher|decidir)|
    deixo (?:a|em)|não me (?:decido|pronuncio)|impossível (?:dizer|saber)|
    não faço ideia|sei lá|desconheço
nl: ik weet het niet|(?:geen (?:naam|keuze)|niet) (?:te )?(?:geven|kiezen|zeggen|aanwijzen)|
    laat ik|kan ik niet (?:zeggen|kiezen|bepalen)|blijft open|onmogelijk te zeggen|
    geen idee|zou het niet weten|weet ik niet
pl: nie wiem|trudno powiedzieć|nie (?:potrafię|umiem|mogę) (?:powiedzieć|wybrać|wskazać|rozstrzygnąć)|
    pozostawiam|nie (?:rozstrzygam|podejmuję)|nie da się (?:powiedzieć|rozstrzygnąć)|
    nie mam pojęcia|nie jestem pew\w+
ru: не знаю|не уверена?|(?:сложно|трудно) (?:сказать|выбрать)|(?:сказать|выбрать) (?:сложно|трудно)|
    не могу (?:сказать|выбрать)|
    оставлю|не берусь|невозможно (?:сказать|определить)|не могу (?:определить|решить)|
    понятия не имею|затрудняюсь|без понятия
zh: 不知道|不确定|无法确定|无法回答|说不好|很难说|各有各的|无法判断|
    无法(?:断定|判断|确认|肯定|选择|决定)|不能确定|难以(?:判断|确定|断定)|不好(?:说|一概而论)|不一定|
    不清楚|没把握|说不准
ja: わかりません|分かりません|決め手がありません|わからない|
    断定できません|判断できません|決められません|何とも言えません|言い切れません|
    見当がつ|存じません|はっきりしません
ko: 모르겠
# Words of questions for what may be in percent.
[rate]
de: wahrscheinlichkeit\w*|anteil\w*|quote|prozent\w*|zinssatz|rabatt|rate|verhältnis
fr: probabilité|pourcentage|taux|proportion|part|chances?
es: probabilidad|porcentaje|tasa|proporción|tanto\s+por\s+ciento
it: probabilità|percentuale|tasso|proporzione
pt: probabilidade|porcentagem|percentagem|taxa|proporção
nl: kans|waarschijnlijkheid|percentage|aandeel|procent
pl: prawdopodobieństw\w+|procent\w*|odsetek|szans\w
ru: вероятност\w|процент\w*|дол[яюи]
zh: 概率|百分|率|比例
ja: 確率|割合|率|パーセント
# Words behind a number that is below zero.
[below_zero]
en: (?:below|under)\s+(?:zero|0|freezing)
de: unter\s+(?:null|0)
fr: (?:au-dessous\s+de|en\s+dessous\s+de|sous)\s+(?:zéro|0)|négatifs?
es: bajo\s+(?:cero|0)|negativos?
it: sotto\s+(?:lo\s+)?(?:zero|0)|negativi
pt: abaixo\s+de\s+(?:zero|0)|negativos?
nl: onder\s+(?:nul|0)
pl: poniżej\s+(?:zera|0)|na\s+minusie
ru: ниже\s+(?:нуля|0)|мороза
# Headings of a check of the answer, each before a colon.
[checks]
en: (?:double-?)?check(?:ing)?|to\s+check|verif(?:y|ying|ication)|test|proof
de: probe|kontrolle|gegenprobe|überprüfung
fr: vérification|contrôle|preuve|vérifions
es: comprobación|verificación|control|comprobamos|comprobando|verificamos
it: verifica|controllo|prova|verifichiamo
pt: verificação|confirmação|prova|confirmando|verificando|conferindo|conferência
nl: controle|check|proef|controleer
pl: sprawdzenie|kontrola|sprawdzamy|próba
ru: проверка|проверим|проверяем
zh: 验证|检验|验算
ja: 検算|確認|確かめ
# Infinity in words.
[infinity]
en: infinity
de: unendlich
fr: l'infini|infini
es: infinito
it: infinito
pt: infinito
nl: oneindig
pl: nieskończoność
ru: бесконечност\w
zh: 无穷大?
ja: 無限大?
# Mathematics in words, by the sign that is written.
[root]
en: (?:the\s+)?(?:square\s+)?root\s+of
de: (?:quadrat)?wurzel\s+(?:aus|von)
fr: racine(?:\s+carrée)?\s+de
es: raíz(?:\s+cuadrada)?\s+de
it: radice(?:\s+quadrata)?\s+di
pt: raiz(?:\s+quadrada)?\s+de
nl: wortel(?:\s+(?:van|uit))?
pl: pierwiastek(?:\s+kwadratowy)?\s+z
ru: кор(?:ень|ня|нем)(?:\s+(?:квадратный|квадратного))?\s+из
zh: 根号
ja: ルート
[pi]
en: pi
it: pi\s+greco
ru: пи
ja: パイ
[over]
en: over|divided\s+by
de: durch|geteilt\s+durch
fr: sur|divisé\s+par
es: sobre|dividido\s+(?:por|entre)
it: fratto|diviso
pt: sobre|dividido\s+por
nl: gedeeld\s+door
pl: przez|podzielone\s+przez
ru: делённое\s+на|делить\s+на
[times]
en: times|multiplied\s+by
de: mal
fr: fois
es: por
it: per
pt: vezes
nl: keer|maal
pl: razy
ru: умножить\s+на
zh: 倍|乘以?
ja: 倍|かける
[squared]
en: squared
de: (?:zum|im)?\s*quadrat|hoch\s+zwei
fr: au\s+carré
es: al\s+cuadrado
it: al\s+quadrato|quadrato
pt: ao\s+quadrado
nl: kwadraat
pl: do\s+kwadratu
ru: в\s+квадрате
zh: 的?平方
ja: の?[2二]乗
[minus]
en: minus
fr: moins
es: menos
it: meno
nl: min
ru: минус
zh: 负
ja: マイナス
de: minus
pl: minus
pt: menos
[plus]
en: plus
it: più
es: más
pt: mais
ru: плюс
ja: プラス
# Names of the set without elements, and what has none.
[empty_set]
en: (?:the\s+)?empty\s+set|no\s+(?:real\s+)?solutions?
de: (?:die\s+)?leere\s+menge|keine\s+(?:reelle\s+)?lösung(?:en)?
fr: (?:l')?ensemble\s+vide|(?:aucune|pas\s+de)\s+solution(?:\s+réelle)?
es: (?:el\s+)?conjunto\s+vacío|(?:no\s+hay|ninguna)\s+solución
it: (?:l')?insieme\s+vuoto|nessuna\s+soluzione
pt: (?:o\s+)?conjunto\s+vazio|(?:não\s+há|nenhuma)\s+solução
nl: (?:de\s+)?lege\s+verzameling|geen\s+(?:reële\s+)?oplossing(?:en)?
pl: zbiór\s+pusty|brak\s+rozwiązań
ru: пустое\s+множество|нет\s+(?:действительных\s+)?решений
zh: 空集|无解
ja: 空集合|解なし
# Words of questions for a year.
[year]
en: year
de: jahr
fr: année
es: año
it: anno
pt: ano
nl: jaar
pl: rok(?:u|iem)?
ru: год(?:у|а|ом)?
zh: 年
ja: 何年
# Words between the ends of a range.
[ranges]
en: to
de: bis
fr: à
es: a
nl: tot
pl: do
ru: до
it: a
zh: 到|至
ja: から
# Words before a number that leave it a number.
[about]
en: about|approximately|approx|roughly|around|exactly|only|just|nearly|almost|some|circa|a\s+total\s+of|equal\s+to|
    still|now|then
de: etwa|ungefähr|circa|ca|rund|genau|nur|fast|insgesamt|knapp|
    noch|dann|schon
fr: environ|exactement|seulement|presque|à\s+peu\s+près|au\s+total|
    encore|donc|bien|tout
es: aproximadamente|unos|unas|exactamente|solo|sólo|casi|alrededor\s+de|en\s+total|un\s+total\s+de|
    todavía|aún|entonces
it: circa|esattamente|solo|quasi|in\s+totale|un\s+totale\s+di|
    ancora|poi
pt: aproximadamente|cerca\s+de|exatamente|só|apenas|quase|um\s+total\s+de|
    ainda|então
nl: ongeveer|circa|precies|slechts|bijna|in\s+totaal|
    nog|dan
pl: około|dokładnie|tylko|prawie|łącznie|w\s+sumie|
    jeszcze|więc
ru: около|примерно|приблизительно|ровно|всего|почти|лишь|только|итого|
    ещё|значит
zh: 大约|约|共|一共|总共|正好|只
ja: 約|およそ|ちょうど|全部で|合計
# Pronouns of what a question asks about.
[pronouns]
en: it|they|he|she|that|this|these|those
de: er|sie|es|das|dies
fr: il|elle|ils|elles|c'|ce|ça|cela
es: esto|eso|ello|él|ella|ellos|ellas|lo
it: esso|essa|essi|lo|ciò|questo|questa
pt: ele|ela|eles|elas|isso|isto
nl: het|hij|ze|zij|dat|dit|die
pl: on|ona|ono|one|oni|to
ru: он|она|оно|они|это
zh: 它|他|她|这|那
ja: それ|これ|彼|彼女
# Words in place of a name that was given before.
[deictic]
en: (?:the|that|this)\s+(?:former|latter|last\s+one|one)|that|this
de: letztere[rs]?|erstere[rs]?|diese[rsmn]?|jene[rsmn]?
fr: celui-ci|celle-ci|celui-là|celle-là|ce\s+dernier|cette\s+dernière
es: est[ea]\s+últim[oa]|ést[ea]|est[ea]|es[ea]
it: quest'ultim[oa]|questo|questa|quello|quella
pt: est[ea]\s+últim[oa]|est[ea]|ess[ea]
nl: laatstgenoemde|deze|die|dat
pl: t[oaę]\s+ostatni\w*|ten|ta|ostatnia?
ru: последн\w+|он[аои]?|это[тй]?
zh: 后者|前者|它|这个|那个
ja: 後者|前者|それ|これ
# Words of questions for a person.
[asks_who]
en: who|whom|whose
de: wer|wem|wen
fr: qui
es: quién|quiénes
it: chi
pt: quem
nl: wie
pl: kto|kogo
ru: кто|кого|кем
zh: 谁|誰
# Questions whose answer is a place, a time or a way, and not what their subject is.
[asks_circumstance]
en: where|when|how|why
de: wo|wann|wie|warum
fr: où|quand|comment|pourquoi
es: dónde|cuándo|cómo
it: dove|quando|perché
pt: onde|quando|como
nl: waar|wanneer|hoe
pl: gdzie|kiedy|jak
ru: где|когда|как|почему
zh: 哪里|何时|怎么
ja: どこ|いつ|どう
# Words that ask for one of several.
[asks_which]
en: which|what
de: welche[rsmn]?|was
fr: quel(?:le)?s?|lequel|laquelle|qu'est-ce\s+qui
es: cuál|qué
it: quale|cosa|che
pt: qual|que
nl: welke?|wat
pl: któr[yae]|co
ru: как(?:ой|ая|ое|ие)|что|котор\w+
# Words before what only accompanies the answer: "after adding 7 gallons".
[accompanies]
en: after|before|by|in|for|from|with|at|when|if|within|per|during|on|step
de: nach|vor|bei|mit|in|für|von|aus|pro|wenn|innerhalb|schritt
fr: après|avant|avec|en|pour|dans|par|si|pendant|étape
es: después\s+de|antes\s+de|tras|con|en|para|por|si|durante|paso
it: dopo|prima|con|in|per|se|durante|passo
pt: depois\s+de|antes\s+de|após|com|em|para|por|se|durante|passo
nl: na|voor|met|in|per|bij|als|tijdens|stap
pl: po|przed|z|w|za|przy|jeśli|podczas|krok
ru: после|до|через|при|в|за|для|на|если|шаг
# Words of statements that say what may be, or what others say.
[hedges]
en: if|whether|might|may|could|would|perhaps|maybe|possibly|suppos\w+|assum\w+|unless|unclear|doubt|many|people|asked|
    question|depends|should|thought|either|or
de: ob|wenn|falls|vielleicht|könnte|würde|möglicherweise|frage|angenommen|oder
fr: si(?!\s+(?:dice|tratta|chiama|usa|scrive|ottiene|trova|legge|ha|può))|peut-être|pourrait|serait|question|
    suppos\w+|ou
es: quizás?|tal\s+vez|podría|sería|pregunta|suponiendo
it: se|forse|potrebbe|sarebbe|domanda|supponendo|oppure
pt: se|talvez|poderia|seria|pergunta|supondo|ou
nl: als|misschien|zou|vraag|stel
pl: czy|jeśli|może|mógłby|pytanie|gdyby|lub|albo
ru: если|ли|может|возможно|вероятно|или|наверное|предположим
zh: 如果|是否|也许|可能|假如|或
ja: もし|かもしれ|かどうか|または|たぶん
# Words before the reason of an answer.
[because]
en: because|since|as|for|given\s+that|due\s+to
de: weil|da(?!\s+(?:ist|sind|gibt))|denn
fr: parce\s+qu\w*|car|puisqu\w*
es: porque|ya\s+que|pues|puesto\s+que
it: perché|poiché|siccome|dato\s+che
pt: porque|pois|já\s+que|visto\s+que
nl: omdat|want|aangezien
pl: ponieważ|bo|gdyż
ru: потому\s+что|так\s+как|поскольку|ибо|ведь
zh: 因为|由于
ja: なぜなら|というのも
# What was, and may not be now. It does not give the answer unless the question asks for it.
[former]
en: used\s+to|former(?:ly)?|has\s+left|previously|was\s+once|once\s+(?:was|called)|no\s+longer|until|
    abolished|replaced|in\s+(?:colonial|ancient)\s+times|formerly
de: früher\w*|nicht\s+mehr|verließ|ehemals|einst|vormals|bis\s+\d{4}|
    abgeschafft|abgelöst|damals|seinerzeit
fr: autrefois|ancien(?:ne)?|n'est\s+plus|a\s+quitté|jadis|anciennement|auparavant|jusqu'en|
    à\s+l\'époque|aboli\w*|remplacée?|naguère
es: antes|antigu[ao]|dejó|ya\s+no|antiguamente|solía|anteriormente|hasta\s+\d{4}|
    abolid[ao]|reemplazad[ao]|en\s+tiempos\s+de|en\s+su\s+día|otrora
it: un\s+tempo|lasciò|non\s+\w+\s+più|in\s+passato|una\s+volta|precedentemente|fino\s+al\s+\d{4}|prima\s+era|
    abolit[ao]|sostituit[ao]|ai\s+tempi|allora
pt: antigamente|antig[ao]|deixou|já\s+(?:foi|não)|outrora|costumava|anteriormente|até\s+\d{4}|antes\s+era|
    abolid[ao]|substituíd[ao]|no\s+tempo\s+d[aoe]|na\s+época
nl: vroeger|niet\s+(?:meer|langer)|voormalig\w*|verliet|voorheen|ooit|tot\s+\d{4}|
    afgeschaft|vervangen|destijds|toenmalig\w*
pl: dawniej|już\s+nie|dawn[yaeą]\w*|kiedyś|niegdyś|wcześniej|do\s+\d{4}|poprzednio|
    zniesion\w+|zastąpion\w+|w\s+dawnych\s+czasach|ówczesn\w+
ru: раньше|уже\s+не|больше\s+не|прежде|ранее|когда-то|бывш\w+|
    когда-то|упразднён\w*|в\s+прошлом|некогда
zh: 曾|以前|过去|曾是|原来是|曾为|
    曾经|从前|当年
ja: かつて|以前は|昔は|元々は|
    昔|当時|旧
# Verbs and words of statements about the beginning of a story.
[past]
en: was|were|had|initially|started
de: war|waren|anfangs|zuerst
fr: était|étaient|au\s+début
es: era|eran|fue|al\s+principio
it: era|erano|fu|all'inizio
pt: era|eram|foi|no\s+início
nl: was|waren|eerst
pl: był[aoy]?|na\s+początku
ru: был[аои]?|сначала|изначально
zh: 最初|起初|原本
ja: 始め|最初|でした
# Words that begin a conclusion.
[concludes]
en: so|therefore|thus|hence|consequently|accordingly|based\s+on|in\s+conclusion|overall|in\s+summary|
    conclusion
de: also|daher|somit|folglich|deshalb|demnach|damit|mithin|insgesamt|fazit|darum|
    so\s?dass|unterm\s+strich
fr: donc|ainsi|par\s+conséquent|c'est\s+pourquoi|en\s+conclusion|d'où|bref|finalement|
    de\s+sorte\s+que|du\s+coup|conclusion
es: así\s+que|luego|por\s+(?:lo\s+)?tanto|por\s+(?:consiguiente|eso)|en\s+(?:conclusión|resumen|definitiva)|conque|
    de\s+(?:modo|manera|forma)\s+que|por\s+ende|conclusión
it: quindi|dunque|perciò|pertanto|in\s+conclusione|ergo|di\s+conseguenza|
    per\s+cui|cosicché|conclusione|insomma
pt: logo|portanto|assim|por\s+isso|em\s+conclusão|por\s+conseguinte|ou\s+seja|
    de\s+modo\s+que|conclusão|então
nl: dus|daarom|derhalve|kortom|oftewel|bijgevolg|
    zodoende|vandaar|conclusie|daarmee|concluderend
pl: więc|zatem|dlatego|czyli|stąd|ostatecznie|
    wobec\s+tego|wniosek|w\s+takim\s+razie|toteż
ru: значит|поэтому|следовательно|итак|таким\s+образом|то\s+есть|в\s+итоге|
    так\s+что|вывод|стало\s+быть|выходит|получается
zh: 所以|因此|因而|故|综上|于是|可见|
    结论|由此
ja: よって|したがって|ゆえに|だから|つまり|そのため|以上から|
    です(?:ので|から)|なので|ですので|それゆえ|結論として|結論は
# Words of statements that suppose what is not so, or leave open which case it is.
[supposes]
de: wenn|falls|angenommen|sofern|es\s+sei\s+denn|es\s+kommt\s+darauf\s+an
fr: si(?!\s+(?:dice|tratta|chiama|usa|scrive|ottiene|trova|legge|ha|può))|à\s+moins\s+que|supposons|selon\s+(?:que|
    qu'\w+)|cela\s+dépend
es: supongamos|depende|a\s+menos\s+que
it: se|supponendo|a\s+meno\s+che|dipende
pt: se|suponha\w*|depende|a\s+menos\s+que
nl: als|indien|tenzij|het\s+hangt\s+ervan\s+af
pl: jeśli|jeżeli|gdyby|o\s+ile|to\s+zależy
ru: если|предположим|это\s+зависит
zh: 如果|假如|若是|要是|这取决于
ja: もし
# Words before what a text concedes, and goes on to reject.
[concedes]
en: although|(?:even\s+)?though|while|whereas|despite|
    as\s+much\s+as|notwithstanding|in\s+spite\s+of
de: obwohl|während|zwar|
    trotz|obgleich|wenngleich|auch\s+wenn
fr: bien\s+que|quoique|alors\s+que|certes|
    malgré|même\s+si|en\s+dépit\s+d[eu']
es: aunque|mientras|si\s+bien|
    a\s+pesar\s+de(?:\s+que)?|pese\s+a
it: sebbene|mentre|benché|
    nonostante|malgrado|anche\s+se|pur\s+essendo
pt: embora|enquanto|
    apesar\s+d[eo]|ainda\s+que|se\s+bem\s+que
nl: hoewel|terwijl|
    ondanks|al\s+is
pl: choć|chociaż|podczas\s+gdy|
    mimo(?:\s+że)?|pomimo
ru: хотя(?!\s+нет)|
    несмотря\s+на|пусть
zh: 虽然|尽管|
    即使|即便
ja: とはいえ
# Words of what seems so at first, or to others.
[seemed]
de: viele|manche|auf\s+den\s+ersten\s+blick|zunächst|anfangs|zuerst|beinahe|man\s+könnte|ich\s+(?:dachte|schwanke)|
    würde\s+man|
    mein\s+erster\s+(?:gedanke|impuls|reflex)|meine\s+erste\s+(?:idee|reaktion)|spontan|fast\s+hätte|ich\s+hätte\s+fast
fr: beaucoup|certains|au\s+début|d'abord|à\s+première\s+vue|on\s+(?:pourrait|croit|pense)|j'(?:hésit\w+|avais|
    ai\s+pensé)|
    ma\s+première\s+(?:idée|réaction|pensée)|mon\s+premier\s+(?:réflexe|instinct)|j'allais|spontanément|
    on\s+(?:aurait|serait)
es: muchos|algunos|al\s+principio|primero|a\s+primera\s+vista|podría\w*|dud[oa]\w*|pensé|pensaba|
    mi\s+primer[ao]?\s+(?:reacción|impulso|idea|pensamiento|instinto)|iba\s+a\s+decir|casi\s+digo|
    uno\s+diría
it: molti|alcuni|all'inizio|a\s+prima\s+vista|si\s+potrebbe|pensavo|dapprima|avevo|
    il\s+mio\s+primo\s+(?:pensiero|istinto|impulso)|la\s+mia\s+prima\s+(?:idea|reazione)|stavo\s+per\s+dire|
    di\s+primo\s+acchito|
    si\s+direbbe
pt: muit[ao]s?(?:\s+gente)?|alguns|no\s+início|à\s+primeira\s+vista|poderia\w*|primeiro|pensei|pensava|
    (?:a\s+)?minha\s+primeira\s+(?:reação|ideia)|meu\s+primeiro\s+(?:impulso|pensamento|instinto)|ia\s+dizer|
    quase\s+disse|
    dir-se-ia
nl: veel\s+mensen|sommigen|eerst|op\s+het\s+eerste\s+gezicht|aanvankelijk|ik\s+(?:dacht|twijfel\w*)|
    mijn\s+eerste\s+(?:gedachte|reactie|ingeving|idee|impuls)|ik\s+wilde\s+(?:al|bijna)|bijna|
    (?:je|men|ik)\s+zou
pl: wielu|niektórzy|na\s+początku|na\s+pierwszy\s+rzut\s+oka|początkowo|można\s+by|myślał[ae]m|najpierw|
    moj[aą]\s+pierwsz\w+\s+(?:myśl|reakcj|odpowiedź)\w*|w\s+pierwszej\s+chwili|odruchowo|już\s+chciał[ae]m|
    wydawałoby\s+się
ru: многие|некоторые|сначала|на\s+первый\s+взгляд|сперва|я\s+думал\w*|
    мо[йяе]\s+перв\w+\s+(?:мысль|реакция|порыв)|хотел\w*\s+(?:было\s+)?(?:сказать|ответить)|в\s+первый\s+момент|
    казалось\s+бы
zh: 很多人|有人|一开始|乍看|起初|先想到|最初|本来以为|
    第一反应|差点|本想|乍一看|一开始
ja: 多くの人|最初は|一見|昔は|と言いたいところ|と思いきや|
    最初に思い|言いかけ|第一印象
en: my\s+(?:first|initial)\s+(?:reaction|instinct|thought|guess|impulse|idea|answer)|i\s+(?:nearly|almost)|
    i\s+was\s+(?:tempted|about)\s+to
# Words by which another thing is described: it is near what follows.
[relates]
en: (?:(?!other)\w+er|more|less)\s+than|followed\s+by|even|near(?:by)?|close\s+to|next\s+to|outside(?:\s+of)?|
    (?:north|south|east|west)(?:-?(?:east|west))?\s+of|
    (?:km|kilomet(?:er|re)s|miles)\s+from|far\s+from|beside|similar\s+to|unlike|bordering|
    (?:inspired|influenced|taught|illustrated|succeeded|preceded|followed|translated)\s+by|
    (?:falsely|wrongly|mistakenly|incorrectly)\s+(?:attributed|ascribed|credited)\s+to|confused\s+with
de: \w+er\s+als|gefolgt\s+von|sogar|nahe|neben|in\s+der\s+nähe\s+von|(?:nördlich|südlich|östlich|westlich)\s+von|
    ähnlich\s+wie|im\s+gegensatz\s+zu|anders\s+als|verwechselt\s+mit
fr: (?:plus|moins)\s+\w+\s+que|suivie?\s+d[eu]|même|avant\s+(?:les?|la)\s+\w+\s+d[e']|près\s+de|à\s+côté\s+de|
    au\s+(?:nord|sud)\s+de|à\s+l'(?:est|ouest)\s+de|contrairement\s+à|confondu\w*\s+avec
es: más\s+\w+\s+que|seguid[ao]\s+(?:de|por)|incluso|cerca\s+de|junto\s+a|al\s+(?:norte|sur|este|oeste)\s+de|
    a\s+diferencia\s+de|confund\w+\s+con
it: più\s+\w+\s+d[ie]l?|seguit[ao]\s+da|persino|vicino\s+a|accanto\s+a|a\s+(?:nord|sud|est|ovest)\s+di|
    a\s+differenza\s+di|confus[ao]\s+con
pt: mais\s+\w+\s+(?:do\s+)?que|seguid[ao]\s+(?:de|por)|até\s+mesmo|perto\s+de|junto\s+a|(?:ao\s+(?:norte|sul)|
    a\s+(?:leste|oeste))\s+d[eao]s?|ao\s+contrário\s+d[eao]|confund\w+\s+com
nl: \w+er\s+dan|gevolgd\s+door|zelfs|rijden\s+van|nabij|dicht\s+bij|naast|ten\s+(?:noorden|zuiden|oosten|
    westen)\s+van|in\s+tegenstelling\s+tot|anders\s+dan|verward\s+met
pl: \w+\s+niż|nawet|koło|niedaleko|w\s+pobliżu|obok|na\s+(?:północ|południe|wschód|zachód)\s+od|w\s+odróżnieniu\s+od|
    mylon\w+\s+z
ru: рядом\s+с|около|близ|недалеко\s+от|чем|даже|к\s+(?:северу|югу|западу|востоку)\s+от|в\s+отличие\s+от
# Nouns of people by what they are to another, who is named behind them.
[kin]
en: brother|sister|father|mother|wife|husband|widow|son|daughter|cousin|uncle|aunt|nephew|niece|friend|rival|student|
    pupil|teacher|assistant|colleague|successor|predecessor|neighbou?r|contemporary|mentor|disciple
de: bruder|schwester|vater|mutter|frau|mann|sohn|tochter|freund(?:in)?|schüler(?:in)?|lehrer(?:in)?|rival(?:e|in)|
    zeitgenoss(?:e|in)|nachfolger(?:in)?|vorgänger(?:in)?|kolleg(?:e|in)
fr: frère|sœur|père|mère|femme|mari|fils|fille|amie?|élève|rivale?|contemporaine?|successeur|prédécesseur|collègue|
    maître
es: hermano|hermana|padre|madre|esposa|esposo|hijo|hija|amig[oa]|alumn[oa]|rival|contemporáne[oa]|sucesora?|
    predecesora?|colega|maestr[oa]
it: fratello|sorella|padre|madre|moglie|marito|figlio|figlia|amic[oa]|allievo|rivale|contemporane[oa]|successore|
    predecessore|collega|maestro
pt: irmão|irmã|pai|mãe|esposa|marido|filho|filha|amig[oa]|alun[oa]|rival|contemporâne[oa]|sucessora?|predecessora?|
    colega|mestre
nl: broer|zus|vader|moeder|vrouw|man|zoon|dochter|vriend(?:in)?|leerling|rivaal|tijdgenoot|opvolger|voorganger|collega
pl: brat|siostra|ojciec|matka|żona|mąż|syn|córka|przyjaciel|uczeń|rywal|następca|poprzednik|kolega
ru: (?:друг|ученик|сын|брат|отец|жена|муж|сестра|дочь|соперник|современник|преемник|предшественник)\w?
zh: 好?朋友|好友|哥哥|弟弟|姐姐|妹妹|父亲|母亲|妻子|丈夫|儿子|女儿|学生|老师|对手|后任|前任
ja: 兄|弟|姉|妹|父|母|妻|夫|息子|娘|友人|弟子|師|ライバル|後継者
# Words for what a question for a name may ask for.
[roles]
en: answer|author|writer|poet|painter|composer|inventor|founder|discoverer|capital|director|architect
de: autor(?:in)?|verfasser(?:in)?|dichter(?:in)?|maler(?:in)?|komponist(?:in)?|erfinder(?:in)?|gründer(?:in)?|hauptstadt
fr: auteure?|écrivain|poète|peintre|compositeur|inventeur|fondateur|capitale
es: autora?|escritora?|poeta|pintora?|compositora?|inventora?|fundadora?|capital
it: autore|autrice|scrittore|poeta|pittore|compositore|inventore|fondatore|capitale
pt: autora?|escritora?|poeta|pintora?|compositora?|inventora?|fundadora?|capital
nl: auteur|schrijver|dichter|schilder|componist|uitvinder|stichter|hoofdstad
pl: autor(?:ka|em)?|pisarz|poeta|malarz|kompozytor|wynalazca|założyciel|stolic[aą]
ru: автор|писатель|поэт|художник|композитор|изобретатель|основатель|столица
zh: 作者|作家|诗人|画家|作曲家|发明者|创始人|首都
ja: 作者|著者|詩人|画家|作曲家|発明者|創設者|首都
# Adjectives behind a name that make another name of it.
[directions]
en: equatorial|proper
fr: équatoriale?|du\s+(?:nord|sud)|orientale?|occidentale?|centrale?
es: ecuatorial|del\s+(?:norte|sur)|oriental|occidental
it: equatoriale|del\s+(?:nord|sud)|orientale|occidentale
pt: equatorial|do\s+(?:norte|sul)|oriental|ocidental
pl: równikow\w+|północn\w+|południow\w+|wschodni\w*|zachodni\w*
# Words that begin a clause about what is named before it.
[relatives]
en: who|whom|which|whose|where
de: der|die|das|dem|den|dessen|deren|welche[rsnm]?|wo
fr: qui|que|qu'\w+|dont|où
es: que|quien|cuy[ao]|donde
it: che|cui|dove
pt: que|cuj[ao]|onde|quem
nl: die|dat|waar|wie
pl: któr\w+|gdzie
ru: котор\w+|где
# Words behind what another thing is described by.
[related]
de: \s+nach\s+[^\W\d]
nl: \s+naar\s+[^\W\d]
zh: 以?[东西南北]边?|附近|旁边
ja: [都市県府]?の(?:[東西南北]|近く|隣|そば)
# Words that make another name of the name behind or before them.
[names_another]
en: new|old|north|south|east|west|upper|lower|port|fort|little|mount|lake|cape|saint|st\.?|san|santa
de: neu|alt|ober|unter|bad|groß|klein|sankt
fr: nouvelle|(?<!de\s)(?<!à\s)nouveau|vieux|vieille|haute?|basse?|saint-?|mont|port
es: (?<!de\s)nuev[ao]|viej[ao]|puerto|villa|monte
it: (?<!di\s)nuov[ao]|vecchi[ao]|porto|monte
pt: (?<!de\s)nov[ao]|velh[ao]
nl: nieuw|oud|groot|klein
pl: now[aye]|star[aye]|wielk[aiye]|mał[aye]
ru: нов\w{2}|стар\w{2}|больш\w{2}|мал\w{2}|велик\w{2}|нижн\w{2}|верхн\w{2}
# Numbers in words: 0 to 20, 30, 40 and so on to 90, 100, 1000 and 1000000, then 200 to 900; a dash leaves one out.
[counts]
en: zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
de: null ein|eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn
    siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend
    million(?:en)?
fr: zéro un|une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept
    dix-huit dix-neuf vingt|vingts trente quarante cinquante soixante septante quatre-vingts?|huitante nonante
    cents? mille millions?
es: cero un[oa]? dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis
    diecisiete dieciocho diecinueve veinte|veinti treinta cuarenta cincuenta sesenta setenta ochenta noventa
    cien|ciento mil mill(?:ón|ones) doscient[oa]s trescient[oa]s cuatrocient[oa]s quinient[oa]s seiscient[oa]s
    setecient[oa]s ochocient[oa]s novecient[oa]s
it: zero un[oa]? due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici
    sedici diciassette diciotto diciannove venti? trenta? quaranta? cinquanta? sessanta? settanta? ottanta?
    novanta? cento mille|mila milion[ei]
pt: zero um|uma dois|duas três quatro cinco seis sete oito nove dez onze doze treze quatorze|catorze quinze
    dezesseis|dezasseis dezessete|dezassete dezoito dezenove|dezanove vinte trinta quarenta cinquenta sessenta setenta
    oitenta noventa cem|cento mil milh(?:ão|ões) duzent[oa]s trezent[oa]s quatrocent[oa]s quinhent[oa]s seiscent[oa]s
    setecent[oa]s oitocent[oa]s novecent[oa]s
nl: nul een|één twee|tweeën drie|drieën vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien
    zestien zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig honderd
    duizend miljoen
pl: zero jed(?:en|nego) dwa|dwie|dwóch trzy|trzech cztery|czterech pięć|pięciu sześć siedem osiem dziewięć dziesięć
    jedenaście dwanaście trzynaście czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście
    dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt dziewięćdziesiąt
    sto tysiące?|tysięcy milion(?:y|ów)? dwieście trzysta czterysta pięćset sześćset siedemset osiemset dziewięćset
ru: нол[ья]\w*|нул[ьюя]\w* один|одн\w{1,3} два|две|двух|двум три|тр[её]х четыр\w{1,3} пят[ьи] шест[ьи] сем[ьи]
    восемь|восьми девят[ьи] десят[ьи] одиннадцат[ьи] двенадцат[ьи] тринадцат[ьи] четырнадцат[ьи] пятнадцат[ьи]
    шестнадцат[ьи] семнадцат[ьи] восемнадцат[ьи] девятнадцат[ьи] двадцат[ьи] тридцат[ьи] сорока? пятьдесят|пятидесяти
    шестьдесят|шестидесяти семьдесят|семидесяти восемьдесят|восьмидесяти девяност[оа] ст[оа] тысяч\w? миллион\w{0,2}
    двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот
zh: 零|〇 一 二|两 三 四 五 六 七 八 九 十 - - - - - - - - - - - - - - - - - 百 千
# Endings of a number in words that is a half more, and words for one and a half.
[halves]
de: einhalb anderthalb|eineinhalb
fr: \s+et\s+demie? (?!)
es: \s+y\s+medi[oa] (?!)
it: \s+e\s+mezz[oa] (?!)
pt: \s+e\s+mei[oa] (?!)
nl: ënhalf|enhalf|eneenhalf anderhal(?:f|ve)
pl: \s+i\s+pół półtor(?:a|ej)
ru: \s+с\s+половиной полтор(?:а|ы)
# Parts of one: a half to a tenth.
[parts]
de: hälfte|(?<!ein)halbe?s? drittel viertel fünftel sechstel siebtel achtel neuntel zehntel
fr: moitié|demie? tiers quarts? cinquièmes? sixièmes? septièmes? huitièmes? neuvièmes? dixièmes?
es: mitad|medi[ao] tercios? cuart[oa]s? quint[oa]s? sext[oa]s? séptim[oa]s? octav[oa]s? noven[oa]s? décim[oa]s?
it: metà|mezz[oa] terz[oi] quart[oi] quint[oi] sest[oi] settim[oi] ottav[oi] non[oi] decim[oi]
pt: metade|mei[oa] terços? quartos? quintos? sextos? sétimos? oitavos? nonos? décimos?
nl: helft|halve derden?|derde kwart|vierden? vijfden? zesden? zevenden? achtsten? negenden? tienden?
pl: połow[aęy]|pół trzeci\w{0,2} czwart\w{1,3} piąt\w{1,3} szóst\w{1,3} siódm\w{1,3} ósm\w{1,3} dziewiąt\w{1,3}
    dziesiąt\w{1,3}
ru: половин[аыуе]\w? трет[ьие]\w{0,2} четверт[ьиы]\w{0,2}|
    четвёрт\w{2} пят[ыа]\w{1,2} шест[ыа]\w{1,2} седьм\w{2} восьм[ыа]\w{1,2} девят[ыа]\w{1,2} десят[ыа]\w{1,2}
"""
#: Such words that are articles, and words of other languages; they count within longer numbers, or where others do.
NO_COUNTS = r"null|ein|une?|un[oa]|uma?|een"
AMBIGUOUS = r"once|due|sei|elf|cents?|mille|mil|zero|dix|tres|acht|six|sept|vier|seis|nove|sette|sto|million|non[oi]"
#: Words between those of one number.
COUNTS_JOINED = r"(?:\s?(?:and|und|et|y|e|en|i)\s?|,\s|[\s-]|)"
#: Such words that are words of English, and count beside other numbers alone.
ENGLISH_WORDS = ("once", "due")


def _tables(text: str) -> Mapping[str, Words]:
    """Return the words of each construction by language."""
    tables: dict[str, dict[str, str]] = {}
    for line in text.replace("|\n    ", "|").replace("\n    ", " ").splitlines():
        if line.startswith("["):
            name = line.strip("[]")
            tables[name] = {}
        elif line and not line.startswith("#"):
            language, _, words = line.partition(": ")
            tables[name][language] = words
    return tables


#: Words by the name of a construction and by language.
WORDS = _tables(_TABLES)


#: Tables that a pattern names, and languages that are left out.
_NAMED = re.compile(r"⟨([a-z_ ]+)((?: -[a-z]{2})*)⟩")


@functools.cache
def with_words(pattern: str, languages: frozenset[str] = frozenset()) -> str:
    """Return a pattern with the words of constructions for their names: ``⟨states links -en⟩`` leaves out English.

    Args:
        languages: Languages whose words are taken; all if it is empty.
    """

    def words(match: re.Match[str]) -> str:
        return either(match[1].strip(), tuple(match[2].replace("-", "").split()), languages)

    return _NAMED.sub(words, pattern)


def word_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that names constructions, compiled at its first use."""
    return lazy_pattern(text, flags, read=with_words)


@functools.lru_cache(maxsize=256)
def pattern_in(languages: frozenset[str], text: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Return a pattern with the words of some languages alone: "o" is "or" in Spanish and "the" in Portuguese."""
    return re.compile(with_words(text, languages), flags)


@functools.cache
def either(names: str, but: tuple[str, ...] = (), languages: frozenset[str] = frozenset()) -> str:
    """Return a pattern of all words of constructions, whole words where the language has spaces.

    Args:
        names: Names of tables with spaces between them.
        but: Languages that are left out.
        languages: Languages that are taken; all if it is empty.
    """
    rows = []
    for language, words in itertools.chain.from_iterable(WORDS[name].items() for name in names.split()):
        if language not in but and (not languages or language in ("", *languages)):
            rows.append((language, words))
    return with_words(any_of(rows), languages)


Replacement = str | Callable[[re.Match[str]], str]


def replacements(text: str, **functions: Callable[[re.Match[str]], str]) -> list[tuple[re.Pattern[str], Replacement]]:
    """Return the rows of a table of patterns and what replaces them, in order.

    Args:
        text: A line for each row, ``PATTERN => REPLACEMENT``, with ``␣`` for a space
            at an end and ``@NAME`` for a function.
    """
    rows: list[tuple[re.Pattern[str], Replacement]] = []
    for line in text.strip("\n").splitlines():
        pattern, _, replacement = line.partition(" =>")
        if not line.startswith("#"):
            rows.append((word_pattern(pattern), functions.get(replacement[2:], replacement[1:].replace("␣", " "))))
    return rows


def replaced(text: str, rows: Iterable[tuple[re.Pattern[str], Replacement]]) -> str:
    """Return a text after the replacements of a table."""
    for pattern, replacement in rows:
        text = pattern.sub(replacement, text)
    return text


def any_of(rows: Iterable[tuple[str, str]]) -> str:
    """Return a pattern of words, given with their languages; of none, one that matches nothing."""
    whole: list[str] = []
    parts: list[str] = []
    for language, words in rows:
        (parts if language in _UNSPACED else whole).append(words)
    if whole:
        parts.insert(0, rf"(?<!{_LETTER})(?:{'|'.join(whole)})(?!{_LETTER})")
    return f"(?:{'|'.join(parts) or '(?!)'})"
