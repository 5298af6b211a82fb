"""`diagnose` on the faults that people reported, and on near ones: the line, the kind of remedy, the cause."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import near_victims
import victims
from halfscope.torch import diagnose

pytestmark = pytest.mark.torch


class Case(NamedTuple):
    """kind: family of the remedy; code: what stands in the line that is named; words: in the text."""

    victim: str
    kind: str
    code: str
    words: tuple[str, ...]


STATE = "keep weights, buffers and the optimizer's state in FP32"
CASES = [
    Case("mask_fill", "constant", "masked_fill(padding, -1e9)",
         ("write -6e4 for -1e9 in", "overflows: 1e+09, 1.5e+04 times FP16's largest number", "-1e9", "-inf in FP16")),
    Case("mask_product", "FP32", "padding.float() * -1e9", ("the constant -1e9", "-inf in FP16", "to `torch.softmax(")),
    Case("gated_product", "power of two", "self.up(x))",
         ("by 2.0**-4, in `functional.silu(self.gate(x)) * self.up(x)`", "overflows: 90000, 1.4 times")),
    Case("rope_positions", "FP32", "torch.arange(x.shape[0])",
         ("to `torch.cos(phase)`", "off by 9.6797 rad", "2049 different ones become 641", "257 is 256")),
    Case("adam_eps_half", "state", "", (STATE, "eps 1e-08 is 0 in FP16", "`optimizer.step()` is infinite")),
    Case("bf16_weights_stuck", "state", "",
         (STATE, "1629 of 1669 elements that FP32 moves stay (97.6 %)", "each change is below half a step of BF16")),
    Case("softmax_then_log", "constant", "torch.log(p + 1e-10)",
         ("write 1e-7 for 1e-10", "logarithm of 0 (20 of 32 elements)", "the constant 1e-10 in `p + 1e-10` is 0")),
    Case("mask_minimum", "FP32", "torch.softmax(self.mask(", ("overflows: 65545, 1.001 times FP16's largest number",)),
    Case("rms_squares", "identity", "x.pow(2).mean",
         ("write torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-06)", "`x.pow(2)` overflows: 90000, 1.4 times",
          "the loss is 0, in FP32 1")),
    Case("normalize_eps", "constant", "clamp_min(self.eps)",
         ("write 1e-4 for 1e-12", "a division by 0 (1 of 4 elements)", "is 0 in FP16")),
    Case("normalize_gradient", "constant", "clamp_min(self.eps)",
         ("write 1e-4 for 1e-5", "the gradient of `y / y.norm(dim=-1, keepdim=True).clamp_min(self.eps)` is infinite")),
    Case("half_sum", "identity", ".sum(-1) / x.shape[-1]",
         ("write (x * self.p).mean(-1) for", "`(x * self.p).sum(-1)` overflows: 1.2e+05, 1.8 times")),
    Case("fp16_without_scaler", "loss scale", "", ("use a loss scale: torch.amp.GradScaler(init_scale=2.0**16)",)),
    Case("timestep_bf16", "FP32", "torch.sin(t[:, None] * self.frequencies)",
         ("keep the inputs and weights", "6 different ones become 5", "625 is 624, 750 is 752", "off by 3.4302 rad")),
    Case("batchnorm_poisoned", "state", "",
         ("keep bn.running_mean, bn.running_var in FP32", "linear of a overflows: 90000", "from linear of a to")),
    Case("ema_stuck", "state", "", ("keep average in FP32: BF16 loses what a step adds", "4 of 4 elements")),
    Case("gelu_cubic", "identity", "torch.pow(x, 3)",
         ("torch.nn.functional.gelu(x, approximate='tanh')", "`torch.pow(x, 3)` overflows: 8e+06",
          "the gradient of `torch.pow(x, 3)` is infinite")),
    Case("large_scores", "identity", "@ y.transpose(-1, -2)",
         ("write (y / (128**0.5)) @ y.transpose(-1, -2) for", "overflows: 6.3283e+05, 9.7 times")),
    Case("long_cumsum", "FP32", "cumsum(-1)", ("`y.flatten().cumsum(-1)` overflows: 1.2288e+05",)),
    Case("variance_of_squares", "FP32", "self.function(self.layer(x))",
         ("is the difference of numbers near 1e+04", "keep the inputs that they take in FP32",
          "`y - mean` is the difference of numbers near 100.3: few digits are left")),
    Case("exponential", "FP32", "self.function(self.layer(x))", ("`torch.exp(-y)` overflows: 1.6275e+05",)),
    Case("own_softplus", "identity", "torch.exp(y)", ("write torch.nn.functional.softplus(y) for",)),
    Case("own_logsumexp", "identity", "torch.exp(y).sum(-1)", ("write torch.logsumexp(y, dim=-1) for",)),
    Case("root_of_zero", "constant", "torch.sqrt", ("write 1e-7 for 1e-12", "is 0 for 1 of 4 elements")),
    Case("clamped_probability", "FP32", "torch.log(1 -",
         ("the constant 0.9999999 in", "is 1 in FP16", "no digit is left")),
    Case("constant_of_one", "FP32", "torch.atanh", ("atanh of 1 (16 of 16 elements)", "the constant 0.9999 in")),
    Case("log_of_product", "identity", "torch.prod",
         ("write torch.nn.functional.logsigmoid(y).sum(-1) for", "logarithm of 0", "that FP16 does not hold")),
    Case("residual_sum", "FP32", "self.layer(x)", ("`y + y` overflows: 80000, 1.2 times",)),
    Case("focal_loss", "FP32", "self.layer(x)", ("logarithm of 0", "the constant 1e-8 in `p.clamp(min=1e-8)` is 0")),
    Case("summed_squares", "FP32", ".sum((-1, -2))", ("overflows: 2.5865e+05",)),
    Case("mask_of_a_power_of_two", "constant", "masked_fill", ("write -6e4 for -1.07374e+09",)),
    Case("equal_rows", "FP32", "torch.sqrt", ("the constant 1e-10 in", "is 0 for 8 of 8 elements")),
    Case("summed_loss_in_half", "FP32", ".sum() * 100", ("overflows: 1.211e+05, 1.8 times",)),
    Case("matters_in_root", "identity", "torch.sqrt",
         ("torch.nn.functional.rms_norm(y, y.shape[-1:], eps=1e-08)", "the constant 1e-8 in")),
    Case("cross_entropy_of_sigmoid", "FP32", "self.layer(x)",
         ("the gradient of `functional.binary_cross_entropy(model(x), torch.zeros(2, 8))` is infinite",)),
    Case("own_clipping", "state", "parameter.grad.norm(2) ** 2",
         ("`parameter.grad.norm(2) ** 2` overflows: 6.1405e+06",)),
    Case("triangular_mask", "constant", "torch.full((4, 4), -1e9)", ("write -3e4 for -1e9", "-inf in FP16")),
    Case("norm_of_large_rows", "FP32", "self.layer(x)",
         ("`torch.linalg.vector_norm(y, dim=-1, keepdim=True)` overflows: 2.4e+05, 3.7 times", "the loss is 0")),
    Case("reciprocal_root_of_zero", "FP32", "torch.rsqrt", ("reciprocal root of 0", "the constant 1e-8 in")),
    Case("counted_mask", "FP32", ".sum() /", ("`(y * 1.0).sum()` overflows: 1.3107e+05", "`(y * 0.0 + 1.0).sum()`")),
    Case("adagrad_in_half", "state", "", (STATE, "eps 1e-10 is 0 in FP16")),
]  # fmt: skip


def made(name: str) -> victims.Victim:
    """With time enough on a machine that others use too."""
    torch.manual_seed(0)
    model, step, options = (getattr(victims, name, None) or getattr(near_victims, name))()
    return model, step, {**options, "seconds": 600}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.victim)
def test_cause_and_remedy_are_named(case: Case) -> None:
    model, step, options = made(case.victim)
    before = copy.deepcopy(model.state_dict())
    report = diagnose(model, step, **options)
    first, text = report.findings[0], " ".join(str(report).split())
    assert first.kind == case.kind
    for words in case.words:
        assert words in text
    assert first.sure.startswith("tried: loss, results, gradients and decisions are FP32's but for round-off")
    assert case.code in first.code and bool(case.code) == (first.place is not None)
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in before.items())
    assert all(parameter.grad is None for parameter in model.parameters())


# Notes on what no outcome of these steps shows.
NOTES = {
    "lm_head_bf16": ("mm of module 1: logits up to 35.669 have a step of 0.25 in BF16", "off by up to 0.2179",
                     "Keep module 1 in FP32", "tried, and they are off by 0.1218"),
    "capped_head": ("mm of the model: logits up to 88.281 have a step of 0.5 in BF16", "tried, and they are off by"),
    "gemma_normalizer": ("normalizer: 55.4256 is 55.5.",),
    "fp16_constants": ("coefficients: 3 of 7 elements are 0 in FP16", "-8.6e-11 is -0"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTES)
def test_what_no_outcome_shows_is_a_note(name: str) -> None:
    model, step, options = made(name)
    report = diagnose(model, step, **options)
    assert report.is_healthy and report.notes[0].startswith("Healthy: every result and")
    (note,) = report.notes[1:]
    assert note.startswith("Seen, though no outcome of this step shows it: ")
    assert all(words in note for words in NOTES[name])


def test_a_step_with_its_own_backward_pass_has_its_note() -> None:
    model, step, options = made("gemma_normalizer")

    def trained() -> torch.Tensor:
        loss = step()
        loss.backward()
        return loss

    report = diagnose(model, trained, **options)
    assert report.is_healthy and all(words in report.notes[1] for words in NOTES["gemma_normalizer"]), str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["running_sum", "own_mean"])
def test_a_total_that_stops_growing_is_named(name: str) -> None:
    model, step, options = made(name)
    report = diagnose(model, step, **options)
    assert report.findings[0].kind == "FP32" and "found" in report.findings[0].code
    assert "terms, each rounded to BF16, is" in " ".join(str(report).split())


# Sums that are stored in parts are a policy's, which is emulated.
PARTS = {
    "partial_sums": ("compute mm in FP32", "a partial sum of split_k(2, fp16)", "of 4096 terms whose whole sum is 2048",
                     "allow_fp16_reduced_precision_reduction", "tried, and the step is finite"),
    "cancelling_parts": ("compute mm with FP32 sums", "its operands are off by 0 %, its result by 100 %",
                         "allow_fp16_reduced_precision_reduction", "loss 100, in FP32 100"),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_sums_in_parts_are_emulated(name: str) -> None:
    model, step, options = made(name)
    report = diagnose(model, step, **options)
    text = " ".join(str(report).split())
    assert all(words in text for words in PARTS[name])
    assert "near_victims.py:" in text and "x @ self.weight" in report.findings[0].code
    assert "by an emulation of policy" in text and "for which no remedy is searched" in text


def test_a_healthy_step_has_no_finding() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    inputs, labels = torch.randn(16, 20), torch.arange(16) % 5
    found = diagnose(model, lambda: nn.functional.cross_entropy(model(inputs), labels))
    assert found.findings == () and found.is_healthy and found.runs == 8
    assert str(found).startswith("Healthy: every result and 4 gradients are FP32's but for round-off.\n\nLooked at: ")


@pytest.mark.parametrize("fill", [
    lambda scores, padding: scores.masked_fill(padding, -1e9),
    lambda scores, padding: scores.index_fill(0, torch.tensor([0]), -1e9),
    lambda scores, padding: torch.where(padding, -1e9, scores),
], ids=["masked_fill", "index_fill", "where"])  # fmt: skip
def test_a_mask_is_a_mask_however_it_is_filled(fill: Any) -> None:
    model, x, padding = victims.Masked(fill), torch.randn(2, 3), torch.tensor([[True] * 3, [False, False, True]])
    first = diagnose(model, lambda: model(x, padding).square().sum()).findings[0]
    assert first.kind == "constant"
    assert "write -6e4 for -1e9 in" in first.change and first.sure.startswith("tried: ")


def test_a_mask_that_does_no_harm_is_no_finding() -> None:
    """-1e9 is -inf in FP16, and a softmax of part of a row makes zeros of both."""
    model = victims.Masked(lambda scores, padding: scores.masked_fill(padding, -1e9))
    x, padding = torch.randn(2, 3), torch.tensor([[False, True, True], [False, False, True]])
    assert diagnose(model, lambda: model(x, padding).square().sum()).findings == ()


def test_what_is_not_finite_in_fp32_is_no_fault_of_a_format() -> None:
    model = nn.Linear(2, 2)
    found = diagnose(model, lambda: model(torch.tensor([[float("inf"), 1.0]])).sum())
    assert found.findings[0].kind == "FP32"
    assert str(found).startswith("test_diagnosis.py:")
    assert "look at this line and at the batch first: no format is to blame" in str(found)


def test_the_line_of_a_library_has_its_callers() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.LlamaConfig(
        vocab_size=16, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=16, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    mlp = model.model.layers[0].mlp
    mlp.gate_proj.weight.data.fill_(40.0)
    mlp.up_proj.weight.data.fill_(40.0)
    model.model.layers[0].post_attention_layernorm.weight.data.fill_(3.0)
    tokens = torch.arange(8)[None]
    found = diagnose(model, lambda: model(tokens).logits.square().mean())
    assert str(found.findings[0].place).startswith("modeling_llama.py:")
    assert "called from test_diagnosis.py:" in " ".join(str(found).split())


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_the_line_is_found_in_a_checkpoint_and_in_its_recomputation(use_reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.p = victims.Normalized(1e-5), nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = checkpoint(self.inner, x * self.p, use_reentrant=use_reentrant)
            return found

    torch.manual_seed(0)
    model, x = Checkpointed(), torch.cat([torch.randn(3, 4), torch.zeros(1, 4)])
    first = diagnose(model, lambda: model(x).sum()).findings[0]
    assert "the gradient of `y / y.norm(dim=-1, keepdim=True).clamp_min(self.eps)` is infinite" in first.why
    assert "clamp_min(self.eps)" in first.code and first.kind == "constant"


def test_a_model_in_half_is_healed_too() -> None:
    model = victims.Rms().half()
    first = diagnose(model, lambda: model(torch.full((2, 64), 300.0).half()).float().mean()).findings[0]
    assert "`x.pow(2)` overflows: 90000, 1.4 times" in first.why
    assert first.sure.startswith("tried: ") and "loss 1, in FP32 1" in first.sure


def test_the_update_of_a_model_in_half_is_looked_at() -> None:
    model, _, _ = victims.adam_eps_half()
    model.half()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    inputs = torch.randn(16, 20).half()

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).float(), torch.arange(16) % 5)
        loss.backward()
        optimizer.step()
        return loss

    found = diagnose(model, step, optimizer=optimizer)
    assert "eps 1e-08 is 0 in FP16" in str(found.findings[0])
    assert found.findings[0].sure.startswith("tried: ")


def test_a_quick_look_takes_three_runs() -> None:
    model, step, _ = victims.softmax_then_log()
    found = diagnose(model, step, quick=True)
    (first,) = found.findings
    assert found.runs == 3 and first.kind == ""
    assert str(first).startswith("victims.py:") and "is not finite: logarithm of 0 (20 of 32 elements)" in first.change
    assert first.sure == "seen in 3 runs; no remedy was searched for: leave out quick=True"
    healthy = nn.Linear(4, 4)
    assert diagnose(healthy, lambda: healthy(torch.ones(2, 4)).mean(), quick=True).is_healthy


def test_a_policy_is_emulated_and_says_so() -> None:
    model, step, _ = victims.rms_squares()
    found = diagnose(model, step, "fp16_mixed")
    text = " ".join(str(found).split())
    assert found.fault is not None and found.fault.kind == "power"
    assert "victims.py:150: compute pow" in text and "a power overflows: 90000, 1.4 times" in text
    assert "by an emulation of policy fp16_mixed, for which no remedy is searched" in text


def test_progress_is_told_after_some_seconds(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    from halfscope.torch.doctor import progress

    monkeypatch.setattr(progress, "_QUIET", 0.0)
    model, step, _ = victims.rms_squares()
    diagnose(model, step)
    lines = capsys.readouterr().err.splitlines()
    assert lines and lines[0].startswith("diagnose: 0 runs, 0 of 60 s: ")
