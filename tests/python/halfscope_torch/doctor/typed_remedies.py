"""Judge of a remedy: it is typed into the source, and the source is run in PyTorch's own 16 bits and in FP32."""

from __future__ import annotations

import importlib.util
import linecache
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from halfscope.torch import diagnose
from halfscope.torch.doctor.typing_edits import Edit, typed
from planted_faults import Planted

LOSS, GRADIENT = 0.03, 0.15  # relative errors that are left by round-off in these networks


@dataclass
class Judged:
    """shown: FP16 spoils the step in PyTorch's own FP16 or in the emulation."""

    planted: Planted
    report: Any
    is_named: bool = False
    works: bool = False
    is_wrong: bool = False
    why: str = ""


def load(path: Path) -> Any:
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(module: Any, dtype: torch.dtype, scale: float = 1.0) -> tuple[float, torch.Tensor]:
    """Loss, and all gradients in one vector, computed by PyTorch in a type."""
    net, inputs = module.net.to(dtype), module.inputs.to(dtype)
    for weight in net.parameters():
        weight.grad = None
    loss = module.loss(net, inputs)
    (loss * scale).backward()
    gradients = [
        weight.grad.detach().double().flatten() / scale for weight in net.parameters() if weight.grad is not None
    ]
    return float(loss.detach()), torch.cat(gradients)


def distance(found: tuple[float, torch.Tensor], exact: tuple[float, torch.Tensor]) -> tuple[float, float]:
    """Relative errors of the loss and of the gradients."""
    loss = abs(found[0] - exact[0]) / max(abs(exact[0]), 1e-6)
    gradient = float((found[1] - exact[1]).norm() / exact[1].norm().clamp(min=1e-12))
    return (loss if loss == loss else float("inf")), (gradient if gradient == gradient else float("inf"))


def is_near(errors: tuple[float, float]) -> bool:
    return errors[0] < LOSS and errors[1] < GRADIENT


def judge(planted: Planted, folder: Path, seconds: float = 60.0, own: torch.dtype = torch.float32) -> Judged:
    """own: type of the model and of its inputs, as the script has them."""
    path = folder / f"{planted.kind}_{abs(hash(planted.source))}.py"
    path.write_text(planted.source)
    module = load(path)
    net, inputs = module.net.to(own), module.inputs.to(own)
    report = diagnose(net, lambda: module.loss(net, inputs), seconds=seconds)
    judged = Judged(planted, report)
    if not report.findings:
        judged.why = "nothing found"
        return judged
    judged.is_named = any(named_lines(advice) & set(planted.lines) for advice in report.findings)
    if any(not advice.kind for advice in report.findings):
        judged.why = "nothing heals"
        return judged
    edits = [edit for advice in report.findings for edit in advice.edits]
    if any(not advice.edits for advice in report.findings if advice.kind != "loss scale"):
        judged.why = "no text"
        return judged
    changed, wide = folder / f"{path.stem}_typed.py", folder / f"{path.stem}_wide.py"
    changed.write_text(typed(planted.source, edits))
    wide.write_text(typed(planted.source, [in_fp32(edit) for edit in edits]))
    exact = outcome(load(path), torch.float32)
    try:
        kept = distance(outcome(load(wide), torch.float32), exact)
        half = distance(outcome(load(changed), torch.float16), exact)
    except Exception as error:
        judged.is_wrong, judged.why = True, f"typed: {error!r}"
        return judged
    judged.works = is_near(half) and kept[0] < 0.02 and kept[1] < 0.05
    judged.is_wrong = not judged.works
    judged.why = f"half {half[0]:.2g} {half[1]:.2g}, FP32 {kept[0]:.2g} {kept[1]:.2g}"
    return judged


def in_fp32(edit: Edit) -> Edit:
    """The edit with FP32 for FP16."""
    text = None if edit.text is None else edit.text.replace("torch.float16", "torch.float32")
    return replace(edit, after=edit.after.replace(".half()", ".float()"), text=text)


def named_lines(advice: Any) -> set[int]:
    """Lines that a sentence names: its place, and what is typed."""
    found = {edit.span.line for edit in advice.edits}
    if advice.place is not None:
        found.add(advice.place.line)
    return found
