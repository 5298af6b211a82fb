"""Arrays of JAX, which come and go by DLPack."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed")
from jax import numpy as jnp

import halfscope

VALUES = np.random.default_rng(1).normal(0, 1e-4, (30, 7)).astype(np.float32)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_right_answers(dtype) -> None:
    array = jnp.asarray(VALUES).astype(dtype)
    same = np.asarray(array.astype(jnp.float32))
    assert halfscope.Histogram(array) == halfscope.Histogram(same)
    assert halfscope.analyze({"x": array}).to_dict() == halfscope.analyze({"x": same}).to_dict()
    assert halfscope.dot(array[0], array[1]) == halfscope.dot(same[0], same[1])
    assert halfscope.lost_updates(array, array).lost == halfscope.lost_updates(same, same).lost
    for view in (array, array.T, array[::2, 1:]):
        assert (halfscope.Histogram(view)) == halfscope.Histogram(np.asarray(view.astype(jnp.float32)))


def test_rounding_gives_an_array_of_jax() -> None:
    array = jnp.asarray(VALUES)
    rounded = halfscope.round(array, "fp16")
    assert isinstance(rounded, jax.Array) and rounded.dtype == jnp.float32 and rounded.shape == VALUES.shape
    assert (rounded == array.astype(jnp.float16).astype(jnp.float32)).all()
    assert (array == jnp.asarray(VALUES)).all()
    empty = halfscope.round(jnp.zeros((0, 3)), "fp16")
    assert isinstance(empty, jax.Array) and empty.shape == (0, 3)
    assert halfscope.round(jnp.float32(1.0 + 2.0**-12), "fp16") == 1


def test_gradients_of_jax() -> None:
    gradients = jax.grad(lambda w: (jnp.tanh(w) ** 2).sum())(jnp.asarray(VALUES))
    assert halfscope.analyze({"w": gradients}).tensors[0].elements == VALUES.size


@pytest.mark.parametrize("dtype", [jnp.int32, bool, jnp.complex64])
def test_a_clear_error(dtype) -> None:
    with pytest.raises(TypeError, match="give float32, float16, bfloat16 or float8"):
        halfscope.Histogram(jnp.zeros(3, dtype))


def test_under_a_trace() -> None:
    """An array inside jit has no elements yet."""
    with pytest.raises(TypeError, match="cannot read"):
        jax.jit(halfscope.Histogram)(jnp.zeros(3))
