"""halfscope.analyze of files: the same as of their arrays, and as the command of that name says."""

from __future__ import annotations

import json
import os
import struct
import warnings
from pathlib import Path
from typing import TypeAlias

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


def test_names_and_shapes_that_only_files_have(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.float32([1]))
    (tmp_path / "a.npy").rename(tmp_path / os.fsdecode(b"c\xff.npy"))
    (tensor,) = halfscope.analyze(tmp_path).tensors
    assert tensor.name == "c\\xff"
    np.save(tmp_path / "d.npy", np.float32([1]))
    names = [tensor.name for tensor in halfscope.analyze(tmp_path).tensors]
    assert names == [f"{tmp_path}/c\\xff.npy:c\\xff", f"{tmp_path}/d.npy:d"]
    write_safetensors(tmp_path / "nul.safetensors", {"a\0b": np.float32([1]), "a\0c": np.float32([2])})
    assert [tensor.name for tensor in halfscope.analyze(tmp_path / "nul.safetensors").tensors] == ["a\0b", "a\0c"]
    without = r"tensor 'w.w': NumPy has no arrays of shape \("
    beyond = r'tensor "w.w": shape has more elements than memory can hold'
    for shape, content, words in (([0, 2**62], b"", beyond), ([0, 2**61], b"", beyond), ([1] * 65, bytes(4), without)):
        write_parts(tmp_path / "huge.safetensors", w=("F32", shape, content))
        with pytest.raises(ValueError, match=words) as raised:
            halfscope.analyze(tmp_path / "huge.safetensors")
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


Part: TypeAlias = "tuple[str, list[int], bytes]"
PAYLOAD: Part = ("F8_E4M3", [2, 2], bytes([0x38] * 4))
SCALES: Part = ("F32", [1, 1], struct.pack("<f", 2.0**-20))
BIAS: Part = ("F32", [1], struct.pack("<f", 1))


def write_parts(path: Path, **parts: Part) -> Path:
    """A safetensors file with parts of the tensor `w`, each a type, a shape and bytes."""
    header, data = {}, b""
    for part, (dtype, shape, content) in parts.items():
        end = len(data) + len(content)
        header[f"w.{part}"] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def test_a_quantized_tensor_is_its_payload_times_its_scales(tmp_path: Path) -> None:
    whole = write_parts(tmp_path / "whole.safetensors", weight=PAYLOAD, weight_scale_inv=SCALES)
    (tensor,) = halfscope.analyze(whole).tensors
    assert (tensor.name, tensor.max_abs, tensor.subnormal) == ("w.weight", pytest.approx(2.0**-20), 4)


