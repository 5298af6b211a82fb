"""Chooses one loss scale for a network's gradients: counts them over some steps, then asks which power of two fits."""

from __future__ import annotations

import numpy as np

import halfscope

STEPS = 20
# Standard deviations of the gradients of three layers; the last layer's are the smallest.
LAYERS = {"conv1": 3e-4, "conv2": 2e-5, "fc": 4e-7}


def gradients(seed: int) -> dict[str, np.ndarray]:
    """One step's gradients by name, in FP32 and of the unscaled loss: replace these by your own."""
    random = np.random.default_rng(seed)
    return {name: random.normal(0, deviation, 50_000).astype(np.float32) for name, deviation in LAYERS.items()}


def main() -> None:
    histograms = {name: halfscope.Histogram() for name in LAYERS}
    for step in range(STEPS):
        for name, gradient in gradients(step).items():
            histograms[name].update(gradient)

    print("layer   flushed at scale 1   at 2^12")
    for name, histogram in histograms.items():
        unscaled, scaled = (histogram.what_if(scale) for scale in (1, 2**12))
        print(f"{name:6} {unscaled.flushed_fraction:18.2%} {scaled.flushed_fraction:9.2%}")

    advice = halfscope.advise_scale(histograms)
    print(f"scales that fit: 2^{advice.joint_window_log2[0]} to 2^{advice.joint_window_log2[1]}")
    print(f"recommended: 2^{advice.recommended_scale_log2}")
    print(advice.verdict)


if __name__ == "__main__":
    main()
