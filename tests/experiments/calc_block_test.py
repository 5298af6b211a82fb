"""halfscope calc round to block formats: published known answers of scale and code, and lines that are wrong."""

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()

# Codes of the scale and of the largest element by its magnitude: floor of OCP MX 1.0, ceil and even of torchao, rceil.
E4M3 = {
    "floor": {
        "0": "0:00",
        "0x1p-130": "0:20",
        "224": "126:7e",
        "448": "127:7e",
        "449": "127:7e",
        "500": "127:7e",
        "512": "128:78",
    },
    "ceil": {
        "0": "0:00",
        "0x1p-130": "0:20",
        "224": "127:76",
        "448": "128:76",
        "449": "128:76",
        "500": "128:78",
        "512": "128:78",
    },
    "even": {
        "0": "0:00",
        "0x1p-130": "0:20",
        "224": "126:7e",
        "448": "127:7e",
        "449": "127:7e",
        "500": "128:78",
        "512": "128:78",
    },
    "rceil": {
        "0": "0:00",
        "0x1p-130": "0:20",
        "224": "126:7e",
        "448": "127:7e",
        "449": "128:76",
        "500": "128:78",
        "512": "128:78",
    },
}
E2M1 = {
    "floor": {"3": "126:7", "6": "127:7", "6.5": "127:7", "7": "127:7", "7.5": "127:7", "8": "128:6"},
    "even": {"3": "126:7", "6": "127:7", "6.5": "127:7", "7": "128:6", "7.5": "128:6", "8": "128:6"},
    "rceil": {"3": "126:7", "6": "127:7", "6.5": "128:5", "7": "128:6", "7.5": "128:6", "8": "128:6"},
    "ceil": {"3": "127:5", "6": "128:5", "6.5": "128:5", "7": "128:6", "7.5": "128:6", "8": "128:6"},
}


def calc(*words, stdin=None):
    return subprocess.run([PROGRAM, "calc", *map(str, words)], input=stdin, capture_output=True, text=True, timeout=300)


