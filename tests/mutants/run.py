"""Planted bugs: each mutant is applied to a copy of the source, and the tests it names must fail.

    python tests/mutants/run.py                 all of them
    python tests/mutants/run.py gate            those whose name or symbol holds a word
    python tests/mutants/run.py --part 1/4      the first of four parts

The lists are the `*.toml` files in this folder. A mutant has a name, a symbol, the code to find (exactly once in the
symbol), the code to put in its place, and tests. A symbol is `package.module:Class.method`, `package.module:` for the
module level, or `core/src/file.rs:function`. `pattern.py` and `rust.py` describe the patterns. Names in them are
metavariables, so that a mutant survives a rename.

A mutant of the core is compiled first. A test that fails without any mutant proves nothing. So the named tests run once
unchanged. On a busy machine, every test that fails runs unchanged again, because it may have waited too long.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pattern
import rust

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).resolve().parent
_WORKERS = 2
_FAILED = 1
"""pytest's exit code when tests ran and some failed; any other one is no proof."""
_ENDLESS = -1000
"""In place of an exit code when the tests had to be stopped."""
_PATIENCE = 1800
"""Seconds for the tests of one mutant; a mutant that is still running then was not killed by a test."""


@dataclass(frozen=True)
class Mutant:
    """One planted bug."""

    name: str
    symbol: str
    find: str
    replace: str
    tests: tuple[str, ...]

    @property
    def native(self) -> bool:
        """Whether the core must be compiled again."""
        return self.symbol.startswith("core/")

    @property
    def file(self) -> str:
        """The file of the symbol, from the root."""
        module = self.symbol.partition(":")[0]
        path = f"src/{module.replace('.', '/')}"
        return module if self.native else f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"

    def apply(self) -> str:
        """The changed code of its file; raises `PatternError` if the code to find is not there exactly once."""
        if not (ROOT / self.file).is_file():
            raise pattern.PatternError(f"there is no {self.file}")
        mutate = rust.mutate if self.native else pattern.mutate
        source = (ROOT / self.file).read_text(encoding="utf-8")
        changed = mutate(source, self.symbol.partition(":")[2], self.find, self.replace)
        if not self.native:
            # A program that does not compile fails every test and proves nothing.
            compile(ast.parse(changed), self.file, "exec", dont_inherit=True)
        return changed


def mutants(word: str = "") -> list[Mutant]:
    """All listed mutants whose name or symbol holds the word."""
    lists = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(LISTS.glob("*.toml"))]
    rows = [Mutant(**{**row, "tests": tuple(row["tests"])}) for listed in lists for row in listed["mutant"]]
    return [mutant for mutant in rows if word in mutant.name or word in mutant.symbol]


def misfit(mutant: Mutant) -> str:
    """Why a mutant cannot be applied; empty when it can."""
    try:
        mutant.apply()
    except (pattern.PatternError, SyntaxError) as error:
        return str(error)
    return "" if mutant.tests else "it names no tests"


def survives(mutant: Mutant) -> str:
    """Why a mutant was not killed; empty when a named test fails because of it."""
    if reason := misfit(mutant):
        return reason
    with tempfile.TemporaryDirectory(prefix="reticent-mutant-") as folder:
        source = Path(folder) / "src"
        # With the bytecode of all unchanged files: compiling the package takes longer than most tests.
        shutil.copytree(ROOT / "src", source)
        if mutant.native:
            if not _compiled(mutant, Path(folder), source):
                return "the core does not compile"
        else:
            _change(Path(folder), mutant)
        code, failed = run_tests(mutant.tests, source)
    if code != _FAILED:
        return {0: "no test fails", _ENDLESS: "the tests do not end"}.get(code, f"the tests did not run (exit {code})")
    if failed and _is_busy() and run_tests(failed, ROOT / "src")[0] != 0:
        return f"{failed[0]} fails without it, too"
    return ""


def run_tests(tests: tuple[str, ...], source: Path, patience: float | None = _PATIENCE) -> tuple[int, tuple[str, ...]]:
    """The exit code of pytest over some tests, with the package taken from a folder, and the tests that failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    env = os.environ | {"PYTHONPATH": str(source)}
    try:
        done = subprocess.run(
            ["nice", *command], cwd=ROOT, env=env, capture_output=True, check=False, timeout=patience, text=True
        )
    except subprocess.TimeoutExpired:
        return _ENDLESS, ()
    return done.returncode, tuple(re.findall(r"^FAILED (\S+?::\w+)", done.stdout, re.MULTILINE))


def _is_busy() -> bool:
    """Whether others use the machine, so that a test may fail because it had to wait."""
    return os.getloadavg()[0] > max(_WORKERS, os.cpu_count() or 1) + 1


def _change(folder: Path, mutant: Mutant) -> None:
    path = folder / mutant.file
    path.write_text(mutant.apply(), encoding="utf-8")
    for stale in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        stale.unlink()


def _compiled(mutant: Mutant, folder: Path, source: Path) -> bool:
    shutil.copytree(ROOT / "core", folder / "core", ignore=shutil.ignore_patterns("target"))
    _change(folder, mutant)
    target = ROOT / "core" / "target" / "mutants"
    command = ["nice", "cargo", "build", "--quiet", "--release", "--features", "extension-module"]
    env = os.environ | {"CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(command, cwd=folder / "core", env=env, capture_output=True, check=False)
    if done.returncode == 0:
        shutil.copy(target / "release" / "lib_core.so", source / "reticent" / "_core.abi3.so")
    return done.returncode == 0


def part_of(listed: list[Mutant], part: str) -> list[Mutant]:
    """Every n-th mutant, beginning at the m-th, of a part "m/n"."""
    number, parts = map(int, part.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(f"{part} is no part")
    return listed[number - 1 :: parts]


def main() -> int:
    """Tries the mutants; the exit code says whether one survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="")
    parser.add_argument("--part", default="1/1", metavar="M/N")
    asked, began = parser.parse_args(), time.monotonic()
    listed = part_of(mutants(asked.word), asked.part)
    tests = tuple(sorted({test for mutant in listed for test in mutant.tests}))
    code, failed = run_tests(tests, ROOT / "src", patience=None) if listed else (0, ())
    if failed and _is_busy():
        code, failed = run_tests(tests, ROOT / "src", patience=None)
    if not listed or code != 0:
        print(f"The named tests do not pass without a mutant: {failed}." if listed else "There is no such mutant.")
        return 2
    plain, native = ([mutant for mutant in listed if mutant.native is kind] for kind in (False, True))
    reasons = []
    # The compiler uses every core and one folder, so mutants of the core come one by one.
    with ThreadPoolExecutor(_WORKERS) as pool:
        for mutant, reason in zip(plain + native, chain(pool.map(survives, plain), map(survives, native)), strict=True):
            reasons.append(reason)
            print(
                f"  {'survives' if reason else 'killed  '}  {mutant.name}{f': {reason}' if reason else ''}", flush=True
            )
    alive = sum(map(bool, reasons))
    print(f"{len(listed) - alive} of {len(listed)} mutants killed in {time.monotonic() - began:.0f} s.")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
