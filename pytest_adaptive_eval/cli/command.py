"""The command line: its verbs, their options, and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.cli.backtest import BUDGETS as DEFAULT_BUDGETS
from pytest_adaptive_eval.cli.backtest import CONFIDENCE, POLICIES, SPLITS, backtest_command
from pytest_adaptive_eval.cli.calibrate import calibrate_command
from pytest_adaptive_eval.cli.formats import FORMAT_BUDGETS, REPEATS
from pytest_adaptive_eval.cli.options import INTERRUPTED, NOT_PASSED, USAGE, open_streams, put, screen
from pytest_adaptive_eval.cli.plan import plan_command
from pytest_adaptive_eval.cli.records import add_record_verbs
from pytest_adaptive_eval.cli.refine import refine_command
from pytest_adaptive_eval.errors import AdaptiveEvalError, UsageError

__all__ = ["main"]

BUDGETS = "1%,2%,5%,10%,15%,20%"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0 passed, 1 not passed (a refused bank), 2 interrupted, 4 a mistake of use.
    """
    open_streams()
    parser = _parser()
    try:
        options = parser.parse_args(arguments)
    finally:
        put("")  # --help and --version too may have lost their reader
    if "run_command" not in options:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        code: int = options.run_command(options)
    except UsageError as error:
        screen.say(f"adaptive-eval: error: {error}")
        return USAGE
    except AdaptiveEvalError as error:
        screen.say(f"adaptive-eval: {error}")
        return NOT_PASSED
    except KeyboardInterrupt:
        screen.say("adaptive-eval: interrupted; nothing was written")
        return INTERRUPTED
    except OSError as error:
        screen.say(f"adaptive-eval: error: {error.filename or 'a file'}: {error.strerror or error}; check the path")
        return USAGE
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.exit(USAGE, f"{self.prog}: error: {message}\nadaptive-eval COMMAND --help lists the options\n")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 1")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 0")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="adaptive-eval",
        description="Adaptive evaluation of model checkpoints: banks of items, and what runs found. Interviews are "
        "held by pytest --adaptive-eval, and not here.",
    )
    parser.add_argument("--version", action="version", version=f"pytest-adaptive-eval {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND")
    calibrate = verbs.add_parser(
        "calibrate",
        help="fit a bank to recorded responses, check it, and write it",
        description="Fit item parameters to recorded responses, check them on held-out responses, replay interviews "
        "for honest intervals, and write a bank folder. A bank that fails its checks is refused (exit code 1).",
    )
    _responses_arguments(
        calibrate, "responses: CSV, py-irt JSONL, lm-eval samples, Inspect logs, VLMEvalKit tables, runs"
    )
    add = calibrate.add_argument
    add("-o", "--output", metavar="BANK", type=Path, help="folder NAME.bank to write; only fit and check when omitted")
    add("--items", metavar="FILE", type=Path, help="JSONL of the items' texts; without it the bank cannot be asked")
    text = "the responses are in formats, with and without image or text: fit M2- or M3-IRT as well"
    add("--formats", choices=("m2", "m3"), help=text)
    add("--force", action="store_true", help="write a refused bank too, marked untrusted: reports on it say so")
    add("--replace", action="store_true", help="replace a bank that is in place")
    add("--parameters", metavar="FILE", type=Path, help="check these published parameters (JSONL) instead of a fit")
    text = "policies to replay for conformal intervals, or none (%(default)s)"
    add("--policy", metavar="NAMES", default="estimate,decide", help=text)
    add("--budget", metavar="BUDGETS", default=BUDGETS, help="budgets to replay them at (%(default)s)")
    _recipe_arguments(calibrate)
    calibrate.set_defaults(run_command=calibrate_command)

    backtest = verbs.add_parser(
        "backtest",
        help="replay interviews of known subjects to choose a policy and a budget",
        description="Interview held-out subjects whose every answer is recorded, by several policies\nand budgets, and "
        "tell how well each ranks and estimates them. Subjects of one\nfamily, and near-duplicates, stay on one side.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_contenders_text(),
    )
    _responses_arguments(
        backtest, "what to interview: responses (banks are calibrated in each split), or a bank with --responses"
    )
    add = backtest.add_argument
    add("--responses", metavar="FILE", type=Path, help="responses of held-out subjects, where the first is a bank")
    add("--items", metavar="FILE", type=Path, help="JSONL of the items' texts, whose categories stratified needs")
    text = f"policies to compare, or all ({POLICIES}; in formats, all)"
    add("--policy", metavar="NAMES", help=text)
    text = f"budgets ({DEFAULT_BUDGETS}; in formats, of calls, {FORMAT_BUDGETS})".replace("%", "%%")
    add("--budget", metavar="BUDGETS", help=text)
    text = f"random splits of the subjects ({SPLITS}); in formats, subjects to leave out, one at a time (all)"
    add("--splits", metavar="N", type=_count, help=text)
    add("--test", metavar="N", type=_count, help="subjects to interview in each split (a fifth of them)")
    text = "split evenly by model size: a CSV with models, params and unit"
    add("--stratify", metavar="CSV", type=Path, help=text)
    text = "coverage and width of all intervals; calibrates several times as often"
    add("--intervals", action="store_true", help=text)
    text = f"of each one-sided bound ({CONFIDENCE}: a 95 %% interval)"
    add("--confidence", metavar="C", type=float, help=text)
    add("--json", metavar="FILE", type=Path, help="write the table as JSON")
    add("--plot", metavar="FILE.svg", type=Path, help="draw ranking accuracy by budget")
    add("--jobs", metavar="N", type=_count, default=os.cpu_count() or 1, help="processes (%(default)s)")
    _low_quality_argument(backtest)
    text = f"in formats, interviews a subject of policies that draw ({REPEATS})"
    add("--repeats", metavar="N", type=_count, help=text)
    _recipe_arguments(backtest)
    backtest.set_defaults(run_command=backtest_command)

    _add_refine(verbs)
    plan = verbs.add_parser(
        "plan",
        help="how many questions a gate will take on a bank",
        description="Print the questions that gates take on a bank: expected, for nine verdicts in ten, and for a "
        "wanted power, with those of a test of fixed size. Nothing is asked.",
    )
    add = plan.add_argument
    add("bank", metavar="BANK", type=Path, help="a bank folder, or a JSONL of items")
    text = "distance of the truth from the threshold, or the margin of a paired gate (%(default)s)"
    add("--margin", metavar="SHARE", type=float, default=0.1, help=text)
    add("--alpha", metavar="A", type=float, default=0.05, help="error rate of each one-sided verdict (%(default)s)")
    add("--power", metavar="P", type=float, default=0.8, help="wanted chance of a verdict (%(default)s)")
    add("--at-least", metavar="X", type=float, help="threshold; the accuracy of average ability when omitted")
    add("--budget", metavar="N|N%", help="as of an evaluation, whose chance of a verdict is told (the default budget)")
    plan.set_defaults(run_command=plan_command)
    add_record_verbs(verbs)
    return parser


