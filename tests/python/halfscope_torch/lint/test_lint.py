"""`lint` on numbers whose loss is known, beside PyTorch's own casts and closed forms."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import halfscope
from halfscope import _core
from halfscope.formats import Format
from halfscope.torch import lint
from halfscope.torch.lint.numbers import shortest_text
from halfscope.torch.lint.positions import Angles, Positions
from small_models import MODELS, NEED_TRANSFORMERS

pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[4]
PROGRAM = ROOT / "build/release/experiments/halfscope"
INVERSE = 10000 ** (-torch.arange(0, 128, 2).float() / 128)
NATIVE = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inverse", INVERSE.clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.cos(torch.outer(torch.arange(len(x)).to(self.inverse.dtype), self.inverse))


class Cubic(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3))))


class Masked(nn.Module):
    def forward(self, scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores.masked_fill(padding, -1e9), -1)


class Entropy(nn.Module):
    def forward(self, p: torch.Tensor) -> torch.Tensor:
        return -(p * torch.log(p + 1e-10)).sum(-1)


class Normalize(nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.norm(dim=-1, keepdim=True).clamp_min(self.eps)


class Wide(nn.Module):
    """The same constant and power, in FP32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(x.float() + 1e-10) + torch.pow(x.float(), 3)


class Buffers(nn.Module):
    def __init__(self, **buffers: torch.Tensor) -> None:
        super().__init__()
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def kinds(*arguments: Any, **options: Any) -> list[str]:
    return [found.kind for found in lint(*arguments, **options).findings]


def weights(*values: float) -> nn.Linear:
    layer = nn.Linear(len(values), 1, bias=False)
    layer.weight.data.copy_(torch.tensor([values]))
    return layer


@pytest.mark.parametrize(("context", "error"), [(512, "0.625"), (2048, "2.504"), (4096, "5.009")])
def test_rope_turns_by_known_angles(context: int, error: str) -> None:
    (found,) = lint(Rotary(), format="bf16", positions=context).findings
    assert f"by up to {error} rad in a context of {context}" in found.why
    exact = (context - 1) * INVERSE.double()
    native = (context - 1) * INVERSE.bfloat16().double()
    assert math.isclose(Angles(INVERSE, Format.of("bf16")).error(context - 1), float((native - exact).abs().max()))


def test_an_angle_is_off_from_the_first_such_position_on() -> None:
    angles = Angles(INVERSE, Format.of("bf16"))
    first = angles.first(0.05)
    assert first is not None and angles.error(first) >= 0.05 > angles.error(first - 1)
    assert Angles(torch.tensor([1.0, 0.5]), Format.of("bf16")).first(0.05) is None


@pytest.mark.parametrize(("format", "count"), [("bf16", 4096), ("fp16", 32768), ("bf16", 200)])
def test_positions_coincide_as_pytorchs_do(format: str, count: int) -> None:
    native = torch.arange(count).to(NATIVE[format]).float()
    positions = Positions(count, Format.of(format))
    changed = (native != torch.arange(count)).nonzero().flatten().tolist()
    assert positions.distinct == native.unique().numel()
    assert positions.first == (changed[0] if changed else None)
    assert (positions.distinct, count) in [(769, 4096), (6145, 32768), (200, 200)]


def test_a_table_of_positions() -> None:
    assert Format.of("bf16").round(15962.0) == 15936
    (found,) = lint(Buffers(table=torch.arange(15900, 15963).float()), format="bf16").findings
    assert found.kind == "positions" and "63 different whole numbers become 2 in BF16" in found.why
    assert kinds(Buffers(table=torch.arange(15963)), format="bf16") == []


@pytest.mark.parametrize(
    ("optimizer", "options", "format", "found"),
    [
        ("Adam", {}, "fp16", ["optimizer_epsilon", "square"]),
        ("Adam", {"eps": 1e-4}, "fp16", ["square"]),
        ("Adam", {}, "bf16", ["decay"]),
        ("Adam", {"betas": (0.9, 0.99)}, "bf16", []),
        ("Adam", {}, "fp32", []),
        ("Adam", {}, "fp16_mixed", []),
        ("Adam", {}, "autocast_cuda", []),
        ("RMSprop", {}, "fp16", ["optimizer_epsilon", "square"]),
        ("SGD", {"lr": 1e-3, "momentum": 0.9999}, "bf16", ["decay"]),
        ("SGD", {"lr": 1e-9}, "fp16", ["learning_rate"]),
    ],
)  # fmt: skip
def test_settings_of_optimizers(optimizer: str, options: dict[str, Any], format: str, found: list[str]) -> None:
    model = weights(0.01, 0.02)
    assert kinds(model, getattr(torch.optim, optimizer)(model.parameters(), **options), format) == found


