"""A step computed twice, in emulated formats and in FP32, and what the formats have changed in each tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.emulation.marks import Marks, storage_key, storage_of
from halfscope.torch.emulation.nodes import Forward
from halfscope.torch.emulation.operations import Kind, Operation
from halfscope.torch.emulation.places import Place, Places, Region

_HALF = (torch.float16, torch.bfloat16)
_RANDOM = """
    bernoulli native_dropout normal uniform random exponential rand rand_like randn randn_like
"""
_GRADIENT = "weight_gradient"
_NO_SIZE = 2.0**-16  # below this part of its layer's largest gradient FP32 has no correct digits of it left
_SAME = (Kind.VIEW, Kind.UNTOUCHED, Kind.SOURCE)


@dataclass
class Difference:
    """Of a tensor in emulated formats to that of FP32, all of a step's uses together."""

    step: int
    role: str
    tensor: str
    absolute_error: float = 0.0  # the largest
    _squares: list[float] = field(
        default_factory=lambda: [0.0, 0.0, 0.0, 0.0]
    )  # of the difference, FP32, emulated; product

    def add(self, emulated: torch.Tensor, exact: torch.Tensor) -> None:
        a, b = emulated.detach().double().flatten(), exact.detach().double().flatten()
        alike = (a == b) | (a.isnan() & b.isnan())  # the same infinity too, such as a mask's
        a, b = (x.masked_fill(alike & ~b.isfinite(), 0.0) for x in (a, b))
        parts = (((a - b) ** 2).sum(), (b**2).sum(), (a**2).sum(), (a * b).sum())
        if a.numel():
            largest = float((a - b).abs().max())
            self.absolute_error = largest if math.isnan(largest) else max(self.absolute_error, largest)
        self._squares = [known + float(part) for known, part in zip(self._squares, parts)]

    @property
    def relative_error(self) -> float:
        """Norm of the difference over the norm of FP32's; infinite where a number is not finite."""
        difference, exact = self._squares[0], self._squares[1]
        if not math.isfinite(difference):
            return math.inf
        if exact == 0:
            return 0.0 if difference == 0 else math.inf
        return math.sqrt(difference / exact)

    @property
    def norm(self) -> float:
        """Norm of FP32's values."""
        return math.sqrt(self._squares[1])

    @property
    def cosine(self) -> float:
        """Of the angle between the two; NaN where one of them is zero or not finite."""
        _, exact, emulated, product = self._squares
        norms = math.sqrt(exact) * math.sqrt(emulated) if exact >= 0 and emulated >= 0 else math.nan
        return product / norms if norms and math.isfinite(norms) else math.nan


class Comparison:
    """Differences by step, role and tensor, the largest error first."""

    def __init__(self, found: dict[tuple[int, str, str], Difference] | None = None) -> None:
        self._found = {} if found is None else found
        self.instead: dict[int, int] = {}  # steps that were compared in place of skipped ones

    def difference(self, step: int, role: str, tensor: str) -> Difference:
        """That of a tensor, which begins with nothing."""
        return self._found.setdefault((step, role, tensor), Difference(step, role, tensor))

    def drop(self, step: int) -> None:
        self._found = {key: found for key, found in self._found.items() if key[0] != step}

    @property
    def steps(self) -> list[int]:
        return sorted({step for step, _, _ in self._found})

    def of_steps(self, steps: Iterable[int] | None) -> Comparison:
        """The comparison of these steps alone; of all for None. Raises ValueError for one that was not compared.

        A step that a scaler skipped is the next one that it took.
        """
        wanted = self.steps if steps is None else [self.instead.get(step, step) for step in steps]
        missing = sorted(set(wanted) - set(self.steps))
        if missing:
            raise ValueError(
                f"compare_to: step {missing[0]} was not compared, only {self.steps}; "
                f"give emulate(..., compare_steps={wanted})"
            )
        return Comparison({key: found for key, found in self._found.items() if key[0] in wanted})

    def ranked(self) -> list[Difference]:
        """The largest error first; of equal ones the first that was computed; gradients of no size last."""
        largest = self._largest_gradients()

        def place(found: Difference) -> tuple[bool, float]:
            layer = found.step, found.tensor.rpartition(".")[0]
            is_zero = found.role == _GRADIENT and found.norm < _NO_SIZE * largest.get(layer, 0.0)
            return is_zero, -found.relative_error

        return sorted(self._found.values(), key=place)

    def _largest_gradients(self) -> dict[tuple[int, str], float]:
        """Norms of the weight gradients of each layer: a bias before a softmax has a gradient of round-off alone."""
        largest: dict[tuple[int, str], float] = {}
        for found in self._found.values():
            if found.role == _GRADIENT and math.isfinite(found.norm):
                layer = found.step, found.tensor.rpartition(".")[0]
                largest[layer] = max(largest.get(layer, 0.0), found.norm)
        return largest

    def __len__(self) -> int:
        return len(self._found)

    def __str__(self) -> str:
        shown = self.ranked()[:20]
        width = max([32, *(len(found.tensor) for found in shown)])
        rows = [f"{'step':>5}  {'role':<20} {'tensor':<{width}} {'error':>9} {'cosine':>8} {'absolute':>9}"]
        rows += [
            f"{found.step:>5}  {found.role:<20} {found.tensor:<{width}} {found.relative_error:>9.2g} "
            f"{found.cosine:>8.4f} {found.absolute_error:>9.2g}"
            for found in shown
        ]
        return "\n".join(rows)


