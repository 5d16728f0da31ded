"""Which test functions check something whatever they meet: not only in a loop, which may be over nothing, nor
only under an ``if``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
TESTS = {file.stem: file for file in sorted((ROOT / "tests").rglob("*.py"))}
Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Elsewhere = ast.While | ast.Match | ast.ExceptHandler | ast.Lambda | ast.ClassDef | Function
_KEEPING = {
    "array",
    "enumerate",
    "sorted",
    "reversed",
    "list",
    "tuple",
    "set",
    "dict",
    "items",
    "keys",
    "values",
}
_CHECKS = {"raises", "warns", "fail"}  # of pytest


class Known(NamedTuple):
    """Names that stand for something which is not empty, and those of assertion helpers."""

    filled: frozenset[str] = frozenset()
    helpers: frozenset[str] = frozenset()


def unsure(text: str) -> list[tuple[int, str]]:
    """Line and name of the tests in a module that check something, but not for sure."""
    known, functions = _module(text)
    tests = [f for f in functions if f.name.startswith("test_")]
    return [(f.lineno, f.name) for f in tests if not _is_sure(f, known) and _may_check(f, known)]


def _is_sure(function: Function, known: Known) -> bool:
    if _any(function.body, Known(helpers=known.helpers)):  # most are: nothing is looked up
        return True
    inside = [node for statement in function.body for node in ast.walk(statement)]
    filled = known.filled - {
        argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)
    }
    known = Known(_filled_names(inside, filled), known.helpers)
    return _any(function.body, known)


def _may_check(function: Function, known: Known) -> bool:
    return any(isinstance(n, ast.Assert) or _is_check(n, known) for n in ast.walk(function))


def _is_check(node: ast.AST, known: Known) -> bool:
    """Whether it is a call that checks: of pytest, of numpy.testing, of a helper."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _CHECKS or node.func.attr.startswith("assert_")
    return isinstance(node.func, ast.Name) and node.func.id in known.helpers


def _reaches(node: ast.AST, known: Known) -> bool:
    """Whether a check is made wherever ``node`` runs to its end."""
    match node:
        case ast.Assert():
            sure = _says_something(node.test, known)
        case ast.For():
            sure = _reaches(node.iter, known) or (_filled(node.iter, known) and _any(node.body, known))
        case ast.If():
            sure = _reaches(node.test, known) or (_any(node.body, known) and _any(node.orelse, known))
        case ast.IfExp():
            sure = _reaches(node.test, known)
        case _ if isinstance(node, _Elsewhere):
            sure = False
        case _ if isinstance(node, _Comprehension) and not _filled(node, known):
            sure = _reaches(node.generators[0].iter, known)
        case _:
            sure = _is_check(node, known) or _any(ast.iter_child_nodes(node), known)
    return sure


def _any(nodes: Iterable[ast.AST], known: Known) -> bool:
    return any(_reaches(node, known) for node in nodes)


def _says_something(test: ast.expr, known: Known) -> bool:
    """Not ``all(…)``, ``not any(…)`` or ``[…] == []`` of a comprehension over what may be empty."""
    match test:
        case ast.BoolOp(op=ast.And()):
            return any(_says_something(part, known) for part in test.values)
        case (
            ast.Call(func=ast.Name("all"), args=[looped])
            | ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name("any"), args=[looped]))
        ) if isinstance(looped, _Comprehension):
            return _filled(looped, known)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]) if isinstance(left, _Comprehension):
            nothing = ast.unparse(right) in ("[]", "{}", "set()")
            return not nothing or all(_filled(loop.iter, known) for loop in left.generators)
    return True


def _filled(value: ast.expr | None, known: Known) -> bool:
    """Whether there is something in it for sure; of a number: whether it is not zero."""
    match value:
        case ast.Name():
            sure = value.id in known.filled
        case ast.Constant():
            sure = bool(value.value)
        case ast.Tuple() | ast.List() | ast.Set():
            sure = any(not isinstance(e, ast.Starred) or _filled(e.value, known) for e in value.elts)
        case ast.Dict():
            sure = any(value.keys)  # None stands for the dictionary in a **
        case ast.BinOp(op=ast.Add() | ast.BitOr()):
            sure = _filled(value.left, known) or _filled(value.right, known)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            sure = all(_filled(loop.iter, known) and not loop.ifs for loop in value.generators)
        case ast.Call():
            sure = _call_filled(value, known)
        case _:
            sure = False
    return sure


def _call_filled(call: ast.Call, known: Known) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    if name == "range" and len(given) == 1:
        return _filled(given[0], known)
    if name == "range":
        bounds = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
        return len(bounds) == len(call.args) and len(range(*bounds)) > 0
    if name == "zip" and call.keywords:  # strict
        return any(_filled(argument, known) for argument in given)
    if name in ("zip", "product"):
        return all(_filled(argument, known) for argument in given)
    return name == "nonempty" or (name in _KEEPING and len(given) > 0 and _filled(given[0], known))


def _filled_names(nodes: Iterable[ast.AST], filled: frozenset[str]) -> frozenset[str]:
    """``filled`` after the assignments and loops in ``nodes``."""
    for target, value in _bindings(nodes):
        names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        sure = value is not None and isinstance(target, ast.Name) and _filled(value, Known(filled))
        filled = filled | names if sure else filled - names
    return filled


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What is bound to which value; to None where that is not known."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from zip(targets, values, strict=True)
            case ast.Assign(targets=[target], value=value):
                yield target, value
            case ast.AnnAssign(target=target, value=value):
                yield target, value
            case ast.For(target=target) | ast.comprehension(target=target):
                yield target, None
            case ast.withitem(optional_vars=ast.expr() as target):
                yield target, None


@cache
def _module(text: str) -> tuple[Known, list[Function]]:
    """What a module knows, of its own and of other modules of the tests; its functions, also inner ones."""
    known, tree = Known(), ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            imported, names = (
                _of(node.module or ""),
                frozenset(alias.asname or alias.name for alias in node.names),
            )
            known = Known(known.filled | imported.filled & names, known.helpers | imported.helpers & names)
        elif isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
            known = known._replace(filled=known.filled | {node.name})
        else:
            known = known._replace(filled=_filled_names([node], known.filled))
    for function in functions:
        if _helps(function, known):
            known = known._replace(helpers=known.helpers | {function.name})
    return known, functions


def _helps(function: Function, known: Known) -> bool:
    """Whether it is an assertion helper: it gives nothing back and checks for sure."""
    gives_nothing = isinstance(function.returns, ast.Constant) and function.returns.value is None
    return gives_nothing and not function.name.startswith("test_") and _is_sure(function, known)


def _of(module: str) -> Known:
    """What a module of the tests knows; of another, nothing."""
    return _module(TESTS[module].read_text(encoding="utf-8"))[0] if module in TESTS else Known()