def _add_refine(verbs: Any) -> None:
    refine = verbs.add_parser(
        "refine",
        help="find items that need no image, or no text, and write a bank without them",
        description="From responses to items with and without image and text: which items need both, which are "
        "shortcuts, why each was dropped, and how far that moves the ranking of the subjects. With --twin, first make "
        "a bank to be asked whose low-quality items are known.",
    )
    text = "responses in formats: a CSV with subject, item, format, score; a matrix; runs. With --twin, a bank"
    refine.add_argument("source", metavar="RESPONSES", type=Path, nargs="+", help=text)
    add = refine.add_argument
    add("-o", "--output", metavar="FILE.jsonl", type=Path, help="write the items that are kept, or the twin")
    add("--items", metavar="BANK", type=Path, help="the items' texts: a bank, its JSONL, or its twin")
    _low_quality_argument(refine)
    add("--form", choices=("m2", "m3"), default="m2", help="the model that judges (%(default)s)")
    text = "keep at most so many, a count or a share of the originals; all that need every modality when omitted"
    add("--size", metavar="N|N%", help=text.replace("%", "%%"))
    add("--reasons", metavar="FILE", type=Path, help="every item with its figures: .csv, or with all else .json")
    add("--filter", metavar="NAME", help="of recorded runs, the bank")
    add("--twin", action="store_true", help="write the bank with low-quality items, image, text or all swapped")
    text = "of low-quality items in the twin, in percent, up to 50 (%(default)s)"
    add("--share", metavar="PERCENT", type=float, default=50.0, help=text)
    add("--seed", metavar="N", type=_seed, default=0, help="of swaps and fits (%(default)s)")
    refine.set_defaults(run_command=refine_command)


def _contenders_text() -> str:
    from pytest_adaptive_eval.calibration.backtest import CONTENDERS
    from pytest_adaptive_eval.calibration.format_backtest import FORMAT_CONTENDERS

    lines = [f"  {name:20} {c.summary}" for name, c in CONTENDERS.items() if not c.variant]
    variants = [f"  {name:28} {c.summary}" for name, c in CONTENDERS.items() if c.variant]
    in_formats = [f"  {name:20} {c.summary}" for name, c in FORMAT_CONTENDERS.items()]
    variants_title = "and AutoJudger with one switch changed:"
    return "\n".join(["policies:", *lines, variants_title, *variants, "with responses in formats:", *in_formats])


def _low_quality_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--low-quality",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="responses in formats to items all known to be of low quality, beside those that --items marks",
    )


def _responses_arguments(parser: argparse.ArgumentParser, text: str) -> None:
    from pytest_adaptive_eval.banks.responses import FORMATS, setting_help

    parser.add_argument("source", metavar="RESPONSES", type=Path, help=text)
    add = parser.add_argument_group("reading responses").add_argument
    add("--format", choices=list(FORMATS), help="format of the responses; recognised when omitted")
    add("--orientation", choices=("items-by-subjects", "subjects-by-items"), help="what a CSV's rows and columns are")
    add("--metric", metavar="NAME", help=f"choice where there are several; {setting_help('metric')}")
    add("--filter", metavar="NAME", help=f"choice where there are several; {setting_help('filter')}")
    add("--families", metavar="CSV", type=Path, help="family or training run of each subject")


def _recipe_arguments(parser: argparse.ArgumentParser) -> None:
    from pytest_adaptive_eval.calibration.engines.variational import DIMENSIONS
    from pytest_adaptive_eval.calibration.recipe import ENGINES, MODELS, Recipe

    add = parser.add_argument_group("calibration").add_argument
    add("--model", choices=MODELS, help=f"item response model ({Recipe().model})")
    text = f"of mirt: a number, or auto by held-out likelihood ({DIMENSIONS})"
    add("--dimensions", metavar="D", help=text)
    summaries = "; ".join(engine.summary for engine in ENGINES.values())
    add("--engine", choices=list(ENGINES), help=f"{summaries} ({Recipe().engine})")
    add("--device", help="torch device such as cuda (numpy on the processor when omitted)")
    add("--limit", metavar="N", type=_count, help="largest number of iterations")
    add("--seed", metavar="N", type=_seed, default=0, help="of splits, folds and draws (%(default)s)")
