"""Calls whose operands PyTorch wants of one type, where it promotes operands of others: `half @ float` raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.doctor.nested_tensors import floats_in

_OF_ONE_TYPE_NAMES = """
    linear bilinear matmul __matmul__ __rmatmul__ mm bmm mv addmm addmv addbmm baddbmm einsum tensordot inner dot vdot
    multi_dot chain_matmul conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc prelu lerp
    lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention
    multi_head_attention_forward
"""
_OF_ONE_TYPE = frozenset(_OF_ONE_TYPE_NAMES.split())
_NORMS = frozenset(("layer_norm", "group_norm", "batch_norm", "instance_norm"))  # FP32 with weights of 16 bits
_ATTENTION = "scaled_dot_product_attention"
_MASK = "attn_mask"  # which may have another type


class MixedTypes(TypeError):
    """A trial gives a call operands of two types, which PyTorch refuses."""


def takes_two_types(name: str, args: tuple, kwargs: dict[str, Any], is_wide: Callable[[torch.Tensor], bool]) -> bool:
    """Whether PyTorch refuses the operands of a call, since some hold FP32 and others have 16 bits."""
    if name in _NORMS:
        weights = floats_in((args[1:], kwargs))
        return bool(args) and any(map(is_wide, floats_in(args[0]))) and not all(map(is_wide, weights))
    if name not in _OF_ONE_TYPE:
        return False
    if name == _ATTENTION:
        args, kwargs = args[:3], {key: value for key, value in kwargs.items() if key != _MASK}
    wide = [is_wide(tensor) for tensor in floats_in((args, kwargs))]
    return any(wide) and not all(wide)
