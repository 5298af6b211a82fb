"""Every operation that PyTorch tests itself with: a diagnosis and an emulation run it, by a rule or without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
common = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="PyTorch's table of tests")
from torch import nn

from halfscope.torch import diagnose
from halfscope.torch.emulate.decision import UnknownOperation

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

PARTS = 8
# Not of this kind: their samples are no tensors of numbers, or need a compiler.
LEFT_OUT = ("higher_order", "jiterator", "to_sparse", "sparse.sampled_addmm", "torch.ops.aten._safe_softmax.default")


class Call(nn.Module):
    """One operation on a parameter."""

    def __init__(self, info: Any, sample: Any) -> None:
        super().__init__()
        self.value, self._info, self._sample = nn.Parameter(sample.input.detach().clone()), info, sample

    def forward(self) -> Any:
        return self._info.op(self.value * 1, *self._sample.args, **self._sample.kwargs)


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() or value.is_complex():
            yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from flat(part)


def loss_of(model: Call) -> Any:
    total = model.value.sum() * 0
    for tensor in flat(model()):
        total = total + torch.view_as_real(tensor).sum() if tensor.is_complex() else total + tensor.sum()
    return total


def calls(part: int) -> Iterator[tuple[str, Call]]:
    for info in common.op_db[part::PARTS]:
        if torch.float32 not in info.dtypes or info.name.startswith(LEFT_OUT):
            continue
        torch.manual_seed(0)
        samples = info.sample_inputs("cpu", torch.float32, requires_grad=False)
        sample = next((each for each in samples if is_plain(each.input)), None)
        if sample is not None:
            yield f"{info.name} {info.variant_test_name}".strip(), Call(info, sample)


def is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and value.dtype is torch.float32


def runs(model: Call) -> bool:
    """Whether PyTorch's own step runs."""
    try:
        loss = loss_of(model)
        if loss.requires_grad:
            loss.backward()
    except (RuntimeError, NotImplementedError, TypeError):
        return False
    return bool(loss.isfinite())


@pytest.mark.parametrize("part", range(PARTS))
def test_no_operation_ends_a_diagnosis(part: int) -> None:
    failures, count = [], 0
    for name, model in calls(part):
        if not runs(model):
            continue
        count += 1
        for policy in ("fp16", "bf16", "autocast_cuda"):
            try:
                diagnose(model, lambda: loss_of(model), policy)  # noqa: B023
            except UnknownOperation as error:
                if "autocast_cuda refuses" not in str(error):  # as PyTorch's own autocast does
                    failures.append(f"{name} {policy}: {error}")
            except Exception as error:
                failures.append(f"{name} {policy}: {type(error).__name__}: {error}"[:200])
    assert not failures, "\n".join(failures)
    assert count > 40
