"""Calls of the operations that an emulation computes on tensors of a shape: sums, movements, selections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from elementwise_cases import Call, Calls, random, special

Tensor = torch.Tensor


def near(kind: torch.dtype, *shape: int, seed: int = 0) -> Tensor:
    """Around 1, so that no sum overflows."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(kind)


def whole(limit: int, *shape: int) -> Tensor:
    """Indices below `limit`."""
    return torch.randint(limit, shape, generator=torch.Generator().manual_seed(limit))


def wide(kind: torch.dtype, *shape: int) -> Tensor:
    """Special numbers among random ones of any exponent."""
    numbers = random(kind, *shape)
    flat, numbers_special = numbers.view(-1), special(kind)
    flat[: len(numbers_special)] = numbers_special[: len(flat)]
    return numbers


def distinct(kind: torch.dtype) -> Tensor:
    """In no order, so that a sort has one answer."""
    return (torch.randperm(200, generator=torch.Generator().manual_seed(0)) / 128 - 1).to(kind)


def case(*make: Callable[[torch.dtype], tuple], **options: Any) -> Calls:
    """Calls with the arguments that each of `make` returns."""
    return lambda kind: iter([(one(kind), options) for one in make])


def _movements() -> dict[str, Calls]:
    index = whole(64, 64, 8)
    return {
        "cat": case(lambda k: ([wide(k, 64, 3), near(k, 64, 2)], 1)),
        "stack": case(lambda k: ([wide(k, 64, 3), near(k, 64, 3)], 1)),
        "index": case(lambda k: (wide(k, 64, 3), [whole(64, 9)])),
        "_unsafe_index": case(lambda k: (wide(k, 64, 3), [whole(64, 9)])),
        "index_select": case(lambda k: (wide(k, 64, 3), 0, whole(64, 9))),
        "gather": case(lambda k: (wide(k, 64, 8), 0, index)),
        "take": case(lambda k: (wide(k, 64, 8), whole(512, 70))),
        "masked_select": case(lambda k: (wide(k, 64, 8), index > 9)),
        "masked_scatter": case(lambda k: (wide(k, 64, 8), index > 9, random(k, 64, 8, seed=1))),
        "masked_scatter_backward": case(lambda k: (wide(k, 64, 8), index > 9, [512])),
        "flip": case(lambda k: (wide(k, 64, 3), [0])),
        "roll": case(lambda k: (wide(k, 64, 3), [2], [0])),
        "repeat": case(lambda k: (wide(k, 64, 3), [2, 1])),
        "tril": case(lambda k: (wide(k, 64, 64),)),
        "triu": case(lambda k: (wide(k, 64, 64), 1)),
        "embedding": case(lambda k: (wide(k, 64, 8), whole(64, 5, 3))),
        "select_backward": case(lambda k: (wide(k, 64, 8), [64, 3, 8], 1, 2)),
        "slice_backward": case(lambda k: (wide(k, 64, 8), [64, 20], 1, 3, 19, 2)),
        "diagonal_backward": case(lambda k: (wide(k, 64), [64, 64], 0, 0, 1)),
        "block_diag": case(lambda k: ([wide(k, 9, 8), near(k, 2, 3)],)),
        "scatter": case(lambda k: (wide(k, 64, 8), 0, index[:9].sort(0)[0], 0.1)),
        "select_scatter": case(lambda k: (wide(k, 64, 8), near(k, 64), 1, 2)),
        "slice_scatter": case(lambda k: (wide(k, 64, 8), near(k, 64, 2), 1, 2, 4)),
        "as_strided_scatter": case(lambda k: (wide(k, 64, 8), near(k, 4, 4), [4, 4], [8, 1], 3)),
        "constant_pad_nd": case(lambda k: (wide(k, 64, 3), [1, 2], 0.1)),
        "index_fill": case(lambda k: (wide(k, 64, 8), 0, whole(64, 9), 0.1)),
        "index_put": case(
            lambda k: (wide(k, 64, 8), [torch.arange(9)], near(k, 9, 8)),
            lambda k: (near(k, 64, 8), [torch.arange(9)], near(k, 9, 8, seed=1), True),
        ),
        "_index_put_impl": case(lambda k: (near(k, 64, 8), [whole(64, 40)], near(k, 40, 8, seed=1), True)),
        "_unsafe_index_put": case(lambda k: (near(k, 64, 8), [torch.arange(9)], near(k, 9, 8, seed=1), True)),
        "_pack_padded_sequence": case(lambda k: (wide(k, 7, 3, 5), torch.tensor([7, 5, 2]), False)),
        "_pack_padded_sequence_backward": case(
            lambda k: (wide(k, 14, 5), [7, 3, 5], torch.tensor([3, 3, 2, 2, 2, 1, 1]), False)
        ),
        "im2col": case(lambda k: (wide(k, 2, 3, 9, 8), [3, 2], [1, 1], [1, 0], [2, 1])),
        "pixel_shuffle": case(lambda k: (wide(k, 2, 8, 3, 4), 2)),
        "pixel_unshuffle": case(lambda k: (wide(k, 2, 3, 4, 6), 2)),
        "channel_shuffle": case(lambda k: (wide(k, 2, 8, 3, 4), 2)),
        "upsample_nearest1d": case(lambda k: (wide(k, 2, 8, 9), [13])),
        "upsample_nearest2d": case(lambda k: (wide(k, 2, 8, 5, 6), [7, 13])),
        "_upsample_nearest_exact2d": case(lambda k: (wide(k, 2, 8, 5, 6), [7, 13])),
        "searchsorted": case(lambda k: (near(k, 64).sort()[0], near(k, 9, seed=1))),
        "bucketize": case(lambda k: (near(k, 9), near(k, 64, seed=1).sort()[0])),
        "isin": case(lambda k: (near(k, 640), near(k, 640, seed=1))),
        "bitwise_and": lambda kind: iter([]), "bitwise_or": lambda kind: iter([]), "bitwise_not": lambda kind: iter([]),
    }  # fmt: skip


