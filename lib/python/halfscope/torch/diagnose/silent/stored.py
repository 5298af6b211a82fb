"""Findings on what a step leaves behind: buffers and weights that are not finite, and the optimizer's eps."""

from __future__ import annotations

from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.findings.finding import Finding, digits
from halfscope.torch.findings.sentences import update_finding


def stored_findings(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    return [*_gradients(session, outcome, exact), *_buffers(outcome, exact), *_weights(session, outcome, exact)]


def _gradients(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    """Weight gradients that overflow when they are stored, though nothing before them does."""
    assert outcome.emulation is not None and outcome.recorder is not None
    if outcome.recorder.faults:
        return []
    casts = outcome.emulation.casts()
    found = {name: casts.get(("weight_gradient", name)) for name in outcome.bad_gradients}
    sizes = {name: cast.max_abs for name, cast in found.items() if cast is not None and cast.overflow}
    if not sizes:
        return []
    name = max(sizes, key=lambda each: sizes[each])
    format = session.format
    scaled = f" at a loss scale of {session.scale:g}" if session.scale != 1 else ""
    return [
        Finding(
            "weight gradient",
            "make the loss smaller: a mean instead of a sum, a smaller loss scale, or gradients stored in FP32",
            f"the gradient of {name} overflows{scaled}: {digits(sizes[name])}, {sizes[name] / format.largest:.2g} "
            f"times {format.label}'s largest number {format.largest:g}; {len(sizes)} of {len(exact.gradients)} weight "
            "gradients do.",
            "seen in the step; not tried",
            name,
            "smaller loss",
        )
    ]


def _buffers(outcome: Outcome, exact: Outcome) -> list[Finding]:
    names = [name for name in outcome.bad_buffers if name not in exact.bad_buffers]
    if not names:
        return []
    return [
        Finding(
            "buffer",
            f"reset {names[0].rpartition('.')[0]}.reset_running_stats(), or load it from before the step; then "
            "remove the "
            "overflow above: skipping the step does not protect buffers",
            f"{', '.join(names[:4])} {'is' if len(names) == 1 else 'are'} infinite or NaN after this step. The "
            "scaler skips "
            "the update of the weights, not that of the buffers, and an average never forgets an infinity: "
            "evaluation stays "
            "NaN.",
            "seen after the step",
            names,
            "buffers",
        )
    ]


def _weights(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    names = [name for name in outcome.bad_weights if name not in exact.bad_weights]
    if not names or outcome.bad_gradients:
        return []
    again = session.run_with_fp32_state() if session.narrow_state is not None else None
    tried = "seen after the step; not tried"
    if again is not None:
        tried = "tried, FP32 state and weights: they are finite"
        tried = "not sure: tried, no better" if again.bad_weights else tried
    return [update_finding(names, session.trainee.optimizers, session.narrow_state, tried)]
