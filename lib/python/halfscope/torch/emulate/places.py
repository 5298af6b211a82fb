"""Places of a model's operations, by the hooks of its modules and of the graph's nodes."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from halfscope.torch.events.nodes import Forward, Nodes
from halfscope.torch.events.place import Place, Region, RoundingOperations
from halfscope.torch.events.source import Site
from halfscope.torch.policy import Policy
from halfscope.torch.private import node_number, nodes_made, replace_attribute, without_function_modes
from halfscope.torch.tensors.elements import floating
from halfscope.torch.weak_hooks import WeakHook

_LAYERS = ("torch.nn.", "torchvision.ops.")


@dataclass(frozen=True)
class EndCalls:
    """Calls at the ends of nodes and of backward passes."""

    left_node: Callable[[tuple], None]  # with the gradients that the node has made
    left_backward: Callable[[], None] = lambda: None
    entered_backward: Callable[[list[torch.Tensor]], None] = lambda _: None  # with the tensors that it begins at


class Places:
    """Follows a model through its modules, forward by their hooks and backward by hooks on the graph's nodes.

    A node belongs to the module in whose forward pass it was made; nodes made outside of the model have no place.
    """

    def __init__(self, model: torch.nn.Module, policy: Policy, computed: RoundingOperations | None = None) -> None:
        """computed: is given the operations of the forward pass."""
        self._model, self._policy = model, policy
        self._names = {module: name for name, module in model.named_modules()}
        self._modules = {name: module for module, name in self._names.items()}
        self._stack: list[Place] = []
        self._node: Place | None = None
        self._number: int | None = None  # number of the node
        self.nodes = Nodes()
        self.computed = RoundingOperations() if computed is None else computed
        self._autocast: list[bool] = []  # whether each open block of automatic mixed precision is on
        self._backward_depth = 0
        self._creates_graph = False  # the backward pass under way is to be differentiated
        self._update: Place | None = None
        self._places: dict[tuple[str, Region], Place] = {}
        self._repeats: dict[str, Counter[str]] = {}  # operations of a module's call, by module
        self._calls: dict[str, dict[Any, list[tuple[int, int]]]] = {}  # by module and call: numbers, and nodes so far
        self._undo: list[Callable[[], None]] = []
        self._key = f"halfscope emulation {id(self)}"  # key of the nodes that have been given a place
        self._told: EndCalls | None = None

    def now(self) -> Place | None:
        if self._stack:
            return self._stack[-1]
        if not self._backward_depth:
            return self._update
        if self._node is not None and self.is_recomputing():
            return self._place(self._node.module, Region.FORWARD)
        return self._node

    def is_recomputing(self) -> bool:
        """Whether a forward pass runs inside of a backward pass, as activation checkpointing has it."""
        return self._backward_depth > 0 and (bool(self._stack) or (torch.is_grad_enabled() and not self._creates_graph))

    def forward(self) -> Forward | None:
        """The forward operation whose gradient is computed now; None where it is not known."""
        return self.nodes.of(self._number) if self._backward_depth else None

    @property
    def autocast_is_off(self) -> bool:
        """Whether the model has switched automatic mixed precision off."""
        return bool(self._autocast) and not self._autocast[-1]

    def enter_autocast(self, is_on: bool) -> None:
        self._autocast.append(is_on)

    def leave_autocast(self) -> None:
        if self._autocast:
            self._autocast.pop()

    @property
    def in_forward(self) -> bool:
        """Whether the model's forward pass runs, a recomputed one too."""
        return bool(self._stack) or self.is_recomputing()

    def count(self, place: Place, operation: str, site: Site | None) -> int:
        """How many times the module's call has had an operation, this time too; site: its line, or None.

        A part of a call that is computed once more, outside of the module's hooks, has the numbers that it had: those
        of the latest runs of its calls before the node that asks for it.
        """
        known = [] if site is None else self._calls.setdefault(place.module, {}).setdefault((operation, site.call), [])
        if not self._stack and self._number is not None and self.is_recomputing():
            before = [number for number, nodes in known if nodes <= self._number + 1]
            if before:
                return before[-1]
        counted = self._repeats.setdefault(place.module, Counter())
        counted[operation] += 1
        known.append((counted[operation], nodes_made()))
        return counted[operation]

    @staticmethod
    def row(place: Place, operation: str, number: int) -> str:
        """Name of an operation's result among those of its module's call: the second sum is "add.2"."""
        name = place.tensor(operation)
        return name if number == 1 or (place.is_leaf and place.module) else f"{name}.{number}"

    def modules(self) -> list[tuple[str, torch.nn.Module]]:
        """Modules with their names."""
        return list(self._modules.items())

    @property
    def in_backward(self) -> bool:
        return self._backward_depth > 0 and not self.is_recomputing()

    def begin(self, told: EndCalls) -> None:
        """Sets the hooks."""
        self._told = told
        for module in self._names:
            before = module.register_forward_pre_hook(
                WeakHook(self._before_forward, self._names[module]), with_kwargs=True
            )
            # Activation checkpointing leaves a module by an exception.
            after = module.register_forward_hook(WeakHook(self._after_forward), always_call=True)
            self._undo += [before.remove, after.remove]
        for name in ("backward", "grad"):
            self._undo.append(
                replace_attribute(torch.autograd, name, self._around_backward(getattr(torch.autograd, name)))
            )

    def end(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo, self._stack, self._node, self._update, self._told = [], [], None, None, None

    def begin_update(self) -> None:
        self._update = self._place("", Region.UPDATE)

    def end_update(self) -> None:
        self._update = None

    def _place(self, module: str, region: Region) -> Place:
        found = self._places.get((module, region))
        if found is None:
            owner = self._modules.get(module, self._model)
            is_leaf = not any(owner.children()) and _own_type(owner).__module__.startswith(_LAYERS)
            found = self._places[module, region] = Place(module, is_leaf, region, self._policy.at(module))
        return found

    def _before_forward(self, name: str, _module: torch.nn.Module, *inputs: Any) -> None:
        if not name:
            self._stack.clear()  # an exception may have left some
        self._repeats[name], self._calls[name] = Counter(), {}
        # An operation between two modules belongs to the module around them.
        self._give_place(floating(inputs), self._stack[-1].module if self._stack else None)
        self._stack.append(self._place(name, Region.FORWARD))

    def _after_forward(self, _module: torch.nn.Module, _inputs: object, output: object) -> None:
        if not self._stack:
            return
        place = self._stack.pop()
        self._give_place(floating(output), place.module)

    def _give_place(self, results: Iterable[torch.Tensor | GradientEdge], module: str | None) -> None:
        """Hooks the nodes before `results` that have no place yet; None is outside of the model."""
        with without_function_modes():  # here the model casts nothing
            nodes = [each.node if isinstance(each, GradientEdge) else each.grad_fn for each in results]
        waiting = [node for node in nodes if node is not None]
        backward = None if module is None else self._place(module, Region.BACKWARD)
        fan_in = None if module is None else self._place(module, Region.FAN_IN)
        while waiting:
            node: Any = waiting.pop()
            if self._key in node.metadata:
                continue
            node.metadata[self._key] = True
            accumulates = type(node).__name__ == "AccumulateGrad"
            number = node_number(node)
            node.register_prehook(WeakHook(self._enter_node, None if accumulates else backward, number))
            if not accumulates:
                node.register_hook(WeakHook(self._leave_node, fan_in, number))
            waiting.extend(next_node for next_node, _ in node.next_functions if next_node is not None)

    def _enter_node(self, place: Place | None, number: int | None, *_: Any) -> None:
        self._node, self._number = place, number

    def _leave_node(self, place: Place | None, number: int | None, gradients: tuple, _: object) -> None:
        self._enter_node(place, number)
        if self._told is not None:
            self._told.left_node(gradients)

    def _around_backward(self, original: Callable) -> Callable:
        first = next(iter(inspect.signature(original).parameters))  # "tensors" or "outputs", by which it may be given

        def around(*given: Any, **options: Any) -> Any:
            tensors, *arguments = given or (options.pop(first),)
            roots = [tensors] if isinstance(tensors, (torch.Tensor, GradientEdge)) else list(tensors)
            outer = self._node if self._backward_depth else None  # node of an outer backward pass
            self._give_place(roots, None if outer is None else outer.module)
            before = self._node, self._number, self._stack, self._creates_graph
            creates_graph = options.get("create_graph", arguments[2] if len(arguments) > 2 else False)
            self._node, self._number, self._stack, self._creates_graph = None, None, [], bool(creates_graph)
            if not self._backward_depth and self._told is not None:
                self._told.entered_backward([root for root in roots if isinstance(root, torch.Tensor)])
            self._backward_depth += 1
            try:
                return original(tensors, *arguments, **options)
            finally:
                self._backward_depth -= 1
                self._node, self._number, self._stack, self._creates_graph = before
                if not self._backward_depth and self._told is not None:
                    self._told.left_backward()

        return around


def _own_type(module: torch.nn.Module) -> type:
    """The type that the model gave it: fully_shard puts one of its own before that."""
    types = type(module).__mro__
    return next(kind for kind in types if not kind.__module__.startswith("torch.distributed."))
