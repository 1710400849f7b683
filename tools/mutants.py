"""Mutation testing: checks that some test fails when one thing in the code changes.

    pip install mutmut
    python tools/mutants.py cache --out cache.jsonl

Mutants run in a copy of the repository. A process that has collected the tests forks, changes the
function, and runs the tests that reach it until one fails. Fast tests that reach the changed
statement run first. For a changed table or default, the child process imports the package again.
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
from mutant_generator import Mutant, generate_mutants
from pytest_selection import FewExamples, SelectedTests

coverage = import_module("coverage")  # mypy would find benchmarks/coverage.py
PACKAGE = Path("src/cant_do_that_anymore")
AREAS = tomllib.loads(Path("tools/mutants.toml").read_text())
GOLDEN = "test_golden.py::test_runs_match_the_golden_file[a server]"
EXAMPLES = "test_documents.py::test_examples_in_docstrings_work[{}]"
VERDICTS = {0: "survived", 1: "killed", 2: "killed", None: "timeout"}
"""By exit code of the child process: 2 if an import fails. Any other code is a crash of this tool,
which says nothing about the tests."""
MAX_TEST_SECONDS = 20.0
"""Slower tests do not run, because they would run thousands of times."""
OPTIONS = "-q -n0 -s -p no:cacheprovider --no-header --tb=line -W ignore --basetemp tmp"


class Session(FewExamples):
    """Collects the tests, and then runs mutants instead of the tests."""

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
            imported = import_module(module_name(module)).__file__
            assert imported == str(module.resolve()), f"{imported} is not the mutated file"
        names = {module_name(module) for module in self.modules}
        for value in gc.get_objects():
            if isinstance(value, _lru_cache_wrapper) and value.__module__ in names:
                self.caches.append(value)
            if isinstance(value, FunctionType):
                self.functions[value.__code__.co_filename].append(value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        if run_in_fork(self.measure, 1200) != 0:
            sys.exit(f"the tests fail without a mutant: {Path('output.txt').read_text()[-3000:]}")
        self.load_measurements()
        print(f"{len(self.seconds)} tests in {sum(self.seconds.values()):.0f} s", flush=True)
        sys.dont_write_bytecode = True
        for module in self.modules:
            self.run_mutants(module)
        return True

    def run_mutants(self, module: Path) -> None:
        counts, start = Counter[str](), time.monotonic()
        for mutant in select_mutants(module, self.options):
            tests = self.select_tests(mutant)
            verdict = self.judge(mutant, tests)
            counts[verdict] += 1
            row = {"verdict": verdict, "tests": len(tests), "module": str(module)}
            row |= {"line": mutant.line, "change": mutant.change}
            if verdict == "crashed":
                row["output"] = Path("output.txt").read_text()[-1000:]
            with self.options.out.open("a") as file:
                print(json.dumps(row), file=file)
        print(f"{module}: {dict(counts)} in {time.monotonic() - start:.0f} s", flush=True)

    def run(self, tests: list[str], tracer: Any = None) -> int:
        """Run tests until one fails; return 1 if one failed, otherwise 0."""
        for test, following in pairwise([*tests, ""]):
            start, item = time.process_time(), self.items[test]
            if tracer:
                tracer.switch_context(test)
                for cache in self.caches:
                    cache.cache_clear()
            after = None if tracer else self.items.get(following)  # so that fixtures are not shared
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            self.seconds[test] = time.process_time() - start
            if self.session.testsfailed:
                return 1
        return 0

    def load_measurements(self) -> None:
        """Load the stored times of tests, and the lines that each test reaches."""
        if self.options.measurements.exists():
            self.seconds, reached = json.loads(self.options.measurements.read_text())
            for module, by_test in reached.items():
                known = {test: set(by_test[test]) for test in by_test if test in self.items}
                self.reached[module] = known

    def measure(self) -> int:
        """Measure the tests that have no stored measurements, on the unchanged code."""
        self.load_measurements()
        tracer = coverage.Coverage(data_file=None, include=[f"{PACKAGE.resolve()}/*"])
        tracer.start()
        code = self.run([test for test in self.items if test not in self.seconds], tracer)
        tracer.stop()
        reached: dict[str, dict[str, list[int]]] = {}
        for module in self.modules:
            by_test = defaultdict(list, {t: [*at] for t, at in self.reached[str(module)].items()})
            lines = tracer.get_data().contexts_by_lineno(str(module.resolve()))
            for line, tests in lines.items():
                for test in filter(None, tests):
                    by_test[test].append(line)
            reached[str(module)] = by_test
        self.options.measurements.write_text(json.dumps([self.seconds, reached]))
        return code

    def select_tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach the function (all for a table), up to the time limit."""
        reached = defaultdict[str, set[int]](set, self.reached[str(mutant.module)])
        misses_statement = {
            test: bool(mutant.function) and not reached[test] & {*mutant.statement}
            for test in self.items
            if self.seconds[test] < MAX_TEST_SECONDS
            and (not mutant.function or reached[test] & {*mutant.function})
        }
        tests: list[str] = []
        total = 0.0
        for test in sorted(misses_statement, key=lambda t: (misses_statement[t], self.seconds[t])):
            total += self.seconds[test]
            if not tests or total <= self.options.seconds:
                tests.append(test)
        return tests

    def judge(self, mutant: Mutant, tests: list[str]) -> str:
        """Run the tests on a mutant, and return its verdict."""
        if not tests:
            return "unreached"
        limit = 30 + 6 * sum(self.seconds[test] for test in tests)  # the machine may be busy
        with mutant.written():
            code = run_in_fork(lambda: self.run_mutant(mutant, tests), limit)
        return VERDICTS.get(code, "crashed")

    def run_mutant(self, mutant: Mutant, tests: list[str]) -> int:
        if not mutant.in_body:
            return run_after_reimport(tests)
        mutant.patch(self.functions[str(mutant.module.resolve())])
        return self.run(tests)


