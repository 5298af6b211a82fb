"""Table of PyTorch's operations below autograd: how an emulated format is applied to each.

Names are those of aten without overload and trailing underscore. An operation that is not in the table is computed in
FP32 and its result rounded once; strict emulation refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any


class Kind(Enum):
    """Arithmetic of an operation under emulation."""

    UNTOUCHED = "as it is: no tensor of numbers in, or bookkeeping of the training loop"
    VIEW = "the same memory in another shape"
    EXACT = "selects, moves, compares or negates numbers: nothing to round"
    ROUNDED = "in FP32, then one rounding"
    PRODUCT = "sums of products in the policy's order, then one rounding"
    REDUCTION = "sums of terms in the order of the policy's reductions, then one rounding"
    SOURCE = "makes numbers in FP32: the first operation that uses them rounds them"
    LOSS = "in FP32, as automatic mixed precision has losses; unrounded"
    ATTENTION = "both products in the policy's order, the probabilities rounded between them"
    REFUSED = "not seen inside: one rounding, and an error in strict emulation"
    COMPOSED = "of other operations of the table; seen whole in inference mode alone"
    UNKNOWN = "not in the table: one rounding, and an error in strict emulation"


@dataclass(frozen=True)
class Operation:
    """A line of the table."""

    name: str
    kind: Kind
    listed: str | None = None  # under which name `halfscope list operations` has it
    kept: tuple[int, ...] = ()  # positions of arguments that stay FP32: statistics
    statistics: tuple[int, ...] = ()  # positions of results that stay FP32
    typed: tuple[int, ...] = ()  # position, for each result, of the argument whose type it has; else the widest
    updated: tuple[int, ...] = ()  # positions of arguments that it writes to without saying so in its schema
    reason: str = ""  # reason of a refusal


_VIEWS = """
    view _unsafe_view _reshape_alias reshape t transpose permute expand slice select as_strided unsqueeze squeeze split
    split_with_sizes unsafe_split unsafe_split_with_sizes chunk unbind diagonal narrow detach alias unfold view_as_real
    view_as_complex movedim swapaxes numpy_T lift lift_fresh resolve_conj resolve_neg conj real imag values indices
"""
_EXACT = """
    clone copy cat stack index index_select gather take masked_select masked_scatter
    zero relu threshold threshold_backward hardtanh hardtanh_backward neg abs sgn sign
    maximum minimum max min amax amin aminmax topk sort argsort argmax argmin kthvalue median flip roll repeat
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d tril triu
    embedding select_backward slice_backward diagonal_backward eq ne lt le gt ge isnan isinf logical_and
    logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not any all equal nonzero round floor ceil trunc
    upsample_nearest1d upsample_nearest2d pixel_shuffle pixel_unshuffle channel_shuffle _to_copy
    max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d block_diag scatter select_scatter
    slice_scatter as_strided_scatter copysign im2col masked_scatter_backward searchsorted bucketize
    isin _pack_padded_sequence _pack_padded_sequence_backward unique_dim _unique2 unique_consecutive
