"""Generates the mutants of a module: its code with one change, made by the operators of mutmut.

Unlike mutmut, this generator also changes properties, decorated functions and tables, and removes
elements of lists and dictionaries. It leaves out user-facing text (docstrings, messages, titles),
annotations, and changes that mypy finds (None instead of a value, a missing argument).
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import libcst as cst
from libcst import matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators


def any_name(*names: str) -> m.OneOf[Any]:
    return m.OneOf(*(m.Name(name) for name in names))


UNCHANGED = m.OneOf(
    *(m.Annotation(), m.Decorator(), m.Import(), m.ImportFrom(), m.Raise(), m.Assert()),
    m.Expr(m.SimpleString() | m.ConcatenatedString()),
    m.Arg(keyword=any_name("meaning", "title", "remark", "compared", "column")),
    m.Call(any_name("UserError", "TypeVar") | m.Attribute(m.Name("log"))),
    m.Subscript(any_name("Callable", "Literal")),
)
TABLE_ROW = m.Call(any_name("Measure", "Statistic", "Amount"))
TITLE = m.Arg(m.SimpleString(), keyword=None)
HAS_OPTIONAL_ARGUMENTS = any_name(
    "getattr", "max", "min", "next", "range", "round", "sum"
) | m.Attribute(
    attr=any_name("decode", "encode", "execute", "get", "replace", "run", "split", "strip", "sub")
)
"""Calls that mypy accepts with fewer arguments."""


class Mutant(NamedTuple):
    """A module with one change.

    Attributes:
        module: the file.
        line: the line of the change.
        function: the lines of the function; empty for a table.
        statement: the lines of the statement.
        in_body: whether the change is in the body of a function, not in its defaults.
        change: the old and the new code.
        code: the code of the changed module.
    """

    module: Path
    line: int
    function: range
    statement: range
    in_body: bool
    change: str
    code: str

    @contextmanager
    def written(self) -> Iterator[None]:
        """Replace the module's file by the mutant."""
        original, stat = self.module.read_text(), self.module.stat()
        self.module.write_text(self.code)
        os.utime(self.module, (0, 0))  # so that Python uses no compiled file
        try:
            yield
        finally:
            self.module.write_text(original)
            os.utime(self.module, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def patch(self, functions: Iterable[FunctionType]) -> None:
        """Replace the code of the module's functions in this process by the mutant's."""
        new = defaultdict[str, list[CodeType]](list)
        for code in nested_codes(compile(self.code, self.module.resolve(), "exec")):
            new[code.co_qualname].append(code)
        for function in functions:
            codes, line = new[function.__code__.co_qualname], function.__code__.co_firstlineno
            for code in codes:
                if len(codes) == 1 or code.co_firstlineno == line:
                    function.__code__ = code


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)


def generate_mutants(module: Path) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    wrapper = MetadataWrapper(cst.parse_module(module.read_text()))
    positions, old = wrapper.resolve(PositionProvider), wrapper.module.code

    def lines_of(node: cst.CSTNode) -> range:
        return range(positions[node].start.line, positions[node].end.line + 1)

    def walk(node: cst.CSTNode, function: range, statement: range, body: bool) -> Iterator[Mutant]:
        if m.matches(node, UNCHANGED):
            return
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            function, body = lines_of(node), True
        if isinstance(node, cst.Parameters):
            body = False
        if isinstance(node, cst.SimpleStatementLine):
            statement = lines_of(node)
        for new in change_node(node):
            changed = wrapper.module.deep_replace(node, new)
            if isinstance(changed, cst.Module) and changed.code != old:
                lines, text = lines_of(node), f"{one_line(node)}  ->  {one_line(new)}"
                where = (function, statement or lines, body)
                yield Mutant(module, lines[0], *where, text, changed.code)
        for child in node.children:
            if not (m.matches(node, TABLE_ROW) and m.matches(child, TITLE)):
                yield from walk(child, function, statement, body)

    yield from walk(wrapper.module, range(0), range(0), body=False)


def change_node(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the changed versions of a node."""
    for kind, mutate in mutation_operators:
        if isinstance(node, kind):
            yield from (new for new in mutate(node) if not is_trivial(node, new))
    if isinstance(node, cst.List | cst.Dict) and len(node.elements) > 1:
        for number in range(len(node.elements)):
            elements = [*node.elements[:number], *node.elements[number + 1 :]]
            yield node.with_changes(elements=elements)


def is_trivial(old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether mypy finds the change, or another mutant changes the same text."""
    if isinstance(new, cst.SimpleString):
        return "XX" not in new.value
    if isinstance(new, cst.Assign | cst.AnnAssign) and not isinstance(old, cst.AugAssign):
        return True
    if not (isinstance(old, cst.Call) and isinstance(new, cst.Call)):
        return False
    if len(new.args) == len(old.args):
        return bool(new.func.deep_equals(old.func))
    removed = [arg for arg in old.args if arg not in new.args]
    return not (any(arg.keyword for arg in removed) or m.matches(old.func, HAS_OPTIONAL_ARGUMENTS))


def one_line(node: cst.CSTNode) -> str:
    """Return the code of a node in one line."""
    return " ".join(cst.Module([]).code_for_node(node).split())
