"""Operands of products in formats of their own, such as MXFP8 and NVFP4: which product, which side, which axis.

A layer y = x w has the left operands x, dy and dy and the right ones w, w and x. Blocks run along the axis that a
product sums over, so that each tensor has two images. The right one of two activations counts as w.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from halfscope import _core
from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.marks import Marks
from halfscope.torch.emulate.operand_book import OperandBook
from halfscope.torch.emulate.parameters import Parameters
from halfscope.torch.events.place import Place, Product, Region
from halfscope.torch.events.ran import Call
from halfscope.torch.operations.table import Kind, Operation, Trait
from halfscope.torch.private import storage_key

FORWARD, DATA, WEIGHT = "forward", "data_gradient", "weight_gradient"
LEFT, RIGHT = "left", "right"

See = Callable[[torch.Tensor, str, int, int], torch.Tensor]
"""Image of a tensor for the product and side "forward.left", summed over an axis; of a part of a layer, or of -1."""


def heads_of(model: torch.nn.Module) -> list[str]:
    """Heads of language models, which policies of operands leave out.

    They are linear layers that share an embedding's weight, and the last one, if it has an output for each entry of an
    embedding.
    """
    embeddings = [module for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    linears = {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    heads = [name for name, module in linears.items() if any(module.weight is each.weight for each in embeddings)]
    last = next(reversed(linears), None)
    if last is not None and last not in heads:
        vocabularies = {each.num_embeddings for each in embeddings}
        heads += [last] if linears[last].out_features in vocabularies else []
    return heads


def _first_of(line: Operation) -> int | None:
    """Position of a product's left factor; None where operands have the formats of their roles, as vectors do."""
    return None if Trait.OF_VECTORS in line.traits else line.first


class ProductOperands:
    """Brings operands of products to the formats that the rules of their module give them."""

    def __init__(self, caster: Caster, parameters: Parameters, marks: Marks, book: OperandBook) -> None:
        self._caster, self._parameters, self._marks, self._book = caster, parameters, marks, book
        self._formats: dict[tuple[str, str, str], dict[str, str]] = {}  # by rules, operation and module

    def note(self, call: Call, place: Place) -> None:
        """An operation of the forward pass: a product's backward pass is told which operand counts as the weight."""
        if not place.formats.operands:
            return
        first, forward = _first_of(call.line), call.forward
        if forward is None or first is None:
            return
        left, weight = call.args[first : first + 2]
        if self._is_weight(left) and not self._is_weight(weight):
            left, weight = weight, left
        forward.multiply("linear" if self._is_weight(weight) else "matmul", (storage_key(left), storage_key(weight)))

    def of(self, call: Call, place: Place, args: tuple, cast: tuple) -> tuple[tuple, See | None]:
        """The operands `cast` of `args`, in the formats of their roles, as a product of matrices sees them.

        And how a convolution sees its patches and weights, whose arguments stay as they are. Other operations, and
        those of a place without formats of operands, see `cast`.
        """
        name = call.operation
        if call.line.kind is not Kind.PRODUCT or not place.formats.operands:
            return cast, None
        if name.startswith("convolution"):
            transposed = args[7] if name == "convolution_backward" else args[6]
            return cast, self.images("conv_transpose2d" if transposed else "conv2d", call, place)
        first = _first_of(call.line)
        return (cast if first is None else self._of_matrices(call, place, first, args, cast)), None

    def _of_matrices(self, call: Call, place: Place, first: int, args: tuple, cast: tuple) -> tuple:
        """first: position of the first operand."""
        operation, product, left_first = self._product(call, place, args[first], args[first + 1])
        see = self.images(operation, call, place)
        if see is None:
            return cast
        sides = (LEFT, RIGHT) if left_first else (RIGHT, LEFT)
        axes = (-1, -2 if args[first + 1].dim() > 1 else -1)
        seen = list(cast)
        for position, (side, axis) in enumerate(zip(sides, axes), first):
            seen[position] = see(cast[position], f"{product}.{side}", axis, -1)
        call.note_images(tuple(seen))
        return tuple(seen)

    def images(self, operation: str, call: Call, place: Place) -> See | None:
        """How products of an operation see tensors; None where no rule gives their operands a format."""
        key = (place.formats.operands, operation, place.module)
        formats = self._formats.get(key)
        if formats is None:
            formats = self._formats[key] = _core.layer_operands(*key)
        if not formats:
            return None
        forward = call.forward  # a module's several products have the names of their results
        layer = place.tensor(operation) if forward is None else forward.row or forward.tensor

        def see(tensor: torch.Tensor, where: str, axis: int, part: int) -> torch.Tensor:
            format = formats.get(where)
            if format is None:
                return tensor
            self._book.products[Product(place.module, operation, where.partition(".")[0])] = None
            return self._image(tensor, (layer, where, format), axis, part)

        return see

    def _is_weight(self, tensor: torch.Tensor) -> bool:
        owned = self._parameters.owner(tensor)
        return owned is not None and owned.is_parameter

    def _product(self, call: Call, place: Place, a: torch.Tensor, b: torch.Tensor) -> tuple[str, str, bool]:
        """The operation, its product, and whether `a` is the left operand."""
        if place.region is Region.FORWARD:
            left_is_weight = self._is_weight(a) and not self._is_weight(b)
            operation = "linear" if self._is_weight(a) or self._is_weight(b) else "matmul"
            return operation, FORWARD, not left_is_weight
        forward = call.forward
        if forward is None or not forward.multiplies:
            mark = self._marks.get(a)
            a_is_gradient = mark is not None and mark.is_gradient
            product = DATA if self._is_weight(b if a_is_gradient else a) else WEIGHT
            return "linear" if product == DATA else "matmul", product, a_is_gradient
        a_is_gradient = storage_key(a) not in forward.factors
        other = storage_key(b if a_is_gradient else a)
        is_tie = forward.factors[0] == forward.factors[1]  # as in x x^T: dy x and dy^T x
        product = DATA if (a_is_gradient if is_tie else other == forward.factors[1]) else WEIGHT
        return forward.multiplies, product, a_is_gradient

    def _image(self, tensor: torch.Tensor, about: tuple[str, str, str], axis: int, part: int) -> torch.Tensor:
        """A copy in a format, with blocks along `axis`; a weight's square tiles lie as the forward product has them."""
        layer, where, format = about
        cast = self._book.cast(layer, where, format)
        turns = axis == -2 and not (where == f"{DATA}.{RIGHT}" and cast.has_square_tiles)
        matrix = tensor.detach().transpose(-1, -2) if turns else tensor.detach()
        device = device_of(tensor)
        copy = device.near(matrix).contiguous().clone()
        if copy.numel():
            self._book.add(layer, where, format, self._caster.round_operand(cast, copy, f"{layer}.{where}", part))
        image = copy.transpose(-1, -2) if turns else copy
        return device.away(image, tensor)
