"""Experiments from TOML files, arms and seeds of one's own, and the list of runs."""

import json
import unittest
import uuid

from program import WithFolder, halfscope


def matrix(text):
    return json.loads(text)["runs"]


class ExperimentFile(WithFolder):
    def put(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def train(self, experiment, out, *more):
        return self.run_ok("run", experiment, "--data", self.data, "--out", self.folder / out, "--size", "smoke", "--seeds", 1, *more)

    def test_every_built_in_experiment_asks_for_the_same_runs_from_a_file(self):
        for entry in json.loads(self.run_ok("list", "experiments", "--json"))["experiments"]:
            name = entry["name"]
            with self.subTest(name):
                file = self.put(f"{name}.file.toml", self.run_ok("list", "--toml", name))
                for options in (["--quick"], ["--size", "full"], ["--seeds", 2]):
                    words = [*options, "--list-runs", "--json", "--out", self.folder / "out"]
                    self.assertEqual(self.run_ok("run", name, *words), self.run_ok("run", file, *words))

    def test_built_in_experiments_train_the_same_bytes_from_a_file(self):
        """One of each data set: of all, the test above compares the hashes of their configurations."""
        trained = set()
        for entry in json.loads(self.run_ok("list", "experiments", "--json"))["experiments"]:
            name, arm = entry["name"], entry["arms"][-1]
            if arm["dataset"] in trained:
                continue
            trained.add(arm["dataset"])
            with self.subTest(name):
                file = self.put("printed.toml", self.run_ok("list", "--toml", name))
                words = ["--quick", "--size", "smoke", "--arms", arm["name"], "--data", self.data_of(arm["dataset"])]
                self.run_ok("run", name, *words, "--out", self.folder / "by-name")
                self.run_ok("run", file, *words, "--out", self.folder / "from-file")
                self.assertFalse((self.folder / "from-file" / name / "experiment.toml").exists())
        self.assertGreater(len(trained), 3)
        self.assertEqual(self.records("by-name"), self.records("from-file"))

    def test_a_grid_trains_reports_and_keeps_its_definition(self):
        file = self.put("rates.toml", "[settings]\npolicy = 'fp16_mixed'\n[grid]\nlearning_rate = [1e-4, 1e-2]\nloss_scale = [1, 16]\n")
        self.train(file, "out", "--jobs", 2)
        report = json.loads(self.run_ok("report", self.folder / "out", "--json"))
        names = [f"learning_rate={rate}+loss_scale={scale}" for rate in ("0.0001", "0.01") for scale in (1, 16)]
        self.assertEqual([arm["arm"] for arm in report["arms"]], names)
        self.assertEqual((report["experiment"], report["verdict"], report["paper"]), ("rates", "", ""))
        config = json.loads((self.folder / "out/rates" / names[1] / "seed0/config.json").read_text())
        self.assertEqual((config["learning_rate"], config["loss_scale"], config["policy"]), (1e-4, "16", "fp16_mixed"))
        file.write_text("[settings]\npolicy = 'fp16_mixed'\n[arm.late]\nloss_scale = 4\n")
        self.train(file, "out")
        report = json.loads(self.run_ok("report", self.folder / "out/rates", "--json"))
        self.assertEqual([arm["arm"] for arm in report["arms"]], ["late", *names])

    def test_what_runs_is_reported_whatever_its_arms_are_compared_with(self):
        arms = "arms = ['fp16_no_master']\n[arm.{}]\nlike = 'fp16_mixed'\n"
        later = "[arm.later]\nlike = 'fp32'\n"
        files = {
            "below": "base = 'master-copy'\nbaseline = 'later'\n[arm.own]\nbaseline = 'later'\nbatch = 4\n" + later,
            "left_out": "base = 'master-copy'\n" + arms.format("own"),
            "of_the_base": "base = 'master-copy'\n" + arms.format("own") + "baseline = 'fp32'\n",
        }
        for name, text in files.items():
            with self.subTest(name):
                file = self.put(f"{name}.toml", text)
                self.train(file, "out")
                report = json.loads(self.run_ok("report", self.folder / "out" / name, "--json"))
                baselines = {arm["arm"]: arm["baseline"] for arm in report["arms"]}
                self.assertEqual(baselines["own"], "later" if name == "below" else "fp32")
                self.train(self.put(f"{name}.toml", "[arm.other]\npolicy = 'fp16_mixed'\n"), "out")
                report = json.loads(self.run_ok("report", self.folder / "out" / name, "--json"))
                again = {arm["arm"]: arm["baseline"] for arm in report["arms"]}
                self.assertEqual(again.keys(), {"other", *baselines})
                self.assertEqual(again["own"], "later" if name == "below" else None)

    def test_one_more_arm_beside_the_built_in_ones(self):
        out = self.folder / "out"
        self.train("detection-loss-scale", "out", "--arm", "s4:like=fp16_s8,loss_scale=4", "--arms", "fp32")
        self.assertEqual(sorted(path.name for path in (out / "detection-loss-scale").iterdir() if path.is_dir()), ["fp32", "s4"])
        report = json.loads(self.run_ok("report", out, "--json"))
        self.assertEqual([arm["arm"] for arm in report["arms"]], ["fp32", "s4"])
        self.train("detection-loss-scale", "out", "--arms", "fp16_s8")
        report = json.loads(self.run_ok("report", out, "--json"))
        self.assertEqual([arm["arm"] for arm in report["arms"]], ["fp32", "fp16_s8", "s4"])
        refused = halfscope("run", "detection-loss-scale", "--set", "loss_scale=4", "--out", out / "x", "--data", self.data)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--arm NAME:loss_scale=4", refused.stderr)

    def test_a_format_that_is_mistaken_for_ocps_is_noted_once(self):
        result = halfscope("run", "master-copy", "--set", "activation=e4m3", "--set", "weight=e4m3", "--seeds", 2, "--list-runs")
        self.assertEqual(result.returncode, 0, result.stderr)
        (line,) = result.stderr.splitlines()
        for text in ("note: e4m3", "240", "fp8_e4m3", "448"):
            self.assertIn(text, line)
        self.assertEqual(halfscope("run", "master-copy", "--set", "weight=fp8_e4m3", "--list-runs").stderr, "")

    def test_seeds_of_ones_own(self):
        runs = matrix(self.run_ok("run", "master-copy", "--arms", "fp32", "--seed-list", "7,3", "--list-runs", "--json"))
        self.assertEqual([run["seed"] for run in runs], [7, 3])
        for seeds, says in (("x", "seed 'x'"), ("3,", "seed ''"), ("-1", "seed '-1'"), ("4294967296", "0 to 4294967295"), ("3,3", "twice")):
            self.refuse("run", "master-copy", "--seed-list", seeds, says=[says])
        self.refuse("run", "master-copy", "--seed-list", "3", "--seeds", "2", says=["--seed-list"])
        config = self.put("seven.json", '{"format_version": 1, "seed": 7}')
        self.refuse("run", "master-copy", "--config", config, "--seeds", 2, "--out", self.folder / "out", says=["of seed 7"])

    def test_list_of_runs_says_their_state(self):
        words = self.words("out", "--arms", "fp32,fp16_mixed", "--seeds", 1, steps=4)
        listed = matrix(self.run_ok(*words, "--list-runs", "--json"))
        self.assertEqual([run["state"] for run in listed], ["new", "new"])
        self.assertFalse((self.folder / "out").exists())
        self.run_ok(*words)
        again = matrix(self.run_ok(*words, "--list-runs", "--json"))
        self.assertEqual([run["state"] for run in again], ["done", "done"])
        for run in again:
            text = (self.folder / "out/master-copy" / run["arm"] / "seed0/config.json").read_text()
            self.assertEqual(run["config_hash"], str(uuid.uuid5(uuid.NAMESPACE_URL, text)))
        (self.folder / "out/master-copy/fp32/seed0/status").write_text("RUNNING\n")
        changed = matrix(self.run_ok(*words, "--list-runs", "--json", "--set", "batch=8"))
        self.assertEqual([run["state"] for run in changed], ["other_settings"] * 2)
        self.assertEqual(matrix(self.run_ok(*words, "--list-runs", "--json"))[0]["state"], "unfinished")
        self.assertIn("unfinished", self.run_ok(*words, "--list-runs"))

    def test_refusals_name_the_place(self):
        self.refuse("run", self.put("a.toml", "[arm.x]\nstps = 3\n"), says=["a.toml: line 2, column 1", "'stps'", "'steps'"])
        old_words = (("accumulate", "order"), ("reduce", "sum_order"), ("gradient_accumulator", "gradient_sum"))
        for old, new in old_words:
            says, assigned, line = f"no setting {old} since 0.1; give {new}", f"{old}=fp32", f"{old} = 'fp32'\n"
            self.refuse("run", self.put("old.toml", f"[arm.x]\n{line}"), says=["old.toml: line 2, column 1", says])
            varied = self.put("varied.toml", f"varied = ['{old}']\n[arm.x]\n")
            self.refuse("run", varied, says=["varied.toml: line 1", says])
            self.refuse("run", "master-copy", "--set", assigned, says=[says])
            self.refuse("run", "master-copy", "--arm", f"x:{assigned}", says=[says])
            self.refuse("run", "master-copy", "--config", self.put("settings.toml", line), says=[says])
            self.refuse("memory", "cnn_bn", "--set", assigned, says=[says])
        self.refuse("run", self.folder / "missing.toml", says=["missing.toml"])
        self.refuse("run", "master-copy", "--arm", "fp32:steps=3", says=["arm fp32"])
        self.refuse("list", "--toml", "master", says=["master-copy"])


if __name__ == "__main__":
    unittest.main()