"""
_ROUNDED = """
    add sub rsub mul div reciprocal sqrt rsqrt pow exp exp2 expm1 log log2 log10 log1p sin cos tan tanh
    sigmoid erf erfc erfinv gelu silu mish elu celu leaky_relu softplus log_sigmoid_forward hardswish hardsigmoid
    prelu _prelu_kernel glu addcmul addcdiv lerp fmod remainder atan atan2 asin acos sinh cosh asinh acosh
    atanh hypot logaddexp logaddexp2 xlogy nan_to_num frac floor_divide
    tanh_backward sigmoid_backward gelu_backward silu_backward mish_backward elu_backward leaky_relu_backward
    softplus_backward log_sigmoid_backward hardswish_backward hardsigmoid_backward prelu_backward
    _prelu_kernel_backward glu_backward logit logit_backward softshrink softshrink_backward hardshrink
    _softmax _safe_softmax _softmax_backward_data _masked_softmax native_dropout native_dropout_backward
    avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward _adaptive_avg_pool2d
    _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward
    max_pool2d_with_indices_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward
    upsample_bilinear2d upsample_bilinear2d_backward upsample_bicubic2d upsample_bicubic2d_backward upsample_linear1d
    upsample_linear1d_backward upsample_nearest1d_backward upsample_nearest2d_backward _upsample_nearest_exact2d
    _upsample_nearest_exact2d_backward grid_sampler_2d grid_sampler_2d_backward reflection_pad1d_backward
    reflection_pad2d_backward replication_pad1d_backward replication_pad2d_backward unfold_backward col2im
    cumsum cumprod prod logcumsumexp logsumexp var std var_mean std_mean norm linalg_vector_norm _cdist_forward
    _cdist_backward dist index_add index_put _index_put_impl _unsafe_index _unsafe_index_put scatter_add scatter_reduce
    embedding_dense_backward _embedding_bag _embedding_bag_dense_backward _thnn_fused_lstm_cell
    linalg_cross
    where masked_fill fill index_fill clamp clamp_min clamp_max constant_pad_nd
    roi_align _roi_align_backward roi_pool _roi_pool_backward polar angle trace
"""
_PRODUCTS = {
    "mm": "matmul", "bmm": "matmul", "addmm": "linear", "baddbmm": "matmul", "addbmm": "matmul", "mv": "matmul",
    "addmv": "linear", "dot": "matmul", "vdot": "matmul", "addr": "linear", "convolution": "conv2d",
    "convolution_backward": "conv2d",
}  # fmt: skip
# Products of two matrices or vectors: position of the left one among the arguments; the right one follows it.
FIRST_FACTORS = {
    "mm": 0, "bmm": 0, "mv": 0, "dot": 0, "vdot": 0, "addmm": 1, "baddbmm": 1, "addmv": 1, "addbmm": 1, "addr": 1,
}  # fmt: skip
_REDUCTIONS = "sum mean nansum"
_SOURCES = """
    empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones full
    full_like new_full arange linspace logspace eye rand rand_like randn randn_like randint randint_like randperm
    uniform normal bernoulli exponential random log_normal geometric cauchy tril_indices triu_indices scalar_tensor
    _efficientzerotensor resize set
    multinomial hann_window
"""
_UNTOUCHED = """
    _local_scalar_dense item is_same_size _record_function_enter _record_function_enter_new _record_function_exit
    record_stream is_pinned pin_memory _pin_memory _has_compatible_shallow_copy_type size stride numel dim sym_size
    sym_stride sym_numel sym_storage_offset one_hot bincount histc _assert_async nms _version _unique _nested_tensor
    _fused_sdp_choice _amp_foreach_non_finite_check_and_unscale _amp_update_scale _assert_scalar _assert_tensor_metadata
    storage_offset result_type
