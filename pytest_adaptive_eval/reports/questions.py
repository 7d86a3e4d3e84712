"""The questions of a run for a page, with their texts and small pictures if the bank is available."""

from __future__ import annotations

import base64
import io
import json
import stat
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.presentation import Presentation
from pytest_adaptive_eval.models.exchange import Exchange
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.reports.plots import Kind, kind_of
from pytest_adaptive_eval.reports.words import asked_item, measured, plottable
from pytest_adaptive_eval.text import counted, number

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

    from pytest_adaptive_eval.items.bank import ItemBank

MAX_PIXELS = 20_000_000  #: Decoded, this many pixels take 60 MB.
THUMBNAIL = 5_000  #: Bytes of a thumbnail.
_FILE = 50_000_000  #: Files larger than this are not opened.
#: Longest side in pixels, and qualities as JPEG, tried in this order.
_SIDES, _QUALITIES = (224, 192, 160, 128, 96, 64, 48, 32), (80, 65, 50)


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """Image as a data URL with its size in pixels, or the reason why there is none."""

    source: str = ""
    width: int = 0
    height: int = 0
    sentence: str = ""


_TOO_LARGE = Thumbnail(sentence=f"it has more than {MAX_PIXELS // 10**6} megapixels")


def thumbnail(name: str, root: str, limit: int = THUMBNAIL) -> Thumbnail:
    """Return an image below `root` in at most `limit` bytes, without raising; symbolic links are not opened."""
    try:
        return _thumbnail(name, root, limit)
    except FileNotFoundError:
        return Thumbnail(sentence="its file is missing")
    except Exception as error:  # decoders raise any class, and a report does not depend on a picture
        return Thumbnail(sentence=f"it cannot be read ({type(error).__name__})")


def _thumbnail(name: str, root: str, limit: int) -> Thumbnail:
    base = Path(root).resolve()
    path = base / name
    if not path.is_relative_to(base) or path.resolve(strict=True) != path:
        return Thumbnail(sentence="its file lies outside of the bank's folder")
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > _FILE:
        return Thumbnail(sentence="its file is not an image of a sensible size")
    data = read_regular(path, follow=False)
    try:
        from PIL import Image
    except ImportError:
        return Thumbnail(sentence="a smaller copy of it needs Pillow")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit here is below Pillow's
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as image:
                if image.width * image.height <= MAX_PIXELS:
                    return _smaller(image, limit)
                return _TOO_LARGE
    except Image.DecompressionBombError:
        return _TOO_LARGE


def _smaller(image: ImageFile, limit: int) -> Thumbnail:
    """Return a smaller copy that is decoded and encoded again, and so holds only pixels."""
    from PIL import Image, ImageOps

    image.draft("RGB", (2 * _SIDES[0], 2 * _SIDES[0]))  # a JPEG is decoded at a fraction of its size
    whole = ImageOps.exif_transpose(image)
    if "A" in whole.getbands() or "transparency" in whole.info:
        layer = whole.convert("RGBA")
        whole = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    if whole.mode in ("1", "L", "I;16"):
        whole = whole.convert("L")
    else:
        whole = whole.convert("RGB")
    if max(whole.size) <= _SIDES[0]:  # a drawing keeps its pixels
        out = io.BytesIO()
        whole.save(out, "PNG", optimize=True)
        if out.tell() <= limit:
            return _encoded(out.getvalue(), "png", *whole.size)
    for side in _SIDES:
        whole.thumbnail((side, side))
        for quality in _QUALITIES:
            out = io.BytesIO()
            whole.save(out, "JPEG", quality=quality, optimize=True)
            if out.tell() <= limit:
                return _encoded(out.getvalue(), "jpeg", *whole.size)
    return Thumbnail(sentence="it does not fit into a thumbnail")


def _encoded(data: bytes, form: str, width: int, height: int) -> Thumbnail:
    return Thumbnail(f"data:image/{form};base64,{base64.b64encode(data).decode()}", width, height)


