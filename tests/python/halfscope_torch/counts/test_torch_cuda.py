"""CUDA tensors: PyTorch operations and our own kernels on a GPU count what the host counts of the same elements."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no GPU"),
]

from halfscope._core import can_count_on_gpu

import halfscope
from halfscope import Histogram, lost_updates, update_ratios
from halfscope.torch import watch
from halfscope.torch.device import waiting
from planted import ELEMENTS, Planted, planted_gradient
from torch_bits import KINDS, PAIRS, any_bits, pairs

SLEEP = 200_000_000  # cycles: a tenth of a second, in which whatever does not wait for its turn goes first


@pytest.fixture(params=["BY_PYTORCH", "BY_KERNELS"])
def ways(request: pytest.FixtureRequest) -> waiting.Counting:
    if request.param == "BY_KERNELS" and not can_count_on_gpu():
        pytest.skip("the package was built without CUDA")
    return getattr(waiting, request.param)


def on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as far apart."""
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    flat = torch.as_strided(tensor, (reach if tensor.numel() else 0,), (1,), tensor.storage_offset())
    return torch.as_strided(flat.cuda(), tensor.shape, tensor.stride(), 0)


def made_of(bins: torch.Tensor, format: str) -> Histogram:
    return Histogram.from_bins(bins.cpu().numpy(), format=format)


@pytest.mark.parametrize("format", ["fp16", "fp8_e4m3"])
@pytest.mark.parametrize("kind", KINDS)
def test_histograms(kind: str, format: str, ways: waiting.Counting) -> None:
    values = KINDS[kind]()
    assert made_of(ways.histogram(on_gpu(values), format), format) == Histogram(values, format=format)


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("case", range(PAIRS))
def test_updates(case: int, format: str, ways: waiting.Counting) -> None:
    weights, updates = list(pairs())[case]
    there = on_gpu(weights), on_gpu(updates)
    expected = lost_updates(weights, updates, format)
    found = waiting.update_counters(ways.updates(*there, format).cpu().numpy(), weights.numel())
    assert (found.elements, found.nonzero, found.lost) == (expected.elements, expected.nonzero, expected.lost)
    assert found.applied_over_intended == pytest.approx(expected.applied_over_intended, rel=1e-12)
    if ways is waiting.BY_KERNELS:
        assert found.applied_over_intended == expected.applied_over_intended  # in the same order, to the bit
    assert made_of(ways.ratios(*there, format), format) == update_ratios(weights, updates, format=format)


def test_tensors_are_read_after_what_was_queued_for_them_and_before_what_follows(ways: waiting.Counting) -> None:
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            tensor = torch.zeros(257 * 259, device="cuda")
            torch.cuda._sleep(SLEEP)
            tensor.fill_(1.5)
            bins = ways.histogram(tensor, "fp16")
            tensor.fill_(-7.0)
            found = made_of(bins, "fp16")
            assert found.nonzero == found.elements == tensor.numel() and found.max_abs == 1.5
            torch.cuda._sleep(SLEEP)
            bins = ways.histogram(
                torch.full((1000,), 2.5, device="cuda") * 2, "fp16"
            )  # freed at once, and taken again:
            again = torch.zeros(1000, device="cuda")
            assert made_of(bins, "fp16").max_abs == 5.0 and again.sum() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_the_package(kind: str) -> None:
    values = KINDS[kind]()
    there = on_gpu(values)
    if not can_count_on_gpu():
        with pytest.raises(ValueError, match="bring it to the CPU first"):
            Histogram(there)
        return
    assert Histogram(there) == Histogram(values)
    if values.dtype is torch.float64:
        return
    for quantizer in ("fp16", "bf16/stochastic", "fp8_e4m3/toward_zero/saturate"):
        rounded = halfscope.round(there, quantizer, seed=3)
        assert rounded.is_cuda and rounded.shape == there.shape and rounded.dtype is torch.float32
        expected = halfscope.round(values, quantizer, seed=3)
        np.testing.assert_array_equal(rounded.cpu().numpy(), expected.numpy())  # which takes NaNs for equal


@pytest.mark.skipif(not can_count_on_gpu(), reason="the package was built without CUDA")
def test_updates_on_the_gpu_and_on_the_host_do_not_mix() -> None:
    weights = any_bits(torch.float32, 5)
    there = on_gpu(weights)
    assert lost_updates(there, there).lost == lost_updates(weights, weights).lost
    assert update_ratios(there, there) == update_ratios(weights, weights)
    with pytest.raises(ValueError, match="one array is on a GPU, the other is not"):
        lost_updates(there, weights)


def test_a_watched_model(ways: waiting.Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(waiting.countings, "cuda", ways)
    model = Planted().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = torch.cuda.amp.GradScaler(init_scale=1024.0)
    inputs, gradient = torch.ones(ELEMENTS, device="cuda"), planted_gradient().cuda()
    with watch(model, 2, optimizer=optimizer, scaler=scaler) as watched:
        for _ in range(5):
            optimizer.zero_grad()
            scaler.scale((model(inputs) * gradient).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    assert watched.steps == 5
    for role in ("activation_gradient", "weight_gradient"):
        for found in watched.histograms(role).values():
            cast = found.what_if(1)
            assert (cast.elements, cast.flushed, cast.subnormal) == (3 * ELEMENTS, 3 * 300, 3 * 650)
    assert watched.histograms("update_ratio")["second.weight"].nonzero == 3 * 650
    assert "lose 100.0 % of the updates" in watched.verdict
