"""Tests of the doctor run PyTorch in one thread: their steps are small."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