#: Bytes of all texts and of all thumbnails of a page, so that 2 000 questions stay below 3 MB.
_TEXTS, _IMAGES = 2_800_000, 1_100_000
_OVERHEAD = 500  #: Bytes of a question besides its texts.
_SHORT, _LONG = 120, 1_500  #: Shortest and longest cut of a text, in characters.
_REQUEST = 6_000  #: Longest cut of a request.
_LEAST = 1_500  #: Smallest limit of a thumbnail, in bytes.
_TINY = 96  #: Images narrower than this are shown twice as large.
_BRIEF = 60  #: Answer and expected answer that share a line, in characters together.


@dataclass(frozen=True, slots=True)
class Picture:
    """Thumbnail with its name and its size on the page."""

    name: str
    thumbnail: Thumbnail
    width: int = 0
    height: int = 0
    tiny: bool = False


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One administration; `text` is None where the question cannot be shown, and `sentence` gives the reason."""

    position: object
    kind: Kind
    word: str
    item: str
    category: str
    broad: str
    text: str | None
    sentence: str
    pictures: list[Picture]
    answer: str
    detail: str
    expected: str
    facts: str
    brief: bool
    log: list[tuple[str, str]]

    @property
    def log_title(self) -> str:
        """``Request as sent, thought, reply of the judge``."""
        return ", ".join(dict.fromkeys(title.partition(":")[0] for title, _ in self.log)).capitalize()


@dataclass(frozen=True, slots=True)
class QuestionList:
    """Questions of one interview, with a remark on all of them."""

    title: str
    sentence: str
    questions: list[QuestionRow] = field(default_factory=list)


def question_lists(
    interviews: Sequence[tuple[str, EvaluationRecord]],
    banks: Mapping[str, ItemBank],
    requests: Mapping[str, str] = MappingProxyType({}),
) -> list[QuestionList]:
    """Return the questions of each interview, with the requests as they were sent, by key, where they are known."""
    lists: list[QuestionList] = []
    asked: list[_Asked] = []
    for title, interview in interviews:
        items = AskedItems(interview, banks.get(interview.name))
        if interview.administrations:
            lists.append(QuestionList(title, items.sentence))
        for administration in interview.administrations:
            asked_item = items.find(administration)
            request = requests.get(administration.sent, "")
            exchange = Exchange.from_text(requests.get(interview.exchange_key(administration), "{}"))
            asked.append(_Asked(lists[-1], administration, *asked_item, interview.bank.calibrated, request, exchange))
    names: list[tuple[str, str]] = []
    for entry in asked:
        if entry.item is not None:
            names += [(entry.item.root, name) for name in entry.item.images]
    limit = max(_LEAST, min(THUMBNAIL, _IMAGES * 3 // 4 // max(len(names), 1)))
    pictures = {}
    for root, name in dict.fromkeys(names):
        pictures[(root, name)] = _picture(name, root, limit)
    text_bytes = _TEXTS - sum(len(pictures[name].thumbnail.source) for name in names)
    share = _share(asked, text_bytes)
    for entry in asked:
        log = _log(entry, min(share, _REQUEST))
        entry.of.questions.append(_question(entry, pictures, min(share, _LONG), log))
    return lists


def _share(asked: Sequence[_Asked], most: int) -> int:
    """Return the cut of a question, its answer and its request, which share the bytes of all texts."""
    if any(_parts(entry) for entry in asked):
        shares = 3
    else:
        shares = 2
    return max(_SHORT, (most // max(len(asked), 1) - _OVERHEAD) // shares)


class _Asked(NamedTuple):
    """A question of a list, with its item, or the reason why that cannot be shown."""

    of: QuestionList
    administration: Administration
    item: Item | None
    sentence: str
    calibrated: bool
    request: str
    exchange: Exchange


def _parts(entry: _Asked) -> list[tuple[str, str]]:
    """Return what went between model and run, each part with its title."""
    exchange = entry.exchange
    parts = [("request as sent", _indented(entry.request)), ("thought", exchange.reasoning)]
    parts += [(f"steps: {step.role}", step.text) for step in exchange.steps]
    parts += [("reply of the judge", text) for text in exchange.judged]
    return [(title, text) for title, text in parts if text]


def _log(entry: _Asked, most: int) -> list[tuple[str, str]]:
    """Return what went between model and run in at most so many characters, shared by its parts."""
    parts = _parts(entry)
    cut = max(most // max(len(parts), 1), _SHORT)
    return [(clean_html(title, 80), clean_html(text, cut)) for title, text in parts]


class AskedItems:
    """Items of a bank as they were administered, without system messages and examples, which are alike for all."""

    def __init__(self, interview: EvaluationRecord, bank: ItemBank | None) -> None:
        self._bank = bank
        self._presentation = interview.bank.presentation
        self._index: dict[str, int] = {}
        self.sentence = ""
        if bank is None:
            self.sentence = "The bank was not at hand: questions are shown by their ids."
            return
        self._index = {name: n for n, name in enumerate(bank.ids)}
        if bank.content_hash != interview.bank.content_hash:
            self.sentence = "The bank has changed since the run: only questions that are still the same are shown."

    def find(self, asked: Administration) -> tuple[Item | None, str]:
        """Return the item in the format asked, or None and the reason why it cannot be shown."""
        if self._bank is None:
            return None, ""
        index = self._index.get(str(asked.item))
        if index is None:
            return None, "The bank at hand has no such item."
        try:
            item = self._bank.items[index]
            if item.content_hash == asked.item_hash:
                if asked.format in item.formats:
                    item = item.in_format(asked.format)
                return self._bare(item), ""
        except AdaptiveEvalError:
            return None, "The bank's texts were edited, so the question is not shown."
        return None, "The item changed since, so the question is not shown."

    def _bare(self, item: Item) -> Item:
        presentation = Presentation()
        if self._presentation is not None:
            presentation = Presentation.from_json(self._presentation.to_json())
        messages = []
        for message in item.messages:
            content = message.get("content")
            if message.get("role") in ("system", "developer"):
                continue
            if isinstance(content, str):
                content = presentation.without_examples(content)
            messages.append({**message, "content": content})
        prompt = presentation.without_examples(item.prompt)
        if not prompt and not messages:  # an item of examples alone is shown with them
            return item
        return replace(item, prompt=prompt, messages=tuple(messages))


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer of a run; question and expected answer are empty where the bank is not at hand.

    Args:
        chance: Predicted score; None on a bank without parameters.
    """

    interview: EvaluationRecord
    asked: Administration
    chance: float | None
    question: str = ""
    expected: str = ""

    @property
    def nodeid(self) -> str:
        """Node id of the question; empty where other parameters of the test hide its place."""
        test, _, ids = self.interview.nodeid.partition("[aeval:")
        single = test.partition("::")[0].endswith(".toml") or "-" not in ids
        if ids and single:
            return f"{test}[{asked_item(self.asked)}]"
        return ""


