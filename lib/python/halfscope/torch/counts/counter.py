"""One way of counting a watched training, such as histograms or blocks: all that `watch` and its records ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

from halfscope import Histogram

if TYPE_CHECKING:
    from halfscope.torch.counts.ranks import Ranks


class Canvas(Protocol):
    """A board that shows numbers over steps."""

    def scalar(self, name: str, value: float, step: int) -> None: ...

    def histogram(self, name: str, histogram: Histogram, step: int) -> None: ...


class StepCounts(Protocol):
    """Counts of one training step."""

    format: str
    formats: dict[tuple[str, str], str]  # by role and tensor, the formats in which the tensors came

    def count(self, role: str, tensor: str, given: torch.Tensor, scale: float = 1.0) -> None: ...

    def count_all(self, role: str, tensors: dict[str, torch.Tensor], scale: float) -> None: ...

    def recount(self, role: str, tensors: dict[str, torch.Tensor], scale: float) -> None:
        """Counts in place of what was counted of these tensors before."""

    def finish(self) -> None:
        """Fetches counts that wait on devices."""

    def gradients(self, scale: float) -> dict | None:
        """All weight gradients, for a replay of loss scalers; None where a loss scale changes nothing."""

    def line(self) -> dict:
        """Counts of a line of metrics.jsonl."""

    def histogram_lines(self, step: int) -> list[dict]:
        """Lines of histograms.jsonl."""

    def draw(self, board: Canvas, step: int) -> None: ...


class Weights(Protocol):
    """An optimizer's parameters, looked at before and after its step."""

    parameters: dict[str, torch.nn.Parameter]

    def keep(self, also_without_gradient: bool) -> None: ...

    def release(self) -> None: ...

    def count_updates(self, seen: Any) -> None: ...


class Totals(Protocol):
    """Counts of all watched steps."""

    format: str
    steps: int

    def add(self, seen: Any) -> None: ...


class Counter(Protocol):
    """A kind of counts, for a format."""

    format: str
    knows_scale: bool  # whether the counts tell of loss scales, and single operations are judged in the format
    unseen: str  # the extent of the look, where that is another one than the histograms'

    def observe(self) -> StepCounts:
        """Counts of a step that begins."""

    def weights(self, owned: dict[str, torch.nn.Parameter]) -> Weights: ...

    def totals(self) -> Any:
        """Counts of all steps, none yet."""

    def merge(self, seen: Any, ranks: Ranks, scale: float) -> None:
        """Puts the counts of all ranks in the place of this rank's."""

    def words(self, totals: Any, about: Any) -> str:
        """The verdict; about: circumstances of the watch."""
