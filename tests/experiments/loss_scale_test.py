"""Loss-scaling experiments: what is predicted beside what is counted, skipped steps, and reductions' table."""

import json
import math
import unittest

from program import WithFolder


class LossScale(WithFolder):
    def setUp(self):
        super().setUp()
        words = "the quick brown fox jumps over the lazy dog and then the dog sleeps again near the old red barn".split()
        lines = (" ".join(words[(i * k) % len(words)] for k in range(1, 9)) for i in range(300))
        self.text = self.folder / "text.txt"
        self.text.write_text(".\n".join(lines))

    def report(self, out, experiment):
        return json.loads(self.run_ok("report", self.folder / out / experiment, "--json"))

    def run_language_model(self, out, *more):
        return self.run_ok("run", "language-model-loss-scale", "--data", self.text, "--out", self.folder / out, "--quick",
                           "--set", "steps=4", "--set", "batch=8", "--set", "vocabulary=30", "--set", "warmup_steps=1",
                           "--set", "loss_weight=0.00006103515625", "--threads", "1", *more)

    def test_prediction_meets_the_count_next_to_the_loss_and_exceeds_it_further_down(self):
        text = self.run_language_model("out", "--arms", "fp32,fp16_s1,fp16_s128,fp16_s1024")
        report = self.report("out", "language-model-loss-scale")
        self.assertTrue(report["lower_is_better"])
        of_arm = {}
        for entry in report["predictions"]:
            of_arm.setdefault(entry["arm"], []).append(entry)
        self.assertEqual(list(of_arm), ["fp16_s1", "fp16_s128", "fp16_s1024"])
        for arm, entries in of_arm.items():
            nearest = entries[0]
            self.assertEqual(nearest["role"], "activation_gradient")
            self.assertLess(abs(nearest["predicted"] - nearest["counted"]), 0.01, arm)
            self.assertTrue(all(0 <= e[key] <= 1 for e in entries for key in ("predicted", "counted")))
        unscaled = of_arm["fp16_s1"]
        self.assertGreater(unscaled[0]["counted"], 0.2)  # or this test shows nothing
        self.assertTrue(any(e["predicted"] > e["counted"] + 0.01 for e in unscaled))
        self.assertLess(of_arm["fp16_s1024"][0]["counted"], unscaled[0]["counted"] / 2)
        self.assertIn("predicted from the histograms of fp32", text)

    def test_predictions_equal_what_the_records_say(self):
        """The histogram of the FP32 run at the first step, flushed below 2^-25 and at it, without this program."""
        self.run_language_model("out", "--arms", "fp32,fp16_s128")
        predictions = self.report("out", "language-model-loss-scale")["predictions"]
        run = self.folder / "out/language-model-loss-scale/fp32/seed0"
        first = [json.loads(line) for line in (run / "histograms.jsonl").read_text().splitlines()]
        first = {(h["tensor"], h["role"]): h for h in first if h["step"] == 1}
        seen = 0
        for entry in predictions:
            histogram = first[entry["tensor"], entry["role"]]
            edge = -25 - 7  # exponent of 2^-25 at S = 2^7
            flushed = 0
            for i, count in enumerate(histogram["counts"]):
                exponent = histogram["first_exponent"] + i
                flushed += count if exponent < edge else histogram["pow2"][i] if exponent == edge else 0
            elements = sum(histogram["counts"]) + histogram["zeros"] + histogram["infinities"] + histogram["nans"]
            self.assertEqual(entry["elements"], elements)
            self.assertTrue(math.isclose(entry["predicted"], flushed / elements), entry)
            seen += entry["predicted"] > 0
        self.assertGreater(seen, 0)

    def test_a_tensor_that_feeds_two_layers_is_counted_with_all_its_casts(self):
        self.run_ok("run", "detection-loss-scale", "--data", self.data, "--out", self.folder / "out", "--quick", "--arms",
                    "fp32,fp16_s1", "--set", "steps=1", "--set", "batch=2", "--set", "evaluate_every=0", "--threads", "1")
        run = self.folder / "out/detection-loss-scale/fp16_s1/seed0/metrics.jsonl"
        counted = {}
        for tensor in json.loads(run.read_text().splitlines()[0])["tensors"]:
            counted.setdefault((tensor["tensor"], tensor["role"]), []).append(tensor)
        self.assertTrue(any(len(casts) > 1 for casts in counted.values()))
        for entry in self.report("out", "detection-loss-scale")["predictions"]:
            casts = counted[entry["tensor"], entry["role"]]
            elements = sum(cast["elements"] for cast in casts)
            self.assertEqual(entry["elements"], elements)
            self.assertTrue(math.isclose(entry["counted"], sum(cast["flushed"] for cast in casts) / elements))
            self.assertLessEqual(entry["predicted"], 1)

    def test_an_overflowing_scale_diverges_unless_its_steps_are_skipped(self):
        arms = "fp32,fp16_s16777216,fp16_dynamic,fp16_s262144_skip"
        self.run_ok("run", "scale-sweep", "--data", self.data, "--out", self.folder / "out", "--quick", "--arms", arms,
                    "--set", "steps=30", "--set", "batch=32", "--threads", "1")
        arms = {arm["arm"]: arm for arm in self.report("out", "scale-sweep")["arms"]}
        self.assertEqual((arms["fp16_s16777216"]["diverged"], arms["fp16_s16777216"]["mean"]), (1, None))
        self.assertGreater(arms["fp16_dynamic"]["skipped"], 0)
        self.assertLess(arms["fp16_dynamic"]["skipped"], 20)
        self.assertEqual(arms["fp16_dynamic"]["diverged"], 0)
        self.assertEqual(arms["fp16_s262144_skip"]["diverged"], 0)
        run = self.folder / "out/scale-sweep/fp16_s262144_skip/seed0/metrics.jsonl"
        self.assertEqual({json.loads(line)["scale"] for line in run.read_text().splitlines()}, {262144})

    def test_reductions_have_their_table(self):
        self.run_ok("run", "accumulation-error", "--data", self.data, "--out", self.folder / "out", "--quick", "--arms",
                    "fp32,tensor_core_hopper", "--set", "steps=2", "--set", "batch=16", "--threads", "1")
        rows = self.report("out", "accumulation-error")["accumulation"]
        found = {(row["terms"], row["model"], row["count"]): row for row in rows}
        self.assertEqual(len(found), len(rows))
        stuck = found["sums of uniform numbers", "fp16_sequential", 65536]
        self.assertTrue(0.9 < stuck["relative_error"] < 0.95)  # 2048 of 32768
        self.assertGreater(stuck["stagnated"], 0.9)
        tree = found["sums of numbers near 8.3", "fp16_pairwise", 16384]
        self.assertEqual((tree["overflowed"], tree["relative_error"]), (1, None))
        hopper = found["dot products of uniform numbers", "tensor_core(hopper)", 4096]
        ampere = found["dot products of uniform numbers", "tensor_core(ampere)", 4096]
        self.assertLess(hopper["relative_error"], ampere["relative_error"])


if __name__ == "__main__":
    unittest.main()
