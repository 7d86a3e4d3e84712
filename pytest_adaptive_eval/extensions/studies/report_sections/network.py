"""The report section of a network: its drawing, and the results of each node."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from pytest_adaptive_eval.extensions.studies.network.node_result import PanelMember
from pytest_adaptive_eval.extensions.studies.report_sections.members import members_table
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup, clean_html, svg, tag
from pytest_adaptive_eval.reports.plots import level_shares, levels_plot
from pytest_adaptive_eval.reports.sections import ROWS, Section, Table, short
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import number

#: Size of a box, and the distances between boxes.
_WIDTH, _HEIGHT, _ACROSS, _DOWN = 190, 78, 60, 18
#: Form of the first line of a box, and of the others.
_TITLE = {"font_size": 13, "font_weight": "bold"}
_DETAIL = {"font_size": 11}
#: Characters of a line that fit into a box.
_LINE = 31
#: Counts of questions that models wrote, with their heads.
_COUNTS = {
    "attempts": "attempts", "format": "format", "level": "level", "repeat": "repeated", "silent": "silent",
    "directives": "directives", "fallbacks": "by code", "wrong_claims": "untrue", "faults": "faults",
}  # fmt: skip

#: Values of an agreement that are counts.
_COUNTED = ("judged", "rated")
#: Most nodes whose accuracies by level are drawn.
_CURVES = 12


class NodeRow(msgspec.Struct):
    """Node of a network, see `extensions.studies.network.node_result.NodeResult`."""

    name: str
    task: str
    levels: int
    weight: float
    after: list[str]
    area: Interval | None
    last: int
    questions: str
    interviewer: str = ""
    opened: bool = False
    guess_area: float | None = None
    error_rate: float | None = None
    paper_error_rate: float | None = None
    scores: list[list[float | None]] = []
    counts: dict[str, int] = {}
    panel: list[PanelMember] = []


class _Errors(msgspec.Struct):
    attempts: int = 0
    rate: float | None = None


class _Interviewer(msgspec.Struct, rename={"with_messages": "with", "without_messages": "without"}):
    name: str
    with_messages: _Errors = msgspec.field(default_factory=_Errors)
    without_messages: _Errors = msgspec.field(default_factory=_Errors)


class _Reviews(msgspec.Struct):
    reviews: int = 0
    refused: int = 0
    unread: int = 0
    ratings: list[int] = []


class NetworkAccount(msgspec.Struct):
    """Account of a network, see `extensions.studies.network.result.NetworkResult.to_json`.

    Args:
        opinions: Mean areas by task.
    """

    topology: str
    interviewee: str
    nodes: list[NodeRow]
    energy: Interval
    supervisor: str = ""
    opinions: dict[str, Interval | None] = {}
    interviewers: list[_Interviewer] = []
    reviews: dict[str, _Reviews] = {}
    agreement: dict[str, float | None] | None = None


def _tables(study: EvaluationRecord, account: NetworkAccount) -> list[Table]:
    nodes = account.nodes[:ROWS]
    results = []
    counts = []
    for node in nodes:
        names = (short(node.name), short(node.task), short(_author(node)))
        area = "closed"
        if node.opened:
            area = _area(node.area)
        guessed = number_or_dash(node.guess_area, 2)
        results.append((*names, area, guessed, f"{node.last} of {node.levels}", number(node.weight, 2)))
        if node.interviewer or node.counts.get("faults"):
            counts_of_node = [str(node.counts.get(name, 0)) for name in _COUNTS]
            rates = [number_or_dash(rate, 2) for rate in (node.error_rate, node.paper_error_rate)]
            counts.append((short(node.name), *counts_of_node, *rates))
    return [
        Table(
            "Nodes",
            ("node", "task", "asked by", "area under the accuracies", "by guessing", "last level", "weight"),
            results,
            "Areas in levels, with their bounds, and the area that guessing alone has at the levels that were asked. A "
            "node stays closed where those before it did not surely reach what it asks for.",
        ),
        Table(
            "Questions that models wrote",
            ("node", *_COUNTS.values(), "errors", "as in MACEval"),
            counts,
            "A model's own answers never count: the truth is the code's. Errors are shares of all attempts; MACEval "
            "counts broken formats and repetitions, among written questions alone.",
        ),
        _panels(nodes),
        _opinions(account),
        _interviewers(account),
        *_supervisor(account),
        members_table(study),
    ]


def _author(node: NodeRow) -> str:
    """Return who set a node's questions: its interviewer, code, or both with the share of the interviewer."""
    asked = sum(map(len, node.scores))
    by_code = node.counts.get("fallbacks", 0)
    if not node.interviewer or (asked and by_code >= asked):
        return "code"
    if by_code:
        return f"{node.interviewer}, {by_code} of {asked} by code"
    return node.interviewer


