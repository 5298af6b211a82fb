"""Powers of two moved between layers, so that a model's tensors fit FP16 and its FP32 outputs keep their bits."""
