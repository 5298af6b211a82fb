"""halfscope run --until-decided: seeds are added to arms that a claim leaves undecided, to them alone, up to a most."""

import json
import unittest

from program import WithFolder, halfscope

SETTINGS = """
baseline = "fp32"
[metric]
key = "train_loss"
name = "train loss"
comparison = "ratio"
lower_is_better = true
[settings]
data = "{data}"
steps = 6
batch = 16
policy = "fp32"
[arm]
fp32 = {{}}
same = {{}}
harmed = {{ learning_rate = 1e-9 }}
near = {{ policy = "fp16_mixed", order = "fp16_sequential" }}
[claim]
text = "Arms are as expected."
expect = [{expect}]
"""
DECIDED = [
    '{ arm = "same", expected = "as_good", margin = 0.01 }',
    '{ arm = "harmed", expected = "worse" }',
]


class UntilDecided(WithFolder):
    def experiment(self, *expect, name="mine"):
        path = self.folder / f"{name}.toml"
        path.write_text(SETTINGS.format(data=self.data, expect=", ".join(expect)))
        return path

    def run_it(self, path, *more):
        done = halfscope("run", path, "--out", self.folder / "out", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / "out" / path.stem / "summary.json").read_text()), done

    def seeds(self, summary):
        return {arm["arm"]: arm["seed_list"] for arm in summary["arms"]}

    def test_a_decided_claim_adds_no_seeds(self):
        summary, done = self.run_it(self.experiment(*DECIDED), "--until-decided")
        self.assertEqual(summary["claim"]["judgement"], "holds")
        self.assertEqual(set(map(len, self.seeds(summary).values())), {3})
        self.assertNotIn("undecided", done.stderr)
        self.assertIn("Arms are as expected. Holds.", done.stdout)

    def test_seeds_are_added_to_undecided_arms_alone(self):
        """No interval of finite width is within a margin of 1e-300, nor beyond a difference that it contains."""
        path = self.experiment(*DECIDED, '{ arm = "near", expected = "as_good", margin = 1e-300 }')
        summary, done = self.run_it(path, "--until-decided", "--max-seeds", "7")
        near = summary["claim"]["expectations"][2]
        seeds = self.seeds(summary)
        count = len(seeds["near"])
        self.assertIn(count, (3, 6, 7))
        self.assertEqual(
            near["judgement"] == "undecided", count == 7 and near["difference"]["low"] < 0 < near["difference"]["high"]
        )
        self.assertEqual(
            {arm: len(list_) for arm, list_ in seeds.items()}, {"fp32": count, "same": 3, "harmed": 3, "near": count}
        )
        self.assertEqual(seeds["near"], list(range(count)))
        notes = [line for line in done.stderr.splitlines() if "undecided by" in line]
        self.assertEqual(len(notes), {3: 0, 6: 1, 7: 2}[count], done.stderr)
        self.assertGreater(count, 3, "no seed was added: choose another arm for `near`")
        files = {file: file.stat().st_mtime_ns for file in (self.folder / "out").rglob("*") if file.is_file()}
        self.run_it(path, "--until-decided", "--max-seeds", "7")
        self.assertEqual(files, {file: file.stat().st_mtime_ns for file in files})

    def test_runs_are_those_of_as_many_seeds_at_once(self):
        path = self.experiment('{ arm = "near", expected = "as_good", margin = 1e-300 }')
        added, _ = self.run_it(path, "--until-decided", "--max-seeds", "4")
        other = self.experiment('{ arm = "near", expected = "as_good", margin = 1e-300 }', name="other")
        at_once, _ = self.run_it(other, "--seeds", "4")
        arms = [{arm["arm"]: arm["values"] for arm in summary["arms"]} for summary in (added, at_once)]
        for arm in ("fp32", "near"):
            self.assertEqual(arms[0][arm], arms[1][arm])

    def test_a_claim_that_is_not_judged_adds_no_seeds_and_says_why(self):
        _, done = self.run_it(self.experiment(*DECIDED, name="few"), "--until-decided", "--arms", "fp32,same")
        self.assertIn("--until-decided adds no seeds. Not judged: an arm of it", done.stderr)
        _, done = self.run_it(self.experiment(name="none"), "--until-decided", "--arms", "fp32")
        self.assertIn("expects nothing", done.stderr)

    def test_choices_of_seeds_are_refused(self):
        path = self.experiment(*DECIDED)
        for words, says in (
            (("--quick",), "--quick"),
            (("--seed-list", "1,2"), "--seed-list"),
            (("--seeds", "1"), "--seeds 2 or more"),
            (("--seeds", "30"), "more than --max-seeds 20"),
            (("--shard", "1/2"), "--shard"),
            (("--config", "x.toml"), "--config"),
            (("--max-seeds", "1"), "2 to 1000"),
        ):
            self.refuse("run", path, "--until-decided", "--out", self.folder / "out", *words, says=[says])
        self.refuse("run", path, "--max-seeds", "5", "--out", self.folder / "out", says=["--until-decided"])
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()
