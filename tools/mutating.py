"""Mutants of a module: its code with one change, by the operators of mutmut.

In addition to mutmut, these change properties, decorated functions and tables, and remove elements
of lists and dictionaries. They leave out texts for people (docstrings, annotations, messages,
titles) and changes that mypy finds (None instead of a value, a missing argument).
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


def named(*names: str) -> m.OneOf[Any]:
    return m.OneOf(*(m.Name(name) for name in names))


LEFT_ALONE = m.OneOf(
    *(m.Annotation(), m.Decorator(), m.Import(), m.ImportFrom(), m.Raise(), m.Assert()),
    m.Expr(m.SimpleString() | m.ConcatenatedString()),
    m.Arg(keyword=named("meaning", "title", "remark", "compared")),
    m.Call(named("UserError", "TypeVar") | m.Attribute(m.Name("log"))),
    m.Subscript(named("Callable", "Literal")),
)
TABLE_ROW, TEXT = m.Call(named("Measure", "Statistic")), m.Arg(m.SimpleString(), keyword=None)
TAKES_FEWER = named("getattr", "max", "min", "next", "range", "round", "sum") | m.Attribute(
    attr=named("decode", "encode", "execute", "get", "replace", "run", "split", "strip", "sub")
)
"""Calls that also work with fewer arguments."""


class Mutant(NamedTuple):
    """The changed code, with the lines of the function (empty for a table) and of the statement.

    ``in_body``: whether the change is in the body of the function, not in its defaults.
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
        """Write the mutant in place of the module while it is imported again."""
        original, when = self.module.read_text(), self.module.stat()
        self.module.write_text(self.code)
        os.utime(self.module, (0, 0))  # so that no compiled file is used for it
        try:
            yield
        finally:
            self.module.write_text(original)
            os.utime(self.module, ns=(when.st_atime_ns, when.st_mtime_ns))

    def put_into(self, functions: Iterable[FunctionType]) -> None:
        """Replace the code of the module's functions in this process."""
        new = defaultdict[str, list[CodeType]](list)
        for code in codes_in(compile(self.code, self.module.resolve(), "exec")):
            new[code.co_qualname].append(code)
        for function in functions:
            codes, line = new[function.__code__.co_qualname], function.__code__.co_firstlineno
            for code in codes:
                if len(codes) == 1 or code.co_firstlineno == line:
                    function.__code__ = code


def codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes_in(each)


def mutants_of(module: Path) -> Iterator[Mutant]:
    wrapper = MetadataWrapper(cst.parse_module(module.read_text()))
    places, old = wrapper.resolve(PositionProvider), wrapper.module.code

    def lines_of(node: cst.CSTNode) -> range:
        return range(places[node].start.line, places[node].end.line + 1)

    def walk(node: cst.CSTNode, function: range, statement: range, body: bool) -> Iterator[Mutant]:
        if m.matches(node, LEFT_ALONE):
            return
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            function, body = lines_of(node), True
        if isinstance(node, cst.Parameters):
            body = False
        if isinstance(node, cst.SimpleStatementLine):
            statement = lines_of(node)
        for new in changes_of(node):
            changed = wrapper.module.deep_replace(node, new)
            if isinstance(changed, cst.Module) and changed.code != old:
                lines, text = lines_of(node), f"{shown(node)}  ->  {shown(new)}"
                where = (function, statement or lines, body)
                yield Mutant(module, lines[0], *where, text, changed.code)
        for child in node.children:
            if not (m.matches(node, TABLE_ROW) and m.matches(child, TEXT)):
                yield from walk(child, function, statement, body)

    yield from walk(wrapper.module, range(0), range(0), body=False)


def changes_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for kind, mutate in mutation_operators:
        if isinstance(node, kind):
            yield from (new for new in mutate(node) if not is_trivial(node, new))
    if isinstance(node, cst.List | cst.Dict) and len(node.elements) > 1:
        for number in range(len(node.elements)):
            left = [each for place, each in enumerate(node.elements) if place != number]
            yield node.with_changes(elements=left)


def is_trivial(old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether mypy finds the change, or the same text was already changed."""
    if isinstance(new, cst.SimpleString):
        return "XX" not in new.value
    if isinstance(new, cst.Assign | cst.AnnAssign) and not isinstance(old, cst.AugAssign):
        return True
    if not (isinstance(old, cst.Call) and isinstance(new, cst.Call)):
        return False
    if len(new.args) == len(old.args):
        return bool(new.func.deep_equals(old.func))
    lost = [arg for arg in old.args if arg not in new.args]
    return not (any(arg.keyword for arg in lost) or m.matches(old.func, TAKES_FEWER))


def shown(node: cst.CSTNode) -> str:
    return " ".join(cst.Module([]).code_for_node(node).split())
