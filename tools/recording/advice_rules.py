"""Tables of the advisor beside simpler rules: which scales do harm, and which scale to type.

They are made from the records of advice-validity and narrow-windows. A task counts once, however many scales and seeds
it was trained with; intervals are over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean

from halfscope.text_tables import aligned
from recording.advice_tasks import NARROW, Task, read_tasks
from recording.student import half_interval

Z_95 = 1.96  # standard deviations of a normal distribution

Harms = Callable[[Task, int], bool]
Chooses = Callable[[Task], int]


def ours(task: Task, scale: int) -> bool:
    return not task.enough_from <= scale <= task.overflow_beyond


def below(limit: int) -> Harms:
    return lambda _, scale: scale < limit


def share_right(task: Task, harms: Harms) -> float:
    return mean(harms(task, scale) == harmed for scale, harmed in task.trainings)


def right_of_all(tasks: list[Task], harms: Harms) -> int:
    return sum(harms(task, scale) == harmed for task in tasks for scale, harmed in task.trainings)


def best_constant(tasks: list[Task]) -> int:
    """Log2 of the scale below which alone harm is told rightly most often, chosen on these trainings themselves."""
    scales = sorted({scale for task in tasks for scale in task.scales})
    return max(scales, key=lambda limit: right_of_all(tasks, below(limit)))


def interval(values: Iterable[float], digits: int, unit: float = 1) -> str:
    """The mean over tasks with its 95 % interval."""
    scaled = [unit * value for value in values]
    half, middle = half_interval(scaled), mean(scaled)
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
        shares = [share_right(task, rule) for task in tasks]
        gains = [share_right(task, ours) - share for task, share in zip(tasks, shares)]
        gain = "-" if rule is ours else interval(gains, 1, 100)
        rows.append((name, f"{right_of_all(tasks, rule)} of {total}", interval(shares, 1, 100), gain))
    return aligned(rows)


def advised(task: Task) -> int:
    return task.use


def constant(scale: int) -> Chooses:
    return lambda _: scale


def choices(tasks: list[Task]) -> dict[str, Chooses]:
    """Rules that name a scale to type, the best constant among them."""
    best = best_to_type(tasks)
    return {
        "the advisor's scale": advised,
        f"2^{best}, the best constant": constant(best),
        "1024": constant(10),
        "2^16": constant(16),
        "1, no scaling": constant(0),
        "largest / 16": lambda task: task.overflow_beyond - 4,
        "largest power without overflow": lambda task: task.overflow_beyond,
        "half of it": lambda task: task.overflow_beyond - 1,
    }


def right_by_task(tasks: list[Task], chooses: Chooses) -> list[bool]:
    return [not task.harmed_at(chooses(task)) for task in tasks]


def best_to_type(tasks: list[Task]) -> int:
    """Log2 of the constant that is right in most tasks, chosen on them; of several the one in their middle."""
    scales = range(min(task.scales[0] for task in tasks), max(task.scales[-1] for task in tasks) + 1)
    right = {scale: sum(right_by_task(tasks, constant(scale))) for scale in scales}
    best = [scale for scale in scales if right[scale] == max(right.values())]
    return best[len(best) // 2]


def choice_table(tasks: list[Task], title: str = "scale to type") -> str:
    """The scale that each rule types: tasks in which it is right, and binades between it and the usable scales."""
    rows = [(title, "scales", "right", "% right", "the advisor is better by", "binades outside the window")]
    ours_right = right_by_task(tasks, advised)
    for name, rule in choices(tasks).items():
        scales, right = [rule(task) for task in tasks], right_by_task(tasks, rule)
        gain = "-" if rule is advised else interval((a - b for a, b in zip(ours_right, right)), 1, 100)
        outside = [task.outside(scale) for task, scale in zip(tasks, scales)]
        rows.append((name, _range(scales), *_right(right), gain, interval(outside, 1)))
    if all(task.scaler_harms for task in tasks):
        right = [not task.scaler_harms_most for task in tasks]
        gain = interval((a - b for a, b in zip(ours_right, right)), 1, 100)
        rows.append(("dynamic scaling from 2^16", "-", *_right(right), gain, "-"))
    return aligned(rows)


def _range(scales: list[int]) -> str:
    return f"2^{min(scales)} .. 2^{max(scales)}" if min(scales) < max(scales) else f"2^{scales[0]}"


def _right(right: list[bool]) -> tuple[str, str]:
    """How many, and Wilson's 95 % interval of the share, which stays within 0 and 100 %."""
    count, share = len(right), mean(right)
    middle = (share + Z_95**2 / (2 * count)) / (1 + Z_95**2 / count)
    half = Z_95 * (share * (1 - share) / count + Z_95**2 / (4 * count**2)) ** 0.5 / (1 + Z_95**2 / count)
    return f"{sum(right)} of {count}", f"{100 * share:.0f} ({100 * (middle - half):.0f} .. {100 * (middle + half):.0f})"


def advice_rules(folder: Path, *experiments: str) -> str:
    """Both tables of an experiment's tasks, or of several experiments' together; and the second of the tasks alone on
    which no part of the advisor was chosen, where an experiment says which these are.

    folder: experiments/recorded.
    """
    tasks = [task for experiment in experiments for task in read_tasks(folder, experiment)]
    tables = [harm_table(tasks), choice_table(tasks)]
    held_out = [task for task in tasks if task.is_held_out]
    if NARROW in experiments:
        tables.append(choice_table(held_out, "scale to type, tasks held out"))
    return "\n\n".join(tables)
