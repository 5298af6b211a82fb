"""The steps of `gpu-check --first`: trainings and checks, each with the estimate of its seconds on an H100."""

from __future__ import annotations

from dataclasses import dataclass

SEEDS = 3


@dataclass(frozen=True)
class Training:
    """One experiment at full size, cut to what a few minutes hold: the arms of its claim, fewer steps."""

    experiment: str
    arms: tuple[str, ...]
    settings: tuple[str, ...]  # KEY=VALUE over --size full
    seconds: float  # one seed of all arms, start and evaluation included


TRAININGS = (
    Training("master-copy", ("fp32", "fp16_mixed", "fp16_no_master"), ("steps=469",), 24),
    Training("detection-loss-scale", ("fp32", "fp16_s1", "fp16_s8"), ("steps=100", "evaluate_examples=500"), 30),
    Training("language-model-loss-scale", ("fp32", "fp16_s1", "fp16_s128"), ("steps=30", "evaluate_every=0"), 38),
    Training("batchnorm-reduction", ("fp32", "fp32_sums", "fp16_sequential"), ("steps=100",), 18),
)


@dataclass(frozen=True)
class Sanitized:
    """Tests under one tool of compute-sanitizer."""

    tool: str
    tests: str  # as Catch2 chooses them
    seconds: float


# Kernels and tests that changed since an H200 ran all of them on 2026-11-27, and what it had no time for.
SANITIZED = (
    Sanitized("initcheck", "[gemm][native][cuda]", 20),  # gathered matrices, whose gaps are zeros now
    Sanitized("racecheck", "large products*", 40),
)
CAPTURES, BENCH, TORCH = 10.0, 25.0, 25.0
