"""Counts of a cast of tensors to a format, and the loss scale that fits them: `halfscope.analyze`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.advice import HEADROOM, TOLERANCE, ScaleAdvice, canonical, named
from halfscope.reporting import Report, finding_of_verdict
from halfscope.results.dataframes import frame
from halfscope.tensor_files import FilePath, FileTensors, tensors_of

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ("elements", "zeros", "flushed", "subnormal", "overflow", "nonfinite")
CASTS = ("flushed", "subnormal", "overflow")
SHARES = ("max_abs", "lost_energy", "cosine")


@dataclass(frozen=True, repr=False)
class Analysis(ScaleAdvice):
    """Result of `halfscope analyze`: counts per tensor of a cast at scale 1, and the advice about a scale.

    blocks: of quantized tensors of files, by name. unread: the number of quantized tensors that are not read.
    signs: whether the tensors are weights, which no loss scale reaches.
    """

    tensors: tuple[_core.TensorReport, ...]
    blocks: Mapping[str, _core.BlockFindings] = field(default_factory=dict)
    unread: int = 0
    signs: _core.WeightSigns = field(default_factory=_core.WeightSigns, compare=False)

    @property
    def quantized(self) -> bool:
        """Whether a tensor is quantized: then the verdict is on its blocks, and no loss scale is advised on."""
        return bool(self.blocks) or self.unread > 0

    @property
    def weights(self) -> str | None:
        """Why the tensors are weights and no gradients; None where no sign says so."""
        return self.signs.reason

    @property
    def has_scale(self) -> bool:
        """Whether a loss scale is advised on: the tensors are neither quantized nor weights."""
        return not self.quantized and self.weights is None

    @property
    def report(self) -> Report:
        """Loss scale to use; for weights the question to ask; for quantized tensors the damage, what to do, and why."""
        if self.has_scale:
            doubt = _core.say_weights_in_doubt() if self.signs.are_in_doubt else ""
            return Report("analyze", self._findings(), text=self.advice.verdict + doubt)
        if self.quantized:
            kind, words = "blocks", _core.quantized_verdict(list(self.blocks.items()), self.unread)
        else:
            kind, words = "weights", _core.say_weights(self.weights or "")
        return Report("analyze", (finding_of_verdict(kind, words, self),), text=words)

    @property
    def joint_window_log2(self) -> tuple[int, int] | None:
        """(low, high): every scale from 2^low to 2^high fits every tensor. None where none does, or any does."""
        return super().joint_window_log2 if self.has_scale else None

    @property
    def recommended_scale_log2(self) -> int | None:
        """The scale to use, as ScaleAdvice says; None of weights and of quantized tensors."""
        return super().recommended_scale_log2 if self.has_scale else None

    @property
    def first_hurt(self) -> tuple[str, ...]:
        """The tensors that a scale below the window hurts first."""
        return super().first_hurt if self.has_scale else ()

    @property
    def outliers(self) -> tuple[_core.Outlier, ...]:
        """The tensors that the recommended scale does not fit, with what to do about each."""
        return super().outliers if self.has_scale else ()

    def to_pandas(self) -> pd.DataFrame:
        """A row per tensor: the counts at scale 1, then the columns of ScaleAdvice. Raises ImportError without pandas.

        elements, zeros, flushed, subnormal, overflow and nonfinite are elements; max_abs is the largest finite
        magnitude, lost_energy the flushed elements' share of the sum of squares, cosine that between the tensor and
        what the cast leaves (NaN without a direction).
        """
        rows = [[tensor.name, *(getattr(tensor, name) for name in COUNTS + SHARES)] for tensor in self.tensors]
        counts = frame(rows, columns=["tensor", *COUNTS, *SHARES]).set_index("tensor")
        counts = counts.astype({**dict.fromkeys(COUNTS, "int64"), **dict.fromkeys(SHARES, float)})
        advice = super().to_pandas().drop(columns="nonfinite")
        return counts.assign(**{name: advice[name].array for name in advice})

    def to_dict(self) -> dict:
        """The object that `halfscope analyze --json` prints of the same tensors in a file.

        It lacks what only files have: `file`, `tensors` and `beyond_fp32` of a tensor, `files` and `analysed` of all.
        """
        outliers = [{"name": o.name, "remedy": o.remedy, "scale_log2": o.scale_log2} for o in self.outliers]
        quantized = {"quantized": True} if self.quantized else {}
        weights = {"weights": self.weights} if self.weights else {}
        return {
            "format": self.format, "tensors": [_tensor(tensor, self.blocks) for tensor in self.tensors],
            "joint_window_log2": _list(self.joint_window_log2), "recommended_scale_log2": self.recommended_scale_log2,
            **quantized, **weights,
            "first_hurt": list(self.first_hurt), "verdict": str(self.verdict), "tolerance": self.tolerance,
            "headroom_log2": self.headroom, "outliers": outliers,
            "skipped": [],
        }  # fmt: skip


def analyze(
    tensors: Mapping[str, object] | FilePath | Sequence[FilePath],
    *,
    format: str = "fp16",
    tolerance: float = TOLERANCE,
    headroom: int = HEADROOM,
    dtype: str | None = None,
) -> Analysis:
    """Counts what a cast to `format` does to tensors, and looks for one power-of-two scale for all of them.

    tensors: arrays by name, of any shape: gradients of the unscaled loss, activations or weights. float32, float16,
        bfloat16, float8 or float64 in CPU memory; the last is counted as Histogram.update says. Or the path of a file
        of them, .npy, .npz, .safetensors, .gguf or a PyTorch checkpoint, of a folder of such files, a glob or an index
        of shards, or a list of these; files are read whole, where the command reads in pieces. A quantized tensor is
        its payload times its scales. No function of a checkpoint's pickle is called.
    format: of the cast, "fp16", "bf16", "fp8_e4m3", "fp8_e5m2" or any eXmY.
    tolerance: the share of a tensor's sum of magnitudes that underflow may cost at a fitting scale.
    headroom: binades that the recommended scale leaves free below overflow, 0 to 64, where there is room.
    dtype: "f16", "bf16", "f32", "f64", "f8_e4m3" or "f8_e5m2", the type of the elements of files that do not tell it:
        raw ones, and .npy of ml_dtypes' arrays.

    Raises TypeError for what is no dictionary of such arrays, ValueError for an unknown format, a tolerance or headroom
    out of range, arrays in a GPU's memory, and a file that cannot be read.
    """
    tensors = tensors_of(tensors, dtype)
    format = canonical(format)
    arrays = dict(named("analyze", tensors))
    reports = tuple(_report(name, array, format, tolerance) for name, array in arrays.items())
    fits = tuple(report.fit for report in reports)
    advice = _core.advise(fits, format, tolerance, headroom)
    files = tensors if isinstance(tensors, FileTensors) else FileTensors(0)
    signs = _core.WeightSigns()
    for report, array in zip(reports, arrays.values()):
        name, file = files.origins.get(report.name, (report.name, ""))
        signs.look_at(report, name, file, len(getattr(array, "shape", ())))
    return Analysis(format, tolerance, headroom, fits, advice, reports, files.blocks, files.unread, signs)


def _report(name: str, array: object, format: str, tolerance: float) -> _core.TensorReport:
    try:
        return _core.report(name, array, format, tolerance)
    except (TypeError, ValueError) as error:
        raise type(error)(f"analyze: {error}") from None


def _tensor(tensor: _core.TensorReport, blocks: Mapping[str, _core.BlockFindings]) -> dict:
    values = {name: getattr(tensor, name) for name in ("name", *COUNTS, *SHARES)}
    nonzero = tensor.elements - tensor.zeros - tensor.nonfinite
    shares = {f"{name}_share": getattr(tensor, name) / nonzero if nonzero else 0.0 for name in CASTS}
    found = blocks.get(tensor.name)
    window = None if found else _list(tensor.fit.window_log2)
    more = {"blocks": found.to_dict()} if found else {}
    return {**values, "window_log2": window, "any_scale": tensor.fit.any_scale, **shares, **more}


def _list(window: tuple[int, int] | None) -> list[int] | None:
    return None if window is None else list(window)
