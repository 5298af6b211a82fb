"""`choose`: budgets, rules that work where they are pasted, trials, uniform formats, and arguments that are refused."""

from __future__ import annotations

import math
import random
import re
from itertools import pairwise, product
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn

from halfscope.torch import Sensitivity, emulate, sensitivity
from halfscope.torch.sensitivity import mixture_search
from halfscope.torch.sensitivity.mixture_trials import tried
from json_schema import faults
from scored_networks import Transformer, convolutions, plant, tokens

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor


class Planted(NamedTuple):
    """A transformer with outliers in one of two blocks, its scores on calibration batches, and held-out batches."""

    model: nn.Module
    batches: list[Tensor]
    held_out: list[Tensor]
    found: Sensitivity


@pytest.fixture(scope="module")
def planted(one_thread: None) -> Planted:
    torch.manual_seed(0)
    model, batches = Transformer().eval(), tokens(4, 32)
    plant(model, 1)
    return Planted(model, batches, tokens(6, 32, seed=6), sensitivity(model, batches))


def divergence(model: nn.Module, batches: list[Tensor], rules: Any) -> float:
    """KL from FP32 per term, of the model within `emulate`."""
    total, terms = 0.0, 0
    for batch in batches:
        with torch.no_grad():
            reference = model(batch).double().log_softmax(-1)
            with emulate(model, "fp32", exceptions=rules):
                found = model(batch).double().log_softmax(-1)
        each = (reference.exp() * (reference - found)).sum(-1)
        total, terms = total + float(each.sum()), terms + each.numel()
    return total / terms


def test_printed_rules_work_where_they_are_pasted(planted: Planted) -> None:
    model, _, held_out, found = planted
    chosen = found.choose(bits=5.2, held_out=held_out)
    text = str(chosen.report)
    assert text.startswith(
        'Type emulate(model, "fp32", exceptions=exceptions) with\nexceptions = {\n    "*": {"operands": "forward='
    )
    names: dict[str, Any] = {}
    exec(re.search(r"^exceptions = \{.*?^\}", text, re.MULTILINE | re.DOTALL)[0], names)
    assert names["exceptions"] == chosen.exceptions == chosen.report.findings[0].about
    assert divergence(model, held_out, chosen.exceptions) == pytest.approx(chosen.kl, rel=1e-3)
    assert chosen.bits <= 5.2 and chosen.is_better_than_uniform
    assert {chosen.formats[f"blocks.1.attention.{name}"] for name in "qkv"} != {"nvfp4"}
    assert len({chosen.formats[f"blocks.1.attention.{name}"] for name in "qkv"}) == 1
    uniform = {"*": {"operands": "forward=nvfp4"}}
    assert divergence(model, held_out, uniform) > chosen.kl
    assert "held-out sequences; nvfp4 minus mixture " in " ".join(text.split())
    assert "FP32 stay embed: emulate has no rule for an embedding." in " ".join(text.split())
    assert list(faults(chosen.report.to_dict())) == [] and chosen.verdict == chosen.report.verdict


def test_a_budget_is_kept_and_more_bits_cost_less(planted: Planted) -> None:
    before = math.inf
    for bits in (4.25, 4.6, 5.5, 16.0):
        chosen = planted.found.choose(bits=bits)
        predicted = sum(planted.found.scores[group, format].nats for group, format in chosen.groups.items())
        assert chosen.bits <= bits + 1e-9
        assert chosen.kl < before
        assert 0.2 * predicted < chosen.kl < 2 * predicted
        assert "the same batches chose it: give held_out=" in " ".join(str(chosen.report).split())
        before = chosen.kl


