"""Files of tensors, written by hand."""

import json
import struct
import zipfile


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