def test_the_words_on_an_epsilon() -> None:
    model = weights(0.01)
    found = lint(model, torch.optim.Adam(model.parameters()), "fp16").findings[0]
    assert found.change.startswith("keep the optimizer's state in FP32")
    assert "eps of Adam = 1e-08 is 0 in FP16" in found.why and "0 / 0, which is NaN, from step 1 on" in found.why
    assert float(torch.tensor(1e-8).half()) == 0


def test_the_simulators_lint_says_the_same(tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    arm = "half:policy=fp16_pure,optimizer=adam,learning_rate=0.001"
    command = [PROGRAM, "run", "master-copy", "--size", "smoke", "--seeds", "1", "--arms", "fp32", "--arm", arm]
    subprocess.run([*command, "--set", "steps=1", "--out", tmp_path], check=True, capture_output=True)
    summary = json.loads((tmp_path / "master-copy/half/seed0/summary.json").read_text())
    told = {found["what"]: found for found in summary["lint"]}
    model = weights(0.01)
    found = {each.kind: each for each in lint(model, torch.optim.Adam(model.parameters()), "fp16").findings}
    for what, kind in (("epsilon", "optimizer_epsilon"), ("square of a gradient", "square")):
        ours, theirs = found[kind], told[what]
        assert (ours.about.value, ours.about.stored) == (theirs["value"], theirs["rounded"])
        assert f": {theirs['consequence']}, from step 1 on." in ours.why


@pytest.mark.parametrize("rate", [3e-3, 1e-3])
def test_the_share_of_lost_updates_is_that_of_pytorchs_bf16(rate: float) -> None:
    values = torch.linspace(0.01, 2, 500).bfloat16().float()
    model = weights(*values.tolist())
    found = lint(model, torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.9)), "bf16").findings
    lost = int(((values.bfloat16() - rate) == values.bfloat16()).sum())
    share = f"{100 * lost / 500:.1f} %"
    assert 0 < lost < 500 and share in found[0].why and [each.kind for each in found] == ["update"]


@pytest.mark.parametrize(("decay", "share"), [(1e-3, 1.0), (0.002344, 0.737), (0.003516, 0.152)])
def test_the_share_of_lost_decay_is_the_closed_form(decay: float, share: float) -> None:
    """log2(2^-8 / a) of log-uniform weights, for 2^-9 < a < 2^-8; all below."""
    values = 2 ** torch.linspace(-3, 0, 24001)[:-1]
    model = weights(*values.bfloat16().float().tolist())
    options = {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": decay / 0.1}
    found = lint(model, torch.optim.AdamW(model.parameters(), **options), "bf16").findings
    assert [each.kind for each in found] == ["weight_decay"]
    told = float(found[0].why.partition("leaves ")[2].partition(" %")[0]) / 100
    assert abs(told - share) < 0.01
    assert kinds(model, torch.optim.AdamW(model.parameters(), **{**options, "weight_decay": 0.059}), "bf16") == []


def test_a_cubic_overflows_from_40_3_on() -> None:
    (found,) = lint(Cubic(), format="fp16").findings
    assert "x^3 overflows FP16 from 40.3 on" in found.why and str(found).startswith("test_lint.py:")
    assert torch.tensor(40.3125).half() ** 3 < math.inf == torch.tensor(40.34375).half() ** 3
    assert kinds(Cubic(), format="bf16") == []


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Masked(), "Masked.forward: -1e+09 = -1e+09 is -inf in FP16"),
        (Entropy(), "Entropy.forward: 1e-10 = 1e-10 is 0 in FP16"),
        (Normalize(1e-12), "Normalize.eps = 1e-12 is 0 in FP16: a row of zeros is divided by 0"),
        (Normalize(1e-5), "Normalize.eps = 1e-05 is 1.00136e-05 in FP16: the gradient at a row of zeros"),
        (nn.CosineSimilarity(), "CosineSimilarity.eps = 1e-08 is 0 in FP16"),
        (
            nn.BatchNorm1d(4, momentum=1e-4),
            "BatchNorm1d: 1 - momentum = 0.9999 is 1 in FP16: the average never forgets",
        ),
        (Buffers(mask=torch.tensor([0.0, -1e9])), "mask: 1 of 2 elements are beyond FP16's largest number 65504"),
        (Buffers(small=torch.tensor([1.0, 1e-9])), "small: 1 of 2 elements are below FP16's smallest number"),
        (Buffers(count=torch.tensor(0.0)), "count = 2049 is 2048 in FP16: adding 1 stops at 2048, from step 2049 on"),
    ],
)
def test_constants_of_modules(module: nn.Module, words: str) -> None:
    (found,) = lint(module, format="fp16").findings
    assert words in found.why
    assert kinds(module, format="fp32") == []


