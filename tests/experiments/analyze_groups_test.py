"""halfscope analyze: tensors that are added up, and the rows that are shown."""

import csv
import io
import json
import math
import unittest

from program import PROGRAM, OnTerminal, halfscope
from tensor_files import TINY, Files, npy, write_npz


class Groups(Files):
    def test_groups_add_up(self):
        shards = self.shards()
        by_part = self.analyze(*shards, "--group", "layers.*.{attn,mlp}")["tensors"]
        self.assertEqual([(t["name"], t["tensors"], t["elements"], t["flushed"]) for t in by_part],
                         [("layers.*.attn", 4, 40, 6), ("layers.*.mlp", 4, 80, 0)])
        by_layer = self.analyze(*shards, "--group", "layers.{*}")["tensors"]
        self.assertEqual([(t["name"], t["tensors"], t["flushed"]) for t in by_layer],
                         [(f"layers.{i}", 2, i) for i in range(4)])
        some = self.analyze(*shards, "--group", "*.mlp")["tensors"]
        self.assertEqual([t["tensors"] for t in some], [1, 1, 1, 1, 4])
        self.assertIn("layers.*.attn", self.run_ok("analyze", *shards, "--group", "layers.*.{attn,mlp}"))
        self.assertEqual(halfscope("analyze", *shards, "--group", "layers.{*}", "--fail-on", "flushed>9%").returncode, 1)

    def test_shards_of_one_tensor_are_one(self):
        values = [TINY] * 3 + [2.0**-20] * 4 + [7.0] * 5
        whole = self.analyze(self.write("whole.safetensors", {"w": values}))["tensors"][0]
        parts = [self.write(f"rank{i}.safetensors", {"w": values[i::3]}) for i in range(3)]
        merged = self.analyze(*parts, "--group", "{**}")["tensors"]
        self.assertEqual(len(merged), 1)
        for key in ("name", "elements", "zeros", "flushed", "subnormal", "overflow", "max_abs", "window_log2", "flushed_share"):
            self.assertEqual(merged[0][key], whole[key], key)
        self.assertEqual(merged[0]["tensors"], 3)
        self.assertTrue(math.isclose(merged[0]["cosine"], whole["cosine"], rel_tol=1e-12))

    def test_a_damaged_shard_is_in_no_group(self):
        good = self.write("a.safetensors", {"l.0.w": [TINY] * 4})
        bad = write_npz(self.model / "b.npz", {"l.1.w.npy": npy([TINY] * 4), "l.2.w.npy": npy([TINY] * 40_000)})
        content = bytearray(bad.read_bytes())
        content[90_000] ^= 1
        bad.write_bytes(content)
        result = halfscope("analyze", good, bad, "--group", "l.*", "--json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("checksum", result.stderr)
        self.assertEqual([(t["name"], t["elements"]) for t in json.loads(result.stdout)["tensors"]], [("l.*", 4)])

    def test_patterns_that_are_none(self):
        (path,) = self.shards(1)
        for pattern in ("", "a{b", "a}b", "{}", "{a{b}}"):
            self.refuse("analyze", path, "--group", pattern, says=["--group", "layers.{*}"])


class Views(Files):
    def test_sort_top_and_only(self):
        shards = self.shards()
        attn = [f"layers.{i}.attn.weight" for i in range(4)]
        self.assertEqual(self.names(*shards, "--sort", "flushed", "--top", 3), attn[:0:-1])
        self.assertEqual(self.names(*shards, "--only", "flushed>=20%"), attn[2:])
        self.assertEqual(self.names(*shards, "--only", "flushed>0", "--only", "zeros>0"), [])
        self.assertEqual(self.names(*shards, "--sort", "elements")[0], "layers.0.mlp.weight")
        self.assertEqual(self.names(*shards, "--sort", "name", "--top", 1), attn[:1])
        self.refuse("analyze", *shards, "--sort", "flushd", says=["key of --sort", "did you mean 'flushed'"])
        self.refuse("analyze", *shards, "--only", "flushed", says=["--only", "METRIC>SHARE"])
        self.refuse("analyze", *shards, "--only", "relative_error>1%", says=["relative_error", "--against"])

    def test_many_tensors_make_a_table_of_forty_lines_with_the_worst(self):
        path = self.write("m.safetensors", {f"layer{i:03}": [TINY] * (i % 50) + [1.0] * 50 for i in range(300)})
        text = self.run_ok("analyze", path)
        self.assertLessEqual(len(text.splitlines()), 40)
        self.assertIn("20 of 300 tensors", text)
        self.assertIn("--top all shows all", text)
        rows = [line.split()[0] for line in text.splitlines() if line.startswith("  layer")]
        self.assertEqual(rows, [f"layer{i:03}" for worst in (49, 48, 47, 46) for i in range(worst, 300, 50)][:20])
        self.assertEqual(len([line for line in self.run_ok("analyze", path, "--top", "all").splitlines() if line.startswith("  layer")]), 300)
        self.assertEqual(len(self.names(path)), 300)
        for top in ("0", "-1", "2.5", "al", "1e3"):
            self.refuse("analyze", path, f"--top={top}", says=["--top", f"'{top}'", "or all"])
        for columns in (80, 120):
            shown = OnTerminal([PROGRAM, "analyze", path], columns)
            self.assertEqual(shown.returncode, 0)
            self.assertLessEqual(max(map(len, shown.text.splitlines())), columns)
            self.assertLessEqual(len(shown.text.splitlines()), 40)
        self.assertIn("left out, the terminal is too narrow:", OnTerminal([PROGRAM, "analyze", path], 80).text)

    def test_zeros_alone_fit_in_a_narrow_terminal(self):
        shown = OnTerminal([PROGRAM, "analyze", self.write("z.safetensors", {"z": [0.0] * 4})], 40)
        self.assertLessEqual(max(map(len, shown.text.splitlines())), 40)
        self.assertIn("\nwindow of all: any\n", shown.text)
        self.assertIn("Any loss scale fits", shown.text)
        text = self.run_ok("analyze", self.write("t.safetensors", {"t": [1e-45] * 3}), "--format", "fp8_e4m3")
        self.assertIn("\nwindow of all: none\n", text)
        self.assertIn("No scale fits", text)
        self.assertNotIn("ny loss scale fits", text)

    def test_the_status_line_counts_the_files(self):
        self.shards(5)
        shown = OnTerminal([PROGRAM, "analyze", self.model, "--table", "csv"], 60, stream="stderr")
        self.assertEqual(shown.returncode, 0)
        self.assertIn("1 of 5 files, ", shown.text)
        self.assertNotIn("million", shown.text)
        self.assertTrue(shown.text.endswith("\r\x1b[K"))  # and takes it away
        self.assertLessEqual(max(len(line) for line in shown.text.replace("\x1b[K", "").split("\r")), 60)

    def test_quiet_and_findings_are_short(self):
        path = self.write("m.safetensors", {f"layer{i:03}": [TINY] * 10 + [1.0] for i in range(100)})
        quiet = self.run_ok("analyze", path, "-q")
        self.assertEqual(len(quiet.splitlines()), 4)
        self.assertTrue(quiet.startswith("Loss scale 2^"))
        self.assertIn("window of all", quiet)
        result = halfscope("analyze", path, "-q", "--fail-on", "flushed>1%")
        self.assertEqual(result.returncode, 1)
        self.assertIn("and 92 more", result.stderr)
        self.assertLess(len(result.stderr), 400)

    def test_other_formats_hold_the_same(self):
        shards = self.shards()
        found = self.analyze(*shards)
        for key, count in (("flushed_share", "flushed"), ("subnormal_share", "subnormal")):
            for tensor in found["tensors"]:
                self.assertEqual(tensor[key], tensor[count] / (tensor["elements"] - tensor["zeros"]))
        lines = [json.loads(line) for line in self.run_ok("analyze", *shards, "--table", "json").splitlines()]
        self.assertEqual([line["tensor"] for line in lines[:-1]], found["tensors"])
        self.assertEqual(lines[-1]["all"]["verdict"], found["verdict"])
        rows = list(csv.DictReader(io.StringIO(self.run_ok("analyze", *shards, "--table", "csv"))))
        self.assertEqual([int(row["elements"]) for row in rows], [t["elements"] for t in found["tensors"]])
        self.assertEqual([float(row["flushed"]) for row in rows], [t["flushed_share"] for t in found["tensors"]])
        self.assertIn("| layers.0.attn.weight | 10 |", self.run_ok("analyze", *shards, "--table", "markdown"))
        self.assertIn("\\begin{tabular}", self.run_ok("analyze", *shards, "--table", "latex"))
        self.refuse("analyze", *shards, "--table", "cvs", says=["table format", "did you mean 'csv'"])

    def test_threads_change_no_byte(self):
        self.shards(30)
        for words in (("--json",), ("--group", "layers.*.{attn,mlp}", "--json"), ("--group", "{**}"), ()):
            outputs = {self.run_ok("analyze", self.model, *words, "--threads", threads) for threads in (1, 2, 5)}
            self.assertEqual(len(outputs), 1, words)


if __name__ == "__main__":
    unittest.main()
