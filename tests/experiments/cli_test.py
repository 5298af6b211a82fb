"""The program as its users meet it: results, resuming after SIGKILL, and one clear line for each kind of bad input."""

import gzip
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop()
ARMS = ["fp32", "fp16_mixed", "fp16_no_master", "fp16_pure"]


def idx(extents, values):
    """The bytes of an idx file of unsigned bytes."""
    return struct.pack(f">BBBB{len(extents)}I", 0, 0, 8, len(extents), *extents) + bytes(values)


def write_data(folder, train=96, test=40):
    """Four idx files of 8x8 images whose bright quarter is the label."""
    folder.mkdir(parents=True)
    noise = random.Random(1)
    for split, count in (("train", train), ("t10k", test)):
        pixels, labels = [], []
        for i in range(count):
            label = i % 4
            labels.append(label)
            pixels += [
                noise.randrange(60) + (150 if (p // 32, p % 8 // 4) == divmod(label, 2) else 0) for p in range(64)
            ]
        (folder / f"{split}-images-idx3-ubyte").write_bytes(idx([count, 8, 8], pixels))
        (folder / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx([count], labels)))
    return folder


def halfscope(*words, **options):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, **options)


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        self.data = write_data(self.folder / "data")

    def words(self, out, *more, steps=30, threads=1):
        return ["run", "master-copy", "--data", self.data, "--out", self.folder / out, "--set", f"steps={steps}",
                "--set", "batch=32", "--set", "checkpoint_every=7", "--threads", threads, *more]

    def run_ok(self, *words):
        result = halfscope(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def records(self, out):
        files = sorted((self.folder / out).rglob("*.jsonl")) + sorted((self.folder / out).rglob("*.safetensors"))
        self.assertTrue(files)
        return {str(f.relative_to(self.folder / out)): f.read_bytes() for f in files}

    def refuse(self, *words, says, status=2, **options):
        """The words end in `status` with one line on stderr that holds every text of `says`."""
        result = halfscope(*words, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for text in says:
            self.assertIn(text, lines[0])
        self.assertEqual(result.stdout, "")


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

    def test_report_reads_both_levels(self):
        self.run_ok(*self.words("out", "--seeds", "2"))
        reports = [json.loads(self.run_ok("report", folder, "--json"))
                   for folder in (self.folder / "out", self.folder / "out/master-copy")]
        self.assertEqual(reports[0], reports[1])
        self.assertEqual(reports[0], json.loads((self.folder / "out/master-copy/summary.json").read_text()))
        self.assertEqual((reports[0]["experiment"], reports[0]["metric"]), ("master-copy", "test accuracy"))
        arms = {arm["arm"]: arm for arm in reports[0]["arms"]}
        self.assertEqual(list(arms), ARMS)
        self.assertEqual(arms["fp16_pure"]["diverged"], 2)
        self.assertIsNone(arms["fp16_pure"]["mean"])
        fp32 = arms["fp32"]
        self.assertAlmostEqual(fp32["mean"], sum(fp32["values"]) / 2)
        half_width = 12.706 * abs(fp32["values"][0] - fp32["values"][1]) / 2
        self.assertAlmostEqual(fp32["high"] - fp32["mean"], half_width, places=6)
        text = self.run_ok("report", self.folder / "out")
        self.assertIn("verdict:", text)
        self.assertIn("fp16_pure diverged in 2 of 2 seeds", text)

    def test_list_has_every_kind(self):
        lists = json.loads(self.run_ok("list", "--json"))
        for kind in ("experiments", "formats", "roundings", "accumulators", "scalers", "models", "datasets", "trackers", "settings"):
            self.assertTrue(lists[kind], kind)
        self.assertEqual(list(json.loads(self.run_ok("list", "formats", "--json"))), ["formats"])
        self.assertIn("master-copy", self.run_ok("list"))


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

        chance = random.Random()
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


class BadInput(WithFolder):
    def nothing_written(self):
        self.assertFalse((self.folder / "out").exists())

    def test_unknown_names(self):
        self.refuse("ruin", says=["unknown command 'ruin'", "did you mean 'run'"])
        self.refuse("run", "master-cpy", says=["unknown experiment 'master-cpy'", "did you mean 'master-copy'"])
        self.refuse(*self.words("out", "--arms", "fp32,fp16_mixt"), says=["arm of master-copy", "'fp16_mixed'"])
        self.refuse(*self.words("out", "--set", "activation=fp61"), says=["activation", "did you mean 'fp16'"])
        self.refuse(*self.words("out", "--set", "stps=3"), says=["unknown key 'stps'", "did you mean 'steps'"])
        self.refuse("list", "formts", says=["unknown kind 'formts'", "did you mean 'formats'"])
        self.nothing_written()

    def test_values_out_of_range(self):
        for setting in ("steps=0", "steps=-1", "steps=ten", "learning_rate=nan", "momentum=2", "loss_scale=0", "seed=1"):
            self.refuse(*self.words("out", "--set", setting), says=[setting.split("=")[0]])
        self.refuse(*self.words("out", "--set", "steps"), says=["KEY=VALUE"])
        self.refuse(*self.words("out", "--set", "batch=97"), says=["97", "96"])
        self.refuse(*self.words("out", "--seeds", "0"), says=["--seeds"])
        self.refuse(*self.words("out", "--set", "policy=fp32"), says=["policy", "--arms"])
        self.refuse(*self.words("out", "--device", "cuda"), says=["cuda", "--device cpu"])
        self.nothing_written()

    def test_missing_and_broken_data(self):
        self.refuse("run", "master-copy", "--quick", "--data", self.folder / "nowhere", "--out", self.folder / "out",
                    says=["nowhere", "dataset-fashion-mnist"])
        images = self.data / "train-images-idx3-ubyte"
        labels = self.data / "train-labels-idx1-ubyte.gz"
        good_images, good_labels = images.read_bytes(), labels.read_bytes()
        wrong = {
            "magic": (images, b"\0\0\7\3" + good_images[4:], ["train-images-idx3-ubyte"]),
            "short": (images, good_images[:-5], ["train-images-idx3-ubyte"]),
            "truncated gzip": (labels, good_labels[:-9], ["train-labels-idx1-ubyte.gz"]),
            "corrupt gzip": (labels, good_labels[:-8] + b"\xff" * 4 + good_labels[-4:], ["train-labels-idx1-ubyte.gz"]),
            "label": (labels, gzip.compress(idx([96], [0] * 50 + [11] + [0] * 45)), ["label", "11", "50"]),
            "counts": (labels, gzip.compress(idx([95], [0] * 95)), ["95", "96"]),
        }
        for name, (path, contents, says) in wrong.items():
            with self.subTest(name):
                before = path.read_bytes()
                path.write_bytes(contents)
                self.refuse(*self.words("out", "--quick"), says=says)
                path.write_bytes(before)
                self.nothing_written()

    def test_odd_images(self):
        for split, count in (("train", 40), ("t10k", 40)):
            (self.data / f"{split}-images-idx3-ubyte").write_bytes(idx([count, 6, 6], [1] * 36 * count))
            (self.data / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx([count], [0] * count)))
        self.refuse(*self.words("out", "--quick"), says=["cnn_bn", "multiples of 4", "6"])
        self.nothing_written()

    def test_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("in the way")
        self.refuse(*self.words("file/out", "--quick"), says=["file"], status=3)
        self.assertEqual((self.folder / "file").read_text(), "in the way")

    def test_disk_full(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        self.refuse(*self.words("out", "--arms", "fp32", "--seeds", "1"), says=["cannot write", "seed0"], status=3,
                    preexec_fn=limit)
        run = self.folder / "out/master-copy/fp32/seed0"
        self.assertTrue((run / "status").read_text().startswith("FAILED: "))
        for path in run.rglob("*.json*"):
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
                json.loads(line)
        self.assertFalse((run / "summary.json").exists())
        self.assertEqual([p.name for p in run.rglob(".*")], [])
        # With room again the run goes on from its last whole checkpoint.
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1", "--resume"))
        self.run_ok(*self.words("whole", "--arms", "fp32", "--seeds", "1"))
        self.assertEqual(self.records("out"), self.records("whole"))

    def test_standard_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "list"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_results_are_not_overwritten(self):
        words = self.words("out", "--arms", "fp32", "--seeds", "1")
        self.run_ok(*words)
        before = self.records("out")
        self.refuse(*words, says=["holds a run already", "--resume", "--out"])
        self.refuse(*words, "--resume", "--set", "learning_rate=0.5", says=["learning_rate", "0.5"])
        self.run_ok(*words, "--resume")
        self.assertEqual(self.records("out"), before)

    def test_results_of_another_version(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1"))
        for name in ("summary.json", "config.json"):
            path = self.folder / "out/master-copy/fp32/seed0" / name
            text = path.read_text()
            path.write_text(text.replace('"format_version": 1', '"format_version": 2'))
            if name == "summary.json":
                self.refuse("report", self.folder / "out", says=["summary.json", "format 2", "format 1"])
            else:
                self.refuse(*self.words("out", "--arms", "fp32", "--seeds", "1", "--resume"), says=["config.json", "format 2"])
            path.write_text(text)

    def test_report_without_results(self):
        self.refuse("report", self.folder / "nowhere", says=["nowhere", "no such folder"])
        self.refuse("report", self.data, says=["no results"])
        self.refuse("report", says=["DIR"])

    def test_config_of_another_arm(self):
        self.run_ok(*self.words("out", "--arms", "fp32", "--seeds", "1"))
        config = self.folder / "out/master-copy/fp32/seed0/config.json"
        self.refuse("run", "master-copy", "--config", config, "--arms", "fp16_mixed", "--out", self.folder / "two",
                    says=["--config is of arm fp32"])
        self.refuse("run", "batchnorm-reduction", "--config", config, "--out", self.folder / "two",
                    says=["--config is of experiment master-copy"])
        broken = self.folder / "broken.json"
        broken.write_text('{"steps": ')
        self.refuse("run", "master-copy", "--config", broken, says=["broken.json"])
        self.refuse("run", "master-copy", "--config", self.folder / "none.toml", says=["none.toml"])


if __name__ == "__main__":
    os.environ.pop("HALFSCOPE_ISA", None)
    unittest.main()
