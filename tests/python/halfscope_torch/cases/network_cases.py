"""Calls of the operations that layers are made of, beside products: softmax, pooling, normalisations, losses."""

from __future__ import annotations

from collections.abc import Callable

import torch

from elementwise_cases import Calls
from shaped_cases import case, near, whole

FP32 = torch.float32
IMAGES = (4, 8, 10, 12)


def _layers() -> dict[str, Calls]:
    images = (2, 8, 10, 12)
    return {
        "_softmax": case(lambda k: (near(k, 40, 300) * 8, 1, False), lambda k: (near(k, 40, 30), 0, False)),
        "_safe_softmax": case(lambda k: (near(k, 40, 300) * 8, 1)),
        "_softmax_backward_data": case(
            lambda k: (near(k, 40, 300), near(FP32, 40, 300, seed=1).softmax(1).to(k), 1, k)
        ),
        "_masked_softmax": case(lambda k: (near(k, 2, 2, 9, 30), torch.zeros(2, 2, 9, 30, dtype=torch.bool), 3, 2)),
        "native_dropout": case(lambda k: (near(k, 40, 300), 0.3, True)),
        "native_dropout_backward": case(lambda k: (near(k, 40, 300), whole(2, 40, 300) > 0, 1.43)),
        "avg_pool2d": case(lambda k: (near(k, *images), [3, 3], [2, 2])),
        "avg_pool2d_backward": case(
            lambda k: (near(k, 2, 8, 4, 5), near(k, *images), [3, 3], [2, 2], [0, 0], False, True, None)
        ),
        "avg_pool3d": case(lambda k: (near(k, *images), [3, 3, 3])),
        "avg_pool3d_backward": case(
            lambda k: (near(k, 2, 2, 3, 4), near(k, *images), [3, 3, 3], [3, 3, 3], [0, 0, 0], False, True, None)
        ),
        "_adaptive_avg_pool2d": case(lambda k: (near(k, *images), [3, 4])),
        "_adaptive_avg_pool2d_backward": case(lambda k: (near(k, 2, 8, 3, 5), near(k, *images))),
        "_adaptive_avg_pool3d": case(lambda k: (near(k, *images), [3, 3, 4])),
        "_adaptive_avg_pool3d_backward": case(lambda k: (near(k, 2, 3, 3, 5), near(k, *images))),
        "max_pool2d_with_indices": case(lambda k: (near(k, *images), [3, 3], [2, 2])),
        "max_pool3d_with_indices": case(lambda k: (near(k, *images), [3, 3, 3])),
        "adaptive_max_pool2d": case(lambda k: (near(k, *images), [3, 4])),
        "max_pool2d_with_indices_backward": case(
            lambda k: (near(k, 2, 8, 4, 5), near(k, *images), [3, 3], [2, 2], [0, 0], [1, 1], False,
                       whole(120, 2, 8, 4, 5))
        ),
        "max_pool3d_with_indices_backward": case(
            lambda k: (near(k, 2, 2, 3, 4), near(k, *images), [3, 3, 3], [3, 3, 3], [0, 0, 0], [1, 1, 1], False,
                       whole(960, 2, 2, 3, 4))
        ),
        "adaptive_max_pool2d_backward": case(lambda k: (near(k, 2, 8, 3, 4), near(k, *images), whole(120, 2, 8, 3, 4))),
    }  # fmt: skip


def mixed(make: Callable[[torch.dtype, torch.dtype], tuple]) -> Calls:
    """With weights of 16 bits, and with FP32 weights."""
    return case(lambda k: make(k, k), lambda k: make(k, FP32))


def _batch_norms() -> dict[str, Calls]:
    def given(k: torch.dtype, w: torch.dtype) -> tuple:
        """Input, weight, bias and running averages."""
        return near(k, *IMAGES), near(w, 8, seed=1), near(w, 8, seed=2), near(w, 8, seed=3), near(w, 8).abs()

    def backward(k: torch.dtype, w: torch.dtype) -> tuple:
        """The gradient, and without bias what `given` has; then saved statistics, which are FP32."""
        images, weight, _, mean, variance = given(k, w)
        saved = near(FP32, 8, seed=4), near(FP32, 8, seed=5).abs() + 0.5
        return near(k, *IMAGES, seed=9), images, weight, mean, variance, *saved, True, 1e-5, [True] * 3

    def native(k: torch.dtype, w: torch.dtype, training: bool = True) -> tuple:
        return *given(k, w), training, 0.1, 1e-5

    return {
        "native_batch_norm": case(
            lambda k: native(k, k), lambda k: native(k, k, False), lambda k: native(k, FP32),
            lambda k: native(k, FP32, False)
        ),
        "_native_batch_norm_legit": mixed(native),
        "_native_batch_norm_legit_no_training": mixed(lambda k, w: (*given(k, w), 0.1, 1e-5)),
        "_batch_norm_with_update": mixed(lambda k, w: (*given(k, w), 0.1, 1e-5)),
        "native_batch_norm_backward": mixed(backward),
        "batch_norm_backward": mixed(lambda k, w: (*backward(k, w), torch.empty(0, dtype=torch.uint8))),
    }  # fmt: skip


