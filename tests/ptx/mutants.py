#!/usr/bin/env python3
"""Mutants of a program's compiled kernels: runs the test cases that reach each until one fails.

mutants.py PROGRAM --expected FILE [--jobs N] [--comparisons N] [--kinds KIND,...] [--log FILE]
mutants.py PROGRAM --sample FILE      only the mutants of FILE, each with the case that stands there

FILE has the mutants that survive, KIND | KERNEL | NUMBERS | REASON. Status 1: another mutant survives, or one of them
is caught. N limits the comparisons of an entry (default 2), taken evenly from all; 0 takes all.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# How a run tells that it noticed, the first that fits.
SIGNS = {
    "race": "race: ",
    "copy in flight": "cp.async may still write",
    "uninitialised": "uninitialised|never written",
    "out of bounds": "out of bounds|lies in no allocation",
    "misaligned": "misaligned",
    "barrier": "barrier|not reached by all|diverge",
    "other fault": ", block .*, thread .*, line ",
    "wrong result": ": failed: ",
}
BROKEN = re.compile(r"no mutant is called|no code with the mutant|PTX line \d+: ")


@dataclass(frozen=True)
class Mutant:
    kind: str
    number: int
    entry: str
    changed: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number} {self.entry}"


@dataclass(frozen=True)
class Case:
    name: str
    seconds: float
    entries: frozenset[str]


@dataclass(frozen=True)
class Outcome:
    """`sign` is empty where the mutant survives."""

    mutant: Mutant
    sign: str
    case: str = ""


@dataclass
class Kernels:
    """Names of entries for people: the file, then the demangled name without namespaces and arguments."""

    short: dict[str, str] = field(default_factory=dict)

    def learn(self, entries: Iterable[str]) -> None:
        names = sorted(set(entries))
        command = ["c++filt"]
        output = subprocess.run(command, input="\n".join(names), capture_output=True, text=True, check=True).stdout
        for entry, demangled in zip(names, output.splitlines(), strict=True):
            self.short[entry] = f"{file_of(entry)}: {without_arguments(demangled)}"


def file_of(entry: str) -> str:
    """Names in an anonymous namespace hold that of their file: ..._13_batch_norm_cu_db871f52..."""
    found = re.search(r"_GLOBAL__N__[0-9a-f]+_\d+_(\w+?)_cu_[0-9a-f]{8}", entry)
    return f"{found[1]}.cu" if found else "?"


def without_arguments(demangled: str) -> str:
    text = demangled.replace("(anonymous namespace)::", "").removeprefix("void ")
    depth, end = 0, len(text)
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if text[place] == "(" and depth == 0:
            end = place
            break
    return re.sub(r"\b(halfscope|cuda|ordered)::", "", text[:end])


def run(command: list[str], seconds: float | None = None, **variables: str) -> tuple[int, str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
    )
    return result.returncode, result.stdout + result.stderr


def exact(name: str) -> str:
    """The specification of Catch2 for one case."""
    return re.sub(r"([\\,\[\]*])", r"\\\1", name)


def mutants_of(program: str, folder: Path) -> list[Mutant]:
    file = folder / "mutants"
    run([program, "--list-tags"], HALFSCOPE_PTX_MUTANTS=str(file))
    mutants = []
    for line in file.read_text(encoding="utf-8").splitlines():
        name, changed = line.split("\t", 1)
        kind, number, entry = name.split(" ")
        mutants.append(Mutant(kind, int(number), entry, changed))
    return mutants


def spread(mutants: list[Mutant], most: int) -> list[Mutant]:
    """At most `most` comparisons of each entry, the first one and then others evenly."""
    of_entry = defaultdict(list)
    for mutant in mutants:
        if mutant.kind == "comparison":
            of_entry[mutant.entry].append(mutant)
    taken = [mutant for mutant in mutants if mutant.kind != "comparison"]
    for comparisons in of_entry.values():
        count = len(comparisons) if most == 0 else min(most, len(comparisons))
        taken += [comparisons[i * len(comparisons) // count] for i in range(count)]
    return taken


def measured(program: str, name: str, folder: Path) -> Case:
    """Its time, and the entries that it launches."""
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        pass
    started = time.monotonic()
    status, output = run([program, exact(name)], HALFSCOPE_PTX_COVERAGE=file.name)
    if status != 0:
        raise ValueError(f"'{name}' fails without a mutant:\n{output}")
    seconds = time.monotonic() - started
    records = [json.loads(line) for line in Path(file.name).read_text(encoding="utf-8").splitlines()]
    entries = frozenset(entry for record in records for entry, count in record["entries"].items() if count > 0)
    return Case(name, seconds, entries)


def sign_of(mutant: Mutant, output: str) -> str:
    if BROKEN.search(output):
        raise ValueError(f"{mutant.name}: the mutant could not be run:\n{output}")
    return next((sign for sign, pattern in SIGNS.items() if re.search(pattern, output)), "crash")


def sign_in(program: str, mutant: Mutant, case: str, seconds: float) -> str:
    """How the case notices the mutant; empty where it does not. A busy machine may need ten times as long."""
    command = [program, "-r", "compact", exact(case)]
    for limit in (10 + 20 * seconds, 100 + 200 * seconds):
        try:
            status, output = run(command, limit, HALFSCOPE_PTX_MUTANT=mutant.name)
        except subprocess.TimeoutExpired:
            continue
        return sign_of(mutant, output) if status != 0 else ""
    return "no end"


def examined(program: str, mutant: Mutant, cases: list[Case]) -> Outcome:
    for case in cases:
        if mutant.entry not in case.entries:
            continue
        if sign := sign_in(program, mutant, case.name, case.seconds):
            return Outcome(mutant, sign, case.name)
    return Outcome(mutant, "")


def report(outcomes: list[Outcome]) -> Iterator[str]:
    """A line per kind: how many, caught, and by which sign."""
    for kind in dict.fromkeys(outcome.mutant.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.mutant.kind == kind]
        signs = Counter(outcome.sign for outcome in of_kind if outcome.sign)
        caught = sum(signs.values())
        how = ", ".join(f"{sign} {count}" for sign, count in signs.most_common())
        yield f"{kind}: {caught} of {len(of_kind)} caught" + (f" ({how})" if how else "")


def fields_of(file: str) -> Iterator[list[str]]:
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield [part.strip() for part in line.split("|")]


def note(log: str, outcome: Outcome, kernels: Kernels) -> None:
    """Appends a line to the log, while the others run."""
    if not log:
        return
    mutant = outcome.mutant
    fields = (mutant.name, kernels.short[mutant.entry], outcome.sign, outcome.case, mutant.changed)
    with Path(log).open("a", encoding="utf-8") as file:
        print(*fields, sep="\t", file=file)


Key = tuple[str, str, int]  # kind, kernel, number


def expected_survivors(file: str) -> set[Key]:
    return {
        (kind, kernel, int(number)) for kind, kernel, numbers, _ in fields_of(file) for number in numbers.split(",")
    }


def differences(outcomes: list[Outcome], kernels: Kernels, expected: set[Key]) -> Iterator[str]:
    """New survivors among the mutants that were run, and expected survivors that were caught."""
    for outcome in outcomes:
        mutant = outcome.mutant
        kernel = kernels.short[mutant.entry]
        listed = (mutant.kind, kernel, mutant.number) in expected
        if listed == bool(outcome.sign):
            what = f"caught ({outcome.sign}), but listed" if listed else "survives, and is not listed"
            yield f"{mutant.kind} | {kernel} | {mutant.number} {what}: {mutant.changed}"


def run_all(options: argparse.Namespace, folder: Path) -> int:
    program, kernels = options.program, Kernels()
    listed = mutants_of(program, folder)
    kernels.learn(mutant.entry for mutant in listed)
    kinds = options.kinds.split(",") if options.kinds else {mutant.kind for mutant in listed}
    mutants = [mutant for mutant in spread(listed, options.comparisons) if mutant.kind in kinds]
    names = [name for name in run([program, "--list-test-names-only", "~[long]"])[1].splitlines() if name.strip()]
    with ThreadPoolExecutor(options.jobs) as pool:
        cases = list(pool.map(lambda name: measured(program, name, folder), names))
        cases.sort(key=lambda case: case.seconds)
        outcomes = []
        for outcome in pool.map(lambda mutant: examined(program, mutant, cases), mutants):
            outcomes.append(outcome)
            note(options.log, outcome, kernels)
    wrong = list(differences(outcomes, kernels, expected_survivors(options.expected)))
    print("\n".join([*report(outcomes), *wrong]))
    return 1 if wrong else 0


def run_sample(options: argparse.Namespace, folder: Path) -> int:
    """Lines KIND | KERNEL | NUMBER | CASE: all are caught."""
    program, kernels = options.program, Kernels()
    listed = mutants_of(program, folder)
    kernels.learn(mutant.entry for mutant in listed)
    by_key = {(m.kind, kernels.short[m.entry], m.number): m for m in listed}
    outcomes = []
    for kind, kernel, number, case in fields_of(options.sample):
        mutant = by_key[kind, kernel, int(number)]
        outcomes.append(Outcome(mutant, sign_in(program, mutant, case, 5), case))
    wrong = list(differences(outcomes, kernels, set()))
    print("\n".join([*report(outcomes), *wrong]))
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--expected")
    what.add_argument("--sample")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--comparisons", type=int, default=2)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--log", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            return (run_sample if options.sample else run_all)(options, Path(folder))
        except (OSError, ValueError, KeyError) as error:
            print(f"mutants.py: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
