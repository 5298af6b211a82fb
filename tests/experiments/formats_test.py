"""halfscope formats: errors and counts against a quantizer of its own, the choice, wrong requests."""

import bisect
import json
import math
import random
import struct
import unittest

from program import WithFolder, halfscope


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def numbers(mantissa_bits, bias, count):
    """The numbers of the first `count` codes, which have no sign."""
    found = []
    for code in range(count):
        field, mantissa = code >> mantissa_bits, (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
        found.append(math.ldexp(mantissa + (field > 0), max(field, 1) - bias))
    return found


E4M3, E2M1 = numbers(3, 7, 127), numbers(1, 1, 8)


def nearest(x, table):
    """Ties to even codes, saturating."""
    magnitude = min(abs(x), table[-1])
    above = bisect.bisect_left(table, magnitude)
    if above > 0 and table[above] != magnitude:
        low, high = magnitude - table[above - 1], table[above] - magnitude
        above = above - 1 if low < high or (low == high and (above - 1) % 2 == 0) else above
    return math.copysign(table[above], x)


def mx(block, table, floor):
    """OCP MX: a power of two, by the binade of amax or up from amax over the largest number."""
    amax = max(map(abs, block))
    if amax == 0:
        return block
    exponent = math.frexp(amax)[1] - math.frexp(table[-1])[1] if floor else math.ceil(math.log2(amax / table[-1]))
    return [math.ldexp(nearest(math.ldexp(x, -exponent), table), exponent) for x in block]


def fp8_128(block):
    """DeepGEMM: amax / 448 in FP32."""
    scale = f32(max(*map(abs, block), 1e-4) / 448)
    return [nearest(f32(x * f32(1 / scale)), E4M3) * scale for x in block]


def per_tensor(values):
    """E4M3 at the largest power of two under which nothing overflows."""
    return mx(values, E4M3, floor=False)


def in_blocks(rows, columns, quantize):
    return [[y for at in range(0, len(row), columns) for y in quantize(row[at : at + columns])] for row in rows]


def flat(rows):
    return [x for row in rows for x in row]


def error(values, rounded):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(values, rounded)) / sum(x * x for x in values))