def _normalisations() -> dict[str, Calls]:
    tokens, grouped = (6, 5, 32), (4, 8, 120, 2)

    def layer_norm(k: torch.dtype, w: torch.dtype) -> tuple:
        statistics = near(w, 6, 5, 1, seed=3), near(w, 6, 5, 1, seed=4).abs() + 0.5
        weights = near(w, 32, seed=1), near(w, 32, seed=2)
        return near(k, *tokens, seed=9), near(k, *tokens), [32], *statistics, *weights, [True] * 3

    def group_norm(k: torch.dtype, w: torch.dtype) -> tuple:
        statistics = near(w, 4, 2, seed=3), near(w, 4, 2, seed=4).abs() + 0.5
        return near(k, *IMAGES, seed=9), near(k, *IMAGES), *statistics, near(w, 8, seed=1), *grouped, [True] * 3

    rms = near(FP32, 6, 5, 1).abs() + 0.5
    return {
        "native_layer_norm": mixed(
            lambda k, w: (near(k, *tokens), [32], near(w, 32, seed=1), near(w, 32, seed=2), 1e-5)
        ),
        "native_layer_norm_backward": mixed(layer_norm),
        "native_group_norm": mixed(
            lambda k, w: (near(k, *IMAGES), near(w, 8, seed=1), near(w, 8, seed=2), *grouped, 1e-5)
        ),
        "native_group_norm_backward": mixed(group_norm),
        "_fused_rms_norm": case(lambda k: (near(k, *tokens), [32], near(k, 32, seed=1), 1e-5)),
        "_fused_rms_norm_backward": case(
            lambda k: (near(k, *tokens, seed=9), near(k, *tokens), [32], rms, near(k, 32, seed=1), [True] * 2)
        ),
        "_weight_norm_interface": case(lambda k: (near(k, 8, 30), near(k, 8, 1, seed=1), 0)),
        "_weight_norm_interface_backward": case(
            lambda k: (near(k, 8, 30), near(k, 8, 30, seed=1), near(k, 8, 1, seed=2),
                       near(FP32, 8, 1).abs() + 1, 0)
        ),
    }  # fmt: skip


def _losses() -> dict[str, Calls]:
    log_softmax = lambda k: near(FP32, 60, 9).log_softmax(1).to(k)  # noqa: E731
    labels, pairs, unit = whole(9, 60), {}, lambda k, seed=0: near(FP32, 60, 9, seed=seed).sigmoid().to(k)
    for name, backward, extra in (
        ("mse_loss", "mse_loss_backward", ()), ("smooth_l1_loss", "smooth_l1_loss_backward", (0.5,)),
        ("huber_loss", "huber_loss_backward", (0.5,)), ("soft_margin_loss", "soft_margin_loss_backward", ()),
    ):  # fmt: skip
        pairs[name] = case(*(lambda k, r=r, e=extra: (near(k, 60, 9), near(k, 60, 9, seed=1), r, *e) for r in (0, 1)))
        pairs[backward] = case(
            lambda k, e=extra: (near(k, 60, 9, seed=2), near(k, 60, 9), near(k, 60, 9, seed=1), 0, *e)
        )
    return {
        **pairs,
        "_log_softmax": case(lambda k: (near(k, 60, 9) * 8, 1, False)),
        "_log_softmax_backward_data": case(lambda k: (near(k, 60, 9), log_softmax(k), 1, k)),
        "nll_loss_forward": case(*(lambda k, r=r: (log_softmax(k), labels, None, r, -100) for r in (0, 1))),
        "nll_loss_backward": case(
            lambda k: (near(k, 1)[0], log_softmax(k), labels, None, 1, -100, torch.tensor(60.0).to(k))
        ),
        "nll_loss2d_forward": case(lambda k: (near(k, 2, 3, 5, 5), whole(3, 2, 5, 5), None, 1, -100)),
        "nll_loss2d_backward": case(
            lambda k: (near(k, 1)[0], near(k, 2, 3, 5, 5), whole(3, 2, 5, 5), None, 1, -100, torch.tensor(50.0).to(k))
        ),
        "binary_cross_entropy": case(*(lambda k, r=r: (unit(k), unit(k, 1), None, r) for r in (0, 1))),
        "binary_cross_entropy_backward": case(lambda k: (near(k, 60, 9), unit(k), unit(k, 1), None, 0)),
        "binary_cross_entropy_with_logits": case(lambda k: (near(k, 60, 9), unit(k, 1), None, None, 0)),
        "multi_margin_loss": case(lambda k: (near(k, 60, 9), labels)),
        "multi_margin_loss_backward": case(lambda k: (near(k, 1)[0], near(k, 60, 9), labels, 1, 1)),
        "multilabel_margin_loss_forward": case(lambda k: (near(k, 60, 9), whole(9, 60, 9), 1)),
        "multilabel_margin_loss_backward": case(
            lambda k: (near(k, 1)[0], near(k, 60, 9), whole(9, 60, 9), 1, near(k, 60, 9).sign().abs())
        ),
        "_ctc_loss": case(
            lambda k: (near(k, 12, 2, 5).float().log_softmax(2).to(k), whole(4, 2, 3) + 1, [12, 12], [3, 3])
        ),
        "_ctc_loss_backward": case(
            lambda k: (near(k, 2), near(k, 12, 2, 5).float().log_softmax(2).to(k), whole(4, 2, 3) + 1, [12, 12], [3, 3],
                       near(k, 2).abs(), near(k, 2, 12, 7), 0)
        ),
        "_thnn_fused_lstm_cell": case(lambda k: (near(k, 3, 16), near(k, 3, 16, seed=1), near(k, 3, 4))),
    }  # fmt: skip


NETWORK = {**_layers(), **_batch_norms(), **_normalisations(), **_losses()}
