"""Files that other packages read, beside arrays that were written with these packages."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import pickle
import re
import subprocess
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::UserWarning")]

import halfscope
from halfscope.foreign.closed_pickle import Closed, load_closed
from halfscope.foreign.formats import FORMATS
from halfscope.tensor_files import tensors_of
from recording.source_tree import PROGRAM

GROUPS = "fp32_flat_groups"
SHAPES = {"a.weight": (3, 5), "a.bias": (3,), "b.weight": (2, 3), "scalar": (), "empty": (0, 4)}


def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {name: torch.randn(shape) for name, shape in SHAPES.items()}


def assert_equal(read: dict[str, object], right: dict[str, torch.Tensor]) -> None:
    assert set(read) == set(right)
    for name, tensor in right.items():
        assert torch.equal(torch.as_tensor(np.asarray(read[name], dtype=np.float32)), tensor.float()), name


class Scaler:
    """Stands for DeepSpeed's, of which every optimizer file has one."""

    ran: ClassVar[list[str]] = []

    def __setstate__(self, state: object) -> None:
        Scaler.ran.append("state")


class Hostile:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def write_zero3(folder: Path, ranks: int, frozen: dict[str, torch.Tensor]) -> None:
    """As stage 3 saves it: a vector of each rank for each group of parameters, every part padded with zeros."""
    full, groups = weights(), [["a.weight", "a.bias"], ["b.weight", "scalar", "empty"]]
    for rank in range(ranks):
        part = {name: padded(tensor, ranks)[rank] for name, tensor in {**full, **frozen}.items()}
        flat = [torch.cat([part[name] for name in group]) for group in groups]
        state = {"zero_stage": 3, "partition_count": ranks, GROUPS: flat, "loss_scaler": Scaler()}
        torch.save({"optimizer_state_dict": state}, folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
        shapes = [OrderedDict((name, full[name].shape) for name in group) for group in groups]
        model = {
            "module": {name: torch.empty(0, dtype=torch.bfloat16) for name in full} | {"buffer": torch.ones(2)},
            "param_shapes": shapes,
            "frozen_param_shapes": {name: tensor.shape for name, tensor in frozen.items()},
            "frozen_param_fragments": {name: part[name] for name in frozen},
            "args": argparse.Namespace(lr=1.0),
        }
        torch.save(model, folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt")


def padded(tensor: torch.Tensor, ranks: int) -> tuple[torch.Tensor, ...]:
    size = math.ceil(tensor.numel() / ranks)
    flat = torch.zeros(size * ranks)
    flat[: tensor.numel()] = tensor.flatten()
    return flat.reshape(ranks, size).unbind() if size else (flat,) * ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 12])
def test_shards_of_zero3_are_joined_without_their_padding(tmp_path: Path, ranks: int) -> None:
    frozen = {"frozen": torch.randn(7, 2)}
    write_zero3(tmp_path, ranks, frozen)
    Scaler.ran.clear()
    assert_equal(tensors_of(tmp_path), {**weights(), **frozen, "buffer": torch.ones(2)})
    assert Scaler.ran == []
    counts = {report.name: (report.elements, report.zeros) for report in halfscope.analyze(tmp_path).tensors}
    assert counts["a.weight"] == (15, 0)


