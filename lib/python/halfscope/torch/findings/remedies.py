"""Table of remedies: a fault's shape, what to write instead, and the change of the step that tries it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from halfscope.torch.findings.changes import (
    Trial,
    clamped,
    in_fp32,
    logarithm_in_fp32,
    mask_value,
    other_eps,
    other_mask,
    safe_eps,
    scaled,
    shift_of,
    shifted,
    wide,
)
from halfscope.torch.findings.fault import Fault
from halfscope.torch.findings.finding import called, short
from halfscope.torch.findings.kinds import DIVISIONS, LOGARITHMS, PRODUCTS, ROOTS
from halfscope.torch.findings.shapes import (
    chain,
    flushed_constant,
    flushes,
    is_below_reciprocal_root,
    is_below_root,
    is_gelu,
    is_gradient_norm,
    is_logsumexp,
    is_mask_constant,
    is_mask_sum,
    is_norm,
    is_score,
    large_constant,
    large_mask,
    made_by,
)
from halfscope.torch.operations.table import Trait, named


@dataclass(frozen=True)
class Remedy:
    """A line of the table."""

    name: str
    fits: Callable[[Fault], bool]
    advice: Callable[[Fault], str]
    trial: Callable[[Fault], Trial]
    how: str = ""  # it is tried, where that is not the advice to the letter
    keeps_output: bool = False  # it is none where the model's result changes by it


def _mask_advice(fault: Fault) -> str:
    made, value = large_constant(fault) or (fault.made, 0.0)
    other = math.copysign(mask_value(fault), value)
    return (
        f"write {short(other)} for {short(value)}, in {called(made.operation)}; torch.finfo(x.dtype).min will do where "
        "nothing is added to it"
    )


def _exp_limit(fault: Fault) -> str:
    return f"{math.log(fault.format.largest):.4g}"


def _percent_clamped(fault: Fault) -> str:
    return f"{100 * (1 - 1 / max(fault.ratio, 1.0)):.0f}"


def _is_eps(fault: Fault) -> bool:
    kinds = ("gradient", "log 0", "0 / 0", "x / 0")
    found = flushed_constant(fault)
    divides = fault.made.operation in DIVISIONS | ROOTS or fault.kind in kinds
    return divides and found is not None and safe_eps(fault) > abs(found[1])


def _mask_sum_advice(fault: Fault) -> str:
    beyond = large_mask(fault)
    if beyond is None:
        return "clamp the sum of mask and scores at torch.finfo(x.dtype).min, or use masked_fill behind the scores"
    return (
        f"fill the mask with {short(-mask_value(fault))}: {short(beyond)} is beyond {fault.format.label}'s largest "
        "number; or use masked_fill behind the scores"
    )


def _eps_advice(fault: Fault) -> str:
    made, value = flushed_constant(fault) or (fault.made, 0.0)
    limit = 1 / fault.format.largest
    advice = (
        f"write {short(safe_eps(fault))} for {short(value)}, in {called(made.operation)}: an eps above "
        f"{fault.format.smallest:.2g}, the smallest number, is not 0"
    )
    if is_below_reciprocal_root(fault):
        return f"{advice}; the gradient of its reciprocal root, eps^(-3/2) / 2, is finite too"
    if is_below_root(fault):
        return f"{advice}; its root is taken, so that 1/sqrt(eps) is finite too"
    return f"{advice}; above {limit:.3g}, 1/{fault.format.largest:g}, the gradient 1/eps is finite too"


def _chain_advice(fault: Fault) -> str:
    first = chain(fault)[-1]
    where = f" ({first.site})" if first.site is not None and first.site != fault.made.site else ""
    begin = "" if first is fault.made else f"{called(first.operation)}{where} to "
    return f"compute {begin}{called(fault.made.operation)} in FP32, on x.float()"


PARTIAL_SUMS = (
    "keep partial sums in FP32: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False, and "
    "allow_bf16_reduced_precision_reduction = False; or leave split_k out of accumulate="
)

TABLE: tuple[Remedy, ...] = (
    Remedy("mask constant", is_mask_constant, _mask_advice, other_mask),
    Remedy(
        "clamped mask", is_mask_sum,
        _mask_sum_advice, clamped,
    ),
    Remedy(
        "sum of logarithms", lambda f: f.kind == "log 0" and made_by(f, "prod", "cumprod") is not None,
        lambda f: "sum the logarithms, log(x).sum(-1), for log(x.prod(-1)); logsigmoid and log_softmax have them",
        lambda f: wide(*(made.row for made in chain(f))),
        how=" in FP32 from the product to the log",
    ),
    Remedy(
        "log_softmax", lambda f: f.made.operation in LOGARITHMS and f.kind == "log 0"
        and made_by(f, *named(Trait.DROPS_MASK)) is not None,
        lambda f: "use log_softmax(x) for log(softmax(x)): it needs no eps", logarithm_in_fp32,
        how=" in FP32 from the softmax to the log, as log_softmax computes it",
    ),
    Remedy(
        "logits", lambda f: called(f.made.operation) in (*LOGARITHMS, "binary_cross_entropy")
        and made_by(f, "sigmoid") is not None,
        lambda f: "use logsigmoid(x), or binary_cross_entropy_with_logits", logarithm_in_fp32,
        how=" in FP32 from the sigmoid to the log",
    ),
    Remedy(
        "eps", _is_eps, _eps_advice, other_eps, keeps_output=True,
    ),
    Remedy(
        "gradient norm", is_gradient_norm,
        lambda f: "use torch.nn.utils.clip_grad_norm_, or square in FP32: p.grad.float().norm() ** 2", in_fp32,
    ),
    Remedy(
        "logsumexp", is_logsumexp,
        lambda f: f"use torch.logsumexp(x, -1), or softplus(x) for log(1 + exp(x)): exp(x) is infinite in "
        f"{f.format.label} from x = {_exp_limit(f)} on",
        lambda f: wide(*(made.row for made in chain(f) if made.operation not in PRODUCTS),
                        *(made.row for made in f.passes)),
        how=" in FP32 from the exponential to the log",
    ),
    Remedy(
        "exponential in FP32", lambda f: f.kind == "exponential",
        lambda f: f"subtract the largest first, exp(x - x.max()), or compute exp in FP32: it is infinite in "
        f"{f.format.label} from x = {_exp_limit(f)} on",
        in_fp32,
        how=" in FP32",
    ),
    Remedy(
        "norm in FP32", is_norm,
        lambda f: "square and sum in FP32: x.float().pow(2).mean(-1), cast back behind the reciprocal root; or "
        "nn.RMSNorm",
        in_fp32,
    ),
    Remedy(
        "fused activation", is_gelu,
        lambda f: "use the fused function, gelu(x, approximate='tanh') for this GELU, which is FP32 inside", in_fp32,
        how=" in FP32 from this power on",
    ),
    Remedy(
        "partial sums", lambda f: f.has_partial_sums, lambda f: PARTIAL_SUMS, in_fp32, how=" with FP32 sums",
    ),
    Remedy(
        "loss in FP32", lambda f: f.made.is_outside and f.region == "forward"
        and f.kind in ("product", "sum of products", "addition", "power"),
        lambda f: f"compute {called(f.made.operation)} in FP32, on x.float(), as losses are under autocast", in_fp32,
    ),
    Remedy(
        "smaller loss", lambda f: f.region == "backward" and f.kind in ("product", "sum of products"),
        lambda f: "make the loss smaller: a mean instead of a sum, or a smaller loss scale", in_fp32,
        how=" with this gradient in FP32",
    ),
    Remedy(
        "scaled scores", is_score,
        lambda f: f"scale before the product, not behind it: (q * s) @ k.T with s = 2^-{shift_of(f)}"
        + (f", or the whole 1/sqrt({f.terms})" if 0 < f.value < f.format.largest * math.sqrt(f.terms) else ""),
        scaled,
    ),
    Remedy(
        "scaled product", lambda f: f.kind in ("product", "sum of products") and not f.has_weight,
        lambda f: f"multiply one factor by 2^-{shift_of(f)}: a norm that follows does not change by it, where a "
        f"clamp would be {_percent_clamped(f)} % off",
        shifted, keeps_output=True,
    ),
    Remedy(
        "product in FP32", lambda f: f.kind in ("product", "sum of products"),
        lambda f: "compute this product in FP32, a.float() * b.float()" if f.kind == "product"
        else f"keep {f.made.module or 'this product'} in FP32, or make its operands smaller",
        in_fp32,
    ),
    Remedy(
        "running sum in FP32", lambda f: f.made.operation == "cumsum",
        lambda f: "sum in FP32: x.cumsum(..., dtype=torch.float32)", in_fp32,
    ),
    Remedy(
        "vector norm in FP32", lambda f: f.kind == "sum" and f.made.operation in named(Trait.NORM),
        lambda f: "take the norm in FP32, torch.linalg.vector_norm(x, ..., dtype=torch.float32), and divide before the "
        "cast",
        in_fp32,
    ),
    Remedy(
        "sum in FP32", lambda f: f.kind == "sum",
        lambda f: "sum in FP32, x.sum(..., dtype=torch.float32), or take the mean, which divides before it is stored",
        in_fp32,
    ),
    Remedy(
        "input in FP32", lambda f: f.kind == "cast",
        lambda f: "scale the input down, or keep it and this operation in FP32", in_fp32,
    ),
    Remedy(
        "addition in FP32", lambda f: f.kind == "addition" and f.region == "forward",
        lambda f: "add in FP32, a.float() + b.float()"
        + ("" if f.format.has_range_of_fp32 else ", or train in BF16, which has the range of FP32")
        + f"; a clamp would be {_percent_clamped(f)} % off",
        in_fp32,
    ),
    Remedy(
        "power in FP32", lambda f: f.kind == "power" and f.region == "forward",
        lambda f: "compute the power in FP32, x.float(), and cast behind what makes it small again", in_fp32,
    ),
    Remedy("chain in FP32", flushes, _chain_advice, lambda f: wide(*(made.row for made in chain(f)))),
    Remedy(
        "operation in FP32", lambda f: f.region == "forward",
        lambda f: f"compute {called(f.made.operation)} in FP32: x.float()", in_fp32,
    ),
    Remedy(
        "gradient in FP32", lambda f: True,
        lambda f: f"compute {called(f.made.operation)} in FP32, x.float(), so that its gradient is FP32 too", in_fp32,
    ),
)  # fmt: skip


def remedies_of(fault: Fault) -> list[Remedy]:
    """Remedies that fit, the most specific first."""
    return [remedy for remedy in TABLE if remedy.fits(fault)]
