"""Quantized tensors of each layout, made here from the published layouts: parts, and the numbers that they mean."""

import json
import math
import random
import struct

from quantized_files import E2M1, E4M3, f32, floats, number

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
NF4 = [
    -1.0,
    -0.6961928,
    -0.52507305,
    -0.3949175,
    -0.28444138,
    -0.18477343,
    -0.09105004,
    0.0,
    0.0795803,
    0.1609302,
    0.2461123,
    0.33791524,
    0.44070983,
    0.562617,
    0.72295684,
    1.0,
]


def halves(values):
    return struct.pack(f"<{len(values)}e", *values)


def half(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def words(numbers, bits):
    """Numbers of so many bits one after the other, the lowest bits first, in 32-bit words."""
    stream = 0
    for i, number_ in enumerate(numbers):
        stream |= number_ << (i * bits)
    count = (len(numbers) * bits + 31) // 32
    return [stream >> (32 * i) & 0xFFFFFFFF for i in range(count)]


def packed_words(rows):
    flat = [word for row in rows for word in row]
    return struct.pack(f"<{len(flat)}I", *flat)


def columns_of(rows):
    return [list(column) for column in zip(*rows)]


def truth(rows):
    return ("F32", [len(rows), len(rows[0])], floats([x for row in rows for x in row]))


def gptq(noise, prefix, bits, form):
    """Inputs by outputs in words along the inputs; form 1 stores zero points less one. Returns parts and weights."""
    group = noise.choice([8, 16, 32])
    groups = noise.randrange(1, 4)
    inputs, outputs = group * groups * 4, 32 * noise.randrange(1, 3)
    codes = [[noise.randrange(1 << bits) for _ in range(outputs)] for _ in range(inputs)]
    order = [i * groups // inputs for i in range(inputs)]
    if noise.random() < 0.5:
        noise.shuffle(order)
    zeros = [[noise.randrange(1 << bits) for _ in range(outputs)] for _ in range(groups)]
    scales = [[half(noise.uniform(1e-3, 0.1)) for _ in range(outputs)] for _ in range(groups)]
    stored = [[(zero - (form == 1)) % (1 << bits) for zero in row] for row in zeros]
    parts = {
        "qweight": (
            "I32",
            [inputs * bits // 32, outputs],
            packed_words(columns_of([words(column, bits) for column in columns_of(codes)])),
        ),
        "qzeros": ("I32", [groups, outputs * bits // 32], packed_words([words(row, bits) for row in stored])),
        "scales": ("F16", [groups, outputs], halves([x for row in scales for x in row])),
        "g_idx": ("I32", [inputs], struct.pack(f"<{inputs}i", *order)),
    }
    weights = [
        [f32((codes[i][o] - zeros[order[i]][o]) * scales[order[i]][o]) for i in range(inputs)] for o in range(outputs)
    ]
    return {prefix + name: part for name, part in parts.items()}, {prefix + "weight": truth(weights)}


def awq(noise, prefix):
    """Inputs by outputs in words along the outputs, in AWQ's order."""
    groups, group, outputs = noise.randrange(1, 4), noise.choice([8, 16]), 8 * noise.randrange(1, 6)
    inputs = groups * group
    codes = [[noise.randrange(16) for _ in range(outputs)] for _ in range(inputs)]
    zeros = [[noise.randrange(16) for _ in range(outputs)] for _ in range(groups)]
    scales = [[half(noise.uniform(1e-3, 0.1)) for _ in range(outputs)] for _ in range(groups)]

    def row_words(row):
        return [word for at in range(0, outputs, 8) for word in words([row[at + i] for i in AWQ_ORDER], 4)]

    parts = {
        "qweight": ("I32", [inputs, outputs // 8], packed_words([row_words(row) for row in codes])),
        "qzeros": ("I32", [groups, outputs // 8], packed_words([row_words(row) for row in zeros])),
        "scales": ("F16", [groups, outputs], halves([x for row in scales for x in row])),
    }
    weights = [
        [f32((codes[i][o] - zeros[i // group][o]) * scales[i // group][o]) for i in range(inputs)]
        for o in range(outputs)
    ]
    return {prefix + name: part for name, part in parts.items()}, {prefix + "weight": truth(weights)}


def compressed_integers(noise, prefix, bits):
    """compressed-tensors: words along the inputs, zero points along the outputs, both less half of the range."""
    rows, group, groups = 32 * noise.randrange(1, 3), noise.choice([32, 64]), noise.randrange(1, 4)
    columns = group * groups
    codes = [[noise.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)]
    scales = [[f32(noise.uniform(1e-3, 0.1)) for _ in range(groups)] for _ in range(rows)]
    parts = {
        "weight_packed": ("I32", [rows, columns * bits // 32], packed_words([words(row, bits) for row in codes])),
        "weight_scale": ("F32", [rows, groups], floats([x for row in scales for x in row])),
        "weight_shape": ("I64", [2], struct.pack("<2q", rows, columns)),
    }
    zeros = [[1 << (bits - 1)] * groups for _ in range(rows)]
    if noise.random() < 0.6:
        zeros = [[noise.randrange(1 << bits) for _ in range(groups)] for _ in range(rows)]
        packed = columns_of([words(column, bits) for column in columns_of(zeros)])
        parts["weight_zero_point"] = ("I32", [rows * bits // 32, groups], packed_words(packed))
    order = [j // group for j in range(columns)]
    if noise.random() < 0.4:
        noise.shuffle(order)
        parts["weight_g_idx"] = ("I32", [columns], struct.pack(f"<{columns}i", *order))
    weights = [
        [f32((codes[i][j] - zeros[i][order[j]]) * scales[i][order[j]]) for j in range(columns)] for i in range(rows)
    ]
    return {prefix + name: part for name, part in parts.items()}, {prefix + "weight": truth(weights)}


def compressed_nvfp4(noise, prefix):
    """Its global scale divides the scales of the blocks, in FP32."""
    rows, blocks = noise.randrange(1, 9), noise.randrange(1, 5)
    codes = [[noise.randrange(16) for _ in range(16 * blocks)] for _ in range(rows)]
    scale_codes = [[noise.randrange(1, 127) for _ in range(blocks)] for _ in range(rows)]
    whole = f32(noise.uniform(100, 5000))
    parts = {
        "weight_packed": (
            "U8",
            [rows, 8 * blocks],
            bytes(row[i] | row[i + 1] << 4 for row in codes for i in range(0, len(row), 2)),
        ),
        "weight_scale": ("F8_E4M3", [rows, blocks], bytes(code for row in scale_codes for code in row)),
        "weight_global_scale": ("F32", [1], floats([whole])),
        "input_global_scale": ("F32", [1], floats([3.0])),
    }
    weights = [
        [f32(number(row[j], E2M1, 8) * f32(E4M3[scales[j // 16]] / whole)) for j in range(len(row))]
        for row, scales in zip(codes, scale_codes)
    ]
    return {prefix + name: part for name, part in parts.items()}, {prefix + "weight": truth(weights)}


def integers(noise, prefix, signed):
    """Bytes with a scale and a zero point for each row, or for all."""
    rows, columns = noise.randrange(1, 9), noise.randrange(2, 40)
    low, high = (-128, 128) if signed else (0, 256)
    codes = [[noise.randrange(low, high) for _ in range(columns)] for _ in range(rows)]
    by_row = rows > 1 and noise.random() < 0.7
    count = rows if by_row else 1
    scales = [f32(noise.uniform(1e-3, 0.1)) for _ in range(count)]
    has_zeros = not signed or noise.random() < 0.5
    zeros = [noise.randrange(low, high) if has_zeros else 0 for _ in range(count)]
    letter, kind = ("b", "I8") if signed else ("B", "U8")
    name = noise.choice(["weight_scale", "weight.scale", "scale_weight"])
    parts = {
        "weight": (
            kind,
            [rows, columns],
            struct.pack(f"<{rows * columns}{letter}", *(x for row in codes for x in row)),
        ),
        name: ("F32", [rows, 1] if by_row else [1], floats(scales)),
    }
    if has_zeros:
        parts["weight_zero_point"] = (kind, [rows, 1] if by_row else [1], struct.pack(f"<{count}{letter}", *zeros))
    weights = [[f32((x - zeros[i % count]) * scales[i % count]) for x in row] for i, row in enumerate(codes)]
    return {prefix + key: part for key, part in parts.items()}, {prefix + "weight": truth(weights)}


def row_integers(noise, prefix):
    """bitsandbytes' INT8: 127 stands for the row's largest magnitude."""
    rows, columns = noise.randrange(1, 9), noise.randrange(2, 40)
    codes = [[noise.randrange(-127, 128) for _ in range(columns)] for _ in range(rows)]
    largest = [f32(noise.uniform(0.1, 3)) for _ in range(rows)]
    parts = {
        "weight": ("I8", [rows, columns], struct.pack(f"<{rows * columns}b", *(x for row in codes for x in row))),
        "SCB": ("F32", [rows], floats(largest)),
        "weight_format": ("U8", [], b"\0"),
    }
    inverse = f32(7.874015718698502e-3)
    weights = [[f32(f32(x * scale) * inverse) for x in row] for row, scale in zip(codes, largest)]
    return {prefix + key: part for key, part in parts.items()}, {prefix + "weight": truth(weights)}


def four_bits(noise, prefix, kind, nested):
    """bitsandbytes: a table of sixteen numbers, the high nibble first, over all elements in a row."""
    block, rows, columns = noise.choice([32, 64]), noise.randrange(1, 6), 2 * noise.randrange(1, 80)
    count = rows * columns
    blocks = math.ceil(count / block)
    codes = [noise.randrange(16) for _ in range(count)]
    table = [f32(x) for x in NF4] if kind == "nf4" else [f32(noise.uniform(-1, 1)) for _ in range(16)]
    state = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": [rows, columns]}
    name = prefix + "weight"
    parts = {
        name: ("U8", [count // 2, 1], bytes(codes[i] << 4 | codes[i + 1] for i in range(0, count, 2))),
        f"{name}.quant_map": ("F32", [16], floats(table)),
    }
    if nested:
        inner, offset = 4, f32(noise.uniform(0.5, 1))
        numbers = [f32((i - 128) / 128) for i in range(256)]
        scale_codes = [noise.randrange(256) for _ in range(blocks)]
        outer = [f32(noise.uniform(0.1, 0.4)) for _ in range(math.ceil(blocks / inner))]
        scales = [f32(f32(numbers[code] * outer[i // inner]) + offset) for i, code in enumerate(scale_codes)]
        state.update(nested_blocksize=inner, nested_dtype="float32", nested_offset=offset)
        parts[f"{name}.absmax"] = ("U8", [blocks], bytes(scale_codes))
        parts[f"{name}.nested_absmax"] = ("F32", [len(outer)], floats(outer))
        parts[f"{name}.nested_quant_map"] = ("F32", [256], floats(numbers))
    else:
        scales = [f32(noise.uniform(0.01, 2)) for _ in range(blocks)]
        parts[f"{name}.absmax"] = ("F32", [blocks], floats(scales))
    text = json.dumps(state).encode()
    parts[f"{name}.quant_state.bitsandbytes__{kind}"] = ("U8", [len(text)], text)
    values = [f32(table[code] * scales[i // block]) for i, code in enumerate(codes)]
    return parts, {name: ("F32", [rows, columns], floats(values))}


def scaled_fp8(noise, prefix):
    """E4M3 with a scale of the tensor, of rows or of blocks, under names that libraries and people use."""
    rows, columns = noise.choice([2, 4, 8]), noise.choice([4, 8, 16])
    payload, scale = noise.choice(
        [
            ("weight", "scale_weight"),
            ("weight", "qscale_weight"),
            ("weight", "scale"),
            ("weight", "weight_scale"),
            ("weight", "weight_scale_inv"),
            ("weight", "weight.scale"),
            ("w1", "w1_scale"),
            ("w1", "scale_w1"),
            ("w1", "w1.scale"),
            ("weight", "dequant_scale"),
        ]
    )
    shape = noise.choice([[1], [rows, 1], [1, columns], [rows // 2, columns // 2]])
    codes = [[noise.randrange(127) | noise.choice([0, 128]) for _ in range(columns)] for _ in range(rows)]
    scales = [f32(noise.uniform(1e-4, 0.9)) for _ in range(math.prod(shape))]
    grid = shape if len(shape) == 2 else [1, 1]
    weights = [
        [
            f32(number(row[j], E4M3, 128) * scales[i * grid[0] // rows * grid[1] + j * grid[1] // columns])
            for j in range(columns)
        ]
        for i, row in enumerate(codes)
    ]
    parts = {
        prefix + payload: ("F8_E4M3", [rows, columns], bytes(x for row in codes for x in row)),
        prefix + scale: ("F32", shape, floats(scales)),
        prefix + noise.choice(["input_scale", "scale_input", "qscale_act"]): ("F32", [1], floats([2.0])),
        prefix + "bias": ("F32", [rows], floats([1.0] * rows)),
    }
    return parts, {prefix + payload: truth(weights), prefix + "bias": parts[prefix + "bias"]}


KINDS = {
    **{
        f"GPTQ v{form}, {bits} bits": (lambda noise, prefix, bits=bits, form=form: gptq(noise, prefix, bits, form))
        for form in (1, 2)
        for bits in (2, 3, 4, 8)
    },
    "AWQ": awq,
    **{
        f"INT{bits} of compressed-tensors": (lambda noise, prefix, bits=bits: compressed_integers(noise, prefix, bits))
        for bits in (2, 3, 4, 8)
    },
    "NVFP4 of compressed-tensors": compressed_nvfp4,
    "INT8": lambda noise, prefix: integers(noise, prefix, True),
    "UINT8": lambda noise, prefix: integers(noise, prefix, False),
    "INT8 of bitsandbytes": row_integers,
    **{
        f"{kind}{' nested' if nested else ''}": (
            lambda noise, prefix, kind=kind, nested=nested: four_bits(noise, prefix, kind, nested)
        )
        for kind in ("nf4", "fp4")
        for nested in (False, True)
    },
    "FP8": scaled_fp8,
}


def model_of(kind, count, seed):
    """Parts and weights of `count` modules of a kind."""
    noise = random.Random(seed)
    parts, weights = {}, {}
    for i in range(count):
        held, stands_for = KINDS[kind](noise, f"layers.{i}.")
        parts.update(held)
        weights.update(stands_for)
    return parts, weights
