#!/usr/bin/env python3
"""Runs coverage.py on files with known gaps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).with_name("coverage.py")
FIRST = '{"entries": {"a": 2, "b": 0, "c": 0}, "opcodes": {"add.s32": 5, "mul.f64": 0}}\n'
SECOND = '{"entries": {"a": 0, "b": 1}, "opcodes": {"add.s32": 0, "ret": 1}}\n'


class Coverage(unittest.TestCase):
    def run_on(self, *texts: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, f"{number}.jsonl") for number in range(len(texts))]
            for file, text in zip(files, texts):
                file.write_text(text)
            command = [sys.executable, str(TOOL), *map(str, files)]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_lines_of_one_file_and_of_several_are_merged(self) -> None:
        expected = (
            "entries: 2 of 3 launched\n  never launched: c\nopcodes: 2 of 3 executed\n  never executed: mul.f64\n"
        )
        for texts in ((FIRST + SECOND,), (FIRST, SECOND)):
            result = self.run_on(*texts)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, expected, ""))

    def test_bad_input_is_one_line_and_status_2(self) -> None:
        for texts, says in (
            ((), "usage"),
            ((FIRST + FIRST[:20],), "0.jsonl, line 2: "),
            ((FIRST, "{}"), "1.jsonl, line 1: no record of entries and opcodes"),
            (("[]",), "no record of entries and opcodes"),
            (('{"entries": [], "opcodes": {}}',), "whole numbers by name"),
            (('{"entries": {"a": "1"}, "opcodes": {}}',), "whole numbers by name"),
        ):
            result = self.run_on(*texts)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1))
            self.assertIn(says, result.stderr)


if __name__ == "__main__":
    unittest.main()
