"""Faults of half precision that end in another decision: rounding makes numbers equal between which the step decides.

The last line of each keeps the decision in `self.decided`, so that a test can count the changed ones in PyTorch's own
FP16.
"""

from __future__ import annotations

import random

from planted_faults import Fault

KEEP = "self.decided = k"


def _largest(rng: random.Random) -> list[str]:
    c = rng.choice([900.0, 1500.0])
    return [f"k = (h + {c}).argmax(-1)", "h = h + 2 * F.one_hot(k, h.shape[-1]).to(h.dtype)", KEEP]


def _several_largest(rng: random.Random) -> list[str]:
    c = rng.choice([300.0, 600.0])
    return [
        f"v, k = torch.topk(h * 0.5 + {c}, 3, dim=-1)", "h = h * torch.zeros_like(h).scatter(-1, k, 2.0)", KEEP
    ]  # fmt: skip


def _compared(rng: random.Random) -> list[str]:
    c = rng.choice([700.0, 1200.0])
    return [f"k = h + {c} > h.roll(1, -1) + {c}", "h = h * k.to(h.dtype)", KEEP]


def _where(rng: random.Random) -> list[str]:
    c = rng.choice([200.0, 400.0])
    return [
        f"t = torch.sigmoid(h) + {c}", "k = t > t.mean(-1, keepdim=True)", "h = torch.where(k, h, -h)", KEEP
    ]  # fmt: skip


def _rounded_to_an_index(rng: random.Random) -> list[str]:
    c = rng.choice([600, 900])
    return [
        f"k = ((torch.sigmoid(h[:, 0]) + {c}) * 4).round().long() - {4 * c}",
        "h = h + F.one_hot(k.clamp(0, 4), 5).to(h.dtype).sum(-1, keepdim=True) * k.to(h.dtype)[:, None]", KEEP,
    ]  # fmt: skip


def _codes(rng: random.Random) -> list[str]:
    c = rng.choice([1100, 1500])
    return [f"k = torch.floor(h * 8 + {c}).to(torch.int32) - {c}", "h = h + k.to(h.dtype) / 8", KEEP]


def _sorted(rng: random.Random) -> list[str]:
    c = rng.choice([700.0, 1400.0])
    return [f"k = torch.argsort(h + {c}, dim=-1)", "h = h.gather(-1, k)", KEEP]


def _binned(rng: random.Random) -> list[str]:
    c = rng.choice([400.0, 800.0])
    return [
        f"edges = torch.linspace(-1, 1, 7).to(h.dtype) + {c}",
        f"k = h[..., None] + {c} > edges", "h = h + k.sum(-1).to(h.dtype) / 4", KEEP,
    ]  # fmt: skip


def _equal_to_the_largest(rng: random.Random) -> list[str]:
    c = rng.choice([4.0, 8.0])
    return [f"s = h * 1e-3 + {c}", "k = s == s.amax(-1, keepdim=True)", "h = h + 3 * k.to(h.dtype)", KEEP]


def _parity_of_positions(rng: random.Random) -> list[str]:
    c = rng.choice([2049, 4001])
    return [
        f"k = (torch.arange(h.shape[0]).to(h.dtype) + {c}).long() % 2",
        "h = h * (1 - 2 * k).to(h.dtype)[:, None]", KEEP,
    ]  # fmt: skip


def _nearest(rng: random.Random) -> list[str]:
    """The nearest of eight centres by squared distances that are written out."""
    m = rng.choice([30.0, 60.0])
    return [
        f"y, c = h + {m}, h[:3] + {m}",
        "k = ((y * y).sum(-1)[:, None] - 2 * y @ c.transpose(0, 1) + (c * c).sum(-1)).argmin(-1)",
        f"h = h + c[k] - {m}", KEEP,
    ]  # fmt: skip


TIES: dict[str, Fault] = {
    name.strip("_"): function
    for name, function in globals().copy().items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}


def _healthy(name: str) -> Fault:
    lines = HEALTHY_LINES[name]
    return lambda rng: [*lines, KEEP]


# The same decisions of numbers near 0, of which a format loses no digit.
HEALTHY_LINES: dict[str, list[str]] = {
    "largest": ["k = h.argmax(-1)", "h = h + 2 * F.one_hot(k, h.shape[-1]).to(h.dtype)"],
    "several_largest": ["v, k = torch.topk(h, 3, dim=-1)", "h = h * torch.zeros_like(h).scatter(-1, k, 2.0)"],
    "compared": ["k = h > h.roll(1, -1)", "h = h * k.to(h.dtype)"],
    "where": ["t = torch.sigmoid(h)", "k = t > t.mean(-1, keepdim=True)", "h = torch.where(k, h, h / 2)"],
    "codes": ["k = torch.floor(h * 8).to(torch.int32)", "h = h + k.to(h.dtype) / 8"],
    "sorted": ["k = torch.argsort(h, dim=-1)", "h = h.gather(-1, k)"],
    "drawn": ["k = torch.rand(h.shape).to(h.dtype) > 0.2", "h = h * k.to(h.dtype) / 0.8"],
    "nearest": ["k = torch.cdist(h, h[:3] / 2).argmin(-1)", "h = h + h[:3][k] / 4"],
    "padding": ["k = (torch.arange(h.shape[0]) > 1)[:, None] & (h == h)", "h = h * k.to(h.dtype)"],
}
HEALTHY: dict[str, Fault] = {name: _healthy(name) for name in HEALTHY_LINES}
