"""Quantized checkpoints shaped as DeepSeek's, MX and NVFP4 ones, quantized here, for the tests of analyze."""

import bisect
import json
import math
import random
import struct

from program import WithFolder

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


class QuantizedFiles(WithFolder):
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
