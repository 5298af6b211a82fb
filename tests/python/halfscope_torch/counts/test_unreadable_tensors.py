"""Tensors without memory of their own: refused in one line, or skipped and named, never read."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope import Histogram
from halfscope.torch import watch
from halfscope.torch.device.waiting import region_of
from halfscope.torch.tensors.elements import Unreadable, elements_of

FUNCTIONS = {
    "Histogram": Histogram,
    "round": lambda tensor: halfscope.round(tensor, "fp16"),
    "lost_updates": lambda tensor: halfscope.lost_updates(tensor, tensor),
    "analyze": lambda tensor: halfscope.analyze({"x": tensor}),
}


def storage_of(tensor: torch.Tensor) -> object:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


def freed() -> torch.Tensor:
    """As fully_shard leaves the parameters that it has put away."""
    tensor = torch.randn(1000)
    storage_of(tensor).resize_(0)
    return tensor


def freed_view() -> torch.Tensor:
    """Its pointer is an offset from null."""
    tensor = torch.randn(1000)
    view = tensor[500:]
    storage_of(tensor).resize_(0)
    return view


def shortened() -> torch.Tensor:
    tensor = torch.randn(100_000)
    view = tensor[50_000:]
    storage_of(tensor).resize_(1000)
    return view


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, size: int) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, (size,))

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return args[0]


def fake() -> torch.Tensor:
    mode = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode
    with mode():
        return torch.randn(10)


TENSORS = {
    "freed": freed,
    "freed view": freed_view,
    "shortened": shortened,
    "wrapper": lambda: Wrapper(7),
    "fake": fake,
}


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", TENSORS)
def test_a_tensor_without_memory_is_refused_in_one_line(kind: str, function: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refusal:
        FUNCTIONS[function](TENSORS[kind]())
    assert "\n" not in str(refusal.value)
    assert "no memory that holds" in str(refusal.value) or "cannot read" in str(refusal.value)


@pytest.mark.parametrize("kind", TENSORS)
def test_watch_names_a_tensor_without_memory_and_goes_on(kind: str) -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fine = torch.nn.Linear(3, 2)
            self.odd = torch.nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.odd(TENSORS[kind]())
            return self.fine(x)

    model = Odd()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.ones(5, 3)).sum().backward()
        optimizer.step()
    assert watched.histograms("activation")["fine"].elements == 10
    assert "odd" not in watched.histograms("activation")
    assert "1 tensor could not be read: odd (a" in watched.verdict


def test_an_empty_tensor_has_no_memory_and_is_read() -> None:
    assert Histogram(torch.empty(0, 3)).elements == 0
    assert elements_of(torch.empty(0)).numel() == 0


@pytest.mark.skipif(not hasattr(torch, "_neg_view"), reason="PyTorch has no lazy negation")
def test_a_negation_that_is_put_off_is_made() -> None:
    values = torch.tensor([1.5, -2.0, 3.0])
    assert torch.equal(halfscope.round(torch._neg_view(values), "fp16"), -values)
    conjugate = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert conjugate.is_neg() and torch.equal(halfscope.round(conjugate, "fp16"), torch.tensor([-2.0, 4.0]))
    assert torch.equal(elements_of(conjugate), torch.tensor([-2.0, 4.0])) and not elements_of(conjugate).is_neg()


def test_per_sample_gradients_of_vmap_go_on_being_trained() -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parameters = dict(model.named_parameters())

    def loss(weights: dict, sample: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, weights, (sample,)).square().sum()

    with watch(model, 1, optimizer=optimizer) as watched:
        for _ in range(2):
            found = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, torch.randn(6, 4))
            for name, parameter in parameters.items():
                parameter.grad = found[name].mean(0).detach()
            optimizer.step()
    assert watched.steps == 2
    assert watched.histograms("weight_gradient")["weight"].elements == 2 * 4  # set by hand, seen at the optimizer
    assert "could not be read: the model (a Tensor without memory)" in watched.verdict


def test_a_dtensor_is_counted_by_its_shard() -> None:
    class Shard(Wrapper):
        placements = ()

        def to_local(self) -> torch.Tensor:
            return torch.arange(7.0)

    assert torch.equal(elements_of(Shard(7)), torch.arange(7.0))


def test_partial_sums_are_not_counted() -> None:
    class Placement:
        def is_partial(self) -> bool:
            return True

    class Partial(Wrapper):
        placements = (Placement(),)

        def to_local(self) -> torch.Tensor:
            return torch.ones(7)

    with pytest.raises(Unreadable, match="partial sums"):
        elements_of(Partial(7))


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(0, 3),
    "gaps": lambda x: x[:, 1:],
    "expanded": lambda x: x[:1].expand(4, -1, -1, -1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_read_where_they_lie(layout: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    values = LAYOUTS[layout]((torch.randn(4, 5, 67, 71) * 2.0 ** torch.randint(-30, 20, (4, 5, 67, 71))).to(dtype))
    rows = values.contiguous()
    expected = Histogram(rows.float() if dtype is torch.bfloat16 else rows.numpy())
    assert Histogram(values) == expected
    region = region_of(values)
    assert (region is not None) == (layout in ("channels_last", "transposed"))
    if region is not None:
        assert halfscope._core.count_floats([region]) == [expected]
        assert halfscope._core.largest_magnitude(region) == float(values.abs().max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_the_largest_magnitude_of_a_region(dtype: torch.dtype) -> None:
    values = torch.tensor([1.0, -3.0, 2.0, 0.0, -0.0], dtype=dtype)
    assert halfscope._core.largest_magnitude(region_of(values)) == 3
    values[1] = -math.inf
    assert halfscope._core.largest_magnitude(region_of(values)) == math.inf
    values[2] = math.nan
    assert math.isnan(halfscope._core.largest_magnitude(region_of(values)))
    with pytest.raises(ValueError, match="give f32, f16, bf16 or f64"):
        halfscope._core.largest_magnitude((values.data_ptr(), 1, "f8_e4m3"))


def test_the_type_of_a_region_is_checked() -> None:
    with pytest.raises(ValueError, match="unknown type 'f17'"):
        halfscope._core.count_floats([(0, 0, "f17")])
    with pytest.raises(ValueError, match="weights of bf16; give f32"):
        halfscope._core.KeptWeights().keep([(0, 0, "bf16")])


def test_a_channels_last_model_moves_the_same_weights() -> None:
    """Weights and updates are paired in the order in which they lie."""
    torch.manual_seed(0)
    rows = torch.nn.Conv2d(3, 8, 3)
    found = []
    for model in (rows, copy.deepcopy(rows).to(memory_format=torch.channels_last)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with watch(model, 1, optimizer=optimizer) as watched:
            model.weight.grad = torch.arange(216.0).view(8, 3, 3, 3) * 1e-6
            optimizer.step()
        found.append(watched.histograms("update_ratio"))
    assert found[0]["weight"] == found[1]["weight"] and found[0]["weight"].nonzero > 0


def test_a_model_that_is_called_inside_vmap_goes_on_being_trained() -> None:
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.randn(6, 4)
    with watch(model, 1, optimizer=optimizer) as watched:
        torch.func.vmap(lambda row: model(row).sum())(rows).square().mean().backward()
        optimizer.step()
    assert watched.histograms()["weight"] == Histogram(model.weight.grad)


def test_a_nested_tensor_is_counted_by_its_elements() -> None:
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    parts = [torch.randn(2, 4), torch.randn(5, 4)]
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.nested.nested_tensor(parts, layout=torch.jagged)).values().square().mean().backward()
        optimizer.step()
    (counted,) = watched.histograms("activation").values()
    assert counted == Histogram(model(torch.cat(parts)).detach())
