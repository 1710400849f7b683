"""Mutation testing: does any test fail when one thing in the code is changed?

    pip install mutmut
    python tools/mutants.py store --out store.jsonl

Each mutant is tried in a copy of the repository. A process that has collected the tests forks,
changes the function, and runs the tests that reach it until one fails. Quick tests that reach the
changed statement come first. For a changed table or default, the package is imported again.
"""

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import _lru_cache_wrapper
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

import pytest
from chosen_tests import FewExamples, Only
from mutating import Mutant, mutants_of

coverage = import_module("coverage")  # mypy would find the benchmark of this name
PACKAGE = Path("src/cant_do_that_anymore")
AREAS = tomllib.loads(Path("tools/mutants.toml").read_text())
GOLDEN = "test_golden.py::test_the_numbers_are_those_they_always_were[a server]"
EXAMPLES = "test_documents.py::test_examples_in_docstrings_work[{}]"
VERDICTS = {0: "survived", 1: "killed", 2: "killed", None: "timeout"}
"""By exit code of a mutant's process: 2 if nothing can be imported. Any other code is a crash of
this tool, which says nothing about the tests."""
LONGEST = 20.0
"""Slower tests (in seconds) are not run, because they would run thousands of times."""
OPTIONS = "-q -n0 -s -p no:cacheprovider --no-header --tb=line -W ignore --basetemp tmp"


