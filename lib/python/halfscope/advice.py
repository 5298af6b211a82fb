"""The power-of-two loss scale that fits a set of tensors: `halfscope.advise_scale`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.reporting import Finding, Report, Reported, finding_of_verdict
from halfscope.results.dataframes import frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TOLERANCE = 0.2  # share of a tensor's sum of magnitudes that underflow may cost at a fitting scale
HEADROOM = 3  # binades between the largest value and overflow


@dataclass(frozen=True, repr=False)
class ScaleAdvice(Reported):
    """Which loss scale 2^k fits all of a set of tensors, or that none does, and why."""

    format: str
    tolerance: float
    headroom: int
    fits: tuple[_core.TensorFit, ...]
    advice: _core.Advice

    @property
    def joint_window_log2(self) -> tuple[int, int] | None:
        """(low, high): every scale from 2^low to 2^high fits every tensor. None where none does, or any does."""
        return self.advice.joint_window_log2

    @property
    def enough_from_log2(self) -> int | None:
        """Log2 of the smallest scale at which underflow stays within the tolerance; None without a window."""
        return None if self.joint_window_log2 is None else self.joint_window_log2[0]

    @property
    def overflow_beyond_log2(self) -> int | None:
        """Log2 of the largest scale at which nothing overflows; None without a window."""
        return None if self.joint_window_log2 is None else self.joint_window_log2[1]

    @property
    def recommended_scale_log2(self) -> int | None:
        """The scale to use: the largest that fits all with the headroom free, at most 2^24.

        Where no single scale fits all, one that fits the most. None where any scale fits, or none fits a tensor.
        """
        return self.advice.recommended_scale_log2

    @property
    def recommended_scale(self) -> float | None:
        """The same as a factor of the loss."""
        return None if self.recommended_scale_log2 is None else 2.0**self.recommended_scale_log2

    @property
    def first_hurt(self) -> tuple[str, ...]:
        """The tensors that a scale below the window hurts first."""
        return tuple(self.advice.first_hurt)

    @property
    def outliers(self) -> tuple[_core.Outlier, ...]:
        """The tensors that the recommended scale does not fit, with what to do about each."""
        return tuple(self.advice.outliers)

    @property
    def report(self) -> Report:
        """The scale to type, or the remedies where none fits; why; how sure. No finding where any scale fits."""
        return Report("advise_scale", self._findings(), text=self.advice.verdict)

    def _findings(self) -> tuple[Finding, ...]:
        is_any = self.recommended_scale_log2 is None and not self.outliers
        return () if is_any else (finding_of_verdict("loss scale", self.advice.verdict, self),)

    def to_pandas(self) -> pd.DataFrame:
        """A row per tensor. Raises ImportError without pandas.

        low and high: log2 of the smallest scale at which underflow costs no more than the tolerance, and of the largest
        at which nothing overflows; nothing fits where low > high, <NA> where any scale fits. remedy: of the outliers.
        """
        remedies = {outlier.name: outlier.remedy for outlier in self.outliers}
        rows = [{"tensor": fit.name, **_window(fit), "remedy": remedies.get(fit.name)} for fit in self.fits]
        found = frame(rows, columns=["tensor", "low", "high", "nonfinite", "remedy"]).set_index("tensor")
        return found.astype({"low": "Int64", "high": "Int64", "nonfinite": "int64", "remedy": object})

    def plot(self) -> Figure:
        """The windows of all tensors, log2, with the recommended scale."""
        from halfscope.plotting.windows import scale_windows

        return scale_windows(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.fits)} tensors for {self.format}: {self.verdict.splitlines()[0]}>"

    def __str__(self) -> str:
        return self.verdict


def advise_scale(
    histograms: Mapping[str, object], *, format: str = "fp16", tolerance: float = TOLERANCE, headroom: int = HEADROOM
) -> ScaleAdvice:
    """Looks for one power-of-two loss scale for all of `histograms`, as `halfscope analyze` does.

    histograms: by name, halfscope.Histogram of unscaled gradients; or a list of them, one per step, of which the step
        that asks for the largest scale counts; or arrays, of which one is made (types as Histogram.update).
    format: what the gradients are cast to; the histograms must have been made for it.
    tolerance: the share of a tensor's sum of magnitudes that may be flushed at a fitting scale.
        docs/reference/loss-scalers.md says how often it is right.
    headroom: binades that the recommendation leaves free below overflow, 0 to 64, where there is room.

    Raises TypeError for what is no dictionary of histograms or arrays, ValueError for histograms of another format and
    for a tolerance or headroom out of range.
    """
    format = canonical(format)
    steps = histograms_of(histograms, format)
    fits = tuple(_core.fit(name, recorded, tolerance) for name, recorded in steps.items())
    return ScaleAdvice(format, tolerance, headroom, fits, _core.advise(fits, format, tolerance, headroom))


def histograms_of(histograms: Mapping[str, object], format: str) -> dict[str, list[_core.Histogram]]:
    """Histograms of the steps by name, as `advise_scale` takes them: one of an array. Raises what it raises."""
    format = canonical(format)
    return {name: _steps(name, given, format) for name, given in named("advise_scale", histograms)}


def canonical(format: str) -> str:
    """The format's own name: fp16 for e5m10."""
    return _core.Histogram(format=format).format


def named(function: str, tensors: object) -> list[tuple[str, object]]:
    """The items of a dictionary whose keys are names. Raises TypeError for anything else."""
    if not isinstance(tensors, Mapping):
        raise TypeError(f"{function}: give a dictionary of arrays by name, not {type(tensors).__name__}")
    for name in tensors:
        if not isinstance(name, str):
            raise TypeError(f"{function}: the name {name!r} is no string")
    return list(tensors.items())


def _steps(name: str, given: object, format: str) -> list[_core.Histogram]:
    if isinstance(given, list) and given and all(isinstance(step, _core.Histogram) for step in given):
        return [_histogram(name, step, format) for step in given]
    return [_histogram(name, given, format)]


def _histogram(name: str, given: object, format: str) -> _core.Histogram:
    if not isinstance(given, _core.Histogram):
        try:
            return _core.Histogram(given, format=format)
        except (TypeError, ValueError) as error:
            raise type(error)(f"advise_scale: '{name}': {str(error).removeprefix('Histogram.update: ')}") from None
    if given.format != format:
        raise ValueError(f"advise_scale: '{name}' is a histogram for {given.format}, not for {format}")
    return given


def _window(fit: _core.TensorFit) -> dict[str, int | None]:
    low, high = (None, None) if fit.any_scale else (fit.underflow_low_log2, fit.overflow_high_log2)
    return {"low": low, "high": high, "nonfinite": fit.nonfinite}
