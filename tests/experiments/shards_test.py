"""--shard: shares of a sweep in any order and in several processes, finished runs that are kept, and reports meanwhile."""

import json
import random
import subprocess
import unittest

from program import ARMS, PROGRAM, WithFolder, halfscope

FORMATS = ("text", "csv", "markdown", "latex", "json")


class Shards(WithFolder):
    def words(self, out, *more, steps=4):
        """Twelve runs: four arms, three seeds."""
        return super().words(out, "--arms", ",".join(ARMS), "--set", "observe_every=1", *more, steps=steps)

    def listed(self, *more):
        return json.loads(self.run_ok(*self.words("out", "--list-runs", "--json", *more)))["runs"]

    def report(self, out, *more):
        """The report's bytes, of a folder whose name is not in them."""
        result = halfscope("report", "master-copy", "--reproducible", *more, cwd=self.folder / out)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def summaries(self, out):
        return [json.loads(path.read_text()) for path in sorted((self.folder / out).glob("*/*/seed*/summary.json"))]

    def counters(self, *outs):
        """Sums over all runs."""
        sums = {}
        for summary in (summary for out in outs for summary in self.summaries(out)):
            for key, count in [*summary["gradients"].items(), ("skipped", summary["skipped"]), ("steps", summary["steps"])]:
                sums[key] = sums.get(key, 0) + count
        return sums

    def test_a_share_is_every_nth_run_of_the_list(self):
        whole = self.listed()
        self.assertEqual(len(whole), 12)
        for count in (1, 3, 5, 12, 13):
            shares = [self.listed("--shard", f"{index}/{count}") for index in range(1, count + 1)]
            for index, share in enumerate(shares):
                self.assertEqual(share, whole[index::count])

    def test_report_does_not_depend_on_shares_or_their_order(self):
        self.run_ok(*self.words("one"))
        for index in (1, 2, 3):
            self.run_ok(*self.words("ordered", "--shard", f"{index}/3"))
        shares = list(range(1, 8))
        random.Random(5).shuffle(shares)
        for index in shares:
            self.run_ok(*self.words("shuffled", "--shard", f"{index}/7", "--jobs", 2))
        running = [subprocess.Popen([PROGRAM, *map(str, self.words("together", "--shard", f"{index}/3"))],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for index in (3, 1, 2)]
        for process in running:
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
        for out in ("ordered", "shuffled", "together"):
            self.assertEqual(self.records("one"), self.records(out))
            for form in FORMATS:
                self.assertEqual(self.report("one", "--table", form), self.report(out, "--table", form))
            # Whoever wrote it last has seen all runs.
            summary = json.loads((self.folder / out / "master-copy/summary.json").read_text())
            self.assertEqual([arm["seeds"] for arm in summary["arms"]], [3] * 4)
            self.assertEqual(summary["unfinished"], [])
        self.assertNotEqual(self.report("one"), self.run_ok("report", self.folder / "one/master-copy"))  # it has times

    def test_counters_of_the_shares_add_up(self):
        self.run_ok(*self.words("one"))
        outs = [f"share{index}" for index in (1, 2, 3)]
        for index, out in enumerate(outs, 1):
            self.run_ok(*self.words(out, "--shard", f"{index}/3"))
            self.assertEqual(len(self.summaries(out)), 4)
        whole = self.counters("one")
        self.assertGreater(whole["nonzero"], whole["flushed"])
        self.assertGreater(whole["flushed"], 0)
        self.assertEqual(self.counters(*outs), whole)

    def test_a_report_meanwhile_says_what_is_missing(self):
        """docs/reference/results-format.md shows the line."""
        self.run_ok(*self.words("out", "--shard", "2/3"))
        self.assertIn("\n  missing: 8 of 12 runs: 8 not begun\n", self.report("out"))
        self.assertNotIn("no result", self.report("out"))
        unfinished = json.loads(self.report("out", "--json"))["unfinished"]
        self.assertEqual(len(unfinished), 8)
        self.assertEqual({run["status"] for run in unfinished}, {"not begun"})
        run = self.folder / "out/master-copy/fp32/seed0"
        run.mkdir(parents=True)
        (run / "status").write_text("RUNNING\n")
        self.assertIn("\n  missing: 8 of 12 runs: 1 running, 7 not begun\n", self.report("out"))
        self.assertIn("\n  no result: fp32 seed 0: RUNNING\n", self.report("out"))
        for index in (1, 3):
            self.run_ok(*self.words("out", "--shard", f"{index}/3"))
        self.assertNotIn("missing", self.report("out"))

    def test_a_report_of_a_sweep_without_a_result_yet(self):
        self.run_ok(*self.words("out", "--shard", "13/13"))  # nothing is left for it
        self.refuse("report", self.folder / "out/master-copy", says=["no run in it is done", "12 not begun"])

    def test_what_is_done_is_kept_by_the_same_command(self):
        self.run_ok(*self.words("out", "--seeds", 1))
        before = self.records("out")
        again = halfscope(*self.words("out", "--seeds", 1))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stderr.count("done before"), 4)
        self.assertEqual(self.records("out"), before)
        self.refuse(*self.words("out", "--seeds", 1, "--set", "learning_rate=0.5"),
                    says=["fp32/seed0/config.json", "the run has learning_rate = 1e-05, now 0.5 is asked for"])
        (self.folder / "out/master-copy/fp32/seed0/status").write_text("FAILED: out of memory\n")
        self.refuse(*self.words("out", "--seeds", 1), says=["fp32/seed0", "not done", "FAILED: out of memory", "--resume"])
        self.run_ok(*self.words("out", "--seeds", 1, "--resume"))
        self.assertEqual(self.records("out"), before)

    def test_a_share_trains_what_its_runs_start_from(self):
        file = self.folder / "stages.toml"
        file.write_text("[settings]\nsteps = 2\nbatch = 4\n[arm.first]\n[arm.second]\nstart_from = 'arm:first'\n")
        words = ("run", file, "--seeds", 2, "--data", self.data)
        self.run_ok(*words, "--out", self.folder / "one")
        runs = json.loads(self.run_ok(*words, "--out", self.folder / "share", "--list-runs", "--json"))["runs"]
        self.assertEqual([(run["arm"], run["seed"]) for run in runs], [("first", 0), ("first", 1), ("second", 0), ("second", 1)])
        self.run_ok(*words, "--out", self.folder / "share", "--shard", "4/4")
        made = sorted(path.parent.relative_to(self.folder / "share/stages") for path in (self.folder / "share").rglob("summary.json"))
        self.assertEqual([str(path) for path in made], [".", "first/seed1", "second/seed1"])
        for index in (3, 2, 1):
            self.run_ok(*words, "--out", self.folder / "share", "--shard", f"{index}/4")
        self.assertEqual(self.records("one"), self.records("share"))

    def test_shares_that_are_none(self):
        for shard in ("0/3", "4/3", "1/0", "x", "/", "1/", "/3", "1/2/3", "-1/3", "1 /3", "1/+3", "1/99999999999999999999", "1/9999999"):
            self.refuse(*self.words("out", f"--shard={shard}"), says=["--shard", "2/12"])
        self.assertFalse((self.folder / "out").exists())

    def test_a_list_of_the_sweep_that_is_none(self):
        self.run_ok(*self.words("out", "--shard", "1/3"))
        sweep = self.folder / "out/master-copy/sweep.json"
        for text in ("", "[]", '{"format_version": 1}', '{"format_version": 1, "runs": [{"arm": 1, "seed": 0}]}'):
            sweep.write_text(text)
            self.refuse("report", self.folder / "out/master-copy", says=["sweep.json"])


if __name__ == "__main__":
    unittest.main()
