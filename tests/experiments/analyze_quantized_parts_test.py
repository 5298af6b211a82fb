"""halfscope analyze: payload, scales and their blocks, put together from shards, archives and a config.json."""

import json
import struct
import unittest
import zipfile

from program import halfscope
from quantized_files import QuantizedFiles, floats, safetensors
from tensor_files import npy, write_npz


def pickled(value):
    """Opcodes of a text, a number or a tuple; those of anything else stand as bytes already."""
    if isinstance(value, str):
        return b"X" + struct.pack("<I", len(value)) + value.encode()
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, tuple):
        return b"(" + b"".join(map(pickled, value)) + b"t"
    return value


def write_torch(path, tensors):
    """A state_dict of matrices as torch.save writes those of eight bits: (dtype, shape, bytes) by name."""
    items = b""
    for key, (name, (dtype, shape, content)) in enumerate(tensors.items()):
        storage = pickled(("storage", b"ctorch.storage\nUntypedStorage\n", str(key), "cpu", len(content))) + b"Q"
        arguments = (storage, 0, tuple(shape), (shape[1], 1), b"\x89", b"N", f"ctorch\n{dtype}\n".encode())
        items += pickled(name) + b"ctorch._utils\n_rebuild_tensor_v3\n" + pickled(arguments) + b"R"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}(" + items + b"u.")
        for key, (_, _, content) in enumerate(tensors.values()):
            archive.writestr(f"archive/data/{key}", content)


class Parts(QuantizedFiles):
    def test_payload_and_scales_in_two_shards_are_put_together(self):
        """Each layout, the shards in either order and by their index, as in one file."""
        fp4, e4m3 = bytes(range(32)), [0x38, 0x40, 0x30, 0x48] * 2
        layouts = {
            "deepseek": {
                "w.weight": ("F8_E4M3", [4, 4], bytes([0x38] * 16)),
                "w.weight_scale_inv": ("F32", [1, 1], floats([0.5])),
            },
            "mxfp4": {"w_blocks": ("U8", [2, 1, 16], fp4), "w_scales": ("U8", [2, 1], bytes([120, 130]))},
            "nvfp4": {
                "w.weight": ("U8", [2, 16], fp4),
                "w.weight_scale": ("F8_E4M3", [2, 2], bytes(e4m3[:4])),
                "w.weight_scale_2": ("F32", [], floats([0.25])),
                "w.input_scale": ("F32", [], floats([1.0])),
            },
        }
        for layout, parts in layouts.items():
            whole = self.analyze(self.write(layout, parts), "--format", "fp16")
            self.assertEqual(len(whole), 1)
            for order in (list(parts), list(parts)[::-1]):
                with self.subTest(layout, order=order):
                    folder = self.folder / f"{layout}-{order[0]}"
                    folder.mkdir()
                    where = {name: f"{i}.safetensors" for i, name in enumerate(order)}
                    for name, file in where.items():
                        held = {name: parts[name], f"other{file[0]}": ("F32", [2], floats([1.0, 2.0]))}
                        (folder / file).write_bytes(safetensors(held))
                        where = {**where, f"other{file[0]}": file}
                    index = folder / "model.safetensors.index.json"
                    index.write_text(json.dumps({"weight_map": where}))
                    for words in ([folder], [index], sorted(folder.glob("*.safetensors"))):
                        found = {tensor["name"].split(":")[-1]: tensor for tensor in self.analyze(*words)}
                        (name,) = (name for name in found if not name.startswith("other"))
                        self.assertEqual(len(found), len(parts) + 1)
                        self.assertEqual(
                            {**found[name], "name": "", "file": ""}, {**whole[0], "name": "", "file": ""}
                        )
                    found = self.analyze(self.folder / f"{layout}.safetensors", "--against", folder)
                    self.assertEqual(found[0]["relative_error"], 0)

    def split(self, name, parts, index):
        """Two shards, by an index or by numbered names: one has the first of `parts` and `a`, one the others and `b`."""
        folder = self.folder / name
        folder.mkdir()
        (payload, codes), *scales = parts.items()
        names = ("a", "b") if index else ("model-00001-of-00002", "model-00002-of-00002")
        shards = {names[0]: {payload: codes, "a": ("F32", [2], floats([1.0, 2.0]))}}
        shards[names[1]] = {**dict(scales), "b": ("F32", [1], floats([1.0]))}
        for shard, held in shards.items():
            (folder / f"{shard}.safetensors").write_bytes(safetensors(held))
        if index:
            where = {part: f"{shard}.safetensors" for shard, held in shards.items() for part in held}
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
        return folder, names

    def test_a_shard_whose_other_half_is_not_given_is_one_line(self):
        """Codes without their scales are no weights; the line says where the scales are, as an index or a name has it."""
        layouts = {
            "deepseek": (
                {"w.weight": ("F8_E4M3", [4, 4], bytes([0x38] * 16))},
                {"w.weight_scale_inv": ("F32", [1, 1], floats([0.5]))},
            ),
            "mxfp4": ({"w_blocks": ("U8", [2, 1, 16], bytes(32))}, {"w_scales": ("U8", [2, 1], bytes([120, 130]))}),
            "packed": ({"w.weight": ("U8", [2, 16], bytes(32))}, {"w.weight_scale": ("F8_E8M0", [2, 1], bytes([120] * 2))}),
            "mxfp6": ({"w.weight": ("F6_E3M2", [2, 32], bytes(48))}, {"w.weight_scale": ("F8_E8M0", [2, 1], bytes([120] * 2))}),
        }
        for layout, (payload, scales) in layouts.items():
            (code_name,), (scale_name,) = payload, scales
            for index in (True, False):
                folder, (first, second) = self.split(f"{layout}-{index}", payload | scales, index)
                for file, left, says in (
                    (first, "a", [f'"{code_name}" is not read: its scales are "{scale_name}"', f"{second}.safetensors; give that file too"]),
                    (second, "b", [f'"{scale_name}" is not read: its payload is "{code_name}"', f"{first}.safetensors; give that file too"]),
                ):  # fmt: skip
                    with self.subTest(layout=layout, index=index, file=file):
                        path = folder / f"{file}.safetensors"
                        result = halfscope("analyze", path, "--json")
                        self.assertEqual(result.returncode, 2)
                        (line,) = result.stderr.splitlines()
                        for text in (f"{path}: tensor", *says):
                            self.assertIn(text, line)
                        self.assertEqual([tensor["name"] for tensor in json.loads(result.stdout)["tensors"]], [left])
                        self.refuse("analyze", self.original, "--against", path, says=says)
                self.assertEqual(len(self.analyze(folder)), 3)
                self.assertEqual(len(self.analyze(folder, "--payload")), 4)

    def test_scales_come_with_the_payload_that_is_asked_for(self):
        members = {
            "w.weight.npy": npy([bytes([0x38]), bytes([0x40])], "|V1", "c"),
            "w.weight_scale.npy": npy([0.5]),
            "other.npy": b"no array",
        }
        path = write_npz(self.folder / "q.npz", members)
        (found,) = self.analyze(path, "--dtype", "f8_e4m3", "--include", "w.weight")
        self.assertEqual((found["name"], float(found["max_abs"])), ("w.weight", 1))

    def test_codes_are_numbers_where_no_file_has_scales_for_them(self):
        """Files beside that are damaged, of another kind, or of another model have none."""
        path = self.write("codes", {"x": ("F8_E4M3", [2], bytes([0x38, 0x40]))})
        (self.folder / "broken.safetensors").write_bytes(b"no header")
        (self.folder / "x_scale.npy").write_bytes(b"no array")
        (found,) = self.analyze(path)
        self.assertEqual((found["name"], float(found["max_abs"])), ("x", 2))
        (self.folder / "model.safetensors.index.json").write_text("[]")  # no index
        other = {"x": ("F8_E4M3", [2], bytes([0x38, 0x40])), "x_scale": ("F32", [1], floats([0.5]))}
        whole = self.write("whole", other)
        self.assertEqual(float(self.analyze(path)[0]["max_abs"]), 2)
        self.assertEqual([float(tensor["max_abs"]) for tensor in self.analyze(path, whole)], [2, 1])
        self.write("scales", {"x_scale": ("F32", [1], floats([0.5]))})
        self.refuse("analyze", path, says=['"x_scale", which is in', "scales.safetensors too, but neither"])

    def test_a_checkpoint_of_pytorch_has_quantized_tensors_too(self):
        archive = self.folder / "model.pt"
        write_torch(
            archive,
            {
                "w.weight": ("float8_e4m3fn", [2, 2], bytes([0x38] * 4)),
                "w.weight_scale_inv": ("float32", [1, 1], floats([0.5])),
            },
        )
        (found,) = self.analyze(archive)
        self.assertEqual((found["name"], found["max_abs"]), ("w.weight", 0.5))
        self.assertEqual(found["blocks"]["blocks"], 1)

    def test_config_beside_the_file_states_the_blocks(self):
        """100 rows of 100 under one scale: blocks of 128, of 100, or of the whole tensor."""
        path = self.write(
            "model",
            {
                "w.weight": ("F8_E4M3", [200, 100], bytes([0x38] * 20000)),
                "w.weight_scale_inv": ("F32", [2, 1], floats([1.0, 2.0])),
            },
        )
        config = self.folder / "config.json"
        for size, block in ((None, "128 x 100"), ([128, 128], "128 x 128"), ([100, 100], "100 x 100")):
            config.write_text(json.dumps({"quantization_config": {"weight_block_size": size}}))
            self.assertIn(f"blocks of {block},", self.analyze(path)[0]["blocks"]["layout"])
        config.write_text(json.dumps({"quantization_config": {"weight_block_size": [64, 64]}}))
        result = halfscope("analyze", path, "--json")
        self.assertEqual(result.returncode, 2)
        self.assertIn("config.json says weight_block_size [64, 64]", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("blocks of 128 x 100", json.loads(result.stdout)["tensors"][0]["blocks"]["layout"])
        for text in (
            "[]",
            "{",
            '{"quantization_config": 3}',
            '{"quantization_config": {"weight_block_size": [1.5, 2]}}',
        ):
            config.write_text(text)
            self.assertIn("blocks of 128 x 100,", self.analyze(path)[0]["blocks"]["layout"])


if __name__ == "__main__":
    unittest.main()
