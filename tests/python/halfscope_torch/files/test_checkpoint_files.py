"""Checkpoints that torch.save writes, read tensor by tensor as torch.load reads them."""

from __future__ import annotations

import inspect
import io
import pickle
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope import _core

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
EIGHT_BITS = tuple(getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name))


def checkpoint(*stored: torch.dtype) -> dict[str, object]:
    """A trainer's: weights with views and shared storages, optimizer state, numbers and texts beside them."""
    torch.manual_seed(0)
    base = torch.randn(40, 30, 20)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 5)
    )
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 3, 4, 4)).sum().backward()
    optimizer.step()
    views = {
        "whole": base,
        "shared": base,
        "row": base[3],
        "column": base[:, 2],
        "every_second": base[1::2, ::3, 4:9],
        "permuted": base.permute(2, 0, 1),
        "transposed_part": base[5:9, :, 3].t(),
        "expanded": base[0, 0, :7].expand(9, 7),
        "empty": base[:0],
        "scalar": base[1, 2, 3],
        "channels_last": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    }
    types = {str(dtype): torch.randn(7, 5).to(dtype) for dtype in stored}
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "views": views,
        "types": types,
        "list": [base[0], (torch.nn.Parameter(base[1]), {"deep": base[2]})],
        "step": 12,
        "name": "run",
        "large": 1 << 80,
        "none": None,
        "device": torch.device("cpu"),
        "dtype": torch.float16,
        "size": torch.Size([2, 3]),
        "ids": torch.arange(5),
    }


def load(path: Path) -> object:
    """Our own file, in any pickle protocol: newer versions take protocol 2 alone unless they are told so."""
    trusted = {"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {}
    return torch.load(path, **trusted)


def flat(value: object, name: str = "") -> dict[str, torch.Tensor]:
    """The tensors below `value` by their way through the containers."""
    if isinstance(value, torch.Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {
        key: found
        for part, below in items
        for key, found in flat(below, f"{name}.{part}" if name else str(part)).items()
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("protocol", [2, 4])
def test_every_tensor_is_that_of_torch_load(zipped: bool, protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    # The older format has no storages of eight bits that torch.load would read back.
    state = checkpoint(*FLOATS, *(EIGHT_BITS if zipped else ()))
    torch.save(state, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    ((_, read, skipped, *_),), problems = _core.read_tensor_files([path])
    loaded = flat(load(path))
    expected = {name: tensor for name, tensor in loaded.items() if tensor.is_floating_point()}
    assert list(read) == list(expected)
    assert set(skipped) == set(loaded) - set(expected) and not problems
    for name, tensor in expected.items():
        assert read[name].shape == tuple(tensor.shape), name
        values = tensor.detach().double().numpy()
        if tensor.dtype is torch.float64:  # rounded to odd
            np.testing.assert_allclose(read[name], values, rtol=2.0**-22, err_msg=name)
        else:
            np.testing.assert_array_equal(read[name].astype(np.float64), values, err_msg=name)


def test_a_checkpoint_is_read_as_fast_as_plain_bytes(tmp_path: Path) -> None:
    """At least half of the speed of the same numbers in a raw .npy file: nothing is unpacked or copied."""
    tensor = torch.randn(1 << 24)
    torch.save({"w": tensor}, tmp_path / "w.pt")
    np.save(tmp_path / "w.npy", tensor.numpy())

    def seconds(path: Path) -> float:
        begin = time.perf_counter()
        _core.read_tensor_files([path])
        return time.perf_counter() - begin

    pairs = [(seconds(tmp_path / "w.npy"), seconds(tmp_path / "w.pt")) for _ in range(5)]
    assert max(plain / checkpoint for plain, checkpoint in pairs) > 0.5


STATE = {"scale_fwd": torch.ones(3), "recipe": "delayed"}


@pytest.mark.skipif(not EIGHT_BITS, reason="this PyTorch has no FP8")
@pytest.mark.parametrize("state", ["bytes", "stream", "tensor", "dictionary", "none"])
def test_fp8_beside_a_state_is_no_weight(state: str, tmp_path: Path) -> None:
    """TransformerEngine's modules save their scales so; without a state codes are numbers."""
    stream = io.BytesIO()
    pickle.dump(STATE, stream)
    states = {
        "bytes": stream.getvalue(),
        "stream": stream,
        "tensor": torch.frombuffer(bytearray(stream.getvalue()), dtype=torch.uint8),
        "dictionary": STATE,
        "none": None,
    }
    codes = torch.randn(4, 8).to(EIGHT_BITS[0])
    path = tmp_path / "model.pt"
    torch.save({"m.weight": codes, "m._extra_state": states[state], "norm.bias": torch.randn(4)}, path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = halfscope.analyze(path)
    names = {tensor.name for tensor in found.tensors}
    assert ("m.weight" in names) == (state == "none")
    assert any("m.weight" in str(line.message) for line in said) == (state != "none")
    assert found.quantized == (state != "none")


def test_integers_of_a_checkpoint_leave_no_loss_scale(tmp_path: Path) -> None:
    tensors = {"m.weight": torch.randint(-9, 9, (4, 8), dtype=torch.int8), "m.weight_scale": torch.rand(4, 1)}
    torch.save({**tensors, "norm.bias": torch.randn(4)}, tmp_path / "model.pt")
    with pytest.warns(UserWarning, match="m.weight.*may be quantized"):
        found = halfscope.analyze(tmp_path / "model.pt")
    assert [tensor.name for tensor in found.tensors] == ["norm.bias"]
    assert found.recommended_scale is None
