"""halfscope memory: a published count, tables for programs, and requests that cannot be met."""

import json
import unittest

from program import WithFolder, halfscope

RECORDED = {"gradient_sum": "gradient_accumulator"}  # a role of summary.json
RESNET50 = ("memory", "resnet50", "--images", "224x224x3", "--set", "width=1")


class Memory(WithFolder):
    def rows(self, *words):
        return [json.loads(line) for line in self.run_ok(*words, "--table", "json").splitlines()]

    def test_resnet50_by_role(self):
        rows = self.rows(*RESNET50, "--batch", "1", "--outputs", "feature_maps", "--policy", "fp16_mixed")
        found = {row["role"]: (row["elements"], row["bytes"]) for row in rows}
        self.assertEqual(found["weight"], (25_557_032, 2 * 25_557_032))
        self.assertEqual(found["master_weight"], (25_557_032, 4 * 25_557_032))
        self.assertEqual(found["activation"], (16_106_496, 2 * 16_106_496))
        parts = [numbers[1] for role, numbers in found.items() if not role.startswith("total")]
        self.assertEqual(found["total"][1], sum(parts))
        self.assertLess(found["total"][1], found["total_fp32"][1])

    def test_layers_add_up_to_the_whole(self):
        rows = self.rows(*RESNET50, "--batch", "2", "--layers")
        self.assertEqual(sum(row["parameters"] for row in rows), 25_557_032)
        self.assertEqual([row["kind"] for row in rows[:3]], ["input", "convolution", "normalisation"])
        self.assertEqual(rows[1]["outputs"], 2 * 112 * 112 * 64)

    def test_a_table_for_people(self):
        text = self.run_ok(*RESNET50, "--batch", "32")
        self.assertTrue(text.startswith("resnet50 of width 1, 32 examples of (224, 224, 3), fp32, adam\n"))
        self.assertIn("102.23 MB", text)

    def test_a_detector_on_the_scenes_that_it_needs(self):
        words = ("--set", "dataset=detection_scenes", "--set", f"data={self.data}", "--batch", "2")
        weights = {}
        for model in ("faster_rcnn", "mask_rcnn"):
            weights[model] = next(row for row in self.rows("memory", model, *words) if row["role"] == "weight")["elements"]
        self.assertEqual(weights["mask_rcnn"] - weights["faster_rcnn"], (9 * 64 + 1) * 64 + (9 * 64 + 1) * 32 + 33 * 10)

    def test_a_run_keeps_the_same_account_of_its_step(self):
        cases = {
            "cnn_bn": ("fashion_mnist", ["policy=fp16_mixed"]),
            "resnet18": ("fashion_mnist", ["policy=apex_o3", "checkpoint_segments=3", "optimizer=sgd"]),
            "gru_lm": ("kjv_text", ["policy=autocast_cuda", "hidden_size=16", "embedding_size=8"]),
            "ssd": ("detection_scenes", ["policy=fp16_pure", "micro_batches=2", "image_size=40"]),
            "transformer": ("numbers_to_words", ["policy=apex_o1", "hidden_size=16", "embedding_size=8", "heads=2"]),
        }
        for model, (dataset, settings) in cases.items():
            with self.subTest(model):
                data, out = self.data_of(dataset), self.folder / model
                settings = [f"dataset={dataset}", *settings]
                file = self.folder / f"{model}.toml"
                file.write_text(f"[settings]\nmodel = '{model}'\nsteps = 1\nbatch = 4\n[arm.only]\n")
                words = [word for setting in settings for word in ("--set", setting)]
                self.run_ok("run", file, "--seeds", 1, "--data", data, "--out", out, *words)
                memory = json.loads((out / model / "only/seed0/summary.json").read_text())["memory"]
                rows = self.rows("memory", model, "--batch", 4, "--set", f"data={data}", *words)
                printed = [{**row, "role": RECORDED.get(row["role"], row["role"])} for row in rows]
                self.assertEqual(memory["roles"], [row for row in printed if not row["role"].startswith("total")])
                total = next(row for row in rows if row["role"] == "total")
                self.assertEqual(memory["peak_step_bytes"], total["bytes"])

    def test_refused(self):
        for words, parts in (
            (("nosuch",), ["unknown model 'nosuch'"]),
            (("alexnet", "--images", "3x3"), ["--images 3x3", "224x224x3"]),
            (("alexnet", "--images", "0x8x3"), ["--images 0x8x3", "from 1 to 4096"]),
            (("alexnet", "--images", "8x8x3x"), ["--images 8x8x3x"]),
            (("alexnet", "--images", "8x8x3\x1b[2J"), ["--images 8x8x3\\x1b"]),
            (("alexnet", "--images", "1x1x3", "--classes", "0"), ["--classes", "1 to 1048576"]),
            (("alexnet", "--classes", "10"), ["--classes", "--images"]),
            (("alexnet", "--images", "8x8x3", "--outputs", "some"), ["outputs", "'some'", "feature_maps"]),
            (("gru_lm", "--images", "32x32x3"), ["gru_lm", "data set of words"]),
            (("ssd", "--images", "64x64x1"), ["ssd"]),
            (("faster_rcnn", "--images", "64x64x1"), ["faster_rcnn", "boxes"]),
            (("alexnet", "--batch", "0"), ["--batch"]),
        ):
            with self.subTest(words=words):
                answer = halfscope("memory", *words)
                self.assertEqual(answer.returncode, 2, answer.stderr)
                self.assertEqual(answer.stdout, "")
                self.assertEqual(answer.stderr.count("\n"), 1)
                for part in parts:
                    self.assertIn(part, answer.stderr)


if __name__ == "__main__":
    unittest.main()
