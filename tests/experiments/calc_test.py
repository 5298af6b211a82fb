"""halfscope calc as scripts use it: answers, streams, and what it says to malformed operands."""

import os
import random
import struct
import subprocess
import sys
import unittest
from fractions import Fraction
from pathlib import Path

PROGRAM = sys.argv.pop()
VECTORS = os.environ.get("HALFSCOPE_TENSOR_CORE_VECTORS", "")


def calc(*words, stdin=None):
    return subprocess.run([PROGRAM, "calc", *map(str, words)], input=stdin, capture_output=True, timeout=300)


def half(bits):
    """The number that FP16 bits stand for, by Python's own conversion."""
    return struct.unpack("<e", struct.pack("<H", bits))[0]


class Answers(unittest.TestCase):
    def answer(self, *words):
        result = calc(*words)
        self.assertEqual((result.returncode, result.stderr), (0, b""), words)
        return result.stdout.decode()

    def test_table(self):
        for words, expected in (
            (("add", "0x3c00", "0x4000"), "0x4200 00"),
            (("add", "1", "2"), "0x4200 00"),
            (("sub", "1", "-1.5"), "0x4100 00"),
            (("mul", "0x7bff", "2"), "0x7c00 05"),
            (("mul", "0x7bff", "2", "--overflow", "saturate"), "0x7bff 05"),
            (("mul", "0x7bff", "2", "--rounding", "toward_zero"), "0x7bff 05"),
            (("mul", "0x7bff", "2", "--format", "fp16/saturate"), "0x7bff 05"),
            (("add", "1", "0x1p-11", "--format", "fp16/up"), "0x3c01 01"),
            (("round", "1e9", "--format", "fp8_e4m3/saturate"), "0x7e 05"),
            (("round", "0.9", "--format", "fp8_e4m3/toward_zero", "--overflow", "saturate"), "0x36 01"),
            (("div", "1", "3"), "0x3555 01"),
            (("div", "1", "0"), "0x7c00 08"),
            (("div", "1", "0", "--format", "fp8_e4m3"), "0x7f 08"),
            (("sqrt", "-1"), "0x7e00 10"),
            (("sqrt", "2", "--format", "fp32"), "0x3fb504f3 01"),
            (("fma", "0x3c01", "0x3c01", "-1"), "0x1800 01"),
            (("rem", "7", "2"), "0xbc00 00"),
            (("eq", "0x8000", "0"), "1 00"),
            (("eq", "0x7c01", "1"), "0 10"),
            (("eq", "nan", "1"), "0 00"),
            (("lt", "1", "0x4000"), "1 00"),
            (("lt", "nan", "1"), "0 10"),
            (("le", "2", "2", "--format", "bf16"), "1 00"),
            (("add", "--", "-inf", "-.5"), "0xfc00 00"),
            (("mul", "1", "1", "--format", "e2m1f"), "0x2 00"),
        ):
            self.assertEqual(self.answer(*words), expected + "\n", words)

    def test_round_takes_fp32_bits_or_a_decimal(self):
        self.assertEqual(self.answer("round", "0x477fefff"), "0x7bff 01\n")
        self.assertEqual(self.answer("round", "0x477ff000"), "0x7c00 05\n")
        self.assertEqual(self.answer("round", "1e99999"), "0x7c00 05\n")
        self.assertEqual(self.answer("round", "1e-99999", "--rounding", "up"), "0x0001 03\n")
        self.assertEqual(self.answer("round", "0.1", "--format", "fp32"), "0x3dcccccd 01\n")

    def test_round_takes_bits_of_any_format(self):
        self.assertEqual(self.answer("round", "0x3c01", "--from", "fp16", "--format", "fp8_e4m3"), "0x38 01\n")
        self.assertEqual(self.answer("round", "0x3f81", "--from", "bf16", "--format", "fp32"), "0x3f810000 00\n")

    def test_other_ways_to_write_a_number(self):
        for word, bits in (("0x1p3", "0x4800"), ("0x1.8P-3", "0x3200"), ("-0x1.8p1", "0xc200"), ("Infinity", "0x7c00"),
                           ("-INF", "0xfc00"), ("NaN", "0x7e00"), ("0x1.004p0", "0x3c01"), ("0x.8p1", "0x3c00")):
            self.assertEqual(self.answer("round", "--", word).split()[0], bits, word)
        # A midpoint and what is a little above it, in hex as in decimal.
        self.assertEqual(self.answer("round", "0x1.002p0"), "0x3c00 01\n")
        self.assertEqual(self.answer("round", "0x1.0020000000000000000000000001p0"), "0x3c01 01\n")

    def test_answers_in_words(self):
        for words, lines in (
            (("add", "0.1", "0.2"), ["0x34cc 01  0.2998046875  inexact",
                                     "  0.1 = 0x2e66 = 0.0999755859375  (read as fp16: inexact)",
                                     "  0.2 = 0x3266 = 0.199951171875  (read as fp16: inexact)"]),
            (("add", "1e5", "1"), ["0x7c00 00  inf  exact", "  1e5 = 0x7c00 = inf  (read as fp16: inexact, overflow)",
                                   "  1 = 0x3c00 = 1"]),
            (("div", "1", "0"), ["0x7c00 08  inf  divide by zero", "  1 = 0x3c00 = 1", "  0 = 0x0000 = 0"]),
            (("lt", "1", "nan"), ["0 10  false  invalid", "  1 = 0x3c00 = 1", "  nan = 0x7e00 = nan"]),
            (("round", "1e-7"), ["0x0002 03  1.1920928955078125e-07  inexact, underflow"]),
        ):
            self.assertEqual(self.answer(*words, "--explain").splitlines(), lines)

    def test_a_stream_for_people_passes_over_comments(self):
        lines = b"# sums\n\n1 2\n  # more\nx 1\n3 4"
        result = calc("add", "--stdin", "--explain", stdin=lines)
        self.assertEqual(result.stdout.decode().splitlines(), ["0x4200 00  3  exact", "error", "0x4700 00  7  exact"])
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"line 5", result.stderr)
        self.assertEqual(calc("add", "--stdin", stdin=lines).stdout.split(b"\n")[:2], [b"error", b"error"])

    def test_decimals_are_rounded_once(self):
        # Midpoints of FP16, alone and with one digit far behind them; a double in between cannot see it.
        generator = random.Random(3)
        for _ in range(20):
            bits = generator.randrange(1, 0x7800)
            middle = (Fraction(half(bits)) + Fraction(half(bits + 1))) / 2
            digits = f"{float(middle):.80f}"  # a midpoint is a double, and has at most 35 decimals
            even, odd = (bits, bits + 1) if bits % 2 == 0 else (bits + 1, bits)
            self.assertEqual(self.answer("round", digits).split()[0], f"0x{even:04x}")
            self.assertEqual(self.answer("round", digits + "1").split()[0], f"0x{bits + 1:04x}")
            self.assertNotEqual(even, odd)

    def test_random_operands_against_exact_fractions(self):
        generator = random.Random(5)
        pairs = [(generator.randrange(0x7C00), generator.randrange(0x7C00)) for _ in range(2000)]
        lines = "".join(f"0x{a:04x} 0x{b:04x}\n" for a, b in pairs)
        for operation, of in (("add", Fraction.__add__), ("sub", Fraction.__sub__), ("mul", Fraction.__mul__)):
            result = calc(operation, "--stdin", stdin=lines.encode())
            self.assertEqual(result.returncode, 0)
            answers = result.stdout.decode().splitlines()
            self.assertEqual(len(answers), len(pairs))
            for (a, b), answer in zip(pairs, answers):
                exact = of(Fraction(half(a)), Fraction(half(b)))
                try:
                    expected = struct.unpack("<H", struct.pack("<e", float(exact)))[0]  # the double is exact
                except OverflowError:
                    expected = 0x7C00 if exact > 0 else 0xFC00
                self.assertEqual(answer.split()[0], f"0x{expected:04x}", (operation, a, b))

    def test_stochastic_rounding_repeats_with_its_seed(self):
        lines = b"0x3c00 0x0c00\n" * 1000  # 1 + 2^-12, a quarter of a step
        words = ("add", "--stdin", "--rounding", "stochastic", "--seed")
        first = calc(*words, 7, stdin=lines).stdout
        self.assertEqual(first, calc(*words, 7, stdin=lines).stdout)
        self.assertNotEqual(first, calc(*words, 8, stdin=lines).stdout)
        self.assertTrue(180 < first.count(b"0x3c01") < 320, first.count(b"0x3c01"))