def _selections() -> dict[str, Calls]:
    one = case(lambda k: (near(k, 64, 80), 1))
    return {
        "amax": case(lambda k: (near(k, 64, 80), [1])),
        "amin": case(lambda k: (near(k, 64, 80), [0])),
        "max": case(lambda k: (near(k, 64, 80),)),
        "min": case(lambda k: (near(k, 64, 80),)),
        "aminmax": case(lambda k: (near(k, 64, 80),)),
        "topk": case(lambda k: (distinct(k), 5)),
        "sort": case(lambda k: (distinct(k),)),
        "argsort": case(lambda k: (distinct(k),)),
        "argmax": one,
        "argmin": one,
        "kthvalue": case(lambda k: (distinct(k), 3)),
        "median": case(lambda k: (near(k, 63, 8),)),
        "unique_dim": case(lambda k: (near(k, 64).sign()[:, None], 0)),
        "_unique2": case(lambda k: (near(k, 64, 8),)),
        "unique_consecutive": case(lambda k: (near(k, 64).sign(),)),
    }


def _sums() -> dict[str, Calls]:
    table = case(lambda k: (near(k, 40, 300), 1))
    several = case(lambda k: (near(k, 40, 300), [1]), lambda k: (near(k, 40, 30), [0]))
    whole_indices = whole(40, 300)
    return {
        "sum": several, "mean": several, "nansum": several, "prod": case(lambda k: (near(k, 40, 9), 1)),
        "cumsum": table, "cumprod": case(lambda k: (near(k, 40, 9), 1)), "logcumsumexp": table,
        "logsumexp": several, "var": several, "std": several, "var_mean": several, "std_mean": several,
        "norm": case(lambda k: (near(k, 40, 300), 2, [1])),
        "linalg_vector_norm": case(lambda k: (near(k, 40, 300), 2, [1]), lambda k: (near(k, 40, 300), 1, [1])),
        "dist": case(lambda k: (near(k, 300), near(k, 300, seed=1))),
        "trace": case(lambda k: (near(k, 40, 40),)),
        "_cdist_forward": case(lambda k: (near(k, 9, 5), near(k, 8, 5, seed=1), 2.0, None)),
        "_cdist_backward": case(
            lambda k: (near(k, 9, 8), near(k, 9, 5), near(k, 8, 5, seed=1), 2.0, near(k, 9, 8).abs() + 1)
        ),
        "index_add": case(lambda k: (near(k, 40, 8), 0, whole_indices, near(k, 300, 8, seed=1))),
        "scatter_add": case(lambda k: (near(k, 40, 8), 0, whole(40, 300, 8), near(k, 300, 8, seed=1))),
        "scatter_reduce": case(lambda k: (near(k, 40, 8), 0, whole(40, 300, 8), near(k, 300, 8, seed=1), "amax")),
        "embedding_dense_backward": case(lambda k: (near(k, 300, 8), whole_indices, 40, -1, False)),
        "_embedding_bag": case(lambda k: (near(k, 40, 8), whole_indices, torch.arange(0, 300, 30))),
        "_embedding_bag_dense_backward": case(
            lambda k: (near(k, 10, 8), whole_indices, torch.arange(300) // 30, torch.full((10,), 30),
                       torch.zeros(10, dtype=torch.int64), 40, False, 0, None)
        ),
        "linalg_cross": case(lambda k: (wide(k, 64, 3), random(k, 64, 3, seed=1))),
        "unfold_backward": case(lambda k: (near(k, 9, 5, 4), [12, 5], 0, 4, 1)),
        "col2im": case(lambda k: (near(k, 2, 27, 12), [5, 6], [3, 3], [1, 1], [0, 0], [1, 1])),
    }  # fmt: skip


