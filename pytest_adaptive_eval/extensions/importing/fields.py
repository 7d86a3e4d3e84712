"""Names by which published data sets call the fields of a question, the most telling first."""

from __future__ import annotations

import re


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


QUESTIONS = _words(
    "question questiontext questionstem stem questiontitle questioncontent squestion problem problemtext "
    "problemstatement query prompt inputprompt instruction instructions input inputtext inputs q ctx goal "
    "sentence statement claim text clue riddle task content context code body description title userprompt user "
    "frage pregunta pertanyaan qtext startphrase"
)
CONTEXTS = _words(
    "taskprefix passage context story article paragraph background body premise document situation scenario "
    "florespassage dialogue excerpt abstract material text hint statement contexts input dialog case introduction "
    "table system"
)
ANSWERS = _words(
    "answerkey answeridx answerindex correctansweridx correctanswerindex correctindex correctidx correctchoiceidx "
    "correctchoiceindex correctanswernum answerletter correctoption correctletter answeroption correctanswer "
    "correctchoice bestanswer correct finalanswer final expectedanswer goldanswer goldenanswer standardanswer "
    "referenceanswer answer answers directanswers shortanswer target targets targetvalue ideal groundtruth "
    "groundtruths gtanswer gt gold goldlabel goldindex goldidx finaldecision label labels cop expectedoutput "
    "expected lsolutions answernumber ans output outputs solution reference references response continuation "
    "completion rightanswer answerrightending possibleanswers acceptedanswers acceptableanswers goldenanswers "
    "goldanswers validanswers referenceanswers correctanswers aliases antwort respuesta verdict class sentiment"
)
CHOICES = _words(
    "choices options endings candidates alternatives answerchoices answeroptions mcoptions possibleanswers "
    "choicelist optionlist questionchoices multiplechoicetargets mc1targets targetscores questionoptions answers "
    "candidateanswers opts"
)
#: Those of answers that may also be what a model replied.
REPLIES = ("response", "output", "outputs", "completion")
#: Those of choices that are nothing else.
SURE_CHOICES = _words(
    "choices options endings answerchoices answeroptions mcoptions choicelist optionlist questionchoices "
    "questionoptions multiplechoicetargets opts"
)
#: Fields beside the answer whose entries are each an accepted answer, and names of answers of which the same holds.
ALIASES = _words(
    "aliases alias answeraliases anyof acceptable acceptableanswers accepted acceptedanswers possibleanswers "
    "validanswers alternativeanswers answeralternatives"
)
ACCEPTED = ALIASES + _words(
    "answers correctanswers goldanswers goldenanswers referenceanswers directanswers targets references "
    "groundtruths lsolutions ideal"
)
#: Words of fields that a question may need, and words that may stand beside them.
_NEEDED = frozenset(
    _words(
        "code snippet program function context contexts passage article story paragraph paragraphs document documents "
        "premise hypothesis background scenario situation dialogue dialog conversation excerpt table figure image "
        "images diagram picture unit units option options choice choices schema constraints input inputs sentence "
        "text statement equation"
    )
)
_BESIDE = frozenset(
    _words(
        "the a b c d e f of source raw full main given reading problem question support supporting original str "
        "string content body list python buggy path pre post"
    )
)
DISTRACTORS = re.compile(r"(distractors?|incorrect(answers?|choices?|options?)?|wrong(answers?|choices?|options?)?)\d*")
CATEGORIES = _words(
    "category subject domain topic task subset subcategory subfield l2category subjectname topicname subtopic "
    "type questiontype skill discipline field genre level difficulty"
)
#: Names of fields that say whether a record's own answer is right.
FLAGS = _words("label iscorrect correct isright right iscorrectanswer correctness")
#: Names of fields that say whether a question has an answer, and of those with a file that some questions need.
IMPOSSIBLE = ("isimpossible", "impossible", "unanswerable")
UNANSWERABLE = (*IMPOSSIBLE, "answerable", "isanswerable", "hasanswer")
ATTACHED = _words("filename filepath file files attachment attachments attachedfile")
UNITS = ("unit", "units", "answerunit", "scale")
#: Names of parts of a text that a question is about.
PARTS = _words("pronoun pronountext targetword aspect aspectterm")
#: Names of what a program is given, which asks nothing, and of a program.
PROGRAM_INPUTS, PROGRAMS = ("input", "inputs", "args", "arguments"), ("code", "program", "snippet", "function")
#: Names of texts that ask nothing by themselves.
PLAIN_TEXTS = _words("sentence text content body description title clue code context")
IDS = _words(
    "id questionid qid uid uniqueid pid taskid sampleid exampleid problemid itemid dataid docid guid idstring "
    "queryid index idx ind key no questionnumber number"
)
IMAGES = _words(
    "image images imagepath imagepaths img imgpath imagename imagefile imgname imgs imageurl picture figure "
    "decodedimage filename imagefilename imagebytes imageid imagelist photo"
)
MESSAGES = _words("messages conversation conversations chat dialog input prompt turns question questions")
#: Names of questions in lists within a record.
INNER_QUESTIONS = frozenset(_words("question questiontext problem prompt query input instruction stem"))
#: Prefixes of numbered columns that are no alternatives.
OTHER_SERIES = frozenset(
    _words(
        "image img imagepath sentence question text input turn premise video hint paragraph step q inputsentence "
        "column unnamed word entity event passage context noun score rating number num label id idx key hypothesis "
        "document audio file table"
    )
)
SERIES = re.compile(r"(.*?)[ _.-]?\(?(\d{1,2}|[A-Ja-j])[).:]?")


def normal(key: str) -> str:
    """Return a field's name in small letters and digits."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def may_be_needed(key: str) -> bool:
    """Return whether a field's name says that a question may need it, such as ``code_snippet`` or ``option3``."""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).lower()))
    if "answer" in words:
        return bool(words & {"unit", "units"})
    return bool(_NEEDED & words) and words <= _NEEDED | _BESIDE
