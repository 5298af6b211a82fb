"""Gradients between the ranks of DistributedDataParallel, in the format in which they are sent."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.formats import element_of, label
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.policy import FP32
from halfscope.torch.tensors.elements import lies_without_gaps

ALL_REDUCE = "c10d.allreduce_"
SENT, SUMMED = "all-reduce, sent", "all-reduce, summed"


def is_data_parallel(model: torch.nn.Module) -> bool:
    return isinstance(model, torch.nn.parallel.DistributedDataParallel)


class Wire:
    """Rounds each rank's buckets before they are sent, and their sum once when it has come back.

    With two ranks that is the sum of any all-reduce in the format; with more, NCCL's ring rounds at every hop.
    """

    def __init__(self, model: torch.nn.Module, quantizer: str, caster: Caster) -> None:
        self._model, self._quantizer, self._caster = model, quantizer, caster
        self._ranks = torch.distributed.get_world_size(model.process_group)

    def send(self, buckets: Any) -> None:
        """Before the ranks' buckets, float32 tensors, are added up."""
        for bucket in buckets if isinstance(buckets, (list, tuple)) else [buckets]:
            if isinstance(bucket, torch.Tensor) and bucket.dtype is torch.float32:
                self._round(bucket, SENT)

    def receive(self) -> None:
        """After a backward pass that has synchronised the gradients."""
        if not self._model.require_backward_grad_sync:
            return
        for parameter in self._model.parameters():
            if parameter.grad is not None and parameter.grad.dtype is torch.float32:
                self._round(parameter.grad, SUMMED)

    def _round(self, tensor: torch.Tensor, name: str) -> None:
        if self._quantizer == FP32:
            return
        if lies_without_gaps(tensor):
            self._caster.round(tensor, self._quantizer, "weight_gradient", name)
            return
        copy = tensor.contiguous()
        self._caster.round(copy, self._quantizer, "weight_gradient", name)
        tensor.copy_(copy)

    def words(self) -> str:
        ranks = self._ranks
        format = label(element_of(self._quantizer))
        if self._quantizer == FP32:
            return f"The gradients of {ranks} ranks were added up in FP32."
        return f"The gradients of {ranks} ranks were sent in {format}, and their sum was rounded once{hops(ranks)}."


def hops(ranks: int) -> str:
    """The end of a sentence on a sum that was rounded once."""
    return "" if ranks == 2 else f"; NCCL's ring would round at each of {ranks - 1} hops"
