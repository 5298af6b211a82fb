"""A finding on a step in which every number is finite, or on what a step leaves behind: look, trial and words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from halfscope.torch.diagnose.recorder import Recorder
from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.findings.finding import Finding

_SITE = re.compile(r"^\S+:\d+, ")  # which a finding with a place shows in front
UNTRIED = "seen in the step; not tried, since the weights have 16 bits themselves"


@dataclass(frozen=True)
class Steps:
    """A step in the format and in FP32, and the session that computes it again."""

    session: Session
    outcome: Outcome
    exact: Outcome

    @property
    def recorder(self) -> Recorder:
        return recorder_of(self.outcome)


def recorder_of(outcome: Outcome) -> Recorder:
    """Notes on a step in the format."""
    assert outcome.recorder is not None
    return outcome.recorder


def seen_alone(sure: str) -> Callable[[Steps, Any], str]:
    """A trial of what needs none."""
    return lambda _steps, _seen: sure


@dataclass(frozen=True)
class Silent:
    """A line of the table.

    look: what is worth a finding. trial: how sure that is, for the words; None where it shows that there is nothing.
    """

    kind: str
    look: Callable[[Steps], Iterable[Any]]
    trial: Callable[[Steps, Any], Any]
    words: Callable[[Steps, Any, Any], Finding]
    unless: str = ""  # kind of a finding before it that tells of the same numbers


def findings_of(table: Iterable[Silent], steps: Steps) -> list[Finding]:
    """Findings in the order of the table."""
    findings: list[Finding] = []
    for line in table:
        if line.unless and any(finding.kind == line.unless for finding in findings):
            continue
        for seen in line.look(steps):
            tried = line.trial(steps, seen)
            if tried is not None:
                findings.append(_told(line.words(steps, seen, tried)))
    return findings


def seen_of(table: Iterable[Silent], steps: Steps) -> list[str]:
    """Causes alone, without a trial."""
    found: dict[str, list[str]] = {}
    for line in table:
        if line.unless not in found:
            texts = [line.words(steps, seen, "").why for seen in line.look(steps)]
            found |= {line.kind: texts} if texts else {}
    return [text for texts in found.values() for text in texts]


def _told(finding: Finding) -> Finding:
    """The finding with its cause in place of a change that was not tried or did not help."""
    if finding.sure.startswith("tried"):
        return finding
    cause = finding.why.removesuffix(".")
    return replace(finding, change=cause if finding.place is None else _SITE.sub("", cause), why="")
