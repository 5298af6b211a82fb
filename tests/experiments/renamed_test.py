"""Earlier names of options, settings, values, experiments and results are read, with a note on stderr."""

import json
import unittest

from program import WithFolder, halfscope


class Renamed(WithFolder):
    def run_both(self, earlier, current):
        """Runs twice, with earlier and with current names; returns the notes and both folders."""
        common = ("--seeds", 1, "--data", self.data, "--threads", 1)
        before = halfscope("run", *earlier, *common, "--out", self.folder / "before")
        self.assertEqual(before.returncode, 0, before.stderr)
        now = halfscope("run", *current, *common, "--out", self.folder / "now")
        self.assertEqual(now.returncode, 0, now.stderr)
        self.assertNotIn("is called", now.stderr)
        return before.stderr, self.folder / "before", self.folder / "now"

    def assert_same_records(self, before, now):
        names = sorted(path.relative_to(now) for path in now.rglob("*.json*") if path.stem in ("config", "metrics", "histograms"))
        self.assertGreater(len(names), 2)
        for name in names:
            self.assertEqual((before / name).read_bytes(), (now / name).read_bytes(), name)

    def test_settings_values_and_sizes(self):
        notes, before, now = self.run_both(
            ("detection-loss-scale", "--arms", "fp32", "--scale", "smoke", "--set", "canvas=48", "--set", "shadow_every=2",
             "--set", "trackers=update_loss,gradient_underflow"),
            ("detection-loss-scale", "--arms", "fp32", "--size", "smoke", "--set", "image_size=48",
             "--set", "fp32_reference_every=2", "--set", "trackers=lost_updates,cast_statistics"))
        self.assert_same_records(before, now)
        for earlier, current in (("--scale", "--size"), ("canvas", "image_size"), ("shadow_every", "fp32_reference_every"),
                                 ("update_loss", "lost_updates"), ("gradient_underflow", "cast_statistics")):
            self.assertEqual(notes.count(f"note: {earlier} is called {current} now"), 1, notes)

    def test_sizes(self):
        result = halfscope("run", "batchnorm-reduction", "--scale", "gpu", "--set", "batch=32", "--set", "steps=2", "--arms",
                           "fp32", "--seeds", 1, "--data", self.data, "--out", self.folder / "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("gpu is called full now", result.stderr)

    def test_an_accumulation_model(self):
        result = halfscope("run", "master-copy", "--set", "accumulate=fp32_fast", "--data", self.data, "--out", self.folder / "o")
        self.assertEqual(result.returncode, 2)
        self.assertIn("fp32_fast is called cublas now", result.stderr)
        self.assertIn("accumulate = cublas has no order that could be emulated", result.stderr)

    def test_an_experiment_its_results_and_a_run_to_resume(self):
        notes, before, now = self.run_both(("reductions", "--size", "smoke", "--arms", "fp32"),
                                           ("accumulation-error", "--size", "smoke", "--arms", "fp32"))
        self.assertIn("reductions is called accumulation-error now", notes)
        self.assert_same_records(before, now)
        # A folder and a config.json of before the names changed.
        (now / "accumulation-error").rename(now / "reductions")
        config = next(now.rglob("config.json"))
        settings = json.loads(config.read_text())
        settings["canvas"] = 64  # held by every run, of whatever data set
        config.write_text(json.dumps(settings))
        report = halfscope("report", now, "--json")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertEqual(json.loads(report.stdout)["experiment"], "accumulation-error")
        self.assertIn("reductions is called accumulation-error now", report.stderr)
        (now / "reductions").rename(now / "accumulation-error")
        resumed = halfscope("run", "accumulation-error", "--size", "smoke", "--arms", "fp32", "--seeds", 1, "--data", self.data,
                            "--out", now, "--resume")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertIn("canvas is called image_size now", resumed.stderr)


if __name__ == "__main__":
    unittest.main()