def _panels(nodes: Sequence[NodeRow]) -> Table:
    """Return the accuracies of panels, where the debate is read from the left to the right."""
    rows = []
    for node in nodes:
        for member in node.panel:
            accuracies = " ".join(number_or_dash(value, 2) for value in member.accuracies)
            rows.append((short(f"{node.name}: {member.name}"), accuracies, str(member.mended), str(member.spoiled)))
    heads = ("node and member", "accuracy before and after each cycle", "corrected", "spoiled")
    note = "Corrected answers were wrong at first and right in the end. The last member has the most frequent answers."
    return Table("Panels", heads, rows[:ROWS], note)


def _opinions(account: NetworkAccount) -> Table:
    rows = []
    for name, opinion in account.opinions.items():
        rows.append((short(name), _area(opinion)))
    heads = ("task", "mean area by all of its interviewers")
    return Table("Mean opinions", heads, rows, "A gate on auc may name the task.")


def _interviewers(account: NetworkAccount) -> Table:
    rows = []
    for row in account.interviewers:
        cells = []
        for counts in (row.without_messages, row.with_messages):
            if counts.rate is None:
                cells.append("-")
            else:
                cells.append(f"{100 * counts.rate:.0f} % of {counts.attempts}")
        rows.append((short(row.name), *cells))
    note = (
        "Share of attempts that broke the format, missed the level, repeated a question or were silent, at nodes whose "
        "interviewer read no dialogue of an earlier node, and at the others."
    )
    return Table("Interviewers", ("interviewer", "errors without messages", "errors with messages"), rows, note)


def _supervisor(account: NetworkAccount) -> list[Table]:
    rows = []
    for subject, counts in account.reviews.items():
        rated = sum(counts.ratings)
        mean = None
        spread = "-"
        if rated:
            mean = sum(rating * n for rating, n in enumerate(counts.ratings, 1)) / rated
            spread = " ".join(map(str, counts.ratings))
        numbers = map(str, (counts.reviews, counts.refused, counts.unread))
        rows.append((short(f"{subject}s"), *numbers, number_or_dash(mean, 2), spread))
    heads = ("reviews of", "reviews", "refused", "unread", "mean rating", "ratings 1 to 5")
    note = "5 is best; a fault, or a rating of 1 or 2, is a refusal. Reviews change no score."
    tables = [Table(f"Supervisor: {short(account.supervisor or '-')}", heads, rows, note)]
    agreement = account.agreement
    if agreement:
        cells = []
        for key, value in agreement.items():
            digits = 0 if key in _COUNTED else 2
            cells.append(number_or_dash(value, digits))
        note = "Agreement of the supervisor's reviews with the labels of the file."
        tables.append(Table("Agreement with labels", ("supervisor", *agreement), [(account.supervisor, *cells)], note))
    return tables


def _area(area: Interval | None) -> str:
    if area:
        return area.in_words(2)
    return "-"


def _figures(key: str, account: NetworkAccount) -> list[Figure]:
    caption = "From the interviewee to the last nodes; dashed ones stayed closed. Numbers at lines are weights."
    figures = [Figure("Nodes reached", caption, network_picture(account, f"{key}n"))]
    for n, node in enumerate(account.nodes[:_CURVES]):
        accuracies = []
        asked = []
        for level in node.scores:
            scores = [score for score in level if score is not None]
            accuracy = None
            if scores:
                accuracy = sum(scores) / len(scores)
            accuracies.append(accuracy)
            asked.append(len(scores))
        confidence = node.area.confidence if node.area else 0.95
        shares = level_shares(accuracies, asked, confidence)
        if shares:
            title = f"Accuracy by level: {short(node.name)}"
            caption = "Each interval is for its own level."
            figures.append(Figure(title, caption, levels_plot(shares, None, f"{key}c{n}")))
    return figures


SECTION = Section(NetworkAccount, _tables, _figures, ranks_subjects=False)


def _columns(nodes: Sequence[NodeRow]) -> list[list[NodeRow]]:
    """Return the nodes by the length of the longest route to them."""
    depth: dict[str, int] = {}
    for _ in nodes:  # a route has no more edges than there are nodes
        for node in nodes:
            depth[node.name] = 1 + max((depth.get(name, 0) for name in node.after), default=0)
    columns: list[list[NodeRow]] = [[] for _ in range(max(depth.values(), default=0))]
    for node in nodes:
        columns[depth[node.name] - 1].append(node)
    return columns