@pytest.mark.parametrize(
    "module",
    [
        Wide(), Normalize(1e-4), nn.LayerNorm(4, eps=1e-12), nn.BatchNorm1d(4), nn.GELU("tanh"),
        Buffers(mask=torch.tensor([0.0, -math.inf])), Buffers(mask=torch.tensor([0.0, -1e4])),
    ],
)  # fmt: skip
def test_what_fp16_holds_is_no_finding(module: nn.Module) -> None:
    assert kinds(module, format="fp16") == []


def test_cosine_similarity_adds_its_eps_in_the_format() -> None:
    zero = torch.zeros(1, 4)
    similarity = nn.CosineSimilarity()
    assert similarity(zero, zero).isfinite().all() and not similarity(zero.half(), zero.half()).isfinite().all()


def test_a_constant_that_the_format_moves() -> None:
    (found,) = lint(Buffers(normalizer=torch.tensor(3072.0**0.5)), format="bf16").findings
    assert "normalizer = 55.42562 is 55.5 in BF16, 0.13 % off" in found.why
    assert kinds(Buffers(normalizer=torch.tensor(3072.0**0.5)), format="fp16") == []


def test_an_average_of_weights_that_stays_where_it_is() -> None:
    average = torch.optim.swa_utils.AveragedModel(
        weights(1.0), multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)
    )
    (found,) = lint(average, format="bf16").findings
    assert "0.999 is 1 in BF16: the average never forgets" in found.why
    (found,) = lint(average, format="fp16").findings
    assert "moves only where it is 24.4 to 48.8 % or more away" in found.why
    held, new = torch.tensor(1.0).half(), torch.tensor([1.48, 1.5]).half()
    moved = (held.float() + 0.001 * (new.float() - held.float())).half() != held
    assert moved.tolist() == [False, True]
    assert kinds(average, format="fp32") == []


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"micro_batches": 256}, []),
        ({"micro_batches": 257}, ["count"]),
        ({"loss_terms": 2**14}, []),
    ],
)
def test_counts_of_a_training_in_bf16(options: dict[str, int], found: list[str]) -> None:
    assert kinds(weights(1.0), format="bf16", **options) == found


def test_the_terms_of_a_loss_in_fp16() -> None:
    assert kinds(weights(1.0), format="fp16", loss_terms=2**25) == ["largest_gradient", "factor"]
    assert kinds(weights(1.0), format="fp16", loss_terms=2**15) == []


@pytest.mark.parametrize("name", MODELS)
def test_no_finding_in_fp32(name: str) -> None:
    if name in NEED_TRANSFORMERS:
        pytest.importorskip("transformers")
    torch.manual_seed(0)
    model, _ = MODELS[name]()
    assert kinds(model, torch.optim.AdamW(model.parameters()), "fp32") == []


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5"])
def test_torchvision_has_none_in_fp32(name: str) -> None:
    models = pytest.importorskip("torchvision").models
    model = getattr(models, name)(weights=None)
    assert kinds(model, torch.optim.AdamW(model.parameters()), "fp32") == []


def test_one_batch_norm_stands_for_all() -> None:
    models = pytest.importorskip("torchvision").models
    (found,) = lint(models.mnasnet0_5(weights=None), format="bf16").findings
    assert "1 - momentum = 0.9997 is 1 in BF16: the average never forgets" in found.why


def test_the_guide_has_what_is_said_of_known_models() -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("torchvision")
    import lint_models

    guide = (ROOT / "docs/guides/lint.md").read_text()
    assert "\n".join(lint_models.table()) in guide
    assert all(row.split(" | ")[1] == "-" for row in lint_models.table()[2:])  # in FP32


