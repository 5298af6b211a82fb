"""Buffers that are not finite after a step: a scaler that skips the update does not skip theirs."""

from __future__ import annotations

from halfscope.torch.diagnose.silent.silent import Silent, Steps, seen_alone
from halfscope.torch.findings.finding import Finding


def _look(steps: Steps) -> list[list[str]]:
    names = [name for name in steps.outcome.bad_buffers if name not in steps.exact.bad_buffers]
    return [names] if names else []


def _words(_steps: Steps, names: list[str], sure: str) -> Finding:
    return Finding(
        "buffer",
        f"reset {names[0].rpartition('.')[0]}.reset_running_stats(), or load it from before the step; then remove "
        "the overflow above: skipping the step does not protect buffers",
        f"{', '.join(names[:4])} {'is' if len(names) == 1 else 'are'} infinite or NaN after this step. The scaler "
        "skips the update of the weights, not that of the buffers, and an average never forgets an infinity: "
        "evaluation stays NaN.",
        sure,
        names,
    )


BROKEN_BUFFERS = Silent("buffer", _look, seen_alone("seen after the step"), _words)
