"""Gradients between the ranks of fully_shard (FSDP2), in the format in which they are reduce-scattered."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.formats import element_of, label
from halfscope.torch.emulate.book import REDUCED
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.ranks.data_parallel import hops
from halfscope.torch.emulate.ranks.fully_shard import Sharding
from halfscope.torch.policy import FP32
from halfscope.torch.private import storage_key, wait_for
from halfscope.torch.tensors.elements import HALF

_REDUCE_SCATTER = "c10d._reduce_scatter_base_"
SENT = "reduce-scatter, sent"


class ReduceScatter:
    """Divides, rounds and adds up the ranks' gradients as FSDP2 and NCCL do it in the format on the wire.

    That is the format of the weight gradients; `reduce_dtype` of a MixedPrecisionPolicy overrides it. Each rank's
    gradients are divided and rounded before they are sent, and their sum is rounded once.
    """

    def __init__(self, sharding: Sharding, quantizer: str, caster: Caster) -> None:
        self._caster = caster
        types = {sharded.reduce_type for sharded in sharding.parameters.values()}
        self._quantizer = FP32 if torch.float32 in types else quantizer
        self._ranks = torch.distributed.get_world_size(sharding.group)
        self._formats: set[str] = set()  # that were sent
        self._divided: tuple[float, float] | None = None  # before and after sums that were rounded; else PyTorch's own
        self._reduced: torch.Tensor | None = None  # the latest sum, which FSDP2 may divide itself

    def run(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An operation of FSDP2's own."""
        if str(func).startswith(_REDUCE_SCATTER):
            self._formats.add(self._format_of(args[1]))
            if args[1].dtype is torch.float32 and self._quantizer != FP32:
                return self._reduce_scatter(func, args, kwargs)
        result = func(*args, **kwargs)
        reduced = self._reduced
        if reduced is not None and str(func).startswith("aten.div_.") and storage_key(args[0]) == storage_key(reduced):
            self._round(reduced, REDUCED)
        return result

    def _reduce_scatter(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        output, sent, group, operation, *rest = args
        before, after = 1.0, 1.0
        distributed = torch.distributed
        averages = distributed.ReduceOp.unbox(operation) == distributed.ReduceOp.AVG
        if averages:
            operation = distributed.ReduceOp(distributed.ReduceOp.SUM).boxed()
            before, after = divisors(self._quantizer, self._ranks)
        self._divided = before, after
        if before != 1:
            sent.div_(before)
        self._round(sent, SENT)
        # Into other memory: whoever waits for the result once more writes the sum there again.
        summed = torch.empty_like(output)
        _, work = func(summed, sent, group, operation, *rest, **kwargs)
        wait_for(work)
        self._round(summed, REDUCED)
        if after != 1:
            summed.div_(after)
            self._round(summed, REDUCED)
        output.copy_(summed)
        self._reduced = None if averages else output
        return output, work

    def _round(self, flat: torch.Tensor, name: str) -> None:
        self._caster.round(flat, self._quantizer, "weight_gradient", name)

    def _format_of(self, sent: torch.Tensor) -> str:
        if sent.dtype is torch.float32:
            return element_of(self._quantizer)
        return HALF.get(sent.dtype, str(sent.dtype).removeprefix("torch."))

    def words(self) -> str:
        """Empty before gradients were sent."""
        if not self._formats:
            return ""
        formats = " and ".join(map(label, sorted(self._formats)))
        if self._divided is None:
            return f"The gradients of {self._ranks} ranks were reduce-scattered in {formats}."
        before, after = self._divided
        divided = f"divided by {before:g}, " if before != 1 else ""
        then = f" and divided by {after:g}" if after != 1 else ""
        return (
            f"The gradients of {self._ranks} ranks were {divided}reduce-scattered in {formats}, and their sum was "
            f"rounded once{then}{hops(self._ranks)}."
        )


def divisors(quantizer: str, ranks: int) -> tuple[float, float]:
    """Divisors of FSDP2 before and after the sum; NCCL's average of BF16 divides before.

    FP16 and narrower formats are divided by a power of two near the root of the ranks before, by the rest after.
    """
    if element_of(quantizer) in ("bf16", FP32):
        return float(ranks), 1.0
    before = 1
    while ranks % before == 0 and ranks / before > before:
        before *= 2
    return float(before), ranks / before
