"""Names by which published data sets call the parts of a question, the most telling first."""

from __future__ import annotations

import re
from collections.abc import Mapping


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Names of fields for each key of a mapping, in small letters and digits.
NAMES: Mapping[str, tuple[str, ...]] = {
    "messages": _words(
        """
        messages conversation conversations chat turns
        """
    ),
    "question": _words(
        """
        question questionstem stem questiontitle squestion problem
        problemstatement query prompt inputprompt input inputs q ctx goal sentence statement claim
        clue riddle hypothesis sentence2 sent2 text2 instruction instructions task text content title userprompt
        frage pregunta pertanyaan startphrase utterance conclusion citingprompt domanda questão вопрос soru
        otázka 질문 问题 題目 题目 質問 سؤال السؤال प्रश्न kysymys fråga spørsmål pytanie întrebare vraag câuhỏi kérdés
        swali ερώτηση questions queries problems
        """
    ),
    "context": _words(
        """
        instruction instructions definition taskdescription taskdefinition taskinstruction taskprefix system
        systemprompt passage context contexts story article paragraph background body premise document
        situation scenario florespassage dialogue dialog excerpt abstract material text hint statement input
        case introduction narrative rule rules description premises theory law statute statutes patientnote
        pretext posttext sentence1 sent1 text1
        """
    ),
    "answer": _words(
        """
        answerkey answeridx answerindex correctansweridx correctanswerindex correctindex correctidx
        correctchoiceidx correctchoiceindex correctanswernum answerletter correctoption correctletter
        answeroption correctanswer correctchoice bestanswer correct finalanswer final expectedanswer
        goldanswer goldenanswer standardanswer referenceanswer answer shortanswer targettext target
        targetvalue groundtruth gtanswer gt gold goldlabel goldindex goldidx finaldecision labeltext labelname
        label cop expectedoutput expected ideal answernumber ans output outputs solution reference response
        continuation completion rightanswer answerrightending antwort respuesta verdict class sentiment labels
        assert asserts codes correctoptions correctchoices groundtruthanswer exactanswer ra risposta resposta réponse
        ответ cevap odpověď 정답 答案 回答 答え الجواب الإجابة उत्तर vastaus svar odpowiedź antwoord răspuns đápán válasz
        jibu απάντηση
        """
    ),
    "accepted": _words(
        """
        answers targets references directanswers lsolutions possibleanswers acceptedanswers acceptableanswers
        goldenanswers goldanswers validanswers referenceanswers correctanswers groundtruths aliases alias
        answeraliases anyof acceptable accepted alternativeanswers answeralternatives respuestas respostas risposte
        réponses antworten odpowiedzi ответы antwoorden svaren vastaukset válaszok
        """
    ),
    "choices": _words(
        """
        choices options endings candidates alternatives answerchoices answeroptions mcoptions choicelist
        optionlist questionchoices multiplechoicetargets mc1targets targetscores questionoptions
        candidateanswers opts choice opciones optionen opzioni opções варианты seçenekler secenekler možnosti
        选项 選項 選択肢 보기 선택지 vaihtoehdot alternativer الخيارات विकल्प
        """
    ),
    "images": _words(
        """
        image images imagepath imagepaths img imgpath imagename imagefile imgname imgs imageurl picture figure
        decodedimage imagefilename imagebytes imagelist photo
        """
    ),
    "unit": _words(
        """
        unit units answerunit scale
        """
    ),
    "tools": _words(
        """
        tools functions function availabletools apis
        """
    ),
    "category": _words(
        """
        category subject domain topic task subset subcategory subfield l2category subjectname topicname
        subdomain subtopic type questiontype skill discipline field genre level difficulty
        """
    ),
    "id": _words(
        """
        id questionid qid uid uniqueid pid taskid sampleid exampleid problemid itemid dataid docid guid
        idstring queryid index idx ind key no questionnumber number
        """
    ),
}
#: Wrong alternatives, and columns of one alternative each.
DISTRACTORS = re.compile(r"(distractors?|incorrect(answers?|choices?|options?)?|wrong(answers?|choices?|options?)?)\d*")
COLUMNS = re.compile(
    r"(?i)(|(?:mc[ _]?)?(?:choices?|options?|opt?|answers?|ans|endings?|sol|solution|alternatives?|candidates?))[ _.-]?"
    r"\(?(\d{1,2}|[A-Ja-j])[).:]?"
)
NUMBERED = re.compile(r"(\D+?)[ _-]?(\d)")
#: Names of questions in a list within a record.
ASKED = frozenset(_words("question problem prompt query stem"))
#: Names of lists of questions, each with an answer of its own.
QUESTIONS = frozenset(_words("questions queries problems instructions"))
#: Names of answers that say which of several choices is right.
INDEX = re.compile(r"label|id?x|index|key|letter|num|option|choice")
#: Names of answers that say the place of one in a list.
PLACE = re.compile(r"id?x\Z|index")
#: Names of accepted answers beside an answer.
SPELLINGS = re.compile(r"alias|accept|possible|valid|alternative|anyof")
#: Names inside an object or a list that is an answer, and those of accepted answers beside it.
WITHIN_ANSWER = ("text", "texto", "texte", "testo", "value", "answer", "content", "label", "output")
#: Names inside an answer that names a choice.
LABELS = ("key", "label", "letter", "option", "id")
#: Graders for the types of assertions of promptfoo.
ASSERTIONS = {
    "equals": "exact",
    "contains": "contains",
    "icontains": "contains",
    "regex": "regex",
    "is-json": "schema",
    "llm-rubric": "judge",
}
#: Names of answers that may also be what a model replied.
REPLIES = ("response", "output", "outputs", "completion")
#: Names of fields that say of each record whether its answer is right, or whether it has one.
FLAGS = re.compile(r"label|(is|has)?(correct|right|impossible|answerable|unanswerable|answer)(answer)?|correctness")
#: Words of fields that name sound or video.
MEDIA = frozenset(_words("video videos audio sound clip"))
#: Answers that say who is for something, which a question has to name.
STANCES = frozenset(_words("pro con favor favour against support oppose agree disagree for"))
#: Words of fields that say what is to be done, and are no material.
INSTRUCTING = frozenset(_words("instruction instructions definition task system prompt"))
#: Names of texts that ask nothing by themselves.
PLAIN = frozenset(
    _words("sentence statement claim text content title premise hypothesis sentence1 sentence2 sent1 sent2 text1 text2")
)
#: Words of fields about what is shown beside a text.
SHOWN = frozenset(
    _words("image images photo photos picture pictures figure figures diagram diagrams chart charts table tables")
)
#: Words of fields that a question may need.
_NEEDED = frozenset(
    _words("""
    code snippet program function functions context contexts passage passages article story paragraph paragraphs
    document documents premise hypothesis background scenario situation dialogue dialog conversation history excerpt
    table figure image images diagram picture option options choices schema constraint constraints input inputs
    sentence sentences text statement statements equation rule rules fact facts evidence instruction instructions
    definition description file filename attachment attachments unit units
    """)
)
#: Words of fields that belong to an answer, or say something about the question.
_ABOUT = frozenset(
    _words("""
    explanation explanations rationale rationales reasoning solution solutions cot steps proof source url link license
    author authors year date split answer answers target output response id idx index hash keywords metadata meta tags
    difficulty level category subject topic type canary justification justifications analysis annotation annotations
    annotated template templates sql equation equations eval evaluation tests unittest unittests assertions feedback
    formula derivation reason reasons comment comments note notes remark remarks
    """)
)
#: Names of tests that a program has to pass, which show what it returns.
_TESTS = frozenset(_words("test testlist testcode testcase testcases testsetup hiddentest"))
#: Texts that name a file of material.
FILE_NAME = re.compile(r"\S+\.(?:csv|tsv|json|txt|html?|xml|pdf|md|docx?|xlsx)")
#: Words of fields that name a record or a file, and of fields and files that have answers.
_FILES = frozenset(_words("file filename attachment attachments path"))
_REFERENCES = frozenset(_words("id idx index")) | _FILES
ANSWERING = frozenset(
    _words("answer answers key keys gold truth label labels target targets output outputs solution correct query sql")
)
#: Words of fields that say something about an answer, and are none.
MEASURED = frozenset(_words("confidence score probability count number start end type id not"))
_NOT_NEEDED = _ABOUT - {"id", "idx", "index", "source"} | {"is", "has", "includes"}


