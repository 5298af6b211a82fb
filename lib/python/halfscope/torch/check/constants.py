"""Findings of the lint that a step has not refuted."""

from __future__ import annotations

from dataclasses import dataclass

from halfscope.reporting import Finding
from halfscope.torch.check.subject import Subject
from halfscope.torch.lint.lint import Lint, lint

# Kinds of numbers that a step meets in its forward pass or never: a step that is right shows that they do no harm.
_MET = ("factor", "epsilon", "epsilon_gradient", "power", "buffer", "constant")
# Kinds that other parts of a check count in the step itself.
_COUNTED = ("update",)


@dataclass(frozen=True)
class Constants:
    """left: findings that stay. refuted: numbers that did no harm in the step."""

    left: list[Finding]
    refuted: list[Finding]
    about: str


def constants(subject: Subject, *, is_right: bool, has_updates: bool) -> Constants:
    """is_right: the step in the format was FP32's. has_updates: its updates were counted."""
    found: Lint = lint(subject.model, subject.lint_optimizers, subject.lint_format)
    told = [each for each in found.findings if not (each.kind in _COUNTED and has_updates)]
    told = [each for each in told if not (each.kind == "factor" and each.about.name.startswith("the largest of "))]
    left = [each for each in told if not (is_right and each.kind in _MET)]
    return Constants(left, [each for each in told if each not in left], found.about)
