"""Arithmetic of an optimizer's step: the formats of master weights and of the optimizer's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.parameters import ModelTensor, Parameters
from halfscope.torch.operations.operators import target_of
from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.policy import FP32
from halfscope.torch.tensors.storages import stored


class Updates:
    """Runs the operations of a step.

    With an FP32 state the update is computed in FP32, and what is written to a weight is rounded once. In another
    format every operation's result is rounded to it, those of which a fused operation is composed and its constants
    too; written to a weight, the sum has the format of the master weights.
    """

    def __init__(self, caster: Caster, parameters: Parameters) -> None:
        self._caster, self._parameters = caster, parameters

    def begin(self) -> None:
        """Brings weights without an FP32 master copy to their format: once, since every step leaves them in it."""
        for owned in self._parameters.all():
            if owned.formats.master_weight != FP32 and owned.tensor.dtype is torch.float32:
                first = None if owned.sharded is None else owned.sharded.first_element()
                with torch.no_grad(), self._caster.shard(first):
                    self._caster.round(owned.tensor.data, owned.formats.master_weight, "master_weight", owned.name)

    def run(self, func: Any, line: Operation, args: tuple, kwargs: dict[str, Any]) -> Any:
        target = _target(func, args, kwargs)
        owned = None if target is None else self._parameters.owner(target)
        formats = self._formats(args, owned)
        if formats is None or (formats.optimizer_state == FP32 and (owned is None or formats.master_weight == FP32)):
            return func(*args, **kwargs)
        if line.name.startswith("_foreach_") or line.name.startswith("_fused_"):
            raise RuntimeError(
                f"emulate: the optimizer calls {line.name}, of all weights at once; use one that steps weight by weight"
            )
        if formats.optimizer_state == FP32:
            return self._write(func, line, args, kwargs, owned)
        if line.kind in (Kind.EXACT, Kind.VIEW, Kind.SOURCE, Kind.UNTOUCHED):
            return func(*args, **kwargs)
        return self._narrow(func, line, args, kwargs, owned, formats.optimizer_state)

    def _formats(self, args: tuple, owned: ModelTensor | None) -> Any:
        """Formats of the weight that is written to or read, else the policy's own."""
        return owned.formats if owned is not None else self._parameters.base

    def _write(self, func: Any, line: Operation, args: tuple, kwargs: dict[str, Any], owned: ModelTensor | None) -> Any:
        """Computes in FP32 and rounds what is written to a weight."""
        assert owned is not None
        target = args[0]
        before = target.detach().clone()
        result = func(*args, **kwargs)
        self._round_weight(target, before, (owned, is_decay(line, args)))
        return result

    def _round_weight(self, target: torch.Tensor, before: torch.Tensor, about: tuple[ModelTensor, bool]) -> None:
        """about: the weight, and whether it decays."""
        owned, decays = about
        if decays:
            self._caster.count_decay(before, target.detach(), owned.formats.master_weight)
        else:
            self._caster.count_update(owned.name, before, target.detach() - before, owned.formats.master_weight)
        dense = target.detach()
        if dense.is_contiguous():
            self._caster.round(dense, owned.formats.master_weight, "master_weight", owned.name)
        else:
            copy = dense.contiguous()
            self._caster.round(copy, owned.formats.master_weight, "master_weight", owned.name)
            dense.copy_(copy)

    def _narrow(
        self, func: Any, line: Operation, args: tuple, kwargs: dict[str, Any], owned: ModelTensor | None, quantizer: str
    ) -> Any:
        def rounded(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.dtype is torch.float32:
                tensor = tensor if stored(tensor).is_contiguous() else tensor.contiguous()
                self._caster.round(tensor, quantizer, "optimizer_state", "arithmetic" if owned is None else owned.name)
            return tensor

        def constant(value: Any) -> Any:
            return float(rounded(torch.tensor(float(value)))) if isinstance(value, float) else value

        target = _target(func, args, kwargs)
        compose = _COMPOSED.get(line.name)
        constants = tuple(map(constant, args)), {key: constant(value) for key, value in kwargs.items()}
        if compose is not None:
            result = compose(rounded, *constants[0], **constants[1])
        else:
            plain = _out_of_place(func)
            result = plain(*constants[0], **{key: value for key, value in constants[1].items() if key != "out"})
        if not isinstance(result, torch.Tensor):
            return result
        if target is None:
            return rounded(result)
        if owned is None:
            return target.copy_(rounded(result))
        before = target.detach().clone()
        target.copy_(result)
        self._round_weight(target, before, (owned, is_decay(line, args)))
        return target


def _target(func: Any, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor | None:
    """The tensor that an operation writes to."""
    out = target_of(func, args, kwargs)
    return out if isinstance(out, torch.Tensor) else None


def is_decay(line: Operation, args: tuple) -> bool:
    """Whether an operation on a weight is its decay apart from the gradient, as AdamW has it: times 1 - lr * decay."""
    return line.name == "mul" and len(args) > 1 and isinstance(args[1], float) and 0 < args[1] < 1


def _out_of_place(func: Any) -> Callable:
    name = str(func.overloadpacket.__name__)
    return getattr(torch.ops.aten, name[:-1] if name.endswith("_") else name)


Rounded = Callable[[torch.Tensor], torch.Tensor]


def _add(rounded: Rounded, a: torch.Tensor, b: Any, alpha: float = 1) -> torch.Tensor:
    return a + (b if alpha == 1 else rounded(torch.as_tensor(b) * alpha))


def _sub(rounded: Rounded, a: torch.Tensor, b: Any, alpha: float = 1) -> torch.Tensor:
    return a - (b if alpha == 1 else rounded(torch.as_tensor(b) * alpha))


def _addcmul(rounded: Rounded, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, value: float = 1) -> torch.Tensor:
    scaled = b if value == 1 else rounded(b * value)
    return a + rounded(scaled * c)


def _addcdiv(rounded: Rounded, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, value: float = 1) -> torch.Tensor:
    quotient = rounded(b / c)
    return a + (quotient if value == 1 else rounded(quotient * value))


def _lerp(rounded: Rounded, a: torch.Tensor, b: torch.Tensor, weight: Any) -> torch.Tensor:
    return a + rounded(rounded(b - a) * weight)


_COMPOSED: dict[str, Callable[..., torch.Tensor]] = {
    "add": _add, "sub": _sub, "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp,
}  # fmt: skip
