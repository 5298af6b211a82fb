"""Reads what Python's zipfile and NumPy write: foreign_files_test.py ROOT DUMP-PROGRAM

NumPy is looked for in ROOT/.venv too, which the tools make; without it only its files are left out.
"""

import io
import itertools
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

try:
    import numpy
except ImportError:
    environment = Path(sys.argv[1]) / ".venv/bin/python"
    if environment.exists() and Path(sys.executable).absolute() != environment.absolute():
        os.execv(environment, [environment, *sys.argv])
    numpy = None

DUMP = sys.argv.pop()
ROOT = sys.argv.pop()


def dump(path):
    """The tensors and the skipped members that the reader finds, by name, and what it says on stderr."""
    result = subprocess.run([DUMP, path], capture_output=True, text=True, timeout=60)
    entries = [json.loads(line) for line in result.stdout.splitlines()]
    return {entry.pop("name"): entry for entry in entries}, result.stderr


def array(values):
    """A one-dimensional .npy of FP32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}".ljust(117) + "\n"
    data = struct.pack(f"<{len(values)}f", *values)
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data


def bits(values):
    return struct.pack(f">{len(values)}f", *values).hex()


class Unseekable(io.RawIOBase):
    """A pipe, say: zipfile then writes sizes and checksums behind the data."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


class Archives(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "a.npz"
        self.values = {"first": [1.5, -2.0, 0.0], "second.weight": [i * 0.25 for i in range(50_000)], "none": []}

    def check(self):
        found, message = dump(self.path)
        self.assertEqual(message, "")
        self.assertEqual({name: entry["bits"] for name, entry in found.items()},
                         {name: bits(values) for name, values in self.values.items()})  # fmt: skip

    def test_every_way_of_writing_a_member(self):
        packings, no_yes = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), (False, True)
        for packing, zip64, pipe in itertools.product(packings, no_yes, no_yes):
            with self.subTest(packing=packing, zip64=zip64, pipe=pipe):
                with open(self.path, "wb") as file:
                    with zipfile.ZipFile(Unseekable(file) if pipe else file, "w", packing) as archive:
                        for name, values in self.values.items():
                            with archive.open(f"{name}.npy", "w", force_zip64=zip64) as member:
                                member.write(array(values))
                self.check()

    def test_more_members_than_the_short_count_holds(self):
        self.values = {f"t{i}": [float(i)] for i in range(66_000)}
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, values in self.values.items():
                archive.writestr(f"{name}.npy", array(values))
        self.check()

    def test_other_packings_are_refused(self):
        for packing in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            with zipfile.ZipFile(self.path, "w", packing) as archive:
                archive.writestr("w.npy", array([1.0]))
            self.assertIn(f'member "w.npy": zip method {packing}', dump(self.path)[1])


def rounded_to_odd(values):
    """Doubles to FP32: towards zero, then the last bit set where that lost something."""
    wide = values.astype("=f8")
    with numpy.errstate(over="ignore"):
        nearest = wide.astype("=f4")
    codes = nearest.view("=u4") - (abs(nearest.astype("=f8")) > abs(wide))
    return numpy.where(nearest.astype("=f8") == wide, codes, codes | 1).astype("=u4")


@unittest.skipIf(numpy is None, "NumPy is not installed")
class FromNumPy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.generator = numpy.random.default_rng(1)

    def values(self, descr, shape=(7, 5, 3)):
        exponents = self.generator.integers(-30, 15, shape).astype("=f8")
        return (self.generator.standard_normal(shape) * 2.0**exponents).astype(descr)

    def expected(self, values):
        stored = values.ravel()
        codes = rounded_to_odd(stored) if values.itemsize == 8 else stored.astype("=f4").view("=u4")
        return "".join(f"{code:08x}" for code in codes)

    def test_every_type_order_and_version(self):
        types = [order + kind for order in "<>" for kind in ("f2", "f4", "f8")]
        for descr, order, version in itertools.product(types, "CF", ((1, 0), (2, 0), (3, 0))):
            with self.subTest(descr=descr, order=order, version=version):
                values = numpy.array(self.values(descr), order=order)
                with open(self.folder / "w.npy", "wb") as file:
                    numpy.lib.format.write_array(file, values, version=version)
                found = dump(self.folder / "w.npy")[0]["w"]
                self.assertEqual(found["shape"], [7, 5, 3])
                self.assertEqual(found["type"], {"2": "f16", "4": "f32", "8": "f64"}[descr[-1]])
                self.assertEqual(found["bits"], self.expected(values))

    def test_archives(self):
        long = self.values("<f4", (100_000,))
        arrays = {"conv.weight": self.values("<f2"), "bias": long, "scale": self.values("<f8", ())}
        for save in (numpy.savez, numpy.savez_compressed):
            save(self.folder / "a.npz", step=numpy.int64(3), **arrays)
            found, message = dump(self.folder / "a.npz")
            self.assertEqual(message, "")
            self.assertIn('"<i8"', found.pop("step")["skipped"])
            self.assertEqual({name: entry["bits"] for name, entry in found.items()},
                             {name: self.expected(values) for name, values in arrays.items()})  # fmt: skip

    def test_objects_and_integers_are_refused(self):
        for values, reason in ((numpy.array([{}]), "pickled Python objects"), (numpy.arange(3), "only f2, f4 and f8")):
            numpy.save(self.folder / "o.npy", values, allow_pickle=True)
            self.assertIn(reason, dump(self.folder / "o.npy")[1])


if __name__ == "__main__":
    unittest.main()
