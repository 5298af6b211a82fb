"""halfscope analyze over quantized checkpoints, shaped as DeepSeek's, MX and NVFP4 ones, quantized here."""

import bisect
import json
import math
import random
import struct
import unittest
import zipfile

from program import WithFolder, halfscope
from tensor_files import npy, write_npz

SIZE = 256


def minifloat(exponent_bits, mantissa_bits, bias, count):
    """The numbers of the first `count` codes, which have no sign."""
    numbers = []
    for code in range(count):
        field, mantissa = code >> mantissa_bits, (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
        numbers.append(math.ldexp(mantissa + (field > 0), max(field, 1) - bias))
    assert exponent_bits + mantissa_bits <= 7
    return numbers


E4M3 = minifloat(4, 3, 7, 127)
E2M1 = minifloat(2, 1, 1, 8)


def nearest(x, numbers, sign_bit):
    """The code of `x`, ties to even, saturating."""
    magnitude = min(abs(x), numbers[-1])
    above = bisect.bisect_left(numbers, magnitude)
    code = above
    if above > 0 and numbers[above] != magnitude:
        low, high = magnitude - numbers[above - 1], numbers[above] - magnitude
        code = above - 1 if low < high or (low == high and (above - 1) % 2 == 0) else above
    return code | (sign_bit if x < 0 else 0)


def number(code, numbers, sign_bit):
    return -numbers[code & (sign_bit - 1)] if code & sign_bit else numbers[code & (sign_bit - 1)]


def flat(rows):
    return [x for row in rows for x in row]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def safetensors(tensors):
    """The bytes of a file of (dtype, shape, bytes) by name."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def pickled(value):
    """Opcodes of a text, a number or a tuple; those of anything else stand as bytes already."""
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value)) + value.encode()
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, tuple):
        return b"(" + b"".join(map(pickled, value)) + b"t"
    return value


def write_torch(path, tensors):
    """A state_dict of matrices as torch.save writes those of eight bits: (dtype, shape, bytes) by name."""
    items = b""
    for key, (name, (dtype, shape, content)) in enumerate(tensors.items()):
        storage = pickled(("storage", b"ctorch.storage\nUntypedStorage\n", str(key), "cpu", len(content))) + b"Q"
        arguments = (storage, 0, tuple(shape), (shape[1], 1), b"\x89", b"N", f"ctorch\n{dtype}\n".encode())
        items += pickled(name) + b"ctorch._utils\n_rebuild_tensor_v3\n" + pickled(arguments) + b"R"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}(" + items + b"u.")
        for key, (_, _, content) in enumerate(tensors.values()):
            archive.writestr(f"archive/data/{key}", content)


def weight():
    """Normal numbers of deviation 0.02 with an outlier, and a block of 128 x 128 zeros at its end."""
    noise = random.Random(3)
    rows = [[f32(noise.gauss(0, 0.02)) for _ in range(SIZE)] for _ in range(SIZE)]
    rows[5][7] = f32(1.7)
    for row in rows[128:]:
        row[128:] = [0.0] * 128
    return rows


def blocks_of(rows, height, width):
    """Row and column of each block, in row-major order."""
    return [(i, j) for i in range(0, len(rows), height) for j in range(0, len(rows[0]), width)]


def error(rows, values):
    pairs = [(x, y) for row, other in zip(rows, values) for x, y in zip(row, other)]
    return math.sqrt(sum((x - y) ** 2 for x, y in pairs) / sum(x * x for x, _ in pairs))


def quantize(rows, block, numbers, sign_bit, scale_of):
    """Codes by row, the scales, and the numbers that they stand for."""
    height, width = block
    codes = [[0] * len(row) for row in rows]
    values = [[0.0] * len(row) for row in rows]
    scales = []
    for i, j in blocks_of(rows, height, width):
        inside = [(r, c) for r in range(i, i + height) for c in range(j, j + width)]
        scale = scale_of(max(abs(rows[r][c]) for r, c in inside))
        scales.append(scale)
        for r, c in inside:
            codes[r][c] = nearest(rows[r][c] / scale, numbers, sign_bit) if scale else 0
            values[r][c] = number(codes[r][c], numbers, sign_bit) * scale
    return codes, scales, values


def packed(codes):
    return bytes(row[i] | row[i + 1] << 4 for row in codes for i in range(0, len(row), 2))


def listed(*indices):
    """A list of blocks as JSON has it, all indices of it."""
    return {"count": len(indices), "indices": list(indices), "left_out": 0}


class Quantized(WithFolder):
    def setUp(self):
        super().setUp()
        self.rows = weight()
        self.original = self.write("original", {"q_proj.weight": ("F32", [SIZE, SIZE], floats(flat(self.rows)))})

    def write(self, name, tensors):
        path = self.folder / f"{name}.safetensors"
        path.write_bytes(safetensors(tensors))
        return path

    def analyze(self, *words):
        return json.loads(self.run_ok("analyze", *words, "--json"))["tensors"]

    def compared(self, path, truth):
        """The one tensor of the file, after a look at its error."""
        (found,) = self.analyze(path, "--against", self.original)
        self.assertEqual(found["name"], "q_proj.weight")
        self.assertAlmostEqual(found["relative_error"], truth, delta=1e-6)
        return found

    def deepseek(self, largest=448):
        """The block's largest value gets the code `largest`."""
        codes, scales, values = quantize(self.rows, (128, 128), E4M3, 0x80, lambda amax: f32(amax / largest) or 1e-12)
        path = self.write(
            "deepseek",
            {
                "q_proj.weight": ("F8_E4M3", [SIZE, SIZE], bytes(flat(codes))),
                "q_proj.weight_scale_inv": ("F32", [2, 2], floats(scales)),
            },
        )
        return path, error(self.rows, values)

    def nvfp4(self, zero_code):
        """`zero_code` is the scale of blocks of zeros."""
        tensor_scale = f32(max(abs(x) for row in self.rows for x in row) / 2688)

        def coded(amax):
            return nearest(amax / 6 / tensor_scale, E4M3, 0x80)

        codes, scales, values = quantize(self.rows, (1, 16), E2M1, 8, lambda amax: E4M3[coded(amax)] * tensor_scale)
        scale_codes = bytes(nearest(s / tensor_scale, E4M3, 0x80) if s else zero_code for s in scales)
        path = self.write(
            "nvfp4",
            {
                "q_proj.weight": ("U8", [SIZE, SIZE // 2], packed(codes)),
                "q_proj.weight_scale": ("F8_E4M3", [SIZE, SIZE // 16], scale_codes),
                "q_proj.weight_scale_2": ("F32", [], floats([tensor_scale])),
                "q_proj.input_scale": ("F32", [], floats([0.01])),
            },
        )
        return path, error(self.rows, values), scales

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

    def test_payload_and_scales_in_two_shards_are_put_together(self):
        """Each layout, the shards in either order and by their index, as in one file."""
        fp4, e4m3 = bytes(range(32)), [0x38, 0x40, 0x30, 0x48] * 2
        layouts = {
            "deepseek": {
                "w.weight": ("F8_E4M3", [4, 4], bytes([0x38] * 16)),
                "w.weight_scale_inv": ("F32", [1, 1], floats([0.5])),
            },
            "mxfp4": {"w_blocks": ("U8", [2, 1, 16], fp4), "w_scales": ("U8", [2, 1], bytes([120, 130]))},
            "nvfp4": {
                "w.weight": ("U8", [2, 16], fp4),
                "w.weight_scale": ("F8_E4M3", [2, 2], bytes(e4m3[:4])),
                "w.weight_scale_2": ("F32", [], floats([0.25])),
                "w.input_scale": ("F32", [], floats([1.0])),
            },
        }
        for layout, parts in layouts.items():
            whole = self.analyze(self.write(layout, parts), "--format", "fp16")
            self.assertEqual(len(whole), 1)
            for order in (list(parts), list(parts)[::-1]):
                with self.subTest(layout, order=order):
                    folder = self.folder / f"{layout}-{order[0]}"
                    folder.mkdir()
                    where = {name: f"{i}.safetensors" for i, name in enumerate(order)}
                    for name, file in where.items():
                        held = {name: parts[name], f"other{file[0]}": ("F32", [2], floats([1.0, 2.0]))}
                        (folder / file).write_bytes(safetensors(held))
                        where = {**where, f"other{file[0]}": file}
                    index = folder / "model.safetensors.index.json"
                    index.write_text(json.dumps({"weight_map": where}))
                    for words in ([folder], [index], sorted(folder.glob("*.safetensors"))):
                        found = {tensor["name"].split(":")[-1]: tensor for tensor in self.analyze(*words)}
                        (name,) = (name for name in found if not name.startswith("other"))
                        self.assertEqual(len(found), len(parts) + 1)
                        self.assertEqual(
                            {**found[name], "name": "", "file": ""}, {**whole[0], "name": "", "file": ""}
                        )
                    found = self.analyze(self.folder / f"{layout}.safetensors", "--against", folder)
                    self.assertEqual(found[0]["relative_error"], 0)

    def split(self, name, parts, index):
        """A folder of two shards: a has the first of `parts` and `a`, b has the others and `b`."""
        folder = self.folder / name
        folder.mkdir()
        (payload, codes), *scales = parts.items()
        shards = {"a": {payload: codes, "a": ("F32", [2], floats([1.0, 2.0]))}}
        shards["b"] = {**dict(scales), "b": ("F32", [1], floats([1.0]))}
        for shard, held in shards.items():
            (folder / f"{shard}.safetensors").write_bytes(safetensors(held))
        if index:
            where = {part: f"{shard}.safetensors" for shard, held in shards.items() for part in held}
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
        return folder

    def test_a_shard_whose_other_half_is_not_given_is_one_line(self):
        """Codes without their scales are no weights; the line says where the scales are, as an index or a file has it."""
        layouts = {
            "deepseek": (
                {"w.weight": ("F8_E4M3", [4, 4], bytes([0x38] * 16))},
                {"w.weight_scale_inv": ("F32", [1, 1], floats([0.5]))},
            ),
            "mxfp4": ({"w_blocks": ("U8", [2, 1, 16], bytes(32))}, {"w_scales": ("U8", [2, 1], bytes([120, 130]))}),
            "packed": ({"w.weight": ("U8", [2, 16], bytes(32))}, {"w.weight_scale": ("F8_E4M3", [2, 2], bytes([56] * 4))}),
            "mxfp6": ({"w.weight": ("F6_E3M2", [2, 32], bytes(48))}, {"w.weight_scale": ("F8_E8M0", [2, 1], bytes([120] * 2))}),
        }
        for layout, (payload, scales) in layouts.items():
            (code_name,), (scale_name,) = payload, scales
            for index in (True, False):
                folder = self.split(f"{layout}-{index}", payload | scales, index)
                for file, left, says in (
                    ("a", "a", [f'"{code_name}" is not read: its scales are "{scale_name}"', "b.safetensors; give that file too"]),
                    ("b", "b", [f'"{scale_name}" is not read: its payload is "{code_name}"', "a.safetensors; give that file too"]),
                ):
                    with self.subTest(layout=layout, index=index, file=file):
                        path = folder / f"{file}.safetensors"
                        result = halfscope("analyze", path, "--json")
                        self.assertEqual(result.returncode, 2)
                        (line,) = result.stderr.splitlines()
                        for text in (f"{path}: tensor", *says):
                            self.assertIn(text, line)
                        self.assertEqual([tensor["name"] for tensor in json.loads(result.stdout)["tensors"]], [left])
                        self.refuse("analyze", self.original, "--against", path, says=says)
                self.assertEqual(len(self.analyze(folder)), 3)
                self.assertEqual(len(self.analyze(folder, "--payload")), 4)

    def test_scales_come_with_the_payload_that_is_asked_for(self):
        members = {
            "w.weight.npy": npy([bytes([0x38]), bytes([0x40])], "|V1", "c"),
            "w.weight_scale.npy": npy([0.5]),
            "other.npy": b"no array",
        }
        path = write_npz(self.folder / "q.npz", members)
        (found,) = self.analyze(path, "--dtype", "f8_e4m3", "--include", "w.weight")
        self.assertEqual((found["name"], float(found["max_abs"])), ("w.weight", 1))

    def test_codes_are_numbers_where_no_file_has_scales_for_them(self):
        """Files beside that are damaged, of another kind, or of another model have none."""
        path = self.write("codes", {"x": ("F8_E4M3", [2], bytes([0x38, 0x40]))})
        (self.folder / "broken.safetensors").write_bytes(b"no header")
        (self.folder / "x_scale.npy").write_bytes(b"no array")
        (found,) = self.analyze(path)
        self.assertEqual((found["name"], float(found["max_abs"])), ("x", 2))
        (self.folder / "model.safetensors.index.json").write_text("[]")  # no index
        other = {"x": ("F8_E4M3", [2], bytes([0x38, 0x40])), "x_scale": ("F32", [1], floats([0.5]))}
        whole = self.write("whole", other)
        self.assertEqual(float(self.analyze(path)[0]["max_abs"]), 2)
        self.assertEqual([float(tensor["max_abs"]) for tensor in self.analyze(path, whole)], [2, 1])
        self.write("scales", {"x_scale": ("F32", [1], floats([0.5]))})
        self.refuse("analyze", path, says=['"x_scale", which is in', "scales.safetensors; give that file too"])

    def test_a_checkpoint_of_pytorch_has_quantized_tensors_too(self):
        archive = self.folder / "model.pt"
        write_torch(
            archive,
            {
                "w.weight": ("float8_e4m3fn", [2, 2], bytes([0x38] * 4)),
                "w.weight_scale_inv": ("float32", [1, 1], floats([0.5])),
            },
        )
        (found,) = self.analyze(archive)
        self.assertEqual((found["name"], found["max_abs"]), ("w.weight", 0.5))
        self.assertEqual(found["blocks"]["blocks"], 1)

    def test_config_beside_the_file_states_the_blocks(self):
        """100 rows of 100 under one scale: blocks of 128, of 100, or of the whole tensor."""
        path = self.write(
            "model",
            {
                "w.weight": ("F8_E4M3", [200, 100], bytes([0x38] * 20000)),
                "w.weight_scale_inv": ("F32", [2, 1], floats([1.0, 2.0])),
            },
        )
        config = self.folder / "config.json"
        for size, block in ((None, "128 x 100"), ([128, 128], "128 x 128"), ([100, 100], "100 x 100")):
            config.write_text(json.dumps({"quantization_config": {"weight_block_size": size}}))
            self.assertIn(f"blocks of {block},", self.analyze(path)[0]["blocks"]["layout"])
        config.write_text(json.dumps({"quantization_config": {"weight_block_size": [64, 64]}}))
        result = halfscope("analyze", path, "--json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("config.json says weight_block_size [64, 64]", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("blocks of 128 x 100", json.loads(result.stdout)["tensors"][0]["blocks"]["layout"])
        for text in (
            "[]",
            "{",
            '{"quantization_config": 3}',
            '{"quantization_config": {"weight_block_size": [1.5, 2]}}',
        ):
            config.write_text(text)
            self.assertIn("blocks of 128 x 100,", self.analyze(path)[0]["blocks"]["layout"])

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
