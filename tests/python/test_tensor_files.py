"""halfscope.analyze of files: the same as of their arrays, and as the command of that name says."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

import halfscope
from command import analyzed
from recording.source_tree import PROGRAM


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    found = {f"fc{k}.weight": random.normal(0, 10.0**-k, (16, 70)).astype(np.float32) for k in (3, 6, 8)}
    found["wide"] = random.normal(0, 1, 5000) * 2.0 ** random.uniform(-40, 18, 5000)  # float64
    return found | {"half": random.normal(0, 1e-6, 333).astype(np.float16), "column": np.asfortranarray(found["wide"])}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    names, header, data = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64"}, {}, b""
    for name, array in tensors.items():
        end = len(data) + array.nbytes
        header[name] = {"dtype": names[str(array.dtype)], "shape": array.shape, "data_offsets": [len(data), end]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


WRITERS = {
    "npz": lambda path, tensors: np.savez(path, **tensors),
    "compressed.npz": lambda path, tensors: np.savez_compressed(path, **tensors),
    "safetensors": write_safetensors,
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("form", ["fp16", "fp8_e4m3"])
def test_a_file_is_analysed_as_its_arrays_and_as_by_the_command(kind: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"gradients.{kind}"
    WRITERS[kind](path, arrays())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = halfscope.analyze(path, format=form)
    assert found.to_dict() == halfscope.analyze(str(path), format=form).to_dict()
    counts = {tensor["name"]: tensor for tensor in found.to_dict()["tensors"]}
    of_arrays = halfscope.analyze(arrays(), format=form).to_dict()["tensors"]
    assert counts == {tensor["name"]: tensor for tensor in of_arrays}
    if PROGRAM.exists():
        assert found.to_dict() == analyzed(path, "--format", form)


def test_several_files_are_told_apart(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", arrays()["half"])
    np.savez(tmp_path / "two.npz", one=arrays()["wide"])
    paths = [tmp_path / "one.npy", str(tmp_path / "two.npz")]
    names = [tensor.name for tensor in halfscope.analyze(paths).tensors]
    assert names == [f"{tmp_path}/one.npy:one", f"{tmp_path}/two.npz:one"]
    assert [tensor.name for tensor in halfscope.analyze(paths[:1]).tensors] == ["one"]


def test_what_holds_no_numbers_is_named(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "some.safetensors", {"labels": np.arange(3), "x": np.float32([1])})
    with pytest.warns(UserWarning, match=r"some.safetensors: leaving out 'labels' \(dtype I64\)") as said:
        assert len(halfscope.analyze(tmp_path / "some.safetensors").tensors) == 1
    assert said[0].filename == __file__
    write_safetensors(tmp_path / "none.safetensors", {"labels": np.arange(3)})
    with pytest.raises(ValueError, match=r"none.safetensors: holds no tensor of floating-point numbers: 'labels'"):
        halfscope.analyze(tmp_path / "none.safetensors")


@pytest.mark.parametrize(
    ("name", "content"), [("a.npz", b"PK"), ("a.safetensors", b"12"), ("a.npy", b""), ("a.bin", b"")]
)
def test_a_file_that_cannot_be_read(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, tmp_path / f"absent-{name}"):
        with pytest.raises(ValueError, match=path.name) as raised:
            halfscope.analyze(path)
        assert "\n" not in str(raised.value)


def test_elements_without_a_type_are_stated_by_an_argument(tmp_path: Path) -> None:
    halves = np.float16([1, 2.0**-20, 0])
    halves.tofile(tmp_path / "a.raw")
    np.save(tmp_path / "b.npy", halves.view("V2"))
    np.savez(tmp_path / "c.npz", halves.view("V2"))
    for name in ("a.raw", "b.npy", "c.npz"):
        with pytest.raises(ValueError, match="dtype= says") as raised:
            halfscope.analyze(tmp_path / name)
        assert "--" not in str(raised.value)
        assert halfscope.analyze(tmp_path / name, dtype="f16").tensors[0].subnormal == 1
    with pytest.raises(ValueError, match="unknown dtype 'float'"):
        halfscope.analyze(tmp_path / "a.raw", dtype="float")


def test_a_quantized_tensor_is_its_payload_times_its_scales(tmp_path: Path) -> None:
    def write(name: str, **parts: tuple[str, list[int], bytes]) -> Path:
        header, data = {}, b""
        for part, (dtype, shape, content) in parts.items():
            end = len(data) + len(content)
            header[f"w.{part}"] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
            data += content
        text = json.dumps(header).encode()
        (tmp_path / name).write_bytes(struct.pack("<Q", len(text)) + text + data)
        return tmp_path / name

    payload, scales = ("F8_E4M3", [2, 2], bytes([0x38] * 4)), ("F32", [1, 1], struct.pack("<f", 2.0**-20))
    (tensor,) = halfscope.analyze(write("whole.safetensors", weight=payload, weight_scale_inv=scales)).tensors
    assert (tensor.name, tensor.max_abs, tensor.subnormal) == ("w.weight", pytest.approx(2.0**-20), 4)
    stray = write("stray.safetensors", weight_scale_inv=scales, bias=("F32", [1], struct.pack("<f", 1)))
    with pytest.warns(UserWarning, match=r"\"w.weight_scale_inv\" is not read: its payload is \"w.weight\"") as said:
        assert [tensor.name for tensor in halfscope.analyze(stray).tensors] == ["w.bias"]
    assert "--" not in str(said[0].message)