class AnswerList(NamedTuple):
    """A few answers of a run under a title; `kind` is ``lost``, ``gained`` or ``wrong``."""

    kind: str
    title: str
    answers: list[ShownAnswer]
    note: str = ""


_WEIGHTS = "Each question counts once here. The difference that a gate judges weighs them by their draws."


def answer_lists(interviews: Sequence[EvaluationRecord], banks: Mapping[str, ItemBank], most: int) -> list[AnswerList]:
    """Return lists of at most so many answers: those lost and gained against each baseline, then other wrong ones."""
    lists = []
    lost: set[tuple[str, str]] = set()
    for interview in interviews:
        if len(interviews) > 1:
            of = f" of {interview.name}"
        else:
            of = ""
        answers = {}
        for asked in interview.administrations[::-1]:
            answers[asked.item] = ShownAnswer(interview, asked, None)
        for name, source in interview.baselines.items():
            lost |= {(interview.name, item) for item in source.lost}
            against = f"against the baseline {name}".removesuffix(" baseline")
            for kind, ids in (("lost", source.lost), ("gained", source.gained)):
                title = f"{kind.capitalize()} {against}{of}: {len(ids)} of {counted(source.common, 'common question')}"
                listed = [answers[item] for item in ids if item in answers][:most]
                if len(listed) < len(ids):
                    title += f", the first {len(listed)}"
                lists.append(AnswerList(kind, title, _with_questions(listed, banks), _WEIGHTS))
    wrong, which = wrong_answers(interviews, banks, most, lost)
    title = "Other wrong answers" if lost else "Wrong answers"
    if which:
        title += f", {which}"
    lists.append(AnswerList("wrong", title, wrong))
    return [entry for entry in lists if entry.answers]


