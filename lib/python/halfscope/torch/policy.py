"""Policies of an emulated model: formats by role, orders of sums, and exceptions by module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import torch

from halfscope import _core
from halfscope.old_words import ARGUMENTS
from halfscope.torch.operations.rules import OperationRules, is_of_operations
from halfscope.torch.split_sums import split_of

TENSOR_ROLES = ("weight", "activation", "activation_gradient", "weight_gradient")
ROLES = (*TENSOR_ROLES, "master_weight", "optimizer_state")
FP32 = "fp32"
PYTORCH = "pytorch"  # matrix products in PyTorch's own order, in FP32 from rounded operands
SUMS = ("order", "sum_order")  # keys of an exception, beside its roles
ADDED = "added operands"  # rules of operands behind those that a module has
OLD_SUMS = {old: new for old, new in ARGUMENTS["emulate"].items() if new in SUMS}
WIDE_SUMS = _core.default_sum_order()


@dataclass(frozen=True)
class Formats:
    """Quantizers of a module's tensors by role, and the models of its sums; None: PyTorch's own sums."""

    weight: str = FP32
    activation: str = FP32
    activation_gradient: str = FP32
    weight_gradient: str = FP32
    master_weight: str = FP32
    optimizer_state: str = FP32
    products: str | None = None
    sum_order: str | None = None
    operands: str = ""  # rules of products' operands in formats of their own

    @property
    def rounds(self) -> bool:
        """Whether any tensor of the network, or operand of a product, is rounded, or summed in a named order."""
        ordered = self.products is not None or self.sum_order is not None
        return ordered or bool(self.operands) or any(getattr(self, role) != FP32 for role in TENSOR_ROLES)


class Policy:
    """Formats of every module: a policy's, changed by the exceptions whose glob matches its name."""

    def __init__(
        self,
        given: str | Mapping[str, str],
        order: str | None,
        exceptions: Mapping[str, Any],
        sum_order: str | None = None,
    ) -> None:
        self.name, self._formats, row = _named(given)
        self.lists: Mapping[str, str] = row.get("operations", {})
        self.fp32_parameters = row.get("parameters") == FP32
        self.keeps_batch_norm = bool(row.get("keep_batch_norm_fp32", False))
        self._weight_sum = row.get("weight_sum", "plain")
        self._order = order if order in (None, PYTORCH) else _checked_products(order)
        self._sum_order = None if sum_order is None else _checked_sums(sum_order)
        self.operations = OperationRules(exceptions)
        self._exceptions = [
            (glob, _changes(glob, change)) for glob, change in exceptions.items() if not is_of_operations(glob)
        ]
        self._at: dict[str, Formats] = {}

    @property
    def base(self) -> Formats:
        """Formats outside of all exceptions."""
        return self._with_sums(self._formats, {})

    def at(self, module: str) -> Formats:
        """Formats of the module called `module`; of several exceptions that match the last holds."""
        found = self._at.get(module)
        if found is None:
            formats, sums = self._formats, {}
            for glob, change in self._exceptions:
                if fnmatchcase(module, glob):
                    sums = {key: change[key] for key in SUMS if key in change}
                    added = change.get(ADDED, "")
                    formats = replace(formats, **{key: change[key] for key in change if key not in (*SUMS, ADDED)})
                    formats = replace(formats, operands=", ".join(filter(None, (formats.operands, added))))
            found = self._at[module] = self._with_sums(formats, sums)
        return found

    @property
    def histogram_format(self) -> str:
        """The format that histograms are for: the gradients', or FP16 where these are FP32."""
        found = str(_core.describe_quantizer(self._formats.activation_gradient)["format"])
        return "fp16" if found == FP32 else found

    def leaving(self, modules: list[str]) -> Policy:
        """The same that leaves the products of `modules`, by name, in the formats of their roles."""
        other = object.__new__(Policy)
        left = "".join(f", *=role@{name}" for name in modules)
        formats = replace(self._formats, operands=f"{self._formats.operands}{left}")
        other.__dict__ = {**self.__dict__, "_at": {}, "_formats": formats}
        return other

    def list_of(self, operation: str | None) -> str:
        """The list that automatic mixed precision has an operation of `halfscope list operations` on."""
        if operation is None:
            return "infer" if self.fp32_parameters else "allow"
        return self.lists.get(operation, "allow")

    def check_exceptions(self, names: list[str]) -> None:
        """Raises ValueError for an exception that matches no module."""
        for glob in [*(glob for glob, _ in self._exceptions), *self.operations.modules]:
            if not any(fnmatchcase(name, glob) for name in names):
                raise ValueError(f"emulate: exception '{glob}' matches no module; the modules are {_some(names)}")

    def check_update(self) -> None:
        """Raises ValueError for a policy whose updates are no PyTorch optimizer's."""
        if self._weight_sum != "plain":
            raise ValueError(
                f"emulate: policy '{self.name}' adds updates to weights by a sum of its own, which PyTorch's "
                "optimizers have not; give bf16_stochastic or bf16_no_master, or run it by `halfscope run`"
            )

    def keeping_fp32(self, modules: list[str], roles: list[str], operations: list[str] | None = None) -> Policy:
        """The same with `modules`, by name, in FP32, with `roles` of all modules, and with `operations`, by rule."""
        other = object.__new__(Policy)
        wide = dict.fromkeys(roles, FP32)
        other.__dict__ = {**self.__dict__, "_at": {}, "_formats": replace(self._formats, **wide)}
        kept = [(_literal(name), _changes(name, FP32)) for name in modules]
        other.operations = self.operations.and_fp32(operations or [])
        other._exceptions = [*self._exceptions, *kept, *([("*", wide)] if wide else [])]
        return other

    def with_operands(self, rules: Mapping[str, str]) -> Policy:
        """The same with rules of operands behind those of modules, by name."""
        other = object.__new__(Policy)
        other.__dict__ = {**self.__dict__, "_at": {}}
        other._exceptions = [*self._exceptions, *((_literal(name), {ADDED: text}) for name, text in rules.items())]
        return other

    def narrow_roles(self, names: list[str]) -> list[str]:
        """The roles of stored numbers that are not FP32 in all of the modules `names`."""
        stored = ("master_weight", "optimizer_state")
        return [role for role in stored if any(getattr(self.at(name), role) != FP32 for name in ("", *names))]

    def _with_sums(self, formats: Formats, asked: Mapping[str, str]) -> Formats:
        products = asked.get("order") or self._order or formats.products
        tensors = [getattr(formats, role) for role in TENSOR_ROLES]
        narrow = any(quantizer != FP32 for quantizer in tensors)
        default = "fp32_fused"  # over operands in formats of their own
        if not formats.operands:
            default = _core.default_products(formats.weight, formats.activation, formats.activation_gradient)
        if products is None and narrow:
            products = default
        split = None if products is None else split_of(products)
        if split is not None and split.inner is None:
            products = f"{split}/{default}"
        if formats.operands and products not in (None, PYTORCH):
            _check_operand_sums(formats.operands, str(split.inner or default) if split is not None else str(products))
        sum_order = asked.get("sum_order") or self._sum_order or (WIDE_SUMS if narrow else None)
        return replace(formats, products=None if products == PYTORCH else products, sum_order=sum_order)


