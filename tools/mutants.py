"""Mutation testing, by hand: does any test notice when one thing in the code is changed?

    pip install mutmut
    python tools/mutants.py store --out store.jsonl

Each mutant is tried in a copy of the repository: a process that has collected the tests forks,
changes the function and runs the tests that reach it, those that reach the statement and are quick
first, until one fails. A changed table or default is imported anew.
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

coverage = import_module("coverage")  # mypy takes this name for that of a benchmark
PACKAGE = Path("src/cant_do_that_anymore")
AREAS = tomllib.loads(Path("tools/mutants.toml").read_text())
GOLDEN = "test_golden.py::test_the_numbers_are_those_they_always_were[a server-{}]"
EXAMPLES = "test_documents.py::test_examples_in_docstrings_work[{}]"
VERDICTS = {0: "survived", 1: "killed", 2: "killed", None: "timeout"}
"""By how the process of a mutant ends: at 2 nothing can be imported. All else is a crash of what
tries it, which says nothing of the tests."""
LONGEST = 20.0
"""Seconds of one test; what takes longer is not for thousands of times."""
OPTIONS = "-q -n0 -s -p no:cacheprovider --no-header --tb=line -W ignore --basetemp tmp"


class Session(FewExamples):
    """A plugin of pytest: it collects, and then tries mutants instead of running the tests."""

    def __init__(self, modules: list[Path], told: Namespace) -> None:
        self.modules, self.told = modules, told
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
            sys.exit(f"the tests fail without a mutant: {Path('said.txt').read_text()[-3000:]}")
        self.recall()
        print(f"{len(self.seconds)} tests in {sum(self.seconds.values()):.0f} s", flush=True)
        sys.dont_write_bytecode = True
        for module in self.modules:
            self.try_all(module)
        return True

    def try_all(self, module: Path) -> None:
        counts, start = Counter[str](), time.monotonic()
        for mutant in chosen(module, self.told):
            tests = self.tests_for(mutant)
            found = self.verdict(mutant, tests)
            counts[found] += 1
            row = {"verdict": found, "tests": len(tests), "module": str(module)}
            row |= {"line": mutant.line, "change": mutant.change}
            if found == "crashed":
                row["said"] = Path("said.txt").read_text()[-1000:]
            with self.told.out.open("a") as file:
                print(json.dumps(row), file=file)
        print(f"{module}: {dict(counts)} in {time.monotonic() - start:.0f} s", flush=True)

    def run(self, tests: list[str], watch: Any = None) -> int:
        """Run tests until one fails; says whether one did."""
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
        if self.told.measured.exists():
            self.seconds, reached = json.loads(self.told.measured.read_text())
            for module, by_test in reached.items():
                known = {test: set(by_test[test]) for test in by_test if test in self.items}
                self.reached[module] = known

    def measure(self) -> int:
        """Run the tests of which that is not known, on the code as it is."""
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
        self.told.measured.write_text(json.dumps([self.seconds, reached]))
        return code

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that reach the function, or all for a table; as many as there is time for."""
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
            if not tests or spent <= self.told.seconds:
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
            return run_anew(tests)
        mutant.put_into(self.functions[str(mutant.module.resolve())])
        return self.run(tests)


def run_anew(tests: list[str]) -> int:
    """Run tests in this process, with the package imported again."""
    ours = {PACKAGE.name, "tests", *(path.stem for path in Path("tests").iterdir())}
    for name in list(sys.modules):
        if name.split(".")[0] in ours:
            del sys.modules[name]
    files = {test.split("::")[0] for test in tests}
    return int(pytest.main([*OPTIONS.split(), "-x", *files], plugins=[Only(tests)]))


def forked(body: Callable[[], int], limit: float) -> int | None:
    """What the body says in a process of its own, or None if it takes too long."""
    if not (child := os.fork()):
        os.setsid()
        said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
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


def chosen(module: Path, told: Namespace) -> list[Mutant]:
    mutants = list(mutants_of(module))
    if told.again:
        rows = [json.loads(line) for line in told.again.read_text().splitlines()]
        alive = [row for row in rows if row["verdict"] not in ("killed", "timeout")]
        wanted = {(row["module"], row["line"], row["change"]) for row in alive}
        mutants = [each for each in mutants if (str(module), each.line, each.change) in wanted]
    if told.sample and told.sample < len(mutants):
        mutants = Random(0).sample(mutants, told.sample)
    return mutants


def dotted(module: Path) -> str:
    return ".".join(module.with_suffix("").parts[1:])


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--out", type=Path, required=True, help="gets a line for each mutant")
    parser.add_argument("--sample", type=int, help="so many mutants a module, at random")
    parser.add_argument("--seconds", type=float, default=30, help="of processor time for a mutant")
    parser.add_argument("--again", type=Path, help="only those that survived in this file")
    parser.add_argument("--measured", type=Path, help="keeps what is known of the tests")
    told = parser.parse_args()
    told.again, told.out = told.again and told.again.resolve(), told.out.resolve()
    modules = [PACKAGE / f"{name}.py" for name in AREAS[told.area]["modules"]]
    tests = AREAS[told.area]["tests"] + [GOLDEN.format(each) for each in ("all", "all_diagonal")]
    tests += [EXAMPLES.format(dotted(each)) for each in modules if ">>> " in each.read_text()]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        shutil.copytree(".", scratch, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        told.measured = (told.measured or Path(scratch) / "measured.json").resolve()
        os.chdir(scratch)
        sys.path[:0] = paths = [f"{scratch}/src", f"{scratch}/tests"]
        os.environ["PYTHONPATH"] = ":".join(paths)
        files = [f"tests/{test}" for test in tests]
        pytest.main([*OPTIONS.split(), *files], plugins=[Session(modules, told)])


if __name__ == "__main__":
    main()