def test_no_mixture_where_a_uniform_format_is_as_good() -> None:
    """All units of one kind, so that the budget leaves nothing to choose."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 10))
    batches = list(torch.randn(4, 64, 32))
    chosen = sensitivity(model, batches, ["mxfp4", "nvfp4"]).choose(bits=4.5, held_out=list(torch.randn(4, 64, 32)))
    text = " ".join(str(chosen.report).split())
    assert text.startswith(
        'Use nvfp4 for all units: emulate(model, "fp32", exceptions=exceptions) with exceptions = { "*": '
    )
    assert chosen.report.findings[0].about == {"*": {"operands": "forward=nvfp4"}} == chosen.exceptions
    assert "nvfp4 minus mixture 0 to 0 nats" in text and not chosen.is_better_than_uniform


def test_the_fewest_bits_within_a_divergence(planted: Planted) -> None:
    worst = sum(planted.found.scores[group, "mxfp4"].nats for group in planted.found.units)
    before = 4.25
    for share in (0.5, 0.05):
        chosen = planted.found.choose(max_kl=share * worst)
        assert chosen.kl <= share * worst and before <= chosen.bits < 16
        before = chosen.bits


class Trials:
    """The mixtures that a search tries, with their KLs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.each: list[tuple[dict[str, str], float]] = []

        def noted(subject: Any, mixtures: Any, *others: Any) -> Any:
            results = tried(subject, mixtures, *others)
            self.each += [(dict(mixture), trial.mean) for mixture, trial in zip(mixtures, results)]
            return results

        monkeypatch.setattr(mixture_search, "tried", noted)

    @property
    def searched(self) -> list[tuple[dict[str, str], float]]:
        """Up to the last mixture: the uniform formats behind it are tried beside the choice."""
        last = max(at for at, (mixture, _) in enumerate(self.each) if len(set(mixture.values())) > 1)
        return self.each[: last + 1]


@pytest.mark.parametrize("seed", range(3))
def test_no_trial_within_a_divergence_has_fewer_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of different sizes, and limits that several of the tried mixtures meet."""
    torch.manual_seed(seed)
    widths = [int(width) for width in 32 * torch.randint(1, 5, (4,))]
    model = nn.Sequential(*(layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())))
    found = sensitivity(model, list(torch.randn(4, 32, widths[0])), list(BLOCKS))
    elements = {name: model[int(name)].weight.numel() for name in found.units}

    def bits(mixture: dict[str, str]) -> float:
        return sum(BITS[format] * elements[unit] for unit, format in mixture.items()) / sum(elements.values())

    worst = sum(found.scores[unit, "mxfp4"].nats for unit in found.units)
    several, every = 0, [dict(zip(found.units, formats)) for formats in product(BLOCKS, repeat=len(elements))]
    kls = tried(found._subject, every)
    for share in (0.7, 0.3, 0.1):
        trials = Trials(monkeypatch)
        chosen = found.choose(max_kl=share * worst)
        within = {bits(mixture) for mixture, kl in trials.searched if kl <= share * worst}
        assert bits(chosen.groups) == min(within)
        several += len(within) > 1
        fewest = min(bits(mixture) for mixture, kl in zip(every, kls) if kl.mean <= share * worst)
        assert fewest <= chosen.bits <= 1.1 * fewest
    assert several


BLOCKS = {"mxfp4": (4, 32), "nvfp4": (4, 16), "mxfp6_e2m3": (6, 32), "mxfp8_e4m3": (8, 32)}  # bits, elements

BITS = {format: bits + 8 / block for format, (bits, block) in BLOCKS.items()}  # with a share of a scale


def stored(weight: Tensor, format: str) -> int:
    """Bytes of a weight's packed codes, and of a byte for each block."""
    bits, block = BLOCKS[format]
    return weight.numel() * bits // 8 + sum(len(row) // block for row in weight)


