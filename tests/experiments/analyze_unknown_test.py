"""halfscope analyze over codes whose layout is not known: named, and never taken for weights or left over."""

import json
import struct
import unittest

from program import halfscope
from quantized_files import QuantizedFiles, floats, safetensors


class UnknownLayouts(QuantizedFiles):
    def write_in(self, name, tensors):
        """A folder of its own, so that nothing lies beside the file."""
        folder = self.folder / name
        folder.mkdir()
        path = folder / "model.safetensors"
        path.write_bytes(safetensors(tensors))
        return path

    def test_codes_of_a_layout_that_is_not_known_are_no_leftovers(self):
        """Integers or FP8 beside numbers that may be their scales: named, and no loss scale for what is left."""
        numbers = {"U8": 1, "I8": 1, "I16": 2, "I32": 4, "U32": 4, "F8_E4M3": 1}
        for codes, scale in (
            ("l.qweight", "l.weight_scales"),
            ("l.q_weight", "l.q_scale_max"),
            ("l.B", "l.s"),
            ("l.weight._data", "l.weight._scale"),
            ("l.weight._data._data", "l.weight._scale"),
            ("l.weight_qdata", "l.weight_scale_and_zero"),
            ("l.codes", "l.codebooks"),
            ("l.weight", "l.block_absmax"),
        ):
            for dtype, width in numbers.items():
                if (codes, dtype) == ("l.qweight", "I32"):
                    continue  # GPTQ's
                rows, columns = 4 + width, 8
                parts = {
                    codes: (dtype, [rows, columns], bytes(range(rows * columns * width))),
                    scale: ("F16", [3, 5], struct.pack("<15e", *[0.01] * 15)),
                    "norm.weight": ("F32", [2], floats([1.0, 2.0])),
                }
                path = self.write_in(f"unknown-{codes}-{dtype}", parts)
                with self.subTest(codes=codes, dtype=dtype):
                    result = halfscope("analyze", path, "--json")
                    self.assertEqual(result.returncode, 2)
                    self.assertIn("is not read", result.stderr)
                    found = json.loads(result.stdout)
                    self.assertTrue(found["quantized"])
                    self.assertEqual([tensor["name"] for tensor in found["tensors"]], ["norm.weight"])

    def test_integers_that_are_no_weights_stay_skipped(self):
        """Places, masks and counters beside a scale of something else, and integers without one."""
        for name, shape in (
            ("attn.relative_position_index", [2, 4]),
            ("attn.mask", [2, 4]),
            ("attn.steps", [8]),
            ("other.table", [2, 4]),
        ):
            path = self.write_in(
                name,
                {
                    name: ("I32", shape, bytes(32)),
                    "attn.logit_scale": ("F32", [1], floats([2.0])),
                    "attn.weight": ("F32", [2], floats([1.0, 2.0])),
                },
            )
            self.assertEqual({tensor["name"] for tensor in self.analyze(path)}, {"attn.logit_scale", "attn.weight"})

    def test_bytes_whose_blocks_are_neither_of_mx_nor_of_nvfp4(self):
        for columns, scales, dtype, fits in (
            (16, 1, "U8", True),
            (24, 1, "U8", False),
            (32, 1, "U8", False),
            (32, 2, "F8_E8M0", True),
            (8, 1, "F8_E4M3", True),
            (16, 1, "F8_E4M3", False),
        ):
            parts = {
                "w": ("U8", [4, columns], bytes(range(4 * columns))),
                "w_scale": (dtype, [4, scales], b"\x38" * 4 * scales),
            }
            path = self.write_in(f"blocks-{columns}-{dtype}", parts)
            if fits:
                self.assertEqual(self.analyze(path)[0]["elements"], 8 * columns)
            else:
                self.refuse("analyze", path, says=["32 of them in MX", "may be FP8 or FP6 as bytes"])

    def test_a_list_of_scales_that_is_none_of_rows(self):
        """As many as columns, in a layout whose outputs are columns."""
        parts = {"l.weight": ("I8", [8, 4], bytes(range(32))), "l.weight_scales": ("F32", [4], floats([0.1] * 4))}
        self.refuse("analyze", self.write_in("columns", parts), says=["of shape (4) do not fit its shape (8, 4)"])


if __name__ == "__main__":
    unittest.main()
