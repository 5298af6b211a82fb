"""Candidates of a bisection for FP32: layers, operations or kinds of operations, and what is stored.

Products whose operands have formats of their own are candidates for the formats of their roles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from halfscope.torch.events.place import Product, RoundingOperations
from halfscope.torch.operations.rules import KINDS, OperationRules, is_of_operations
from halfscope.torch.policy import Policy
from halfscope.torch.private import parameters_in

UNITS = ("layers", "operations", "kinds", "products")
KINDS_OF_PRODUCTS = ("forward", "data_gradient", "weight_gradient")
AT = "@"  # as in the rule "forward=role@fc1"; names of modules have none
# Stored numbers by role; names of modules have no brackets.
ROLES = {"(stored weights)": "master_weight", "(optimizer state)": "optimizer_state"}


class Candidates:
    """Candidates of a model that was trained under a policy once."""

    def __init__(
        self, model: torch.nn.Module, policy: Policy, computed: RoundingOperations, products: Iterable[Product] = ()
    ) -> None:
        self._modules, self._policy, self._computed = dict(model.named_modules()), policy, computed
        self._products = list(products)
        narrow = policy.narrow_roles(list(self._modules))
        self._roles = [name for name, role in ROLES.items() if role in narrow]

    def of(self, units: str) -> list[str]:
        """Candidates in the order of the model. Raises ValueError for units that `UNITS` lacks."""
        if units not in UNITS:
            raise ValueError(f"bisect: units={units!r}; give one of {', '.join(UNITS)}")
        if units == "products":
            return self._of_products()
        found = {"layers": self._layers, "operations": self._operations, "kinds": self._kinds}[units]()
        return [*found, *self._roles]

    def chosen(self, given: Iterable[str]) -> list[str]:
        """Candidates named in `given`, modules in the order of the model; raises ValueError for an unknown one."""
        wanted = list(given)
        every = [*self._modules, *self._roles]
        for name in wanted:
            if AT in name:
                if name not in self._of_products():
                    raise ValueError(f"bisect: no product '{name}'; there are {', '.join(self._of_products())}")
            elif is_of_operations(name):
                OperationRules({name: "fp32"})
            elif name not in every:
                raise ValueError(
                    f"bisect: no module '{name}'; the layers are {', '.join(filter(None, self._layers()))}"
                )
        named = [name for name in wanted if AT in name or is_of_operations(name)]
        return [name for name in [*every, *named] if name in wanted]

    def _of_products(self) -> list[str]:
        """Products by module in the order of the model, as "forward@fc1"."""
        if not self._products:
            raise ValueError(
                f"bisect: the policy {self._policy.name} gives no operands formats of their own; give one that does, "
                "such as nvfp4, or other units than products"
            )
        order = list(self._modules)
        products = sorted(
            self._products, key=lambda each: (order.index(each.module), KINDS_OF_PRODUCTS.index(each.product))
        )
        return [_name_of(product) for product in products]

    def _layers(self) -> list[str]:
        seen = self._computed.modules
        return [name for name, module in self._modules.items() if name in seen or parameters_in(module)]

    def _operations(self) -> list[str]:
        """Layers of PyTorch's as such, of other modules each operation."""
        found = []
        for name in self._modules:
            if name in self._computed.layers:
                found.append(name)
                continue
            for operation, count in self._computed.modules.get(name, {}).items():
                numbers = [""] if count == 1 else [f".{number + 1}" for number in range(count)]
                found += [f"{name}:{operation}{number}" for number in numbers]
        return found

    def _kinds(self) -> list[str]:
        return [f"*:{kind}" for kind in KINDS if kind in self._computed.kinds]


def keeping_fp32(policy: Policy, names: list[str]) -> Policy:
    """The policy with candidates in FP32, and products in the formats of their roles."""
    operations = [name for name in names if is_of_operations(name)]
    modules = [name for name in names if name not in (*ROLES, *operations) and AT not in name]
    roles = [ROLES[name] for name in names if name in ROLES]
    return policy.keeping_fp32(modules, roles, operations).with_operands(_operand_rules(names))


def exceptions_of(names: Iterable[str]) -> dict[str, Any]:
    """Candidates as exceptions of `emulate`."""
    names = list(names)
    roles = {ROLES[name]: "fp32" for name in names if name in ROLES}
    others: dict[str, Any] = {name: "fp32" for name in names if name not in ROLES and AT not in name}
    others |= {module: {"operands": rules} for module, rules in _operand_rules(names).items()}
    return {**others, "*": roles} if roles else others


def wide_formats(names: Iterable[str]) -> str:
    """The formats that candidates are kept in, in words."""
    return "in the formats of their roles" if all(AT in name for name in names) else "in FP32"


def _name_of(product: Product) -> str:
    """The operation is told where it is no linear layer's or convolution's, which rules address without it."""
    address = product.product if product.operation != "matmul" else f"matmul.{product.product}"
    return f"{address}{AT}{product.module}"


def _operand_rules(names: Iterable[str]) -> dict[str, str]:
    """Rules by module that leave the products among `names` in the formats of their roles."""
    rules: dict[str, str] = {}
    for name in names:
        address, at, module = name.partition(AT)
        if at:
            rules[module] = ", ".join(filter(None, (rules.get(module), f"{address}=role")))
    return rules


def in_words(name: str) -> str:
    """A candidate's name in a sentence."""
    if not name:
        return "the model's own operations"
    if AT in name:
        product, _, module = name.partition(AT)
        return f"{product} of {module or 'the model'}"
    if name.startswith("*:"):
        return f"all {name[2:]}"
    if is_of_operations(name):
        module, _, operation = name.rpartition(":")
        return f"{operation} of {module or 'the model'}"
    return name.strip("()")
