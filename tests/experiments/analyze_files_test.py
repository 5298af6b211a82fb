"""halfscope analyze over the files of a real model: shards, folders, checkpoints, indices, names."""

import json
import os
import pickle
import struct
import subprocess
import time
import unittest
import zipfile

from program import PROGRAM, halfscope
from tensor_files import TINY, Files, npy, write_npz


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