class Dot(unittest.TestCase):
    def answer(self, model, words, *options):
        result = calc("dot", "--order", model, *options, "--", *words)
        self.assertEqual((result.returncode, result.stderr), (0, b""), (model, words))
        return result.stdout.decode().rstrip("\n")

    def test_results_worked_out_by_hand(self):
        # The terms 2^23 - 2^23 - 0.5 - 0.25 - 0.125 show how many bits a tensor core keeps; b must fit FP16,
        # so -2^23 is 4096 times -2048.
        cut = ["4096", "1", "1", "1"] + ["-2048", "-0.5", "-0.25", "-0.125"] + ["8388608"]
        for model, words, expected in (
            ("tensor_core(volta)", cut, "0x00000000 01"),
            ("tensor_core(turing)", cut, "0xbf000000 01"),
            ("tensor_core(ampere)", cut, "0xbf000000 01"),
            ("tensor_core(hopper)", cut, "0xbf400000 01"),
            ("tensor_core(blackwell)", cut, "0xbf400000 01"),
            ("fp32_sequential", cut, "0xbf600000 00"),
            ("tensor_core(hopper)", ["1", "1", "2", "3", "0.5"], "0x40b00000 00"),  # a a b b c
            ("matrix_core(cdna1)", cut, "0xbf600000 00"),
            ("matrix_core(cdna3)", cut, "0xbf000000 01"),
            ("matrix_core(cdna3)", ["nan", "1", "1"], "0x7fc00000 00"),
            ("tensor_core(products=16, bits=24)", cut, "0xbf000000 01"),
            ("tensor_core(products=16, bits=26)", cut, "0xbf600000 00"),
            ("tensor_core(products=16, bits=25, result=fp16)", ["1", "0x1000", "1"], "0x3c00 01"),
            ("tensor_core(hopper, promote=16)", ["1", "1", "2", "3", "0.5"], "0x40b00000 00"),
            ("fp16_sequential", ["1", "1", "1", "1", "2048"], "0x6800 01"),  # 2048 + 1 + 1, one at a time
            ("fp16_pairwise", ["1", "1", "1", "1", "2048"], "0x6801 00"),  # c comes last
            ("fp16_chunked(2)", ["1", "1", "1", "1", "2048"], "0x6801 00"),  # c is FP32 beside the chunks
            ("fp16_kahan", ["1", "1", "1", "1", "2048"], "0x6801 00"),
            ("fp16_sequential", ["256", "-256", "256", "256", "0"], "0x7e00 10"),  # inf - inf
            ("fp16_sequential", ["0x7bff", "2", "0"], "0x7c00 05"),
            ("fp16_sequential", ["inf", "2", "0"], "0x7c00 00"),
            ("fp8_e4m3_sequential", ["448", "2", "0"], "0x7f 05"),
            ("fp16_sequential", ["nan", "2", "0"], "0x7e00 00"),
            ("fp16_sequential", ["0x7c01", "2", "0"], "0x7e00 10"),
            ("tensor_core(hopper)", ["inf", "0", "0"], "0x7fffffff 10"),  # a tensor core's NaN
            ("fp16_sequential", ["-0", "1", "-0"], "0x8000 00"),
        ):
            self.assertEqual(self.answer(model, words), expected, (model, words))

    def test_formats_of_operands_and_result(self):
        for model, options, words, expected in (
            ("tensor_core(hopper)", ("--output", "fp16"), ["1", "0x1000", "1"], "0x3c00 01"),  # 2^-11: a tie
            ("matrix_core(cdna3)", ("--input", "fp8_e4m3fnuz"), ["0x40", "0x48", "0.25"], "0x40100000 00"),
            ("tensor_core(hopper)", ("--input", "bf16"), ["0x3f80", "0x4000", "0.25"], "0x40100000 00"),
            ("bf16_tensor_core(ampere)", (), ["0x3f80", "0x4000", "0x3e800000"], "0x40100000 00"),
            ("tensor_core(ampere)", ("--input", "tf32"), ["0x1fc00", "3", "0"], "0x40400000 00"),
            ("tensor_core(ada)", ("--input", "fp8_e4m3", "--output", "fp32"), ["0x38", "0x40", "1"],
             "0x40400000 00"),
            ("fp32_sequential", ("--input", "fp16", "--output", "bf16"), ["1", "0x3c01", "0"], "0x3f80 01"),
            ("fp32_sequential", ("--input", "fp8_e5m2",), ["0x3c", "3", "0x3f800000"], "0x40800000 00"),
        ):
            self.assertEqual(self.answer(model, words, *options), expected, (model, options, words))

    def test_a_stream_of_long_lines(self):
        lines = ["1 " * 5000 + "0x3c00 " * 5000 + "0", "1 1", "", "1 2 0xg", "1 2 0x10000", "2 2 1"]
        result = calc("dot", "--stdin", "--order", "fp16_sequential", stdin="\n".join(lines).encode())
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout.split(b"\n"), [b"0x6800 01", *[b"error"] * 4, b"0x4500 00", b""])
        messages = result.stderr.decode().splitlines()
        self.assertEqual(len(messages), 5, messages)
        for i, part in ((2, "an odd number of operands"), (3, "is empty"), (4, "'0xg' is not hexadecimal"),
                        (5, "more bits than fp16")):
            self.assertTrue(messages[i - 2].startswith(f"halfscope: line {i}: "), messages)
            self.assertIn(part, messages[i - 2])

    @unittest.skipUnless(VECTORS, "HALFSCOPE_TENSOR_CORE_VECTORS names no folder of vectors")
    def test_vectors_read_off_gpus(self):
        generations = {"V100": "volta", "A100": "ampere", "A2": "ampere", "Ada": "ada", "L40S": "ada",
                       "H100": "hopper", "H200": "hopper", "B200": "blackwell"}
        codes = {"fp32": lambda bits: bits, "tf32": lambda bits: bits >> 13, "bf16": lambda bits: bits >> 16,
                 "fp16": lambda bits: struct.unpack("<H", struct.pack("<e", single(bits)))[0]}
        sets = 0
        for result_file in sorted(Path(VECTORS).glob("*/*/d_*_fp*.txt")):
            folder, gpu, form = result_file.parent, result_file.parts[-3], result_file.parts[-2]
            if form not in codes:
                continue  # FP8 went through another instruction
            output = result_file.stem.rsplit("_", 1)[1]

            def patterns(path, base, form):
                return [[f"{codes[form](int(word, base)):#x}" for word in line.split()]
                        for line in path.read_text().splitlines() if line.strip()]

            a, b = (patterns(folder / f"{name}_{gpu}_{form}.txt", 16, form) for name in "ab")
            c, d = patterns(folder / f"c_{gpu}_fp32.txt", 2, output), patterns(result_file, 2, output)
            self.assertTrue(len(a) == len(b) == len(c) == len(d) > 0, result_file)
            lines = "".join(" ".join(x + y + z) + "\n" for x, y, z in zip(a, b, c))
            answers = calc("dot", "--stdin", "--order", f"tensor_core({generations[gpu]})", "--input", form,
                           "--output", output, stdin=lines.encode())
            self.assertEqual(answers.returncode, 0, answers.stderr)
            found = [int(line.split()[0], 16) for line in answers.stdout.decode().splitlines()]
            self.assertEqual(found, [int(line[0], 16) for line in d], result_file)
            sets += 1
        self.assertGreater(sets, 0)


