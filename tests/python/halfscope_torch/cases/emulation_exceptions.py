"""Operations whose results under emulation are not those of PyTorch's CPU kernels, with the reason."""

from __future__ import annotations

SCALAR = "a scalar is FP32, as on a GPU; the CPU rounds it to the tensor's format first"
STEPS = "the CPU rounds between the steps that it is composed of; here, as on a GPU, the result is rounded once"
SUMS = "the CPU adds in the tensor's format; here an FP32 sum is rounded once"
STATISTICS = (
    "statistics are FP32, as on a GPU; the CPU has them in the input's format, or adds them up in another order"
)
LIBRARY = "the CPU's loop is further from the exact result than one rounding, or depends on its instruction set"

# By operation: the reason, and the formats in which it differs.
EXCEPTIONS: dict[str, tuple[str, str]] = {
    "add": (SCALAR, "bf16 fp16"),
    "sub": (SCALAR, "bf16 fp16"),
    "pow": (STEPS, "fp16"),
    "floor_divide": (STEPS, "bf16 fp16"),
    "sigmoid_backward": (STEPS, "fp16"),
    "xlogy": (STEPS, "bf16 fp16"),
    "logit": (STEPS, "bf16 fp16"),
    "logit_backward": (STEPS, "bf16 fp16"),
    "glu_backward": (STEPS, "bf16 fp16"),
    "linalg_cross": (STEPS, "bf16 fp16"),
    "upsample_linear1d": (STEPS, "bf16 fp16"),
    "grid_sampler_2d": (STEPS, "bf16 fp16"),
    "upsample_bicubic2d": (STEPS, "bf16 fp16"),
    "_softmax": (STEPS, "bf16 fp16"),
    "_masked_softmax": (STEPS, "bf16 fp16"),
    "native_dropout": (STEPS, "bf16 fp16"),
    "mse_loss": (STEPS, "bf16 fp16"),
    "mse_loss_backward": (STEPS, "bf16 fp16"),
    "smooth_l1_loss": (STEPS, "fp16"),
    "huber_loss": (STEPS, "bf16"),
    "huber_loss_backward": (STEPS, "bf16 fp16"),
    "soft_margin_loss": (STEPS, "bf16 fp16"),
    "soft_margin_loss_backward": (STEPS, "bf16 fp16"),
    "_log_softmax": (STEPS, "bf16 fp16"),
    "nll_loss_forward": (STEPS, "fp16"),
    "binary_cross_entropy": (STEPS, "bf16 fp16"),
    "binary_cross_entropy_backward": (STEPS, "bf16 fp16"),
    "binary_cross_entropy_with_logits": (STEPS, "bf16 fp16"),
    "_index_put_impl": (SUMS, "bf16 fp16"),
    "prod": (SUMS, "bf16 fp16"),
    "cumsum": (SUMS, "fp16"),
    "logcumsumexp": (SUMS, "bf16 fp16"),
    "embedding_dense_backward": (SUMS, "bf16 fp16"),
    "_embedding_bag": (SUMS, "bf16"),
    "_embedding_bag_dense_backward": (SUMS, "bf16 fp16"),
    "unfold_backward": (SUMS, "bf16 fp16"),
    "col2im": (SUMS, "bf16 fp16"),
    "replication_pad1d_backward": (SUMS, "bf16 fp16"),
    "reflection_pad2d_backward": (SUMS, "bf16 fp16"),
    "replication_pad2d_backward": (SUMS, "bf16 fp16"),
    "grid_sampler_2d_backward": (SUMS, "bf16 fp16"),
    "avg_pool2d_backward": (SUMS, "bf16 fp16"),
    "_adaptive_avg_pool2d_backward": (SUMS, "bf16 fp16"),
    "_adaptive_avg_pool3d": (SUMS, "bf16 fp16"),
    "_adaptive_avg_pool3d_backward": (SUMS, "bf16 fp16"),
    "max_pool2d_with_indices_backward": (SUMS, "bf16 fp16"),
    "native_batch_norm": (STATISTICS, "bf16 fp16"),
    "_native_batch_norm_legit": (STATISTICS, "bf16 fp16"),
    "_native_batch_norm_legit_no_training": (STATISTICS, "bf16 fp16"),
    "_batch_norm_with_update": (STATISTICS, "bf16 fp16"),
    "native_batch_norm_backward": (STATISTICS, "bf16 fp16"),
    "batch_norm_backward": (STATISTICS, "bf16 fp16"),
    "native_layer_norm": (STATISTICS, "bf16 fp16"),
    "native_layer_norm_backward": (STATISTICS, "bf16 fp16"),
    "native_group_norm": (STATISTICS, "bf16 fp16"),
    "native_group_norm_backward": (STATISTICS, "bf16 fp16"),
    "sin": (LIBRARY, "fp16"),
    "erf": (LIBRARY, "bf16 fp16"),
    "sinh": (LIBRARY, "bf16"),
    "cosh": (LIBRARY, "bf16"),
    "fmod": (LIBRARY, "bf16"),
    "remainder": (LIBRARY, "bf16"),
    "gelu": (LIBRARY, "bf16 fp16"),
    "gelu_backward": (LIBRARY, "bf16 fp16"),
}
