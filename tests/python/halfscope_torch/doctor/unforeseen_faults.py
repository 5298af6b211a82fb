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


def _divergence_by_hand(rng: random.Random) -> list[str]:
    a = rng.choice([6.0, 8.0])
    return [f"p, q = torch.softmax(h * {a}, -1), torch.softmax(h.flip(-1) * {a}, -1)",
            "h = h + 0.2 * (p * torch.log(p / q)).sum(-1, keepdim=True)"]  # fmt: skip


def _small_rows(rng: random.Random) -> list[str]:
    a = rng.choice(["1e-4", "3e-5"])
    return [f"y = h * {a}", "h = y / torch.sqrt((y * y).mean(-1, keepdim=True))"]


def _variance_over_all(rng: random.Random) -> list[str]:
    a = rng.choice([60.0, 90.0])
    return [f"y = h * {a}", "c = y - y.mean()", "v = (c * c).sum() / (c.numel() - 1)", "h = c / torch.sqrt(v)"]


def _log_cosh(rng: random.Random) -> list[str]:
    a = rng.choice([8.0, 12.0])
    return [f"h = h + torch.log(torch.cosh(h * {a})) / {a}"]


def _inverse_softplus(rng: random.Random) -> list[str]:
    a = rng.choice([9.0, 12.0])
    return [f"y = torch.sigmoid(h) * {a} + 2", f"h = h + torch.log(torch.exp(y) - 1) / {a}"]


def _log_odds(rng: random.Random) -> list[str]:
    a = rng.choice([5.0, 6.0])
    return [f"p = torch.sigmoid(h * {a})", f"h = h + torch.log(p / (1 - p)) / {a}"]


def _geometric_mean(rng: random.Random) -> list[str]:
    a = rng.choice([0.2, 0.1])
    return [f"g = (torch.sigmoid(h) * {a}).prod(-1, keepdim=True) ** (1 / h.shape[-1])", f"h = h * g / {a}"]


def _weighted_by_exponential(rng: random.Random) -> list[str]:
    a = rng.choice([5.0, 6.0])
    return [f"w = torch.exp(h * {a} + 4)", "h = h + (w * h).sum(-1, keepdim=True) / w.sum(-1, keepdim=True)"]


def _power_iteration(rng: random.Random) -> list[str]:
    n = rng.choice([4, 5])
    return ["m, v = h.transpose(0, 1) @ h, h[0]", f"for _ in range({n}):", "    v = m @ v",
            "h = h + v / v.norm()"]  # fmt: skip


def _half_angle(rng: random.Random) -> list[str]:
    a = rng.choice(["2e-4", "1e-4"])
    return [f"s = torch.sin(h * {a}) ** 2 + torch.sin(h.roll(1, -1) * {a}) ** 2",
            f"h = h + torch.asin(torch.sqrt(s)) / {a}"]  # fmt: skip


def _far_positions(rng: random.Random) -> list[str]:
    p, cast = rng.choice([3000, 9000]), rng.choice(["to(h.dtype)", "type_as(h)", "to(h)", "type(h.dtype)"])
    counted, number = f"(torch.arange(h.shape[0]) + {p})[:, None].{cast}", "h.shape[0]"
    made = f"torch.arange({p}, {p} + {number}, dtype=h.dtype)[:, None]"
    spaced = f"torch.linspace({p}, {p} + {number} - 1, {number}, dtype=h.dtype)[:, None]"
    return [f"at = {rng.choice([counted, counted, made, spaced])}", "h = h + torch.sin(at * 0.7) * h"]


def _inverse_square(rng: random.Random) -> list[str]:
    a, e = rng.choice([("2e-4", "1e-8"), ("1e-4", "1e-9")])
    return [f"d = h * {a}", f"h = h + {a} * {a} / (d * d + {e})"]


def _density(rng: random.Random) -> list[str]:
    s = rng.choice([0.25, 0.3])
    return [f"z = (h - h.mean(-1, keepdim=True)) / {s}", "d = torch.exp(-0.5 * z * z) + torch.exp(-0.5 * (z - 1) ** 2)",
            "h = h - 0.05 * torch.log(d)"]  # fmt: skip


def _by_small_maximum(rng: random.Random) -> list[str]:
    a = rng.choice(["1e-6", "3e-7"])
    return [f"m = h.abs().amax(-1, keepdim=True) * {a}", f"h = h / m * {a}"]


def _polynomial(rng: random.Random) -> list[str]:
    a = rng.choice([6.6, 7.0])
    return [f"x = torch.tanh(h) * {a}", "p = x**6 - 15 * x**4 + 45 * x**2 - 15", f"h = h + p / {a**6:.1f}"]


def _integral_image(rng: random.Random) -> list[str]:
    a = rng.choice([700.0, 900.0])
    return [f"t = (torch.sigmoid(h) * {a}).cumsum(0).cumsum(1)",
            f"h = h + (t[:, 1:] - t[:, :-1]).mean(-1, keepdim=True) / {a}"]  # fmt: skip


def _cold_similarity(rng: random.Random) -> list[str]:
    t = rng.choice(["0.05", "0.04"])
    return ["n = F.normalize(h, dim=-1)", f"e = torch.exp(n @ n.transpose(0, 1) / {t})",
            "h = h + (e / e.sum(-1, keepdim=True)) @ h"]  # fmt: skip


def _moment_ratio(rng: random.Random) -> list[str]:
    a = rng.choice([60.0, 100.0])
    return [f"y = h * {a}", "r = (y**3).mean(-1, keepdim=True) / (y**2).mean(-1, keepdim=True) ** 1.5",
            "h = h + 0.1 * r"]  # fmt: skip


def _standardized_total(rng: random.Random) -> list[str]:
    n = rng.choice([3000.0, 5000.0])
    return [f"count = torch.full_like(h[:, :1], {n}) + 1", f"h = h * (count - {n}) + torch.log(count / {n})"]


def _chained_scales(rng: random.Random) -> list[str]:
    a = rng.choice(["3e-5", "1e-5"])
    return [f"s = torch.sigmoid(h) * {a}", "t = s * s", f"h = h + torch.sqrt(t) / {a}"]


UNFORESEEN: dict[str, Fault] = {
    name.strip("_"): function
    for name, function in globals().copy().items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}
