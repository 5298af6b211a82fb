"""The loss-scale explorer: a page, or a notebook's widget, that shows a set of tensors at any scale."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.advice import HEADROOM, TOLERANCE, ScaleAdvice, advise_scale, histograms_of
from halfscope.whole_files import write_whole

if TYPE_CHECKING:
    from anywidget import AnyWidget


class ExplorerPage:
    """An explorer as a page or a widget."""

    def __init__(self, data: _core.ExplorerData | _core.FormatComparison, title: str) -> None:
        self._data = data
        self._title = title

    def page(self) -> str:
        """A self-contained HTML document: no other file, no request."""
        return self._data.page(self._title)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, whole or not at all."""
        return write_whole(Path(path), self.page())

    def widget(self) -> AnyWidget:
        """The same in a notebook. Raises ImportError without the package anywidget."""
        try:
            from halfscope.explorer_widget import ExplorerWidget
        except ImportError as error:
            raise ImportError(
                f"{type(self).__name__}.widget needs the package anywidget: pip install anywidget"
            ) from error
        return ExplorerWidget(data=self._data.json())


class Explorer(ExplorerPage):
    """Exact counts of tensors, and the advice about them, for one page or widget."""

    def __init__(self, data: _core.ExplorerData, advice: ScaleAdvice, title: str) -> None:
        super().__init__(data, title)
        self.advice = advice
        data.advise(advice.fits, advice.advice)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.advice.fits)} tensors for {self.advice.format}>"


def explore(
    histograms: Mapping[str, object],
    *,
    format: str = "fp16",
    tolerance: float = TOLERANCE,
    headroom: int = HEADROOM,
    title: str = "Loss scales",
) -> Explorer:
    """Prepares the explorer of tensors: `explore(gradients).write("gradients.html")`.

    histograms: by name, as `advise_scale` takes them: arrays of unscaled gradients, halfscope.Histogram of them, or
        lists of those, one per step, from which the page draws a map of tensors by steps.
    format, tolerance, headroom: as for `advise_scale`. title: the page's heading.

    Raises TypeError and ValueError as `advise_scale`.
    """
    steps = histograms_of(histograms, format)
    data = _core.ExplorerData(format)
    for name, recorded in steps.items():
        for step, histogram in enumerate(recorded, start=1):
            data.add(name, "", step, histogram)
    return Explorer(data, advise_scale(steps, format=format, tolerance=tolerance, headroom=headroom), title)
