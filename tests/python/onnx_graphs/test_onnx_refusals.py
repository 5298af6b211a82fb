"""Models and inputs of ONNX graphs that are refused: one line with the file, the tensor or the input."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper, numpy_helper

from halfscope.check_command import run
from halfscope.onnx import check, model_and_inputs

pytestmark = pytest.mark.torch  # onnx is installed beside PyTorch


def made(seed: int = 0) -> Any:
    """ids (B, 6) of 0 to 19 and factors (B, 6) into embeddings (B, 6, 4), times a matrix."""
    draw = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], name="/embed"),
        helper.make_node("Unsqueeze", ["factors", "axes"], ["f"], name="/unsqueeze"),
        helper.make_node("Mul", ["e", "f"], ["m"], name="/mul"),
        helper.make_node("MatMul", ["m", "w"], ["y"], name="/fc"),
    ]
    held = [("table", draw.normal(size=(20, 4)).astype(np.float32)), ("axes", np.array([2])),
            ("w", draw.normal(size=(4, 3)).astype(np.float32))]  # fmt: skip
    values = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["B", 6]),
              helper.make_tensor_value_info("factors", TensorProto.FLOAT, ["B", 6]),
              helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3])]  # fmt: skip
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 6, 3])
    initializers = [numpy_helper.from_array(value, name) for name, value in held]
    graph = helper.make_graph(nodes, "g", values, [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def given(seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {"ids": draw.integers(0, 20, (2, 6)), "factors": draw.normal(size=(2, 6)).astype(np.float32)}


def refused(call: Callable[[], Any], words: str, kind: type[Exception] = ValueError) -> None:
    with pytest.raises(kind) as error:
        call()
    text = str(error.value)
    assert text.startswith("onnx check: ") and "\n" not in text and len(text) < 400
    assert re.search(words, text), text


def in_two_files(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    onnx.save(made(), folder / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return folder / "m.onnx"


def test_a_model_with_external_data_is_read_and_written_as_one_file(tmp_path: Path) -> None:
    path = in_two_files(tmp_path / "far")
    found = check(path, given())
    assert not found.keep and found.before == check(made(), given()).before
    found.save(tmp_path / "mixed.onnx")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mixed.onnx"]
    onnx.checker.check_model(onnx.load(tmp_path / "mixed.onnx"), full_check=True)


@pytest.mark.parametrize("seed", range(30))
def test_cut_external_data_is_named_with_its_tensor(seed: int, tmp_path: Path) -> None:
    path = in_two_files(tmp_path / "far")
    weights = path.parent / "weights.bin"
    data = weights.read_bytes()
    ends = {each.name: int(entry.value) for each in onnx.load(path, load_external_data=False).graph.initializer
            for entry in each.external_data if entry.key == "offset"}  # fmt: skip
    cut = random.Random(seed).randrange(len(data) - 64)
    weights.write_bytes(data[:cut])
    sizes = {each.name: numpy_helper.to_array(each).nbytes for each in made().graph.initializer}
    first = next(name for name in ends if ends[name] + sizes[name] > cut)
    end = ends[first] + sizes[first]
    words = f"m.onnx: tensor '{first}' ends at byte {end} of .*weights.bin, which is truncated to {cut}$"
    refused(lambda: check(path, given()), words)


def test_external_data_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = in_two_files(tmp_path / "far")
    (path.parent / "weights.bin").unlink()
    refused(lambda: check(path, given()), r"m.onnx: tensor 'table' lies in .*far/weights.bin, which is not there$")
    loose = onnx.load(path, load_external_data=False)
    refused(lambda: check(loose, given()), r"tensor 'table' lies in weights.bin; give the path of the model's file")


@pytest.mark.parametrize("seed", range(60))
def test_a_model_that_is_cut_is_no_model(seed: int, tmp_path: Path) -> None:
    """Every cut, but one that leaves a whole message, such as the graph without what follows it."""
    data = made(seed).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data[: random.Random(seed).randrange(len(data) - 20)])
    refused(
        lambda: check(path, given()), "m.onnx: (no ONNX model, or a part of one: |its graph has no node; the file is)"
    )


@pytest.mark.parametrize("seed", range(40))
def test_inputs_that_are_cut_are_no_npz(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, **given(seed))
    data, rng = bytearray(path.read_bytes()), random.Random(seed)
    if seed % 2:
        path.write_bytes(data[: rng.randrange(len(data) - 1)])
    else:  # a byte of an array's own data
        place = rng.randrange(60, 100)
        data[place] ^= 0xFF
        path.write_bytes(data)
    refused(lambda: check(made(), path), r"x.npz: no .npz")


def test_other_files_of_inputs_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_text("no archive")
    np.save(tmp_path / "one.npy", given()["ids"])
    np.savez(tmp_path / "objects.npz", ids=np.array([{}], object), factors=given()["factors"])
    for name, words in (("x.npz", "np.savez writes arrays by name"), ("one.npy", "np.savez writes arrays by name"),
                        ("objects.npz", "Object arrays cannot be loaded"), ("lost.npz", "no such file")):  # fmt: skip
        refused(lambda name=name: check(made(), tmp_path / name), f"{name}: .*{words}")
    refused(lambda: check(tmp_path, given()), "is a folder; give the file of a model in it")


BAD = {
    "text": ({"ids": np.array([["a"] * 6])}, "input 'ids' is <U1, and the graph takes int64"),
    "halves": ({"ids": given()["ids"] + 0.5}, r"input 'ids' is float64, and the graph takes int64; \d+.5 is no int64"),
    "nan": ({"ids": np.full((2, 6), np.nan)}, "'ids' is float64, and the graph takes int64; nan is no int64"),
    "complex": ({"factors": given()["factors"] + 0j}, "input 'factors' is complex64, and the graph takes float32"),
    "axes": ({"factors": given()["factors"][0]}, "input 'factors' is 6, and the graph takes B x 6"),
    "shape": ({"factors": np.ones((2, 5))}, "input 'factors' is 2 x 5, and the graph takes B x 6"),
    "batch": ({"factors": np.ones((3, 6))}, "inputs 'ids' and 'factors' differ in B, which is 2 and 3"),
    "name": ({"factor": np.ones((2, 6))}, "the graph has no input 'factor'; it has ids, factors"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_input_that_does_not_fit_is_named(name: str) -> None:
    change, words = BAD[name]
    refused(lambda: check(made(), {**given(), **change}), words)


def test_inputs_that_fit_are_taken() -> None:
    """Whole numbers as floats, FP64, numbers that are in the model, which may be given another value."""
    own = check(made(), given())
    assert check(made(), {**given(), "ids": given()["ids"].astype(float)}).before == own.before
    assert check(made(), {**given(), "factors": given()["factors"].astype(np.float64)}).before == own.before
    held = {"w": 1e5 * np.ones((4, 3), np.float32)}
    assert check(made(), {**given(), **held}).before != own.before
    refused(lambda: check(made(), {"ids": given()["ids"], **held}), "no input 'factors'; the graph has ids, factors")
    refused(lambda: check(made(), [1]), "inputs is a list; give arrays by name", TypeError)  # type: ignore[arg-type]


def test_a_model_beyond_protobufs_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_and_inputs, "_MOST_BYTES", 300)
    refused(
        lambda: check(made(), given()), r"the model has \S+ GB, and a graph in memory 3e-07 at most; give a part of it"
    )


def test_the_command_ends_with_status_2_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = in_two_files(tmp_path / "far")
    (path.parent / "weights.bin").unlink()
    assert run([str(path), "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"halfscope check: {path}: tensor 'table' lies in ")


def test_without_onnx_the_package_is_named() -> None:
    code = "import sys; sys.modules['onnx'] = None; import halfscope.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "ImportError: halfscope.onnx needs the package onnx: pip install onnx"
