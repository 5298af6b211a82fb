"""Generated values within a sentence of a page, between comments that Markdown does not show.

    It takes <!-- value: minutes test -->7.6<!-- end --> minutes.

The words are a kind of value and its arguments, in quotes where they have spaces. A line may not begin with a value:
Markdown takes such a line for HTML.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from recording import record_values as record
from recording.advice_counts import tasks, tasks_right, trainings_right, trainings_right_constant
from recording.gradient_shares import below
from recording.measured import machines_of, times_of

END = "<!-- end -->"
VALUE = re.compile(r"<!-- value: (?P<words>[^\n]+?) -->(?P<text>[^\n]*?)" + re.escape(END))
OPENING = "<!-- value:"

# folder: experiments/recorded.
VALUE_KINDS: dict[str, Callable[..., str]] = {
    "behind": record.behind,
    "below": below,
    "cell": record.cell,
    "changes": record.changes,
    "error": record.error,
    "finding": record.finding,
    "judged-of": record.judged_of,
    "machines": machines_of,
    "minutes": lambda folder, command: times_of(folder, command).minutes,
    "missed": record.missed,
    "missed-between": record.missed_between,
    "noted": record.noted,
    "points-within": record.points_within,
    "ratio": record.ratio,
    "ratios": record.ratios,
    "seeds-differ": record.seeds_differ,
    "tasks": tasks,
    "tasks-right": tasks_right,
    "trainings-right": trainings_right,
    "trainings-right-constant": trainings_right_constant,
    "within": record.within,
}
COUNT = "count"  # needs the program


def count(program: Path, kind: str) -> str:
    """How many entries `halfscope list KIND` has."""
    done = subprocess.run([program, "list", kind, "--json"], capture_output=True, text=True, check=True)
    (entries,) = json.loads(done.stdout).values()
    return str(len(entries))


def value(words: str, folder: Path, program: Path | None = None) -> str:
    """The text that `words`, a kind and its arguments, asks for.

    folder: experiments/recorded. program: halfscope.
    """
    kind, *arguments = shlex.split(words)
    if kind == COUNT:
        assert program is not None
        return count(program, *arguments)
    make = VALUE_KINDS.get(kind)
    if make is None:
        raise ValueError(f"no value is a '{kind}'; one of {', '.join((COUNT, *VALUE_KINDS))}")
    try:
        return make(folder, *arguments)
    except TypeError as problem:
        raise ValueError(f"value '{words}': {problem}") from None


def without_marks(text: str) -> str:
    """`text` as a reader sees it."""
    return VALUE.sub(lambda match: match["text"], text)


def refreshed_values(text: str, folder: Path, program: Path | None = None) -> str:
    """`text` with its values written anew; without the program counts of its tables stay.

    folder: experiments/recorded. Raises ValueError for a value without its end, and for one that begins a line.
    """
    if text.count(OPENING) != len(VALUE.findall(text)):
        raise ValueError(f"a value lacks its '{END}' on the same line")
    if re.search(rf"^ *{OPENING}", text, re.MULTILINE):
        raise ValueError("a line begins with a value, which Markdown takes for HTML")

    def new(match: re.Match[str]) -> str:
        words = match["words"]
        if program is None and words.split()[0] == COUNT:
            return match[0]
        return f"<!-- value: {words} -->{value(words, folder, program)}{END}"

    return VALUE.sub(new, text)
