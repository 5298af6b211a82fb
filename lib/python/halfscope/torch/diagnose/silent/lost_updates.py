"""Updates that do not move a weight, for want of an FP32 copy."""

from __future__ import annotations

from halfscope.torch.diagnose.silent.silent import Silent, Steps, seen_alone
from halfscope.torch.findings.finding import Finding

_LOST = 0.05  # share of the weights with a gradient


def _look(steps: Steps) -> list[tuple[int, int]]:
    """Weights that did not move, and weights with a gradient."""
    assert steps.outcome.emulation is not None
    found = steps.outcome.emulation._found
    stalled = list(found.totals.stalled.values())
    unmoved, moving = sum(each.unmoved for each in stalled), sum(each.with_gradient for each in stalled)
    if found.book.nonzero_updates:
        unmoved, moving = unmoved + found.book.lost_updates, moving + found.book.nonzero_updates
    return [] if not moving or unmoved / moving < _LOST else [(unmoved, moving)]


def _words(steps: Steps, seen: tuple[int, int], sure: str) -> Finding:
    unmoved, moving = seen
    format = steps.session.format
    rates = {group["lr"] for optimizer in steps.session.trainee.optimizers for group in optimizer.param_groups}
    half = 2.0**-format.precision
    return Finding(
        "updates",
        "keep an FP32 master copy of the weights: model.float() under autocast; else stochastic rounding, or "
        "Kahan sums",
        f"{unmoved} of {moving} weights with a gradient ({100 * unmoved / moving:.1f} %) did not move in this step: an "
        f"update below half a step of {format.label}, {half:.3g} of a weight of 1, is lost; learning rate "
        f"{', '.join(f'{rate:g}' for rate in sorted(rates))}.",
        sure,
        "updates",
    )


LOST_UPDATES = Silent("updates", _look, seen_alone("counted over the step; no remedy was tried"), _words)
