"""Policies of an emulated model: formats by role, orders of sums, and exceptions by module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from halfscope import _core
from halfscope.old_words import ARGUMENTS, SETTINGS
from halfscope.torch.operations.rules import OperationRules, is_of_operations
from halfscope.torch.split_sums import split_of

TENSOR_ROLES = ("weight", "activation", "activation_gradient", "weight_gradient")
ROLES = (*TENSOR_ROLES, "master_weight", "optimizer_state")
CHANGES = (*ROLES, "order", "sum_order", "operands")  # keys of an exception
FP32 = "fp32"
PYTORCH = "pytorch"  # matrix products in PyTorch's own order, in FP32 from rounded operands
SUMS = ("order", "sum_order")  # keys of an exception, beside its roles
ADDED = "added operands"  # rules of operands behind those that a module has
OLD_KEYS = {old: new for old, new in {**SETTINGS, **ARGUMENTS["emulate"]}.items() if new in CHANGES}
WIDE_SUMS = _core.default_sum_order()
POLICIES = frozenset(row["policy"] for row in _core.policy_table())


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
        self.name, settings = _settings(given)
        own = settings.pop("order", None)
        named = _parsed(settings)
        self._formats = _formats_of(named, settings)
        self.fp32_parameters: bool = named.stores_fp32
        self.lists: Mapping[str, str] = named.lists if settings.get("policy") in POLICIES else {}
        self.keeps_batch_norm: bool = named.keeps_batch_norm
        self._weight_sum: str = named.weight_sum
        self._order = _checked_order(own if order is None else order)
        self._sum_order = settings.get("sum_order") if sum_order is None else _checked_sum_order(sum_order)
        self.operations = OperationRules(exceptions)
        self._exceptions = [
            (glob, _changes(glob, change)) for glob, change in exceptions.items() if not is_of_operations(glob)
        ]
        self._at: dict[str, Formats] = {}

    @property
    def base(self) -> Formats:
        """Formats outside of all exceptions."""
        return self._with_sums(self._formats, {}, "")

    def at(self, module: str) -> Formats:
        """Formats of the module called `module`; of several exceptions that match the last holds."""
        found = self._at.get(module)
        if found is None:
            formats, sums = self._formats, {}
            for glob, change in self._exceptions:
                if _core.matches_glob(glob, module):
                    sums = {key: change[key] for key in SUMS if key in change}
                    added = change.get(ADDED, "")
                    formats = replace(formats, **{key: change[key] for key in change if key not in (*SUMS, ADDED)})
                    formats = replace(formats, operands=", ".join(filter(None, (formats.operands, added))))
            found = self._at[module] = self._with_sums(formats, sums, module)
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
            if not any(_core.matches_glob(glob, name) for name in names):
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

    def _with_sums(self, formats: Formats, asked: Mapping[str, str], module: str) -> Formats:
        """The formats with the orders of a module's sums; None: PyTorch's own, where nothing is narrow."""
        order = asked.get("order") or self._order or formats.products
        split = None if order is None else split_of(order)
        inner = order if split is None else split.inner
        settings = {role: getattr(formats, role) for role in TENSOR_ROLES} | {"operands": formats.operands}
        if inner not in (None, PYTORCH):
            settings["order"] = str(inner)
        resolved = _parsed(settings)
        narrow = any(getattr(formats, role) != FP32 for role in TENSOR_ROLES)
        if split is not None:
            order = f"split_k({split.parts}, {split.format})/{resolved.order}"
        elif order is None and narrow:
            order = resolved.order
        text = asked.get("sum_order") or self._sum_order
        sum_order = WIDE_SUMS if narrow else None
        if text is not None:
            sum_order = _parsed({"sum_order": text}).sum_order_in(module)
        return replace(formats, products=None if order == PYTORCH else order, sum_order=sum_order)


def _settings(given: str | Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Name and settings of a policy, which is given by name, by a format, or by settings."""
    if isinstance(given, Mapping):
        return "own", _checked_keys(given, "policy", _core.policy_keys())
    if not isinstance(given, str):
        raise TypeError(f"emulate: policy={given!r}; give a name, a format, or a mapping of settings")
    return given, {"policy": given}


def _parsed(settings: Mapping[str, str], where: str = "") -> _core.Policy:
    """By the one parser. Raises ValueError as `halfscope run --set` refuses the same settings."""
    try:
        return _core.Policy(settings)
    except ValueError as error:
        raise ValueError(f"emulate: {where}{error}") from None


def _formats_of(policy: _core.Policy, settings: Mapping[str, str]) -> Formats:
    """The formats of all modules; a policy of operands has sums that go with them."""
    named = _core.Policy({"policy": settings.get("policy", FP32)})
    products = named.order if named.operands else None
    return Formats(**policy.roles, operands=policy.operands, products=products)


def _checked_keys(given: Mapping[str, Any], where: str, known: Collection[str]) -> dict[str, str]:
    for key, text in given.items():
        if key in OLD_KEYS:
            raise ValueError(f"emulate: {where}: no setting {key} since 0.1; give {OLD_KEYS[key]}")
        if key not in known:
            raise ValueError(f"emulate: {where}: no setting {key}; give some of {', '.join(known)}")
        if not isinstance(text, str):
            raise TypeError(f"emulate: {where}: {key} = {text!r}; give a text")
    return dict(given)


def _changes(glob: str, change: Any) -> dict[str, str]:
    """Changes of an exception: a format for all tensors, a policy of operands, or a mapping of settings."""
    where = f"exception '{glob}'"
    if isinstance(change, str):
        policy = _parsed({"policy": change}, f"{where}: ")
        if change in POLICIES and not policy.operands and change != FP32:
            raise ValueError(f"emulate: {where}: the policy {change} is of a whole network; give a format")
        formats = _formats_of(policy, {"policy": change})
        tensors: dict[str, Any] = {role: getattr(formats, role) for role in TENSOR_ROLES}
        return {**tensors, "operands": formats.operands, "products": formats.products}
    if not isinstance(change, Mapping):
        raise TypeError(f"emulate: {where}: {change!r}; give a format, or a mapping of settings")
    settings = _checked_keys(change, where, CHANGES)
    order = _checked_order(settings.pop("order", None))
    parsed = _parsed(settings, f"{where}: ")
    changes = {role: parsed.roles[role] for role in settings if role in ROLES}
    if "operands" in settings:
        changes[ADDED] = parsed.operands
    if order is not None:
        changes["order"] = order
    if "sum_order" in settings:
        changes["sum_order"] = settings["sum_order"]
    return changes


def _checked_order(order: str | None) -> str | None:
    """The own name of an order of products, which may be split or PyTorch's."""
    if order in (None, PYTORCH):
        return order
    try:
        split = split_of(order)
    except ValueError as error:
        raise ValueError(f"emulate: order = '{order}': {error}") from None
    return str(_parsed({"order": order}).order if split is None else split)


def _checked_sum_order(order: str) -> str:
    _parsed({"sum_order": order})
    return order


def _literal(name: str) -> str:
    """A glob that matches `name` alone."""
    return "".join(f"\\{letter}" if letter in "*?[\\" else letter for letter in name)


def _some(names: list[str]) -> str:
    shown = [name for name in names if name]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
