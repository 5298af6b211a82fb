"""Runs of an ONNX graph in FP32 and in a format, and whether its outputs are FP32's but for round-off."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from halfscope.onnx.evaluator import Evaluator
from halfscope.onnx.graphs import Graphs
from halfscope.roundoff import relative_error

_SEEDS = (1, 2, 3)
_TOLERANCE = 4.0  # times what noise of one rounding for each result makes
_MOST = 0.1  # an output that is farther off is of no use, though roundings that are amplified explain it

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Distance:
    """An output beside FP32's. error: norm of the difference over FP32's, or the share of integers that differ."""

    name: str
    error: float
    floor: float
    limit: float

    @property
    def is_beyond(self) -> bool:
        return self.error > self.limit


@dataclass
class Runs:
    """A graph, its inputs, and its runs."""

    graphs: Graphs
    inputs: Arrays
    format: str
    unit: float
    count: int = 0
    exact: dict[str, Any] = field(init=False)  # results of the outer graph
    floors: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self.exact = self.results(self.graphs.model)
        self._outputs = [value.name for value in self.graphs.model.graph.output]
        noisy = [self.results(self.graphs.noisy(self.format, self.unit, seed)) for seed in _SEEDS]
        inputs_alone = self.rounded(frozenset(node.number for node in self.graphs.nodes))
        self.floors = {name: self._floor(name, noisy, inputs_alone) for name in self._outputs}

    def _floor(self, name: str, noisy: list[dict[str, Any]], inputs_alone: dict[str, Any]) -> float:
        """The most that noise makes, or that rounded inputs alone make as long as the output is of use."""
        inputs = self._error(inputs_alone, name)
        return max(*(self._error(each, name) for each in noisy), inputs if inputs <= _MOST else 0.0)

    def rounded(self, keep: frozenset[int] = frozenset()) -> dict[str, Any]:
        """Results of the outer graph with the nodes of `keep` in FP32."""
        return self.results(self.graphs.rounded(self.format, keep))

    def distances(self, results: Mapping[str, Any]) -> list[Distance]:
        """An FP32 output that is not finite itself says nothing, and is left out."""
        found = []
        for name in self._outputs:
            exact = self.exact[name]
            if isinstance(exact, np.ndarray) and _is_finite(exact):
                floor = self.floors[name]
                limit = min(_MOST, _TOLERANCE * max(floor, self.unit if exact.dtype.kind == "f" else 0.0))
                found.append(Distance(name, self._error(results, name), floor, limit))
        return found

    def heals(self, keep: frozenset[int]) -> bool:
        """Whether all outputs are FP32's but for round-off."""
        return not any(each.is_beyond for each in self.distances(self.rounded(keep)))

    def results(self, model: Any) -> dict[str, Any]:
        """Results of the outer graph of a model with these inputs."""
        self.count += 1
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            results = Evaluator(model).run(None, dict(self.inputs), intermediate=True)
        return dict(results)

    def _error(self, results: Mapping[str, Any], name: str) -> float:
        first, second = np.asarray(self.exact[name]), np.asarray(results[name])
        if first.shape != second.shape:
            return inf
        if first.dtype.kind != "f":
            return float(np.mean(first != second)) if first.size else 0.0
        return relative_error(second, first)


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
