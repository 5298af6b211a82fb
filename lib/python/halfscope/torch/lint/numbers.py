"""Numbers that a format loses: what becomes of them, by the rules that the simulator's lint has too."""

from __future__ import annotations

from dataclasses import dataclass

from halfscope import _core
from halfscope.formats import Format
from halfscope.reporting import Place
from halfscope.torch.findings.finding import Finding


@dataclass(frozen=True)
class Number:
    """name: the module's, or the optimizer's, with the attribute; first: when it hurts, such as "step 1"."""

    name: str
    value: float
    stored: float
    format: str
    first: str


@dataclass(frozen=True)
class CheckedNumber:
    """A number that a rule is asked about. change: what to type; sure: how it was found."""

    kind: str  # a kind of _core.lost_constant
    name: str
    value: float
    first: str
    change: str  # may have {limit} in it, a value that survives
    sure: str
    place: Place | None = None  # the line of source that has the number


def check(asked: CheckedNumber, format: Format) -> list[Finding]:
    """A finding where the format loses the number."""
    lost = _core.lost_constant(asked.kind, asked.value, format.name)
    if lost is None:
        return []
    stored, then = lost["rounded"], f"{lost['consequence']}, from {asked.first} on"
    text = f"{asked.name} = {asked.value:g} is {stored:.6g} in {format.label}: {then}."
    limit = shortest_text(lost["limit"], format)
    return [finding(asked, text, Number(asked.name, asked.value, stored, format.name, asked.first), limit)]


def shortest_text(limit: float, format: Format) -> str:
    """`limit` in as few digits, 3 or more, as name the same number of the format: 0.9995 in FP16, not 1."""
    texts = (f"{limit:.{digits}g}" for digits in range(3, 17))
    return next((text for text in texts if format.round(float(text)) == format.round(limit)), repr(limit))


def finding(asked: CheckedNumber, why: str, number: Number, limit: str = "") -> Finding:
    change = asked.change.replace("{limit}", limit)
    return Finding(asked.kind, change, why, asked.sure, number, place=asked.place)
