"""halfscope analyze: known answers, brute force by Python's own FP16, thresholds, and files that are wrong."""

import json
import math
import random
import struct
import unittest

from program import WithFolder, halfscope
from tensor_files import safetensors


def read_safetensors(path):
    content = path.read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", content[8 + size + begin : 8 + size + end])
    return tensors


def to_fp16(x):
    """The FP16 number next to x, by the interpreter; infinity where it overflows."""
    try:
        return struct.unpack("<e", struct.pack("<e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def to_bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def counts(values, scale_log2=0, cast=to_fp16, min_normal=2.0**-14):
    scaled = [math.ldexp(x, scale_log2) for x in values if x != 0 and math.isfinite(x)]
    rounded = [abs(cast(x)) for x in scaled]
    return {
        "flushed": sum(q == 0 for q in rounded),
        "subnormal": sum(0 < q < min_normal for q in rounded),
        "overflow": sum(q == math.inf for q in rounded),
    }


def flushed_magnitude(values, scale_log2):
    """Share of the sum of magnitudes in values that a cast of the scaled ones makes zero."""
    return sum(abs(x) for x in values if to_fp16(x * 2.0**scale_log2) == 0) / sum(map(abs, values))


def log_uniform(count, low, high, seed):
    noise = random.Random(seed)
    return [struct.unpack("<f", struct.pack("<f", noise.choice((-1, 1)) * 2 ** noise.uniform(low, high)))[0] for _ in range(count)]


class Analyze(WithFolder):
    def write(self, name, tensors):
        path = self.folder / name
        path.write_bytes(safetensors(tensors))
        return path

    def analyze(self, *words):
        return json.loads(self.run_ok("analyze", *words, "--json"))

    def complains(self, *words, status, lines):
        """The words end in `status`; each line of stderr holds its texts of `lines`. Returns what was printed."""
        result = halfscope("analyze", *words)
        self.assertEqual(result.returncode, status, result.stderr)
        said = result.stderr.splitlines()
        self.assertEqual(len(said), len(lines), result.stderr)
        for line, texts in zip(said, lines):
            for text in texts:
                self.assertIn(text, line)
        return result.stdout

    def planted(self):
        """30 of 1000 flushed in one tensor, 2 overflows in another, a third sound."""
        return self.write("planted.safetensors", {
            "embedding": [1e-9] * 30 + [0.5] * 970 + [0.0] * 24,
            "head": [1.0] * 998 + [65520.0, -1e9],
            "sound": [0.25, -0.5, 2.0**-15],
        })

    def test_contract(self):
        result = self.analyze(self.planted())
        self.assertEqual(result["format"], "fp16")
        expected = {
            "embedding": (1024, 24, 30, 0, 0, 0), "head": (1000, 0, 0, 0, 2, 0), "sound": (3, 0, 0, 1, 0, 0),
        }
        self.assertEqual([t["name"] for t in result["tensors"]], list(expected))
        for tensor in result["tensors"]:
            keys = ("elements", "zeros", "flushed", "subnormal", "overflow", "nonfinite")
            self.assertEqual(tuple(tensor[k] for k in keys), expected[tensor["name"]])
        # The halves and 2^29.9 reach down to 2^-24; without the quarter sound would lose a third of its sum.
        self.assertEqual([t["window_log2"] for t in result["tensors"]], [[-23, 16], [-54, -14], [-22, 16]])

    def test_planted_values_are_named(self):
        path = self.planted()
        stdout = self.complains(path, "--fail-on", "flushed>2.9%", "--fail-on", "overflow>0", status=1,
                                lines=[["flushed>2.9%", "embedding (3.00 %)"], ["overflow>0", "head (0.20 %)"]])
        self.assertIn("embedding", stdout)
        for threshold in ("flushed>3%", "flushed > 0.03", "overflow>=0.3%", "zeros>3%", "nonfinite>0", "subnormal>50%"):
            self.run_ok("analyze", path, "--fail-on", threshold)
        self.complains(path, "--fail-on", "flushed>=3%", status=1, lines=[["embedding"]])
        self.complains(path, "--fail-on", "lost_energy>0", status=1, lines=[["embedding (<0.01 %)"]])

    def test_one_scale_for_all(self):
        result = self.analyze(self.planted(), "--exclude", "head")
        self.assertEqual(result["joint_window_log2"], [-22, 16])
        self.assertEqual(result["recommended_scale_log2"], 13)
        self.assertEqual(result["first_hurt"], ["sound"])
        self.assertIn("Loss scale 2^13: torch.amp.GradScaler(init_scale=2.0**13)", result["verdict"])
        self.assertEqual(self.analyze(self.planted(), "--exclude", "head", "--headroom", 1)["recommended_scale_log2"], 15)
        loose = self.analyze(self.planted(), "--include", "emb*", "--include", "so*", "--tolerance", "50%")
        self.assertEqual(loose["joint_window_log2"], [-23, 16])

    def test_no_single_scale(self):
        path = self.write("mixed.safetensors", {
            "quiet": [2.0**-30, 2.0**-20], "quieter": [2.0**-32, 2.0**-18], "loud": [2.0**-5, 30000.0],
            "wide": [2.0**-60, 100.0], "zero": [0.0] * 5, "broken": [2.0**-22, math.inf, math.nan, -math.inf],
        })
        result = self.analyze(path, "--tolerance", "0")
        self.assertIsNone(result["joint_window_log2"])
        self.assertEqual(result["recommended_scale_log2"], 24)  # quiet, quieter and broken fit in 2^8 .. 2^33
        self.assertEqual([(o["name"], o["remedy"]) for o in result["outliers"]],
                         [("loud", "own_scale"), ("wide", "bf16_range")])
        for text in ("no single scale fits", "4 of 6 tensors", "loud (2^", "BF16", "wide (needs", "broken (3)"):
            self.assertIn(text, result["verdict"])
        zero = result["tensors"][4]
        self.assertEqual((zero["window_log2"], zero["any_scale"], zero["cosine"]), (None, True, None))
        self.assertIn("Any loss scale fits", self.analyze(path, "--include", "zero")["verdict"])

    def test_weights_get_no_loss_scale(self):
        layer = {"fc.weight": log_uniform(64, -8, -3, 1)}
        for name, values in (("bn.running_var", [0.5] * 4), ("state.0.exp_avg_sq", [1e-9] * 4), ("ln.weight", [1.5] * 8)):
            path = self.write("model.safetensors", {**layer, name: values})
            result = self.analyze(path)
            self.assertEqual((result["recommended_scale_log2"], result["joint_window_log2"]), (None, None))
            self.assertIn(name, result["weights"])
            text = self.run_ok("analyze", path)
            self.assertTrue(text.startswith("Weights: 'halfscope formats FILE' compares formats"), text)
            for word in ("GradScaler", "window"):
                self.assertNotIn(word, text)
            gradients = self.write("grads.safetensors", {**layer, name: values})
            self.assertIn("GradScaler", self.run_ok("analyze", gradients))
        doubt = self.run_ok("analyze", self.write("model.safetensors", layer), "--quiet")
        self.assertIn("GradScaler", doubt)
        self.assertIn("If these are weights: a loss scale has no effect on them; 'halfscope formats FILE'", doubt)
        self.assertNotIn("If these are weights", self.run_ok("analyze", self.write("grads.safetensors", layer), "--quiet"))

    def check_by_brute_force(self, path, result):
        tensors = read_safetensors(path)
        self.assertEqual({t["name"] for t in result["tensors"]}, set(tensors))
        for tensor in result["tensors"]:
            values = tensors[tensor["name"]]
            for key, count in counts(values).items():
                self.assertEqual(tensor[key], count, (tensor["name"], key))
            self.assertEqual(tensor["elements"], len(values))
            self.assertEqual(tensor["zeros"], sum(x == 0 for x in values))
            if any(x != 0 for x in values):
                high = tensor["window_log2"][1]
                self.assertEqual((counts(values, high)["overflow"], counts(values, high + 1)["overflow"] > 0), (0, True))
                energy = sum(x * x for x in values)
                lost = sum(x * x for x in values if to_fp16(x) == 0)
                self.assertAlmostEqual(tensor["lost_energy"], lost / energy, delta=lost / energy * 2**-13)

    def test_brute_force(self):
        path = self.write("noise.safetensors", {
            f"{low}..{high}": log_uniform(2500, low, high, low) for low, high in ((-40, -10), (-26, -23), (10, 17), (-30, 10))
        })
        result = self.analyze(path)
        self.check_by_brute_force(path, result)
        # Underflow is estimated to some per cent of itself.
        for tensor, values in zip(result["tensors"], read_safetensors(path).values()):
            low = tensor["window_log2"][0]
            self.assertLess(flushed_magnitude(values, low), 0.21, tensor["name"])
            self.assertGreater(flushed_magnitude(values, low - 1), 0.19, tensor["name"])

    def test_brute_force_on_the_checkpoint_of_a_run(self):
        self.run_ok(*self.words("out", "--arms", "fp16_mixed", "--seeds", "1", steps=3))
        files = sorted((self.folder / "out").rglob("*.safetensors"))
        self.assertTrue(files)
        for path in files:
            self.check_by_brute_force(path, self.analyze(path))

    def test_bf16(self):
        values = log_uniform(3000, -140, 127.99, 5) + [3.4e38, 3.3961775e38, 2.0**-134, 2.0**-133]
        (tensor,) = self.analyze(self.write("t.safetensors", {"t": values}), "--format", "bf16")["tensors"]
        for key, count in counts(values, cast=to_bf16, min_normal=2.0**-126).items():
            self.assertEqual(tensor[key], count, key)
        self.assertGreater(tensor["flushed"], 0)
        self.assertGreater(tensor["overflow"], 0)

    def test_cosine(self):
        values = log_uniform(5000, -26, -20, 7)
        (tensor,) = self.analyze(self.write("t.safetensors", {"t": values}))["tensors"]
        rounded = [to_fp16(x) for x in values]
        dot = math.fsum(x * q for x, q in zip(values, rounded))
        norms = math.sqrt(math.fsum(x * x for x in values) * math.fsum(q * q for q in rounded))
        self.assertAlmostEqual(tensor["cosine"], dot / norms, delta=1e-12)
        self.assertLess(tensor["cosine"], 0.9999)

    def test_threads_and_parts_change_nothing(self):
        noise = random.Random(3)
        bits = noise.randbytes(4 * 2_300_000)
        finite = struct.pack("<300000f", *(noise.uniform(-1e-4, 1e-4) for _ in range(300_000)))
        path = self.write("large.safetensors", {"bits": bits, "finite": finite * 9, "empty": b"", "one": [1.0]})
        outputs = {self.run_ok("analyze", path, "--json", "--threads", n) for n in (1, 2, 3)}
        self.assertEqual(len(outputs), 1)
        whole = json.loads(outputs.pop())["tensors"][0]
        cut = 4 * 1_234_567
        first, second = (self.write(f"{n}.safetensors", {"bits": part}) for n, part in ((1, bits[:cut]), (2, bits[cut:])))
        parts = self.analyze(first, second)["tensors"]
        self.assertEqual([p["name"] for p in parts], [f"{first}:bits", f"{second}:bits"])
        for key in ("elements", "zeros", "flushed", "subnormal", "overflow", "nonfinite"):
            self.assertEqual(sum(p[key] for p in parts), whole[key], key)

    def test_a_bad_file_does_not_keep_the_others_from_being_read(self):
        good = self.planted()
        bad = self.folder / "bad.safetensors"
        bad.write_bytes(good.read_bytes()[:-5])
        stdout = self.complains(bad, good, self.folder / "none.npy", "--json", status=2,
                                lines=[["bad.safetensors"], ["none.npy"]])
        self.assertEqual(len(json.loads(stdout)["tensors"]), 3)
        stdout = self.complains(bad, good, "--fail-on", "overflow>0", status=2, lines=[["bad.safetensors"], ["head"]])
        self.assertIn("head", stdout)
        self.refuse("analyze", bad, "--json", says=["bad.safetensors"])

    def test_requests_that_are_wrong(self):
        path = self.planted()
        self.refuse("analyze", says=["FILE"])
        self.refuse("analyze", path, "--format", "fp61", says=["unknown format 'fp61'", "'fp16'"])
        self.refuse("analyze", path, "--format", "fp16/toward_zero", says=["'fp16/toward_zero'", "give --format fp16;", "nearest"])
        self.refuse("analyze", path, "--format", "fp16/saturated", says=["'saturated'", "did you mean 'saturate'"])
        self.refuse("analyze", path, "--dtype", "f33", says=["dtype", "f32, "])
        self.refuse("analyze", path, "--include", "conv*", says=["none of its 3 tensors", "'embedding'"])
        for text in ("flushed", "flushed<2%", "flushed=2%"):
            self.refuse("analyze", path, "--fail-on", text, says=["--fail-on", "METRIC>SHARE", "lost_energy"])
        for share in ("2", "-1%", "%", "", "two", "1e-3", "nan", "101%", "1 2", "0x1"):
            self.refuse("analyze", path, "--fail-on", f"flushed>{share}", says=["--fail-on", "no share"])
        self.refuse("analyze", path, "--tolerance", "2", says=["--tolerance", "no share", "2%"])
        self.refuse("analyze", path, "--fail-on", "flushd>1%", says=["metric", "did you mean 'flushed'"])

    def test_overflow_counts_what_saturates(self):
        values = [440.0, 463.9, 464.0, -500.0, 1e9, 0.001, 1.0]  # OCP's E4M3 ends at 448, and 464 is a tie
        path = self.write("t.safetensors", {"t": values})
        plain = self.analyze(path, "--format", "fp8_e4m3")
        self.assertEqual(plain["tensors"][0]["overflow"], sum(abs(value) > 464 for value in values))
        for form, notes in (("fp8_e4m3/saturate", ["note: fp8_e4m3/saturate: numbers that saturate are counted as overflow"]),
                            ("fp8_e4m3/infinity", []), ("fp8_e4m3/nearest_even", [])):
            result = halfscope("analyze", path, "--format", form, "--json")
            self.assertEqual((result.returncode, result.stderr.splitlines()), (0, notes))
            self.assertEqual(json.loads(result.stdout), plain)

    def test_raw_elements(self):
        path = self.folder / "gradient.bin"
        path.write_bytes(struct.pack("<4d", 1e-300, 1.0, 0.0, 1e300))
        (tensor,) = self.analyze(path, "--dtype", "f64")["tensors"]
        self.assertEqual((tensor["name"], tensor["flushed"], tensor["zeros"], tensor["overflow"]), ("gradient", 1, 1, 1))
        self.refuse("analyze", path, says=["gradient.bin", "--dtype"])



class Averaging(WithFolder):
    def analyze(self, *words):
        path = self.folder / "g.safetensors"
        path.write_bytes(safetensors({"a": [2.0**-20, 0.25], "b": [2.0**-12, 3e-3], "zeros": [0.0]}))
        result = halfscope("analyze", path, *words, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def windows(self, *words):
        return {tensor["name"]: tensor["window_log2"] for tensor in self.analyze(*words)["tensors"]}

    def test_ranks_take_their_binades_at_the_end_that_the_division_chooses(self):
        alone, zeros = self.windows(), self.windows()["zeros"]
        for division, below, above in (("ddp", 6, 0), ("deepspeed", 0, 6), ("fsdp", 3, 3), ("16", 4, 2)):
            with self.subTest(division):
                moved = self.windows("--ranks", 64, "--predivide", division)
                for name in ("a", "b"):
                    self.assertEqual(moved[name], [alone[name][0] + below, alone[name][1] - above])
                self.assertEqual(moved["zeros"], zeros)
        self.assertEqual(self.windows("--ranks", 64), self.windows("--ranks", 64, "--predivide", "ddp"))
        self.assertEqual(self.windows("--ranks", 1), alone)

    def test_the_advice_is_for_what_is_averaged(self):
        alone, averaged = self.analyze(), self.analyze("--ranks", 512, "--predivide", 1)
        self.assertNotIn("ranks", alone)
        self.assertEqual((averaged["ranks"], averaged["predivide"]), (512, 1))
        self.assertEqual(averaged["joint_window_log2"][1], alone["joint_window_log2"][1] - 9)
        self.assertEqual(averaged["recommended_scale_log2"], alone["recommended_scale_log2"] - 9)
        path = self.folder / "g.safetensors"
        text = halfscope("analyze", path, "--ranks", 64, "--predivide", 8).stdout
        self.assertIn("averaging over 64 ranks", " ".join(text.split()))

    def test_the_overflow_of_many_ranks_has_its_cause_and_its_remedy(self):
        """Gradients of 200 that 512 ranks add up in FP16 before they divide: public case 32."""
        path = self.folder / "g.safetensors"
        path.write_bytes(safetensors({"large": [200.0], "small": [1e-6]}))
        for division, before, scale in (("1", 1, -4), ("512", 512, 5), ("32", 32, 1)):
            text = " ".join(halfscope("analyze", path, "--ranks", 512, "--predivide", division).stdout.split())
            self.assertIn(f"averaging over 512 ranks in fp16, divided by {before} before the sum", text)
            self.assertIn(f"Loss scale 2^{scale}: torch.amp.GradScaler(init_scale=2.0**{scale})", text)

    def test_ranks_and_divisions_that_are_wrong(self):
        path = self.folder / "g.safetensors"
        path.write_bytes(safetensors({"a": [1.0]}))
        for words, says in ((("--predivide", "8"), "--ranks"), (("--ranks", "0"), "65536"),
                            (("--ranks", "8", "--predivide", "fsp"), "did you mean 'fsdp'"),
                            (("--ranks", "8", "--html", self.folder / "page.html"), "--html")):
            self.refuse("analyze", path, *words, says=[says])
        self.assertFalse((self.folder / "page.html").exists())

if __name__ == "__main__":
    unittest.main()
