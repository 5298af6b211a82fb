"""Weight gradients that overflow when they are stored, though nothing before them does."""

from __future__ import annotations

from halfscope.torch.diagnose.silent.silent import Silent, Steps, seen_alone
from halfscope.torch.findings.finding import Finding, digits


def _look(steps: Steps) -> list[dict[str, float]]:
    """The largest of each gradient, by parameter."""
    assert steps.outcome.emulation is not None
    if steps.recorder.faults:
        return []
    casts = steps.outcome.emulation.casts()
    found = {name: casts.get(("weight_gradient", name)) for name in steps.outcome.bad_gradients}
    sizes = {name: cast.max_abs for name, cast in found.items() if cast is not None and cast.overflow}
    return [sizes] if sizes else []


def _words(steps: Steps, sizes: dict[str, float], sure: str) -> Finding:
    session = steps.session
    name = max(sizes, key=lambda each: sizes[each])
    format = session.format
    scaled = f" at a loss scale of {session.scale:g}" if session.scale != 1 else ""
    return Finding(
        "weight gradient",
        "make the loss smaller: a mean instead of a sum, a smaller loss scale, or gradients stored in FP32",
        f"the gradient of {name} overflows{scaled}: {digits(sizes[name])}, {sizes[name] / format.largest:.2g} "
        f"times {format.label}'s largest number {format.largest:g}; {len(sizes)} of {len(steps.exact.gradients)} "
        "weight gradients do.",
        sure,
        name,
    )


OVERFLOWED_GRADIENTS = Silent("weight gradient", _look, seen_alone("seen in the step; not tried"), _words)
