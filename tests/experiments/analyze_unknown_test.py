"""halfscope analyze over codes whose layout is not known: named, and never taken for weights or left over."""

import json
import struct
import unittest

from program import halfscope
from quantized_files import QuantizedFiles, floats, safetensors
from tensor_files import npy, write_npz


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
            if dtype == "F8_E4M3":
                parts["w_scale_2"] = ("F32", [], floats([1.0]))
            path = self.write_in(f"blocks-{columns}-{dtype}", parts)
            if fits:
                self.assertEqual(self.analyze(path)[0]["elements"], 8 * columns)
            else:
                self.refuse("analyze", path, says=["32 of them in MX", "may be FP8 or FP6 as bytes"])

    def test_a_list_of_scales_that_is_none_of_rows(self):
        """As many as columns, in a layout whose outputs are columns."""
        parts = {"l.weight": ("I8", [8, 4], bytes(range(32))), "l.weight_scales": ("F32", [4], floats([0.1] * 4))}
        self.refuse("analyze", self.write_in("columns", parts), says=["of shape (4) do not fit its shape (8, 4)"])

    def test_fp8_whose_scales_may_lie_in_a_state(self):
        """Bytes or numbers of a state beside the codes, or a list above them; without one codes are numbers."""
        codes, blob = ("F8_E4M3", [4, 8], bytes(range(1, 33))), ("U8", [100], bytes(100))
        number, norm = ("F32", [2], floats([0.5, 0.25])), ("F32", [2], floats([1.0, 2.0]))
        for other, part, is_named in (
            ("m.l._extra_state", blob, True),
            ("m.l.state", blob, True),
            ("m.l.fp8_meta.scaling_fwd.scale_inv", number, True),
            ("m.l._extra_state.amax_history", number, True),
            ("m.scales", number, True),
            ("scales", number, True),
            ("scaled_fp8", ("F8_E4M3", [2], b"\0\0"), True),
            ("m.fp8_states", blob, True),
            ("m.l.w_exponents", ("I8", [1], b"\xf6"), True),
            ("m.l.bias", number, False),
            ("m.k._extra_state", blob, False),
            ("m.l.lora.scale", number, False),
            ("logit_scale", ("F32", [], floats([4.6])), False),
            ("m.l.steps", ("I64", [1], bytes(8)), False),
            ("m.l.mask", ("U8", [4, 8], bytes(32)), False),
        ):
            path = self.write_in(f"state-{other}", {"m.l.w": codes, other: part, "norm.weight": norm})
            with self.subTest(other):
                result = halfscope("analyze", path, "--json")
                names = {tensor["name"] for tensor in json.loads(result.stdout)["tensors"]}
                self.assertEqual(("m.l.w" not in names, result.returncode), (is_named, 2 if is_named else 0))
                if is_named:
                    self.assertIn("m.l.w", result.stderr)
                    self.assertIn(other, result.stderr)

    def test_codes_without_scales_that_a_configuration_calls_quantized(self):
        path = self.write_in("configured", {"l.weight": ("F8_E4M3", [4, 8], bytes(range(1, 33)))})
        self.assertEqual(len(self.analyze(path)), 1)
        (path.parent / "config.json").write_text(json.dumps({"quantization_config": {"quant_method": "fp8"}}))
        self.refuse("analyze", path, says=["config.json says that weights are quantized", "no scale of it"])

    def test_fp8_in_a_file_whose_texts_speak_of_scales(self):
        for text, is_named in (('{"l.weight": {"scale": 0.25}}', True), ("pt", False)):
            path = self.write_in(f"texts{is_named}", {"l.weight": ("F8_E4M3", [4, 8], bytes(range(1, 33)))})
            content = path.read_bytes()
            size = int.from_bytes(content[:8], "little")
            header = {"__metadata__": {"format": text}, **json.loads(content[8 : 8 + size])}
            words = json.dumps(header).encode()
            path.write_bytes(len(words).to_bytes(8, "little") + words + content[8 + size :])
            if is_named:
                result = halfscope("analyze", path)
                self.assertEqual(result.returncode, 2)
                self.assertIn('its scales may be in "__metadata__"', result.stderr)
            else:
                self.assertEqual(len(self.analyze(path)), 1)

    def test_integers_that_are_called_a_weight(self):
        """Their factors may have any name; and PyTorch's files list the type of integers alone."""
        parts = {"l.weight": ("U8", [8, 4], bytes(range(32))), "l.alpha": ("F16", [8, 1], struct.pack("<8e", *[0.5] * 8))}
        result = halfscope("analyze", self.write_in("alpha", parts))
        self.assertEqual(result.returncode, 2)
        self.assertIn('"l.weight" is not read: U8 of shape (8, 4) is a quantized weight', result.stderr)

    def test_integers_of_an_archive_of_numpy(self):
        """Its reader lists their type alone."""
        for descr, code, is_named in (("|i1", "b", True), ("<u2", "H", True), ("<i8", "q", False)):
            members = {"w.npy": npy(list(range(8)), descr, code), "w_scale.npy": npy([0.5]), "norm.npy": npy([1.0, 2.0])}
            result = halfscope("analyze", write_npz(self.folder / f"{code}.npz", members), "--json")
            with self.subTest(descr):
                names = [tensor["name"] for tensor in json.loads(result.stdout)["tensors"]]
                self.assertEqual(names, ["norm"] if is_named else ["w_scale", "norm"])
                self.assertEqual((result.returncode, "'w'" in result.stderr or '"w"' in result.stderr), (2, True) if is_named else (0, False))

    def test_companions_that_may_be_added_or_are_logarithms(self):
        scale = ("F32", [4, 1], floats([0.5] * 4))
        for dtype in ("I8", "F8_E4M3"):
            for other in ("l.weight_offset", "l.weight_min", "l.weight_shift"):
                parts = {"l.weight": (dtype, [4, 8], bytes(range(1, 33))), "l.weight_scale": scale, other: scale}
                self.refuse("analyze", self.write_in(f"{other}-{dtype}", parts), says=[other, "may be added"])
        parts = {"l.weight": ("F8_E4M3", [4, 8], bytes(range(1, 33))), "l.weight_log_scale": ("F32", [1], floats([-6.0]))}
        self.refuse("analyze", self.write_in("log", parts), says=['"l.weight_log_scale" of shape (1) may be its scales'])

    def test_whole_numbers_beside_a_scale_are_no_weights(self):
        for step, is_named in ((1.0, True), (0.5, False)):
            parts = {
                "l.weight": ("BF16", [4, 8], b"".join(struct.pack("<f", step * (i - 9))[2:] for i in range(32))),
                "l.weight_scale": ("F32", [4, 1], floats([0.01] * 4)),
            }
            path = self.write_in(f"whole{step}", parts)
            if is_named:
                self.refuse("analyze", path, says=["l.weight", "whole ones", "l.weight_scale"])
            else:
                result = halfscope("analyze", path, "--json")
                self.assertEqual(result.returncode, 2)
                self.assertIn('"l.weight" is read as it is, without "l.weight_scale"', result.stderr)
                self.assertEqual([tensor["name"] for tensor in json.loads(result.stdout)["tensors"]], ["l.weight"])

    def test_four_bits_of_a_table_without_its_state(self):
        parts = {"l.weight": ("U8", [64, 1], bytes(range(64))), "l.weight.absmax": ("F32", [2], floats([0.5, 2.0]))}
        result = halfscope("analyze", self.write_in("table", parts))
        self.assertEqual(result.returncode, 2)
        self.assertIn('"l.weight" is not read', result.stderr)

    def test_a_lone_number_beside_scales_in_e4m3(self):
        """It may be NVFP4's scale of the tensor."""
        parts = {"w": ("U8", [2, 8], b"\x21" * 16), "w_scale": ("F8_E4M3", [2, 1], b"\x38\x40")}
        for value, says in ((3.0, "w_amax"), (1.0, "NVFP4")):
            path = self.write_in(f"lone{value}", {**parts, "w_amax": ("F32", [], floats([value]))})
            self.refuse("analyze", path, says=[says, "w_scale_2"])


if __name__ == "__main__":
    unittest.main()
