"""Weights that are not finite after an update whose gradients are: the optimizer's state or eps in the format."""

from __future__ import annotations

from dataclasses import replace

from halfscope.torch.diagnose.silent.silent import Silent, Steps
from halfscope.torch.findings.finding import Finding
from halfscope.torch.findings.sentences import update_finding


def _look(steps: Steps) -> list[list[str]]:
    names = [name for name in steps.outcome.bad_weights if name not in steps.exact.bad_weights]
    return [names] if names and not steps.outcome.bad_gradients else []


def _trial(steps: Steps, _names: list[str]) -> str:
    again = steps.session.run_with_fp32_state() if steps.session.narrow_state is not None else None
    if again is None:
        return "seen after the step; not tried"
    return "not sure: tried, no better" if again.bad_weights else "tried, FP32 state and weights: they are finite"


def _words(steps: Steps, names: list[str], sure: str) -> Finding:
    found = update_finding(names, steps.session.trainee.optimizers, steps.session.narrow_state, sure)
    change = "keep weights and the optimizer's state in FP32"
    return replace(found, change=change, why=f"{found.change}. {found.why}".rstrip())


BROKEN_WEIGHTS = Silent("weights", _look, _trial, _words)