class Session(FewExamples):
    """A pytest plugin that collects the tests, and then tries mutants instead of running them."""

    def __init__(self, modules: list[Path], options: Namespace) -> None:
        self.modules, self.options = modules, options
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, dict[str, set[int]]] = {str(module): {} for module in modules}
        self.caches: list[_lru_cache_wrapper[object]] = []
        self.functions = defaultdict[str, list[FunctionType]](list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = {item.nodeid: item for item in items}
        for module in self.modules:
            imported = import_module(dotted(module)).__file__
            assert imported == str(module.resolve()), f"{imported} is not the mutated file"
        names = {dotted(module) for module in self.modules}
        for each in gc.get_objects():
            if isinstance(each, _lru_cache_wrapper) and each.__module__ in names:
                self.caches.append(each)
            if isinstance(each, FunctionType):
                self.functions[each.__code__.co_filename].append(each)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        if forked(self.measure, 1200) != 0:
            sys.exit(f"the tests fail without a mutant: {Path('output.txt').read_text()[-3000:]}")
        self.recall()
        print(f"{len(self.seconds)} tests in {sum(self.seconds.values()):.0f} s", flush=True)
        sys.dont_write_bytecode = True
        for module in self.modules:
            self.try_all(module)
        return True

    def try_all(self, module: Path) -> None:
        counts, start = Counter[str](), time.monotonic()
        for mutant in chosen(module, self.options):
            tests = self.tests_for(mutant)
            verdict = self.verdict(mutant, tests)
            counts[verdict] += 1
            row = {"verdict": verdict, "tests": len(tests), "module": str(module)}
            row |= {"line": mutant.line, "change": mutant.change}
            if verdict == "crashed":
                row["output"] = Path("output.txt").read_text()[-1000:]
            with self.options.out.open("a") as file:
                print(json.dumps(row), file=file)
        print(f"{module}: {dict(counts)} in {time.monotonic() - start:.0f} s", flush=True)

    def run(self, tests: list[str], watch: Any = None) -> int:
        """Run tests until one fails, and return 1 if one did."""
        for test, following in pairwise([*tests, ""]):
            start, item = time.process_time(), self.items[test]
            if watch:
                watch.switch_context(test)
                for cached in self.caches:
                    cached.cache_clear()
            after = None if watch else self.items.get(following)  # it has fixtures of its own
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            self.seconds[test] = time.process_time() - start
            if self.session.testsfailed:
                return 1
        return 0

    def recall(self) -> None:
        """Read how long each test takes, and which lines it reaches, as far as that is known."""
        if self.options.measured.exists():
            self.seconds, reached = json.loads(self.options.measured.read_text())
            for module, by_test in reached.items():
                known = {test: set(by_test[test]) for test in by_test if test in self.items}
                self.reached[module] = known

    def measure(self) -> int:
        """Run the tests without stored measurements, on the unchanged code."""
        self.recall()
        watch = coverage.Coverage(data_file=None, include=[f"{PACKAGE.resolve()}/*"])
        watch.start()
        code = self.run([test for test in self.items if test not in self.seconds], watch)
        watch.stop()
        reached: dict[str, dict[str, list[int]]] = {}
        for module in self.modules:
            by_test = defaultdict(list, {t: [*at] for t, at in self.reached[str(module)].items()})
            lines = watch.get_data().contexts_by_lineno(str(module.resolve()))
            for line, tests in lines.items():
                for test in filter(None, tests):
                    by_test[test].append(line)
            reached[str(module)] = by_test
        self.options.measured.write_text(json.dumps([self.seconds, reached]))
        return code

    def tests_for(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach the function, or all for a table, within the time limit."""
        reached = defaultdict[str, set[int]](set, self.reached[str(mutant.module)])
        reaching = {
            test: bool(mutant.function) and not reached[test] & {*mutant.statement}
            for test in self.items
            if self.seconds[test] < LONGEST
            and (not mutant.function or reached[test] & {*mutant.function})
        }
        tests: list[str] = []
        spent = 0.0
        for test in sorted(reaching, key=lambda test: (reaching[test], self.seconds[test])):
            spent += self.seconds[test]
            if not tests or spent <= self.options.seconds:
                tests.append(test)
        return tests

    def verdict(self, mutant: Mutant, tests: list[str]) -> str:
        if not tests:
            return "unreached"
        limit = 30 + 6 * sum(self.seconds[test] for test in tests)  # the machine may be busy
        with mutant.written():
            code = forked(lambda: self.run_changed(mutant, tests), limit)
        return VERDICTS.get(code, "crashed")

    def run_changed(self, mutant: Mutant, tests: list[str]) -> int:
        if not mutant.in_body:
            return run_imported_again(tests)
        mutant.put_into(self.functions[str(mutant.module.resolve())])
        return self.run(tests)


def run_imported_again(tests: list[str]) -> int:
    """Run tests in this process, with the package imported again."""
    ours = {PACKAGE.name, "tests", *(path.stem for path in Path("tests").iterdir())}
    for name in list(sys.modules):
        if name.split(".")[0] in ours:
            del sys.modules[name]
    files = {test.split("::")[0] for test in tests}
    return int(pytest.main([*OPTIONS.split(), "-x", *files], plugins=[Only(tests)]))


def forked(body: Callable[[], int], limit: float) -> int | None:
    """Run the body in a new process and return its result, or None if it takes too long."""
    if not (child := os.fork()):
        os.setsid()
        output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = 99
        try:
            code = body()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def chosen(module: Path, options: Namespace) -> list[Mutant]:
    mutants = list(mutants_of(module))
    if options.again:
        rows = [json.loads(line) for line in options.again.read_text().splitlines()]
        alive = [row for row in rows if row["verdict"] not in ("killed", "timeout")]
        wanted = {(row["module"], row["line"], row["change"]) for row in alive}
        mutants = [each for each in mutants if (str(module), each.line, each.change) in wanted]
    if options.sample and options.sample < len(mutants):
        mutants = Random(0).sample(mutants, options.sample)
    return mutants


def dotted(module: Path) -> str:
    return ".".join(module.with_suffix("").parts[1:])


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("area", choices=AREAS)
    parser.add_argument(
        "--out", type=Path, required=True, help="file for one line of JSON per mutant"
    )
    parser.add_argument("--module", help="only this module of the area")
    parser.add_argument("--sample", type=int, help="number of random mutants per module")
    parser.add_argument(
        "--seconds", type=float, default=30, help="processor time for the tests of a mutant"
    )
    parser.add_argument(
        "--again", type=Path, help="try only the mutants that survived in this file"
    )
    parser.add_argument(
        "--measured", type=Path, help="file that stores which tests reach which lines"
    )
    options = parser.parse_args()
    options.again, options.out = options.again and options.again.resolve(), options.out.resolve()
    modules = [PACKAGE / f"{name}.py" for name in AREAS[options.area]["modules"]]
    if options.module:
        modules = [PACKAGE / f"{options.module}.py"]
    tests = [*AREAS[options.area]["tests"], GOLDEN]
    tests += [EXAMPLES.format(dotted(each)) for each in modules if ">>> " in each.read_text()]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        shutil.copytree(".", scratch, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        options.measured = (options.measured or Path(scratch) / "measured.json").resolve()
        os.chdir(scratch)
        sys.path[:0] = paths = [f"{scratch}/src", f"{scratch}/tests"]
        os.environ["PYTHONPATH"] = ":".join(paths)
        files = [f"tests/{test}" for test in tests]
        pytest.main([*OPTIONS.split(), *files], plugins=[Session(modules, options)])


if __name__ == "__main__":
    main()