TRANSFORMERS: dict[str, dict[str, int]] = {
    "Bert": {},
    "Gemma": {"num_key_value_heads": 2, "head_dim": 8},
    "GPTNeoX": {},
    "Mistral": {"num_key_value_heads": 2},
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_have_none_in_fp32(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config")(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
        **TRANSFORMERS[name],
    )  # fmt: skip
    model = getattr(transformers, f"{name}Model")(config)
    assert kinds(model, torch.optim.AdamW(model.parameters()), "fp32") == []
    found = kinds(model, format="bf16")
    assert found == (["frequencies"] if name in ("Gemma", "Mistral") else [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"positions": 0}, "positions=0; give 1 or more"),
        ({"format": "fp17"}, "fp17"),
        ({"loss_terms": 0}, "loss_terms=0"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        lint(weights(1.0), **options)


class Clipped(nn.Module):
    def forward(self, p: torch.Tensor) -> torch.Tensor:
        return torch.log(1 - p.clamp(max=1 - 1e-6))


class ClippedByAttribute(nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps

    def forward(self, p: torch.Tensor) -> torch.Tensor:
        return torch.log(1 - p.minimum(1 - self.eps + 0 * p))


class Shifted(nn.Module):
    """The scale of a norm, whose weights are kept beside 1."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (1 + self.weight)


class ShiftedInFp32(Shifted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (1.0 + self.weight.float())


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("power", range(2, 9))
def test_constants_near_1_are_those_that_pytorch_rounds_to_1(format: str, power: int) -> None:
    eps = 0.7 * 10.0**-power
    is_one = float(torch.tensor(1 - eps).to(NATIVE[format])) == 1
    found = lint(ClippedByAttribute(eps), format=format).findings
    near = [each for each in found if each.kind == "near_1"]
    assert len(near) == is_one
    if near:
        below = float(torch.nextafter(torch.ones((), dtype=NATIVE[format]), torch.zeros((), dtype=NATIVE[format])))
        assert near[0].change.startswith(f"write {below:.6g} for")


def test_a_constant_near_1_in_the_source_is_named() -> None:
    (found,) = lint(Clipped(), format="fp16").findings
    assert found.kind == "near_1" and "write 0.999512 for 0.999999" in found.change
    assert "Clipped.forward: 0.999999 is 1 in FP16" in found.why and str(found).startswith("test_lint.py:")
    assert kinds(Clipped(), format="fp32") == []


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("size", [1e-1, 1e-2, 1e-3, 1e-4])
def test_weights_beside_1_lose_what_pytorch_loses(format: str, size: float) -> None:
    weight = size * torch.randn(200, generator=torch.Generator().manual_seed(1))
    kept = (1 + weight.double()).to(NATIVE[format]).double() - 1
    lost = float((kept - weight.double()).norm() / weight.double().norm())
    found = [each for each in lint(Shifted(weight), format=format).findings if each.kind == "added_weight"]
    assert len(found) == (lost > 0.1)
    if found:
        assert f"{100 * min(lost, 1):.0f} % of the weight is lost" in found[0].why
    assert "added_weight" not in kinds(ShiftedInFp32(weight), format=format)
    assert kinds(Shifted(torch.zeros(4)), format=format) == []


def test_fp32_weights_are_read_as_under_autocast() -> None:
    """No finding about 16-bit state that nobody has; constants may meet the 16-bit result of a product."""
    model = nn.Sequential(
        nn.Linear(4, 4), Masked(), Cubic(), nn.BatchNorm1d(4, momentum=1e-4), Shifted(torch.ones(4) * 1e-5)
    )
    optimizer = torch.optim.Adam(model.parameters())
    (found,) = lint(model, optimizer).findings
    assert found.kind == "factor" and "-1e+09 is -inf in FP16" in found.why
    assert [each.kind for each in lint(model, optimizer, "autocast_bf16").findings] == []
    assert {"optimizer_epsilon", "decay", "power", "added_weight"} <= set(kinds(model.half(), optimizer))


def test_autocast_has_what_lint_says_of_it() -> None:
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)
    optimizer = torch.optim.Adam(layer.parameters())
    with torch.autocast("cpu", torch.float16):
        y = layer(x)
        assert y.dtype is torch.float16 and (y + 1e-10).dtype is torch.float16
    y.float().sum().backward()
    optimizer.step()
    tensors = [layer.weight, layer.weight.grad, *optimizer.state[layer.weight].values()]
    assert {each.dtype for each in tensors} == {torch.float32}


LOST = {
    "decay": lambda format: 0.99999,
    "optimizer_epsilon": lambda format: format.smallest / 3,
    "epsilon_gradient": lambda format: format.smallest,
    "count": lambda format: 1e6,
    "factor": lambda format: format.largest * 3,
}


@pytest.mark.parametrize("format", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "e3m4", "e6m9"])
@pytest.mark.parametrize("kind", LOST)
def test_the_number_to_type_survives_as_it_is_printed(kind: str, format: str) -> None:
    lost = _core.lost_constant(kind, LOST[kind](Format.of(format)), format)
    assert lost is not None
    text = shortest_text(lost["limit"], Format.of(format))
    assert _core.lost_constant(kind, float(text), format) is None
    assert halfscope.round(np.float32(text), format) == halfscope.round(np.float32(lost["limit"]), format)
    digits = len(text.partition("e")[0].replace(".", "").strip("0"))
    shorter = np.float32(f"{lost['limit']:.{max(digits - 1, 1)}g}")
    assert digits <= 3 or halfscope.round(shorter, format) != halfscope.round(np.float32(lost["limit"]), format)


def test_a_decay_that_fp16_keeps_is_named_with_its_digits() -> None:
    model = torch.nn.Linear(2, 2).half()
    text = str(lint(model, torch.optim.Adam(model.parameters(), betas=(0.9, 0.9999))).report)
    (typed,) = re.findall(r"else beta2=(\S+) or less", text)
    assert typed == "0.9995"
    again = str(lint(model, torch.optim.Adam(model.parameters(), betas=(0.9, float(typed)))).report)
    assert "beta2" not in again