def run_after_reimport(tests: list[str]) -> int:
    """Import the package again, and run tests in this process."""
    own_modules = {PACKAGE.name, "tests", *(path.stem for path in Path("tests").iterdir())}
    for name in list(sys.modules):
        if name.split(".")[0] in own_modules:
            del sys.modules[name]
    files = {test.split("::")[0] for test in tests}
    return int(pytest.main([*OPTIONS.split(), "-x", *files], plugins=[SelectedTests(tests)]))


def run_in_fork(body: Callable[[], int], limit: float) -> int | None:
    """Run a function in a new process; return its result, or None after ``limit`` seconds."""
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
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def select_mutants(module: Path, options: Namespace) -> list[Mutant]:
    """Return the mutants of a module, filtered and sampled by the options."""
    mutants = list(generate_mutants(module))
    if options.again:
        rows = [json.loads(line) for line in options.again.read_text().splitlines()]
        survivors = {
            (row["module"], row["line"], row["change"])
            for row in rows
            if row["verdict"] not in ("killed", "timeout")
        }
        mutants = [m for m in mutants if (str(module), m.line, m.change) in survivors]
    if options.sample and options.sample < len(mutants):
        mutants = Random(0).sample(mutants, options.sample)
    return mutants


def module_name(module: Path) -> str:
    """Return the dotted name of a module."""
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
        "--seconds", type=float, default=30, help="CPU time for the tests of a mutant"
    )
    parser.add_argument(
        "--again", type=Path, help="run only the mutants that survived in this file"
    )
    parser.add_argument(
        "--measurements", type=Path, help="file that stores which tests reach which lines"
    )
    options = parser.parse_args()
    options.again, options.out = options.again and options.again.resolve(), options.out.resolve()
    modules = [PACKAGE / f"{name}.py" for name in AREAS[options.area]["modules"]]
    if options.module:
        modules = [PACKAGE / f"{options.module}.py"]
    tests = [*AREAS[options.area]["tests"], GOLDEN]
    tests += [EXAMPLES.format(module_name(m)) for m in modules if ">>> " in m.read_text()]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        shutil.copytree(".", scratch, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        options.measurements = (
            options.measurements or Path(scratch) / "measurements.json"
        ).resolve()
        os.chdir(scratch)
        sys.path[:0] = paths = [f"{scratch}/src", f"{scratch}/tests"]
        os.environ["PYTHONPATH"] = ":".join(paths)
        files = [f"tests/{test}" for test in tests]
        pytest.main([*OPTIONS.split(), *files], plugins=[Session(modules, options)])


if __name__ == "__main__":
    main()