class Blocks(unittest.TestCase):
    def answer(self, *words, stdin=None):
        result = calc(*words, stdin=stdin)
        self.assertEqual((result.returncode, result.stderr), (0, ""), words)
        return result.stdout

    def test_mx(self):
        for form, table, digits in (("mxfp8_e4m3", E4M3, 2), ("mxfp4", E2M1, 1)):
            for rule, answers in table.items():
                lines = "".join(f"{amax} 0 -0\n" for amax in answers)
                expected = []
                for answer in answers.values():
                    scale, code = answer.split(":")
                    expected.append(f"0x{int(scale):02x} 0x{code} 0x{'0' * digits} 0x{'80' if digits == 2 else '8'}")
                self.assertEqual(
                    self.answer("round", "--format", f"{form}/{rule}", "--stdin", stdin=lines).splitlines(),
                    expected,
                    rule,
                )

    def test_ties_of_e2m1_go_to_the_even_code(self):
        values = ["6", "0.25", "0.75", "1.25", "1.75", "2.5", "3.5", "5", "-0.25"]
        self.assertEqual(
            self.answer("round", "--format", "mxfp4", *values), "0x7f 0x7 0x0 0x2 0x2 0x4 0x4 0x6 0x6 0x8\n"
        )

    def test_nvfp4(self):
        # A tensor of 2688 has the scale 1, and 1e-3 in it a block whose scale underflows: codes of 6 at scale 0.
        self.assertEqual(
            self.answer("round", "--format", "nvfp4", "--tensor-amax", "2688", "1e-3", "0"), "0x3f800000 0x00 0x7 0x0\n"
        )
        self.assertEqual(self.answer("round", "--format", "nvfp4", "2688", "448"), "0x3f800000 0x7e 0x7 0x2\n")
        # The least scale of torchao's is 2^-6, at which 1e-3 flushes.
        self.assertEqual(
            self.answer("round", "--format", "nvfp4/torchao", "--tensor-amax", "2688", "1e-3"), "0x3f800000 0x08 0x0\n"
        )

    def test_fp32_scales(self):
        # DeepGEMM: amax at least 1e-4, so that a block of zeros has 1e-4 / 448.
        self.assertEqual(self.answer("round", "--format", "fp8_1x128", "0", "0"), "0x346facad 0x00 0x00\n")
        self.assertEqual(self.answer("round", "--format", "fp8_1x128", "448", "0x3f800000"), "0x3f800000 0x7e 0x38\n")

    def test_tiles(self):
        self.assertEqual(
            self.answer("round", "--format", "block(fp8_e4m3, 2x2, e8m0/rceil)", "448", "1", "2", "4"),
            "0x7f 0x7e 0x38 0x40 0x48\n",
        )

    def test_explained(self):
        text = self.answer("round", "--format", "mxfp4", "3", "1", "--explain").splitlines()
        self.assertEqual(
            text, ["scale 0x7e = 0.5", "  3 -> 0x7 = 6, which stands for 3", "  1 -> 0x4 = 2, which stands for 1"]
        )

    def test_streams_answer_malformed_lines_in_their_place(self):
        result = calc("round", "--format", "mxfp4", "--stdin", stdin="3\nx\n1\n")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "0x7e 0x7\nerror\n0x7d 0x6\n")
        self.assertIn("line 2", result.stderr)

    def test_sums_are_cut_as_the_units_cut_them(self):
        k64 = ["0"] * 31
        for unit, form, words, answer in (
            # mxf8f6f4 keeps 25 bits below the largest exponent, and cuts the sum off to FP32.
            ("mxf8f6f4", "mxfp8_e4m3", ["0x1p-24", "1", "1"], "0x3f800000 01"),
            ("mxf8f6f4", "mxfp8_e4m3", ["-0x1p-24", "1", "1"], "0x3f7fffff 00"),
            ("mxf8f6f4", "mxfp8_e4m3", ["-0x1p-26", "1", "1"], "0x3f800000 01"),
            ("mxf8f6f4", "mxfp8_e4m3,mxfp4", ["448", "6", "0"], "0x45280000 00"),
            ("mxf8f6f4", "mxfp8_e5m2", ["0x33800000", "0x33800000", "0"], "0x27800000 00"),  # FP32 bits
            # mxf4: groups of 16 under the exponent of their scales, 2^31 x 2^-2 here; 35 bits below it are kept.
            ("mxf4", "mxfp4", ["0x1p33", *k64, "-0x1p-3", "1", *k64, "0x1p-3", "0"], "0x4fffffff 01"),
            ("mxf4", "mxfp4", ["0x1p33", *k64, "-0x1p-5", "1", *k64, "0x1p-5", "0"], "0x50000000 01"),
            # Scales of a tensor of its own for each row: 2688 is 6 x 448, and c is added before both.
            ("mxf4nvf4", "nvfp4", ["2688", "2688", "0"], "0x4adc8000 00"),
            ("mxf4nvf4", "nvfp4", ["2688", "2688", "1"], "0x4adc8002 00"),
            ("mxf4nvf4", "nvfp4_16x16,nvfp4", ["2688", "2688", "1"], "0x4adc8002 00"),
            ("mxf4nvf4", "nvfp4", ["5376", "2688", "1"], "0x4b5c8002 00"),  # 2 (7225344 + 1)
            ("mxf4nvf4", "block(fp4_e2m1, 1x16, e8m0/floor)", ["7", "1", "0.25"], "0x40c80000 00"),  # 7 is 6
            ("mxf4", "mxfp4", ["inf", "1", "0"], "0x7fffffff 10"),
            ("mxf4", "mxfp4", ["nan", "1", "0"], "0x7fffffff 00"),
        ):
            with self.subTest(unit=unit, words=words):
                self.assertEqual(self.answer("dot", "--order", unit, "--input", form, "--", *words), answer + "\n")

    def test_dot_products_explained_and_in_streams(self):
        unit = ("dot", "--order", "mxf4", "--input", "mxfp4")
        self.assertEqual(
            self.answer(*unit, "3", "1", "0.5", "2", "0", "--explain").splitlines()[-2:],
            ["  a in mxfp4: scales 0x7e, codes 0x7 0x4", "  b in mxfp4: scales 0x7e, codes 0x2 0x6"],
        )
        self.assertEqual(self.answer(*unit, "--stdin", stdin="1 1 0\n1 2 3 4 0\n"), "0x3f800000 00\n0x41300000 00\n")
        first, second = self.answer(
            "dot",
            "--order",
            "mxf4",
            "--input",
            "mxfp4/stochastic(8)",
            "--stdin",
            stdin=("1.1 " * 32 + "1 " * 32 + "0\n") * 2,
        ).splitlines()
        self.assertNotEqual(first, second)

    def test_requests_that_are_wrong(self):
        for words, says in (
            (("round", "--format", "mxfp4", *["1"] * 33), ("1 to 32", "33")),
            (("round", "--format", "mxfp4"), ("1 to 32", "0")),
            (("round", "--format", "nvfp4_16x16", *["1"] * 17), ("16", "17")),
            (("add", "--format", "mxfp4", "1", "2"), ("add", "round")),
            (("round", "--format", "mxfp4", "--rounding", "up", "1"), ("--rounding", "mxfp4/stochastic")),
            (("round", "--format", "mxfp4", "--tensor-amax", "1", "1"), ("--tensor-amax", "mxfp4")),
            (("round", "--format", "nvfp4", "--tensor-amax", "1", "2"), ("--tensor-amax", "2")),
            (("round", "--format", "nvfp4", "--tensor-amax", "nan", "2"), ("--tensor-amax", "nan")),
            (("round", "--tensor-amax", "1", "2"), ("--tensor-amax", "nvfp4")),
            (("round", "--format", "mxfp4/te", "2"), ("'te'", "rceil")),
            (("dot", "--order", "mxf4", "1", "1", "0"), ("mxf4 multiplies blocks", "--input mxfp4")),
            (("dot", "--order", "mxf4", "--input", "nvfp4", "1", "1", "0"), ("mxf4", "ue4m3", "e8m0")),
            (("dot", "--order", "mxf4", "--input", "mxfp8_e4m3", "1", "1", "0"), ("mxf4", "fp8_e4m3", "fp4_e2m1")),
            (
                ("dot", "--order", "mxf4nvf4", "--input", "block(fp4_e2m1, 1x8, ue4m3/te, fp32)", "1", "1", "0"),
                ("each 16 elements of a row", "1 x 8", "a multiple of 16"),
            ),
            (
                ("dot", "--order", "mxf4nvf4", "--input", "nvfp4,block(fp4_e2m1, 1x16, e8m0/rceil)", "1", "1", "0"),
                ("scales of one format", "nvfp4 and block(fp4_e2m1, 1x16, e8m0/rceil)"),
            ),
            (("dot", "--order", "mxf4", "--input", "mxfp4,mxfp4,mxfp4", "1", "1", "0"), ("--input", "two for a and b")),
            (("dot", "--order", "mxf8f6f4", "--input", "fp8_e4m3", "1", "1", "0"), ("'fp8_e4m3'", "mxfp8_e4m3")),
            (
                ("dot", "--order", "mxf4", "--input", "mxfp4", "--output", "fp16", "1", "1", "0"),
                ("fp32", "--output fp16"),
            ),
            (("dot", "--order", "mxf4", "--input", "mxfp4", "--tensor-amax", "1", "1", "1", "0"), ("--tensor-amax",)),
            (("dot", "--order", "mxf4", "--input", "mxfp4", "1", "1"), ("odd number", "2 given")),
        ):
            with self.subTest(words):
                result = calc(*words)
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                (line,) = result.stderr.splitlines()
                for text in says:
                    self.assertIn(text, line)

    def test_look_alikes_are_told_apart_once(self):
        for words, texts in (
            (("round", "--format", "block(e4m3, 1x32, e8m0/rceil)", "1"), ("e4m3", "240", "448")),
            (("round", "--from", "e4m3", "--format", "e4m3", "1"), ("e4m3", "240", "448")),
            (
                ("dot", "--order", "fp32_fused", "--input", "e2m1", "--output", "fp32", "1", "1", "0"),
                ("e2m1", "3", "fp4_e2m1", "6"),
            ),
        ):
            with self.subTest(words):
                result = calc(*words)
                self.assertEqual(result.returncode, 0, result.stderr)
                (line,) = result.stderr.splitlines()
                for text in texts:
                    self.assertIn(text, line)


if __name__ == "__main__":
    unittest.main()