def test_payload_and_scales_of_two_files_are_put_together(tmp_path: Path) -> None:
    """As the command does: files, their folder, a glob and an index of them."""
    paths = [write_parts(tmp_path / "a.safetensors", weight=PAYLOAD), tmp_path / "b.safetensors"]
    write_parts(paths[1], weight_scale_inv=SCALES, bias=BIAS)
    index = tmp_path / "model.safetensors.index.json"
    names = {"w.weight": "a", "w.weight_scale_inv": "b", "w.bias": "b"}
    index.write_text(json.dumps({"weight_map": {name: f"{file}.safetensors" for name, file in names.items()}}))
    expected = [(f"{paths[0]}:w.weight", pytest.approx(2.0**-20), 4), (f"{paths[1]}:w.bias", 1.0, 0)]
    for given in (paths, tmp_path, str(tmp_path / "*.safetensors"), index, [index, tmp_path]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = halfscope.analyze(given).tensors
        assert [(tensor.name, tensor.max_abs, tensor.subnormal) for tensor in found] == expected
    with pytest.raises(ValueError, match=r"its scales are \"w.weight_scale_inv\", which is in .*b.safetensors; "):
        halfscope.analyze(paths[0])
    with pytest.warns(UserWarning, match=r"its payload is \"w.weight\", which is in .*a.safetensors; ") as said:
        assert [tensor.name for tensor in halfscope.analyze(paths[1]).tensors] == ["w.bias"]
    assert "--" not in str(said[0].message)


def test_a_folder_says_what_it_does_not_read(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(ValueError, match=r"no .npy, .npz or .safetensors file.*0.h5 is HDF5"):
        halfscope.analyze(tmp_path)
    np.save(tmp_path / "x.npy", np.float32([1]))
    with pytest.warns(UserWarning) as said:
        assert [tensor.name for tensor in halfscope.analyze(tmp_path).tensors] == ["x"]
    assert [str(line.message).split(":")[0] for line in said] == [
        *(f"{tmp_path}/{number}.h5" for number in range(3)), "2 more lines like these"
    ]  # fmt: skip
    assert said[0].filename == __file__


def quantized_file(path: Path, scale: float) -> Path:
    """FP8 codes with a scale for each row, and beside them NVFP4 with a scale of the tensor, and a norm."""
    parts = {
        "w.weight": ("F8_E4M3", [2, 4], bytes([0x38, 0x40, 0xB8, 0x7E, 0x30, 0, 0, 1])),
        "w.weight_scale": ("F32", [2, 1], struct.pack("<2f", 0.5, 0.25)),
        "v.weight": ("U8", [2, 8], bytes([0x21] * 16)),
        "v.weight_scale": ("F8_E4M3", [2, 1], b"\x38\x40"),
        "v.weight_scale_2": ("F32", [], struct.pack("<f", scale)),
        "norm.weight": ("F32", [2], struct.pack("<2f", 1, 2)),
    }
    header, data = {}, b""
    for name, (dtype, shape, content) in parts.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize("scale", [0.5, float("inf")])
def test_quantized_tensors_have_the_verdict_of_the_command(tmp_path: Path, scale: float) -> None:
    """The package says the words and numbers that --json prints."""
    path = quantized_file(tmp_path / "q.safetensors", scale)
    theirs = analyzed(path)
    found = halfscope.analyze(path)
    ours = found.to_dict()
    assert ours["tensors"] == theirs["tensors"] or scale != 0.5  # infinities are null in one of them
    for key in ("verdict", "quantized", "recommended_scale_log2", "joint_window_log2", "outliers", "first_hurt"):
        assert ours[key] == theirs[key]
    assert ("Quantize v.weight again" in str(found)) == (scale != 0.5)
    assert found.quantized
    assert found.recommended_scale is None
    assert set(found.blocks) == {"w.weight", "v.weight"}
    assert found.blocks["w.weight"].blocks == 2


def test_weights_have_the_verdict_of_the_command(tmp_path: Path) -> None:
    """A loss scale has no effect on them; names that leave it open add a line."""
    layer = np.random.default_rng(1).normal(0, 0.1, (8, 8)).astype(np.float32)
    for name, other, is_sure in (("bn.running_var", np.float32([1, 2]), True), ("fc.bias", np.float32([0.1]), False)):
        tensors = {"fc.weight": layer, name: other}
        path = tmp_path / f"{name}.safetensors"
        write_safetensors(path, tensors)
        theirs, of_file, of_arrays = analyzed(path), halfscope.analyze(path), halfscope.analyze(tensors)
        for ours in (of_file, of_arrays):
            assert str(ours.verdict) == theirs["verdict"]
            assert ours.to_dict() == of_file.to_dict()
            assert (ours.recommended_scale is None) == is_sure
            assert (ours.weights is not None) == is_sure
            assert ("a loss scale has no effect" in str(ours)) and ("GradScaler" in str(ours)) == (not is_sure)
        for key in ("weights", "recommended_scale_log2", "joint_window_log2", "outliers", "first_hurt"):
            assert of_file.to_dict().get(key) == theirs.get(key)
    gradients = {"fc.weight.grad": layer, "bn.running_var": np.float32([1, 2])}
    assert halfscope.analyze(gradients).weights is None
    assert "no effect" not in str(halfscope.analyze(gradients))


def test_arrays_are_not_quantized() -> None:
    found = halfscope.analyze({"w": np.ones(4, np.float32)})
    assert not found.quantized
    assert "quantized" not in found.to_dict()
