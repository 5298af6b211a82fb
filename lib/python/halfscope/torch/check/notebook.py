"""Notes of a check: findings by rank, what was looked at, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from halfscope.reporting import Finding, Report
from halfscope.torch.check.merged_findings import merged

_UNSEEN = "Not known: the step in the format could not be looked at; nothing else was found."


@dataclass(frozen=True, eq=False, repr=False)
class CheckReport(Report):
    """Result of `check`. is_whole: whether it has a finding, or the step in the format was looked at."""

    is_whole: bool = True


class Rank(IntEnum):
    """Order in which findings are told."""

    STATE = 0
    ERROR = 1
    FAULT = 2  # with a remedy that was tried, or of FP32 itself
    SCALE = 3
    UNHEALED = 4
    UPDATES = 5
    CONSTANT = 6


@dataclass
class Notebook:
    """looked, unseen: what was looked at, and what was not, by the name of the part."""

    findings: list[tuple[Rank, Finding]] = field(default_factory=list)
    looked: list[tuple[str, str]] = field(default_factory=list)
    unseen: list[tuple[str, str]] = field(default_factory=list)

    def part(self, name: str, look: Callable[[], None]) -> bool:
        """Makes a look; one that ends with an error hides nothing that is known. Whether it came to its end."""
        try:
            look()
        except Exception as error:
            words = " ".join(str(error).split())[:200]
            self.unseen.append((name, f"{type(error).__name__}{f': {words}' if words else ''}"))
            return False
        return True

    def add(self, rank: Rank, findings: Iterable[Finding]) -> None:
        self.findings += [(rank, finding) for finding in findings]

    def report(self, healthy: str) -> CheckReport:
        """healthy: the words behind "Nothing to change: "; empty where the step in the format was not looked at."""
        ranked = [finding for _, finding in sorted(self.findings, key=lambda entry: entry[0])]
        found = merged(ranked)
        lines = []
        for head, parts in (("Looked at:", self.looked), ("Not looked at:", self.unseen)):
            lines += [head, *(f"  {name}: {text}" for name, text in parts)] if parts else []
        text = "" if found else f"Nothing to change: {healthy}" if healthy else _UNSEEN
        return CheckReport("check", tuple(found), "\n".join(lines), text, is_whole=bool(healthy or found))
