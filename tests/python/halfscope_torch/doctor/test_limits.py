"""From which length or size on a call overflows: both of its trials, made again in PyTorch's own FP16."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.formats import Format
from halfscope.torch import diagnose
from halfscope.torch.doctor.call_names import name_of
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.limits import limit_words
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.events.call_text import Span

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
FP16 = Format.of("fp16")
# A call, the size of its operand, and how many operands it has.
ELEMENTWISE: dict[str, tuple[Callable, float, int]] = {
    "square": (torch.square, 2000.0, 1), "exp": (torch.exp, 30.0, 1), "sinh": (torch.sinh, 40.0, 1),
    "mul": (torch.mul, 1500.0, 2), "mul_alone": (lambda x: x * 3e4, 50.0, 1), "pow": (lambda x: x**3, 300.0, 1),
}  # fmt: skip
# A function, its arguments, and whether it adds up rows.
SUMS: dict[str, tuple[Callable, tuple, bool]] = {
    "sum": (torch.sum, (), False), "sum_of_rows": (torch.sum, (-1,), True), "sum_of_two": (torch.sum, ((0, 1),), False),
    "cumsum": (torch.cumsum, (-1,), True), "norm": (torch.linalg.vector_norm, (), False),
}  # fmt: skip


def words_of(function: Callable, *operands: torch.Tensor, name: str = "call") -> str:
    place = CallPlace(__file__, Span(1, 0, 1, 1), name)
    return limit_words(Call(place, function, operands, {}, (0, 0)), FP16)


def is_finite(function: Callable, *operands: torch.Tensor) -> bool:
    return bool(function(*(each.half() for each in operands)).isfinite().all())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_sizes_are_those_of_pytorchs_fp16(name: str, seed: int) -> None:
    function, size, count = ELEMENTWISE[name]
    generator = torch.Generator().manual_seed(seed)
    operands = [(torch.rand(5, 7, generator=generator) + 0.1) * size for _ in range(count)]
    words = words_of(function, *operands, name=name)
    up_to, at = re.findall(r"finite up to (.*), not at (.*)", words)[0]
    for numbers, wanted in ((up_to, True), (at, False)):
        sizes = [float(number) for number in numbers.split(" and ")]
        slack = 1.0 if count == 1 else 1 - 2.0**-9 if wanted else 1 + 2.0**-9  # one factor for both, before a rounding
        scaled = [each * (sizes[0] / float(operands[0].max()) * slack) for each in operands]
        assert is_finite(function, *scaled) is wanted, words
    assert float(at.split(" and ")[0]) <= float(up_to.split(" and ")[0]) * (1 + 2.0**-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SUMS)
def test_terms_are_those_of_pytorchs_fp16(name: str, seed: int) -> None:
    function, arguments, of_rows = SUMS[name]
    generator = torch.Generator().manual_seed(seed)
    x = (torch.rand(3, 400, generator=generator) * 600).half().float()
    x = x * 16 if "norm" in name else x
    place = CallPlace(__file__, Span(1, 0, 1, 1), name_of(function))
    words = limit_words(Call(place, function, (x, *arguments), {}, (0, 0)), FP16)
    fine, count, ill = map(int, re.findall(r"first (\d+) terms? of (\d+) are finite, the first (\d+)", words)[0])
    rows = x if of_rows else x.reshape(-1)
    assert (count, ill) == (rows.shape[-1], fine + 1)
    of_last = arguments if of_rows else ()
    for terms, wanted in ((fine, True), (ill, False)):
        assert is_finite(lambda each: function(each, *of_last), rows[..., :terms]) is wanted, words


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["matmul", "bmm", "mv", "linear"])
def test_terms_of_products_are_those_of_pytorchs_fp16(name: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    first = (torch.rand(2, 3, 300, generator=generator) * 40).half().float()
    second = (torch.rand(2, 300, 5, generator=generator) * 40).half().float()
    if name == "linear":
        second = second[0].transpose(0, 1).contiguous()
    if name == "mv":
        first, second = first[0], second[0, :, 0].contiguous()
    function = torch.nn.functional.linear if name == "linear" else getattr(torch, name)
    words = words_of(function, first, second, name=name)
    fine, count, ill = map(int, re.findall(r"first (\d+) terms? of (\d+) are finite, the first (\d+)", words)[0])
    axis = -1 if name == "linear" or second.dim() == 1 else -2
    assert (count, ill) == (300, fine + 1)
    for terms, wanted in ((fine, True), (ill, False)):
        assert is_finite(function, first[..., :terms], second.narrow(axis, 0, terms)) is wanted


def test_nothing_is_said_without_a_trial_that_is_finite() -> None:
    assert words_of(lambda x: x + 1e6, torch.ones(3)) == ""
    assert words_of(torch.square, torch.ones(3), name="square") == ""
    assert words_of(torch.square, torch.tensor([torch.inf]), name="square") == ""


def test_diagnose_tells_the_limit() -> None:
    class Area(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(1))

        def forward(self, width: torch.Tensor, height: torch.Tensor) -> torch.Tensor:
            return (self.w * width * height / 1e5).mean()

    model, sizes = Area(), torch.tensor([100.0, 200.0, 512.0])
    report = " ".join(str(diagnose(model, lambda: model(sizes, sizes))).split())
    assert "tried with smaller operands: finite up to 255.88, not at 256" in report
