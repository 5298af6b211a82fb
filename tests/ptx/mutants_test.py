#!/usr/bin/env python3
"""Runs mutants.py on a program with known mutants and cases."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).with_name("mutants.py")
ENTRY = "_ZN46_GLOBAL__N__a986c148_13_batch_norm_cu_db871f521kEv"
SHORT = "batch_norm.cu: k"
# Two cases reach the entry; only the slow one notices that barrier 2 is missing, none that barrier 3 is.
PROGRAM = f"""#!{sys.executable}
import os, sys, time
mutant = os.environ.get("HALFSCOPE_PTX_MUTANT", "")
if file := os.environ.get("HALFSCOPE_PTX_MUTANTS"):
    kinds = [("barrier", 3, "bar.sync 0;"), ("comparison", 9, "setp.lt.s32"), ("wait", 1, "cp.async.wait_group 1;")]
    with open(file, "w") as out:
        for kind, count, changed in kinds:
            out.writelines(f"{{kind}} {{i}} {ENTRY}\\t{{changed}}\\n" for i in range(1, count + 1))
if "--list-test-names-only" in sys.argv:
    print("quick, or not\\nslow\\nelsewhere")
case = sys.argv[-1]
time.sleep(0.2 if case == "slow" else 0)
if file := os.environ.get("HALFSCOPE_PTX_COVERAGE"):
    launches = 0 if case == "elsewhere" else 1
    with open(file, "a") as out:
        out.write('{{"entries": {{"{ENTRY}": %d}}, "opcodes": {{}}}}\\n' % launches)
if case == "elsewhere" and mutant:
    sys.exit("elsewhere does not reach the mutant")
if mutant.startswith("barrier 1"):
    fault = mutant + ", block 0, thread 0, line 3, 'ld': race: read"
    sys.exit("x.cpp:3: failed: unexpected exception with message: '" + fault + "'")
if mutant.startswith("wait") or (mutant.startswith("barrier 2") and case == "slow"):
    sys.exit("x.cpp:3: failed: a == b for: 1 == 2")
if mutant.startswith("comparison 7"):
    sys.exit("no mutant is called '" + mutant + "'")
"""


class Mutants(unittest.TestCase):
    def run_on(self, file: str, *options: str, how: str = "--expected") -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            program, survivors = Path(folder, "program"), Path(folder, "file")
            program.write_text(PROGRAM)
            program.chmod(0o755)
            survivors.write_text(file)
            command = [sys.executable, str(TOOL), str(program), how, str(survivors), *options]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def check(self, result: subprocess.CompletedProcess[str], status: int, lines: list[str]) -> None:
        self.assertEqual((result.returncode, result.stdout.splitlines(), result.stderr), (status, lines, ""))

    def test_cases_that_reach_an_entry_run_until_one_fails(self) -> None:
        result = self.run_on(f"# a reason\nbarrier | {SHORT} | 3 | redundant\n", "--kinds", "barrier,wait")
        self.check(
            result, 0, ["barrier: 2 of 3 caught (race 1, wrong result 1)", "wait: 1 of 1 caught (wrong result 1)"]
        )

    def test_a_new_survivor_and_a_caught_one_that_is_listed_fail(self) -> None:
        result = self.run_on(f"barrier | {SHORT} | 1,2 | none\n", "--kinds", "barrier")
        lines = [
            "barrier: 2 of 3 caught (race 1, wrong result 1)",
            f"barrier | {SHORT} | 1 caught (race), but listed: bar.sync 0;",
            f"barrier | {SHORT} | 2 caught (wrong result), but listed: bar.sync 0;",
            f"barrier | {SHORT} | 3 survives, and is not listed: bar.sync 0;",
        ]
        self.check(result, 1, lines)

    def test_comparisons_are_taken_evenly(self) -> None:
        result = self.run_on("", "--kinds", "comparison", "--comparisons", "3")
        lines = ["comparison: 0 of 3 caught"]
        lines += [f"comparison | {SHORT} | {i} survives, and is not listed: setp.lt.s32" for i in (1, 4)]
        broken = self.run_on("", "--kinds", "comparison", "--comparisons", "2")
        self.check(broken, 1, ["comparison: 0 of 2 caught", lines[1], lines[1].replace("| 1 ", "| 5 ")])
        self.assertEqual((result.returncode, result.stdout), (2, ""))  # number 7 could not be run
        self.assertIn("could not be run", result.stderr)

    def test_a_sample_is_run_on_its_cases(self) -> None:
        good = self.run_on(f"barrier | {SHORT} | 1 | quick, or not\nbarrier | {SHORT} | 2 | slow\n", how="--sample")
        self.check(good, 0, ["barrier: 2 of 2 caught (race 1, wrong result 1)"])
        bad = self.run_on(f"barrier | {SHORT} | 2 | quick, or not\n", how="--sample")
        self.check(
            bad, 1, ["barrier: 0 of 1 caught", f"barrier | {SHORT} | 2 survives, and is not listed: bar.sync 0;"]
        )
        unknown = self.run_on(f"barrier | {SHORT} | 4 | slow\n", how="--sample")
        self.assertEqual((unknown.returncode, unknown.stdout, unknown.stderr.count("\n")), (2, "", 1))


if __name__ == "__main__":
    unittest.main()
