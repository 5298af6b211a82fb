"""Gradients that are 0 in the format and not in FP32, for want of a loss scale."""

from __future__ import annotations

from halfscope.torch.diagnose.session import Outcome
from halfscope.torch.diagnose.silent.silent import Silent, Steps
from halfscope.torch.findings.finding import Finding

_SCALES_LOG2 = (8, 12, 16, 20, 24)  # that are tried, up to the first that is enough
_FLUSHED = 0.05  # share of the elements of weight gradients


def _look(steps: Steps) -> list[tuple[int, int]]:
    """Elements that are lost, and those that are not 0 in FP32."""
    session = steps.session
    if session.scale != 1 or session.trainee.scaler is not None or session.format.has_range_of_fp32:
        return []
    lost, nonzero = _flushed(steps.outcome, steps.exact)
    return [] if not nonzero or lost / nonzero < _FLUSHED else [(lost, nonzero)]


def _trial(steps: Steps, seen: tuple[int, int]) -> tuple[int, int] | None:
    """The first loss scale that is enough, as a power of two, and elements that it leaves 0."""
    for scale_log2 in _SCALES_LOG2:
        steps.session.scale = 2.0**scale_log2
        try:
            again = steps.session.run()
        finally:
            steps.session.scale = 1.0
        after, _ = _flushed(again, steps.exact)
        if again.bad_gradients:
            break
        if after < 0.01 * seen[1]:
            return scale_log2, after
    return None


def _flushed(outcome: Outcome, exact: Outcome) -> tuple[int, int]:
    lost = nonzero = 0
    for name, gradient in exact.gradients.items():
        if name in outcome.gradients and gradient.shape == outcome.gradients[name].shape:
            nonzero += int((gradient != 0).sum())
            lost += int(((gradient != 0) & (outcome.gradients[name] == 0)).sum())
    return lost, nonzero


def _words(steps: Steps, seen: tuple[int, int], tried: tuple[int, int]) -> Finding:
    (lost, nonzero), (scale_log2, after) = seen, tried
    return Finding(
        "flushed gradients",
        f"scale the loss: scaler = torch.amp.GradScaler(init_scale=2.0**{scale_log2}); scaler.scale(loss).backward(); "
        "scaler.step(optimizer); scaler.update()",
        f"without a loss scale {lost} of {nonzero} elements of the weight gradients ({100 * lost / nonzero:.1f} "
        f"%) are 0 in {steps.session.format.label}, and are not in FP32.",
        f"tried, and {after} of {nonzero} are 0",
        "gradients",
    )


FLUSHED_GRADIENTS = Silent("flushed gradients", _look, _trial, _words)
