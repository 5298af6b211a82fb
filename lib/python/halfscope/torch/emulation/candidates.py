"""Candidates for FP32 of a bisection: layers, operations or kinds of operations, and what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from halfscope.torch.emulation.operation_rules import KINDS, OperationRules, is_of_operations
from halfscope.torch.emulation.places import Computed
from halfscope.torch.emulation.policies import Policy

UNITS = ("layers", "operations", "kinds")
# Stored numbers by role; names of modules have no brackets.
ROLES = {"(stored weights)": "master_weight", "(optimizer state)": "optimizer_state"}


class Candidates:
    """Candidates of a model that was trained under a policy once."""

    def __init__(self, model: torch.nn.Module, policy: Policy, computed: Computed) -> None:
        self._modules, self._policy, self._computed = dict(model.named_modules()), policy, computed
        narrow = policy.narrow_roles(list(self._modules))
        self._roles = [name for name, role in ROLES.items() if role in narrow]

    def of(self, units: str) -> list[str]:
        """In the order of the model. Raises ValueError for other units than those of `UNITS`."""
        if units not in UNITS:
            raise ValueError(f"bisect: units={units!r}; give one of {', '.join(UNITS)}")
        found = {"layers": self._layers, "operations": self._operations, "kinds": self._kinds}[units]()
        return [*found, *self._roles]

    def chosen(self, given: Iterable[str]) -> list[str]:
        """Candidates named in `given`, modules in the order of the model; raises ValueError for an unknown one."""
        wanted = list(given)
        every = [*self._modules, *self._roles]
        for name in wanted:
            if is_of_operations(name):
                OperationRules({name: "fp32"})
            elif name not in every:
                raise ValueError(
                    f"bisect: no module '{name}'; the layers are {', '.join(filter(None, self._layers()))}"
                )
        return [name for name in [*every, *filter(is_of_operations, wanted)] if name in wanted]

    def _layers(self) -> list[str]:
        seen = self._computed.modules
        return [name for name, module in self._modules.items() if name in seen or module._parameters]

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
    """The policy with candidates in FP32."""
    modules = [name for name in names if name not in ROLES and not is_of_operations(name)]
    roles = [ROLES[name] for name in names if name in ROLES]
    return policy.keeping_fp32(modules, roles, [name for name in names if is_of_operations(name)])


def rules_of(names: Iterable[str]) -> dict[str, Any]:
    """Candidates as rules of `emulate`."""
    roles = {ROLES[name]: "fp32" for name in names if name in ROLES}
    others = {name: "fp32" for name in names if name not in ROLES}
    return {**others, "*": roles} if roles else others


def in_words(name: str) -> str:
    """A candidate's name in a sentence."""
    if not name:
        return "the model's own operations"
    if name.startswith("*:"):
        return f"all {name[2:]}"
    if is_of_operations(name):
        module, _, operation = name.rpartition(":")
        return f"{operation} of {module or 'the model'}"
    return name.strip("()")
