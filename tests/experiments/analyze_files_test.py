"""halfscope analyze over the files of a real model: shards, folders, groups, what is shown, and references."""

import csv
import io
import json
import math
import os
import pickle
import struct
import subprocess
import time
import unittest
import zipfile

from program import PROGRAM, OnTerminal, halfscope
from tensor_files import TINY, Files, npy, safetensors, write_npz


class Paths(Files):
    def test_folders_globs_and_indices_stand_for_their_files(self):
        shards = self.shards(3)
        self.write("below/x.safetensors", {"below": [1.0]})
        self.write(".hidden/y.safetensors", {"hidden": [1.0]})
        (self.model / "notes.txt").write_text("no tensors")
        expected = [f"layers.{i}.{part}.weight" for i in range(3) for part in ("attn", "mlp")]
        index = self.model / "model.safetensors.index.json"
        weight_map = {name: shards[int(name.split(".")[1])].name for name in expected}
        index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
        self.assertEqual(self.names(self.model), ["below", *expected])
        self.assertEqual(self.names(self.model / "shard-*.safetensors"), expected)
        self.assertEqual(self.names(self.model / "shard-00{0,2}.safetensors"), expected[:2] + expected[4:])
        self.assertEqual(self.names(index), expected)
        self.assertEqual(self.names(*shards, shards[0], self.model / "shard-*"), expected)  # each file once
        os.symlink(shards[0], self.model / "again.safetensors")
        self.assertEqual(self.analyze(self.model)["files"], 4)

    def test_a_name_with_brackets_is_a_file_first(self):
        path = self.write("a[1].safetensors", {"x": [1.0]})
        self.assertEqual(self.names(path), ["x"])

    def test_words_that_stand_for_no_file(self):
        empty = self.model / "empty"
        empty.mkdir()
        self.refuse("analyze", empty, says=["empty", "no .npy, .npz or .safetensors file", "no checkpoint of PyTorch's"])
        self.refuse("analyze", self.model / "*.none", says=["no file matches", "*.none"])
        self.refuse("analyze", "-", says=["standard input", "save it to a file"])
        for text, says in (("[1]", "weight_map"), ('{"weight_map": {"a": 5}}', "'a' is in 5"),
                           ('{"weight_map": {"a": "../x.safetensors"}}', "beside the index"),
                           ('{"weight_map": {}}', "names no file")):
            index = self.model / "m.index.json"
            index.write_text(text)
            self.refuse("analyze", index, says=["m.index.json", says])
        index.write_text('{"weight_map": {"a": "gone.safetensors"}}')
        self.refuse("analyze", index, says=["gone.safetensors", "No such file"])

    def test_an_index_and_its_shards_must_agree(self):
        first, second = self.write("a.safetensors", {"x": [1.0], "y": [TINY]}), self.write("b.safetensors", {"z": [1.0]})
        index = self.model / "model.safetensors.index.json"
        for weight_map, count, says in (
            ({"x": first.name, "y": first.name, "z": second.name}, 0, []),
            ({"x": first.name, "y": first.name, "z": second.name, "c": second.name, "d": second.name},
             1, ["b.safetensors what it lacks: tensor 'c' and 1 more"]),
            ({"x": first.name, "z": second.name}, 1, ["does not name what", "a.safetensors holds: tensor 'y'"]),
            ({"x": first.name, "y": second.name, "z": second.name}, 2, ["a.safetensors holds: tensor 'y'", "b.safetensors what it lacks: tensor 'y'"]),
            ({"x": first.name, "y": first.name, "z": "gone.safetensors"}, 1, ["gone.safetensors: No such file"]),
            ({"x": first.name, "y": first.name, **{f"t{i}": f"gone{i}.safetensors" for i in range(40)}}, 2,
             ["index.json: 40 of the 41 files that it names are missing", "gone0.safetensors: No such file"]),
        ):
            index.write_text(json.dumps({"weight_map": weight_map}))
            for word in (index, self.model):
                with self.subTest(word=word, weight_map=weight_map):
                    result = halfscope("analyze", word, "--json")
                    self.assertEqual(result.returncode, 2 if count else 0, result.stderr)
                    self.assertEqual(len(result.stderr.splitlines()), count)
                    for text in says:
                        self.assertIn(text, result.stderr)
                    self.assertLessEqual({"x", "y"}, {t["name"].split(":")[-1] for t in json.loads(result.stdout)["tensors"]})
        index.write_text(json.dumps({"weight_map": {"x": first.name, "z": second.name}}))
        self.refuse("analyze", second, "--against", index, says=["does not name", "'y'"])

    def test_a_bad_entry_does_not_block_a_folder(self):
        self.write("a.safetensors", {"x": [1.0]})
        os.symlink("self", self.model / "self")
        os.symlink("loop.npy", self.model / "loop.npy")
        result = halfscope("analyze", self.model, "--json")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\A[^\n]*loop\.npy[^\n]*\n\Z")
        self.assertEqual([t["name"].split(":")[-1] for t in json.loads(result.stdout)["tensors"]], ["x"])
        (self.model / "loop.npy").unlink()
        self.assertEqual(self.names(self.model), ["x"])
        for name in ("model.safetensors.index.json", "config.json"):
            os.mkfifo(self.model / name)  # which nobody writes to
        began = time.monotonic()
        self.assertEqual(self.names(self.model), ["x"])
        self.assertLess(time.monotonic() - began, 5, "it has waited for a pipe")
        if os.geteuid() != 0:
            self.skipTest("needs root to run as somebody who may not read everything")
        (self.model / "below").mkdir(mode=0o700)
        os.chmod(self.folder, 0o755)
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM, "analyze", self.model, "--json"]
        result = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"\A[^\n]*cannot read [^\n]*/below: Permission denied\n\Z")
        self.assertEqual([t["name"] for t in json.loads(result.stdout)["tensors"]], ["x"])

    def test_extensions_in_capitals(self):
        path = self.model / "G.NPY"
        path.write_bytes(npy([1.0, TINY]))
        self.assertEqual(self.analyze(path)["tensors"][0]["flushed"], 1)
        self.assertEqual(self.names(self.model), ["G"])