def test_a_budget_of_bytes_is_of_codes_and_scales() -> None:
    """Budgets that no mixture meets exactly, and the same ones in bits."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    found = sensitivity(model, [torch.randn(16, 32)], list(BLOCKS))
    elements = sum(weight.numel() for weight in model.parameters() if weight.dim() > 1)
    for budget in (2500, 3001, 4000):
        chosen = found.choose(bytes=budget)
        assert chosen.bytes == sum(stored(model[int(unit)].weight, format) for unit, format in chosen.formats.items())
        assert 0.8 * budget < chosen.bytes <= budget
        assert chosen.groups == found.choose(bits=8 * budget / elements).groups


@pytest.mark.parametrize("seed", range(4))
def test_a_budget_of_time_goes_by_a_table_of_speeds(seed: int) -> None:
    """A format of more bits may be the faster one, and the mixture's time is that of its products, one by one."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    formats = ["mxfp4", "nvfp4", "mxfp8_e4m3", "bf16"]
    found = sensitivity(model, [torch.randn(16, 32)], formats)
    speeds = {name: draw.choice([0.5, 1, 2, 3, 4]) for name in formats}
    weights = {unit: model[int(unit)].weight.numel() for unit in found.units}
    total = sum(weights.values())
    stored_bits = {**BITS, "bf16": 16}
    fastest, slowest = 1 / max(speeds.values()), 1 / min(speeds.values())
    times = []
    for part in (0.0, 0.3, 0.7, 1.0):
        limit = fastest + part * (slowest - fastest)
        chosen = found.choose(time=limit, speeds=speeds)
        spent = sum(weights[unit] / speeds[format] for unit, format in chosen.formats.items()) / total
        assert chosen.time == pytest.approx(spent) and spent <= limit * (1 + 1e-9)
        bits = sum(weights[unit] * stored_bits[format] for unit, format in chosen.formats.items()) / total
        assert chosen.bits == pytest.approx(bits)
        assert f"{chosen.bits:.2f} bits and {chosen.time:.3g} of the time" in " ".join(str(chosen.report).split())
        times.append(chosen.kl)
    assert times[-1] <= min(times) * (1 + 1e-9)  # without a limit
    fast = {name for name in formats if 1 / speeds[name] == fastest}
    assert set(found.choose(time=fastest, speeds=speeds).formats.values()) <= fast


def test_bits_alone_have_no_time() -> None:
    torch.manual_seed(0)
    found = sensitivity(nn.Sequential(nn.Linear(32, 10)), [torch.randn(16, 32)], ["nvfp4"])
    assert found.choose(bits=5).time is None and "of the time" not in str(found.choose(bits=5).report)


def test_few_sequences_do_not_tell() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
    chosen = sensitivity(model, [torch.randn(6, 32)], ["mxfp4", "mxfp8_e4m3"]).choose(bits=5)
    text = " ".join(str(chosen.report).split())
    assert text.startswith("Type emulate(") and chosen.is_better_than_uniform is None
    assert "tried on 6 calibration sequences; too few to tell it from mxfp4: 8 give an interval" in text


def test_weights_alone_have_rules_of_one_side() -> None:
    torch.manual_seed(0)
    model, batches = convolutions().eval(), list(torch.randn(4, 32, 3, 9, 9))
    chosen = sensitivity(model, batches, weights_only=True).choose(bits=5)
    assert all(rule["operands"].startswith("forward.right=") for rule in chosen.exceptions.values())
    assert divergence(model, batches, chosen.exceptions) == pytest.approx(chosen.kl, rel=1e-3)


class Named(nn.Module):
    """A product that has no unit, so that no rule may hold for all modules."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"a": nn.Linear(32, 32), "a*": nn.Linear(32, 32), "c": nn.Linear(32, 8)})
        self.other = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = x + self.other(x)
        return self.layers["c"](self.layers["a*"](self.layers["a"](x).relu()).relu())


def test_rules_hold_for_the_units_alone() -> None:
    torch.manual_seed(0)
    model, batches = Named(), list(torch.randn(4, 64, 32))
    chosen = sensitivity(model, batches, ["mxfp4", "mxfp8_e4m3"]).choose(bits=6)
    assert list(chosen.exceptions) == ["layers.a", "layers.a[*]", "layers.c"]
    assert divergence(model, batches, chosen.exceptions) == pytest.approx(chosen.kl, rel=1e-3)


class Edge(nn.Module):
    """The first layer's result rounds to FP16's largest number; beside both of its operands in FP16 it is beyond it."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(1, 1, bias=False), nn.Linear(1, 4)
        with torch.no_grad():
            self.one.weight.fill_(48017.0)
            self.two.weight *= 1e-4

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x))


