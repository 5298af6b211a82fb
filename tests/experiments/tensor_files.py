"""Files of tensors, written by hand, and a model's folder of them."""

import json
import struct
import zipfile

from program import WithFolder

TINY = 1e-9  # flushed by FP16


def safetensors(tensors):
    """The bytes of a file of F32 tensors, each a flat list or the bytes of its elements."""
    header, data = {}, b""
    for name, values in tensors.items():
        content = values if isinstance(values, bytes) else struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(content) // 4], "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(values, descr="<f4", code="f"):
    """The bytes of a flat .npy array."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(values)},), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}{code}", *values)


def write_npz(path, members):
    """A stored archive of the bytes `members`, as numpy.savez writes it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


class Files(WithFolder):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        self.model.mkdir()

    def write(self, name, tensors):
        path = self.model / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(safetensors(tensors))
        return path

    def shards(self, count=4):
        """Shard i has an attention tensor, of which i in 10 are flushed, and a sound MLP one."""
        return [
            self.write(f"shard-{i:03}.safetensors",
                       {f"layers.{i}.attn.weight": [TINY] * i + [1.0] * (10 - i) if i < 10 else [1.0] * 10,
                        f"layers.{i}.mlp.weight": [0.5] * 20})
            for i in range(count)
        ]

    def analyze(self, *words):
        return json.loads(self.run_ok("analyze", *words, "--json"))

    def names(self, *words):
        return [tensor["name"].split(":")[-1] for tensor in self.analyze(*words)["tensors"]]
