"""Codes of small formats against ml_dtypes, where that package is installed: every code read, and floats around every
code and at random brought to the format."""

import importlib.util
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()
HAS_PEER = importlib.util.find_spec("ml_dtypes") and importlib.util.find_spec("numpy")
NAMES = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3b11fnuz",
    "float8_e4m3",
    "float8_e3m4",
    "float6_e3m2fn",
    "float6_e2m3fn",
    "float4_e2m1fn",
)


def answers(lines, *options):
    """The codes that `calc round` prints for each line."""
    command = [PROGRAM, "calc", "round", "--stdin", *options]
    result = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return [int(line.split()[0], 16) for line in result.stdout.splitlines()]


@unittest.skipUnless(HAS_PEER, "ml_dtypes is not installed")
class SameCodes(unittest.TestCase):
    def formats(self):
        import ml_dtypes
        import numpy as np

        for name in NAMES:
            dtype = getattr(ml_dtypes, name)
            codes = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8)
            with self.subTest(name):
                yield name, dtype, codes.view(dtype).astype(np.float32)

    def test_every_code_is_the_same_number(self):
        import numpy as np

        for name, _, expected in self.formats():
            lines = [f"{code:#x}" for code in range(len(expected))]
            found = np.array(answers(lines, "--from", name, "--format", "fp32"), dtype=np.uint32).view(np.float32)
            self.assertTrue(np.array_equal(np.isnan(found), np.isnan(expected)))
            numbers = ~np.isnan(expected)
            self.assertTrue(np.array_equal(found[numbers].view(np.uint32), expected[numbers].view(np.uint32)))

    def test_floats_get_the_same_code(self):
        import numpy as np

        generator = np.random.default_rng(1)
        for name, dtype, numbers in self.formats():
            finite = np.unique(numbers[np.isfinite(numbers)])
            middles = (finite[1:] + finite[:-1]) / 2
            top = finite[-1] + (finite[-1] - finite[-2]) / np.array([2, 1], dtype=np.float32)
            points = np.concatenate([finite, middles, top, -top, np.array([0.0, -0.0, np.inf, -np.inf], np.float32)])
            near = [np.nextafter(points, direction, dtype=np.float32) for direction in (np.inf, -np.inf)]
            size = np.exp2(generator.uniform(-25, 25, 4000))
            scattered = (generator.choice([-1, 1], 4000) * size).astype(np.float32)
            floats = np.concatenate([points, *near, scattered])
            expected = floats.astype(dtype)
            found = answers([f"{bits:#010x}" for bits in floats.view(np.uint32)], "--format", name)
            is_nan = np.isnan(expected.astype(np.float32))
            codes = np.array(found, dtype=np.uint8)
            self.assertTrue(np.array_equal(np.isnan(codes.view(dtype).astype(np.float32)), is_nan))
            self.assertTrue(np.array_equal(codes[~is_nan], expected.view(np.uint8)[~is_nan]))


if __name__ == "__main__":
    unittest.main()
