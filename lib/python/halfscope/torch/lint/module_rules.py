"""Rules on the constants of modules: attributes, numbers in the source of `forward`, decays of averages."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator

import torch

import halfscope
from halfscope.formats import Format
from halfscope.reporting import Place
from halfscope.torch.findings.finding import Finding
from halfscope.torch.lint.formats import LintFormats
from halfscope.torch.lint.numbers import CheckedNumber, Number, check
from halfscope.torch.lint.sources import Source, source_of
from halfscope.torch.private import BATCH_NORM
from halfscope.torch.tensors.elements import floats_on_host

# Modules of PyTorch that add their eps in the format of their input. Norms add theirs in FP32.
_EPS_IN_FORMAT = (torch.nn.CosineSimilarity, torch.nn.PairwiseDistance)
_BATCH_NORMS = (BATCH_NORM,)
_STUCK = 0.05  # relative change of an average from which on it moves, that is told
_AVERAGES = ("decay", "momentum", "ema", "beta")
_NEAR_1 = 2e-3
_LOST_OF_WEIGHT = 0.1  # share of a weight's norm
_SEEN = "seen in the module; it was not run: halfscope.torch.diagnose says whether a step meets it"


def module_findings(model: torch.nn.Module, formats: LintFormats) -> Iterator[Finding]:
    """Findings on each kind of module and each value once, the first module of it named."""
    told: set[tuple[type, str, object]] = set()
    for name, module in model.named_modules():
        for found in _of_module(name or type(module).__name__, module, formats):
            about = found.about
            key = (type(module), about.name.replace(": ", ".").rpartition(".")[2], about.value)
            if key not in told:
                told.add(key)
                yield found


def _of_module(name: str, module: torch.nn.Module, formats: LintFormats) -> Iterator[Finding]:
    source = source_of(module)
    yield from _attributes(name, module, source, formats.constants)
    yield from _averages(name, module, formats.operations)
    if source is not None and not source.is_fp32:
        yield from _beside_1(name, module, source, formats)
        yield from _added_weights(name, module, source, formats)
        yield from _numbers(name, source, formats)


def _attributes(name: str, module: torch.nn.Module, source: Source | None, format: Format) -> Iterator[Finding]:
    is_own = source is not None and not source.is_fp32
    if not is_own and not isinstance(module, _EPS_IN_FORMAT):
        return
    for key, value in vars(module).items():
        if type(value) is not float or not math.isfinite(value):
            continue
        kind = "epsilon" if "eps" in key.lower() else "factor"
        if kind == "factor" and abs(value) < 1:  # rates, probabilities, deviations of the first weights
            continue
        where = f"{name}.{key}"
        change = f"{key}={{limit}} or more for {value:g}, or the operations with it in FP32" if kind == "epsilon" else (
            f"write {{limit}} for {value:g}, in {where}" if abs(value) > format.largest else ""
        )  # fmt: skip
        found = list(check(CheckedNumber(kind, where, value, "step 1", change, _SEEN), format))
        yield from found
        if kind == "epsilon" and not found and source is not None and source.bounds_from_below:
            asked = CheckedNumber("epsilon_gradient", where, value, "step 1", change, _SEEN)
            yield from check(asked, format)


def _numbers(name: str, source: Source, formats: LintFormats) -> Iterator[Finding]:
    """Constants and powers in `forward`."""
    format = formats.constants
    for value, site in source.numbers:
        sure = _unrun(site)
        change = f"write {{limit}} for {value:g}, or compute this in FP32"
        asked = CheckedNumber("factor", f"{name}.forward: {value:g}", value, "step 1", change, sure, site)
        yield from check(asked, format)
        if _is_lost_beside_1(value, format):
            yield _near_1(f"{name}.forward", value, format, sure, site)
    for power, site in source.powers:
        largest = (format.largest) ** (1 / power)
        if format.has_range_of_fp32 or not formats.has_powers:
            continue
        yield Finding(
            "power",
            f"compute the power in FP32: x.float().pow({power:g})",
            f"{name}: x^{power:g} overflows {format.label} from {largest:.3g} on.",
            f"read in {site}; how large x becomes was not looked at: halfscope.torch.diagnose does",
            Number(f"{name}.forward: power", power, largest, format.name, f"|x| = {largest:.3g}"),
            place=site,
        )


def _is_lost_beside_1(value: float, format: Format) -> bool:
    """Whether a number near 1, such as 1 - 1e-6, is 1 in the format."""
    return 0 < abs(abs(value) - 1) < _NEAR_1 and abs(format.round(value)) == 1


def _near_1(name: str, value: float, format: Format, sure: str, site: Place | None) -> Finding:
    step = 2.0**-format.precision * (1 if abs(value) < 1 else 2)
    nearest = math.copysign(1 - step if abs(value) < 1 else 1 + step, value)
    return Finding(
        "near_1",
        f"write {nearest:.6g} for {value!r}, or compute this in FP32",
        f"{name}: {value!r} is {format.round(value):g} in {format.label}, whose next number is {nearest:.6g}: a bound "
        f"by it does not keep a number from 1, as the logarithm of 1 - p needs.",
        sure,
        Number(f"{name}: {value!r}", value, format.round(value), format.name, "step 1"),
        place=site,
    )


def _unrun(site: Place) -> str:
    return f"read in {site}, which was not run: halfscope.torch.diagnose says whether a step meets it"


def _beside_1(name: str, module: torch.nn.Module, source: Source, formats: LintFormats) -> Iterator[Finding]:
    """An attribute that is lost beside 1, such as 1 - eps."""
    for key, constant, sign, site in source.sums:
        value = getattr(module, key, None)
        near = constant + sign * value if type(value) is float else 0.0
        if abs(constant) == 1 and _is_lost_beside_1(near, formats.constants):
            yield _near_1(f"{name}.forward", near, formats.constants, _unrun(site), site)


def _added_weights(name: str, module: torch.nn.Module, source: Source, formats: LintFormats) -> Iterator[Finding]:
    """Weights that lose their digits beside a constant, 1 + w."""
    for key, constant, sign, site in source.sums:
        weight = getattr(module, key, None)
        exact = floats_on_host(weight) if isinstance(weight, torch.nn.Parameter) else None
        if exact is None:
            continue
        held = exact.double()
        stored = halfscope.round((constant + sign * held).float().contiguous(), formats.operations.name).double()
        lost = float((sign * (stored - constant) - held).norm() / held.norm()) if bool(held.any()) else 0.0
        if lost > _LOST_OF_WEIGHT:
            step = 2.0**-formats.operations.precision * abs(constant)
            yield Finding(
                "added_weight",
                f"compute this sum in FP32: {constant:g} {'+' if sign > 0 else '-'} self.{key}.float()",
                f"{name}.{key} is added to {constant:g}, beside which {formats.operations.label} holds nothing below "
                f"{step:.3g}: {100 * min(lost, 1.0):.0f} % of the weight is lost, by its norm.",
                f"read in {site}, and computed from the weights as they are now",
                Number(f"{name}.{key}", constant, constant, formats.operations.name, "step 1"),
                place=site,
            )


def _averages(name: str, module: torch.nn.Module, format: Format) -> Iterator[Finding]:
    for key, decay in _decays(module):
        where = f"{name}: {key}"
        change = f"keep the average in FP32; else a decay of {{limit}} or less for {decay:g}"
        found = check(CheckedNumber("decay", where, decay, "step 1", change, _SEEN), format)
        yield from found
        moves = 2.0**-format.precision / (1 - decay)
        if not found and moves > _STUCK:
            yield Finding(
                "average",
                f"keep the average of {name} in FP32",
                f"{where} = {decay:g}: an average in {format.label} moves only where it is {50 * moves:.3g} to "
                f"{100 * moves:.3g} % or more away from the new value, by its significand, from step 1 on.",
                _SEEN,
                Number(where, decay, format.round(decay), format.name, "step 1"),
            )


def _decays(module: torch.nn.Module) -> Iterator[tuple[str, float]]:
    """The shares that averages keep in a step."""
    if isinstance(module, _BATCH_NORMS):
        if module.track_running_stats and module.momentum:
            yield "1 - momentum", 1 - module.momentum
        return
    if isinstance(module, torch.optim.swa_utils.AveragedModel):
        yield from _decays_of_average(module)
    if not type(module).__module__.startswith("torch."):
        for key, value in vars(module).items():
            if type(value) is float and 0.5 <= value < 1 and any(word in key.lower() for word in _AVERAGES):
                yield key, value


def _decays_of_average(module: torch.nn.Module) -> Iterator[tuple[str, float]]:
    """The decay that `get_ema_avg_fn` and `get_ema_multi_avg_fn` have closed over."""
    for key in ("avg_fn", "multi_avg_fn"):
        function = inspect.unwrap(getattr(module, key, None) or (lambda: None))
        cells = getattr(function, "__closure__", None) or ()
        names = function.__code__.co_freevars if cells else ()
        for name, cell in zip(names, cells):
            if name == "decay" and isinstance(cell.cell_contents, float) and cell.cell_contents < 1:
                yield key, cell.cell_contents
