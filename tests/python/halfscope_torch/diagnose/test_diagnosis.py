"""`diagnose` on the faults that people reported: cause, size and remedy in its words, and the line of the source."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import victims
from halfscope.torch import diagnose

pytestmark = pytest.mark.torch


class Case(NamedTuple):
    """number: of the public case; code: what stands in the line that is named; words: in the first finding."""

    victim: str
    number: int
    remedy: str
    code: str
    words: tuple[str, ...]


CASES = [
    Case("mask_fill", 2, "mask constant", "masked_fill(padding, -1e9)",
         ("write -1e4 for -1e9, in masked_fill", "a constant overflows: 1e+09", "constant -1e+09 is -inf in FP16",
          "softmax of the model on (inf - inf)", "tried, and the step is finite")),
    Case("mask_product", 2, "mask constant", "padding.float() * -1e9",
         ("write -1e4 for -1e9, in mul", "constant -1e+09 is -inf in FP16", "tried, and the step is finite")),
    Case("gated_product", 4, "scaled product", "self.up(x))",
         ("multiply one factor by 2^-3", "a clamp would be 27 % off", "mul of the model: a product overflows: 90000, "
          "1.4 times FP16's largest number 65504", "silu up to 300, up up to 300", "loss 8, in FP32 8")),
    Case("rope_positions", 10, "angles in FP32", "torch.cos(phase)",
         ("angle is off by 9.6797 rad", "2049 different ones become 641", "257 is 256", "the angle is off by 0 rad")),
    Case("adam_eps_half", 11, "FP32 state", "",
         ("keep the state of Adam in FP32", "eps 1e-08 is 0 in FP16", "0 / 0, or m / 0", "tried")),
    Case("bf16_weights_stuck", 12, "master copy", "",
         ("keep an FP32 master copy", "did not move in this step", "0.00391 of a weight of 1", "learning rate 1e-05")),
    Case("softmax_then_log", 13, "log_softmax", "torch.log(p + 1e-10)",
         ("use log_softmax(x)", "log of the model: log of 0", "constant 1e-10 is 0 in FP16 (in add)", "(0 * inf)",
          "as log_softmax computes it, and the step is finite")),
    Case("mask_minimum", 16, "clamped mask", "torch.finfo(scores.dtype).min",
         ("clamp the sum of mask and scores", "add of the model: an addition overflows", "1.001 times",
          "mul up to 6.55e+04", "tried, and the step is finite")),
    Case("rms_squares", 20, "norm in FP32", "x.pow(2).mean",
         ("square and sum in FP32", "pow of the model: a power overflows: 90000, 1.4 times",
          "rsqrt of the model hides it, whose result is 100 % off", "loss 1, in FP32 1")),
    Case("normalize_eps", 21, "eps", "clamp_min(self.eps)",
         ("write 1e-4 for 1e-12, in clamp_min", "above 6e-08", "above 1.53e-05", "div of the model: 0 / 0",
          "constant 1e-12 is 0 in FP16")),
    Case("normalize_gradient", 21, "eps", "clamp_min(self.eps)",
         ("write 1e-4 for 1e-5, in clamp_min", "a gradient overflows in the backward pass: 1e+05, 1.5 times",
          "tried, and the step is finite")),
    Case("half_sum", 22, "sum in FP32", ".sum(-1) / x.shape[-1]",
         ("sum in FP32", "a sum overflows, of 3 terms: 1.2e+05, 1.8 times", "mul up to 4e+04", "loss 40000")),
    Case("fp16_without_scaler", 23, "loss scale", "",
         ("torch.amp.GradScaler(init_scale=2.0**16)", "9216 of 9216 elements of the weight gradients (100.0 %) are 0",
          "tried, and 12 of 9216 are 0")),
    Case("lm_head_bf16", 25, "head in FP32", "",
         ("keep module 1 in FP32", "have a step of 0.25 in BF16", "log-probabilities are off by up to 0.21", "tried")),
    Case("timestep_bf16", 26, "angles in FP32", "torch.sin(t[:, None] * self.frequencies)",
         ("6 values, 6 changed by the cast to BF16, by up to 2", "625 is 624, 750 is 752",
          "the angle is off by 0 rad")),
    Case("batchnorm_poisoned", 27, "input in FP32", "self.bn(self.a(x))",
         ("a cast overflows: 90000", "the input up to 9e+04", "tried, and the step is finite")),
    Case("ema_stuck", 34, "average in FP32", "",
         ("keep average in FP32", "changes it by up to 0.00010002, which BF16 loses in 4 of 4", "never moves")),
    Case("gemma_normalizer", 35, "constants", "", ("normalizer: 55.4256 is 55.5", "choose constants that BF16 has")),
    Case("gelu_cubic", 36, "fused activation", "torch.pow(x, 3)",
         ("use the fused function, gelu(x, approximate='tanh')", "pow of the model: a gradient overflows in the",
          "backward pass: 1.2e+05", "Forward it overflows too, 8e+06, which tanh hides",
          "and the step is finite")),
    Case("fp16_constants", 54, "constants", "",
         ("keep the buffer coefficients", "3 of 7 elements are 0 in FP16", "-8.6e-11 is -0")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.victim)
def test_cause_and_remedy_are_named(case: Case) -> None:
    torch.manual_seed(0)
    model, step, options = getattr(victims, case.victim)()
    before = copy.deepcopy(model.state_dict())
    found = diagnose(model, step, **options)
    first = found.findings[0]
    assert first.remedy == case.remedy
    for words in case.words:
        assert words in str(first)
    site = getattr(getattr(first.about, "made", first.about), "site", None)
    if case.code:
        assert site is not None and Path(site.line.file).name == "victims.py"
        assert case.code in site.line.text
        assert str(first).startswith(f"victims.py:{site.line.number}: ")
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in before.items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_buffers_that_a_skipped_step_does_not_protect_are_named() -> None:
    model, step, options = victims.batchnorm_poisoned()
    found = diagnose(model, step, **options)
    second = str(found.findings[1])
    assert second.startswith("reset bn.reset_running_stats()")
    assert "bn.running_mean, bn.running_var are infinite or NaN after this step" in second


def test_a_healthy_step_has_no_finding() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    inputs, labels = torch.randn(16, 20), torch.arange(16) % 5
    found = diagnose(model, lambda: nn.functional.cross_entropy(model(inputs), labels))
    assert found.findings == ()
    assert str(found).startswith("Looked at: ")
    assert " ".join(str(found).split()).endswith("Every number is finite.")


@pytest.mark.parametrize("fill", [
    lambda scores, padding: scores.masked_fill(padding, -1e9),
    lambda scores, padding: scores.index_fill(0, torch.tensor([0]), -1e9),
    lambda scores, padding: torch.where(padding, -1e9, scores),
], ids=["masked_fill", "index_fill", "where"])  # fmt: skip
def test_a_mask_is_a_mask_however_it_is_filled(fill: Any) -> None:
    model, x, padding = victims.Masked(fill), torch.randn(2, 3), torch.tensor([[True] * 3, [False, False, True]])
    first = diagnose(model, lambda: model(x, padding).square().sum()).findings[0]
    assert (first.kind, first.remedy) == ("constant", "mask constant")
    assert "write -1e4 for -1e9, in" in first.change and "tried, and the step is finite" in first.sure


def test_a_mask_that_does_no_harm_is_no_finding() -> None:
    """-1e9 is -inf in FP16, and a softmax of part of a row makes zeros of both."""
    model = victims.Masked(lambda scores, padding: scores.masked_fill(padding, -1e9))
    x, padding = torch.randn(2, 3), torch.tensor([[False, True, True], [False, False, True]])
    assert diagnose(model, lambda: model(x, padding).square().sum()).findings == ()


def test_what_is_not_finite_in_fp32_is_no_fault_of_a_format() -> None:
    model = nn.Linear(2, 2)
    found = diagnose(model, lambda: model(torch.tensor([[float("inf"), 1.0]])).sum())
    assert found.findings[0].kind == "fp32"
    assert str(found).startswith("look at the batch and at the loss in FP32 first; no format is to blame")


def test_the_line_of_a_library_has_its_callers(tmp_path: Path) -> None:
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
    assert found.fault is not None and found.fault.made.site is not None
    assert Path(found.fault.made.site.line.file).name == "modeling_llama.py"
    assert Path(found.fault.made.site.caller.file).name == "test_diagnosis.py"
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
    found = diagnose(model, lambda: model(x).sum())
    assert found.fault is not None and found.fault.region == "backward"
    assert "clamp_min(self.eps)" in found.fault.made.site.line.text
    assert found.findings[0].remedy == "eps"


def test_a_model_in_half_is_told_that_nothing_was_tried() -> None:
    model = victims.Rms().half()
    found = diagnose(model, lambda: model(torch.full((2, 64), 300.0).half()).float().mean())
    first = found.findings[0]
    assert "pow of the model: a power overflows: 90000, 1.4 times" in str(first)
    assert first.sure.startswith(
        "seen in the step; the remedy was not tried, since the weights have 16 bits themselves"
    )
    assert "in FP32 0" not in " ".join(str(found).split())


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
    assert found.findings[0].sure == "seen after the step; not tried"