def _named(given: str | Mapping[str, str]) -> tuple[str, Formats, Mapping[str, Any]]:
    """Name, formats and line of the table, of a policy, a format, or a mapping of roles; the latter have no line."""
    if isinstance(given, Mapping):
        return "own", _roles(given, "policy"), {}
    if not isinstance(given, str):
        raise TypeError(f"emulate: policy={given!r}; give a name, a format, or a mapping of roles to formats")
    table = {row["policy"]: row for row in _core.policy_table()}
    if given in table:
        return given, _formats_of(table[given]), table[given]
    try:
        quantizer = _quantizer(given)
    except ValueError:
        raise ValueError(
            f"emulate: unknown policy '{given}'; give one of {', '.join(table)}, or a format for all tensors, as 'bf16'"
        ) from None
    return given, Formats(**dict.fromkeys(TENSOR_ROLES, quantizer)), {}


def _formats_of(row: Mapping[str, Any]) -> Formats:
    """Formats in a line of the table of policies; some have operands, and sums that go with them."""
    operands = {"operands": row["operands"], "products": row["products"]} if row["operands"] else {}
    return Formats(**row["roles"], **operands)


def _policies_of_operands() -> dict[str, Formats]:
    """Policies by name whose operands have formats of their own."""
    return {row["policy"]: _formats_of(row) for row in _core.policy_table() if row["operands"]}


def _roles(given: Mapping[str, Any], where: str) -> Formats:
    unknown = sorted(set(given) - set(ROLES))
    if unknown and unknown[0] in OLD_SUMS:
        raise ValueError(f"emulate: {where}: no {unknown[0]!r} since 0.1; give {OLD_SUMS[unknown[0]]!r}")
    if unknown:
        raise ValueError(f"emulate: {where}: no role '{unknown[0]}'; give some of {', '.join(ROLES)}")
    return Formats(**{role: _quantizer(text) for role, text in given.items()})


def _changes(glob: str, change: Any) -> dict[str, str]:
    """Changes of an exception: a format for all tensors, a policy, or a mapping of roles and orders of sums."""
    if isinstance(change, str):
        policy = _policies_of_operands().get(change)
        if policy is not None:
            return {**{role: getattr(policy, role) for role in TENSOR_ROLES}, **_of_operands(policy)}
        return {**dict.fromkeys(TENSOR_ROLES, _quantizer(change)), **_of_operands(Formats())}
    if not isinstance(change, Mapping):
        raise TypeError(f"emulate: exception '{glob}': {change!r}; give a format, or a mapping of roles to formats")
    roles = {role: text for role, text in change.items() if role not in (*SUMS, "operands")}
    _roles(roles, f"exception '{glob}'")
    changes = {role: _quantizer(text) for role, text in roles.items()}
    if "operands" in change:
        _core.layer_operands(change["operands"], "linear", "")
        changes[ADDED] = change["operands"]
    if "order" in change:
        asked = change["order"]
        changes["order"] = asked if asked == PYTORCH else _checked_products(asked)
    if "sum_order" in change:
        changes["sum_order"] = _checked_sums(change["sum_order"])
    return changes


def _check_operand_sums(rules: str, products: str) -> None:
    try:
        _core.check_operand_sums(rules, products)
    except ValueError as error:
        raise ValueError(f"emulate: {error}") from None


def _of_operands(formats: Formats) -> dict[str, Any]:
    return {"operands": formats.operands, "products": formats.products}


def _quantizer(text: str) -> str:
    return str(_core.describe_quantizer(text)["quantizer"])


def _checked_products(order: str) -> str:
    try:
        split = split_of(order)
        return str(_core.product_model(order)) if split is None else str(split)
    except ValueError as error:
        raise ValueError(f"emulate: order={order!r}: {error}, or '{PYTORCH}' for PyTorch's own sums") from None


def _checked_sums(order: str) -> str:
    try:
        _core.sum(torch.zeros(1), order=order)
    except ValueError as error:
        raise ValueError(f"emulate: sum_order={order!r}: {error}") from None
    return order


def _literal(name: str) -> str:
    """A glob that matches `name` alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _some(names: list[str]) -> str:
    shown = [name for name in names if name]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