def test_a_mixture_that_overflows_is_left() -> None:
    torch.manual_seed(0)
    found = sensitivity(Edge(), [torch.full((16, 1), 1.3641)], ["fp16", "bf16"])
    assert found.not_finite == {} and all(found.scores[unit, "fp16"].nats < 1e-6 for unit in found.units)
    chosen = found.choose(bits=16)
    assert "bf16" in chosen.groups.values() and math.isfinite(chosen.kl)
    assert "fp16     16.00  inf" in chosen.table()
    only = sensitivity(Edge(), [torch.full((16, 1), 1.3641)], ["fp16"])
    with pytest.raises(ValueError, match="choose: the mixture is not finite on the calibration batches; leave out"):
        only.choose(bits=16)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({}, "choose: give one of bits=4.5, bits per weight, bytes=2**20, of all weights, max_kl=0.01, nats"),
    "both": ({"bits": 5, "max_kl": 1}, "choose: give one of "),
    "bits and bytes": ({"bits": 5, "bytes": 500}, "choose: give one of "),
    "zero": ({"bits": 0}, "choose: bits=0; give a positive number"),
    "text": ({"bits": "4"}, "choose: bits='4'; give a positive number"),
    "infinite": ({"max_kl": math.inf}, "choose: max_kl=inf; give a positive number"),
    "too few bits": ({"bits": 4}, "choose: bits=4: these formats take 4.25 or more; give bits=4.25"),
    "no bytes": ({"bytes": 0}, "choose: bytes=0; give a positive number"),
    "too few bytes": ({"bytes": 356}, "choose: bytes=356: these formats take 357 or more; give bytes=357"),
    "time without speeds": ({"time": 0.5}, "choose: time= and speeds= go together"),
    "speeds without time": ({"bits": 5, "speeds": {"nvfp4": 4}}, "choose: time= and speeds= go together"),
    "a format without a speed": ({"time": 1, "speeds": {"nvfp4": 4}}, "choose: speeds: none for mxfp4"),
    "no speed": ({"time": 1, "speeds": {"nvfp4": 4, "mxfp4": 0}}, "choose: speeds['mxfp4']=0; give a positive number"),
    "too little time": (
        {"time": 0.2, "speeds": {"nvfp4": 4, "mxfp4": 3}},
        "choose: time=0.2: these formats take 0.25 or more; give time=0.25",
    ),
    "too few nats": ({"max_kl": 1e-30}, "choose: max_kl=1e-30: no mixture of mxfp4, nvfp4 that was tried is within it"),
    "no held-out batch": ({"bits": 5, "held_out": []}, "choose: held_out has no batch"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_refused(case: str) -> None:
    options, words = REFUSED[case]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10))
    found = sensitivity(model, [torch.randn(16, 32)], ["mxfp4", "nvfp4"])
    with pytest.raises(ValueError, match=f"^{re.escape(words)}") as raised:
        found.choose(**options)
    assert "\n" not in str(raised.value)


def test_a_model_of_embeddings_alone_has_nothing_to_choose() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 10))
    found = sensitivity(model, tokens(2, 8), ["mxfp4"])
    assert found.units == ("0",) and found.scores["0", "mxfp4"].nats > 0
    with pytest.raises(ValueError, match="choose: the model has no linear layer, convolution or recurrent layer"):
        found.choose(bits=5)
