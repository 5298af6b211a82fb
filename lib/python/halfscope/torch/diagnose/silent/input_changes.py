"""Words on what the cast to a format changes in an input or a buffer."""

from __future__ import annotations

from halfscope.formats import Format
from halfscope.torch.diagnose.recorder import InputChange
from halfscope.torch.findings.finding import digits


def words_of(change: InputChange, format: Format) -> str:
    text = f"{change.name.removesuffix('.input')}: {change.elements} values, {change.changed} changed by the cast to "
    text += f"{format.label}, by up to {digits(change.largest_change)}"
    if change.distinct < change.distinct_before:
        text += f", {change.distinct_before} different ones become {change.distinct}"
    return f"{text} ({', '.join(examples_of(change))})"


def examples_of(change: InputChange) -> list[str]:
    """ "257 is 256"."""
    return [f"{before:g} is {after:g}" for before, after in zip(change.exact, change.stored)]
