"""Products of tensors of 16 bits under emulation, bit for bit beside halfscope.matmul in the model's order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import halfscope
from elementwise_cases import special
from emulated_mode import arithmetic, difference
from halfscope.torch.operations.table import TABLE, Kind
from shaped_cases import near

pytestmark = pytest.mark.torch

Tensor = torch.Tensor
MODELS = {torch.float16: "tensor_core(hopper)", torch.bfloat16: "bf16_tensor_core(hopper)"}


def product(a: Tensor, b: Tensor) -> Tensor:
    """Unrounded."""
    return halfscope.matmul(a.float(), b.float(), order=MODELS[a.dtype])


def widest(kind: torch.dtype, *shape: int) -> Tensor:
    """Special numbers in the first rows, then numbers near 1."""
    numbers, extremes = near(kind, *shape), special(kind)
    numbers.view(-1)[: min(len(extremes), numbers.numel() // 4)] = extremes[: numbers.numel() // 4]
    return numbers


def taps_first(weight: Tensor) -> Tensor:
    """(taps and channels, out) of (out, channels, height, width)."""
    return weight.permute(2, 3, 1, 0).reshape(-1, weight.shape[0])


def patches(images: Tensor, kernel: int, padding: int) -> Tensor:
    """(batch, positions, taps and channels)."""
    batch, channels = images.shape[:2]
    columns = torch.nn.functional.unfold(images.float(), kernel, padding=padding)
    columns = columns.reshape(batch, channels, kernel**2, -1)
    return columns.permute(0, 3, 2, 1).reshape(batch, -1, kernel**2 * channels).to(images.dtype)


def expected_convolution(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rows = product(patches(images, 3, 1).flatten(0, 1), taps_first(weight)) + bias.float()
    return rows.reshape(len(images), *images.shape[2:], -1).permute(0, 3, 1, 2).contiguous()


def convolution_gradients(gradient: Tensor, images: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    turned = weight.flip(2, 3).transpose(0, 1)
    of_images = expected_convolution(gradient, turned, torch.zeros(()))
    rows = gradient.permute(0, 2, 3, 1).reshape(-1, gradient.shape[1])
    columns = patches(images, 3, 1).flatten(0, 1)
    of_weight = product(columns.t().contiguous(), rows).reshape(3, 3, images.shape[1], -1).permute(3, 2, 0, 1)
    return of_images, of_weight, halfscope.sum(rows.float(), 0, order="fp32_chunked(256)")


def _cases(k: torch.dtype) -> dict[str, tuple[tuple, dict, Callable]]:
    """By operation: arguments, and a function of them that returns the unrounded result."""
    a, b, term = widest(k, 17, 70), near(k, 70, 9, seed=1), near(k, 17, 9, seed=2)
    many, more, terms = widest(k, 3, 17, 70), near(k, 3, 70, 9, seed=1), near(k, 3, 17, 9, seed=2)
    vector, row, scaled = near(k, 70, seed=3), near(k, 17, seed=4), {"alpha": 0.3, "beta": 0.7}
    images, weight, bias = near(k, 2, 4, 7, 6), near(k, 5, 4, 3, 3, seed=1), near(k, 5, seed=2)
    where = [[1, 1], [1, 1], [1, 1], False, [0, 0], 1]
    both = lambda t, total: t.float() * 0.7 + total * 0.3  # noqa: E731
    along = lambda x, y: product(x.transpose(0, 1).reshape(17, -1), y.reshape(-1, 9))  # noqa: E731
    return {
        "mm": ((a, b), {}, product),
        "bmm": ((many, more), {}, product),
        "mv": ((a, vector), {}, lambda x, y: product(x, y[:, None])[:, 0]),
        "dot": ((vector, near(k, 70, seed=5)), {}, lambda x, y: product(x[None], y[:, None])[0, 0]),
        "vdot": ((vector, near(k, 70, seed=5)), {}, lambda x, y: product(x[None], y[:, None])[0, 0]),
        "addmm": ((term, a, b), scaled, lambda t, x, y: both(t, product(x, y))),
        "baddbmm": ((terms, many, more), scaled, lambda t, x, y: both(t, product(x, y))),
        "addbmm": ((term, many, more), scaled, lambda t, x, y: both(t, along(x, y))),
        "addmv": ((row, a, vector), scaled, lambda t, x, y: both(t, product(x, y[:, None])[:, 0])),
        "addr": ((term, row, near(k, 9)), scaled, lambda t, x, y: both(t, product(x[:, None], y[None]))),
        "convolution": ((images, weight, bias, *where), {}, lambda x, w, c, *_: expected_convolution(x, w, c)),
        "convolution_backward": (
            (near(k, 2, 5, 7, 6, seed=3), images, weight, [5], *where, [True] * 3), {},
            lambda g, x, w, *_: convolution_gradients(g, x, w),
        ),
    }  # fmt: skip


PRODUCTS = [name for name, line in TABLE.items() if line.kind is Kind.PRODUCT]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name: str, kind: torch.dtype) -> None:
    args, options, expect = _cases(kind)[name]
    unrounded = expect(*args)
    expected = tuple(part.to(kind) for part in unrounded) if isinstance(unrounded, tuple) else unrounded.to(kind)
    with arithmetic():
        found = getattr(torch.ops.aten, name)(*args, **options)
    assert difference(expected, found) == ""


def test_a_product_into_a_given_tensor() -> None:
    a, b = near(torch.bfloat16, 5, 40), near(torch.bfloat16, 40, 3, seed=1)
    target, term = torch.empty(0, dtype=torch.bfloat16), near(torch.bfloat16, 5, 3, seed=2)
    expected = (term.float() + product(a, b)).bfloat16()
    with arithmetic():
        assert torch.mm(a, b, out=target) is target
        assert term.addmm_(a, b) is term
    assert torch.equal(target, product(a, b).bfloat16())
    assert torch.equal(term, expected)


def test_a_term_without_weight_is_not_read() -> None:
    term = torch.full((2, 2), float("nan"), dtype=torch.bfloat16)
    with arithmetic():
        assert torch.addmm(term, torch.eye(2).bfloat16(), torch.eye(2).bfloat16(), beta=0).isfinite().all()


@pytest.mark.parametrize("shape", [(0, 4, 3), (5, 0, 3), (5, 4, 0)])
def test_products_of_nothing(shape: tuple[int, int, int]) -> None:
    a, b = torch.ones(shape[:2], dtype=torch.bfloat16), torch.ones(shape[1:], dtype=torch.bfloat16)
    with arithmetic():
        assert torch.equal(a @ b, torch.zeros(shape[0], shape[2], dtype=torch.bfloat16))


def test_a_batch_of_no_images() -> None:
    layer = torch.nn.Conv2d(3, 4, 3, padding=1).bfloat16()
    images = torch.ones(0, 3, 5, 5, dtype=torch.bfloat16, requires_grad=True)
    with arithmetic():
        output = layer(images)
        output.sum().backward()
    assert output.shape == (0, 4, 5, 5) and output.dtype == torch.bfloat16
    assert not layer.weight.grad.any() and layer.weight.grad.dtype == torch.bfloat16


def test_operands_of_two_formats_are_refused_as_pytorch_does() -> None:
    with arithmetic(), pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 2, dtype=torch.bfloat16), torch.ones(2, 2))


def test_complex_products_are_pytorchs() -> None:
    a = torch.complex(near(torch.float32, 4, 4), near(torch.float32, 4, 4, seed=1))
    with arithmetic():
        assert torch.equal(a @ a, torch.mm(a, a))