class Formats(WithFolder):
    def write(self, name, tensors):
        header, data = {}, b""
        for key, rows in tensors.items():
            content = struct.pack(f"<{len(rows) * len(rows[0])}f", *flat(rows))
            header[key] = {
                "dtype": "F32",
                "shape": [len(rows), len(rows[0])],
                "data_offsets": [len(data), len(data) + len(content)],
            }
            data += content
        text = json.dumps(header).encode()
        path = self.folder / name
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return path

    def model(self, columns=256):
        noise = random.Random(1)
        return {
            "q_proj.weight": [[f32(noise.gauss(0, 0.02)) for _ in range(columns)] for _ in range(24)],
            "down_proj.weight": [
                [f32(noise.gauss(0, 0.01) * 2 ** noise.uniform(-8, 3)) for _ in range(columns)] for _ in range(24)
            ],
        }

    def formats(self, *words):
        return json.loads(self.run_ok("formats", *words, "--json"))

    def test_errors_and_counts(self):
        model = self.model()
        expected = {
            "mxfp8_e4m3": lambda rows: in_blocks(rows, 32, lambda block: mx(block, E4M3, floor=False)),
            "mxfp4": lambda rows: in_blocks(rows, 32, lambda block: mx(block, E2M1, floor=False)),
            "mxfp4/floor": lambda rows: in_blocks(rows, 32, lambda block: mx(block, E2M1, floor=True)),
            "block(fp4_e2m1, 1x16, e8m0/floor)": lambda rows: in_blocks(
                rows, 16, lambda block: mx(block, E2M1, floor=True)
            ),
            "fp8_1x128": lambda rows: in_blocks(rows, 128, fp8_128),
            "fp8_e4m3": lambda rows: [per_tensor(flat(rows))],
        }
        result = self.formats(self.write("model.safetensors", model), "--format", ",".join(expected))
        self.assertEqual([tensor["name"] for tensor in result["tensors"]], list(model))
        for tensor in result["tensors"]:
            values = flat(model[tensor["name"]])
            for found in tensor["formats"]:
                with self.subTest(tensor["name"], format=found["name"]):
                    rounded = flat(expected[found["name"]](model[tensor["name"]]))
                    truth = error(values, rounded)
                    self.assertAlmostEqual(found["relative_error"], truth, delta=1e-6)
                    self.assertAlmostEqual(found["error_db"], -20 * math.log10(truth), delta=1e-3)
                    self.assertEqual(found["flushed"], sum(x != 0 and y == 0 for x, y in zip(values, rounded)))
                    self.assertEqual(found["elements"], len(values))

    def test_blocks_that_clip_are_counted(self):
        """Blocks of amax 6 at scale 1 under floor: above 6 it clips, from 7 on it overflows."""
        rows = [[4.0] * 31 + [amax] for amax in (6.0, 6.5, 7.0, 7.5)]
        result = self.formats(self.write("a.safetensors", {"a": rows}), "--format", "mxfp4/floor,mxfp4")
        floor, rceil = result["tensors"][0]["formats"]
        self.assertEqual(
            [floor[key] for key in ("clipped", "overflow", "clipped_blocks", "blocks_at_risk", "blocks")],
            [3, 2, 3, 2, 4],
        )
        self.assertEqual(
            [rceil[key] for key in ("clipped", "overflow", "clipped_blocks", "blocks_at_risk", "blocks")],
            [0, 0, 0, 0, 4],
        )

    def test_an_outlier_that_hides_what_becomes_zero(self):
        """One element sets the scale of all: the norm of the tensor errs by 0.01 %, and 36.9 % of the values are gone."""
        rows = [[65536.0] + [30.0] * 63] + [[f32(x) for x in (0.1, 0.2, 0.5, 1, 2, 10, 30, 0.1)] * 8 for _ in range(63)]
        path = self.write("outlier.safetensors", {"mlp.input": rows})
        result = self.formats(path, "--format", "fp8_e4m3,fp8_1x128,mxfp8_e4m3")
        self.assertEqual(result["cheapest"], "mxfp8_e4m3")
        found = result["tensors"][0]["formats"][0]
        values = flat(rows)
        truth = per_tensor(values)
        self.assertEqual(found["flushed"], sum(y == 0 for y in truth))
        self.assertLess(found["relative_error"], 0.001)
        self.assertEqual(
            found["shared_scale"],
            {"row": 0, "column": 0, "largest": 65536, "flushed_up_to": 0.25, "flushed_by_rows": 0},
        )
        errors = sorted(error(row, truth[64 * i : 64 * i + 64]) for i, row in enumerate(rows))
        self.assertAlmostEqual(found["rows"]["median_error"], errors[32], delta=1e-8)
        self.assertAlmostEqual(found["rows"]["worst_error"], errors[-1], delta=1e-8)
        for text in (
            "fp8_e4m3 is out: 36.91 %",
            "65536 at row 0, column 0, sets the scale of all 4096",
            "costs 0.50 bits and flushes 0",
        ):
            self.assertIn(text, result["verdict"])
        self.assertEqual(self.formats(path, "--format", "fp8_e4m3", "--max-error", "20%")["cheapest"], "fp8_e4m3")

    def outlier_columns(self, noise, rows, columns, factor, count):
        """Weights of one spread but for columns that are `factor` times as large."""
        large = set(noise.sample(range(columns), count))
        return [
            [f32(noise.gauss(0, 0.02) * (factor if i in large else 1)) for i in range(columns)] for _ in range(rows)
        ]

    def compared(self, *words):
        """The same where no format may stay within the limit."""
        result = halfscope("formats", *words, "--json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout)

    def test_columns_that_hide_the_error_of_all_others(self):
        """Every row has the outlier, so that no norm of a row tells what becomes of the rest."""
        noise = random.Random(6)
        quantizers = {
            "fp8_e4m3": lambda rows: in_blocks([flat(rows)], len(rows) * len(rows[0]), per_tensor)[0],
            "mxfp8_e4m3": lambda rows: flat(in_blocks(rows, 32, lambda block: mx(block, E4M3, floor=False))),
            "mxfp4": lambda rows: flat(in_blocks(rows, 32, lambda block: mx(block, E2M1, floor=False))),
        }
        limit, seen = 0.2, set()
        for run in range(60):
            rows, columns = noise.choice([16, 40, 100]), noise.choice([32, 64, 160])
            factor, count = 10.0 ** noise.uniform(0, 6), noise.choice([1, 1, 2, 5])
            model = self.outlier_columns(noise, rows, columns, factor, count)
            path = self.write("columns.safetensors", {"w": model})
            result = self.compared(path, "--format", ",".join(quantizers), "--max-error", "20%")
            for found, summed in zip(result["tensors"][0]["formats"], result["formats"]):
                with self.subTest(run=run, format=found["name"], shape=(rows, columns), factor=factor, count=count):
                    truth = quantizers[found["name"]](model)
                    errors = sorted(error([row[i] for row in model], truth[i::columns]) for i in range(columns))
                    median, tenth = errors[columns // 2], errors[columns - 1 - columns // 10]
                    if "columns" in found:
                        self.assertAlmostEqual(found["columns"]["median_error"], median, delta=1e-6)
                        self.assertAlmostEqual(found["columns"]["worst_tenth_error"], tenth, delta=1e-6)
                        norms = [math.hypot(*(row[i] for row in model)) for i in range(columns)]
                        self.assertEqual(found["columns"]["largest"], norms.index(max(norms)))
                    is_out = median > limit or tenth > 4 * limit
                    seen.add((is_out, found["relative_error"] <= limit))
                    if is_out:
                        self.assertFalse(summed["fits"])
                    if is_out and found["relative_error"] <= limit and found["rows"]["median_error"] <= limit:
                        self.assertRegex(
                            result["verdict"],
                            rf"{found['name']} is out: (half|a tenth) of the columns of w err by .* column \d+ has",
                        )
        self.assertLessEqual({(True, True), (False, True)}, seen)

    def test_columns_of_a_large_tensor_are_sampled(self):
        noise = random.Random(7)
        model = self.outlier_columns(noise, 3000, 256, 1e5, 1)
        for axis, rows in ((-1, model), (0, [list(column) for column in zip(*model)])):
            path = self.write("large.safetensors", {"w": rows})
            result = self.compared(path, "--format", "mxfp4,fp8_e4m3", "--axis", axis, "--max-error", "20%")
            mxfp4, fp8 = result["tensors"][0]["formats"]
            self.assertEqual(result["cheapest"], None if fp8["columns"]["median_error"] > 0.2 else "fp8_e4m3")
            self.assertGreater(mxfp4["columns"]["worst_tenth_error"], 0.9)
            self.assertLess(mxfp4["columns"]["median_error"], 0.2)

    def test_errors_of_rows(self):
        """The median and the worst of rows drawn at random, in rows that one tile holds and rows that take several."""
        noise = random.Random(5)
        for shape in ((37, 96), (5, 70000), (1, 600000)):
            rows = [[f32(noise.gauss(0, 1) * 10.0 ** -(i % 5)) for _ in range(shape[1])] for i in range(shape[0])]
            with self.subTest(shape):
                result = self.formats(self.write("rows.safetensors", {"w": rows}), "--format", "fp8_e4m3,mxfp4/floor")
                whole = per_tensor(flat(rows))
                truths = (
                    [whole[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])],
                    in_blocks(rows, 32, lambda block: mx(block, E2M1, floor=True)),
                )
                for found, truth in zip(result["tensors"][0]["formats"], truths):
                    errors = [error(row, y) for row, y in zip(rows, truth)]
                    worst = max(range(len(errors)), key=errors.__getitem__)
                    self.assertAlmostEqual(found["rows"]["median_error"], sorted(errors)[len(errors) // 2], delta=1e-6)
                    self.assertAlmostEqual(found["rows"]["worst_error"], errors[worst], delta=1e-6)
                    self.assertAlmostEqual(errors[found["rows"]["worst"]], errors[worst], delta=1e-6)

    def test_tensors_of_one_axis_are_left_out_of_the_choice(self):
        """A norm's weight that no format holds does not decide; alone it does."""
        model = self.model()
        header_of = {"norm.weight": [[1.0, 1e-9] * 64]}
        path = self.write("model.safetensors", {**model, **header_of})
        text = path.read_bytes().replace(b'"shape": [1, 128]', b'"shape": [128]   ')
        path.write_bytes(text)
        result = self.formats(path, "--format", "mxfp8_e4m3,nvfp4")
        self.assertEqual((result["cheapest"], result["left_out"]), ("mxfp8_e4m3", 1))
        self.assertEqual([tensor["one_axis"] for tensor in result["tensors"]], [False, False, True])
        self.assertEqual(result["formats"][0]["elements"], 2 * 24 * 256)
        self.assertIn("1 tensor of one axis is left out", result["verdict"])
        alone = self.formats(path, "--format", "mxfp8_e4m3", "--include", "norm*")
        self.assertEqual((alone["left_out"], alone["formats"][0]["elements"]), (0, 128))

    def test_the_cheapest_within_the_limit_comes_first(self):
        path = self.write("model.safetensors", self.model())
        formats = "bf16,mxfp8_e4m3,mxfp6_e2m3,nvfp4,mxfp4"
        for limit, cheapest in (
            ("1%", "bf16"),
            ("5%", "mxfp6_e2m3"),
            ("26dB", "mxfp6_e2m3"),
            ("12%", "nvfp4"),
            ("50%", "mxfp4"),
        ):
            with self.subTest(limit):
                result = self.formats(path, "--format", formats, "--max-error", limit)
                self.assertEqual(result["cheapest"], cheapest)
                within = [entry for entry in result["formats"] if entry["worst_relative_error"] <= result["max_error"]]
                self.assertEqual(
                    [entry["name"] for entry in within], [entry["name"] for entry in result["formats"] if entry["fits"]]
                )
                self.assertEqual(min(within, key=lambda entry: entry["bits_per_element"])["name"], cheapest)
                first = self.run_ok("formats", path, "--format", formats, "--max-error", limit).splitlines()[0]
                self.assertEqual(first, result["verdict"])
                self.assertTrue(first.startswith(f"{cheapest}: "))
                self.assertIn(f"--max-error {limit}", first)
        bits = {entry["name"]: entry["bits_per_element"] for entry in result["formats"]}
        self.assertEqual([bits["bf16"], bits["mxfp8_e4m3"], bits["mxfp6_e2m3"], bits["mxfp4"]], [16, 8.25, 6.25, 4.25])
        self.assertAlmostEqual(bits["nvfp4"], 4.5 + 2 * 32 / (2 * 24 * 256))

    def test_none_within_the_limit(self):
        path = self.write("model.safetensors", self.model())
        result = halfscope("formats", path, "--format", "nvfp4,mxfp4", "--max-error", "40dB", "--quiet")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(
            result.stdout,
            r"^No format stays under --max-error 40dB; (nvfp4|mxfp4) comes closest: .* in \w+_proj\.weight",
        )
        self.assertEqual(len(result.stdout.splitlines()), 1)
        # A limit that nobody gave is no reason to fail.
        self.run_ok("formats", path, "--format", "nvfp4,mxfp4")

    def test_formats_by_default_and_in_several_options(self):
        path = self.write("model.safetensors", self.model())
        names = [entry["name"] for entry in self.formats(path)["formats"]]
        self.assertEqual(names, ["mxfp8_e4m3", "nvfp4", "mxfp4"])
        several = self.formats(path, *(word for name in names for word in ("--format", name)))
        self.assertEqual(several, self.formats(path))

    def test_analyze_names_the_line_to_type(self):
        """Until 0.2."""
        path = self.write("a model.safetensors", self.model())
        for words, line in (
            (("--formats", "nvfp4,mxfp4", "--max-error=5%"), "--format nvfp4,mxfp4 --max-error=5%"),
            (("--formats=block(fp8_e4m3, 1x8, e8m0/rceil)",), "'--format=block(fp8_e4m3, 1x8, e8m0/rceil)'"),
            (("--max-error", "5%", "--quiet"), "--max-error 5% --quiet"),
            (("--axis", "0"), "--axis 0"),
            (("--format", "mxfp4/floor"), "--format mxfp4/floor"),
        ):
            with self.subTest(words):
                self.refuse("analyze", path, *words, says=[f"type: halfscope formats '{path}' {line}"])

    def test_padding_is_said(self):
        path = self.write("odd.safetensors", self.model(columns=40))
        result = self.formats(path, "--format", "mxfp4,fp8_e4m3,block(fp8_e4m3, 1x8, e8m0/rceil)")
        self.assertEqual([entry["padded_tensors"] for entry in result["formats"]], [2, 0, 0])
        self.assertEqual(result["formats"][0]["blocks"], 2 * 24 * 2)
        text = self.run_ok("formats", path, "--format", "mxfp4,mxfp8_e4m3,fp8_e4m3")
        self.assertIn("filled up with zeros for mxfp4, mxfp8_e4m3: q_proj.weight (24 x 40) and 1 more", text)

    def test_values_of_a_format_have_no_error(self):
        path = self.write("exact.safetensors", {"w": [[1.0, -2.0] * 32]})
        first = self.run_ok("formats", path, "--format", "mxfp8_e4m3, mxfp4", "--quiet")
        self.assertTrue(
            first.startswith("mxfp4: 4.25 bits per element, no error in any tensor; the cheapest of 2 formats")
        )

    def test_axis(self):
        rows = self.model()["q_proj.weight"]
        turned = [list(column) for column in zip(*rows)]
        first, second = (self.write(f"{i}.safetensors", {"w": matrix}) for i, matrix in enumerate((rows, turned)))
        along_columns = self.formats(first, "--format", "mxfp4,nvfp4", "--axis", "0")
        self.assertEqual(
            along_columns["tensors"][0]["formats"],
            self.formats(second, "--format", "mxfp4,nvfp4")["tensors"][0]["formats"],
        )
        self.assertNotEqual(
            along_columns["tensors"][0]["formats"],
            self.formats(first, "--format", "mxfp4,nvfp4")["tensors"][0]["formats"],
        )

    def test_zeros_and_values_that_are_not_finite(self):
        rows = [[0.0] * 64, [math.nan] + [1.0] * 63]
        path = self.write("a.safetensors", {"zeros": rows[:1], "nan": rows[1:]})
        result = self.formats(path, "--format", "nvfp4,mxfp8_e4m3,fp8_e4m3,block(fp8_e4m3, 1x32, fp32/deepseek)")
        zeros, nan = (tensor["formats"] for tensor in result["tensors"])
        self.assertEqual([entry["relative_error"] for entry in zeros], [0, 0, 0, None])
        self.assertEqual([entry["blocks_at_risk"] for entry in zeros], [0, 0, 0, 2])
        self.assertEqual([entry["nonfinite"] for entry in nan], [1] * 4)
        self.assertEqual([entry["blocks_at_risk"] for entry in nan], [1] * 4)
        self.assertFalse(result["formats"][3]["fits"])

    def test_threads_change_nothing(self):
        path = self.write("model.safetensors", self.model())
        words = ("formats", path, "--format", "nvfp4,fp8_e5m2,fp8_128x128", "--json")
        self.assertEqual(self.run_ok(*words, "--threads", 1), self.run_ok(*words, "--threads", 3))

    def test_look_alikes_are_told_apart_once(self):
        path = self.write("model.safetensors", self.model())
        result = halfscope("formats", path, "--format", "e4m3,fp8_e4m3,block(e4m3, 1x32, e8m0/rceil)", "--quiet")
        self.assertEqual(result.returncode, 0, result.stderr)
        (line,) = result.stderr.splitlines()
        for text in ("e4m3", "240", "448"):
            self.assertIn(text, line)
        result = halfscope("formats", path, "--format", "e2m1", "--quiet")
        for text in ("e2m1", "3", "fp4_e2m1", "6"):
            self.assertIn(text, result.stderr)

    def test_table(self):
        path = self.write("model.safetensors", self.model())
        lines = self.run_ok("formats", path, "--format", "nvfp4,mxfp4", "--table", "csv").splitlines()
        self.assertEqual(
            lines[0].split(",")[:6], ["tensor", "format", "error_db", "median_row_db", "worst_row_db", "flushed"]
        )
        self.assertEqual(
            [line.split(",")[:2] for line in lines[1:]],
            [[name, form] for name in self.model() for form in ("nvfp4", "mxfp4")],
        )

    def test_requests_that_are_wrong(self):
        path = self.write("model.safetensors", self.model())
        for words, says in (
            (("--format", "mxfp5"), ("mxfp5", "mxfp4")),
            (("--format", "fp18,mxfp4"), ("fp18", "bf16", "mxfp8_e4m3")),
            (("--format", "mxfp4/te"), ("'te'", "rceil")),
            (("--format", "nvfp4/floor"), ("'floor'", "torchao")),
            (("--format", "mxfp4", "--axis", "2"), ("axis 2", "q_proj.weight", "-2 to 1")),
            (("--format", "mxfp4", "--max-error", "5x"), ("--max-error", "5x")),
            (("--format", "mxfp4", "--max-error", "dB"), ("--max-error", "26dB")),
            (("--format", "mxfp4", "--sort", "name"), ("--sort",)),
            (("--ranks", "2"), ("formats has no option '--ranks'",)),
        ):
            with self.subTest(words):
                self.refuse("formats", path, *words, says=says)
        self.refuse("formats", "--format", "mxfp4", says=["FILE"])


if __name__ == "__main__":
    unittest.main()
