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
        raise BankError(f"its tests are no Python ({error})") from None
    calls: list[dict[str, Any]] = []
    # the function `check` stands for its statements
    bodies = (s.body if isinstance(s, ast.FunctionDef) and s.name == "check" else [s] for s in tree.body)
    for statement in chain.from_iterable(bodies):
        if isinstance(statement, ast.Assert):
            if not isinstance(statement.test, ast.Constant):
                calls.append(_call(statement.test, {function, "candidate"}))
        elif not isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass) and not _is_metadata(statement):
            raise BankError(f"its tests compute ({ast.unparse(statement)[:60]!r}), which the sandbox does not allow")
    if not calls or len(calls) > _CALLS or len(str(calls)) > _CHARACTERS:
        raise BankError(f"its tests make {len(calls)} calls, expected 1 to {_CALLS}")
    return calls


def _is_metadata(statement: ast.stmt) -> bool:
    """Return whether a statement is a text alone, prints one, or sets METADATA."""
    if isinstance(statement, ast.Expr):
        value = statement.value
        prints = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
        return prints or isinstance(value, ast.Constant | ast.Name)
    return isinstance(statement, ast.Assign) and all(
        isinstance(target, ast.Name) and target.id.isupper() for target in statement.targets
    )


def _call(test: ast.expr, names: set[str]) -> dict[str, Any]:
    """Return the call in the condition of an assertion."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _call_and_value(test.operand, ast.Constant(False), names)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, comparison, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(comparison, ast.Eq | ast.Is):
            return _call_and_value(left, right, names)
        if isinstance(comparison, ast.Lt | ast.LtE) and (parts := _difference(left)):
            return {**_call_and_value(parts[0], parts[1], names), "tolerance": float(_literal(right))}
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "isclose":
        relative = next((float(_literal(word.value)) for word in test.keywords if word.arg == "rel_tol"), 1e-9)
        call = _call_and_value(test.args[0], test.args[1], names)
        return {**call, "tolerance": relative * max(1.0, abs(float(ast.literal_eval(call["expected"]))))}
    return _call_and_value(test, ast.Constant(True), names)


def _difference(value: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the two sides of ``abs(a - b)``."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "abs" and value.args:
        inner = value.args[0]
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            return inner.left, inner.right
    return None


def _call_and_value(call: ast.expr, expected: ast.expr, names: set[str]) -> dict[str, Any]:
    is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names
    if not is_call or call.keywords:  # type: ignore[attr-defined]
        raise BankError(f"its tests compute ({ast.unparse(call)[:60]!r}), which the sandbox does not allow")
    arguments = [_literal(argument) for argument in call.args]  # type: ignore[attr-defined]
    return {"arguments": _written(arguments), "expected": _written(_literal(expected))}


def _written(value: Any) -> str:
    """Return a literal, with the members of sets sorted, whose order is another in each process."""
    if isinstance(value, set) and value:
        return f"{{{', '.join(sorted(map(_written, value)))}}}"
    return f"[{', '.join(map(_written, value))}]" if isinstance(value, list) else repr(value)


class _Folded(ast.NodeTransformer):
    """Sums, products, quotients and powers of small constants as constants, which leaves a literal."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace an operation on two constants by its result."""
        node = ast.BinOp(self.visit(node.left), node.op, self.visit(node.right))
        if not (isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)):
            return node
        left, right = node.left.value, node.right.value
        apply = _OPERATORS.get(type(node.op))
        if apply is None or isinstance(left, complex) or isinstance(right, complex):
            return node
        if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
            return ast.Constant(left + right)
        small = all(isinstance(value, int | float) and abs(value) <= _SMALL for value in (left, right))
        return ast.Constant(apply(left, right)) if small else node


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(ast.fix_missing_locations(_Folded().visit(node)))
    except (ValueError, TypeError, SyntaxError, ArithmeticError, RecursionError, MemoryError):
        raise BankError(f"its tests compute ({ast.unparse(node)[:60]!r}), which is no literal") from None


def program_of(text: str, function: str, start: str) -> str:
    """Return the program of an answer that defines a function; it may continue or leave out the question's `start`."""
    defined = re.compile(rf"^[ \t]*def[ \t]+{re.escape(function)}\b", re.MULTILINE)
    blocks = [block for block in _FENCED.findall(text) if block.strip()]
    whole = [block for block in blocks if defined.search(block)]
    before = start[: match.start()] if (match := defined.search(start)) else ""
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
    function, calls = item.meta.get("function"), item.meta.get("calls")
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
        arguments, expected = ast.literal_eval(call["arguments"]), ast.literal_eval(call["expected"])
        tolerance = float(call["tolerance"]) if "tolerance" in call else None
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
    calls, function = calls_of_item(item), str(item.meta["function"])
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