"""
_LOSSES = {
    "_log_softmax": "cross_entropy", "_log_softmax_backward_data": "cross_entropy", "nll_loss_forward": "cross_entropy",
    "nll_loss_backward": "cross_entropy", "nll_loss2d_forward": "cross_entropy", "nll_loss2d_backward": "cross_entropy",
    "mse_loss": None, "mse_loss_backward": None, "smooth_l1_loss": "smooth_l1_loss",
    "smooth_l1_loss_backward": "smooth_l1_loss", "huber_loss": "smooth_l1_loss",
    "huber_loss_backward": "smooth_l1_loss", "binary_cross_entropy": "binary_cross_entropy",
    "binary_cross_entropy_backward": "binary_cross_entropy",
    "binary_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
    "_ctc_loss": "ctc_loss", "_ctc_loss_backward": "ctc_loss", "soft_margin_loss": None,
    "soft_margin_loss_backward": None, "multi_margin_loss": None, "multi_margin_loss_backward": None,
    "multilabel_margin_loss_forward": None, "multilabel_margin_loss_backward": None,
}  # fmt: skip
# Positions of the statistics that normalisations take and return, which GPUs keep in FP32.
_NORMALISATIONS = [
    Operation("native_batch_norm", Kind.ROUNDED, "batch_norm", (3, 4), (1, 2), (0,), (3, 4)),
    Operation("_native_batch_norm_legit", Kind.ROUNDED, "batch_norm", (3, 4), (1, 2), (0,)),
    Operation("_native_batch_norm_legit_no_training", Kind.ROUNDED, "batch_norm", (3, 4), (1, 2), (0,)),
    Operation("_batch_norm_with_update", Kind.ROUNDED, "batch_norm", (3, 4), (1, 2, 3), (0,)),
    Operation("native_batch_norm_backward", Kind.ROUNDED, "batch_norm", (3, 4, 5, 6), (), (1, 2, 2)),
    Operation("batch_norm_backward", Kind.ROUNDED, "batch_norm", (3, 4, 5, 6), (), (1, 2, 2)),
    Operation("native_layer_norm", Kind.ROUNDED, "layer_norm", (), (1, 2), (0,)),
    Operation("native_layer_norm_backward", Kind.ROUNDED, "layer_norm", (3, 4), (), (1, 5, 6)),
    Operation("native_group_norm", Kind.ROUNDED, "layer_norm", (), (1, 2), (0,)),
    Operation("native_group_norm_backward", Kind.ROUNDED, "layer_norm", (2, 3), (), (1, 4, 4)),
    Operation("_fused_rms_norm", Kind.ROUNDED, "layer_norm", (), (1,), (0,)),
    Operation("_fused_rms_norm_backward", Kind.ROUNDED, "layer_norm", (3,), (), (1, 4)),
    Operation("_weight_norm_interface", Kind.ROUNDED, None, (), (1,), (0,)),
    Operation("_weight_norm_interface_backward", Kind.ROUNDED, None, (3,), (), (1, 2)),
]
_ATTENTION = [
    Operation("_scaled_dot_product_flash_attention_for_cpu", Kind.ATTENTION, "matmul", (), (1,), (0,)),
    Operation("_scaled_dot_product_flash_attention_for_cpu_backward", Kind.ATTENTION, "matmul", (5,), (), (1, 2, 3)),
]
# Under the names of `halfscope list operations`, as far as automatic mixed precision has them on a list of their own.
_LISTED = {
    "relu": "relu", "threshold_backward": "relu", "gelu": "gelu", "gelu_backward": "gelu", "sigmoid": "sigmoid",
    "sigmoid_backward": "sigmoid", "tanh": "tanh", "tanh_backward": "tanh", "_softmax": "softmax",
    "_safe_softmax": "softmax", "_softmax_backward_data": "softmax", "leaky_relu": "leaky_relu",
    "leaky_relu_backward": "leaky_relu", "embedding": "embedding", "embedding_dense_backward": "embedding",
    "add": "add", "mul": "mul", "cat": "cat", "index_select": "index_select", "avg_pool2d": "avg_pool2d",
    "avg_pool2d_backward": "avg_pool2d", "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d", "native_dropout": "dropout",
    "native_dropout_backward": "dropout", "upsample_nearest2d": "upsample_nearest",
    "upsample_nearest2d_backward": "upsample_nearest", "roi_pool": "roi_pool", "_roi_pool_backward": "roi_pool",
}  # fmt: skip
# PyTorch's own lists, of operations that the simulator has no layer for: FP32 under torch.autocast("cuda").
_AUTOCAST_FP32 = """
    exp expm1 log log10 log2 log1p reciprocal rsqrt pow softplus prod cumsum cumprod norm linalg_vector_norm sum erfinv
    acos asin cosh sinh tan logsumexp softmax dist
