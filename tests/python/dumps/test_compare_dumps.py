"""Two implementations written down by chance: names, slices, orders and formats differ, and one number or none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halfscope
from halfscope import compare_dumps

Dump = dict[str, np.ndarray]
WIDTH, HEADS, TOKENS, BATCH = 24, 4, 6, 3


def in_format(array: np.ndarray, format: str) -> np.ndarray:
    return array if format == "fp32" else halfscope.round(np.ascontiguousarray(array), format)


class Model:
    """Layers of three parallel products, heads and a residual sum; `run` writes down one implementation of it."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        self.depth = int(draw.integers(2, 5))
        self.input = draw.normal(size=(BATCH, TOKENS, WIDTH)).astype(np.float32)
        self.weights = draw.normal(0, WIDTH**-0.5, (self.depth, 4, WIDTH, WIDTH)).astype(np.float32)

    def run(self, format: str, fault: tuple[int, int] | None = None) -> tuple[Dump, Dump]:
        """Weights, and tensors in order, under the first implementation's names. fault: layer and part."""
        weights, computed = {}, {}
        x = in_format(self.input, format)
        for layer in range(self.depth):
            parts = []
            for part, name in enumerate("qkvo"):
                weight = in_format(self.weights[layer, part], format)
                weights[f"layers.{layer}.{name}.weight"] = weight
                given = x if name != "o" else np.tanh(parts[0]) * parts[1] + parts[2]
                result = in_format(given @ weight.T, format)
                if fault == (layer, part):
                    result = in_format(result + 0.25 * np.roll(result, 1, -1), format)
                parts.append(result)
                computed[f"layers.{layer}.{name}"] = result
            x = in_format(x + parts[3], format)
            computed[f"layers.{layer}"] = x
        return weights, computed


def rewritten(dump: tuple[Dump, Dump], seed: int) -> Dump:
    """The same numbers as another implementation has them."""
    draw = np.random.default_rng(1000 + seed)
    weights, computed = dump
    fuses, turns, merges, splits = (bool(draw.integers(2)) for _ in range(4))
    heads = draw.permutation(WIDTH) if draw.integers(2) else np.arange(WIDTH)
    found: Dump = {}
    depth = len(computed) // 5
    for layer in range(depth):
        group = [weights[f"layers.{layer}.{name}.weight"] for name in "qkv"]
        tensors = [computed[f"layers.{layer}.{name}"] for name in "qkv"]
        group[0], tensors[0] = group[0][heads], tensors[0][..., heads]
        if fuses:
            group, tensors = [np.concatenate(group)], [np.concatenate(tensors, -1)]
        elif splits:  # two ranks
            group = [half for each in group for half in np.split(each, 2)]
            tensors = [half for each in tensors for half in np.split(each, 2, -1)]
        elif merges:
            tensors = [each.reshape(BATCH, TOKENS, HEADS, -1).transpose(0, 2, 1, 3) for each in tensors]
        group.append(weights[f"layers.{layer}.o.weight"])
        tensors += [computed[f"layers.{layer}.o"], computed[f"layers.{layer}"]]
        if turns:
            group, tensors = [each.T for each in group], [
                np.swapaxes(each, 0, 1) if each.ndim == 3 else each for each in tensors
            ]  # fmt: skip
        found.update({f"weight:block{layer}.{place}": np.ascontiguousarray(each) for place, each in enumerate(group)})
        found.update(
            {f"{len(found):05}:block{layer}/{place}": np.ascontiguousarray(each) for place, each in enumerate(tensors)}
        )
    return found


