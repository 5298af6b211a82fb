"""One step of a model through each door: texts and numbers of diagnose, emulate, watch and lint."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from halfscope.torch import Emulation, diagnose, emulate, lint, watch
from halfscope.torch.counts.totals import ROLES

FORMATS = ("fp16", "bf16")  # that a victim's step is watched for
FILES = ("metrics.jsonl", "histograms.jsonl")


def diagnosed(make: Callable[[], Any]) -> dict[str, Any]:
    model, step, options = make()
    found = diagnose(model, step, **options)
    remedies = [f"{each.kind}: {each.change}" for each in found.findings]
    return {"text": str(found), "runs": found.runs, "remedies": remedies, "left": model.state_dict()}


def emulated(make: Callable[[], Any], **more: Any) -> dict[str, Any]:
    model, step, options = make()
    optimizer = options.get("optimizer", ())
    policy, order = options.get("format", "fp16"), options.get("order")
    with emulate(model, policy, optimizer=optimizer, order=order, **more) as emulation:
        loss = stepped(step, optimizer)
    return {"loss": loss, **of_emulation(emulation), **of_model(model)}


def stepped(step: Callable[[], Any], optimizer: Any) -> Any:
    """The loss of a step; the backward pass is made where `step` is a loss alone."""
    loss = step()
    if not optimizer and isinstance(loss, torch.Tensor) and loss.requires_grad:
        loss.backward()
    return loss


def watched(make: Callable[[], Any]) -> dict[str, Any]:
    model, step, options = make()
    given = options.get("optimizer")
    optimizer = given or torch.optim.SGD(model.parameters(), lr=0.0)
    format = options.get("format") if options.get("format") in FORMATS else "fp16"
    with watch(model, 1, optimizer=optimizer, format=format) as found:
        loss = stepped(step, given)
        if given is None:
            optimizer.step()
    return {"loss": loss, **of_watch(found)}


def linted(make: Callable[[], Any]) -> dict[str, Any]:
    model, _, options = make()
    found = lint(model, options.get("optimizer"), options.get("format", "fp16"))
    return {"text": str(found), "kinds": [each.kind for each in found.findings]}


DOORS: dict[str, Callable[[Callable[[], Any]], dict[str, Any]]] = {
    "diagnose": diagnosed, "emulate": emulated, "watch": watched, "lint": linted
}  # fmt: skip


def of_model(model: torch.nn.Module) -> dict[str, Any]:
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"state": model.state_dict(), "gradients": gradients}


def of_emulation(emulation: Emulation) -> dict[str, Any]:
    """Everything that an emulation has to say."""
    shares = ("lost_updates", "lost_weight_decay", "lost_additions")
    comparison = emulation.compare_to()
    return {
        "text": f"{emulation.report}\n",
        "steps": emulation.steps,
        "first overflow": emulation.first_overflow,
        "casts": {key: vars(total) for key, total in emulation.casts().items()},
        "operands": rows_of(emulation.operands()),
        "histograms": {role: emulation.histograms(role) for role in ROLES},
        "counts": {**emulation.counts(), **{name: getattr(emulation, name) for name in shares}},
        "advice": answer(lambda: str(emulation.advise_scale())),
        "compared": {(each.step, each.role, each.tensor): vars(each) for each in comparison.ranked()},
        "comparison": str(comparison),
        "cancellations": comparison.cancellations(),
    }


def of_watch(found: Any) -> dict[str, Any]:
    """Everything that a watch has to say."""
    return {
        "text": f"{found.report}\n",
        "steps": found.steps,
        "unseen": found.unseen,
        "histograms": answer(lambda: {role: found.histograms(role) for role in ROLES}),
        "blocks": answer(lambda: rows_of(found.blocks())),
        "trace": answer(found.trace),
        "advice": answer(lambda: str(found.advise_scale())),
    }


def rows_of(table: Any) -> dict[str, Any]:
    return {"table": str(table), "counts": {key: [table[key].format, table[key].counts] for key in table}}


def answer(ask: Callable[[], Any]) -> Any:
    """The answer, or the reason why there is none."""
    try:
        return ask()
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> dict[str, str]:
    return {"exception": type(error).__name__, "text": str(error)}


def with_folder(run: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """A run that writes records, and these."""
    with tempfile.TemporaryDirectory() as name:
        found = run(Path(name) / "run")
        return {**found, "files": files_of(Path(name))}


def files_of(folder: Path) -> dict[str, list[str]]:
    """Lines of the records of steps; they have no times."""
    paths = [path for path in sorted(folder.rglob("*.jsonl")) if path.name in FILES]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8").splitlines() for path in paths}
