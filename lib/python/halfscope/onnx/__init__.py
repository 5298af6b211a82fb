"""ONNX graphs in 16 bits: the nodes that must stay FP32, found by computing the graph with each of them in FP32."""

from __future__ import annotations

from halfscope.onnx.check import GraphCheck, check

__all__ = ["GraphCheck", "check"]
