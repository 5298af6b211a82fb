"""Calls of the element-wise operations that an emulation computes: their operands of 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

Call = tuple[tuple, dict[str, Any]]
Calls = Callable[[torch.dtype], Iterator[Call]]
RANDOM = 1_000_000


def every(kind: torch.dtype) -> torch.Tensor:
    """All 65536 numbers of a format."""
    return torch.arange(-(2**15), 2**15, dtype=torch.int16).view(kind)


def special(kind: torch.dtype) -> torch.Tensor:
    """Zeros, subnormal numbers, the smallest and largest normal ones, 1, 2 and 3 with their neighbours, halves of an
    ulp, infinities and NaN, of both signs."""
    limits = torch.finfo(kind)
    smallest, ulp = limits.tiny * limits.eps, limits.eps
    magnitudes = [
        0.0, smallest, 2 * smallest, 3 * smallest, limits.tiny - smallest, limits.tiny, limits.tiny + smallest, ulp / 4,
        ulp / 2, ulp * 0.75, ulp, 0.1, 0.5, 1 - ulp / 2, 1.0, 1 + ulp, 1 + 2 * ulp, 2 - ulp, 2.0, 3.0, 3 + 2 * ulp,
        20.0, 1 / ulp, 2 / ulp, 3 / ulp, limits.max / 2, limits.max * (1 - ulp), limits.max, float("inf"), float("nan"),
    ]  # fmt: skip
    positive = torch.tensor(magnitudes, dtype=torch.float64).to(kind)
    return torch.cat([positive, -positive])


def random(kind: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    """Half of them of any bits, the others of a few exponents around 1."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(-(2**15), 2**15, shape, dtype=torch.int16, generator=generator).view(kind)
    near = torch.randn(shape, generator=generator) * torch.randint(-12, 6, shape, generator=generator).float().exp2()
    return torch.where(torch.rand(shape, generator=generator) < 0.5, bits, near.to(kind))


def operands(kind: torch.dtype, count: int) -> tuple[torch.Tensor, ...]:
    """Special numbers, each with each other, and random ones; of three or more operands the third is shifted."""
    numbers = special(kind)
    first, second = (grid.flatten() for grid in torch.meshgrid(numbers, numbers, indexing="ij"))
    columns = [first, second, *(first.roll(7 * place) for place in range(1, count - 1))]
    return tuple(torch.cat([column, random(kind, RANDOM, seed=place)]) for place, column in enumerate(columns))


def _unary(*arguments: Any, **options: Any) -> Calls:
    return lambda kind: iter([((every(kind), *arguments), options)])


def _each(count: int, *arguments: Any, **options: Any) -> Calls:
    """Cases of an operation on `count` tensors."""
    return lambda kind: iter([((*operands(kind, count), *arguments), options)])


def _both(*calls: Calls) -> Calls:
    return lambda kind: (call for several in calls for call in several(kind))


def _binary(kind: torch.dtype) -> Iterator[Call]:
    """Two tensors, and a tensor with a scalar."""
    yield operands(kind, 2), {}
    for scalar in (0.1, 3, -2, -1e-3):
        yield (every(kind), scalar), {}


def _compared(kind: torch.dtype) -> Iterator[Call]:
    yield operands(kind, 2), {}
    yield (every(kind), 0.5), {}


def _leading(name_of_scalar: float) -> Calls:
    """A scalar before a tensor."""
    return lambda kind: iter([((name_of_scalar, every(kind)), {})])


def _masked(*arguments: Any) -> Calls:
    def calls(kind: torch.dtype) -> Iterator[Call]:
        numbers = every(kind)
        yield (numbers, torch.arange(len(numbers)) % 3 == 0, *arguments), {}

    return calls


def _where(kind: torch.dtype) -> Iterator[Call]:
    a, b = operands(kind, 2)
    yield (torch.arange(len(a)) % 3 == 0, a, b), {}


def _filled(kind: torch.dtype) -> Iterator[Call]:
    yield (every(kind), 0.1), {}
    yield (every(kind), torch.tensor(0.1, dtype=kind)), {}


def _buffered(kind: torch.dtype) -> Iterator[Call]:
    gradient, x = operands(kind, 2)
    yield (gradient, x, torch.ops.aten.log_sigmoid_forward(x.float())[1].to(kind)), {}