def single(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


class Streams(unittest.TestCase):
    def test_malformed_lines_are_answered_in_their_place(self):
        lines = [b"1 2", b"", b"0x3c00", b"1 2 3", b"0xg 1", b"0x12345 1", b"1\0 2", b"9" * 100_000, b"1,5 2",
                 b"\t0x3C00  2\r", b"\xff\xfe 1", b"1 2 " + b"3 " * 50, b"--stdin 1", b"0x 1", b"1e5e 1", b"2 2"]
        result = calc("add", "--stdin", stdin=b"\n".join(lines))  # the last line has no newline
        right = {0: b"0x4200 00", 9: b"0x4200 00", 15: b"0x4400 00"}
        self.assertEqual(result.stdout.split(b"\n"), [right.get(i, b"error") for i in range(len(lines))] + [b""])
        self.assertEqual(result.returncode, 2)
        messages = result.stderr.decode("ascii").splitlines()
        self.assertEqual(len(messages), 14)
        for i, part in ((2, "is empty"), (3, "1 given"), (4, "3 given"), (5, "'0xg' is not hexadecimal"),
                        (6, "has more bits than fp16, which has 16"), (7, "NUL"), (8, "longer than 4096 bytes"),
                        (9, "'1,5'"), (11, r"'\xff\xfe'")):
            found = [m for m in messages if m.startswith(f"halfscope: line {i}: ")]
            self.assertEqual(len(found), 1, messages)
            self.assertIn(part, found[0])
        self.assertEqual(messages[-1], "halfscope: 13 of 16 lines are malformed")

    def test_nothing_and_blocks(self):
        empty = calc("add", "--stdin", stdin=b"")
        self.assertEqual((empty.returncode, empty.stdout, empty.stderr), (0, b"", b""))
        count = 200_000  # several blocks, with lines across their ends
        result = calc("mul", "--stdin", stdin=b"0x3c00 2.5\n0x3c01 0x3c01\n" * (count // 2))
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout, b"0x4100 00\n0x3c02 01\n" * (count // 2))

    def test_answers_come_before_the_input_ends(self):
        with subprocess.Popen([PROGRAM, "calc", "sqrt", "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              bufsize=0) as process:
            for operand, expected in ((b"4\n", b"0x4000 00\n"), (b"0x4880\n", b"0x4200 00\n")):
                process.stdin.write(operand)
                self.assertEqual(process.stdout.readline(), expected)
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([PROGRAM, "calc", "add", "--stdin"], input=b"1 2\n", stdout=full,
                                    stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"cannot be written", result.stderr)


class Refusals(unittest.TestCase):
    def test_one_line_and_status_2(self):
        for words, says in (
            (("ad", "1", "2"), ("unknown operation 'ad'", "did you mean 'add'", "round, add, sub")),
            (("add", "1"), ("add takes 2 operands, 1 given",)),
            (("add",), ("2 operands, 0 given",)),
            (("sqrt", "1", "2"), ("sqrt takes 1 operand, 2 given",)),
            (("add", "0xzz", "1"), ("'0xzz' is not hexadecimal",)),
            (("add", "0x10000", "1"), ("more bits than fp16, which has 16",)),
            (("round", "0x100000000"), ("more bits than fp32, which has 32",)),
            (("add", "1p3", "1"), ("'1p3'", "0x3c00")),
            (("add", "infinite", "1"), ("'infinite'", "0x1.8p-3")),
            (("add", "0x1p", "1"), ("'0x1p'",)),
            (("add", "0x.p1", "1"), ("'0x.p1'",)),
            (("add", "1", "1", "--from", "fp32"), ("--from is for round",)),
            (("add", "1", "1", "--seed", "-1"), ("--seed '-1'", "from 0 to 18446744073709551615")),
            (("add", "1", "1", "--seed", "18446744073709551616"), ("--seed", "from 0 to 18446744073709551615")),
            (("add", "1", "1", "--seed", "1.5"), ("--seed '1.5'", "an integer")),
            (("add", "1e", "1"), ("'1e'",)),
            (("add", ".", "1"), ("'.'",)),
            (("add", "", "1"), ("''",)),
            (("add", "1", "2", "--format", "fp17"), ("unknown format 'fp17'", "fp16")),
            (("add", "1", "2", "--rounding", "upp"), ("unknown rounding 'upp'", "did you mean 'up'")),
            (("add", "1", "2", "--overflow", "wrap"), ("unknown overflow policy 'wrap'",)),
            (("add", "1", "2", "--format", "fp16/up", "--rounding", "down"), ("'fp16/up/down'", "more than one rounding")),
            (("add", "1", "2", "--format", "fp16/upp"), ("'upp'", "did you mean 'up'")),
            (("add", "1", "2", "--stdin"), ("--stdin", "leave out '1'")),
            ((), ("OPERATION",)),
            (("dot", "1", "1", "1"), ("--order", "tensor_core(hopper)")),
            (("dot", "--order", "fp16_sequentiel", "1", "1", "1"), ("did you mean 'fp16_sequential'",)),
            (("dot", "--order", "tensor_core(pascal)", "1", "1", "1"), ("unknown tensor core 'pascal'",)),
            (("dot", "--order", "tensor_core(volta)", "--input", "bf16", "1", "1", "1"), ("volta", "bf16")),
            (("dot", "--order", "matrix_core(cdna2)", "--input", "tf32", "1", "1", "1"), ("fp16, bf16",)),
            (("dot", "--order", "tensor_core(products=70, bits=25)", "1", "1", "1"), ("between 1 and 64",)),
            (("dot", "--order", "tensor_core(products=16, bits=25)", "--output", "fp16", "1", "1", "1"),
             ("adds up in fp32",)),
            (("dot", "--order", "tensor_core(hopper, promote=16)", "--output", "fp16", "1", "1", "1"),
             ("FP32", "fp16")),
            (("dot", "--order", "tensor_core(hopper, promote=16)", "--input", "fp8_e4m3", "1", "1", "1"),
             ("multiple of the 32",)),
            (("dot", "--order", "tensor_core(hopper)", "--output", "bf16", "1", "1", "1"), ("add up in bf16",)),
            (("dot", "--order", "bf16_tensor_core(hopper)", "--input", "fp16", "1", "1", "1"),
             ("multiplies numbers of bf16, not of fp16",)),
            (("dot", "--order", "fp16_sequential", "--input", "fp17", "1", "1", "1"), ("unknown format 'fp17'",)),
            (("dot", "--order", "fp16_sequential", "1", "1"), ("an odd number of operands", "2 given")),
            (("dot", "--order", "fp16_sequential", "1"), ("1 given",)),
            (("dot", "--order", "fp16_sequential", "--format", "fp16", "1", "1", "1"), ("--input",)),
            (("add", "--order", "fp16_sequential", "1", "1"), ("are for dot",)),
        ):
            result = calc(*words)
            message = result.stderr.decode()
            self.assertEqual((result.returncode, result.stdout), (2, b""), words)
            self.assertEqual(len(message.splitlines()), 1, message)
            for part in says:
                self.assertIn(part, message, words)


if __name__ == "__main__":
    unittest.main()
