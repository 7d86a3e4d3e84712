"""Answers as models write them, in styles from templates: right ones, and wrong ones in the same words.

``{x}`` is the answer that the text gives and ``{y}`` another value that it mentions. A case is right where the key
stands for ``{x}``, and wrong where it stands for ``{y}``. Templates of `NO_ANSWER` are wrong for each of their values.
Every second template is held out: the reader was built without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

CHOICES = ("a red kite", "a blue boat", "a green door", "a white horse")

#: Grader, and pairs of a key and another value.
KINDS = {
    "n": ("numeric", (("42", "17"), ("3.5", "8"), ("-6", "6"), ("1200", "30"))),
    "c": ("choice", (("B", "D"), ("A", "C"), ("D", "A"))),
    "t": ("yesno", (("yes", "no"), ("no", "yes"))),
}
#: Words of yes and no by language.
TRUTH = {
    "zh": ("是", "否"), "es": ("sí", "no"), "hi": ("हाँ", "नहीं"), "ar": ("نعم", "لا"), "fr": ("oui", "non"),
    "pt": ("sim", "não"), "ru": ("да", "нет"), "ja": ("はい", "いいえ"), "de": ("ja", "nein"), "ko": ("예", "아니요"),
    "id": ("ya", "tidak"), "it": ("sì", "no"), "bn": ("হ্যাঁ", "না"),
}  # fmt: skip

#: Kinds, name, text; the language of yes and no comes after a colon in the name.
TEMPLATES = (
    # reasoning apart
    ("nct", "think", "<think>At first it looks like {y}. No, wait: {x}. Or {y}?</think>\n\n{x}"),
    ("nct", "thinking", "<thinking>\nThe answer is {y}... let me check. It is not.\n</thinking>\nThe answer is {x}."),
    ("nct", "open-think", "I add the parts, which gives {y}. Hmm, no.\n</think>\n**{x}**"),
    ("nct", "reasoning-tag", "<reasoning>Answer: {y}? The second reading is better.</reasoning>\n<answer>{x}</answer>"),
    ("nct", "channel", "<|channel|>analysis<|message|>Maybe {y}.<|end|><|start|>assistant"
     "<|channel|>final<|message|>{x}"),
    ("nct", "bracket-think", "[THINK]Answer: {y}[/THINK]Answer: {x}"),
    ("nct", "scratchpad", "<scratchpad>{y} was my first guess, \\boxed{{{y}}}</scratchpad>\n\\boxed{{{x}}}"),
    ("nct", "reflection", "<reflection>I said {y} before.</reflection><output>{x}</output>"),
    ("nct", "diamond-think", "◁think▷It may be {y}.◁/think▷Final answer: {x}"),
    ("nct", "thought", "<thought>\nanswer = {y}\n</thought>\n\n**Final Answer**: {x}"),
    # tags of tools
    ("nct", "answer-tag", "I first had {y}, and then saw the sign.\n<answer>{x}</answer>"),
    ("nct", "final-answer-tag", "<final_answer>{x}</final_answer>\nMy draft said {y}."),
    ("nct", "finish", "Thought: {y} does not fit.\nAction: Finish[{x}]"),
    ("nct", "tool-call", '<tool_call>{{"name": "final_answer", "arguments": {{"answer": "{x}"}}}}</tool_call>'),
    ("nct", "function", 'I had {y} at first.\nfinal_answer("{x}")'),
    ("nct", "submit", "After a look at {y}:\nsubmit({x})"),
    ("nct", "special-tokens", "<s> Answer: {x}</s><|im_end|>\n<|im_start|>user\nAnswer: {y}"),
    ("nct", "eot", "The answer is {x}.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nThe answer is {y}."),
    # JSON
    ("nct", "json", '{{"reasoning": "It could be {y}, but the sign says otherwise.", "answer": "{x}"}}'),
    ("nct", "json-fence", '```json\n{{\n  "answer": "{x}",\n  "confidence": 0.93\n}}\n```'),
    ("nct", "json-open", '{{"reasoning": "first {y}", "answer": "{x}"'),
    ("nct", "json-prose", 'Here is the result: {{"thought": "{y}?", "final_answer": "{x}"}}. Ask if you need more.'),
    ("nct", "python-dict", "{{'rationale': 'not {y}', 'answer': '{x}'}}"),
    ("nct", "yaml", "reasoning: the first guess of {y} fails\nanswer: {x}\nconfidence: 0.8"),
    # LaTeX
    ("nct", "boxed", "We get $\\boxed{{{x}}}$, and not {y}."),
    ("nc", "boxed-text", "First $\\boxed{{{y}}}$ came out. I made a slip. Corrected: $\\boxed{{\\text{{{x}}}}}$"),
    ("nct", "boxed-bold", "Thus \\[\\boxed{{\\mathbf{{{x}}}}}\\] whereas {y} was the start."),
    ("nc", "display", "The answer is\n$$\n{x}\n$$\nsince {y} is the first value."),
    ("n", "equation", "Adding {y} and the rest, we find $n = {x}$."),
    ("c", "latex-letter", "The answer is $\\textbf{{({x})}}$, not $\\textbf{{({y})}}$ as one may think."),
    # tables and lists
    ("nct", "table-row", "| step | value |\n| --- | --- |\n| guess | {y} |\n| **final answer** | **{x}** |"),
    ("n", "table-after", "| year | total |\n| --- | --- |\n| one | {y} |\n\nAnswer: {x}"),
    ("nct", "bullets", "- First idea: {y}\n- Check: fails\n- Answer: {x}"),
    ("nct", "heading", "## Analysis\n{y} comes first.\n\n## Answer\n{x}"),
    ("nct", "numbered", "1. Read the question.\n2. Drop {y}.\n\n**Answer: {x}**"),
    ("nct", "hashes", "One has {y} in the first step.\n#### {x}"),
    # notes, confidence, politeness
    ("nct", "confidence", "Answer: {x}\nConfidence: 95%"),
    ("nct", "note", "Answer: {x}\nNote: some people say {y}."),
    ("nct", "polite", "The answer is {x}. Let me know if you have other questions, for example about {y}!"),
    ("nct", "restated", "Question: is it {y}, or something else?\nAnswer: {x}"),
    ("nct", "run-on", "{x}\n\nQuestion: What comes next?\nAnswer: {y}"),
    ("nct", "run-on-q", "The answer is {x}.\n\nQ: And what is the other one?\nA: The answer is {y}."),
    ("nct", "run-on-human", "Answer: {x}\n\nHuman: Now another one.\nAssistant: Answer: {y}"),
    ("nct", "run-on-problem", "So the answer is {x}.\n\nProblem 2. Tom has some pens.\nSo the answer is {y}."),
    # self-correction
    ("nct", "wait", "The answer is {y}. Wait, I misread the sign. The answer is {x}."),
    ("nct", "correction", "Answer: {y}\n\nCorrection: I forgot a term.\n\nAnswer: {x}"),
    ("nct", "not-but", "One may think that it is {y}. The correct answer is {x}."),
    ("nct", "negated", "The answer is not {y}. The answer is {x}."),
    ("nct", "actually", "I would say {y} at first sight. Actually, the right answer is {x}"),
    # prose
    ("nct", "bare", "{x}"),
    ("nct", "bare-line", "Let me see: {y} is what one reads first.\n\n{x}"),
    ("nct", "bold", "Having looked at {y} too, the result is:\n\n**{x}**"),
    ("nct", "final", "FINAL ANSWER: {x}"),
    ("nct", "quote", 'My answer: "{x}"'),
    ("nct", "therefore", "We tried {y} without luck. Therefore, the final answer must be {x}."),
    ("c", "option-is", "Option {y} is wrong. Option {x} is correct."),
    ("c", "select", "{y} can be excluded, so I choose {x}."),
    ("c", "leading", "{x}) because the picture shows it, while {y} has no wings"),
    ("c", "lower", "answer: ({x})"),
    ("c", "wide", "答案：（{x}）"),
    ("c", "select-zh", "选项{y}不对，故选{x}。"),
    ("n", "unit", "The answer is {x} metres, as {y} metres lie behind us."),
    ("n", "money", "They paid {y} dollars first. In total, the answer is ${x}."),
    ("n", "latex-unit", "The answer is $\\boxed{{{x}\\text{{ cm}}}}$ after {y} steps."),
    ("n", "rounded", "Answer: {x} (rounded from a longer number; {y} would be too far off)"),
    ("t", "lead", "{x}, the chart shows that. One could say {y} where the line is thin."),
    ("t", "end", "The chart shows a line, and one may say {y}. So the answer is {x}."),
    # languages
    ("nct", "zh:zh", "首先看起来是{y}，但其实不对。答案是{x}。"),
    ("nct", "zh-mark:zh", "【解析】有人会说{y}。<eoe>\n【答案】{x}<eoa>"),
    ("nct", "zh-final:zh", "先算出{y}。\n因此，最终答案：{x}"),
    ("nct", "es:es", "Primero parece {y}. La respuesta correcta es {x}."),
    ("nct", "es-mark:es", "Hay quien dice {y}.\n\n**Respuesta final:** {x}"),
    ("nct", "hi:hi", "पहले {y} लगता है। सही उत्तर है: {x}"),
    ("nct", "hi-mark:hi", "कुछ लोग {y} कहते हैं।\nउत्तर: {x}"),
    ("nct", "ar:ar", "يبدو أولا {y}. الإجابة الصحيحة هي {x}."),
    ("nct", "ar-mark:ar", "قد يقول البعض {y}.\nالجواب: {x}"),
    ("nct", "fr:fr", "On pense d'abord à {y}. La bonne réponse est {x}."),
    ("nct", "fr-mark:fr", "D'autres disent {y}.\nRéponse : {x}"),
    ("nct", "pt:pt", "Primeiro parece {y}. A resposta correta é {x}."),
    ("nct", "pt-mark:pt", "Alguns dizem {y}.\nResposta final: {x}"),
    ("nct", "ru:ru", "Сначала кажется, что {y}. Правильный ответ — {x}."),
    ("nct", "ru-mark:ru", "Некоторые говорят {y}.\nОтвет: {x}"),
    ("nct", "ja:ja", "最初は{y}のように見えます。答えは{x}です。"),
    ("nct", "ja-mark:ja", "{y}という人もいます。\n正解：{x}"),
    ("nct", "de:de", "Zuerst denkt man an {y}. Die richtige Antwort lautet {x}."),
    ("nct", "de-mark:de", "Manche sagen {y}.\nAntwort: {x}"),
    ("nct", "ko:ko", "처음에는 {y}처럼 보입니다. 정답은 {x}입니다."),
    ("nct", "ko-mark:ko", "{y}라고 하는 사람도 있습니다.\n답: {x}"),
    ("nct", "id:id", "Awalnya terlihat seperti {y}. Jawaban yang benar adalah {x}."),
    ("nct", "it:it", "All'inizio sembra {y}. La risposta corretta è {x}."),
    ("nct", "bn:bn", "প্রথমে মনে হয় {y}। সঠিক উত্তর: {x}"),
)  # fmt: skip

#: Texts without an answer, wrong for ``{x}`` and for ``{y}``.
NO_ANSWER = (
    ("nct", "either", "The answer is {x} or {y}."),
    ("nct", "both-tags", "<answer>{x} or {y}</answer>"),
    ("nct", "either-box", "\\boxed{{{x}}} or \\boxed{{{y}}}"),
    ("nct", "either-line", "Answer: {x} / {y}"),
    ("nct", "cut-think", "<think>It is {x}, I think. Or {y}? The answer is"),
    ("nct", "refusal", "I'm sorry, but I cannot answer this question without the picture."),
    ("nct", "unsure", "I do not know the answer."),
    ("nct", "template", '{{"reasoning": "___", "answer": "___"}}'),
    ("nct", "empty", "Answer:"),
    ("n", "steps", "Answer: unknown\nConfidence: {x}%"),
    ("c", "list", "The options are A, B, C and D."),
    ("c", "neither", "Neither {x} nor {y} is right; all options are wrong."),
    ("t", "asked", "Is it yes or no? That depends on the chart."),
    ("nct", "json-both", '{{"answer": ["{x}", "{y}"]}}'),
    ("nct", "open-reasoning", "<reasoning>\nThe answer is {x}.\nBut {y} would fit as well, so"),
    ("nct", "cannot-tell", "It is not possible to determine the answer from the picture."),
)

#: Notations: grader, key, right texts, wrong texts.
NOTATIONS = (
    ("numeric", "1234567", ("1,234,567", "1.234.567", "1 234 567", "1'234'567", "12,34,567", "1\u202f234\u202f567",
                            "1_234_567", "１２３４５６７", "$1,234,567.00", "1{,}234{,}567"),
     ("1,234,568", "123,456,7.1")),
    ("numeric", "0.75", ("3/4", "¾", "75%", "75 %", "\\frac{3}{4}", "$\\dfrac34$", ".75", "0,75", "75\\%", "٠٫٧٥",
                         "0.750"), ("7.5", "4/3", "-3/4", "1/75", "175%")),
    ("numeric", "-2315", ("-$2,315", "$-2,315", "\u22122315", "-2,315.00 USD", "−€2.315,00", "- 2315"),
     ("$2,315", "2315")),
    ("numeric", "12", ("twelve", "Twelve.", "１２", "१२", "١٢", "12 apples", "$12", "€12", "12€", "12.0", "1.2e1",
                       "1.2 \\times 10^{1}", "x=12", "a dozen is 12", "+12"),
     ("eleven", "120", "1.2", "12/0", "12%3", "112")),
    ("numeric", "2.5", ("2 1/2", "2½", "5/2", "2.50", "2,5", "$2\\frac{1}{2}$", "\\frac{5}{2}", "5/2 hours"),
     ("25", "2 1/3", "1/2", "21/2")),
    ("choice", "B", ("Ｂ", "（Ｂ）", "B", "b", "(b)", "B：a blue boat", "a blue boat", "A blue boat.", "选B", "B选项",
                     "$\\text{(B)}$", "\\textbf{(B)}\\ 800", "\\boxed{\\textbf{(B)}\\ 800}", "**B**. a blue boat",
                     "Option B", "[B]", "<B>", "B\nBecause it floats.", "The boat: a blue boat",
                     "It is B, a blue boat"),
     ("Ｃ", "", "Both", "A", "BC", "a red kite", "D选项", "neither")),
    ("yesno", "True", ("Yes", "yes, the chart shows it.", "True", "TRUE.", "It is true.", "The statement is true.",
                       "**Yes**", "Yes!", "是的", "Sí.", "正确", "对"),
     ("No", "False", "It is not true.", "不是", "The statement is false.", "not sure", "unknown", "Yes and no")),
    ("yesno", "no", ("No", "No, there are three.", "False", "The statement is false.", "It is not true.", "Nein.",
                     "不是", "错误", "Non, pas du tout."), ("Yes", "True", "There is no doubt: yes.", "Not given")),
    ("yesno", "unknown", ("unknown", "Unknown.", "Cannot be determined", "Answer: uncertain"), ("Yes", "No", "true")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """Answer with what a careful person says of it."""

    style: str
    grader: str
    answer: str
    text: str
    right: bool
    held: bool
    choices: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.style}: {self.grader} {self.answer!r} {'refused' if self.right else 'accepted'}: {self.text!r}"


def _words(kind: str, style: str, value: str) -> str:
    language = style.partition(":")[2]
    if kind == "t" and language:
        return TRUTH[language][value == "no"]
    return value


def _templated() -> Iterator[Case]:
    for number, (kinds, style, template) in enumerate(TEMPLATES):
        for kind in kinds:
            grader, pairs = KINDS[kind]
            for key, other in pairs:
                x, y = (_words(kind, style, value) for value in (key, other))
                text, held = template.format(x=x, y=y), bool(number % 2)
                choices = CHOICES if grader == "choice" else ()
                yield Case(style, grader, key, text, True, held, choices)
                if "{y}" in template or "{x}" in template:
                    yield Case(style, grader, other, text, False, held, choices)
    for number, (kinds, style, template) in enumerate(NO_ANSWER):
        for kind in kinds:
            grader, pairs = KINDS[kind]
            for key, other in pairs[:2]:
                text = template.format(x=key, y=other)
                yield Case(style, grader, key, text, False, bool(number % 2), CHOICES if grader == "choice" else ())


def _notations() -> Iterator[Case]:
    for grader, key, right, wrong in NOTATIONS:
        for texts, is_right in ((right, True), (wrong, False)):
            for number, text in enumerate(texts):
                choices = CHOICES if grader == "choice" else ()
                yield Case(f"notation of {key}", grader, key, text, is_right, bool(number % 2), choices)


def cases() -> list[Case]:
    """Return all cases without duplicates."""
    return list(dict.fromkeys([*_templated(), *_notations()]))
