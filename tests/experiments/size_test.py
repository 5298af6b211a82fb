"""--size: the sizes of an experiment."""

import json
import os
import unittest

from program import WithFolder, halfscope

# Their analyses sum for up to a minute with sanitizers, and have tests of their own.
LONG_ANALYSES = {"weights-without-master", "where-fp32-sums", "accumulation-error", "fp8-sums", "all-reduce"}
OF_IMAGES = ("master-copy", "detection-loss-scale", "segmentation-loss-scale", "batchnorm-reduction")


class Size(WithFolder):
    def test_every_experiment_has_arms_at_each_size(self):
        listed = json.loads(self.run_ok("list", "experiments", "--json"))["experiments"]
        left_out = LONG_ANALYSES if "HALFSCOPE_SANITIZED" in os.environ else set()
        self.assertLessEqual(LONG_ANALYSES, {experiment["name"] for experiment in listed})
        for experiment in listed:
            if experiment["name"] in left_out:
                continue
            with self.subTest(experiment["name"]):
                datasets = {arm["name"]: arm["dataset"] for arm in experiment["arms"]}
                self.assertLessEqual(set(experiment["full_arms"]), set(datasets))
                self.assertTrue(any("fp32" in arm for arm in experiment["full_arms"]))
                arm = experiment["full_arms"][-1]
                data = self.data_of(datasets[arm])
                self.run_ok("run", experiment["name"], "--size", "smoke", "--arms", arm, "--seeds", 1, "--data", data,
                            "--out", self.folder / "out")

    def test_smoke_takes_the_whole_path_in_a_few_steps(self):
        for experiment in OF_IMAGES:
            with self.subTest(experiment):
                out = self.folder / "out"
                result = halfscope("run", experiment, "--size", "smoke", "--seeds", 1, "--data", self.data, "--out", out)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("mean nothing", result.stderr)
                self.assertIn("verdict:", result.stdout)
                for config in (out / experiment).rglob("config.json"):
                    settings = json.loads(config.read_text())
                    self.assertEqual((settings["steps"], settings["batch"]), (4, 4))
                    is_scene = settings["dataset"].endswith("_scenes")
                    self.assertEqual(settings.get("image_size"), 40 if is_scene else None)
                    self.assertTrue((config.parent / "checkpoint").is_dir())

    def test_what_is_set_goes_before_the_size(self):
        self.run_ok("run", "batchnorm-reduction", "--size", "full", "--set", "batch=32", "--set", "steps=2", "--arms", "fp32",
                    "--seeds", 1, "--data", self.data, "--out", self.folder / "out")
        config = next((self.folder / "out").rglob("config.json"))
        self.assertEqual(json.loads(config.read_text())["batch"], 32)

    def test_full_size(self):
        words = ("run", "batchnorm-reduction", "--data", self.data, "--out", self.folder / "out")
        self.refuse(*words, "--size", "full", says=["1024", "96"])  # images in a batch, images in all
        self.refuse("run", "master-copy", "--size", "full", "--data", self.data, says=["128", "96"])
        for experiment, arm, batch in (("averaging-sweep", "fp32_x16", 1024), ("averaging-sweep", "fp32_x256", 4096),
                                       ("language-model-loss-scale", "fp16_s1", 2048),
                                       ("scaler-comparison", "language_model_fp32", 2048)):
            self.refuse("run", experiment, "--size", "full", "--arms", arm, "--data", self.text(), "--out",
                        self.folder / "out", "--set", "sequence_length=32", says=[f"batch size {batch}"])
        self.refuse(*words, "--size", "hueg", says=["unknown size 'hueg'", "full"])
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()