class Checkpoints(Files):
    """PyTorch's, without PyTorch: a pickle with persistent ids in a zip archive."""

    def checkpoint(self, name, root, storage=b""):
        with zipfile.ZipFile(self.model / name, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(root, 2))
            archive.writestr("archive/data/0", storage)
        return self.model / name

    def test_a_hostile_pickle_runs_nothing(self):
        mark = self.folder / "was-run"

        class Hostile:
            def __init__(self, function, *arguments):
                self.call = function, arguments

            def __reduce__(self):
                return self.call

        for function, name in ((os.system, "posix.system"), (eval, "builtin__.eval"), (exec, "builtin__.exec"), (open, "io.open"),
                               (subprocess.Popen, "Popen"), (getattr, "getattr"), (__import__, "__import__")):
            with self.subTest(function=name):
                first = f"open({str(mark)!r}, 'w')" if function in (eval, exec) else str(mark)
                path = self.checkpoint("bad.pt", {"w": Hostile(function, f"touch {mark}" if function is os.system else first)})
                self.refuse("analyze", path, says=["bad.pt", name, "nothing is imported or run"])
                self.assertFalse(mark.exists())
        with (self.model / "raw.pt").open("wb") as file:
            pickle.dump(Hostile(os.system, f"touch {mark}"), file)
        self.refuse("analyze", self.model / "raw.pt", says=["a pickle of Python's"])
        self.assertFalse(mark.exists())

    def test_a_checkpoint_without_tensors(self):
        self.refuse("analyze", self.checkpoint("args.bin", {"lr": 1e-3, "name": "x"}), says=["args.bin", "holds no tensor"])

    def test_a_folder_says_what_it_does_not_read(self):
        for rank in range(3):
            self.checkpoint(f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt", {})
        (self.model / "config.json").write_text("{}")
        self.refuse("analyze", self.model, says=["no .npy, .npz or .safetensors", "zero_pp_rank_0", "zero_to_fp32.py"])
        self.write("a.safetensors", {"x": [1.0]})
        (self.model / "w.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
        found = self.analyze(self.model)
        self.assertEqual([t["name"] for t in found["tensors"]], ["x"])
        self.assertEqual([os.path.basename(f["file"]) for f in found["not_read"]],
                         ["w.h5", *(f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(3))])
        text = " ".join(self.run_ok("analyze", self.model).split())
        self.assertIn("zero_pp_rank_0_mp_rank_00_optim_states.pt and 2 more: a shard of DeepSpeed's ZeRO", text)
        self.assertIn("w.h5: HDF5", text)
        self.assertNotIn("config.json", text)


class Selection(Files):
    def test_a_shard_without_a_match_is_no_error(self):
        shards = self.shards()
        self.assertEqual(self.names(*shards, "--include", "layers.3.*"), ["layers.3.attn.weight", "layers.3.mlp.weight"])
        self.refuse("analyze", *shards, "--include", "conv*", says=["shard-000", "none of its 2 tensors", "'layers.0.attn.weight'"])
        write_npz(self.model / "ids.npz", {"ids.npy": npy([1, 2], "<i4", "i")})
        self.assertEqual(len(self.names(self.model)), 8)
        self.refuse("analyze", self.model / "ids.npz", says=["no tensor of floating-point numbers", "'ids' is skipped"])

    def test_a_bad_member_can_be_left_out(self):
        path = write_npz(self.model / "p.npz", {"a.npy": b"no array", "b.npy": npy([1.0]), "o.npy": npy([], "|O")})
        self.refuse("analyze", path, says=["p.npz", 'member "a.npy"'])
        found = self.analyze(path, "--exclude", "a")
        self.assertEqual([t["name"] for t in found["tensors"]], ["b"])
        self.assertEqual([s["name"] for s in found["skipped"]], ["o"])
        self.assertIn("pickled", found["skipped"][0]["reason"])

    def test_a_stored_member_with_a_wrong_checksum_is_refused(self):
        path = write_npz(self.model / "flip.npz", {"g.npy": npy([1e-3] * 100_000)})
        content = bytearray(path.read_bytes())
        content[200_003] ^= 0x7F
        path.write_bytes(content)
        self.refuse("analyze", path, says=["flip.npz", 'member "g.npy"', "checksum"])


class Names(Files):
    def test_the_path_is_printed_only_where_names_repeat(self):
        first = self.write("a/x.safetensors", {"w": [1.0], "only": [1.0]})
        second = self.write("b/x.safetensors", {"w": [1.0]})
        text = self.run_ok("analyze", first, second)
        for label in ("  a/x.safetensors:w ", "  b/x.safetensors:w ", "  only "):
            self.assertIn(label, text)
        self.assertEqual([t["name"] for t in self.analyze(first, second)["tensors"]],
                         [f"{first}:w", f"{first}:only", f"{second}:w"])

    def test_control_characters_of_names_do_not_reach_the_terminal(self):
        names = ["\x1b[31mred\x1b[0m\x1b]0;title\x07", "a\nhalfscope: fake line", "\u202egpj"]
        path = write_npz(self.model / "n.npz", {name + ".npy": npy([TINY, 1.0]) for name in names})
        result = halfscope("analyze", path, "--fail-on", "flushed>1%")
        self.assertEqual(result.returncode, 1)
        for stream in (result.stdout, result.stderr):
            for character in "\x1b\x07\u202e":
                self.assertNotIn(character, stream)
            self.assertIn("\\x1b[31mred", stream)
            self.assertNotIn("\nhalfscope: fake line", stream)
        self.assertEqual({t["name"] for t in self.analyze(path)["tensors"]}, set(names))
        self.refuse("analyze", path, "--dtype", "", says=["unknown dtype ''"])
        for word in ("--dtype", "--format", "--include"):
            self.assertNotIn("\x1b", halfscope("analyze", path, word, "\x1b[31m").stderr)

    def test_names_that_differ_in_bytes_stay_apart_in_json(self):
        path = write_npz(self.model / "n.npz", {"aXb.npy": npy([1.0]), "aYb.npy": npy([1.0])})
        path.write_bytes(path.read_bytes().replace(b"aXb", b"a\xfeb").replace(b"aYb", b"a\xffb"))
        self.assertEqual([t["name"] for t in self.analyze(path)["tensors"]], ["a\\xfeb", "a\\xffb"])


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
        merged = self.analyze(*parts, "--merge-shards")["tensors"]
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
        self.assertIn("--all shows all", text)
        rows = [line.split()[0] for line in text.splitlines() if line.startswith("  layer")]
        self.assertEqual(rows, [f"layer{i:03}" for worst in (49, 48, 47, 46) for i in range(worst, 300, 50)][:20])
        self.assertEqual(len([line for line in self.run_ok("analyze", path, "--all").splitlines() if line.startswith("  layer")]), 300)
        self.assertEqual(len(self.names(path)), 300)
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
        lines = [json.loads(line) for line in self.run_ok("analyze", *shards, "--json-lines").splitlines()]
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
        for words in (("--json",), ("--group", "layers.*.{attn,mlp}", "--json"), ("--merge-shards",), ()):
            outputs = {self.run_ok("analyze", self.model, *words, "--threads", threads) for threads in (1, 2, 5)}
            self.assertEqual(len(outputs), 1, words)


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
                    (update,) = self.analyze("--weights", one, "--updates", other)["updates"]
                    self.assertEqual((update["elements"], update["nonzero"], update["lost"]), (6, 5, 0))


class Updates(Files):
    def test_weights_and_updates_in_shards(self):
        weights = [self.write(f"w{i}.safetensors", {f"l{i}": [1.0] * 4}) for i in range(3)]
        updates = [self.write(f"u{i}.safetensors", {f"l{i}": [2.0**-12] * i + [1.0] * (4 - i)}) for i in range(3)]
        words = [word for pair in zip(weights, updates) for word in ("--weights", pair[0], "--updates", pair[1])]
        found = self.analyze(*words)["updates"]
        self.assertEqual([(u["name"], u["lost"]) for u in found], [("l0", 0), ("l1", 1), ("l2", 2)])
        self.assertEqual(found, self.analyze("--weights", self.model / "w*", "--updates", self.model / "u*")["updates"])
        self.assertIn("25.00 % of all nonzero updates", self.run_ok(*("analyze", *words)))

    def test_nothing_to_judge_is_no_success(self):
        weights, updates = self.write("w.safetensors", {"w": [1.0] * 2}), self.write("u.safetensors", {"w": [math.nan, math.inf]})
        words = ("analyze", "--weights", weights, "--updates", updates)
        self.refuse(*words, "--fail-on", "flushed>10%", says=["'flushed>10%'", "FILE"])
        result = halfscope(*words, "--fail-on", "lost_updates>1%")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nothing to judge", result.stderr)
        self.assertIn("no update is finite", result.stdout)
        self.assertEqual(result.stdout.splitlines()[3].split(), ["w", "2", "2", "2", "0", "-"])
        some = self.write("v.safetensors", {"w": [math.nan, 2.0**-12]})
        self.assertIn("100.00 % of all nonzero finite", self.run_ok("analyze", "--weights", weights, "--updates", some))
        result = halfscope("analyze", self.write("n.safetensors", {"x": [math.nan]}), "--fail-on", "flushed>1%")
        self.assertEqual(result.returncode, 2)
        self.run_ok("analyze", self.write("z.safetensors", {"x": [0.0]}), "--fail-on", "flushed>1%")

    def test_shapes_name_both_files(self):
        weights, updates = self.write("w.safetensors", {"w": [1.0] * 2}), self.write("u.safetensors", {"w": [1.0] * 3})
        self.refuse("analyze", "--weights", weights, "--updates", updates, says=["'w'", "(2)", "(3)", "w.safetensors", "u.safetensors"])


class Doubles(Files):
    def test_numbers_beyond_fp32(self):
        for value, name in ((1e300, "large"), (1e-200, "small")):
            path = self.model / f"{name}.npy"
            path.write_bytes(npy([value] * 4, "<f8", "d"))
            (tensor,) = self.analyze(path)["tensors"]
            self.assertEqual(tensor["beyond_fp32"], 4)
            text = self.run_ok("analyze", path)
            self.assertIn("at most 2^", text)
            self.assertIn("4 values are beyond FP32's range", text)
        path.write_bytes(struct.pack("<0d") + npy([1e-30, 1e30], "<f8", "d"))
        self.assertEqual(self.analyze(path)["tensors"][0]["beyond_fp32"], 0)
        self.assertNotIn("beyond", self.run_ok("analyze", path))


class Threads(Files):
    def test_threads_that_cannot_be_started_change_nothing(self):
        (path,) = self.shards(1)
        if os.geteuid() != 0:
            self.skipTest("needs root to run as somebody with few processes")
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--nproc=3", PROGRAM]
        os.chmod(self.folder, 0o755)
        environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}  # a leak checker needs a process of its own
        limited = subprocess.run([*words, "analyze", "--threads", "8", "--json", path], capture_output=True, text=True, env=environment)
        self.assertEqual(limited.returncode, 0, limited.stderr)
        self.assertRegex(limited.stderr, r"\A(note: [^\n]*threads[^\n]*\n)?\Z")
        self.assertEqual(limited.stdout, self.run_ok("analyze", "--json", path))


if __name__ == "__main__":
    unittest.main()
