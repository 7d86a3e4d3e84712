"""Grading of programs: their functions are called in the sandbox, and results are compared outside of it.

Tests of published benchmarks are assertions that hold the expected results. A program that runs beside them could read
or forge them, so each assertion is taken apart into the arguments of a call, which enter the sandbox, and the expected
result, which does not. Assertions of other forms are refused when the benchmark is imported.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import BankError, SandboxUnavailable, Unscored
from pytest_adaptive_eval.items.item import Item, Status, items_naming
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.tasks.family import Runner

#: Name of the grader.
CODE = "code"
_FENCED = re.compile(r"```[ \t]*\w*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_FIRST_LINE = re.compile(r"^(?:from|import|def|class|@)\s*\w", re.MULTILINE)
#: Operations that are carried out on constants of at most this size.
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_SMALL = 64
#: Calls of one item, and characters of their arguments and results.
_CALLS, _CHARACTERS = 200, 100_000


def calls_of_tests(tests: str, function: str) -> list[dict[str, Any]]:
    """Return the calls that assertions make of a function, and what they expect.

    Args:
        tests: Python source: assertions, or a function ``check(candidate)`` with them.

    Returns:
        ``arguments`` and ``expected`` as Python literals, and ``tolerance`` of a number.

    Raises:
        BankError: An assertion of another form, which would have to run beside the program.
    """
    try:
        tree = ast.parse(tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BankError(f"its tests are not Python ({error})") from None
    calls: list[dict[str, Any]] = []
    # the function `check` stands for its statements
    bodies = (s.body if isinstance(s, ast.FunctionDef) and s.name == "check" else [s] for s in tree.body)
    for statement in chain.from_iterable(bodies):
        match statement:
            case ast.Assert(test=ast.Constant()) | ast.Import() | ast.ImportFrom() | ast.Pass():
                continue
            case ast.Expr(value=ast.Constant() | ast.Name() | ast.Call(func=ast.Name(id="print"))):
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if name.isupper():  # such as METADATA
                continue
            case ast.Assert(test=test):
                calls.append(_call(test, {function, "candidate"}))
            case _:
                raise _computing(statement)
    if not calls or len(calls) > _CALLS or len(str(calls)) > _CHARACTERS:
        raise BankError(f"its tests make {len(calls)} calls, expected 1 to {_CALLS}")
    return calls


def _computing(node: ast.AST) -> BankError:
    return BankError(f"its tests compute ({ast.unparse(node)[:60]!r}), which the sandbox does not allow")


def _call(test: ast.expr, names: set[str]) -> dict[str, Any]:
    """Return the call in the condition of an assertion."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _call_and_value(operand, ast.Constant(False), names)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return _call_and_value(left, right, names)
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=right), *_]),
            ops=[ast.Lt() | ast.LtE()],
            comparators=[most],
        ):
            return {**_call_and_value(left, right, names), "tolerance": float(_literal(most))}
        case ast.Call(func=ast.Attribute(attr="isclose"), args=[left, right, *_], keywords=keywords):
            relative = next((float(_literal(word.value)) for word in keywords if word.arg == "rel_tol"), 1e-9)
            call = _call_and_value(left, right, names)
            return {**call, "tolerance": relative * max(1.0, abs(float(ast.literal_eval(call["expected"]))))}
    return _call_and_value(test, ast.Constant(True), names)


def _call_and_value(call: ast.expr, expected: ast.expr, names: set[str]) -> dict[str, Any]:
    match call:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in names:
            return {"arguments": _written(list(map(_literal, arguments))), "expected": _written(_literal(expected))}
    raise _computing(call)


def _written(value: Any) -> str:
    """Return a literal, with the members of sets sorted, whose order is another in each process."""
    if isinstance(value, set) and value:
        return f"{{{', '.join(sorted(map(_written, value)))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return repr(value)


