"""Tensors of 16 bits under emulation: in place, into given tensors, in other layouts and of mixed types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from elementwise_cases import ELEMENTWISE
from emulated_mode import arithmetic, copied, difference, tensors_of
from emulation_exceptions import EXCEPTIONS, LIBRARY
from halfscope.torch.operations.table import TABLE, Kind
from shaped_cases import near

pytestmark = pytest.mark.torch

KIND = torch.bfloat16
# Without operations of rows, and FP32 loops of PyTorch whose bits depend on the layout.
OTHERS = ("prelu", "prelu_backward", "_prelu_kernel", "_prelu_kernel_backward", "glu", "glu_backward", "floor_divide")
ROUNDED = [
    name for name in ELEMENTWISE
    if TABLE[name].kind is Kind.ROUNDED and hasattr(torch.ops.aten, name) and name not in OTHERS
    and EXCEPTIONS.get(name, ("",))[0] is not LIBRARY
]  # fmt: skip
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "empty": lambda tensor: tensor[:0],
    "one number": lambda tensor: tensor[77],
    "transposed": lambda tensor: tensor[:600].reshape(20, 30).t(),
    "strided": lambda tensor: tensor[:600:2],
    "channels_last": lambda tensor: tensor[:960].reshape(2, 8, 6, 10).contiguous(memory_format=torch.channels_last),
    "expanded": lambda tensor: tensor[:20, None].expand(20, 30),
}


def small(name: str) -> tuple[tuple, dict]:
    """The first call, of flat tensors of 1000 numbers without NaNs."""
    args, options = next(iter(ELEMENTWISE[name](KIND)))
    return tuple(shortened(value) if isinstance(value, torch.Tensor) else value for value in args), options


def shortened(tensor: torch.Tensor) -> torch.Tensor:
    short = tensor[-1000:].clone()
    return short.nan_to_num() if short.is_floating_point() else short


def run(call: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    with arithmetic():
        return call()


@pytest.mark.parametrize("name", [name for name in ROUNDED if hasattr(torch.ops.aten, f"{name}_")])
def test_in_place(name: str) -> None:
    args, options = small(name)
    expected = run(lambda: getattr(torch.ops.aten, name)(*args, **options))
    whole = torch.zeros(2000, dtype=KIND)
    view, others = whole[::2], copied(args[1:])
    view.copy_(args[0])
    result = run(lambda: getattr(torch.ops.aten, f"{name}_")(view, *others, **options))
    assert result is view
    assert difference(expected, view.clone()) == ""
    assert not whole[1::2].any()


@pytest.mark.parametrize("name", ROUNDED)
def test_into_a_given_tensor(name: str) -> None:
    args, options = small(name)
    expected = run(lambda: getattr(torch.ops.aten, name)(*args, **options))
    target = torch.empty(0, dtype=KIND)
    overload = getattr(getattr(torch.ops.aten, name), "out", None)
    if overload is None or not isinstance(expected, torch.Tensor):
        pytest.skip(f"{name} has no out=")
    try:
        found = run(lambda: overload(*copied(args), **options, out=target))
    except RuntimeError as error:
        pytest.skip(str(error))  # the overload called `out` takes other arguments
    assert found is target
    assert difference(expected, target) == ""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ROUNDED)
def test_layout(name: str, layout: str) -> None:
    """The same bits as of contiguous tensors, in the memory order that PyTorch gives."""
    args, options = small(name)
    laid = tuple(LAYOUTS[layout](value) if isinstance(value, torch.Tensor) else value for value in args)
    plain = tuple(value.contiguous() if isinstance(value, torch.Tensor) else value for value in laid)
    operation = getattr(torch.ops.aten, name)
    try:
        native = operation(*laid, **options)
    except RuntimeError as error:
        pytest.skip(str(error))
    expected, found = run(lambda: operation(*plain, **options)), run(lambda: operation(*laid, **options))
    assert difference(expected, found) == ""
    for wanted, ours in zip(tensors_of(native), tensors_of(found)):
        assert wanted.numel() < 2 or wanted.stride() == ours.stride()


MIXED = {
    "fp16 with bf16": lambda: (near(torch.float16, 50), near(KIND, 50, seed=1)),
    "bf16 with fp32": lambda: (near(KIND, 50), near(torch.float32, 50, seed=1)),
    "bf16 with fp64": lambda: (near(KIND, 50), near(torch.float64, 50, seed=1)),
    "bf16 with integers": lambda: (near(KIND, 50), torch.arange(50) - 25),
    "bf16 with booleans": lambda: (near(KIND, 50), torch.arange(50) % 2 == 0),
    "bf16 with an FP32 number": lambda: (near(KIND, 50), torch.tensor(0.3)),
    "an FP32 number with bf16": lambda: (torch.tensor(0.3), near(KIND, 50)),
    "numbers of two types": lambda: (torch.tensor(0.3, dtype=KIND), torch.tensor(0.7)),
    "bf16 with a complex": lambda: (near(KIND, 50), torch.complex(near(torch.float32, 50), near(torch.float32, 50))),
}


@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "where", "lt", "atan2"])
@pytest.mark.parametrize("operands", MIXED)
def test_mixed_operands(operands: str, name: str) -> None:
    pair = MIXED[operands]()
    operation = (lambda a, b: torch.where(a > 0, a, b)) if name == "where" else getattr(torch, name)
    try:
        native = operation(*pair)
    except (RuntimeError, TypeError):
        pytest.skip("PyTorch refuses these")
    found = run(lambda: operation(*pair))
    assert found.dtype == native.dtype and found.shape == native.shape
    if "number" not in operands or "two" in operands:
        assert difference(native, found) == ""
    elif found.dtype == KIND:  # the CPU rounds it first in some operations
        exact = operation(*(tensor.double() for tensor in pair))
        assert torch.equal(found, exact.to(KIND)) or difference(native, found) == ""


def test_into_a_tensor_of_another_type() -> None:
    a, total, counts = near(KIND, 50), near(torch.float32, 50, seed=1), torch.zeros(50, dtype=torch.bool)
    expected = total + a.float()
    with arithmetic():
        total += a
        assert torch.lt(a, 0.5, out=counts) is counts
        added = torch.add(a, a, out=torch.empty(50))
        narrow = a.clone().add_(total)
    assert torch.equal(total, expected)
    assert torch.equal(counts, a < 0.5)
    assert torch.equal(added, 2 * a.float())
    assert torch.equal(narrow, (a.float() + total).to(KIND)) and narrow.dtype == KIND


def test_several_results_into_given_tensors() -> None:
    x = near(KIND, 9, 40)
    given = torch.empty(9, dtype=KIND), torch.empty(9, dtype=KIND)
    with arithmetic():
        options = {"correction": 1, "keepdim": False}
        found = torch.ops.aten.var_mean.correction_out(x, [1], **options, out0=given[0], out1=given[1])
        expected = torch.ops.aten.var_mean.correction(x, [1], **options)
    assert found[0] is given[0] and found[1] is given[1]
    assert difference(expected, given) == ""


def test_an_operand_that_is_written_is_read_once() -> None:
    x = near(KIND, 50)
    expected = (x.float() + 2 * x.float()).to(KIND)
    with arithmetic():
        x.add_(x, alpha=2)
    assert torch.equal(x, expected)


def test_scalars_are_fp32() -> None:
    """As on a GPU: 1/3 of 16 bits would be another number."""
    x = near(torch.float16, 1000)
    with arithmetic():
        assert torch.equal(x + 1 / 3, (x.float() + 1 / 3).half())
        assert torch.equal(x * (1 / 3), (x.float() * (1 / 3)).half())
        assert torch.equal(1 / 3 - x, (1 / 3 - x.float()).half())


NORMALISATIONS: dict[str, Callable[[], torch.nn.Module]] = {
    "batch norm": lambda: torch.nn.BatchNorm2d(8),
    "group norm": lambda: torch.nn.GroupNorm(2, 8),
    "layer norm": lambda: torch.nn.LayerNorm([8, 5, 6]),
    "instance norm": lambda: torch.nn.InstanceNorm2d(8, affine=True),
}


@pytest.mark.parametrize("weights", [torch.float32, KIND])
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_types_of_a_normalisation(name: str, weights: torch.dtype) -> None:
    """The output in the input's type, the weight's gradient in the weight's; near the same in FP64."""
    layer, x = NORMALISATIONS[name]().to(weights), near(KIND, 4, 8, 5, 6).requires_grad_()
    exact, x64 = NORMALISATIONS[name]().double(), x.detach().double().requires_grad_()
    with arithmetic():
        output = layer(x)
        (output * near(KIND, 4, 8, 5, 6, seed=1)).sum().backward()
    gradient = near(KIND, 4, 8, 5, 6, seed=1)
    (exact(x64) * gradient).sum().backward()
    assert output.dtype == x.grad.dtype == KIND
    assert layer.weight.grad.dtype == layer.bias.grad.dtype == weights
    assert torch.allclose(output.double(), exact(x64), atol=2**-7)
    # A gradient is a sum of the gradient that arrives times the normalised input, which the output is at first. BF16
    # rounds each term to 2^-9 of itself, and the sum.
    other = [axis for axis in range(4) if axis not in ([1, 2, 3] if name == "layer norm" else [1])]
    terms = (gradient.double() * exact(x64)).detach().abs().sum(other)
    assert ((layer.weight.grad.double() - exact.weight.grad).abs() <= 2**-9 * (terms + exact.weight.grad.abs())).all()


