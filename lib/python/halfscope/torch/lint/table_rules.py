"""Rules on what a model keeps beside its weights: tables, masks, running statistics, counters; and on large weights."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import halfscope
from halfscope.formats import Format
from halfscope.torch.findings.finding import Finding, digits
from halfscope.torch.lint.formats import LintFormats
from halfscope.torch.lint.numbers import CheckedNumber, Number, check
from halfscope.torch.lint.positions import Angles, Positions, are_frequencies
from halfscope.torch.tensors.elements import floats_on_host

_ANGLE = 0.05  # radians
_CONTEXT = 2048  # positions, where neither the caller nor the model says how many
_TABLE = 16  # elements, from which on whole numbers are taken for a table of positions
_DIFFERS = 1e-3  # relative, of a constant alone in its buffer
_SEEN = "seen in the buffer; the model was not run"
_COUNTERS = ("step", "steps", "count", "num_updates", "num_batches_tracked")


def table_findings(model: torch.nn.Module, formats: LintFormats, positions: int | None) -> Iterator[Finding]:
    """Findings on buffers, and on weights beyond the format; the first of several equal ones."""
    context = positions or context_of(model)
    told: set[str] = set()
    for name, tensor in model.named_buffers():
        exact = floats_on_host(tensor)
        if exact is None:
            continue
        for found in _of_buffer(name, exact, formats.operations, context):
            key = found.why.partition(":")[2]
            if key not in told:
                told.add(key)
                yield found
    yield from _weights(model, formats.weights)


def context_of(model: torch.nn.Module) -> int:
    """Positions by the configuration of a model of `transformers`, else 2048."""
    config = getattr(model, "config", None)
    for key in ("max_position_embeddings", "n_positions"):
        if isinstance(getattr(config, key, None), int):
            return int(getattr(config, key))
    return _CONTEXT


def _of_buffer(name: str, exact: torch.Tensor, format: Format, context: int) -> Iterator[Finding]:
    stored = halfscope.round(exact, format.name)
    own = name.rpartition(".")[2]
    if are_frequencies(own, exact):
        yield from _frequencies(name, exact, format, context)
    elif exact.numel() >= _TABLE and bool((exact == exact.round()).all()) and exact.unique().numel() == exact.numel():
        yield from _positions(name, exact, format)
    elif exact.dim() == 0 and own in _COUNTERS:
        yield from _counter(name, format)
    else:
        yield from _lost_elements(name, exact, stored, format)


def _frequencies(name: str, exact: torch.Tensor, format: Format, context: int) -> Iterator[Finding]:
    angles = Angles(exact, format)
    error, first = angles.error(context - 1), angles.first(_ANGLE)
    if error < _ANGLE or first is None:
        return
    table = Positions(context, format)
    why = (
        f"{name}: inverse frequencies in {format.label} turn angles by up to {error:.3f} rad in a context of "
        f"{context}; {_ANGLE:g} rad from position {first} on."
    )
    if table.first is not None:
        stored = format.round(float(table.first))
        why += (
            f" Positions cast to {format.label} too: {context} become {table.distinct}, {table.first} is {stored:g} "
            "the first."
        )
    yield Finding(
        "frequencies",
        f"keep {name} in FP32, after model.to(...) too, and compute positions, angles, sine and cosine in FP32",
        why,
        "computed from the buffer; a model that computes them anew in FP32 is not affected",
        Number(name, error, 0.0, format.name, f"position {first}"),
    )


def _positions(name: str, exact: torch.Tensor, format: Format) -> Iterator[Finding]:
    stored = halfscope.round(exact.flatten().contiguous(), format.name)
    distinct = stored.unique().numel()
    if distinct == exact.numel():
        return
    changed = (stored != exact.flatten()).nonzero()
    first = exact.flatten()[changed[0]].item()
    yield Finding(
        "positions",
        f"keep {name} as integers, or in FP32 up to where it is embedded",
        f"{name}: {exact.numel()} different whole numbers become {distinct} in {format.label}; {first:g} is "
        f"{format.round(first):g} the first.",
        _SEEN,
        Number(name, first, format.round(first), format.name, f"position {first:g}"),
    )


def _counter(name: str, format: Format) -> Iterator[Finding]:
    last = float(2**format.precision)
    if format.precision >= 24:  # further than FP32 counts
        return
    change = f"keep {name} as an integer, or in FP32"
    yield from check(CheckedNumber("count", name, last + 1, f"step {last + 1:g}", change, _SEEN), format)


def _lost_elements(name: str, exact: torch.Tensor, stored: torch.Tensor, format: Format) -> Iterator[Finding]:
    finite = exact.isfinite()
    beyond, flushed = finite & ~stored.isfinite(), (stored == 0) & (exact != 0)
    for lost, words in ((beyond, "beyond"), (flushed, "below")):
        count = int(lost.sum())
        if not count:
            continue
        value = float(exact[lost].abs().max() if words == "beyond" else exact[lost].abs().min())
        limit = f"largest number {format.largest:g}" if words == "beyond" else f"smallest number {format.smallest:.3g}"
        change = f"keep {name} in FP32"
        if words == "beyond":
            change += f", or within {format.largest:g}: -1e4 will do for a mask"
        yield Finding(
            "buffer",
            change,
            f"{name}: {count} of {exact.numel()} elements are {words} {format.label}'s {limit}, {digits(value)} for "
            "one.",
            _SEEN,
            Number(name, value, format.round(value), format.name, "step 1"),
        )
    if exact.numel() == 1 and not bool(beyond.any() | flushed.any()):
        value = float(exact)
        if value and abs(float(stored) / value - 1) > _DIFFERS:
            yield Finding(
                "constant",
                f"keep {name} in FP32, unless the model was trained with its value in {format.label}",
                f"{name} = {value:.7g} is {float(stored):.7g} in {format.label}, "
                f"{100 * abs(float(stored) / value - 1):.2g} % off.",
                _SEEN,
                Number(name, value, float(stored), format.name, "step 1"),
            )


def _weights(model: torch.nn.Module, format: Format) -> Iterator[Finding]:
    for name, parameter in model.named_parameters():
        exact = floats_on_host(parameter)
        if exact is None:
            continue
        largest = float(exact.nan_to_num(0, 0, 0).abs().max())
        asked = CheckedNumber(
            "factor", f"the largest of {name}", largest, "step 1", f"keep {name} in FP32", "seen in the weights"
        )
        if largest > format.largest:
            yield from check(asked, format)