def _elu_backward(kind: torch.dtype) -> Iterator[Call]:
    gradient, x = operands(kind, 2)
    yield (gradient, 1, 1, 1, False, x), {}


def _weighted(*leading: int) -> Calls:
    """(channels) weights for numbers (rows, channels), after `leading` more tensors."""

    def calls(kind: torch.dtype) -> Iterator[Call]:
        tensors = [column[:1_000_000].reshape(-1, 4) for column in operands(kind, 1 + sum(leading))[: 1 + sum(leading)]]
        yield (*tensors, torch.tensor([0.25, -0.5, 0.1, 2.0], dtype=kind)), {}

    return calls


def _kernel_weighted(count: int) -> Calls:
    def calls(kind: torch.dtype) -> Iterator[Call]:
        tensors = [column[:1_000_000].reshape(-1, 4) for column in operands(kind, 2)]
        weight = torch.tensor([0.25, -0.5, 0.1, 2.0], dtype=kind).expand_as(tensors[0])
        yield (*tensors[:count], weight), {}

    return calls


def _halves(count: int, *arguments: Any) -> Calls:
    """Rows of two halves each; of two tensors the first has half of the columns."""

    def calls(kind: torch.dtype) -> Iterator[Call]:
        a, b = (column[:1_000_000].reshape(-1, 8) for column in operands(kind, 2))
        yield ((a, *arguments) if count == 1 else (a[:, :4].contiguous(), b, *arguments)), {}

    return calls


_UNARY = """
    relu neg abs sgn sign round floor ceil trunc reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan
    tanh sigmoid erf erfc erfinv silu mish hardswish hardsigmoid atan asin acos sinh cosh asinh acosh
    atanh nan_to_num frac angle celu clone isnan isinf logical_not zero log_sigmoid_forward
    hardtanh elu leaky_relu softplus softshrink hardshrink nonzero any all
"""
_BINARY = "add sub mul div pow fmod remainder floor_divide"
_COMPARED = "eq ne lt le gt ge"
_PAIRED = """
    maximum minimum copysign atan2 hypot logaddexp logaddexp2 logical_and logical_or logical_xor
    tanh_backward sigmoid_backward silu_backward mish_backward hardswish_backward hardsigmoid_backward copy equal
"""
ELEMENTWISE: dict[str, Calls] = {
    **{name: _unary() for name in _UNARY.split()},
    **dict.fromkeys(_BINARY.split(), _binary),
    **dict.fromkeys(_COMPARED.split(), _compared),
    **{name: _each(2) for name in _PAIRED.split()},
    "rsub": _both(_each(2), _unary(1.5)),
    "xlogy": _both(_each(2), _unary(0.1), _leading(0.1)),
    "elu": _both(_unary(), _unary(1.673, 1.05, 1)),
    "gelu": _both(_unary(), _unary(approximate="tanh")),
    "gelu_backward": _both(_each(2), _each(2, approximate="tanh")),
    "threshold": _unary(0.1, 0.3),
    "logit": _both(_unary(), _unary(1e-2)),
    "pow": _both(_binary, _unary(2), _unary(0.5), _leading(2.0)),
    "clamp": _both(_unary(-0.1, 0.3), _unary(None, 1)),
    "clamp_min": _unary(0.1),
    "clamp_max": _unary(0.1),
    "threshold_backward": _each(2, 0),
    "hardtanh_backward": _each(2, -1, 1),
    "elu_backward": _elu_backward,
    "leaky_relu_backward": _each(2, 0.01, False),
    "softplus_backward": _each(2, 1, 20),
    "softshrink_backward": _each(2, 0.5),
    "logit_backward": _each(2, 1e-2),
    "log_sigmoid_backward": _buffered,
    "addcmul": _both(_each(3), _each(3, value=0.1)),
    "addcdiv": _both(_each(3), _each(3, value=0.1)),
    "lerp": _both(_each(2, 0.1), _each(3)),
    "where": _where,
    "masked_fill": _masked(0.1),
    "fill": _filled,
    "prelu": _weighted(),
    "prelu_backward": _weighted(1),
    "_prelu_kernel": _kernel_weighted(1),
    "_prelu_kernel_backward": _kernel_weighted(2),
    "glu": _halves(1, -1),
    "glu_backward": _halves(2, -1),
    "_to_copy": _both(_unary(dtype=torch.float32), _unary(dtype=torch.float64), _unary(dtype=torch.bfloat16)),
}
