"""halfscope updates: which updates weights in a format lose."""

import json
import math
import unittest

from program import halfscope
from tensor_files import Files, npy


class Updates(Files):
    def count(self, *words):
        return json.loads(self.run_ok("updates", *words, "--json"))

    def pair(self, weights, updates):
        """The words for a file of each."""
        return self.write("u.safetensors", updates), "--weights", self.write("w.safetensors", weights)

    def two_tensors(self):
        return self.pair({"a": [1.0] * 1000, "b": [0.5, 2.0, 0.0]},
                         {"a": [2.0**-11] * 250 + [2.0**-10] * 700 + [0.0] * 50, "b": [-(2.0**-14), 1.0, 2.0**-25]})

    def test_counts_of_each_tensor_and_the_share_of_all(self):
        found = self.count(*self.two_tensors())
        self.assertEqual(found["updates"], [
            {"name": "a", "elements": 1000, "nonzero": 950, "lost": 250, "nonfinite": 0, "lost_share": 250 / 950},
            {"name": "b", "elements": 3, "nonzero": 3, "lost": 2, "nonfinite": 0, "lost_share": 2 / 3},
        ])
        line = "lost: 26.44 % of all nonzero updates; an FP32 master copy of the weights keeps them"
        self.assertEqual((found["format"], found["verdict"]), ("fp16", line))
        self.assertEqual(self.run_ok("updates", *self.two_tensors(), "--quiet"), line + "\n")
        self.assertIn("26.32 %", self.run_ok("updates", *self.two_tensors(), "--include", "a"))
        self.assertTrue(self.run_ok("updates", *self.two_tensors(), "--table", "csv").startswith("update,elements,nonzero,lost,"))

    def test_the_format_is_that_of_the_stored_weights(self):
        words = self.pair({"w": [1.0] * 4}, {"w": [2.0**-7, 2.0**-8, 2.0**-10, 2.0**-11]})
        self.assertEqual([self.count(*words, "--format", name)["updates"][0]["lost"] for name in ("fp16", "bf16", "fp32")], [1, 3, 0])

    def test_a_limit_names_the_tensors_over_it(self):
        for limit, status, says in (("50%", 1, "b (66.67 %)"), ("20%", 1, "a (26.32 %), b (66.67 %)"), ("0.7", 0, "")):
            result = halfscope("updates", *self.two_tensors(), "--max-lost", limit)
            self.assertEqual(result.returncode, status)
            self.assertIn(says, result.stderr)
            self.assertIn("lost: 26.44 %", result.stdout)
        self.refuse("updates", *self.two_tensors(), "--max-lost", "2", says=["--max-lost", "'2'", "2%"])

    def test_tensors_that_do_not_match(self):
        weights = self.write("w.safetensors", {"a": [1.0], "b": [1.0, 2.0]})
        other = self.write("u.safetensors", {"a": [1.0], "c": [1.0, 2.0]})
        shape = self.write("s.safetensors", {"a": [1.0], "b": [1.0] * 3})
        self.refuse("updates", other, "--weights", weights, says=["w.safetensors", "no tensor 'c'", "--exclude"])
        self.refuse("updates", other, "--weights", weights, "--exclude", "c", says=["u.safetensors", "no tensor 'b'"])
        self.refuse("updates", shape, "--weights", weights, says=["'b'", "(2)", "(3)", "w.safetensors", "s.safetensors"])
        self.refuse("updates", weights, says=["--weights"])
        self.refuse("updates", "--weights", weights, says=["FILE"])
        self.refuse("updates", self.folder / "none.npz", "--weights", weights, says=["none.npz"])

    def test_single_arrays_need_no_common_name(self):
        for name, values in (("w", [1.0, 1.0]), ("dw", [2.0**-12, 1.0])):
            (self.model / f"{name}.npy").write_bytes(npy(values))
        self.assertEqual(self.count(self.model / "dw.npy", "--weights", self.model / "w.npy")["updates"][0]["lost"], 1)

    def test_shards_folders_and_globs(self):
        weights = [self.write(f"w{i}.safetensors", {f"l{i}": [1.0] * 4}) for i in range(3)]
        updates = [self.write(f"u{i}.safetensors", {f"l{i}": [2.0**-12] * i + [1.0] * (4 - i)}) for i in range(3)]
        words = [*updates, *(word for path in weights for word in ("--weights", path))]
        found = self.count(*words)
        self.assertEqual([(u["name"], u["lost"]) for u in found["updates"]], [("l0", 0), ("l1", 1), ("l2", 2)])
        self.assertEqual(found, self.count(self.model / "u*", "--weights", self.model / "w*"))
        self.assertIn("25.00 % of all nonzero updates", self.run_ok("updates", *words))

    def test_nothing_to_judge_is_no_success(self):
        words = self.pair({"w": [1.0] * 2}, {"w": [math.nan, math.inf]})
        result = halfscope("updates", *words, "--max-lost", "1%")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nothing to judge", result.stderr)
        self.assertIn("no update is finite", result.stdout)
        self.assertEqual(result.stdout.splitlines()[3].split(), ["w", "2", "2", "2", "0", "-"])
        some = self.pair({"w": [1.0] * 2}, {"w": [math.nan, 2.0**-12]})
        self.assertIn("100.00 % of all nonzero finite", self.run_ok("updates", *some))

    def test_analyze_names_the_command_that_took_its_options_over(self):
        for words, line in ((("--weights", "w.npz", "--updates", "u.npz"), "--weights w.npz u.npz"),
                            (("--weights=w.npz", "--updates=u v.npz", "-q"), "--weights=w.npz 'u v.npz' -q"),
                            (("--updates", "u", "--weights", "w", "--fail-on", "lost_updates>2%"), "u --weights w --max-lost 2%"),
                            (("--fail-on=lost_updates>2%", "u"), "--max-lost=2% u")):
            self.refuse("analyze", *words, says=["analyze has no --", "since 0.1.0", f"type: halfscope updates {line}"])


if __name__ == "__main__":
    unittest.main()
