"""The sum of magnitudes of all terms is that of the product of magnitudes, for every product of the table."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.torch.emulate.twins.cancellation import Cancellation, terms_of
from halfscope.torch.operations.table import TABLE, Kind

pytestmark = pytest.mark.torch
Case = tuple[tuple, dict[str, Any]]


def matrices(draw: random.Random, batch: tuple[int, ...] = ()) -> tuple[torch.Tensor, torch.Tensor]:
    m, k, n = (draw.choice([0, 1, 2, 3, 7]) for _ in range(3))
    return torch.randn(*batch, m, k), torch.randn(*batch, k, n)


def mm(draw: random.Random) -> Case:
    return matrices(draw), {}


def bmm(draw: random.Random) -> Case:
    return matrices(draw, (draw.randint(0, 3),)), {}


def factors(draw: random.Random) -> dict[str, float]:
    return {name: draw.choice([0, 1, -0.5, 3]) for name in ("alpha", "beta") if draw.random() < 0.5}


def term(draw: random.Random, shape: list[int]) -> torch.Tensor:
    """A tensor that expands to a shape; a vector's is whole, since PyTorch's addmv resizes its result else."""
    kept = shape[draw.randint(0, len(shape) - 1) :]
    return torch.randn([1 if len(shape) > 1 and draw.random() < 0.3 else size for size in kept])


def added(product: Callable[[random.Random], Case], shape: Callable[..., list[int]]) -> Callable[[random.Random], Case]:
    def case(draw: random.Random) -> Case:
        a, b = product(draw)[0]
        return (term(draw, shape(a, b)), a, b), factors(draw)

    return case


def mv(draw: random.Random) -> Case:
    a, _ = matrices(draw)
    return (a, torch.randn(a.shape[1])), {}


def dot(draw: random.Random) -> Case:
    size = draw.randint(0, 9)
    return (torch.randn(size), torch.randn(size)), {}


def outer(draw: random.Random) -> Case:
    return (torch.randn(draw.randint(0, 5)), torch.randn(draw.randint(0, 5))), {}


def geometry(draw: random.Random) -> tuple[tuple, int]:
    """Images, weight, and the arguments behind the bias; and the number of output channels."""
    axes, groups, transposed = draw.randint(1, 3), draw.choice([1, 2, 3]), draw.random() < 0.4
    inner, outer = groups * draw.randint(1, 3), groups * draw.randint(1, 3)
    kernel = [draw.randint(1, 3) for _ in range(axes)]
    stride, dilation = ([draw.randint(1, 2) for _ in range(axes)] for _ in range(2))
    padding = [draw.randint(0, 1) for _ in range(axes)]
    extents = [draw.randint(6, 8) for _ in range(axes)]
    extra = [draw.randint(0, max(step, spread) - 1) for step, spread in zip(stride, dilation)]
    weight = torch.randn(*((inner, outer // groups) if transposed else (outer, inner // groups)), *kernel)
    behind = stride, padding, dilation, transposed, extra if transposed else [0] * axes, groups
    return (torch.randn(draw.randint(1, 3), inner, *extents), weight, behind), outer


def convolution(draw: random.Random) -> Case:
    (images, weight, behind), outer = geometry(draw)
    return (images, weight, torch.randn(outer) if draw.random() < 0.5 else None, *behind), {}


def convolution_backward(draw: random.Random) -> Case:
    (images, weight, behind), outer = geometry(draw)
    gradient = torch.randn_like(torch.ops.aten.convolution(images, weight, None, *behind))
    mask = [draw.random() < 0.7 for _ in range(3)]
    return (gradient, images, weight, [outer], *behind, mask), {}


CASES: dict[str, Callable[[random.Random], Case]] = {
    "mm": mm, "bmm": bmm, "mv": mv, "dot": dot, "vdot": dot, "convolution": convolution,
    "convolution_backward": convolution_backward,
    "addmm": added(mm, lambda a, b: [a.shape[0], b.shape[1]]),
    "baddbmm": added(bmm, lambda a, b: [a.shape[0], a.shape[1], b.shape[2]]),
    "addbmm": added(bmm, lambda a, b: [a.shape[1], b.shape[2]]),
    "addmv": added(mv, lambda a, b: [a.shape[0]]),
    "addr": added(outer, lambda a, b: [len(a), len(b)]),
}  # fmt: skip


def magnitudes(value: Any) -> Any:
    return value.double().abs() if isinstance(value, torch.Tensor) else value


def total(results: Any) -> float:
    parts = results if isinstance(results, (tuple, list)) else [results]
    return sum(float(part.double().abs().sum()) for part in parts if part is not None)


def test_every_product_of_the_table_has_a_rule() -> None:
    assert {name for name, line in TABLE.items() if line.kind is Kind.PRODUCT} == set(CASES)


@pytest.mark.parametrize("operation", sorted(CASES))
def test_terms_are_those_of_the_product_of_magnitudes(operation: str) -> None:
    func = getattr(torch.ops.aten, operation)
    for seed in range(60):
        draw = random.Random(f"{operation} {seed}")
        torch.manual_seed(seed)
        args, kwargs = CASES[operation](draw)
        exact = func(*map(magnitudes, args), **{key: abs(value) for key, value in kwargs.items()})
        assert terms_of(operation, args, kwargs) == pytest.approx(total(exact), rel=1e-5), (seed, args[-6:], kwargs)


def test_sums_are_those_of_all_results() -> None:
    cancellation = Cancellation("mm")
    cancellation.add(12.0, (torch.tensor([-1.0, 2.0]), None, torch.tensor([[3.0]])))
    assert (cancellation.terms, cancellation.sums, cancellation.ratio) == (12.0, 6.0, 2.0)
