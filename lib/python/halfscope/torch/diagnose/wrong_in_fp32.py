"""Finding on a step that is infinite or NaN in FP32 already: the operation that makes it so, and its line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.events.nodes import Forward, Nodes
from halfscope.torch.events.ran import Call, Ran
from halfscope.torch.events.source import Site, current_site
from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.finding import Finding, called, located
from halfscope.torch.findings.follower import Follower
from halfscope.torch.findings.kinds import DIVISIONS, LOGARITHMS
from halfscope.torch.findings.trail import first_tensor, float_tensors
from halfscope.torch.operations.operators import operation_of, target_of
from halfscope.torch.operations.table import NO_ARITHMETIC, Trait, named
from halfscope.torch.private import TorchDispatchMode, current_node, node_number

_SOFTMAX = named(Trait.SOFTMAX)
_FILLS = named(Trait.CONSTANT)
_FP32 = Format.of("fp32")


@dataclass(frozen=True)
class Origin:
    """An operation whose result is not finite, though its operands are."""

    operation: str
    site: Site | None
    is_backward: bool
    nan_at: str = ""  # the operation that makes NaN of it

    @classmethod
    def of(cls, made: Made, nan_at: str = "") -> Origin:
        return cls(made.operation, made.site, made.is_gradient, nan_at)


class Finder(TorchDispatchMode):
    """Runs operations as they are, and finds the first that makes a NaN, and before it an infinity.

    Judge of an FP32 step: all numbers that are not finite are wrong, but for those of the batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self._nodes = Nodes()
        self._follower = Follower(self)
        self.nan: Origin | None = None
        self.infinity: Origin | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        line, first = operation_of(func), first_tensor(result)
        if line is None or line.kind in NO_ARITHMETIC or first is None or not first.is_floating_point():
            return result
        forward, is_backward = _forward(self._nodes, line.name)
        if self.nan is None and (self._follower or not bool(first.isfinite().all())):
            made = Made(forward.operation, forward.row, None, forward.site, is_gradient=is_backward)
            call = Call(func, line, args, kwargs, None, is_backward, forward)
            self._follower.ran(Ran.of(call, result), made)
        return result

    def bad(self, ran: Ran) -> torch.Tensor | None:
        bad = ~first_tensor(ran.result).isfinite()
        return bad if bool(bad.any()) else None

    def numbers(self, ran: Ran) -> torch.Tensor:
        """The run's: it is judged alone."""
        return first_tensor(ran.result)  # type: ignore[no-any-return]

    def born(self, ran: Ran, made: Made, bad: torch.Tensor) -> Fault | None:
        """None where an operand is the batch's own infinity."""
        target = target_of(ran.func, ran.args, ran.kwargs)
        operands = [tensor for tensor in float_tensors((ran.args, ran.kwargs)) if tensor is not target]
        if not all(bool(tensor.isfinite().all()) for tensor in operands):
            return None
        region = "backward" if made.is_gradient else "forward"
        fault = Fault(made, _FP32, region, "", math.inf, int(bad.sum()), bad.numel())
        is_nan = bool(first_tensor(ran.result).isnan().any())
        if self.infinity is None and not is_nan and made.operation not in _FILLS:
            self.infinity = Origin.of(made)
        return fault

    def damage(self, ran: Ran, fault: Fault) -> None:
        """There is no other step beside."""

    def ended(self, fault: Fault, made: Made) -> None:
        """The first NaN is to blame on what made its infinity, but for one on purpose."""
        if fault.nan_at is made:
            is_softmax = made.operation in _SOFTMAX and not made.is_gradient
            is_own = fault.made is made or fault.made.operation in _FILLS or is_softmax
            self.nan = Origin.of(made) if is_own else Origin.of(fault.made, made.operation)


def _forward(nodes: Nodes, operation: str) -> tuple[Forward, bool]:
    """The forward operation under way, or that whose gradient is computed; whether it is the latter."""
    node = current_node()
    if node is None:
        forward = Forward(operation, operation, operation, site=current_site())
        nodes.note(forward)
        return forward, False
    return nodes.of(node_number(node)) or Forward(operation, operation, operation), True


def finding_in_fp32(session: Session, exact: Outcome) -> Finding:
    """exact: the FP32 step, which is not finite."""
    finder = Finder()
    session.run_fp32(finder)
    origin = finder.nan or finder.infinity
    if origin is not None and origin.is_backward and finder.infinity is not None:
        origin = finder.infinity if not finder.infinity.is_backward else origin
    bad = exact.bad_gradients or exact.bad_buffers or exact.bad_weights
    loss = exact.loss is None or math.isfinite(exact.loss)
    seen = "in FP32 " + ("the loss is finite" if loss else f"the loss is {exact.loss}")
    seen += f", and {len(bad)} tensors are infinite or NaN: {', '.join(bad[:4])}" if bad else ""
    if origin is None:
        change, why = "look at the batch and at the loss in FP32 first; no format is to blame", f"{seen}."
        return Finding("fp32", change, why, "computed in FP32; the format was not tried")
    change, code = located(origin.site, f"{_change(origin)}; no format is to blame")
    return Finding(
        "fp32", change, f"{seen}: {_cause(origin, origin is finder.nan)}.",
        "computed in FP32; neither the format nor a remedy was tried", origin, "FP32 first", code,
    )  # fmt: skip


def _cause(origin: Origin, is_nan: bool) -> str:
    name = called(origin.operation)
    if origin.operation in _SOFTMAX and not origin.is_backward:
        return f"{name} of a row without a finite number is NaN"
    subject = f"the gradient of {name}" if origin.is_backward else name
    then = f"; {called(origin.nan_at)} makes it NaN" if origin.nan_at else ""
    return f"{subject} is {'NaN' if is_nan and not then else 'infinite'}, though its operands are finite{then}"


def _change(origin: Origin) -> str:
    """The code to write instead, by the operation."""
    if origin.operation in _SOFTMAX and not origin.is_backward:
        return "leave out rows whose keys are all masked, or mask with a finite number, -1e4, instead of -inf"
    if origin.operation in named(Trait.STEEP_AT_ZERO) and origin.is_backward:
        return "add an eps in front of the root, sqrt(x + 1e-6): its gradient at 0 is infinite"
    if origin.operation in LOGARITHMS:
        return "keep the argument of the logarithm above 0: log_softmax, logsigmoid, or x.clamp_min(1e-6)"
    if origin.operation in DIVISIONS:
        return "keep the divisor away from 0: x.clamp_min(1e-4)"
    return f"look at {called(origin.operation)} in FP32 first"
