"""Arguments that an operator changes: the table's answer beside what PyTorch's operators do to their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
common = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="PyTorch's table of tests")
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from halfscope.torch import emulate
from halfscope.torch.operations import table
from halfscope.torch.operations.operators import is_in_place, target_of, writes

pytestmark = [
    pytest.mark.torch, pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore"),
]  # fmt: skip

aten = torch.ops.aten
PARTS = 4
SAMPLES = 3


def bits(value: Any) -> Iterator[tuple[Any, bytes]]:
    """Dense tensors of an argument, with their memory."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_meta:
        plain = value.detach().resolve_conj().resolve_neg().contiguous().flatten()
        yield value, plain.view(torch.uint8).numpy().tobytes()
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from bits(part)


class Changes(TorchDispatchMode):
    """Compares the memory of every argument before and after each operator; `hidden`: changes that `writes` lacks."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: set[Any] = set()
        self.hidden: set[tuple[str, Any]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        given = [*enumerate(args), *(kwargs or {}).items()]
        before = [(key, *both) for key, value in given for both in bits(value)]
        result = func(*args, **(kwargs or {}))
        for key, tensor, old in before:
            if next(iter(bits(tensor)))[1] != old and key not in writes(func):
                self.hidden.add((str(func), key))
        self.operators.add(func)
        return result


def run_samples(part: int) -> Changes:
    changes = Changes()
    for info in common.op_db[part::PARTS]:
        if torch.float32 not in info.dtypes or info.name.startswith(("higher_order", "jiterator")):
            continue
        torch.manual_seed(0)
        for _, sample in zip(range(SAMPLES), info.sample_inputs("cpu", torch.float32, requires_grad=False)):
            try:
                with changes:
                    info.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:  # a sample that PyTorch refuses, or that the mode cannot run
                continue
    return changes


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_else_of_an_operators_arguments_changes(part: int) -> None:
    changes = run_samples(part)
    assert len(changes.operators) > 100
    assert not changes.hidden


def test_a_change_that_a_schema_hides_is_in_the_row() -> None:
    assert writes(aten.native_batch_norm.default) == (3, "running_mean", 4, "running_var")
    x, averages = torch.randn(4, 3, 2, 2), (torch.zeros(3), torch.ones(3))
    row = table.TABLE["native_batch_norm"]
    assert row.updated == (3, 4)
    with Changes() as changes:
        aten.native_batch_norm(x, None, None, *averages, True, 0.1, 1e-5)
    assert not changes.hidden and bool((averages[0] != 0).all())


@pytest.mark.parametrize("func, written, in_place", [
    (aten.add_.Tensor, (0, "self"), True), (aten.add.out, (3, "out"), True), (aten.add.Tensor, (), False),
    (aten.topk.values, (5, "values", 6, "indices"), True), (aten._foreach_add_.Scalar, (0, "self"), True),
    (aten.native_batch_norm.default, (3, "running_mean", 4, "running_var"), False),
    (aten._native_batch_norm_legit.default, (3, "running_mean", 4, "running_var"), False),
    (aten.__and__.Tensor, (), False), (len, (), False),
], ids=str)  # fmt: skip
def test_in_place_is_what_returns_an_argument_that_it_changes(func: Any, written: tuple, in_place: bool) -> None:
    assert (writes(func), is_in_place(func)) == (written, in_place)


def test_the_target_is_the_argument_that_gets_the_result() -> None:
    a, b, out = (torch.ones(2) for _ in range(3))
    assert target_of(aten.add_.Tensor, (a, b), {}) is a
    assert target_of(aten.add.out, (a, b), {"out": out}) is out
    assert target_of(aten.__and__.Tensor, (a, b), {}) is None
    assert target_of(aten._native_batch_norm_legit.default, (a, None, None, b, out), {}) is None


class Normalised(nn.Module):
    """A batch norm by one of PyTorch's operators for it, of which one hides that it writes to the averages."""

    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator, self.weight, self.bias = operator, nn.Parameter(torch.rand(3)), nn.Parameter(torch.rand(3))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))

    def forward(self, x: Any) -> Any:
        return self.operator(x, self.weight, self.bias, self.mean, self.variance, True, 0.1, 1e-5)[0]


def test_both_batch_norms_round_their_input_alike() -> None:
    results = []
    for operator in (aten.native_batch_norm, aten._native_batch_norm_legit):
        torch.manual_seed(0)
        model, x = Normalised(operator), torch.randn(8, 3, 4, 4) * 2.0**-20 + 1  # FP16 has one number for many
        with emulate(model, "fp16", compare_steps=()):
            model(x).sum().backward()
            results.append([model(x).detach(), model.mean.clone(), model.variance.clone(), model.weight.grad])
    for a, b in zip(*results):
        assert torch.equal(a, b)
