"""halfscope bench: the contracted JSON, the table, and names that are wrong."""

import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


def bench(*words):
    return subprocess.run([PROGRAM, "bench", *words], capture_output=True, text=True, timeout=120)


class Bench(unittest.TestCase):
    def test_json(self):
        result = bench("round_fp16", "gemm", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        output = json.loads(result.stdout)
        self.assertRegex(output["machine"], r"^\S.*, (baseline|avx2|avx512)$")
        cases = output["cases"]
        self.assertEqual([case["name"] for case in cases], ["round_fp16", "gemm"])
        for case in cases:
            self.assertEqual(set(case), {"name", "value", "unit", "ratio", "against"})
            self.assertGreater(case["value"], 0)
            self.assertGreater(case["ratio"], 0)
        self.assertEqual((cases[0]["unit"], cases[0]["against"]), ("Gelem/s", "memcpy"))
        self.assertEqual(cases[1]["unit"], "GFLOP/s")
        self.assertRegex(cases[1]["against"], r"^Eigen \d+\.\d+\.\d+ with(out)? FMA$")

    def test_histograms_of_every_stored_type_are_beside_a_copy_of_as_many_bytes(self):
        names = ["histogram", "histogram_fp16", "histogram_bf16"]
        result = bench(*names, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = json.loads(result.stdout)["cases"]
        self.assertEqual([case["name"] for case in cases], names)
        for case in cases:
            self.assertEqual((case["unit"], case["against"]), ("Gelem/s", "memcpy"))
            self.assertGreater(case["value"], 0, case)
            self.assertGreater(case["ratio"], 0, case)

    def test_steps_of_recipes_are_beside_fp32(self):
        names = [f"training_step_{model}_{recipe}" for model in ("gru", "transformer") for recipe in ("mxfp8", "nvfp4")]
        result = bench(*names, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = json.loads(result.stdout)["cases"]
        self.assertEqual([case["name"] for case in cases], names)
        for case in cases:
            self.assertEqual((case["unit"], case["against"]), ("ms", "the policy fp32"))
            self.assertGreater(case["ratio"], 0, case)

    def test_a_checkpoint_is_read_beside_safetensors(self):
        result = bench("read_checkpoint", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        (case,) = json.loads(result.stdout)["cases"]
        self.assertEqual((case["unit"], case["against"]), ("GB/s", "safetensors"))
        self.assertGreater(case["ratio"], 0)

    def test_the_first_axis_is_counted_beside_the_last(self):
        result = bench("formats_axis_0", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        (case,) = json.loads(result.stdout)["cases"]
        self.assertEqual((case["unit"], case["against"]), ("GB/s", "the last axis"))
        self.assertGreater(case["ratio"], 0)

    def test_every_rounding_and_kind_of_product_has_a_case(self):
        listed = json.loads(subprocess.run([PROGRAM, "list", "roundings", "--json"], capture_output=True, text=True).stdout)
        roundings = [entry["name"] for entry in listed["roundings"] if entry["name"] != "nearest_even"]
        names = [f"round_fp16_{name}" for name in [*roundings, "saturate"]]
        names += ["round_tf32", "round_fp8_e5m2", "gemm_fp32_chunked", "gemm_fp16_chunked", "gemm_bf16_sequential",
                  "gemm_hopper_bf16", "gemm_ada_fp8", "gemm_hopper_fp8", "gemm_hopper_fp8_promoted",
                  "gemm_blackwell_fp8"]
        result = bench(*names, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = json.loads(result.stdout)["cases"]
        self.assertEqual([case["name"] for case in cases], names)
        for case in cases:
            self.assertGreater(case["value"], 0, case)
            self.assertGreater(case["ratio"], 0, case)

    def test_table(self):
        result = bench("exp")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[0], r"^on \S.*, (baseline|avx2|avx512), one thread$")
        self.assertEqual(lines[2].split(), ["case", "value", "unit", "ratio", "against"])
        self.assertEqual(lines[3].split()[0], "exp")

    def test_cuda_cases_say_why_they_are_skipped(self):
        result = bench("--device", "cuda", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        cases = json.loads(result.stdout)["cases"]
        names = [case["name"] for case in cases]
        for name in ("cuda_gemm_ordered", "cuda_histogram", "cuda_cast", "cuda_adam", "cuda_track_all"):
            self.assertIn(name, names)
        for case in cases:
            self.assertTrue(case["name"].startswith("cuda_"))
            if "skipped" in case:
                self.assertRegex(case["skipped"], "^device cuda: ")
                self.assertIsNone(case["value"])
                self.assertIsNone(case["ratio"])
            else:
                self.assertGreater(case["value"], 0)

    def test_a_device_has_its_own_cases(self):
        result = bench("--device", "tpu")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        table = bench("cuda_round_fp16").stdout.splitlines()
        self.assertEqual(len(table), 4)
        self.assertEqual(table[3].split()[0], "cuda_round_fp16")

    def test_unknown_name_is_refused_before_anything_runs(self):
        result = bench("round_fp16", "histogramm")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("did you mean 'histogram'", result.stderr)


if __name__ == "__main__":
    unittest.main()
