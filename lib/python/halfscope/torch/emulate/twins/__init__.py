"""Other computations of the same step beside the emulated one: FP32, noise, causes of zeros."""