class _Folded(ast.NodeTransformer):
    """Sums, products, quotients and powers of small constants as constants, which leaves a literal."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace an operation on two constants by its result."""
        match self.generic_visit(node):
            case ast.BinOp(ast.Constant(str() as first), ast.Add(), ast.Constant(str() as second)):
                return ast.Constant(first + second)
            case ast.BinOp(ast.Constant(int() | float() as left), op, ast.Constant(int() | float() as right)):
                if type(op) in _OPERATORS and max(abs(left), abs(right)) <= _SMALL:
                    return ast.Constant(_OPERATORS[type(op)](left, right))
        return node


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(ast.fix_missing_locations(_Folded().visit(node)))
    except (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
        raise BankError(f"its tests compute ({ast.unparse(node)[:60]!r}), which is not a literal") from None


def program_of(text: str, function: str, start: str) -> str:
    """Return the program of an answer that defines a function; it may continue or leave out the question's `start`."""
    defined = re.compile(rf"^[ \t]*def[ \t]+{re.escape(function)}\b", re.MULTILINE)
    blocks = []
    for block in _FENCED.findall(text):
        if block.strip():
            blocks.append(block)
    whole = []
    for block in blocks:
        if defined.search(block):
            whole.append(block)
    if match := defined.search(start):
        before = start[: match.start()]
    else:
        before = ""
    if whole:
        return f"{before}\n{whole[-1]}"
    if defined.search(text):
        first = _FIRST_LINE.search(text)
        return f"{before}\n{text[first.start() if first else 0 :].partition('```')[0]}"
    return start + (blocks[-1] if blocks else text)


@functools.cache
def _sandbox() -> Runner:
    sandbox: Runner = service("sandbox", "sandbox").open()
    return sandbox


class Call(NamedTuple):
    """One call of the tested function, and the result that a right program gives.

    Args:
        tolerance: Largest difference from a number that is right; None for results that must be equal.
    """

    arguments: list[Any]
    expected: Any
    tolerance: float | None


def calls_of_item(item: Item) -> list[Call]:
    """Return the calls by which the grader `CODE` tests a program.

    Raises:
        BankError: ``meta.function`` or ``meta.calls`` is missing, or a call has another form.
    """
    function = item.meta.get("function")
    calls = item.meta.get("calls")
    if not isinstance(function, str) or not function.isidentifier() or not isinstance(calls, list) or not calls:
        raise BankError(
            f"item {item.id!r}: the grader {CODE!r} needs meta.function, the name of a function, and meta.calls, a list"
        )
    return [_read_call(call, f"item {item.id!r}: meta.calls[{number}]") for number, call in enumerate(calls)]


def check_code_items(items: Sequence[Item]) -> None:
    """Raise BankError if an item with the grader `CODE` cannot be graded, whether or not it will be drawn."""
    for item in items_naming(items, CODE):
        if item.grader == CODE:
            calls_of_item(item)


def _read_call(call: Any, where: str) -> Call:
    try:
        arguments = ast.literal_eval(call["arguments"])
        expected = ast.literal_eval(call["expected"])
        tolerance = None
        if "tolerance" in call:
            tolerance = float(call["tolerance"])
    except (KeyError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        arguments = None
    if not isinstance(arguments, list):
        raise BankError(
            f'{where} is {call!r:.100}, expected {{"arguments": "[1, 2]", "expected": "3"}}: a list of arguments '
            "and the result, both as texts of Python literals, and perhaps a number as tolerance"
        )
    return Call(arguments, expected, tolerance)


def grade_code(item: Item, text: str) -> float:
    """Return 1 if the program in an answer gives every expected result; raise Unscored if no sandbox runs it."""
    calls = calls_of_item(item)
    function = str(item.meta["function"])
    program = program_of(text, function, str(item.meta.get("start", "")))
    try:
        run = _sandbox().call(program, function, [call.arguments for call in calls])
    except SandboxUnavailable as error:
        raise Unscored(Status.NOT_RUN.value, str(error), text) from None
    if run.status is Status.SANDBOX_ERROR:
        raise Unscored(run.status.value, run.detail, text)
    if run.status is not Status.OK or len(run.outputs) != len(calls):
        return 0.0
    return float(all(_right(output, call) for output, call in zip(run.outputs, calls, strict=True)))


def _right(output: Any, call: Call) -> bool:
    if call.tolerance is not None and isinstance(output, int | float):
        return bool(math.isfinite(output) and abs(output - call.expected) <= call.tolerance)
    return bool(output == call.expected)