def _corners(columns: Sequence[Sequence[NodeRow]], height: int) -> dict[str, tuple[int, float]]:
    """Return the upper left corner of each node's box."""
    corners: dict[str, tuple[int, float]] = {}
    for n, column in enumerate(columns, 1):
        left = n * (_WIDTH + _ACROSS) + 10
        for k, node in enumerate(column):
            middle = (k + 0.5) * height / len(column)
            corners[node.name] = (left, middle - _HEIGHT / 2)
    return corners


def network_picture(account: NetworkAccount, key: str) -> Markup:
    """Return the drawing of a network, from the interviewee at the left to the last nodes at the right.

    All names are cleaned and escaped.
    """
    columns = _columns(account.nodes)
    height = max([1, *map(len, columns)]) * (_HEIGHT + _DOWN) + _DOWN
    corners = _corners(columns, height)
    start = (10, height / 2 - _HEIGHT / 2)
    result = f"energy {account.energy.in_words()}"
    if account.supervisor:
        supervisor = f"supervised by {account.supervisor}"
    else:
        supervisor = "no supervisor"
    edges = []
    boxes = [_box(start, [account.interviewee, result, supervisor], "interviewee", opened=True)]
    descriptions = []
    for node in itertools.chain.from_iterable(columns):
        corner = corners[node.name]
        sources = [corners[name] for name in node.after] or [start]
        for source in sources:
            edges.append(_edge(source, corner, node))
        boxes.append(_box(corner, _node_lines(node), "node", opened=node.opened))
        descriptions.append(f"{node.name}: {_node_result(node)}")
    width = (len(columns) + 1) * (_WIDTH + _ACROSS) - _ACROSS + 20
    return svg(
        key,
        f"{account.topology} network of {len(descriptions)} nodes; {result}",
        "; ".join(descriptions),
        (width, round(height)),
        *edges,
        *boxes,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=round(height),
        class_="network",
        font_family="sans-serif",
    )


def _node_lines(node: NodeRow) -> list[str]:
    """Return the lines of a node's box."""
    author = _author(node)
    questions = "questions" if author == "code" else node.questions
    others = [member.name for member in node.panel[1:-1]]
    if others:
        last_line = f"with {', '.join(others)}"
    else:
        last_line = f"task {node.task}"
    return [node.name, _node_result(node), f"{questions} by {author}", last_line]


def _node_result(node: NodeRow) -> str:
    """Return a node's area with its bounds, and its last level: ``2.10 [1.42, 3.77], level 3 of 5``."""
    area = node.area
    if area is None:
        return "closed"
    return f"{area.in_words(2)}, level {node.last} of {node.levels}"


def _edge(source: tuple[int, float], target: tuple[int, float], node: NodeRow) -> Markup:
    x1 = source[0] + _WIDTH
    y1 = source[1] + _HEIGHT / 2
    x2 = target[0]
    y2 = target[1] + _HEIGHT / 2
    curve = f"M{x1:.0f} {y1:.0f}C{x1 + 30:.0f} {y1:.0f} {x2 - 30:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    dashes = None if node.opened else "4 3"
    line = tag("path", d=curve, fill="none", stroke="currentColor", stroke_dasharray=dashes)
    style = {"font_size": 10, "text_anchor": "end", "fill": "currentColor"}
    if y2 > y1:
        y = y2 + 14  # a label above would be crossed by a line that comes from above
    else:
        y = y2 - 5
    label = tag("text", number(node.weight, 2), x=float(x2 - 4), y=y, **style)
    return tag("g", line, label, class_="edge")


def _box(corner: tuple[int, float], lines: Sequence[str], class_: str, *, opened: bool) -> Markup:
    x, y = corner
    frame = tag(
        "rect",
        x=float(x),
        y=y,
        width=_WIDTH,
        height=_HEIGHT,
        rx=6,
        fill="none",
        stroke="currentColor",
        stroke_width=2 if class_ == "interviewee" else 1,
        stroke_dasharray=None if opened else "4 3",
    )
    texts = []
    for n, line in enumerate(lines):
        clean = " ".join(clean_html(line).split())
        if len(clean) > _LINE + 1:
            clean = f"{clean[:_LINE]}…"
        style = _TITLE if n == 0 else _DETAIL
        position = {"x": x + 8.0, "y": y + 18 + 17 * n}
        texts.append(tag("text", clean, tag("title", line), **position, **style, fill="currentColor"))
    return tag("g", frame, *texts, class_=class_)