def wrong_answers(
    interviews: Sequence[EvaluationRecord],
    banks: Mapping[str, ItemBank],
    most: int,
    listed: Collection[tuple[str, str]] = (),
) -> tuple[list[ShownAnswer], str]:
    """Return at most so many wrong answers, and which they are of how many in words; empty if they are all.

    Answers that are `listed`, by evaluation and item, are left out.

    Answers that the bank's parameters expect least come first, then the ones asked first.
    """
    wrong = []
    for interview in interviews:
        for answer in _wrong_of(interview):
            if (interview.name, answer.asked.item) not in listed:
                wrong.append(answer)
    least_expected = sorted(wrong, key=lambda answer: -(answer.chance or 0.0))
    chosen = _with_questions(least_expected[:most], banks)
    if len(chosen) == len(wrong):
        return chosen, ""
    if all(answer.chance is not None for answer in chosen):
        which = f"the {len(chosen)} least expected"
    else:
        which = f"the first {len(chosen)}"
    return chosen, f"{which} of {len(wrong)}"


def wrong_questions(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield the evaluation and the node id of each question with a wrong answer; see `ShownAnswer.nodeid`."""
    for interview in record.interviews:
        for answer in _wrong_of(interview):
            yield interview.name, answer.nodeid


def _with_questions(answers: Sequence[ShownAnswer], banks: Mapping[str, ItemBank]) -> list[ShownAnswer]:
    """Return the answers with question and expected answer where the bank is at hand."""
    asked_items: dict[str, AskedItems] = {}
    completed = []
    for answer in answers:
        name = answer.interview.name
        if name not in asked_items:
            asked_items[name] = AskedItems(answer.interview, banks.get(name))
        item, _ = asked_items[name].find(answer.asked)
        if item is None:
            completed.append(answer)
        else:
            completed.append(replace(answer, question=asked_text(item, last=True), expected=expected_answer(item)))
    return completed


def _wrong_of(interview: EvaluationRecord) -> Iterator[ShownAnswer]:
    for asked in interview.administrations:
        if asked.score is not None and asked.score < 0.5:
            chance = asked.predicted if interview.bank.calibrated else None
            yield ShownAnswer(interview, asked, chance)


def _picture(name: str, root: str, limit: int) -> Picture:
    image = thumbnail(name, root, limit)
    tiny = 0 < image.width <= _TINY and image.height <= _TINY
    scale = 2 if tiny else 1
    return Picture(name.rsplit("/", 1)[-1], image, scale * image.width, scale * image.height, tiny)


def _word(asked: Administration, kind: Kind) -> str:
    """Return how a question was answered: its kind or the share of the score, and the status of an odd answer."""
    is_odd = asked.status != "ok"
    if kind is Kind.NONE:
        if is_odd:
            return asked.status
        return "no score"
    if kind is Kind.PARTLY:
        word = f"partly {number(asked.score or 0.0, 2)}"
    else:
        word = kind.value
    if is_odd:
        word += f", {asked.status}"
    return word


def _question(
    entry: _Asked, pictures: Mapping[tuple[str, str], Picture], cut: int, log: list[tuple[str, str]]
) -> QuestionRow:
    asked, item = entry.administration, entry.item
    kind = kind_of(asked)
    categories = asked.category
    broad = ""
    if categories:
        broad = clean_html(categories[0], 60)
    answer = clean_html(asked.text, cut)
    text = None
    expected = ""
    pictures_of_item = []
    if item is not None:
        text = clean_html(asked_text(item), cut)
        expected = clean_html(expected_answer(item), min(cut, 600))
        pictures_of_item = [pictures[item.root, name] for name in item.images]
    one_line = len(answer) + len(expected) < _BRIEF and "\n" not in answer + expected
    return QuestionRow(
        position=asked.position,
        kind=kind,
        word=clean_html(_word(asked, kind), 40),
        item=clean_html(asked.item, 130),
        category=clean_html(" / ".join(categories), 120),
        broad=broad,
        text=text,
        sentence=entry.sentence,
        pictures=pictures_of_item,
        answer=answer,
        detail=clean_html(asked.detail, min(cut, 600)),
        expected=expected,
        facts=clean_html(_facts(asked, entry.exchange, calibrated=entry.calibrated), 400),
        brief=bool(expected) and not asked.detail and one_line,
        log=log,
    )


def _indented(request: str) -> str:
    """Return a request of JSON with indented lines and its own letters; another one, or a cut one, as it is."""
    if not request.startswith(("{", "[")):
        return request
    try:
        return json.dumps(json.loads(request), ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        return request


def asked_text(item: Item, *, last: bool = False) -> str:
    """Return the question as one text, with its choices if they are not in the prompt.

    Args:
        last: Of a chat, the last message alone.
    """
    messages = item.messages[-1:] if last else item.messages
    parts = []
    for message in messages:
        parts.append(f"{message.get('role')}: {content_text(message.get('content'))}")
    if len(messages) == 1:
        parts = [content_text(messages[0].get("content"))]
    text = item.prompt or "\n".join(parts)
    choices = []
    for n, choice in enumerate(item.choices):
        choices.append(f"{chr(65 + n)}. {choice}")
    if all(choice in text for choice in choices):
        return text
    return "\n".join([text, *choices])


def content_text(content: Any) -> str:
    """Return the text of a message, with other parts as JSON."""
    if isinstance(content, list):
        return "\n".join(content_text(part) for part in content)
    if isinstance(content, Mapping):
        if "text" in content:
            return str(content["text"])
        return json.dumps(dict(content), default=str)
    return str(content)


def expected_answer(item: Item) -> str:
    """Return the expected answer; a letter is followed by its choice."""
    letter = item.answer.strip().upper()
    if len(letter) == 1:
        index = ord(letter) - 65
    else:
        index = -1
    if item.grader == "choice" and not item.others and 0 <= index < len(item.choices):
        return f"{letter}. {item.choices[index]}"
    return item.expected


def _rounded(value: float | None) -> str | None:
    numeric = plottable(value)
    if numeric is None:
        return None
    return number(numeric, 2)


def _spent(asked: Administration, exchange: Exchange) -> list[str]:
    """Return the time, the money and the tokens of an answer, the thought's apart."""
    measures = {"seconds": asked.seconds, **exchange.measures, **asked.measures}
    spent: dict[str, float] = {}
    for name, measure in measures.items():
        value = plottable(measure)
        if value:
            spent[name] = value
    return measured(spent)


def _facts(asked: Administration, exchange: Exchange, *, calibrated: bool) -> str:
    chance = plottable(asked.propensity)
    before = asked.theta_before
    facts: dict[str, object] = {"difficulty": _rounded(asked.difficulty)}
    if before and len(before) == 1:
        facts["ability before"] = _rounded(before[0])
    if calibrated:
        facts["predicted"] = _rounded(asked.predicted)
    if chance is not None:
        facts["chance"] = f"{chance:.2g}".removeprefix("0")
    if asked.sample:
        facts["sample"] = asked.sample + 1
    if asked.format != "text":
        facts["format"] = asked.format
    parts = _spent(asked, exchange)
    for name, value in facts.items():
        if value is not None:
            parts.append(f"{name} {value}")
    if asked.reason:
        parts.append(asked.reason)
    if asked.resumed:
        parts.append("from the journal")
    if asked.reused:
        parts.append("from the store")
    return " · ".join(parts)
