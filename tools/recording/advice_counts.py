"""Counts of the advisor's evidence within sentences and in advisor.hpp: tasks and trainings judged rightly."""

from __future__ import annotations

import re
from pathlib import Path

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU
from recording.advice_rules import advised, below, best_constant, best_to_type, constant, right_by_task, right_of_all
from recording.advice_tasks import NARROW, WIDE, read_tasks

HEADER = "lib/halfscope/scaling/advisor.hpp"
CONSTANTS = {WIDE: "judged_in_fp16", NARROW: "judged_in_narrow_windows"}
PARTS = {"fitted": ["advisor"], "held-out": ["advisor_held_out"], "all": ["advisor", "advisor_held_out"]}


def tasks(folder: Path, experiment: str, part: str = "all") -> str:
    """How many there are, of which `fitted` were in sight when the rule was chosen and `held-out` were not.

    folder, here and below: experiments/recorded.
    """
    found = read_tasks(folder, experiment)
    return str(sum(part == "all" or task.is_held_out == (part == "held-out") for task in found))


def tasks_right(folder: Path, experiment: str, scale: str = "advised") -> str:
    """Tasks that the advised scale does no harm to, or a constant one, or the `best` constant."""
    found = read_tasks(folder, experiment)
    constants = {"advised": advised, "best": constant(best_to_type(found))}
    rule = constants.get(scale) or constant(int(scale).bit_length() - 1)
    return str(sum(right_by_task(found, rule)))


def trainings_right(folder: Path, experiment: str, part: str) -> str:
    """'485 of 504': trainings of which the recorded window tells rightly whether they are harmed."""
    harm = read_json(folder / CPU / experiment / "summary.json")["harm"]
    right, total = (sum(harm[name][key] for name in PARTS[part]) for key in ("right", "total"))
    return f"{right} of {total}"


def trainings_right_constant(folder: Path, experiment: str) -> str:
    """Trainings that the best limit, a constant scale, tells rightly."""
    found = read_tasks(folder, experiment)
    return str(right_of_all(found, below(best_constant(found))))


def refreshed_header(text: str, folder: Path) -> str:
    """advisor.hpp with the counts of the records."""
    for experiment, name in CONSTANTS.items():
        counts = [tasks(folder, experiment), *(tasks_right(folder, experiment, s) for s in ("advised", "1024", "best"))]
        pattern = re.compile(rf"(?<=JudgedTasks {name}\{{)[^}}]*(?=\}})")
        if not pattern.search(text):
            raise ValueError(f"{HEADER}: no constant '{name}'")
        text = pattern.sub(", ".join(counts), text)
    return text
