"""A wrong HALFSCOPE_ISA ends every program with one line and exit status 2: isa_test.py PROGRAM..."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

PROGRAMS = sys.argv[1:]
KNOWN = ("baseline", "avx2", "avx512")
CALC = ("calc", "round", "1")


def run(program, isa, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "HALFSCOPE_ISA": isa})


class WrongIsa(unittest.TestCase):
    def check(self, isa, *expected):
        for program in PROGRAMS:
            with self.subTest(program=Path(program).name, isa=isa):
                done = run(program, isa, *(CALC if Path(program).name == "halfscope" else ["[round]"]))
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                for words in expected:
                    self.assertIn(words, done.stderr)

    def test_an_unknown_name(self):
        for isa in ("foo", "avx", "AVX2"):
            self.check(isa, f"unknown instruction set in HALFSCOPE_ISA '{isa}'", "(one of: baseline, avx2, avx512)")

    def test_a_name_beyond_this_machine(self):
        best = next(isa for isa in reversed(KNOWN) if self.is_available(isa))
        for isa in KNOWN[KNOWN.index(best) + 1:]:
            self.check(isa, f"HALFSCOPE_ISA={isa}: this machine has no more than {best}")

    def test_known_names_and_none_compute(self):
        for isa in ("", "baseline"):
            self.assertTrue(self.is_available(isa))

    def is_available(self, isa):
        program = next(program for program in PROGRAMS if Path(program).name == "halfscope")
        return run(program, isa, *CALC).returncode == 0


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