def test_a_rank_that_is_missing_is_said(tmp_path: Path) -> None:
    write_zero3(tmp_path, 3, {})
    (tmp_path / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    with pytest.raises(ValueError, match="2 optimizer files of 3 ranks; give all of them"):
        halfscope.analyze(tmp_path)


def test_a_distributed_checkpoint_is_read_without_running_its_metadata(tmp_path: Path) -> None:
    from torch.distributed import checkpoint

    right = weights() | {"half": torch.randn(9).bfloat16()}
    with pytest.warns(UserWarning):
        checkpoint.save({"model": right, "step": 3, "ids": torch.arange(4)}, checkpoint_id=tmp_path / "c", no_dist=True)
    named = {f"model.{name}": tensor for name, tensor in right.items()}
    with pytest.warns(UserWarning, match="leaving out 'ids' .dtype torch.int64., 'step' .no tensor."):
        read = halfscope.analyze(tmp_path / "c")
    assert {report.name for report in read.tensors} == set(named)
    for given in (tmp_path / "c", next((tmp_path / "c").glob("*.distcp"))):
        read = tensors_of(given)
        for name, tensor in named.items():
            assert torch.equal(read[name], tensor), name
    mark = tmp_path / "was-run"
    (tmp_path / "c" / ".metadata").write_bytes(pickle.dumps(Hostile(mark)))
    with pytest.raises(ValueError, match="c: not read as a distributed checkpoint"):
        halfscope.analyze(tmp_path / "c")
    assert not mark.exists()


def test_a_pickle_of_another_class_stays_closed(tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    torch.save({"w": torch.ones(3), "h": Hostile(mark), "s": Scaler()}, tmp_path / "m.pt")
    loaded = load_closed(tmp_path / "m.pt")
    assert torch.equal(loaded["w"], torch.ones(3))
    assert isinstance(loaded["h"], Closed) and isinstance(loaded["s"], Closed)
    assert not mark.exists()


def test_initializers_of_onnx_are_tensors(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from onnx import helper, numpy_helper

    random = np.random.default_rng(0)
    right = {
        "float": random.normal(size=(3, 4)).astype(np.float32),
        "half": random.normal(size=5).astype(np.float16),
        "double": random.normal(size=(2, 2)),
        "bfloat": random.normal(size=6).astype(ml_dtypes.bfloat16),
        "inner": random.normal(size=2).astype(np.float32),
    }
    of = {name: numpy_helper.from_array(array, name) for name, array in right.items()}
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    branch = helper.make_graph(
        [helper.make_node("Identity", ["inner"], ["y"])], "branch", [], [output], [of.pop("inner")]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    more = [numpy_helper.from_array(np.arange(3), "ids")]
    graph = helper.make_graph([node], "graph", [], [output], [*of.values(), *more])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    with pytest.warns(UserWarning, match="leaving out 'ids' .type INT64."):
        read = tensors_of(tmp_path / "m.onnx")
    for name, array in right.items():
        assert read[name].dtype == array.dtype
        assert read[name].tobytes() == array.tobytes()
    assert halfscope.analyze(tmp_path / "m.onnx").tensors[0].elements == 12
    (tmp_path / "m.onnx").write_bytes((tmp_path / "m.onnx").read_bytes()[:70])
    with pytest.raises(ValueError, match="m.onnx: not read as ONNX: "):
        halfscope.analyze(tmp_path / "m.onnx")


def test_datasets_of_hdf5_are_tensors(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    random = np.random.default_rng(0)
    right = {
        "layers/dense/vars/0": random.normal(size=(3, 4)).astype("<f4"),
        "layers/dense/vars/1": random.normal(size=4).astype("<f2"),
        "big": random.normal(size=(2, 3)).astype(">f8"),
        "scalar": np.float32(2.5),
    }
    with h5py.File(tmp_path / "m.weights.h5", "w") as file:
        for name, array in right.items():
            file[name] = array
        file["ids"] = np.arange(3)
        file["note"] = "text"
        file.create_dataset("packed", data=right["big"], compression="gzip", chunks=(1, 3))
    with pytest.warns(UserWarning, match="leaving out 'ids' .dtype int64., 'note' .dtype object."):
        read = tensors_of(tmp_path / "m.weights.h5")
    for name, array in (right | {"packed": right["big"]}).items():
        assert np.array_equal(read[name], array)
    assert {report.name for report in halfscope.analyze(tmp_path / "m.weights.h5").tensors} == set(read)
    with (tmp_path / "m.weights.h5").open("r+b") as file:
        file.truncate(200)
    with pytest.raises(ValueError, match="m.weights.h5: not read as HDF5: "):
        halfscope.analyze(tmp_path / "m.weights.h5")


def refusal(path: Path) -> str:
    """The program's line of a file that it does not read."""
    shown = subprocess.run([PROGRAM, "analyze", path], capture_output=True, text=True, check=False)
    assert shown.returncode == 2
    return shown.stderr


def write_distributed(folder: Path) -> Path:
    from torch.distributed import checkpoint

    with pytest.warns(UserWarning):
        checkpoint.save(weights(), checkpoint_id=folder, no_dist=True)
    return next(folder.glob("*.distcp"))


def write_shard(folder: Path) -> Path:
    write_zero3(folder, 2, {})
    return next(folder.glob("*_optim_states.pt"))


def write_onnx(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    values = [onnx.numpy_helper.from_array(tensor.numpy(), name) for name, tensor in weights().items()]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "graph", [], [], values)), folder / "M.ONNX")
    return folder / "M.ONNX"


def write_hdf5(folder: Path) -> Path:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(folder / "m.h5", "w") as file:
        file.update({name: tensor.numpy() for name, tensor in weights().items()})
    return folder / "m.h5"


@pytest.mark.parametrize("write", [write_distributed, write_shard, write_onnx, write_hdf5])
def test_the_call_that_the_program_names_reads_the_file(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    path = write(tmp_path)
    call = re.search(r"in Python (halfscope\.analyze\('(?:FILE|FOLDER)'\)) reads", refusal(path))[1]
    call = call.replace("FILE", str(path)).replace("FOLDER", str(tmp_path))
    found = eval(call, {"halfscope": halfscope})
    assert {report.name for report in found.tensors} >= set(SHAPES) - {"empty"}


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "m.onnx").write_bytes(b"x")
    (tmp_path / "m.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / ".metadata").write_bytes(b"x")
    write_zero3(tmp_path, 2, {})
    for path, format in zip(("m.onnx", "m.h5", "c", ""), FORMATS, strict=True):
        with pytest.raises(
            ValueError, match=f"{format.package}, which is not installed: pip install {format.package}$"
        ):
            halfscope.analyze(tmp_path / path)


def test_files_of_both_kinds_are_read_together(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    np.save(tmp_path / "w.npy", np.ones(3, np.float32))
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["x"] = np.zeros(2, np.float32)
    names = [report.name for report in halfscope.analyze([tmp_path / "m.h5", tmp_path / "w.npy"]).tensors]
    assert names == [f"{tmp_path}/w.npy:w", f"{tmp_path}/m.h5:x"]
