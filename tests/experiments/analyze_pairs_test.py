"""halfscope analyze beside references, and the order of the elements of two files."""

import json
import math
import struct
import unittest
import zipfile

from program import halfscope
from tensor_files import Files, npy


class References(Files):
    def test_error_and_cosine(self):
        noisy = {"a": [1.0, 2.0, 2.5], "b": [1.0, 0.0], "mine": [1.0]}
        exact = {"a": [1.0, 2.0, 2.0], "b": [0.0, 1.0], "other": [1.0]}
        path, reference = self.write("n.safetensors", noisy), self.write("r.safetensors", exact)
        a, b, mine = self.analyze(path, "--against", reference)["tensors"]
        self.assertTrue(math.isclose(a["relative_error"], 0.5 / 3))
        self.assertTrue(math.isclose(a["reference_cosine"], 10 / (math.sqrt(11.25) * 3)))
        self.assertEqual((b["relative_error"], b["reference_cosine"]), (math.sqrt(2), 0))
        self.assertNotIn("relative_error", mine)
        result = halfscope("analyze", path, "--against", reference, "--fail-on", "relative_error>100%", "--sort", "relative_error", "--top", 1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("b (141.42 %)", result.stderr)
        self.assertIn("1.41e+00", result.stdout)
        (group,) = self.analyze(path, "--against", reference, "--include", "[ab]", "--group", "?")["tensors"]
        self.assertTrue(math.isclose(group["relative_error"], math.sqrt(2.25 / 10)))

    def test_references_in_shards_and_single_arrays(self):
        path = self.write("n.safetensors", {"a": [1.0], "b": [3.0]})
        shards = [self.write(f"r{name}.safetensors", {name: [2.0]}) for name in "ab"]
        found = self.analyze(path, "--against", shards[0], "--against", shards[1])["tensors"]
        self.assertEqual([t["relative_error"] for t in found], [0.5, 0.5])
        self.assertEqual(found, self.analyze(path, "--against", self.model / "r?.safetensors")["tensors"])
        for name, values in (("g16", [1.0, 2.0]), ("g32", [1.0, 4.0])):
            (self.model / f"{name}.npy").write_bytes(npy(values))
        (single,) = self.analyze(self.model / "g16.npy", "--against", self.model / "g32.npy")["tensors"]
        self.assertTrue(math.isclose(single["relative_error"], 2 / math.sqrt(17)))

    def test_references_that_do_not_match(self):
        path = self.write("n.safetensors", {"a": [1.0], "b": [2.0]})
        self.refuse("analyze", path, "--against", self.write("r.safetensors", {"c": [1.0], "d": [1.0]}), says=["r.safetensors", "none of its 2 tensors", "'c'"])
        self.refuse("analyze", path, "--against", self.write("s.safetensors", {"a": [1.0, 2.0], "d": [1.0]}), says=["'a'", "(1)", "(2)", "n.safetensors", "s.safetensors"])
        self.refuse("analyze", path, "--against", self.model / "r.safetensors", "--against", self.write("t.safetensors", {"c": [1.0]}), says=["'c'", "r.safetensors", "t.safetensors"])
        self.refuse("analyze", "--against", path, says=["FILE"])


class Orders(Files):
    """The matrix (0 1 2) (3 4 5) in the orders of C and of Fortran."""

    ROWS, COLUMNS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]

    def matrix(self, name, fortran, packing=None):
        header = f"{{'descr': '<f4', 'fortran_order': {fortran}, 'shape': (2, 3), }}\n".encode()
        array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
        array += struct.pack("<6f", *(self.COLUMNS if fortran else self.ROWS))
        path = self.model / name
        if packing is None:
            path.write_bytes(array)
        else:
            with zipfile.ZipFile(path, "w", packing) as archive:
                archive.writestr("m.npy", array)
        return path

    def test_pairs_follow_the_order(self):
        files = [self.matrix(f"{order}{ending}", order, packing) for order in (False, True)
                 for ending, packing in ((".npy", None), (".npz", zipfile.ZIP_STORED), ("z.npz", zipfile.ZIP_DEFLATED))]
        for one in files:
            for other in files:
                with self.subTest(one=one.name, other=other.name):
                    (tensor,) = self.analyze(one, "--against", other)["tensors"]
                    self.assertEqual((tensor["relative_error"], tensor["reference_cosine"]), (0, 1))
                    (update,) = json.loads(self.run_ok("updates", other, "--weights", one, "--json"))["updates"]
                    self.assertEqual((update["elements"], update["nonzero"], update["lost"]), (6, 5, 0))


if __name__ == "__main__":
    unittest.main()
