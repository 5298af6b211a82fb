"""Lists of autocast by the calls that a script makes, and torch.autocast's blocks while the doctor runs a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope.torch.private import autocast_is_on

# As torch.autocast("cuda") has them, by the names of the functions that scripts call.
_TO_FORMAT_NAMES = """
    linear matmul __matmul__ __rmatmul__ mm bmm mv addmm addmv addbmm baddbmm addr einsum conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc chain_matmul multi_dot prelu bilinear lstm gru
    rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention
    multi_head_attention_forward
"""
TO_FORMAT = frozenset(_TO_FORMAT_NAMES.split())
_TO_FP32_NAMES = """
    acos asin cosh sinh tan exp expm1 log log10 log2 log1p reciprocal rsqrt pow __pow__ __rpow__ softplus erfinv
    softmax log_softmax softmin layer_norm group_norm norm rms_norm instance_norm normalize sum prod cumsum cumprod
    logsumexp dist cdist pdist cosine_similarity renorm nll_loss cross_entropy mse_loss l1_loss smooth_l1_loss
    huber_loss kl_div poisson_nll_loss gaussian_nll_loss binary_cross_entropy_with_logits cosine_embedding_loss
    hinge_embedding_loss margin_ranking_loss multilabel_margin_loss multi_margin_loss soft_margin_loss
    multilabel_soft_margin_loss triplet_margin_loss ctc_loss vector_norm matrix_norm
"""
TO_FP32 = frozenset(_TO_FP32_NAMES.split())
NARROW_TYPES = (torch.float16, torch.bfloat16)


@dataclass
class AutocastBlocks:
    """The blocks of torch.autocast that a step is in; PyTorch's own autocast stays off meanwhile."""

    outside: bool  # as if the whole step stood in a block
    open: list[bool] = field(default_factory=list)
    types: set[torch.dtype] = field(default_factory=set)  # that blocks asked for

    @property
    def is_on(self) -> bool:
        return self.open[-1] if self.open else self.outside

    @contextmanager
    def intercepted(self) -> Iterator[None]:
        block = torch.amp.autocast_mode.autocast
        enter, leave = block.__enter__, block.__exit__
        blocks = self

        def enter_block(self: Any) -> Any:
            is_on = autocast_is_on(self)
            blocks.open.append(is_on)
            if is_on:
                blocks.types.add(self.fast_dtype)
            return self

        def leave_block(self: Any, *about: Any) -> None:
            del self, about
            blocks.open.pop()

        block.__enter__, block.__exit__ = enter_block, leave_block
        try:
            yield
        finally:
            block.__enter__, block.__exit__ = enter, leave