"""
_REFUSED = {
    "_transformer_encoder_layer_fwd": "the fused encoder layer of inference; train, or call model.train()",
    "_native_multi_head_attention": "fused attention of inference; call model.train()",
    "mkldnn_rnn_layer": "oneDNN's recurrent layer, which computes all its steps in one operation",
    "_cudnn_rnn": "cuDNN's recurrent layer; set torch.backends.cudnn.enabled = False",
    "quantize_per_tensor": "integers of a quantised model",
    "_sparse_mm": "a sparse product",
}


def _make_table() -> dict[str, Operation]:
    lines = {
        Kind.VIEW: _VIEWS, Kind.EXACT: _EXACT, Kind.ROUNDED: _ROUNDED, Kind.REDUCTION: _REDUCTIONS,
        Kind.SOURCE: _SOURCES, Kind.UNTOUCHED: _UNTOUCHED,
    }  # fmt: skip
    entries = [Operation(name, kind, _LISTED.get(name)) for kind, names in lines.items() for name in names.split()]
    entries += [Operation(name, Kind.PRODUCT, listed) for name, listed in _PRODUCTS.items()]
    entries += [Operation(name, Kind.LOSS, listed) for name, listed in _LOSSES.items()]
    entries += [*_NORMALISATIONS, *_ATTENTION]
    entries += [Operation(name, Kind.REFUSED, reason=reason) for name, reason in _REFUSED.items()]
    table = {entry.name: entry for entry in entries}
    if len(table) != len(entries):
        names = [entry.name for entry in entries]
        raise ValueError(f"operations: listed twice: {sorted({name for name in names if names.count(name) > 1})}")
    return table


TABLE = _make_table()


def table_text(words: Sequence[str] = ()) -> str:
    """The table by name, a line each, with the reason of a refusal: all names, or those with one of `words` in them."""
    entries = [TABLE[name] for name in sorted(TABLE) if not words or any(word in name for word in words)]
    width = max((len(entry.name) for entry in entries), default=0)
    lines = []
    for entry in entries:
        reason = f": {entry.reason}" if entry.reason else ""
        lines.append(f"{entry.name:{width}}  {entry.kind.value}{reason}")
    return "\n".join(lines)


def operation_of(func: Any) -> Operation | None:
    """The line of an operator; None of one that the table does not have."""
    name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else str(func)
    return TABLE.get(name) or TABLE.get(name[:-1] if name.endswith("_") else name)


def is_composed(func: Any) -> bool:
    """Whether PyTorch has no kernel of its own for it, so that autograd sees the operations that it is composed of."""
    if not (hasattr(func, "name") and hasattr(func, "decompose")):
        return False
    from halfscope.torch.private import has_kernel  # here, so that the table can be read without PyTorch

    own = any(has_kernel(func, key) for key in ("CPU", "CUDA", "CompositeExplicitAutograd"))
    return not own and has_kernel(func, "CompositeImplicitAutograd")


def autocast_list(operation: Operation, policy: Any) -> str:
    """The list that `policy` has an operation on: allow, deny, infer or refuse."""
    if operation.listed is not None:
        return str(policy.list_of(operation.listed))
    if policy.fp32_parameters and operation.name in _AUTOCAST_FP32.split():
        return "deny"
    return str(policy.list_of(None))


def writes_to(func: Any) -> tuple[str, ...]:
    """Names of the arguments that an operator writes to, by its schema."""
    from halfscope.torch.private import schema_of  # here, so that the table can be read without PyTorch

    return tuple(
        argument.name for argument in schema_of(func).arguments if argument.alias_info and argument.alias_info.is_write
    )


@cache
def written_arguments(func: Any) -> frozenset[int | str]:
    """Positions and names of all arguments that an operator writes to: its schema's, and `updated` of its line."""
    from halfscope.torch.private import schema_of  # here, so that the table can be read without PyTorch

    schema = schema_of(func)
    if schema is None:
        return frozenset()
    line, arguments, names = operation_of(func), schema.arguments, writes_to(func)
    positions = {place for place, argument in enumerate(arguments) if argument.name in names}
    positions.update(() if line is None else line.updated)
    return frozenset({*positions, *(arguments[place].name for place in positions)})


def is_random(func: Any) -> bool:
    """Whether an operator draws random numbers, so that a second run has others."""
    import torch  # here, so that the table can be read without PyTorch

    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def target_of(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The argument that an operation writes to, `out` or the first of one in place; None of all others."""
    target = kwargs.get("out")
    if target is None and str(func.overloadpacket.__name__).endswith("_"):
        target = args[0]
    return target
