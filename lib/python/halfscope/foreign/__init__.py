"""Tensors of files that other packages read: ONNX, HDF5, PyTorch's `.distcp` folders, shards of DeepSpeed's ZeRO-3."""
