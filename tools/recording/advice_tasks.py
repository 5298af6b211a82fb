"""Tasks that the advisor is judged by: a network under an optimizer, trained at constant loss scales beside FP32."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU

WIDE, NARROW = "advice-validity", "narrow-windows"


@dataclass(frozen=True)
class Task:
    """Trainings of a task, and what one FP32 run advises. Scales are their log2."""

    name: str
    enough_from: int
    use: int
    overflow_beyond: int
    trainings: tuple[tuple[int, bool], ...]  # the scale, and whether it did harm or diverged
    scaler_harms: tuple[bool, ...] = ()  # by seed, of a dynamic scaler
    format: str = "fp16"
    is_held_out: bool = False

    @property
    def scales(self) -> list[int]:
        """All that were trained, ascending."""
        return sorted({scale for scale, _ in self.trainings})

    def trained_below(self, scale: int) -> int:
        """The largest scale that was trained and is not above `scale`; the smallest, where all are above."""
        return max((own for own in self.scales if own <= scale), default=self.scales[0])

    def harmed_at(self, scale: int) -> bool:
        """Whether most seeds were harmed at the scale that was trained there or next below it."""
        nearest = self.trained_below(scale)
        return mean(harmed for own, harmed in self.trainings if own == nearest) > 0.5

    @property
    def usable(self) -> list[int]:
        """The trained scales that did no harm to most seeds."""
        return [scale for scale in self.scales if not self.harmed_at(scale)]

    @property
    def width(self) -> int:
        """Binades from the smallest usable scale to the largest."""
        return self.usable[-1] - self.usable[0]

    @property
    def scaler_harms_most(self) -> bool:
        return mean(self.scaler_harms) > 0.5

    def outside(self, scale: int) -> int:
        """Binades from `scale` to the nearest usable one; 0 for a usable one."""
        return min(abs(scale - own) for own in self.usable) if self.harmed_at(scale) else 0


def read_tasks(folder: Path, experiment: str = WIDE) -> list[Task]:
    """Tasks that some scale does no harm to.

    folder: experiments/recorded.
    """
    harm = read_json(folder / CPU / experiment / "summary.json")["harm"]
    held_out = {line["task"] for line in harm["trainings"] if line.get("set") == "held_out"}
    tasks = [
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
            tuple(line["harmed"] for line in harm.get("scalers", []) if line["task"] == advice["task"]),
            advice.get("format", "fp16"),
            advice["task"] in held_out,
        )
        for advice in harm["advice"]
    ]
    return [task for task in tasks if task.usable]