def _resized() -> dict[str, Calls]:
    image, grid = (2, 3, 5, 6), (2, 4, 4, 2)
    cases = {
        "reflection_pad1d": case(lambda k: (wide(k, 2, 9, 8), [2, 1])),
        "replication_pad1d": case(lambda k: (wide(k, 2, 9, 8), [2, 1])),
        "reflection_pad2d": case(lambda k: (wide(k, *image), [2, 1, 1, 2])),
        "replication_pad2d": case(lambda k: (wide(k, *image), [2, 1, 1, 2])),
        "reflection_pad1d_backward": case(lambda k: (near(k, 2, 9, 11), near(k, 2, 9, 8), [2, 1])),
        "replication_pad1d_backward": case(lambda k: (near(k, 2, 9, 11), near(k, 2, 9, 8), [2, 1])),
        "reflection_pad2d_backward": case(lambda k: (near(k, 2, 3, 8, 9), near(k, *image), [2, 1, 1, 2])),
        "replication_pad2d_backward": case(lambda k: (near(k, 2, 3, 8, 9), near(k, *image), [2, 1, 1, 2])),
        "upsample_linear1d": case(lambda k: (near(k, 2, 3, 6), [13], False)),
        "upsample_linear1d_backward": case(lambda k: (near(k, 2, 3, 13), [13], [2, 3, 6], False)),
        "upsample_nearest1d_backward": case(lambda k: (near(k, 2, 3, 13), [13], [2, 3, 6])),
        "grid_sampler_2d": case(lambda k: (near(k, *image), near(k, *grid, seed=1) / 2, 0, 0, False)),
        "grid_sampler_2d_backward": case(
            lambda k: (near(k, 2, 3, 4, 4), near(k, *image), near(k, *grid, seed=1) / 2, 0, 0, False, [True, True])
        ),
    }
    for name in ("bilinear", "bicubic"):
        cases[f"upsample_{name}2d"] = case(lambda k: (near(k, *image), [7, 13], False))
        cases[f"upsample_{name}2d_backward"] = case(lambda k: (near(k, 2, 3, 7, 13), [7, 13], [*image], False))
    for name in ("upsample_nearest2d_backward", "_upsample_nearest_exact2d_backward"):
        cases[name] = case(lambda k: (near(k, 2, 3, 7, 13), [7, 13], [*image]))
    return cases


def _complex() -> dict[str, Calls]:
    def calls(kind: torch.dtype) -> Iterator[Call]:
        yield (near(torch.float32, 9), near(torch.float32, 9, seed=1)), {}

    return {"polar": calls}


SHAPED = {**_movements(), **_selections(), **_sums(), **_resized(), **_complex()}
