"""ONNX graphs in 16 bits: the nodes that must stay FP32, found by computing the graph with each of them in FP32."""

from __future__ import annotations

try:
    import onnx  # noqa: F401
except ImportError as error:
    raise ImportError("halfscope.onnx needs the package onnx: pip install onnx") from error

from halfscope.onnx.check import GraphCheck, check

__all__ = ["GraphCheck", "check"]