@pytest.mark.parametrize("kind", [KIND, torch.float16])
def test_running_averages_of_16_bits_are_updated(kind: torch.dtype) -> None:
    layer, x = torch.nn.BatchNorm1d(8).to(kind), near(kind, 40, 8) + 3
    with arithmetic():
        layer(x)
    expected = 0.1 * x.double().mean(0)
    assert layer.running_mean.dtype == kind
    assert torch.allclose(layer.running_mean.double(), expected, rtol=torch.finfo(kind).eps)


def test_conversions() -> None:
    x = near(torch.float32, 500)
    with arithmetic():
        assert torch.equal(x.to(KIND).view(torch.int16), x.bfloat16().view(torch.int16))
        assert torch.equal(x.half().to(KIND).float(), x.half().bfloat16().float())
        assert x.half().double().dtype == torch.float64
        assert x.half().long().dtype == torch.int64
        assert (x.half() > 0).dtype == torch.bool and x.half().argmax().dtype == torch.int64


def test_complex_operations_are_pytorchs() -> None:
    x = torch.complex(near(torch.float32, 30), near(torch.float32, 30, seed=1))
    with arithmetic():
        found = (x * x.conj()).abs(), torch.fft.fft(x), torch.view_as_real(x).half().float(), x.angle()
    assert torch.equal(found[0], (x * x.conj()).abs())
    assert torch.equal(found[1], torch.fft.fft(x))
    assert torch.equal(found[3], x.angle())
