"""Weight gradients at the end of a backward pass, before clipping or anything else changes them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from halfscope.torch.private import at_end_of_backward_pass, current_backward_pass, version_of
from halfscope.torch.weak_hooks import WeakHook


class BackwardGradients:
    """Hands over the gradients that a backward pass has made, as soon as it ends.

    Not before: DistributedDataParallel and fully_shard put the reduced gradients in place only then. With accumulated
    gradients each pass hands over what has been accumulated so far.
    """

    def __init__(self, parameters: dict[str, torch.nn.Parameter], take: Callable) -> None:
        """take: called with the gradients by name."""
        self._parameters, self._take = parameters, take
        self._made: set[str] = set()  # in the pass under way
        self._queued: int | None = None  # for which pass
        self._marks: dict[str, tuple[int, int]] = {}  # marks of the gradients that were handed over
        self._hooks: list = []

    def hook(self) -> None:
        """Looks at the backward passes from now on."""
        self._made, self._queued, self._marks = set(), None, {}
        if not self._hooks:
            self._hooks = [
                parameter.register_post_accumulate_grad_hook(WeakHook(self._mark, name))
                for name, parameter in self._parameters.items()
                if parameter.requires_grad
            ]

    def unhook(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _mark(self, name: str, _: torch.Tensor) -> None:
        self._made.add(name)
        current = current_backward_pass()
        if current is None or self._queued != current:
            self._queued = current
            at_end_of_backward_pass(WeakHook(self._after_pass))

    def _after_pass(self) -> None:
        """Once more to the end of the queue, behind those who put reduced gradients in place."""
        at_end_of_backward_pass(WeakHook(self._hand_over))

    def _hand_over(self) -> None:
        made, self._made, self._queued = self._made, set(), None
        gradients = {name: self._parameters[name].grad for name in self._parameters if name in made}
        present = {name: gradient for name, gradient in gradients.items() if gradient is not None}
        self._take(present)
        self._marks.update({name: _mark_of(gradient) for name, gradient in present.items()})

    def handed_over(self, name: str) -> bool:
        """Whether a backward pass of this step made the parameter's gradient."""
        return name in self._marks

    def unchanged(self, name: str, gradient: torch.Tensor) -> bool:
        """Whether no operation has changed `gradient` since the pass; one on its `.data` stays unnoticed."""
        return type(gradient) is torch.Tensor and self._marks.get(name) == _mark_of(gradient)


def hook_gradient(tensor: torch.Tensor, hook: WeakHook) -> None:
    """Calls `hook` with the gradients of all results of the tensor's operation, or, of a leaf, with its gradient."""
    if tensor.grad_fn is None:
        tensor.register_hook(hook)
    else:
        tensor.grad_fn.register_prehook(hook)  # a third of the time of the tensor's own hook


def _mark_of(gradient: torch.Tensor) -> tuple[int, int]:
    strided = type(gradient) is torch.Tensor and gradient.layout is torch.strided
    return (gradient.data_ptr() if strided else id(gradient)), version_of(gradient)
