"""Recorded results: tables and summaries are what the recorded runs say, byte for byte."""

import shutil
import unittest
from pathlib import Path

from program import WithFolder, halfscope

RECORDED = Path(__file__).parents[2] / "experiments/recorded"
DERIVED = ("summary.json", "report.txt")
# Hundreds of runs, of which the summary alone is kept.
WITHOUT_RUNS = {"advice-validity"}
MOST_FILES = 150


class Recorded(WithFolder):
    def test_summaries_and_reports_are_made_of_the_runs(self):
        experiments = sorted(path.parent for path in RECORDED.glob("*/*/summary.json"))
        self.assertGreater(len(experiments), 20)
        for experiment in experiments:
            if experiment.name in WITHOUT_RUNS:
                continue
            with self.subTest(experiment.name):
                made = self.folder / experiment.name
                shutil.copytree(experiment, made, ignore=shutil.ignore_patterns(*DERIVED))
                done = halfscope("report", "--save", made)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for name in DERIVED:
                    self.assertEqual((made / name).read_text(), (experiment / name).read_text(), name)

    def test_records_are_few_files(self):
        self.assertLessEqual(sum(path.is_file() for path in RECORDED.rglob("*")), MOST_FILES)


if __name__ == "__main__":
    unittest.main()
