"""Every operation of the table on tensors of 16 bits, bit for bit beside PyTorch's own kernels for CPUs."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from elementwise_cases import ELEMENTWISE
from emulated_mode import arithmetic, copied, difference, tensors_of
from emulation_exceptions import EXCEPTIONS, LIBRARY, SCALAR, STEPS
from halfscope.torch.operations.table import TABLE, Kind
from network_cases import NETWORK
from shaped_cases import SHAPED

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

COMPUTING = (Kind.EXACT, Kind.ROUNDED, Kind.REDUCTION, Kind.PRODUCT, Kind.LOSS)
CASES = {**ELEMENTWISE, **SHAPED, **NETWORK}
KINDS = {"bf16": torch.bfloat16, "fp16": torch.float16}
PINNED = ("2.15",)  # versions that the list of exceptions was made with
# Operations of torchvision, which has its own test; then compositions that round at each step.
ELSEWHERE = ("roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward")
COMPOSED = ("pow", "logsumexp", "floor_divide")
NARROW_SCALARS = ("pow", "fmod", "remainder")


def native(operation: Any, call: tuple) -> Any:
    """PyTorch's result; None where it has no kernel for these tensors."""
    torch.manual_seed(0)
    try:
        return operation(*copied(call[0]), **call[1])
    except (RuntimeError, NotImplementedError):
        return None


def emulated(operation: Any, call: tuple) -> Any:
    torch.manual_seed(0)
    with arithmetic():
        return operation(*copied(call[0]), **call[1])


def is_exception(name: str, kind: str) -> bool:
    return name in EXCEPTIONS and kind in EXCEPTIONS[name][1].split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_operation(name: str, kind: str) -> None:
    operation = getattr(torch.ops.aten, name, None)
    if operation is None:
        pytest.skip(f"PyTorch {torch.__version__} has no {name}")
    compared, differing = 0, []
    for call in CASES[name](KINDS[kind]):
        expected = native(operation, call)
        if expected is None and native(operation, copied(call, double=True)) is None:
            continue
        found = emulated(operation, call)
        if expected is None:  # only the emulation computes it
            check_beside_double(name, operation, call, found)
            continue
        compared += 1
        message = difference(expected, found)
        if message:
            differing.append(message)
            if is_exception(name, kind):
                check_beside_double(name, operation, call, found)
    if not compared:
        pytest.skip(f"PyTorch {torch.__version__} has no {name} of {kind} on a CPU")
    if not is_exception(name, kind):
        assert not differing, differing
    elif torch.__version__.startswith(PINNED) and EXCEPTIONS[name][0] is not LIBRARY:
        assert differing, f"{name} of {kind} is PyTorch's: take it off the list of exceptions"


def check_beside_double(name: str, operation: Any, call: tuple, found: Any) -> None:
    """An exception is its result in FP64, rounded once, but for the last bits of FP32."""
    kind = next(tensor.dtype for tensor in tensors_of(call[0]) if tensor.is_floating_point())
    args = [float(torch.tensor(value).to(kind)) if name in NARROW_SCALARS and isinstance(value, float) else value
            for value in call[0]]  # fmt: skip
    reason = EXCEPTIONS.get(name, ("",))[0]
    torch.manual_seed(0)
    exact = operation(*copied(args, double=True), **copied(call[1], double=True))
    for wanted, ours in zip(tensors_of(exact), tensors_of(found)):
        if not ours.is_floating_point():
            continue
        limits, wanted = torch.finfo(ours.dtype), wanted.double()
        usual = wanted.isfinite() & (wanted.abs() < limits.max) & ours.isfinite()
        for operand in tensors_of(call[0]) if name in ELEMENTWISE else []:
            if operand.dim() == ours.dim() == 2 and operand.shape[1] < ours.shape[1]:  # a half of the columns
                operand = torch.cat([operand, operand], 1)
            if operand.shape == ours.shape:  # FP32 itself over- and underflows in between
                usual = usual & (operand.double().abs() < 8) & (operand.double().abs() > 2**-6)
        if name == "glu_backward":  # both halves of a row enter
            usual = usual & usual.roll(ours.shape[1] // 2, 1)
        largest = float(wanted[usual].abs().max()) if bool(usual.any()) else 0.0
        slack = 1e-5 * (min(1.0, largest) if reason in (STEPS, SCALAR, LIBRARY) else largest)
        ulps = 2.0 if name in COMPOSED else 0.505
        allowed = wanted.abs() * limits.eps * ulps + limits.tiny * limits.eps + slack
        wrong = usual & ((ours.double() - wanted).abs() > allowed)
        assert not wrong.any(), (name, wanted[wrong][:3], ours[wrong][:3])


def test_every_entry_has_a_case() -> None:
    computing = {name for name, line in TABLE.items() if line.kind in COMPUTING and line.kind is not Kind.PRODUCT}
    assert computing - set(CASES) == set(ELSEWHERE)
    assert set(CASES) - computing == set()
    assert set(EXCEPTIONS) <= set(CASES)
    assert all(reason and kinds for reason, kinds in EXCEPTIONS.values())
