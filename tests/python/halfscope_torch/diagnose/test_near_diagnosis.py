"""`diagnose` on faults near the reported ones: cause and remedy in its words, and the line of the source."""

from __future__ import annotations

from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import near_victims
from halfscope.torch import diagnose

pytestmark = pytest.mark.torch


class Case(NamedTuple):
    """code: what stands in the line that is named; words: in the first finding."""

    victim: str
    remedy: str
    code: str
    words: tuple[str, ...]


CASES = [
    Case("large_scores", "scaled scores", "@ y.transpose(-1, -2)",
         ("scale before the product, not behind it", "of 128 terms", "tried, and the step is finite")),
    Case("running_sum", "total in FP32", "found = found + y[:, place]",
         ("keep the total in FP32", "a total of 600 terms", "is 0.5, in FP32 1.1719", "tried, and the total is right")),
    Case("own_mean", "total in FP32", "found += y[:, place]",
         ("a total of 768 terms, each rounded to BF16, is 256, in FP32 768", "a step of 2, and a term of 1",
          "tried, and the total is right")),
    Case("long_cumsum", "running sum in FP32", "cumsum(-1)",
         ("x.cumsum(..., dtype=torch.float32)", "of 4096 terms: 1.2288e+05", "tried, and the step is finite")),
    Case("variance_of_squares", "operands in FP32", "(y * y).mean",
         ("compute mean and sub in FP32", "its result by 100 %", "operands up to 10000 have a step of 8 in FP16",
          "tried, and this is gone")),
    Case("norm_of_offset", "operands in FP32", "functional.layer_norm",
         ("compute addmm and native_layer_norm in FP32", "operands up to 1 have a step of 0.00097656",
          "tried, and this is gone")),
    Case("exponential", "exponential in FP32", "torch.exp(-y)",
         ("exp(x - x.max())", "infinite in FP16 from x = 11.09 on", "an exponential overflows: 1.6275e+05")),
    Case("own_softplus", "logsumexp", "torch.exp(y)", ("softplus(x) for log(1 + exp(x))", "tried")),
    Case("own_logsumexp", "logsumexp", "torch.exp(y).sum(-1)", ("use torch.logsumexp(x, -1)", "of 800 terms")),
    Case("root_of_zero", "eps", "torch.sqrt",
         ("write 1e-7 for 1e-12, in add", "1/sqrt(eps) is finite", "a division by 0 in the backward pass",
          "tried")),
    Case("clamped_probability", "logits", "torch.log(1 -",
         ("use logsigmoid(x)", "log of 0", "constant 0.9999999 is 1 in FP16 (in clamp)")),
    Case("constant_of_one", "chain in FP32", "torch.atanh", ("constant 0.9999 is 1 in FP16 (in mul)", "tried, and")),
    Case("log_of_product", "sum of logarithms", "torch.prod", ("sum the logarithms", "log of 0", "tried in FP32")),
    Case("residual_sum", "addition in FP32", "y + y",
         ("add in FP32, a.float() + b.float(), or train in BF16", "a clamp would be 18 % off", "tried")),
    Case("focal_loss", "logits", "torch.log(",
         ("use logsigmoid(x)", "log of 0", "sigmoid of the model on, in its gradient.", "tried in FP32")),
    Case("summed_squares", "sum in FP32", ".sum((-1, -2))",
         ("sum in FP32, x.sum(..., dtype=torch.float32)", "of 4096 terms", "tried, and the step is finite")),
    Case("mask_of_a_power_of_two", "mask constant", "masked_fill",
         ("write -1e4 for -1.07374e+09, in masked_fill", "constant -1.07374e+09 is -inf in FP16", "tried")),
    Case("equal_rows", "eps", "torch.sqrt",
         ("write 1e-7 for 1e-10, in add", "0 / 0 (32 of 32 elements)", "sqrt has 8 zeros that FP32 has not", "tried")),
    Case("summed_loss_in_half", "loss in FP32", ".sum() * 100",
         ("compute mul in FP32, on x.float(), as losses are under autocast", "mul outside of the model",
          "1.8 times FP16's largest number", "the remedy was not tried")),
    Case("matters_in_root", "chain in FP32", "torch.sqrt",
         ("compute pow to div in FP32", "0 / 0", "constant 1e-08 is 0 in FP16", "tried, and the step is finite")),
    Case("cross_entropy_of_sigmoid", "logits", "functional.binary_cross_entropy",
         ("binary_cross_entropy_with_logits", "binary_cross_entropy outside of the model",
          "infinite or NaN in the backward pass, in FP32 it is 10082 at most", "tried in FP32")),
    Case("own_clipping", "gradient norm", "parameter.grad.norm(2) ** 2",
         ("use torch.nn.utils.clip_grad_norm_", "pow outside of the model: a power overflows")),
    Case("partial_sums", "partial sums", "x @ self.weight",
         ("allow_fp16_reduced_precision_reduction = False", "a partial sum of split_k(2, fp16)",
          "of 4096 terms whose whole sum is 2048", "tried with FP32 sums, and the step is finite")),
    Case("cancelling_parts", "operands in FP32", "x @ self.weight",
         ("keep partial sums in FP32", "its operands are off by 0 %, its result by 100 %", "and these cancel",
          "loss 100, in FP32 100")),
    Case("accumulated_gradients", "total in FP32", "",
         ("accumulate gradients in FP32", "a total of 511 terms", "is 0.5, in FP32 1, 50 % off")),
    Case("triangular_mask", "clamped mask", "torch.softmax(y @ y.T",
         ("fill the mask with -1e4: 1e9 is beyond FP16's largest number", "triu up to 1e+09", "(inf - inf)", "tried")),
    Case("norm_of_large_rows", "vector norm in FP32", "vector_norm",
         ("torch.linalg.vector_norm(x, ..., dtype=torch.float32)", "of 64 terms: 2.4e+05, 3.7 times",
          "div of the model hides it, whose result is 100 % off", "tried, and the step is finite")),
    Case("reciprocal_root_of_zero", "eps", "torch.rsqrt",
         ("write 1e-3 for 1e-8, in add", "eps^(-3/2) / 2, is finite too", "constant 1e-08 is 0 in FP16 (in add)",
          "tried, and the step is finite")),
    Case("counted_mask", "sum in FP32", ".sum() /",
         ("sum in FP32", "of 131072 terms: 1.3107e+05, 2 times", "(inf / inf)", "tried")),
    Case("adagrad_in_half", "FP32 state", "",
         ("keep the state of Adagrad in FP32", "eps 1e-10 is 0 in FP16", "v = the sum of g^2 of a small gradient",
          "tried")),
    Case("capped_head", "head in FP32", "self.embedding(tokens) @",
         ("keep mm in FP32", "logits up to 88.281 have a step of 0.5 in BF16", "log-probabilities are off", "tried")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.victim)
def test_cause_and_remedy_are_named(case: Case) -> None:
    torch.manual_seed(0)
    model, step, options = getattr(near_victims, case.victim)()
    first = diagnose(model, step, **options).findings[0]
    assert first.remedy == case.remedy
    for words in case.words:
        assert words in str(first)
    if case.code:
        site = getattr(first.about, "made", first.about).site
        assert case.code in site.line.text
        assert str(first).startswith(f"near_victims.py:{site.line.number}: ")
