"""--jobs: several runs at a time, with one status line, and with a run among them that fails."""

import json
import unittest

from program import PROGRAM, OnTerminal, WithFolder, halfscope

WIDTH = 50


class Jobs(WithFolder):
    def words(self, out, *more, steps=4):
        return super().words(out, "--arms", "fp32,fp16_mixed,fp16_no_master", "--seeds", "1", *more, steps=steps)

    def test_same_bytes_for_any_number_of_jobs(self):
        self.run_ok(*self.words("one"))
        for jobs in (2, 5):  # more than there are runs
            self.run_ok(*self.words(f"{jobs}", "--jobs", jobs))
            self.assertEqual(self.records("one"), self.records(f"{jobs}"))

    def test_recipes_have_the_same_bytes_for_any_number_of_jobs(self):
        """Delayed scales; stochastic rounding and Hadamard's transform."""
        arms = ("--arms", "fp32", "--arm", "delayed:policy=fp8_delayed", "--arm", "nvfp4:policy=nvfp4", "--seeds", "1")
        for jobs in (1, 3):
            self.run_ok(*super().words(f"jobs{jobs}", *arms, "--jobs", jobs, steps=12))
        self.assertEqual(self.records("jobs1"), self.records("jobs3"))
        self.assertEqual(len(list((self.folder / "jobs3").rglob("metrics.jsonl"))), 3)

    def test_several_experiments_share_the_queue(self):
        names = ("master-copy", "scale-sweep")
        words = ("--quick", "--size", "smoke", "--arms", "fp32", "--data", self.data, "--out")
        together = halfscope("run", *names, *words, self.folder / "together", "--jobs", "2")
        self.assertEqual(together.returncode, 0, together.stderr)
        for name in names:
            title = self.run_ok("run", name, *words, self.folder / "alone").splitlines()[0]
            self.assertIn(title, together.stdout.splitlines())
            self.assertIn(f"] {name} fp32 seed 0  step ", together.stderr)
        self.assertEqual(self.records("together"), self.records("alone"))

    def test_status_line_names_the_experiment_where_there_are_several(self):
        words = ("--quick", "--size", "smoke", "--arms", "fp32", "--data", self.data, "--out", self.folder / "out")
        for names, running in ((["master-copy"], "fp32"), (["scale-sweep", "batchnorm-reduction"], "scale-sweep fp32")):
            shown = OnTerminal([PROGRAM, "run", *names, *words], 120, stream="stderr")
            self.assertEqual(shown.returncode, 0, shown.text)
            status = [line for line in shown.text.split("\r\x1b[K") if " done, " in line]
            self.assertTrue(any(f" left  {running} seed 0 step" in line for line in status), shown.text)

    def test_list_of_several_experiments(self):
        words = ("run", "master-copy", "scale-sweep", "--quick", "--list-runs", "--out", self.folder / "out")
        rows = [line.split() for line in self.run_ok(*words).splitlines()]
        self.assertEqual(rows[0], ["experiment", "arm", "seed", "steps", "state", "config_hash"])
        listed = [(run["experiment"], run["arm"]) for run in json.loads(self.run_ok(*words, "--json"))["runs"]]
        self.assertEqual(listed, [tuple(row[:2]) for row in rows[1:]])
        self.assertEqual({name for name, _ in listed}, {"master-copy", "scale-sweep"})

    def test_wrong_names_among_several(self):
        out = ("--out", self.folder / "out")
        self.refuse("run", "master-copy", "master-copy", *out, says=["master-copy is named twice"])
        self.refuse("run", "master-copy", "scale-swep", *out, says=["scale-swep", "did you mean 'scale-sweep'"])
        self.refuse("run", "master-copy", "scale-sweep", "--arms", "fp16_pure", *out, says=["scale-sweep", "fp16_pure"])
        self.assertFalse((self.folder / "out").exists())

    def test_numbers_that_are_none(self):
        for jobs in ("0", "-1", "x", "2.5", "", "99999999999999999999"):
            self.refuse(*self.words("out", "--jobs", jobs), says=["--jobs", "1 to 1024"])
        self.refuse(*self.words("out", "--jobs", "2", "--arms", "fp31"), says=["fp31"])
        self.assertFalse((self.folder / "out").exists())

    def test_failing_run_among_good_ones(self):
        for jobs in (1, 2):
            experiment = self.folder / f"{jobs}/master-copy"
            experiment.mkdir(parents=True)
            (experiment / "fp16_mixed").write_text("in the way")
            result = halfscope(*self.words(f"{jobs}", "--jobs", jobs))
            self.assertEqual(result.returncode, 3, result.stderr)
            last = result.stderr.splitlines()[-1]
            self.assertTrue(last.startswith("halfscope: master-copy fp16_mixed seed 0: cannot make the folder"), last)
            for arm in ("fp32", "fp16_no_master"):
                self.assertEqual((experiment / arm / "seed0/status").read_text(), "DONE\n")
                self.assertIn(f"\n  {arm} ", result.stdout)
            (experiment / "fp16_mixed").unlink()
            result = halfscope(*self.words(f"{jobs}", "--resume", "--jobs", jobs))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count("done before"), 2)

    def test_status_line_of_a_terminal(self):
        shown = OnTerminal([PROGRAM, *self.words("out", "--jobs", "2")], WIDTH, stream="stderr")
        self.assertEqual(shown.returncode, 0, shown.text)
        lines = [line.split("\n")[0].strip("\r") for line in shown.text.split("\r\x1b[K")]
        status = [line for line in lines if " done, " in line]
        self.assertTrue(any(line.startswith("[0/3 done, 2 running] ") for line in status), lines)
        self.assertLessEqual(max(map(len, status)), WIDTH)
        finished = [line for line in lines if line.startswith(("[1/3]", "[2/3]", "[3/3]"))]
        self.assertEqual([line[:5] for line in finished], ["[1/3]", "[2/3]", "[3/3]"])
        self.assertTrue(all("seed 0  step 4/4  loss" in line for line in finished), finished)


if __name__ == "__main__":
    unittest.main()
