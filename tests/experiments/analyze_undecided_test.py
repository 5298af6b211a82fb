"""halfscope analyze over files whose numbers do not decide what they mean: named, with what would decide."""

import json
import random
import struct
import unittest

from program import halfscope
from quantized_files import E2M1, E4M3, QuantizedFiles, f32, floats, safetensors


def bf16(values):
    return b"".join(struct.pack("<f", x)[2:] for x in values)


def halves(values):
    return struct.pack(f"<{len(values)}e", *values)


WRITERS = {"BF16": bf16, "F16": halves, "F32": floats}


def nibbles(codes):
    return bytes((low & 15) | (high & 15) << 4 for low, high in zip(codes[::2], codes[1::2]))


class Undecided(QuantizedFiles):
    def read(self, tensors, config=None):
        """Status, lines of stderr and the tensors by name, of a file in a folder of its own."""
        folder = self.folder / f"file-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        path = folder / "model.safetensors"
        path.write_bytes(safetensors(tensors))
        if config:
            (folder / "config.json").write_text(json.dumps({"quantization_config": config}))
        result = halfscope("analyze", path, "--json")
        found = json.loads(result.stdout)["tensors"] if result.stdout else []
        return result.returncode, result.stderr, {tensor["name"]: tensor for tensor in found}

    def refused(self, tensors, *says, config=None):
        status, lines, found = self.read(tensors, config)
        self.assertEqual(status, 2)
        for text in says:
            self.assertIn(text, lines)
        self.assertNotIn("l.weight", found)
        return lines

    def test_a_scale_whose_name_speaks_of_an_inverse(self):
        for name in ("inv_scale", "scale_reciprocal", "rcp_scale", "scale_div", "quant_scale", "quantization_scale"):
            for dtype in ("F8_E4M3", "I8"):
                for scale in (0.001, 0.5, 1.0, 50.0):
                    with self.subTest(name=name, dtype=dtype, scale=scale):
                        parts = {
                            "l.weight": (dtype, [2, 4], bytes([1, 2, 3, 127, 5, 6, 7, 8])),
                            f"l.weight_{name}": ("F32", [1], floats([scale])),
                        }
                        self.refused(parts, "may multiply or divide", f"l.weight_{name}")
        for name in ("dequant_scale", "scale_inv", "scale"):
            status, _, found = self.read(
                {
                    "l.weight": ("I8", [2, 4], bytes([1, 2, 3, 127, 5, 6, 7, 8])),
                    f"l.weight_{name}": ("F32", [1], floats([0.5])),
                }
            )
            self.assertEqual((status, found["l.weight"]["max_abs"]), (0, 63.5))

    def test_scales_in_an_order_of_their_own(self):
        """A scale for each row, or for each block, of one shape in whatever order."""
        for name in ("scale_interleaved", "swizzled_scale", "scale_shuffled", "scale_tiled", "scale_permuted"):
            for dtype, scales in (("F8_E4M3", [0.5, 0.25]), ("I8", [0.5, 0.25])):
                with self.subTest(name=name, dtype=dtype):
                    parts = {
                        "l.weight": (dtype, [2, 4], bytes([1, 2, 3, 127, 5, 6, 7, 127])),
                        f"l.weight_{name}": ("F32", [2, 1], floats(scales)),
                    }
                    self.refused(parts, "may lie in another order", f"l.weight_{name}")

    def test_scales_of_a_square_matrix(self):
        """A scale for each row by their shape: that of a column where each column reaches the largest code."""
        noise = random.Random(7)
        table = [0.0, *E4M3[1:127]]
        for run in range(20):
            size = noise.choice([48, 64, 96])
            rows = [[noise.gauss(0, 0.02) for _ in range(size)] for _ in range(size)]
            for dtype, largest in (("I8", 127), ("F8_E4M3", 448)):
                for by_columns in (False, True):
                    lines = [list(line) for line in zip(*rows)] if by_columns else rows
                    coded = [[x / (max(map(abs, line)) / largest) for x in line] for line in lines]
                    coded = [list(line) for line in zip(*coded)] if by_columns else coded
                    if dtype == "I8":
                        codes = bytes(round(x) & 255 for line in coded for x in line)
                    else:
                        codes = bytes(
                            min(range(127), key=lambda code: abs(table[code] - abs(x))) | (128 if x < 0 else 0)
                            for line in coded
                            for x in line
                        )
                    parts = {
                        "l.weight": (dtype, [size, size], codes),
                        "l.weight_scale": ("F32", [size], floats([0.01] * size)),
                    }
                    with self.subTest(run=run, size=size, dtype=dtype, by_columns=by_columns):
                        if by_columns:
                            self.refused(parts, "may be those of its columns")
                        else:
                            self.assertEqual(self.read(parts)[0], 0)

    def test_fp8_whose_scales_have_the_name_of_another_payload(self):
        for codes, scale in (("l._weight_qdata", "l._weight_scale"), ("l.weight_data", "l.weight_scale_inv")):
            parts = {codes: ("F8_E4M3", [8, 16], bytes([0x38] * 128)), scale: ("F32", [8, 1], floats([0.5] * 8))}
            with self.subTest(codes):
                status, lines, found = self.read(parts)
                self.assertEqual((status, list(found)), (2, []))
                self.assertIn(f'"{codes}" is not read', lines)

    def test_a_scale_that_was_left_beside_weights(self):
        noise = random.Random(1)
        for dtype, write in WRITERS.items():
            for rest, shape in (("_scale_inv", [1, 1]), ("_scale", [8, 1]), (".scale", [8]), ("_scale", [1])):
                with self.subTest(dtype=dtype, rest=rest, shape=shape):
                    values = [noise.gauss(0, 0.02) for _ in range(64)]
                    count = shape[0]
                    status, lines, found = self.read(
                        {
                            "l.weight": (dtype, [8, 8], write(values)),
                            f"l.weight{rest}": ("F32", shape, floats([0.003] * count)),
                        }
                    )
                    self.assertEqual(status, 2)
                    self.assertIn('"l.weight" is read as it is', lines)
                    self.assertEqual(list(found), ["l.weight"])
                    self.assertAlmostEqual(found["l.weight"]["max_abs"], max(map(abs, values)), delta=3e-4)

    def test_codes_that_were_saved_as_numbers(self):
        noise = random.Random(2)
        for dtype, write in WRITERS.items():
            for kind, numbers in (("FP8", E4M3[1:127]), ("FP4", E2M1[1:]), ("integers", range(1, 128))):
                with self.subTest(dtype=dtype, kind=kind):
                    values = [float(noise.choice(list(numbers)) * noise.choice([-1, 1])) for _ in range(64)]
                    values[0] = float(max(numbers))
                    parts = {
                        "l.weight": (dtype, [8, 8], write(values)),
                        "l.weight_scale": ("F32", [8, 1], floats([0.003] * 8)),
                    }
                    self.refused(parts, "may be codes that")

    def test_four_bits_that_are_packed_in_signed_bytes(self):
        """Without a configuration: even codes, and those of normal weights, in groups and in rows."""
        noise = random.Random(3)
        for run in range(40):
            rows, groups, size = 8 * noise.randint(2, 6), noise.choice([1, 2, 4]), noise.choice([64, 128])
            count = rows * groups * size
            is_even = groups > 1 and run % 2 == 0
            codes = [
                noise.randint(-8, 7) if is_even else max(-8, min(7, round(noise.gauss(0, 2.5)))) for _ in range(count)
            ]
            parts = {
                "l.weight": ("I8", [rows, groups * size // 2], nibbles(codes)),
                "l.weight_scale": ("F16", [rows, groups], halves([0.01] * rows * groups)),
            }
            with self.subTest(run=run, rows=rows, groups=groups, size=size, is_even=is_even):
                self.refused(parts, "two codes of four bits each", "num_bits")
                self.assertIn("l.weight", self.read(parts, {"bits": 8})[2])

    def test_even_codes_of_four_bits_under_one_scale_for_a_row(self):
        """All sixteen values alike, or fifteen of them: uniform weights in eight bits reach their ends otherwise."""
        noise = random.Random(5)
        for run in range(40):
            rows, columns, least = noise.randint(4, 40), 256 * noise.randint(1, 8), noise.choice([-8, -7])
            codes = nibbles([noise.randint(least, 7) for _ in range(rows * columns)])
            zeros = bytes([0] * rows)
            signed = {
                "l.weight": ("I8", [rows, columns // 2], codes),
                "l.weight_scale": ("F16", [rows, 1], halves([0.01] * rows)),
            }
            unsigned = {
                "l.weight": ("U8", [rows, columns // 2], codes),
                "l.weight_scale": ("F16", [rows, 1], halves([0.01] * rows)),
                "l.weight_zero_point": ("U8", [rows, 1], zeros),
            }
            for parts in (signed, unsigned):
                with self.subTest(run=run, rows=rows, columns=columns, least=least, dtype=parts["l.weight"][0]):
                    self.refused(parts, "two codes of four bits each", "num_bits")

    def test_uniform_weights_in_eight_bits(self):
        """A few thousand may be pairs by chance; in rows of 512 UINT8 has as many of its ends as even pairs have."""
        noise = random.Random(6)
        for run in range(20):
            rows, columns = noise.choice([100, 200]), noise.choice([128, 256, 1024])
            signed, unsigned, zeros, scales = [], [], [], []
            for _ in range(rows):
                row = [noise.uniform(-0.02, 0.02) for _ in range(columns)]
                low, high = min(row), max(row)
                signed += [round(x / (max(high, -low) / 127)) & 255 for x in row]
                scales.append((high - low) / 255)
                zeros.append(round(-low / scales[-1]))
                unsigned += [max(0, min(255, round((x - low) / scales[-1]))) for x in row]
            kinds = {
                "I8": {
                    "l.weight": ("I8", [rows, columns], bytes(signed)),
                    "l.weight_scale": ("F32", [rows, 1], floats([0.01] * rows)),
                },
                "U8": {
                    "l.weight": ("U8", [rows, columns], bytes(unsigned)),
                    "l.weight_scale": ("F32", [rows, 1], floats(scales)),
                    "l.weight_zero_point": ("U8", [rows, 1], bytes(zeros)),
                },
            }
            for kind, parts in kinds.items():
                with self.subTest(run=run, rows=rows, columns=columns, kind=kind):
                    status, lines, found = self.read(parts)
                    self.assertEqual((status, list(found)), (0, ["l.weight"]), lines)

    def test_eight_bits_are_read_without_a_configuration(self):
        noise = random.Random(4)
        for run in range(40):
            rows, groups, size = noise.randint(2, 40), noise.choice([1, 2, 4]), noise.choice([32, 64, 128])
            tail = noise.choice([1.0, 2.0, 3.0])  # 1: normal numbers; others have long tails
            weights = [noise.gauss(0, 0.02) * abs(noise.gauss(0, 1)) ** (tail - 1) for _ in range(rows * groups * size)]
            if run % 5 == 0:  # most of them are pruned
                weights = [x if noise.random() < 0.1 else 0.0 for x in weights]
            codes, scales, truth = [], [], 0.0
            for at in range(0, len(weights), size):
                group = weights[at : at + size]
                scale = f32(max(map(abs, group)) / 127) or 1.0
                whole = [max(-128, min(127, round(x / scale))) for x in group]
                scales.append(scale)
                codes += whole
                truth = max(truth, max(abs(f32(code * scale)) for code in whole))
            with self.subTest(run=run, rows=rows, groups=groups, size=size, tail=tail):
                status, lines, found = self.read(
                    {
                        "l.weight": ("I8", [rows, groups * size], bytes(code & 255 for code in codes)),
                        "l.weight_scale": ("F32", [rows, groups], floats(scales)),
                    }
                )
                self.assertEqual((status, lines), (0, ""))
                self.assertEqual(f32(found["l.weight"]["max_abs"]), truth)

    def test_fp4_under_scales_in_e4m3_needs_one_of_the_tensor(self):
        codes, scales = bytes(range(64)), bytes([0x38] * 8)
        for payload, whole in (("l.weight", "l.weight_scale_2"), ("l.weight_packed", "l.weight_global_scale")):
            parts = {payload: ("U8", [2, 32], codes), "l.weight_scale": ("F8_E4M3", [2, 4], scales)}
            lines = self.refused(parts, whole, "not in the file")
            self.assertEqual(len(lines.splitlines()), 1)
            status, _, found = self.read(parts | {whole: ("F32", [1], floats([0.5]))})
            self.assertEqual((status, list(found)), (0, ["l.weight"]))

    def test_a_text_beside_codes_says_what_they_are(self):
        """An order of scales and a rotation change the numbers, whatever shape they leave."""
        layouts = {
            "nvfp4": {
                "l.weight": ("U8", [2, 32], bytes(range(64))),
                "l.weight_scale": ("F8_E4M3", [2, 4], bytes([0x38] * 8)),
                "l.weight_scale_2": ("F32", [1], floats([0.5])),
            },
            "int8": {
                "l.weight": ("I8", [2, 4], bytes([127] * 8)),
                "l.weight_scale": ("F32", [1], floats([0.5])),
            },
            "fp8": {
                "l.weight": ("F8_E4M3", [2, 4], bytes([0x38] * 8)),
                "l.weight_scale": ("F32", [1], floats([0.5])),
            },
        }
        texts = ({"format": "nvfp4"}, {"format": "int8_tensorwise", "rotate": True}, {"order": "tiles"})
        for layout, parts in layouts.items():
            for text in texts:
                content = json.dumps(text).encode()
                with self.subTest(layout=layout, text=text):
                    self.refused(parts | {"l.comfy_quant": ("U8", [len(content)], content)}, "a text beside it says")
            other = json.dumps(texts[0]).encode()
            self.assertEqual(self.read(parts | {"other.comfy_quant": ("U8", [len(other)], other)})[0], 0)
        plain = json.dumps({"format": "float8_e4m3fn"}).encode()
        status, _, found = self.read(layouts["fp8"] | {"l.comfy_quant": ("U8", [len(plain)], plain)})
        self.assertEqual((status, found["l.weight"]["max_abs"]), (0, 0.5))

    def test_numbers_of_a_module_that_may_be_scales_of_its_fp8(self):
        codes = ("F8_E4M3", [4, 8], bytes([0x38] * 32))
        for name, shape in (("alpha", []), ("row_max", [4]), ("range", [4, 1]), ("gain", [1, 8]), ("k", [1])):
            with self.subTest(name=name):
                count = max([1, *shape])
                self.refused(
                    {"l.weight": codes, f"l.{name}": ("F32", shape, floats([0.01] * count))}, "may be its scales"
                )
        for name, shape in (("bias", [4]), ("gain", [3]), ("up.alpha", [1]), ("table", [4, 8])):
            with self.subTest(name=name):
                count = shape[0] * (shape[1] if len(shape) > 1 else 1)
                status, _, found = self.read({"l.weight": codes, f"l.{name}": ("F32", shape, floats([0.01] * count))})
                self.assertEqual((status, len(found)), (0, 2))

    def test_integers_that_are_the_one_matrix_of_their_module(self):
        for dtype, width in (("I16", 2), ("I32", 4), ("I64", 8), ("U8", 1)):
            codes = (dtype, [4, 4, 2], bytes(32 * width))
            vectors = {"l.suh": ("F16", [8], halves([1.0] * 8)), "l.svh": ("F16", [4], halves([0.5] * 4))}
            with self.subTest(dtype=dtype):
                status, lines, found = self.read({"l.trellis": codes} | vectors)
                self.assertEqual((status, list(found)), (2, []))
                self.assertIn('"l.trellis" is not read', lines)
                matrix = {"l.weight": ("F16", [2, 2], halves([1.0] * 4))}
                self.assertEqual(self.read({"l.trellis": codes} | vectors | matrix)[0], 0)
                self.assertEqual(self.read({"l.token_ids": codes} | vectors)[0], 0)

    def test_scales_whose_codes_have_another_name(self):
        """No file has the payload that they are called after."""
        for codes in ("l.weight_qdata", "l.indices"):
            parts = {codes: ("I32", [8, 4], bytes(128)), "l.weight_scale": ("F16", [8], halves([0.5] * 8))}
            lines = self.refused(parts, f'"{codes}" is not read')
            self.assertNotIn("give the one", lines)


if __name__ == "__main__":
    unittest.main()
