"""Words of before 0.1 are refused with the one to type, in functions that have the new one."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import halfscope
from halfscope import old_words

ONES = np.ones(4, np.float32)
OF_ARRAYS = {
    "dot": lambda **options: halfscope.dot(ONES, ONES, **options),
    "matmul": lambda **options: halfscope.matmul(ONES[None], ONES[:, None], **options),
    "sum": lambda **options: halfscope.sum(ONES, **options),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_functions_of_arrays_name_the_new_argument(name: str) -> None:
    assert float(np.squeeze(OF_ARRAYS[name](order="fp32_sequential"))) == 4
    with pytest.raises(TypeError, match=rf"^{name} has no accumulate= since 0.1; give order=$"):
        OF_ARRAYS[name](accumulate="fp32_sequential")


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(set(old_words.ARGUMENTS) - set(OF_ARRAYS)))
def test_functions_of_models_name_the_new_argument(name: str) -> None:
    torch = pytest.importorskip("halfscope.torch")
    function = getattr(torch, name)
    for old, new in old_words.ARGUMENTS[name].items():
        assert new in inspect.signature(function).parameters
        with pytest.raises(TypeError, match=rf"^{name} has no {old}= since 0.1; give {new}=$"):
            function(**{old: None})


@pytest.mark.torch
@pytest.mark.parametrize(("old", "new"), [("accumulate", "order"), ("reductions", "sum_order")])
def test_keys_of_an_exception_name_the_new_one(old: str, new: str) -> None:
    torch = pytest.importorskip("torch")
    from halfscope.torch import emulate

    with pytest.raises(ValueError, match=f"exception '0': no setting {old} since 0.1; give {new}"):
        emulate(torch.nn.Sequential(torch.nn.Linear(1, 1)), "fp16", exceptions={"0": {old: "fp32_sequential"}})


def test_functions_name_the_new_one() -> None:
    for old, new in old_words.FUNCTIONS.items():
        with pytest.raises(AttributeError, match=rf"^halfscope has no {old} since 0.1; call halfscope.{new}$"):
            getattr(halfscope, old)
