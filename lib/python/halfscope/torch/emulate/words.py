"""Report of an emulated training in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from halfscope.formats import element_of, label
from halfscope.reporting import Finding
from halfscope.torch.counts.histograms import StalledWeights
from halfscope.torch.emulate.book import Book, CastTotals, FirstOverflow
from halfscope.torch.findings.finding import called
from halfscope.torch.operations.table import Trait, named
from halfscope.torch.policy import ROLES, Policy
from halfscope.torch.words import percent

_LOST = 0.01  # share of the updates that a master copy is for
_PLURALS = {
    "weight": "weights", "activation": "activations", "activation_gradient": "activation gradients",
    "weight_gradient": "weight gradients", "master_weight": "stored weights", "optimizer_state": "optimizer states",
}  # fmt: skip


def report_text(
    policy: Policy, book: Book, steps: int, stalled: Iterable[StalledWeights] = (), *, is_told: bool = False
) -> str:
    """is_told: whether a finding on the first overflow stands above."""
    if not steps and not book.casts():
        return "Nothing was emulated: train a step inside of the block, or call the model there."
    opening = f"{steps} step{'s' * (steps != 1)} under {policy.name}"
    if not book.totals and book.evaluated:
        opening = f"Evaluation under {policy.name}"
    sentences = [f"{opening}: {_flushed(book)}." if book.casts() else f"{opening}: {_unrounded(policy)}."]
    sentences += [
        *_worst(book),
        *_overflow(book, is_told),
        *_fp8(policy, book),
        *_tf32(policy),
        *_updates(policy, book),
        *map(_stalled, stalled),
    ]
    return " ".join(sentences)


def without_rule_words(operations: Mapping[str, str]) -> str:
    """One sentence on the operations that the table has no rule for; empty where there are none."""
    if not operations:
        return ""
    named = [f"{name}{f' ({module})' if module else ''}" for name, module in operations.items()]
    listed = ", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")
    return f"No rule for {listed}: computed in FP32, result rounded once."


def _flushed(book: Book) -> str:
    by_role: dict[str, list[CastTotals]] = defaultdict(list)
    for (role, _), total in book.casts().items():
        by_role[role].append(total)
    parts = []
    for role in ROLES:
        if role in by_role:
            names = {label(element_of(total.quantizer)) for total in by_role[role]}
            parts.append(f"{percent(_share(by_role[role]))} of the {_PLURALS[role]} ({', '.join(sorted(names))})")
    return f"rounding flushed {'; '.join(parts)}"


def _unrounded(policy: Policy) -> str:
    """Products may round their operands without a cast, as TF32's do."""
    products = policy.base.products
    return "no tensor was rounded" + (f"; products add up by {products}" if products else "")


def _tf32(policy: Policy) -> list[str]:
    """The remedy for products of TF32 operands, which GPUs compute where PyTorch is told so."""
    formats = policy.base
    if not any("tf32" in (name or "") for name in (formats.products, formats.weight, formats.activation)):
        return []
    return [
        'torch.set_float32_matmul_precision("highest") keeps these products in FP32 on a GPU: TF32 rounds each operand '
        "to 10 fraction bits, by up to 4.9e-4 of it, which a cancellation makes visible."
    ]


def _fp8(policy: Policy, book: Book) -> list[str]:
    """How trainings use 8 bits, where a policy has them for every tensor and that overflowed."""
    activation = element_of(policy.base.activation)
    if book.first_overflow is None or not activation.startswith("fp8"):
        return []
    return [
        f"{label(activation)} is a format of the operands of layers: masks, eps and norms need more. emulate(model, "
        '"bf16", exceptions={"*proj": {"weight": "fp8_e4m3", "activation": "fp8_e4m3", '
        '"activation_gradient": "fp8_e5m2", "weight_gradient": "bf16"}}), with the names of your layers for *proj.'
    ]


def _share(totals: list[CastTotals]) -> float:
    nonzero = sum(total.nonzero for total in totals)
    return sum(total.flushed for total in totals) / nonzero if nonzero else 0.0


def _worst(book: Book) -> list[str]:
    gradients = {name: total for (role, name), total in book.totals.items() if role == "activation_gradient"}
    ranked = sorted(gradients.items(), key=lambda item: -item[1].flushed_fraction)
    shown = [
        f"{name or 'the model'} {percent(total.flushed_fraction)}"
        for name, total in ranked[:3]
        if total.flushed_fraction >= 0.0005
    ]
    return [f"Most of all the gradients of {', '.join(shown)}."] if shown else []


def _overflow(book: Book, is_told: bool) -> list[str]:
    first = book.first_overflow
    if first is None and book.harmless is not None:
        drops_mask = book.hider in named(Trait.DROPS_MASK)
        fate = "a softmax made them 0, as FP32's" if drops_mask else f"{called(book.hider)} behind it is as in FP32"
        if not book.hider:
            fate = "nothing but a comparison uses them, with the gradients of FP32"
        return [
            f"{book.harmless.overflow} of {book.harmless.elements} elements of {book.harmless.tensor} became infinite"
            f"{_at(book.harmless)}, and {fate}: no fault. Nothing else overflowed."
        ]
    if first is None:
        return ["Nothing overflowed."]
    what = f"{first.overflow} of {first.elements} elements overflowed"
    if not first.overflow:
        what = f"{first.nonfinite} of {first.elements} elements were infinite or NaN before they were rounded"
    where = f"{first.role.replace('_', ' ')} {first.tensor or 'of the model'}"
    return [
        f"First overflow: step {first.step}, {where}, {what}{_at(first)}.",
        *([] if is_told else ["Cause, and a search for a remedy: print(halfscope.torch.diagnose(model, loss))."]),
    ]


def _at(found: FirstOverflow) -> str:
    return "" if found.site is None else f", at {found.site}"


def _updates(policy: Policy, book: Book) -> list[str]:
    if not book.nonzero_updates:
        return []
    share = book.lost_updates / book.nonzero_updates
    stored = label(element_of(policy.base.master_weight))
    if "stochastic" in policy.base.master_weight:
        return [
            f"{stored} weights did not move in {percent(share)} of the updates; stochastic rounding makes up for "
            "these on average."
        ]
    return [f"{stored} weights lost {percent(share)} of the updates."]


def lost_update_findings(policy: Policy, book: Book) -> list[Finding]:
    """One, on weights in a format that loses more than a few of the updates."""
    share = book.lost_updates / book.nonzero_updates if book.nonzero_updates else 0.0
    if share < _LOST or "stochastic" in policy.base.master_weight:
        return []
    why = _updates(policy, book)[0].removesuffix(".")
    return [Finding("lost updates", "keep an FP32 master copy", why, "counted over all emulated updates")]


def _stalled(found: StalledWeights) -> str:
    """A line on weights in 16 bits that their updates did not move."""
    if not found.with_gradient:
        return ""
    share = found.unmoved / found.with_gradient
    advice = ": keep an FP32 master copy" if share >= 0.01 else ""
    return (
        f"{label(found.format)} weights: {found.unmoved} of {found.with_gradient} with a gradient did not move "
        f"({percent(share)}){advice}."
    )
