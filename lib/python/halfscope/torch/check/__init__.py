"""One entry: state and constants before a step, the step beside FP32, tried remedies, loss scale and updates."""
