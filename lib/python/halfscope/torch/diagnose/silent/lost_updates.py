"""Findings on gradients that are 0 in the format, and on updates that do not move a weight."""

from __future__ import annotations

from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.findings.finding import Finding

_SCALES_LOG2 = (8, 12, 16, 20, 24)  # that are tried, up to the first that is enough
_FLUSHED = 0.05  # share of the elements of weight gradients


def flushed_gradients(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    if session.scale != 1 or session.trainee.scaler is not None or session.format.has_range_of_fp32:
        return []
    lost, nonzero = _flushed(outcome, exact)
    if not nonzero or lost / nonzero < _FLUSHED:
        return []
    for scale_log2 in _SCALES_LOG2:
        session.scale = 2.0**scale_log2
        try:
            again = session.run()
        finally:
            session.scale = 1.0
        after, _ = _flushed(again, exact)
        if again.bad_gradients:
            break
        if after < 0.01 * nonzero:
            return [_scale_finding(session, (lost, after, nonzero), scale_log2)]
    return []


def _scale_finding(session: Session, counts: tuple[int, int, int], scale_log2: int) -> Finding:
    lost, after, nonzero = counts
    return Finding(
        "flushed gradients",
        f"scale the loss: scaler = torch.amp.GradScaler(init_scale=2.0**{scale_log2}); scaler.scale(loss).backward(); "
        "scaler.step(optimizer); scaler.update()",
        f"without a loss scale {lost} of {nonzero} elements of the weight gradients ({100 * lost / nonzero:.1f} "
        "%) are 0 in "
        f"{session.format.label}, and are not in FP32.",
        f"tried, and {after} of {nonzero} are 0",
        "gradients",
        "loss scale",
    )


def _flushed(outcome: Outcome, exact: Outcome) -> tuple[int, int]:
    lost = nonzero = 0
    for name, gradient in exact.gradients.items():
        if name in outcome.gradients and gradient.shape == outcome.gradients[name].shape:
            nonzero += int((gradient != 0).sum())
            lost += int(((gradient != 0) & (outcome.gradients[name] == 0)).sum())
    return lost, nonzero


def lost_updates(session: Session, outcome: Outcome, _: Outcome) -> list[Finding]:
    """Weights without an FP32 copy that an update does not move."""
    assert outcome.emulation is not None
    found = outcome.emulation._found
    stalled = list(found.totals.stalled.values())
    unmoved, moving = sum(each.unmoved for each in stalled), sum(each.with_gradient for each in stalled)
    if found.book.nonzero_updates:
        unmoved, moving = unmoved + found.book.lost_updates, moving + found.book.nonzero_updates
    if not moving or unmoved / moving < _FLUSHED:
        return []
    rates = {group["lr"] for optimizer in session.trainee.optimizers for group in optimizer.param_groups}
    half = 2.0**-session.format.precision
    return [
        Finding(
            "updates",
            "keep an FP32 master copy of the weights: model.float() under autocast; else stochastic rounding, or "
            "Kahan sums",
            f"{unmoved} of {moving} weights with a gradient ({100 * unmoved / moving:.1f} %) did not move in this "
            "step: an "
            f"update below half a step of {session.format.label}, {half:.3g} of a weight of 1, is lost; learning rate "
            f"{', '.join(f'{rate:g}' for rate in sorted(rates))}.",
            "counted over the step; no remedy was tried",
            "updates",
            "master copy",
        )
    ]
