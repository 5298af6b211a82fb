"""Findings as a person reads them: one for a line of source, at most three of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace

from halfscope.reporting import Finding
from halfscope.torch.words import listed

_MOST = 3  # findings of a kind


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each line, change without a line and kind, in the order of the first of each."""
    lines = _joined(findings, _line)
    return _shortened(_joined(lines, _change))


def _line(finding: Finding) -> Hashable:
    place = finding.place
    return finding if place is None or place.line is None else (place.file, place.line)


def _change(finding: Finding) -> Hashable:
    """Its first words: settings of one optimizer ask for the same."""
    return finding if finding.place is not None else (finding.kind == "state before", finding.change.partition(";")[0])


def _joined(findings: Iterable[Finding], key: Callable[[Finding], Hashable]) -> list[Finding]:
    groups: dict[Hashable, list[Finding]] = defaultdict(list)
    for finding in findings:
        name = key(finding)
        groups[id(finding) if name is finding else name].append(finding)
    return [_one(group) for group in groups.values()]


def _one(group: list[Finding]) -> Finding:
    """The first, with the changes and the reasons of the others."""
    changes = _distinct(finding.change for finding in group)
    whys = _distinct(finding.why.rstrip(".") for finding in group)
    if len(group) == 1:
        return group[0]
    change = (
        changes[0] if all(text.startswith(changes[0].partition(";")[0]) for text in changes) else "; and ".join(changes)
    )
    left = len(whys) - _MOST
    why = "; ".join([*whys[:_MOST], *([f"{left} more of the same kind"] if left > 0 else [])])
    return replace(group[0], change=change, why=why, sure="; ".join(_distinct(finding.sure for finding in group)))


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))


def _shortened(findings: list[Finding]) -> list[Finding]:
    """Three of a kind, and one that counts the rest of it."""
    kinds: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        kinds[finding.kind].append(finding)
    rest = {kind: several[_MOST:] for kind, several in kinds.items()}
    left_out = {id(finding) for several in rest.values() for finding in several[1:]}
    return [
        _counted(rest[finding.kind]) if rest[finding.kind] and finding is rest[finding.kind][0] else finding
        for finding in findings
        if id(finding) not in left_out
    ]


def _counted(rest: list[Finding]) -> Finding:
    names = [str(finding.place or _name(finding)) for finding in rest]
    return Finding(rest[0].kind, f"{len(rest)} more of the same kind", listed(filter(None, names)), rest[0].sure)


def _name(finding: Finding) -> str:
    return finding.about if isinstance(finding.about, str) else str(getattr(finding.about, "name", ""))
