"""Products of a model that a policy gives operands formats of their own, and the policy for some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from halfscope import _core
from halfscope.torch.emulate.emulation import Emulation
from halfscope.torch.emulate.training import Options, Trainee
from halfscope.torch.policy import PYTORCH, TENSOR_ROLES, Policy
from halfscope.torch.search.candidates import AT, KINDS_OF_PRODUCTS, exceptions_of, keeping_fp32

POLICIES = ", ".join(row["policy"] for row in _core.policy_table() if row["operands"])
KINDS = (*KINDS_OF_PRODUCTS, *(f"matmul.{kind}" for kind in KINDS_OF_PRODUCTS))
Exceptions = Mapping[str, Any]


class PolicyProducts:
    """A policy on a model: the products whose operands have formats, and emulations that leave some of them out."""

    def __init__(self, model: torch.nn.Module, policy: str | Mapping[str, str], exceptions: Exceptions) -> None:
        self.policy, self.exceptions = policy, dict(exceptions)
        self._model = model
        self._typed = Policy(policy, None, self.exceptions)
        self._operands = Policy(policy, PYTORCH, self.exceptions).keeping_fp32([], list(TENSOR_ROLES))

    @property
    def role_format(self) -> str:
        """The format that a product has without formats of its operands, as "BF16"."""
        return self._typed.base.activation.upper()

    def names(self, run: Callable[[Emulation], object]) -> list[str]:
        """Products of a pass, as "forward@fc1", in the order of the model.

        run: makes a training pass in an emulation. Raises ValueError for a policy that no product has operands of, and
        for one whose scales are those of earlier steps.
        """
        emulation = self.typed([], 0)
        run(emulation)
        found = emulation.products
        if not found:
            raise ValueError(
                f"gradient_errors: policy {self.policy!r} gives no product of the model formats of operands; give one "
                f"of {POLICIES}, or exceptions={{'*': {{'operands': 'forward=nvfp4'}}}}"
            )
        late = next((name for name in found if "+delayed" in self._typed.at(layer_of(name)).operands), None)
        if late is not None:
            raise ValueError(
                f"gradient_errors: '{late}' has scales of earlier steps under policy {self.policy!r}; give one whose "
                "scales are this step's, such as fp8_current"
            )
        return found

    def emulation(self, left: Iterable[str], seed: int) -> Emulation:
        """Operands in the policy's formats, all else in FP32; left: products that stay FP32, as "forward@fc1"."""
        return self._emulation(keeping_fp32(self._operands, list(left)), seed)

    def typed(self, left: Iterable[str], seed: int) -> Emulation:
        """The whole policy; left: products in the formats of their roles."""
        return self._emulation(keeping_fp32(self._typed, list(left)), seed)

    def _emulation(self, policy: Policy, seed: int) -> Emulation:
        return Emulation(Trainee(self._model, []), policy, Options(seed))

    def exceptions_leaving(self, left: Iterable[str]) -> dict[str, Any]:
        """For `emulate`: those that were given, and behind them one for each module of `left`."""
        return {**self.exceptions, **{self._free(name): rule for name, rule in exceptions_of(left).items()}}

    def _free(self, name: str) -> str:
        """A pattern of the module's name alone, other than the exceptions that were given."""
        return f"[{name[0]}]{name[1:]}" if name in self.exceptions and name else name


def layer_of(product: str) -> str:
    """The module of "forward@fc1"."""
    return product.partition(AT)[2]


def kind_of(product: str) -> str:
    """The product of "forward@fc1"."""
    return product.partition(AT)[0]


def by_kind(names: Iterable[str]) -> dict[str, list[str]]:
    """Products by kind: forward, data_gradient, weight_gradient, and those of attention's products."""
    every = list(names)
    kinds = sorted({kind_of(name) for name in every}, key=KINDS.index)
    return {kind: [name for name in every if kind_of(name) == kind] for kind in kinds}
