"""Tables of the advisor beside simpler rules: which scales do harm, and which scale to type.

They are made from the record of advice-validity. A task counts once, however many scales and seeds it was trained with;
intervals are over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU
from recording.text_tables import aligned

EXPERIMENT = "advice-validity"
# Student's t of 95 % by degrees of freedom, from 1 on.
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
)  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One network under one optimizer: its trainings at constant scales, and what one FP32 run advises."""

    name: str
    enough_from: int
    use: int
    overflow_beyond: int
    trainings: tuple[tuple[int, bool], ...]  # log2 of the scale, and whether it did harm or diverged

    def share_right(self, harms: Harms) -> float:
        return mean(harms(self, scale) == harmed for scale, harmed in self.trainings)

    def trained_below(self, scale: int) -> int:
        """The largest scale that was trained and is not above `scale`; the smallest, where all are above."""
        scales = {own for own, _ in self.trainings}
        return max((own for own in scales if own <= scale), default=min(scales))

    def harmed_at(self, scale: int) -> bool:
        """Whether most seeds were harmed at the scale that was trained there or next below it."""
        nearest = self.trained_below(scale)
        return mean(harmed for own, harmed in self.trainings if own == nearest) > 0.5


Harms = Callable[[Task, int], bool]
Chooses = Callable[[Task], int]


def read_tasks(folder: Path) -> list[Task]:
    """folder: experiments/recorded."""
    harm = read_json(folder / CPU / EXPERIMENT / "summary.json")["harm"]
    return [
        Task(
            advice["task"],
            advice["enough_from_log2"],
            advice["use_log2"],
            advice["overflow_beyond_log2"],
            tuple(
                (line["scale_log2"], line["harmed"] or line["loss_ratio"] is None)
                for line in harm["trainings"]
                if line["task"] == advice["task"]
            ),
        )
        for advice in harm["advice"]
    ]


def ours(task: Task, scale: int) -> bool:
    return not task.enough_from <= scale <= task.overflow_beyond


def below(limit: int) -> Harms:
    return lambda _, scale: scale < limit


def right_of_all(tasks: list[Task], harms: Harms) -> int:
    return sum(harms(task, scale) == harmed for task in tasks for scale, harmed in task.trainings)


def best_constant(tasks: list[Task]) -> int:
    """Log2 of the scale below which alone harm is told rightly most often, chosen on these trainings themselves."""
    scales = sorted({scale for task in tasks for scale, _ in task.trainings})
    return max(scales, key=lambda limit: right_of_all(tasks, below(limit)))


def interval(values: Iterable[float], digits: int, unit: float = 1) -> str:
    """The mean over tasks with its 95 % interval."""
    scaled = [unit * value for value in values]
    half = T_95[len(scaled) - 2] * stdev(scaled) / len(scaled) ** 0.5
    middle = mean(scaled)
    return f"{middle:.{digits}f} ({middle - half:.{digits}f} .. {middle + half:.{digits}f})"


def harm_table(tasks: list[Task]) -> str:
    """How many trainings each rule judges rightly, and how much better ours does."""
    limit = best_constant(tasks)
    rules: dict[str, Harms] = {
        "the advisor's window": ours,
        f"harm below 2^{limit}, the best constant": below(limit),
        "harm below 2^10": below(10),
        "no scale does harm": below(-99),
    }
    total = sum(len(task.trainings) for task in tasks)
    rows = [("which scales do harm", "right", "% right by task", "the advisor is better by")]
    for name, rule in rules.items():
        shares = [task.share_right(rule) for task in tasks]
        gains = [task.share_right(ours) - share for task, share in zip(tasks, shares)]
        gain = "-" if rule is ours else interval(gains, 1, 100)
        rows.append((name, f"{right_of_all(tasks, rule)} of {total}", interval(shares, 1, 100), gain))
    return aligned(rows)


def choice_table(tasks: list[Task]) -> str:
    """The scale that each rule types, the tasks that it harms, and its distance to both ends of the window."""
    rules: dict[str, Chooses] = {
        "the advisor's scale": lambda task: task.use,
        "1024": lambda task: 10,
        "2^16, as dynamic scaling begins": lambda task: 16,
        "1, no scaling": lambda task: 0,
        "largest / 16": lambda task: task.overflow_beyond - 4,
        "largest power without overflow": lambda task: task.overflow_beyond,
    }
    rows = [("scale to type", "scales", "harms", "trained there", "binades above the least", "below overflow")]
    for name, rule in rules.items():
        scales = [rule(task) for task in tasks]
        harmed = sum(task.harmed_at(scale) for task, scale in zip(tasks, scales))
        trained = sum(scale - task.trained_below(scale) < 2 for task, scale in zip(tasks, scales))
        above = [scale - least_unharmed(task) for task, scale in zip(tasks, scales)]
        room = [task.overflow_beyond - scale for task, scale in zip(tasks, scales)]
        shown = f"2^{min(scales)} .. 2^{max(scales)}" if min(scales) < max(scales) else f"2^{scales[0]}"
        count = len(tasks)
        rows.append(
            (name, shown, f"{harmed} of {count}", f"{trained} of {count}", interval(above, 1), interval(room, 1))
        )
    return aligned(rows)


def least_unharmed(task: Task) -> int:
    return min(scale for scale, _ in task.trainings if not task.harmed_at(scale))


def advice_rules(folder: Path) -> str:
    tasks = read_tasks(folder)
    return f"{harm_table(tasks)}\n\n{choice_table(tasks)}"
