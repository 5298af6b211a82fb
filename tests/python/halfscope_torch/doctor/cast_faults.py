"""Faults beside casts to FP32 and back, whose results meet 16-bit weights: a remedy that drops a cast is refused."""

from __future__ import annotations

import random

from planted_faults import Fault


def _norm(rng: random.Random) -> list[str]:
    a = rng.choice([100, 200])
    return [
        "kind = h.dtype",
        "x = h.float()",
        f"h = {a} * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)).to(kind)",
        f"h = self.inner(h) * ({20 * 200 // a} * self.inner(h)) / {a * a}",
    ]


def _scores(rng: random.Random) -> list[str]:
    a = rng.choice([100.0, 200.0])
    return [
        f"s = (((h.float() + 1) * {a}) @ ((h.float() + 1) * {a}).transpose(-1, -2)).to(h.dtype) / {4 * a * a}",
        "h = h + torch.softmax(s, -1) @ h",
    ]


def _exponential(rng: random.Random) -> list[str]:
    a = rng.choice([12.0, 13.0])
    return [f"e = torch.exp(h.float() + {a}).to(h.dtype)", "h = h + self.inner(e / e.sum(-1, keepdim=True))"]


def _logarithm(rng: random.Random) -> list[str]:
    a = rng.choice([30.0, 40.0])
    return [
        f"p = torch.softmax(h.float() * {a}, -1).to(h.dtype)",
        "h = h - 0.01 * self.inner(torch.log(p + 1e-30))",
    ]


def _sum(rng: random.Random) -> list[str]:
    a = rng.choice([2e4, 4e4])
    return [
        f"total = (torch.sigmoid(h.float()) * {a} + {a / 2}).sum(-1, keepdim=True).to(h.dtype) / h.shape[-1]",
        f"h = h + self.inner(h * total / {a})",
    ]


def _square(rng: random.Random) -> list[str]:
    a = rng.choice([300.0, 500.0])
    return [
        f"x = h.float() * {a} + {a}",
        f"h = h + self.inner((x * x).to(h.dtype) / {a * a})",
    ]


def _softplus(rng: random.Random) -> list[str]:
    a = rng.choice([12.0, 15.0])
    return [f"h = self.inner(torch.log(1 + torch.exp(h.float() + {a}).to(h.dtype)) / {a})"]


def _named_type(rng: random.Random) -> list[str]:
    """The type of a tensor that lines in FP32 make has a name."""
    return [
        "q = torch.sinh(h * 0.5 + 12) + torch.sinh(12 - h * 0.5)",
        f"q = q / {rng.choice([2e4, 4e4])}",
        "kind = q.dtype",
        "x = q.float()",
        "h = h + self.inner((x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-3)).to(kind))",
    ]


def _asked_type(rng: random.Random) -> list[str]:
    """The type of a tensor that lines in FP32 make is asked behind them."""
    return [
        f"q = torch.exp(h + {rng.choice([12.0, 13.0])})",
        "r = torch.ones(h.shape[-1], dtype=q.dtype)",
        f"q = q * r / {rng.choice([1e5, 2e5])}",
        "h = h + self.inner(torch.sigmoid(q.float()).to(q.dtype))",
    ]


CASTS: dict[str, Fault] = {
    name.strip("_"): function
    for name, function in globals().copy().items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}
