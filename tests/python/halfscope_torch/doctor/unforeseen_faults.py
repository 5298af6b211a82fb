"""Faults of half precision in shapes for which the doctor has no rule: written before it had seen any of them."""

from __future__ import annotations

import random

from planted_faults import Fault


def _fourth_moment(rng: random.Random) -> list[str]:
    a = rng.choice([15.0, 20.0])
    return [f"c = (h - h.mean(-1, keepdim=True)) * {a}",
            "k = (c ** 4).mean(-1, keepdim=True) / c.var(-1, keepdim=True) ** 2", "h = h + 0.1 * k"]  # fmt: skip


def _cosine_by_hand(rng: random.Random) -> list[str]:
    a = rng.choice([200.0, 400.0])
    return [f"u, v = h * {a}, (h.flip(-1) + 1) * {a}", "dot = (u * v).sum(-1, keepdim=True)",
            "h = h * (1 + dot / (u.norm(dim=-1, keepdim=True) * v.norm(dim=-1, keepdim=True)))"]  # fmt: skip


def _three_factors(rng: random.Random) -> list[str]:
    a = rng.choice([60.0, 80.0])
    return [
        f"w = torch.einsum('bi,ci,di->bcd', h * {a}, h * {a}, h * {a})",
        f"h = h + w.mean((1, 2))[:, None] / {a**3}",
    ]


def _growing_product(rng: random.Random) -> list[str]:
    g = rng.choice([4.0, 6.0])
    return [f"g = torch.cumprod(torch.sigmoid(h) * {g} + 1, -1)", "h = h + g / g[:, -1:]"]


def _pairwise_distances(rng: random.Random) -> list[str]:
    m = rng.choice([20.0, 40.0])
    return [f"y = h + {m}", "s = (y * y).sum(-1)", "d = s[:, None] + s[None] - 2 * y @ y.transpose(0, 1)",
            "h = h + torch.softmax(-d / h.shape[-1], -1) @ h"]  # fmt: skip


def _finite_difference(rng: random.Random) -> list[str]:
    e = rng.choice(["1e-3", "5e-4"])
    return ["f = lambda z: torch.sin(z) * 2 + z", f"h = h + (f(h + {e}) - f(h - {e})) / (2 * {e})"]


def _raw_covariance(rng: random.Random) -> list[str]:
    m = rng.choice([40.0, 80.0])
    return [f"a, b = h + {m}, h.roll(1, -1) + {m}",
            "cov = (a * b).mean(-1, keepdim=True) - a.mean(-1, keepdim=True) * b.mean(-1, keepdim=True)",
            "h = h + cov"]  # fmt: skip


def _angle_of_rows(rng: random.Random) -> list[str]:
    e = rng.choice(["1e-6", "1e-7"])
    return ["n = F.normalize(h, dim=-1)", f"c = (n * n).sum(-1, keepdim=True).clamp(-1 + {e}, 1 - {e})",
            "h = h + torch.acos(c) / torch.sqrt(1 - c * c)"]  # fmt: skip


def _discounted(rng: random.Random) -> list[str]:
    g = rng.choice(["0.9998", "0.99985"])
    return [f"g = {g} ** (torch.arange(h.shape[-1]).to(h.dtype) * 100)",
            f"h = h * g + torch.log(1 - {g} * torch.ones_like(h)) * 0.05"]  # fmt: skip


def _temperature(rng: random.Random) -> list[str]:
    t = rng.choice(["2e-8", "1e-8"])
    return [f"w = torch.sigmoid(h) * {t}", "h = h * w / w.sum(-1, keepdim=True)"]


def _large_step(rng: random.Random) -> list[str]:
    c = rng.choice(["1e5", "3e5"])
    return [f"w = {c} * torch.sigmoid(h)", f"h = h + torch.tanh(w / {c})"]


def _masked_exponential(rng: random.Random) -> list[str]:
    k = rng.choice([10.0, 12.0])
    return [f"z = h * {k}", "h = h + torch.where(z > 8, torch.log(z.abs() + 1), torch.exp(z) / 3000)"]


def _slow_sum(rng: random.Random) -> list[str]:
    c = rng.choice([2048.0, 4096.0])
    return [f"total = torch.full_like(h[:, :1], {c})", "for j in range(h.shape[-1]):",
            "    total = total + torch.sigmoid(h[:, j : j + 1]) * 0.4", f"h = h + (total - {c})"]  # fmt: skip


def _triangle_area(rng: random.Random) -> list[str]:
    a = rng.choice([40.0, 60.0])
    return [f"a, b = h.abs() + {a}, h.roll(1, -1).abs() + {a}", "c = a + b - 0.02", "s = (a + b + c) / 2",
            "h = h + torch.sqrt(s * (s - a) * (s - b) * (s - c)) / 40"]  # fmt: skip


UNFORESEEN: dict[str, Fault] = {
    name.strip("_"): function
    for name, function in globals().copy().items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}
