"""Quantized files beside the libraries that write them: gguf, bitsandbytes and compressed-tensors; equal bits."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from halfscope import _core
from quantized_samples import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_the_library(tmp_path: Path, kind: str) -> None:
    try:
        truth = KINDS[kind](tmp_path)
    except ImportError as error:
        pytest.skip(str(error))
    (path,) = tmp_path.glob("model.*")
    assert path.stat().st_size < 1 << 20
    files, lines = _core.read_tensor_files([str(path)], None)
    assert lines == []
    found = files[0][1]
    assert set(found) == set(truth)
    for name, right in truth.items():
        assert found[name].shape == right.shape
        # bitsandbytes' FP4 gives code 8 a negative zero, the table in its file a positive one.
        ours = torch.from_numpy(found[name]).to(right.dtype).float() + 0
        assert torch.equal(ours.view(torch.int32), (right.float() + 0).view(torch.int32))
