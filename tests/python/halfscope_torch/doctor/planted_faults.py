"""Random small networks with a fault of half precision planted at a random place, as source text."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

HEAD = """import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
"""
LAYERS = (
    "linear", "relu", "tanh", "gelu", "layer_norm", "batch_norm", "residual", "silu", "dropout_off", "attention"
)  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """Source of a module with `Net`, `inputs` and `loss`. lines: of the fault, from 1 on; none if healthy."""

    source: str
    lines: tuple[int, ...]
    kind: str


Fault = Callable[[random.Random], list[str]]


def _scaled_square(rng: random.Random) -> list[str]:
    a = rng.choice([300.0, 500.0, 900.0])
    return [f"q = h * {a} + {a}", f"h = (q * q) / {a * a}"]


def _scaled_product(rng: random.Random) -> list[str]:
    a, b = rng.choice([400.0, 700.0]), rng.choice([500.0, 1200.0])
    return [f"u, v = torch.sigmoid(h) * {a}, torch.sigmoid(-h) * {b}", f"h = h + u * v * {1 / (a * b):.3e}"]


def _scores(rng: random.Random) -> list[str]:
    a = rng.choice([100.0, 200.0])
    return [
        f"s = (h * {a} + {a}) @ (h * {a} + {a}).transpose(-1, -2)",
        f"h = h + torch.softmax(s / {a * a * 4}, -1) @ h",
    ]


def _sum_then_divide(rng: random.Random) -> list[str]:
    a = rng.choice([1e4, 2e4, 4e4])
    name = rng.choice(["sigmoid", "tanh"])
    inner = f"(torch.{name}(h).abs() * {a} + {a / 2})"
    return [f"total = {inner}.sum(-1, keepdim=True) / h.shape[-1]", f"h = h + total / {a}"]


def _own_softmax(rng: random.Random) -> list[str]:
    a = rng.choice([12.0, 13.0, 15.0])
    return [f"e = torch.exp(h + {a})", "h = h + e / e.sum(-1, keepdim=True)"]


def _own_softplus(rng: random.Random) -> list[str]:
    k = rng.choice([12.0, 15.0])
    return [f"h = torch.log(1 + torch.exp(h + {k})) / {k}"]


def _own_logsumexp(rng: random.Random) -> list[str]:
    k = rng.choice([11.0, 14.0])
    return [f"t = torch.log(torch.exp(h + {k}).sum(-1, keepdim=True))", "h = h + t / 16"]


def _clamp_behind(rng: random.Random) -> list[str]:
    function, inside = rng.choice(
        [("torch.exp", "h * 2 + 11"), ("torch.square", "h * 60 + 250"), ("torch.sinh", "h * 2 + 12")]
    )
    bound = rng.choice([5e3, 2e4])
    return [f"b = {function}({inside}).clamp(max={bound})", f"h = h + b / {bound}"]


def _eps_of_norm(rng: random.Random) -> list[str]:
    eps = rng.choice(["1e-12", "1e-8", "1e-9"])
    keep = "h = h * (torch.arange(h.shape[0]) > 0).to(h.dtype)[:, None]"
    form = rng.choice(
        [f"h = h / (h.norm(dim=-1, keepdim=True) + {eps})", f"h = h / h.norm(dim=-1, keepdim=True).clamp(min={eps})"]
    )
    return [keep, form]


def _eps_of_log(rng: random.Random) -> list[str]:
    eps = rng.choice(["1e-10", "1e-9", "1e-12"])
    return ["p = torch.softmax(h * 40, -1)", f"h = h - 0.01 * p * torch.log(p + {eps})"]


def _eps_of_root(rng: random.Random) -> list[str]:
    eps = rng.choice(["1e-12", "1e-10"])
    keep = "z = h * (torch.arange(h.shape[0]) > 0).to(h.dtype)[:, None]"
    form = rng.choice([f"h = torch.sqrt(z ** 2 + {eps})", f"h = h + torch.sqrt((z * z).sum(-1, keepdim=True) + {eps})"])
    return [keep, form]


def _near_one(rng: random.Random) -> list[str]:
    eps = rng.choice(["1e-6", "1e-7"])
    return [f"p = torch.sigmoid(h * 4 + 14).clamp(1e-6, 1 - {eps})", "h = h - 0.1 * torch.log(1 - p)"]


def _atanh(rng: random.Random) -> list[str]:
    a = rng.choice(["0.9999", "0.99999"])
    return [f"h = h + 0.1 * torch.atanh(torch.tanh(h * 3 + 8) * {a})"]


def _variance(rng: random.Random) -> list[str]:
    m = rng.choice([30.0, 60.0, 90.0])
    return [
        f"y = h + {m}",
        "mean = y.mean(-1, keepdim=True)",
        "var = (y * y).mean(-1, keepdim=True) - mean * mean",
        "h = (y - mean) * torch.rsqrt(var + 1e-3)",
    ]


def _absorbed(rng: random.Random) -> list[str]:
    c = rng.choice([4096.0, 8192.0])
    return [f"h = (h * 0.3 + {c}) - {c}"]


def _difference_of_roots(rng: random.Random) -> list[str]:
    c = rng.choice([400.0, 900.0])
    return [f"h = h + torch.sqrt(h * h + {c}) * 8 - torch.sqrt(0.5 * h * h + {c}) * 8"]


def _norm_of_large(rng: random.Random) -> list[str]:
    a = rng.choice([200.0, 400.0])
    return [f"y = h * {a} + {a}", "h = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)"]


def _gated(rng: random.Random) -> list[str]:
    a = rng.choice([300.0, 600.0])
    return [f"g = F.silu(h * {a} + {a}) * (h * {a} + {a})", "h = F.layer_norm(g, g.shape[-1:])"]


def _mask(rng: random.Random) -> list[str]:
    c = rng.choice(["-1e9", "-1e8", "-3e38"])
    return [
        "mask = torch.arange(h.shape[0])[:, None] >= torch.arange(h.shape[0])[None]",
        f"h = h + torch.softmax((h @ h.transpose(0, 1)).masked_fill(mask, {c}), -1) @ h",
    ]


def _scaled_mask(rng: random.Random) -> list[str]:
    """A mask that FP16 holds, but not its product: a row that is masked as a whole is NaN."""
    c, a = rng.choice(["-1e4", "-2e4"]), rng.choice([8.0, 12.0])
    return [
        "keep = (torch.arange(h.shape[0]) != 1).to(h.dtype)[:, None]",
        f"s = (h @ h.transpose(0, 1) / h.shape[-1] + (1 - keep) * {c}) * {a}",
        "h = h + keep * (torch.softmax(s, -1) @ h)",
    ]


def _log_of_product(rng: random.Random) -> list[str]:
    return ["p = torch.sigmoid(h - 2)", "h = h + 0.02 * torch.log(torch.prod(p * p, -1, keepdim=True))"]


def _sigmoid_by_hand(rng: random.Random) -> list[str]:
    k = rng.choice([12.0, 13.0])
    return [f"h = h + 1000 / (1 + torch.exp(-(h - {k})))"]


def _cubic(rng: random.Random) -> list[str]:
    a = rng.choice([40.0, 60.0])
    return [f"c = (h * {a} + {a}) ** 3", f"h = h + torch.tanh(c * {1 / a**3:.3e})"]


def _flushed_square(rng: random.Random) -> list[str]:
    a = rng.choice([1e-4, 5e-5])
    return [f"d = (h * {a}) ** 2", f"h = h + d * {1 / (a * a):.3e}"]


FAULTS: dict[str, Fault] = {
    name.strip("_"): function
    for name, function in globals().copy().items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}


def _layer(rng: random.Random, index: int, size: int) -> tuple[str, str]:
    """A line of `__init__`, where there is one, and a line of `forward`."""
    kind = rng.choice(LAYERS)
    linear = f"self.l{index} = nn.Linear({size}, {size})"
    return {
        "linear": (linear, f"h = self.l{index}(h)"),
        "relu": (linear, f"h = torch.relu(self.l{index}(h))"),
        "tanh": (linear, f"h = self.l{index}(h).tanh()"),
        "gelu": (linear, f"h = F.gelu(self.l{index}(h))"),
        "silu": (linear, f"h = F.silu(self.l{index}(h))"),
        "layer_norm": (f"self.n{index} = nn.LayerNorm({size})", f"h = self.n{index}(h)"),
        "batch_norm": (f"self.b{index} = nn.BatchNorm1d({size})", f"h = self.b{index}(h)"),
        "residual": (linear, f"h = h + self.l{index}(h)"),
        "dropout_off": ("", "h = F.dropout(h, 0.1, training=False)"),
        "attention": ("", "h = h + torch.softmax(h @ h.transpose(0, 1) / h.shape[-1] ** 0.5, -1) @ h"),
    }[kind]


def planted(seed: int, kind: str | None, faults: dict[str, Fault] = FAULTS) -> Planted:
    """A network of its own for each seed. kind: of the fault; None of a healthy network."""
    rng = random.Random(f"{seed} {kind}")
    size, batch, depth = rng.choice([8, 16, 24]), rng.choice([4, 6, 8]), rng.randint(2, 5)
    made = [_layer(rng, index, size) for index in range(depth)]
    body = [line for _, line in made]
    fault = [] if kind is None else faults[kind](rng)
    if kind is not None:
        body.insert(0, "h = F.layer_norm(h, h.shape[-1:])")  # so that the numbers have the size that the fault needs
    at = rng.randint(1, len(body)) if kind is not None else 0
    if kind is not None:
        body[at:at] = ["h = F.layer_norm(h, h.shape[-1:])", *fault]
        at += 1
    init = [line for line, _ in made if line] + [f"self.head = nn.Linear({size}, 3)"]
    init += [f"self.inner = nn.Linear({size}, {size})"] if any("self.inner" in line for line in fault) else []
    head = HEAD.splitlines() + [f"        {line}" for line in init] + ["", "    def forward(self, h):"]
    first = len(head) + at + 1
    lines = head + [f"        {line}" for line in body] + ["        return self.head(h)", "", ""]
    lines += [
        f"torch.manual_seed({seed})", "net = Net()", f"inputs = torch.randn({batch}, {size})",
        f"labels = torch.arange({batch}) % 3", "", "", "def loss(net, inputs):",
        "    return F.cross_entropy(net(inputs), labels)", "",
    ]  # fmt: skip
    return Planted("\n".join(lines), tuple(range(first, first + len(fault))), kind or "healthy")