class Shadows:
    """The FP32 counterpart of every tensor of a step, in a copy of its storage."""

    def __init__(self, comparison: Comparison, step: int, places: Places, arithmetic: Any) -> None:
        self._comparison, self._step, self._places = comparison, step, places
        self._marks: Marks = arithmetic.marks
        self._latest: Callable[[], Forward | None] = lambda: arithmetic.latest
        self.observer: Any = None  # of a diagnosis
        self.compares = True  # whether differences are noted
        self._shadows: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._seen: set[tuple[str, str, int]] = set()

    def around(self, run: Callable, func: Any, line: Operation, args: tuple, kwargs: dict) -> Any:
        """An operation in emulated formats, after the same in FP32."""
        place = self._places.now()
        if line.kind in _SAME or (place is not None and place.region is Region.UPDATE):
            return run(func, line, args, kwargs)
        if line.name in _RANDOM.split() or (place is None and not self._any_shadow((args, kwargs))):
            return run(func, line, args, kwargs)
        in_place = str(func.overloadpacket.__name__).endswith("_") or "out" in kwargs
        if in_place:
            self._shadow_target(kwargs.get("out", args[0]))
        exact = func(*self._shadowed(args), **self._shadowed(kwargs))
        result = run(func, line, args, kwargs)
        if not in_place:
            self._keep(result, exact)
        if self.observer is not None:
            in_forward = place is not None and place.region is Region.FORWARD
            forward = self._latest() if in_forward else self._places.forward()
            self.observer(line.name, place, args, kwargs, exact, result, forward)
        if place is not None and line.kind is not Kind.EXACT:
            self._compare_operation(line, place, args, result)
        return result

    def _compare_operation(self, line: Operation, place: Place, args: tuple, result: Any) -> None:
        if place.region is Region.FORWARD:
            first = result[0] if isinstance(result, (tuple, list)) else result
            if isinstance(first, torch.Tensor):
                latest = self._latest()
                self.compare("activation", place.tensor(line.name) if latest is None else latest.row, first)
        elif place.region is Region.BACKWARD:
            forward = self._places.forward()
            name = place.tensor(line.name) if forward is None else forward.row
            for value in args:
                mark = self._marks.get(value) if isinstance(value, torch.Tensor) else None
                if mark is not None and mark.is_gradient:
                    self.compare("activation_gradient", name, value)
                    return

    def compare(self, role: str, name: str, tensor: torch.Tensor, original: torch.Tensor | None = None) -> None:
        """Notes how far `tensor` is from the counterpart of it, or of the `original` that it was rounded from.

        A gradient that several operations use is noted once.
        """
        if not self.compares:
            return
        original = tensor if original is None else original
        key = (role, name, storage_key(original))
        found = self._shadows.get(storage_key(original))
        if found is None or key in self._seen or not tensor.is_floating_point():
            return
        self._seen.add(key)
        self._comparison.difference(self._step, role, name).add(tensor, self._view(found[1], original))

    def counterpart(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The FP32 numbers of the same step; None of a tensor that is the same in both."""
        found = self._shadows.get(storage_key(tensor)) if tensor.is_floating_point() else None
        return None if found is None else self._view(found[1], tensor)

    def _any_shadow(self, value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return storage_key(value) in self._shadows
        if isinstance(value, dict):
            return any(map(self._any_shadow, value.values()))
        return isinstance(value, (tuple, list)) and any(map(self._any_shadow, value))

    def _shadowed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            found = self._shadows.get(storage_key(value)) if value.is_floating_point() else None
            if found is not None:
                return self._view(found[1], value)
            return value.float() if value.dtype in _HALF else value
        if isinstance(value, dict):
            return {key: self._shadowed(part) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self._shadowed, value))
        return torch.float32 if value in _HALF else value

    @staticmethod
    def _view(flat: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return flat.as_strided(like.size(), like.stride(), like.storage_offset())

    def _shadow_target(self, target: Any) -> None:
        """What is written in place gets a counterpart of its own first."""
        if isinstance(target, torch.Tensor) and target.is_floating_point() and storage_key(target) not in self._shadows:
            self._register(target, target.float() if target.dtype in _HALF else target.clone())

    def _keep(self, result: Any, exact: Any) -> None:
        if isinstance(result, torch.Tensor) and isinstance(exact, torch.Tensor):
            if result.is_floating_point() and result.shape == exact.shape:
                self._register(result, exact)
        elif isinstance(result, (tuple, list)) and isinstance(exact, (tuple, list)):
            for part, exact_part in zip(result, exact):
                self._keep(part, exact_part)

    def _register(self, tensor: torch.Tensor, exact: torch.Tensor) -> None:
        storage = storage_of(tensor)
        flat = torch.zeros(storage.nbytes() // tensor.element_size(), dtype=exact.dtype, device=tensor.device)
        self._view(flat, tensor).copy_(exact)
        self._shadows[storage_key(tensor)] = (StorageWeakRef(storage), flat)
