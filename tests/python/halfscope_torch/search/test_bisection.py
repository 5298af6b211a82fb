"""Bisection over layers, the operations between them and what is stored; comparison operation by operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import Emulation, GradScaler, emulate
from halfscope.torch.operations.table import TABLE
from halfscope.torch.search.bisection import bisect

pytestmark = pytest.mark.torch


class Product(nn.Module):
    """160000 at the product of two outputs, between the layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)
        self.a.weight.data.fill_(100.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        return self.b(y * y * 1e-6)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> float:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_operations_between_layers_are_candidates() -> None:
    model = Product()
    optimizer, x = torch.optim.SGD(model.parameters(), lr=0.0), torch.ones(2, 4)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        step(model, optimizer, x)
    found = emulated.bisect(lambda: step(model, optimizer, x) < float("inf"))
    assert found.layers == ("",)
    assert str(found).splitlines() == [
        "Keep the model's own operations in FP32: emulate(..., exceptions={'': 'fp32'}).",
        "Why: with nothing in FP32 the result is refused, with this alone it is accepted.",
        f"How sure: {found.runs} trainings from the same start; it cannot be left out; another choice may do too.",
    ]
    with emulate(model, "fp16_mixed", optimizer=optimizer, exceptions=found.exceptions) as emulated:
        step(model, optimizer, x)
    assert emulated.first_overflow is None


def test_operations_are_candidates_of_a_block_without_a_forward_pass() -> None:
    model = Product()
    optimizer, x = torch.optim.SGD(model.parameters(), lr=0.0), torch.ones(2, 4)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        pass
    assert emulated.bisect(lambda: step(model, optimizer, x) < float("inf")).layers == ("",)


class TwoProducts(nn.Module):
    """The second product overflows; what uses it is the loss, in FP32."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.a(x) * 0.5 + 300.0) * 300.0


def trained_once(model: nn.Module, policy: str = "fp16_mixed", **options: Any) -> tuple[Emulation, Callable[[], float]]:
    torch.manual_seed(0)
    optimizer, x = torch.optim.SGD(model.parameters(), lr=0.0), torch.ones(2, 4)
    with emulate(model, policy, optimizer=optimizer, **options) as emulated:
        step(model, optimizer, x)
    return emulated, lambda: step(model, optimizer, x)


def test_single_operations_are_units() -> None:
    model = Product()
    emulated, loss = trained_once(model)
    found = emulated.bisect(lambda: loss() < float("inf"), units="operations")
    assert found.layers == (":mul.1", ":mul.2")
    assert found.exceptions == {":mul.1": "fp32", ":mul.2": "fp32"}
    assert trained_once(Product(), exceptions=found.exceptions)[0].first_overflow is None
    first = emulated.first_overflow
    assert first is not None and first.tensor == "mul"


def test_one_of_two_operations_of_a_name() -> None:
    emulated, loss = trained_once(TwoProducts())
    found = emulated.bisect(lambda: math.isfinite(loss()), units="operations")
    assert found.layers == (":mul.2",)
    assert str(found).startswith("Keep mul.2 of the model in FP32: emulate(..., exceptions={':mul.2': 'fp32'}).")
    with pytest.raises(ValueError, match=r"with all 1 candidates in FP32 .*\(mul.1 of the model\)"):
        emulated.bisect(lambda: math.isfinite(loss()), layers=[":mul.1"])


def test_gradients_of_a_kept_operation_are_fp32() -> None:
    """2^-26 is 0 in FP16."""
    for rules, zeros in (({}, 4), ({"*:products": "fp32"}, 0)):
        model = nn.Sequential(nn.Linear(2, 2, bias=False))
        with emulate(model, "fp16_mixed", optimizer=torch.optim.SGD(model.parameters(), lr=0.0), exceptions=rules):
            (model(torch.full((1, 2), 2.0**-13)) * 2.0**-13).sum().backward()
        assert int((model[0].weight.grad == 0).sum()) == zeros


@pytest.mark.parametrize("rule, change, message", [
    ("*:sofmax", "fp32", "no operation 'sofmax'; give one of products, norms"),
    ("*:mul.x", "fp32", "no operation 'mul.x'"),
    ("*:mul", "bf16", "operations have 'fp32' alone"),
    ("layer:mul", "fp32", "exception 'layer' matches no module"),
])  # fmt: skip
def test_bad_rules_of_operations_get_one_line(rule: str, change: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        emulate(TwoProducts(), "fp16", exceptions={rule: change})
    assert "\n" not in str(refused.value)


def test_every_forward_operation_that_rounds_has_a_kind() -> None:
    kinds = {name: row.group.value for name, row in TABLE.items()}
    for name, kind in (
        ("_softmax", "softmaxes"), ("native_layer_norm", "norms"), ("_fused_rms_norm", "norms"), ("bmm", "products"),
        ("sum", "sums"), ("gelu", "activations"), ("linalg_vector_norm", "sums"), ("_cdist_forward", "others"),
    ):  # fmt: skip
        assert kinds[name] == kind


def test_kinds_of_operations_are_units() -> None:
    emulated, loss = trained_once(Product())
    found = emulated.bisect(lambda: loss() < float("inf"), units="kinds")
    assert found.layers == ("*:multiplications",)
    assert str(found).startswith(
        "Keep all multiplications in FP32: emulate(..., exceptions={'*:multiplications': 'fp32'})."
    )
    assert trained_once(Product(), exceptions=found.exceptions)[0].first_overflow is None


def test_stored_weights_are_candidates() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)), torch.ones(2, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def falls() -> bool:
        losses = [step(model, optimizer, x) for _ in range(3)]
        return losses[-1] < losses[0]

    with emulate(model, {"master_weight": "bf16"}, optimizer=optimizer) as emulated:
        falls()
    found = emulated.bisect(falls)
    assert found.layers == ("(stored weights)",)
    assert found.exceptions == {"*": {"master_weight": "fp32"}}
    assert str(found).startswith("Keep stored weights in FP32: emulate(")


def test_no_layer_of_the_answer_can_be_left_out() -> None:
    """Accepted with c, or with a and b: what a prefix has found first is not all needed."""
    found = bisect(lambda: True, ["a", "b", "c"], lambda chosen, _: "c" in chosen or {"a", "b"} <= set(chosen))
    assert found.layers in (("c",), ("a", "b"))
    three = bisect(lambda: True, list("abcd"), lambda chosen, _: "d" in chosen or len(chosen) >= 3)
    for name in three.layers:
        rest = [other for other in three.layers if other != name]
        assert not ("d" in rest or len(rest) >= 3)


def test_a_number_is_minimised() -> None:
    """A loss of 1 in FP32, 2 where neither "b" nor "c" is, and 1.005 without "a"."""

    def loss(chosen: list[str], _: object) -> float:
        return 1.0 + (not {"b", "c"} & set(chosen)) + 0.005 * ("a" not in chosen)

    found = bisect(lambda: None, list("abc"), loss)
    assert found.layers in (("b",), ("c",))
    assert "a" in bisect(lambda: None, list("abc"), loss, within=0.001).layers
    assert bisect(lambda: None, list("abc"), loss, within=2.0).layers == ()
    with pytest.raises(ValueError, match="is refused too"):
        bisect(lambda: None, ["a"], lambda *_: math.nan)


def test_the_loss_itself_is_a_criterion() -> None:
    model = Product()
    optimizer, x = torch.optim.SGD(model.parameters(), lr=0.0), torch.ones(2, 4)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        step(model, optimizer, x)
    assert emulated.bisect(lambda: step(model, optimizer, x)).layers == ("",)


def test_only_skipped_steps_are_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="the scaler skipped every step too; train more steps") as refused:
        bisect(lambda: True, ["a", "b"], lambda *_: None)
    assert "\n" not in str(refused.value)


def test_a_training_without_a_step_is_refused_whatever_its_criterion_says() -> None:
    model = Product()
    optimizer, scaler, x = torch.optim.SGD(model.parameters(), lr=0.0), GradScaler("dynamic"), torch.ones(2, 4)

    def train() -> bool:
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        return True

    with emulate(model, "fp16_mixed", optimizer=optimizer, scaler=scaler) as emulated:
        train()
    assert emulated.counts()["skipped"] == 1
    assert emulated.bisect(train).layers != ()


class Phase(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cos(x * 1000.0)


class Inline(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.phase = nn.Linear(4, 4), Phase()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return self.phase(y) + torch.cos(y * 1000.0) + y


def test_operations_have_rows_of_their_own() -> None:
    torch.manual_seed(0)
    model = Inline()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        step(model, optimizer, torch.randn(8, 4))
    rows = {row.tensor: row for row in emulated.compare_to("fp32").ranked() if row.role == "activation"}
    assert {"linear", "phase.mul", "phase.cos", "mul", "cos", "add", "add.2"} <= set(rows)
    assert rows["cos"].relative_error == pytest.approx(rows["phase.cos"].relative_error)
    assert rows["cos"].relative_error > 10 * rows["mul"].relative_error
    assert rows["mul"].absolute_error > 0.1  # in radians


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.linear(x)
        return torch.softmax(scores.masked_fill(scores > 0.5, float("-inf")), -1)


def test_the_same_infinity_is_no_error() -> None:
    torch.manual_seed(0)
    model = Masked()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "bf16", optimizer=optimizer) as emulated:
        step(model, optimizer, torch.randn(8, 4))
    rows = {row.tensor: row for row in emulated.compare_to("fp32").ranked()}
    assert rows["masked_fill"].relative_error < 0.01
    assert rows["masked_fill"].cosine == pytest.approx(1, abs=1e-3)


class Attention(nn.Module):
    """The gradient of the keys' bias is zero but for round-off: a softmax does not see a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.query(x) @ self.key(x).transpose(-1, -2), -1) @ x


def test_gradients_that_are_round_off_alone_come_last() -> None:
    torch.manual_seed(0)
    model = Attention()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        step(model, optimizer, torch.randn(4, 6, 8))
    ranked = emulated.compare_to("fp32").ranked()
    assert ranked[-1].tensor == "key.bias"
    assert ranked[-1].relative_error > 1


def test_the_first_overflow_has_its_line() -> None:
    model = Product()
    with torch.no_grad(), emulate(model, "fp16_mixed") as emulated:
        model(torch.ones(2, 4))
    first = emulated.first_overflow
    assert first is not None and first.site is not None
    assert first.site.line.text == "return self.b(y * y * 1e-6)"
    assert f"8 of 8 elements overflowed, at test_bisection.py:{first.site.line.number}." in emulated.verdict
    assert "print(halfscope.torch.diagnose(model, loss)) searches for one" in " ".join(emulated.verdict.split())


LOSING = torch.tensor([6.0, -6.0] * 15 + [0.0, 0.25])  # MXFP4 takes the last one to 0, and the sum with it


def products_of_one_layer(kind: str) -> tuple[nn.Module, torch.optim.Optimizer, Callable[[], bool]]:
    """A layer, and a step whose product of that kind sums over LOSING, and says whether the sum is right."""
    model = nn.Sequential(nn.Linear(32, 32, bias=False))
    nn.init.ones_(model[0].weight)
    optimizer, ones = torch.optim.SGD(model.parameters(), lr=0.0), torch.ones(32, 32)
    rows = LOSING.expand(32, 32)
    x = (rows if kind == "forward" else ones).clone().requires_grad_()
    gradient = {"forward": ones, "data_gradient": rows, "weight_gradient": rows.t()}[kind]

    def right() -> bool:
        optimizer.zero_grad()
        x.grad = None
        y = model(x)
        y.backward(gradient)
        found = {"forward": y, "data_gradient": x.grad, "weight_gradient": model[0].weight.grad}[kind]
        optimizer.step()
        return bool((found == 0.25).all())

    return model, optimizer, right


@pytest.mark.parametrize("kind", ["forward", "data_gradient", "weight_gradient"])
def test_products_are_candidates_under_a_recipe(kind: str) -> None:
    model, optimizer, right = products_of_one_layer(kind)
    with emulate(model, "mxfp4", optimizer=optimizer, exceptions={"0": "mxfp4"}) as emulated:
        assert not right()
    found = emulated.bisect(right, units="products")
    assert found.layers == (f"{kind}@0",)
    assert found.exceptions == {"0": {"operands": f"{kind}=role"}}
    assert str(found).startswith(
        f"Keep {kind} of 0 in the formats of their roles: emulate(..., exceptions={found.exceptions})."
    )
    assert "with nothing in the formats of their roles the result is refused" in found.why
    with emulate(model, "mxfp4", optimizer=optimizer, exceptions=found.exceptions) as emulated:
        assert right()
    kinds = {place.partition(".")[0] for _, place in emulated.operands()}
    assert kinds == {"forward", "data_gradient", "weight_gradient"} - {kind}
    assert emulated.bisect(right, layers=[f"{name}@0" for name in kinds]).layers == ()


def test_products_that_no_recipe_names_are_no_candidates() -> None:
    model, optimizer, right = products_of_one_layer("forward")
    with emulate(model, "bf16", optimizer=optimizer) as emulated:
        right()
    with pytest.raises(ValueError, match="no operands formats of their own; give one that does"):
        emulated.bisect(right, units="products")
    with emulate(model, "mxfp4", optimizer=optimizer) as emulated:
        right()
    with pytest.raises(ValueError, match="no product 'forward@1'; there are forward@0, data_gradient@0"):
        emulated.bisect(right, layers=["forward@1"])