def normal(key: str) -> str:
    """Return a field's name in small letters and digits."""
    return re.sub(r"[\W_]", "", key.casefold())


def bare(key: str) -> str:
    """Return a field's name in small letters and digits, without a word for text at its end, as in ``query_text``."""
    return re.sub(r"(?<=.)(text|content|string)\Z", "", normal(key))


def is_needed(key: str) -> bool:
    """Return whether a field's name says that a question may need it, such as ``code_snippet`` or ``rule_id``."""
    words = words_of(key)
    return bool(words & (_NEEDED | MEDIA)) and not (words & _NOT_NEEDED or normal(key) in _TESTS)


def is_reference(key: str) -> bool:
    """Return whether a field's name says that it names something else: a record or a file."""
    return bool(words_of(key) & _REFERENCES)


def is_file(key: str) -> bool:
    """Return whether a field's name says that it names a file."""
    return bool(words_of(key) & _FILES)


def is_about(key: str) -> bool:
    """Return whether a field's name says that it belongs to the answer, or is about the question."""
    return bool(words_of(key) & _ABOUT) or normal(key) in _TESTS


def words_of(key: str) -> frozenset[str]:
    """Return the words in a name such as ``rule_id`` or ``codeSnippet``, and the whole name."""
    separated = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()
    return frozenset(re.findall(r"[^\W\d_]+", separated)) | {normal(key)}
