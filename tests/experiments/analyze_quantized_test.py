"""halfscope analyze over quantized checkpoints: the layouts, what is counted of their blocks, and what is refused."""

import json
import math
import struct
import unittest

from quantized_files import E4M3, SIZE, QuantizedFiles, error, flat, floats, listed, quantize


class Quantized(QuantizedFiles):
    def test_fp8_blocks_of_128(self):
        path, truth = self.deepseek()
        self.assertAlmostEqual(truth, 0.0247, delta=0.001)
        blocks = self.compared(path, truth)["blocks"]
        self.assertEqual(blocks["blocks"], 4)
        self.assertEqual(blocks["zero_blocks"], listed(3))
        self.assertEqual(blocks["at_largest"], listed(0, 1, 2))
        for kind in ("nan_codes", "nan_scales", "zero_scales", "saturated_scales", "low", "clipped"):
            self.assertEqual(blocks[kind], listed(), kind)

    def test_no_loss_scale_is_advised_on_quantized_weights(self):
        path, _ = self.deepseek()
        for words in ((), ("--quiet",), ("--group", "q_proj")):
            printed = self.run_ok("analyze", path, *words)
            for text in ("window of all", "2^", "GradScaler", "costs nothing"):
                self.assertNotIn(text, printed, words)
        lines = self.run_ok("analyze", path).splitlines()
        self.assertIn("No block of 1 quantized tensor is damaged.", lines[0])
        self.assertIn("--against the original", " ".join(lines[:3]))
        found = json.loads(self.run_ok("analyze", path, "--json"))
        self.assertTrue(found["quantized"])
        self.assertEqual(
            (found["recommended_scale_log2"], found["joint_window_log2"], found["outliers"]), (None, None, [])
        )
        self.assertIn("No block of 1 quantized tensor is damaged.", found["verdict"])
        self.assertIn("Leave out --group", self.run_ok("analyze", path, "--group", "q_proj"))

    def test_blocks_that_clip_are_named_beside_the_original(self):
        path, _ = self.deepseek(largest=600)  # beyond 464, halfway to the code that E4M3 lacks
        (found,) = self.analyze(path, "--against", self.original)
        self.assertEqual(found["blocks"]["clipped"], listed(0, 1, 2))
        first = " ".join(self.run_ok("analyze", path, "--against", self.original).splitlines()[:2])
        self.assertIn("Quantize q_proj.weight again, with a larger scale: 3 of 4 blocks clip", first)
        self.assertIn("(index 0, 1, 2)", first)
        path, _ = self.deepseek(largest=456)  # the nearest code is the largest
        (found,) = self.analyze(path, "--against", self.original)
        self.assertEqual(found["blocks"]["clipped"], listed())
        self.assertIn("none clips", self.run_ok("analyze", path, "--against", self.original).splitlines()[0])

    def test_blocks_that_waste_half_of_the_range_are_named(self):
        path, _ = self.deepseek(largest=200)
        (found,) = self.analyze(path)
        self.assertEqual(found["blocks"]["low"], listed(0, 1, 2))
        self.assertEqual(found["blocks"]["at_largest"], listed())
        self.assertIn("below half: 0, 1, 2", self.run_ok("analyze", path))

    def test_indices_end_with_a_number_of_those_left_out(self):
        count = 20000
        path = self.write(
            "many",
            {
                "w.weight": ("F8_E4M3", [count, 4], bytes([0x7E] * 4 * count)),
                "w.weight_scale": ("F32", [count, 1], floats([math.nan] * count)),
            },
        )
        blocks = self.analyze(path)[0]["blocks"]
        self.assertEqual(
            blocks["nan_scales"], {"count": count, "indices": list(range(16384)), "left_out": count - 16384}
        )
        self.assertEqual(blocks["at_largest"], {"count": count, "indices": list(range(8)), "left_out": count - 8})

    def test_mx_blocks_of_32(self):
        def exponent(amax):
            return 2.0 ** (math.ceil(math.log2(amax / 448)) if amax else -127)

        codes, scales, values = quantize(self.rows, (1, 32), E4M3, 0x80, exponent)
        exponents = bytes(int(math.log2(s)) + 127 for s in scales)
        for dtype in ("F8_E8M0", "U8"):
            path = self.write(
                "mx",
                {
                    "q_proj.weight": ("F8_E4M3", [SIZE, SIZE], bytes(flat(codes))),
                    "q_proj.weight_scale": (dtype, [SIZE, SIZE // 32], exponents),
                },
            )
            self.assertEqual(self.compared(path, error(self.rows, values))["blocks"]["zero_blocks"]["count"], 512)

    def test_nvfp4_blocks_of_16(self):
        path, truth, _ = self.nvfp4(zero_code=0)
        self.assertAlmostEqual(truth, 0.0895, delta=0.006)
        blocks = self.compared(path, truth)["blocks"]
        self.assertEqual((blocks["blocks"], blocks["zero_blocks"]["count"]), (4096, 1024))
        self.assertEqual(blocks["zero_scales"]["count"], 0)

    def test_nan_scales_have_their_indices(self):
        path, _, scales = self.nvfp4(zero_code=0x7F)
        (found,) = self.analyze(path)
        missing = [i for i, scale in enumerate(scales) if not scale]
        self.assertEqual(len(missing), 1024)
        self.assertEqual(found["blocks"]["nan_scales"], listed(*missing))
        self.assertEqual(found["nonfinite"], 16 * 1024)
        first = self.run_ok("analyze", path).splitlines()[0]
        self.assertIn("Quantize q_proj.weight again, with a finite scale for blocks of zeros", first)
        # The block of the tensor's largest value has the largest scale: that is how the format works.
        self.assertEqual(found["blocks"]["saturated_scales"]["count"], 1)
        self.assertNotIn("do not saturate", self.run_ok("analyze", path))

    def test_packed_blocks_beside_scales(self):
        path = self.write(
            "oss",
            {
                "mlp_blocks": ("U8", [2, 2, 16], bytes([0x21] + [0] * 15 + [0x7F] * 48)),
                "mlp_scales": ("U8", [2, 2], bytes([128, 255, 254, 0])),
            },
        )
        (found,) = self.analyze(path)
        self.assertEqual((found["name"], found["elements"]), ("mlp", 128))
        blocks = found["blocks"]
        self.assertEqual(blocks["nan_scales"], listed(1))
        self.assertEqual(blocks["saturated_scales"], listed(2))
        self.assertEqual(blocks["low"], listed(0))
        reference = self.write("truth", {"mlp": ("F32", [2, 64], floats([1.0, 2.0] + [0.0] * 126))})
        path = self.write(
            "low",
            {
                "mlp_blocks": ("U8", [2, 2, 16], bytes([0x21] + [0] * 63)),
                "mlp_scales": ("U8", [2, 2], bytes([128] * 4)),
            },
        )
        (found,) = self.analyze(path, "--against", reference)
        self.assertEqual(found["relative_error"], 0)  # 0.5 and 1 times 2: the low nibble is first

    def test_payload_shows_the_codes(self):
        path, _ = self.deepseek()
        found = {tensor["name"]: tensor for tensor in self.analyze(path, "--payload")}
        self.assertEqual(set(found), {"q_proj.weight", "q_proj.weight_scale_inv"})
        self.assertEqual(float(found["q_proj.weight"]["max_abs"]), 448)
        self.assertNotIn("blocks", found["q_proj.weight"])

    def test_code_types_alone(self):
        cases = {  # some codes of every type, and the numbers of the table of the OCP and of AMD
            "F8_E4M3FNUZ": (bytes([0x7F, 0x01, 0xC0]), [240, 2.0**-10, -1]),
            "F8_E5M2FNUZ": (bytes([0x7F, 0x01, 0xC0]), [57344, 2.0**-17, -1]),
            "F8_E8M0": (bytes([0x7F, 0x00, 0xFE]), [1, 2.0**-127, 2.0**127]),
            "F4": (bytes([0x27, 0x91]), [6, 1, 0.5, -0.5]),
            "F6_E3M2": (struct.pack("<I", 0x1F | 0x01 << 6 | 0x2C << 12 | 0x0C << 18)[:3], [28, 2.0**-4, -1, 1]),
            "F6_E2M3": (struct.pack("<I", 0x1F | 0x01 << 6 | 0x28 << 12 | 0x08 << 18)[:3], [7.5, 0.125, -1, 1]),
        }
        for dtype, (content, numbers) in cases.items():
            with self.subTest(dtype):
                path = self.write("codes", {"x": (dtype, [len(numbers)], content)})
                truth = self.write("numbers", {"x": ("F32", [len(numbers)], floats(numbers))})
                (found,) = self.analyze(path, "--against", truth)
                self.assertEqual(found["relative_error"], 0)

    def test_parts_that_do_not_fit(self):
        codes = ("F8_E4M3", [4, 64], bytes(256))
        cases = [
            (
                {"w.weight": codes, "w.weight_scale": ("F32", [3, 5], floats([1.0] * 15))},
                ["w.weight_scale", "do not fit"],
            ),
            ({"w.weight_scale_inv": ("F32", [1, 1], floats([1.0]))}, ["payload", "is not in the file"]),
            ({"w_scales": ("U8", [4], bytes(4))}, ["w_blocks", "is not in the file"]),
            ({"w_blocks": ("U8", [4, 1, 16], bytes(64))}, ["w_scales", "is not in the file"]),
            (
                {"w.weight": ("U8", [4, 8], bytes(32)), "w.weight_scale_2": ("F32", [], floats([1.0]))},
                ["w.weight_scale", "is not in the file"],
            ),
        ]
        for tensors, says in cases:
            with self.subTest(says):
                self.refuse("analyze", self.write("bad", tensors), says=says)

    def test_other_scales_are_ordinary_tensors(self):
        path = self.write("clip", {"logit_scale": ("F32", [1], floats([4.6]))})
        self.assertEqual([tensor["name"] for tensor in self.analyze(path)], ["logit_scale"])


if __name__ == "__main__":
    unittest.main()
