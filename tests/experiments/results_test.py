"""Files of a run: those of the contract, the same bytes every time, and resuming after SIGKILL."""

import csv
import io
import json
import random
import re
import signal
import subprocess
import time
import unittest

from program import ARMS, PROGRAM, OnTerminal, WithFolder, halfscope


class Results(WithFolder):
    def test_folder_holds_what_the_contract_says(self):
        self.run_ok(*self.words("out", "--quick"))
        experiment = self.folder / "out/master-copy"
        for arm in ARMS:
            run = experiment / arm / "seed0"
            for name in ("config.json", "environment.json", "metrics.jsonl", "histograms.jsonl", "summary.json"):
                self.assertTrue((run / name).is_file(), name)
            self.assertEqual((run / "status").read_text(), "DONE\n")
            config = json.loads((run / "config.json").read_text())
            self.assertEqual((config["policy"], config["steps"], config["seed"]), (arm, 30, 0))
        metrics = [json.loads(line) for line in (experiment / "fp16_mixed/seed0/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([m["step"] for m in metrics], list(range(1, 31)))
        self.assertEqual({m["scale"] for m in metrics}, {1024})
        self.assertIsNotNone(metrics[-1]["metric"])
        observed = metrics[9]
        roles = {t["role"] for t in observed["tensors"]}
        self.assertEqual(roles, {"weight_gradient", "activation_gradient"})
        self.assertTrue(observed["updates"] and observed["reductions"])
        environment = json.loads((experiment / "fp32/seed0/environment.json").read_text())
        for key in ("version", "git_revision", "compiler", "cpu", "gpu", "driver", "threads"):
            self.assertIn(key, environment)
        pure = json.loads((experiment / "fp16_pure/seed0/summary.json").read_text())
        self.assertTrue(pure["diverged"])
        self.assertIsNone(pure["metric"])
        self.assertEqual([finding["what"] for finding in pure["lint"]], ["epsilon", "square of a gradient", "1 + learning_rate"])
        self.assertIn("was first, in the update pass", pure["overflows"][0])
        last = json.loads((experiment / "fp16_pure/seed0/metrics.jsonl").read_text().splitlines()[-1])
        self.assertEqual((last["first_overflow"]["pass"], last["first_overflow"]["role"]), ("update", "master_weight"))
        self.assertTrue(last["first_overflow"]["before"])
        healthy = json.loads((experiment / "fp16_mixed/seed0/summary.json").read_text())
        self.assertEqual((healthy["lint"], healthy["overflows"]), ([], []))
        self.assertIn(pure["overflows"][0], self.run_ok("report", self.folder / "out"))

    def test_histograms_conserve_every_element(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1"))
        run = self.folder / "out/master-copy/fp32/seed0"
        elements = {}
        for line in (run / "metrics.jsonl").read_text().splitlines():
            record = json.loads(line)
            for tensor in record.get("tensors", []):
                elements[record["step"], tensor["tensor"], tensor["role"]] = tensor["elements"]
        histograms = [json.loads(line) for line in (run / "histograms.jsonl").read_text().splitlines()]
        seen = 0
        for h in histograms:
            if h["role"] == "update_ratio":
                continue
            total = sum(h["counts"]) + h["zeros"] + h["infinities"] + h["nans"]
            self.assertEqual(total, elements[h["step"], h["tensor"], h["role"]])
            seen += 1
        self.assertEqual(seen, len(elements))

    def test_environment_tells_which_sentence_pairs_were_there(self):
        self.run_ok("run", "softmax-reduction", "--quick", "--arms", "fp32", "--set", "model=transformer", "--set",
                    "dataset=gettext_en_fr", "--set", "steps=1", "--set", "batch=4", "--set", "vocabulary=20", "--data",
                    self.pairs(), "--out", self.folder / "out")
        run = self.folder / "out/softmax-reduction/fp32/seed0"
        summary = json.loads((run / "environment.json").read_text())["data_summary"]
        self.assertRegex(summary, r"pairs.tsv: 90 \+ 10 sentence pairs \(hash [0-9a-f]{16}\), of which 0 test pairs")

    def test_report_reads_both_levels(self):
        self.run_ok(*self.words("out", "--seeds", "2"))
        reports = [json.loads(self.run_ok("report", folder, "--json"))
                   for folder in (self.folder / "out", self.folder / "out/master-copy")]
        self.assertEqual(reports[0], reports[1])
        self.assertEqual(reports[0].pop("folder"), str(self.folder / "out/master-copy"))
        self.assertEqual(reports[0], json.loads((self.folder / "out/master-copy/summary.json").read_text()))
        self.assertEqual((reports[0]["experiment"], reports[0]["metric"]), ("master-copy", "test accuracy"))
        arms = {arm["arm"]: arm for arm in reports[0]["arms"]}
        self.assertEqual(list(arms), [*ARMS, "fp16_s1"])
        self.assertEqual(arms["fp16_pure"]["diverged"], 2)
        self.assertIsNone(arms["fp16_pure"]["mean"])
        fp32 = arms["fp32"]
        self.assertAlmostEqual(fp32["mean"], sum(fp32["values"]) / 2)
        half_width = 12.7062047361747 * abs(fp32["values"][0] - fp32["values"][1]) / 2
        self.assertAlmostEqual(fp32["high"] - fp32["mean"], half_width, places=6)
        text = self.run_ok("report", self.folder / "out")
        self.assertIn("settings: steps = 30 (own: 600); batch = 32 (own: 64)\n", text)
        self.assertIn("verdict: none; a verdict is for the experiment's own settings", text)
        self.assertEqual(reports[0]["verdict"], "")
        self.assertEqual([entry["key"] for entry in reports[0]["settings_differ"]], ["steps", "batch"])

    def test_report_saves_what_run_and_report_would_write(self):
        self.run_ok(*self.words("out", "--arms", "fp32,fp16_mixed", "--seeds", "1", steps=4))
        experiment = self.folder / "out/master-copy"
        written = (experiment / "summary.json").read_bytes()
        (experiment / "summary.json").unlink()
        text = self.run_ok("report", self.folder / "out", "--save")
        self.assertEqual((experiment / "summary.json").read_bytes(), written)
        self.assertEqual((experiment / "report.txt").read_text().strip("\n"), text.strip("\n"))
        self.assertEqual(self.run_ok("report", self.folder / "out"), text)
        described = json.loads(self.run_ok("report", self.folder / "out", "--json"))
        described.pop("folder")
        self.assertEqual(described, json.loads(written))

    def test_report_has_a_format_for_every_reader(self):
        self.run_ok(*self.words("out", "--arms", "fp32,fp16_mixed", "--seeds", "1", steps=4))
        out = self.folder / "out"
        rows = list(csv.DictReader(io.StringIO(self.run_ok("report", out, out / "master-copy", "--table", "csv"))))
        self.assertEqual([row["arm"] for row in rows], ["fp32", "fp16_mixed"] * 2)
        self.assertEqual({row["folder"] for row in rows}, {str(out / "master-copy")})
        self.assertEqual({row["settings"] for row in rows}, {"steps=4 batch=32"})
        described = json.loads(self.run_ok("report", out, "--table", "json"))
        self.assertEqual([float(row["mean"]) for row in rows[:2]], [arm["mean"] for arm in described["arms"]])
        self.assertEqual(self.run_ok("report", out, "--json"), self.run_ok("report", out, "--table", "json"))
        markdown = self.run_ok("report", out, "--table", "markdown", "--arms", "fp32").splitlines()
        self.assertTrue(markdown[0].startswith("## master-copy: "), markdown)
        self.assertEqual([line for line in markdown if "fp16" in line and line.startswith("|")], [])
        self.assertIn("\\begin{tabular}", self.run_ok("report", out, "--table", "latex"))
        self.assertEqual(self.run_ok("report", out), self.run_ok("report", out, "--table", "text"))
        self.assertTrue(self.run_ok("report", out, out).startswith(f"{out / 'master-copy'}\n"))
        self.refuse("report", out, "--table", "cvs", says=["unknown table format 'cvs'", "csv"])
        self.refuse("report", out, "--sort", "men", says=["unknown column 'men'", "mean"])
        self.refuse("report", out, "--arms", "fp33", says=["fp32"])

    def test_compare_says_where_two_results_part(self):
        self.run_ok(*self.words("one", "--arms", "fp32", "--seeds", "2", steps=4))
        self.run_ok(*self.words("same", "--arms", "fp32", "--seeds", "2", steps=4, threads=2))
        text = self.run_ok("compare", self.folder / "one", self.folder / "same")
        self.assertIn("2 of 2 runs are the same", text)
        self.assertIn("revision ", text)
        self.run_ok(*self.words("other", "--arms", "fp32", "--seeds", "1", "--set", "learning_rate=0.5", steps=4))
        result = halfscope("compare", self.folder / "one", self.folder / "other", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual([(run["run"], run["same"]) for run in found["runs"]], [("master-copy/fp32/seed0", False)])
        run = found["runs"][0]
        self.assertEqual([entry["key"] for entry in run["settings"]], ["learning_rate"])
        self.assertEqual((run["first_difference"]["file"], run["first_difference"]["step"]), ("metrics.jsonl", 1))
        self.assertEqual(run["first_difference"]["key"], "learning_rate")
        self.assertIn("train_loss", [entry["key"] for entry in run["results"]])
        self.assertEqual((found["only_first"], found["only_second"]), (["master-copy/fp32/seed1"], []))
        text = halfscope("compare", self.folder / "one", self.folder / "other").stdout
        self.assertIn("metrics.jsonl, first at step 1: learning_rate", text)
        self.assertIn("0 of 1 runs are the same", text)
        self.refuse("compare", self.folder / "one", self.folder / "data", says=["data", "no run in it"])
        self.refuse("compare", self.folder / "one", self.folder / "none", says=["none", "no such folder"])

    def test_compare_of_runs_that_lack_their_settings_or_each_other(self):
        for out, arm, rate in (("one", "fp32", "1e-3"), ("other", "fp32", "2.5e-3"), ("third", "fp16_pure", "1e-3")):
            self.run_ok(*self.words(out, "--arms", arm, "--seeds", "1", "--set", f"learning_rate={rate}", steps=4))
        text = halfscope("compare", self.folder / "one", self.folder / "other").stdout
        self.assertIn("  setting learning_rate 0.001 | 0.0025 (by 150 %)\n", text)
        text = halfscope("compare", self.folder / "one", self.folder / "third").stdout
        self.assertIn("0 of 0 runs are the same", text)
        self.assertNotIn("unknown", text)
        (self.folder / "other/master-copy/fp32/seed0/config.json").unlink()
        text = halfscope("compare", self.folder / "one", self.folder / "other").stdout
        self.assertIn('  setting file config.json "there" | nothing\n', text)
        self.assertNotIn("only in", text)

    def test_a_run_whose_summary_is_gone(self):
        words = self.words("out", "--arms", "fp32", "--seeds", "2", steps=4)
        self.run_ok(*words)
        (self.folder / "out/master-copy/fp32/seed0/summary.json").unlink()
        text = self.run_ok("report", self.folder / "out")
        self.assertIn("  missing: 1 of 2 runs: 1 without summary.json\n", text)
        self.assertIn("  no result: fp32 seed 0: DONE, without summary.json; run it again with --resume\n", text)
        self.run_ok(*words, "--resume")  # as it says
        self.assertNotIn("missing", self.run_ok("report", self.folder / "out"))

    def test_results_that_are_done_are_shown_without_being_written(self):
        words = self.words("out", "--arms", "fp32", "--seeds", "1", steps=4)
        table = self.run_ok(*words)
        path = self.folder / "out/master-copy/summary.json"
        before = path.stat()
        self.assertEqual(self.run_ok(*words), table)
        self.assertEqual((path.stat().st_ino, path.stat().st_mtime_ns), (before.st_ino, before.st_mtime_ns))

    def test_the_table_of_a_run_is_as_wide_as_the_terminal(self):
        shown = OnTerminal([PROGRAM, *map(str, self.words("out", "--arms", "fp32", "--seeds", "1", steps=4))], 40)
        self.assertEqual(shown.returncode, 0)
        self.assertIn("left out, the terminal is too narrow:", shown.text)
        self.assertLessEqual(max(map(len, shown.text.splitlines())), 40)

    def test_memory_of_the_device_is_reported_where_runs_say_it(self):
        self.run_ok(*self.words("out", "--seeds", "2", "--arms", "fp32,fp16_mixed", steps=4))
        self.assertNotIn("peak MiB", self.run_ok("report", self.folder / "out"))
        for seed, mebibytes in ((0, 300), (1, 700)):
            path = self.folder / f"out/master-copy/fp16_mixed/seed{seed}/summary.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "peak_device_bytes": mebibytes * 2**20}))
        arms = self.run_ok("report", self.folder / "out").partition("claim, judged")[0]
        table = [line.split() for line in arms.splitlines()]
        self.assertEqual(next(line for line in table if line[:1] == ["arm"])[-2:], ["peak", "MiB"])
        self.assertEqual({line[0]: line[-1] for line in table if line and line[0].startswith("fp")}, {"fp32": "-", "fp16_mixed": "700"})
        arms = json.loads(self.run_ok("report", self.folder / "out", "--json"))["arms"]
        self.assertEqual([arm["peak_device_bytes"] for arm in arms], [None, 700 * 2**20])

    def test_list_is_a_page_with_arms_and_options_on_request(self):
        overview = self.run_ok("list").splitlines()
        listed = json.loads(self.run_ok("list", "--json"))
        entries = sum(len(listed[kind]) for kind in listed if kind not in ("settings", "operations"))
        # A line each, a heading for each kind, and one that says where the settings are, and the operations.
        self.assertEqual(len(overview), entries + len(listed) + 2)
        self.assertTrue(any(line.startswith("  scale-sweep  ") for line in overview))
        self.assertFalse(any("fp16_s1" in line or "growth_factor=" in line for line in overview))
        self.assertIn("halfscope list settings", overview[-1])
        experiments = self.run_ok("list", "experiments", "--arms").splitlines()
        column = experiments[1].index("FP32 master weights against")
        self.assertTrue(any(line.startswith("    fp16_s1024 ") for line in experiments))
        self.assertEqual([line for line in experiments[1:] if line[column - 1] != " " or line[column] == " "], [])
        self.assertIn("growth_factor=2", self.run_ok("list", "scalers"))

    def test_list_has_every_kind(self):
        lists = json.loads(self.run_ok("list", "--json"))
        for kind in ("experiments", "policies", "operations", "formats", "block-formats", "scale-rules", "roundings",
                     "orders", "all-reduces", "divisions", "scalers", "models", "datasets", "optimizers",
                     "trackers", "settings"):
            self.assertTrue(lists[kind], kind)

    def test_listed_block_formats_and_rules_are_taken(self):
        lists = json.loads(self.run_ok("list", "--json"))
        for entry in lists["block-formats"]:
            self.run_ok("calc", "round", "1", "--format", entry["name"])
        for entry in lists["scale-rules"]:
            tensor_scale = ", fp32" if entry["name"].startswith("ue4m3") else ""
            block = f"block(fp4_e2m1, 1x16, {entry['name']}{tensor_scale})"
            self.run_ok("calc", "round", "1", "--format", block)
        self.assertEqual(list(json.loads(self.run_ok("list", "formats", "--json"))), ["formats"])
        self.assertIn("master-copy", self.run_ok("list"))

    def test_formats_are_listed_with_their_limits(self):
        """Largest number, where overflow begins, smallest numbers: IEEE 754, OCP's FP8 and MX, and E4M3 with infinities."""
        listed = self.run_ok("list", "formats")
        for name, limits in (
            ("fp16", "largest 65504, from 65520 inf; normal 2^-14, smallest 2^-24; NaN 7e00, inf 7c00"),
            ("fp8_e4m3", "largest 448, above 464 NaN; normal 2^-6, smallest 2^-9; NaN 7f, no inf"),
            ("fp8_e5m2", "largest 57344, from 61440 inf; normal 2^-14, smallest 2^-16; NaN 7e, inf 7c"),
            ("fp4_e2m1", "largest 6, from 7 saturates; normal 2^0, smallest 2^-1; no NaN, no inf"),
            ("e4m3", "largest 240, from 248 inf; normal 2^-6, smallest 2^-9; NaN 7c, inf 78"),
        ):
            self.assertRegex(listed, rf"(?m)^ +{name}  .*\n +{re.escape(limits)}$")


class Determinism(WithFolder):
    def test_same_bytes_again_and_with_two_threads(self):
        self.run_ok(*self.words("one", "--quick"))
        self.run_ok(*self.words("again", "--quick"))
        self.run_ok(*self.words("two", "--quick", threads=2))
        self.assertEqual(self.records("one"), self.records("again"))
        self.assertEqual(self.records("one"), self.records("two"))

    def test_killed_at_random_steps_and_resumed(self):
        def words(out):
            return self.words(out, "--arms", "fp16_mixed", "--seeds", "1", "--resume", "--set", "checkpoint_every=50",
                              steps=1500)

        def saved_at():
            path = self.folder / "broken/master-copy/fp16_mixed/seed0/checkpoint/state.safetensors"
            return path.stat().st_mtime_ns if path.exists() else 0

        chance = random.Random(1)
        for _ in range(4):
            before = saved_at()
            process = subprocess.Popen([PROGRAM, *map(str, words("broken"))], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            while process.poll() is None and saved_at() == before:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.1))
            self.assertIsNone(process.poll(), "the run ended before it could be killed")
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.run_ok(*words("broken"))
        self.run_ok(*words("whole"))
        self.assertEqual(self.records("whole"), self.records("broken"))
        self.assertEqual([p.name for p in (self.folder / "broken").rglob(".*")], [])

    def test_config_of_a_run_repeats_it(self):
        self.run_ok(*self.words("one", "--arms", "fp16_no_master", "--seeds", "1"))
        config = self.folder / "one/master-copy/fp16_no_master/seed0/config.json"
        self.run_ok("run", "master-copy", "--config", config, "--out", self.folder / "two", "--threads", "1")
        self.assertEqual(self.records("one"), self.records("two"))

    def test_toml_settings(self):
        toml = self.folder / "settings.toml"
        toml.write_text(f'steps = 12\nbatch = 32\ndata = "{self.data}"\n')
        self.run_ok("run", "master-copy", "--config", toml, "--out", self.folder / "out", "--quick", "--arms", "fp32")
        config = json.loads((self.folder / "out/master-copy/fp32/seed0/config.json").read_text())
        self.assertEqual(config["steps"], 12)


if __name__ == "__main__":
    unittest.main()