def named(dump: tuple[Dump, Dump]) -> Dump:
    weights, computed = dump
    return {**{f"weight:{name}": each for name, each in weights.items()}, **computed}


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("format", ["fp32", "bf16", "fp16"])
def test_all_tensors_of_an_implementation_without_a_fault_are_found(format: str, seed: int) -> None:
    model = Model(seed)
    exact = model.run("fp32")
    rounded = model.run(format)
    found = compare_dumps(named(exact), rewritten(rounded, seed), floor=named(rounded) if format != "fp32" else None)
    assert found.first is None, found.report
    assert found.lone[0] == ()
    wanted = {**rounded[0], **rounded[1]}
    for each in found.pairs:
        assert np.array_equal(each.pair.actual, wanted[each.pair.name]), each.pair.other
    assert not found.report.findings
    assert found.format == format


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("has_floor", [True, False])
@pytest.mark.parametrize("format", ["fp32", "bf16"])
def test_the_first_tensor_of_a_fault_is_named(format: str, has_floor: bool, seed: int) -> None:
    model, draw = Model(seed), np.random.default_rng(seed)
    layer, part = int(draw.integers(model.depth)), int(draw.integers(4))
    exact, rounded = model.run("fp32"), model.run(format)
    faulty = rewritten(model.run(format, (layer, part)), seed)
    found = compare_dumps(named(exact), faulty, floor=named(rounded) if has_floor else None)
    assert found.first is not None
    assert found.first.pair.name == f"layers.{layer}.{'qkvo'[part]}", found.report
    assert found.first.pair.name in found.report.findings[0].change


@pytest.mark.parametrize("seed", range(30))
def test_a_weight_that_differs_comes_first(seed: int) -> None:
    model, draw = Model(seed), np.random.default_rng(seed)
    layer, part = int(draw.integers(model.depth)), int(draw.integers(4))
    exact = model.run("fp32")
    model.weights = model.weights.copy()
    model.weights[layer, part, draw.integers(WIDTH), draw.integers(WIDTH)] += 0.05
    found = compare_dumps(named(exact), rewritten(model.run("bf16"), seed))
    assert found.first is not None and found.first.is_weight
    assert found.first.pair.name == f"layers.{layer}.{'qkvo'[part]}.weight"


def test_what_is_not_finite_is_beyond() -> None:
    rows = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    ill = rows.copy()
    ill[2, 3] = np.inf
    found = compare_dumps({"a": rows, "b": rows * 2}, {"x": rows, "y": ill})
    assert found.first is not None and found.first.pair.name == "b"
    assert found.first.pair.is_by_place
    assert "not finite" in str(found.report)
    both = compare_dumps({"a": rows, "b": ill}, {"a": rows, "b": ill})
    assert str(both.report).startswith("The 2 pairs of tensors are equal.")


def test_dumps_that_have_nothing_in_common_say_so() -> None:
    draw = np.random.default_rng(0)
    found = compare_dumps({"a": draw.normal(size=(8, 5))}, {"x": draw.normal(size=(7, 3))})
    assert "nothing was compared" in str(found.report)
    assert found.lone == (("a",), ("x",))


def test_what_is_no_dump_is_refused_in_one_line(tmp_path: Path) -> None:
    rows = {"a": np.ones((4, 4), np.float32)}
    with pytest.raises(TypeError, match="compare_dumps: second is a int; give arrays by name, or paths of files"):
        compare_dumps(rows, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such file|No such file"):
        compare_dumps(rows, tmp_path / "lost.npz")
    with pytest.raises(ValueError, match="second holds no tensor of floating-point numbers"):
        compare_dumps(rows, {"a": np.arange(3)})
    with pytest.raises(ValueError, match="floor has none of the first dump's names"):
        compare_dumps(rows, rows, floor={"b": rows["a"]})
    with pytest.raises(ValueError, match="fp17"):
        compare_dumps(rows, rows, format="fp17")


def test_files_are_read_as_analyze_reads_them(tmp_path: Path) -> None:
    model = Model(3)
    exact = model.run("fp32")
    np.savez(tmp_path / "first.npz", **named(exact))
    np.savez(tmp_path / "second.npz", **rewritten(model.run("fp32", (1, 2)), 3))
    found = compare_dumps(tmp_path / "first.npz", str(tmp_path / "second.npz"))
    assert found.first is not None and found.first.pair.name == "layers.1.v"
    assert found.report.to_dict()["report"] == "compare_dumps"


def test_pairs_are_a_table() -> None:
    pytest.importorskip("pandas")
    model = Model(1)
    table = compare_dumps(named(model.run("fp32")), named(model.run("fp16"))).to_pandas()
    assert list(table.columns) == ["counterpart", "weight", "relative_error", "floor", "limit", "beyond"]
    assert len(table) == 9 * model.depth
    assert not table["beyond"].any()
