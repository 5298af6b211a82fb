"""Shapes of faults, by which their remedies are found."""

from __future__ import annotations

from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.kinds import PRODUCTS, ROOTS, SUMS
from halfscope.torch.operations.table import Trait, named

_MASK = 1000.0  # times the largest number


def made_by(fault: Fault, *operations: str) -> Made | None:
    """The nearest of the operations before the fault, or the fault's own, that is one of these."""
    return next((made for made in (fault.made, *fault.sources) if made.operation in operations), None)


def lost_constants(fault: Fault) -> list[tuple[Made, float]]:
    return [
        (made, constant.value)
        for made in (fault.made, *fault.sources)
        for constant in made.constants
        if constant.is_lost
    ]


def flushed_constant(fault: Fault) -> tuple[Made, float] | None:
    """A constant near the fault that the format makes zero, or that is too small to divide by."""
    largest = fault.format.largest
    for made in (fault.made, *fault.sources):
        for constant in made.constants:
            if 0 < abs(constant.value) < 1 / largest:
                return made, constant.value
    return None


def large_constant(fault: Fault) -> tuple[Made, float] | None:
    return next(((made, value) for made, value in lost_constants(fault) if abs(value) > fault.format.largest), None)


def is_mask_constant(fault: Fault) -> bool:
    """In the forward pass alone: in the backward pass a number without axes is a gradient, the loss scale perhaps."""
    found = large_constant(fault) if fault.region == "forward" else None
    return found is not None and found[0].operation in named(Trait.CONSTANT, Trait.ADDITION) | {"mul"}


def is_mask_sum(fault: Fault) -> bool:
    """A sum of numbers as large as the largest, or, where their cast overflows, far beyond any that was computed."""
    limit = fault.format.largest
    if fault.kind == "cast":
        return fault.made.operation == "add" and fault.region == "forward" and fault.ratio > _MASK
    return fault.kind == "addition" and any(operand.largest >= 0.9 * limit for operand in fault.operands)


def is_square(made: Made) -> bool:
    return made.exponent == 2 or made.is_square or made.operation == "square"


def is_norm(fault: Fault) -> bool:
    """Squares that are summed and then divide, as far as the infinity shows."""
    followed = [*fault.passes, *([] if fault.hidden_by is None else [fault.hidden_by])]
    if not any(made.operation in named(Trait.NORMALISES) for made in followed):
        return False
    if fault.kind == "sum":
        return is_square(fault.made) or any(map(is_square, fault.sources))
    return fault.kind == "power" and is_square(fault.made) and any(made.operation in SUMS for made in fault.passes)


def is_gradient_norm(fault: Fault) -> bool:
    return fault.made.is_outside and is_square(fault.made) and made_by(fault, *named(Trait.NORM)) is not None


def is_gelu(fault: Fault) -> bool:
    """A cube whose infinity a hyperbolic tangent hides in the forward pass."""
    forward = fault.forward or fault
    hidden = forward.hidden_by
    cubes = (forward.made, *forward.sources)
    is_cube = any(made.exponent == 3 for made in cubes)
    return is_cube and fault.made.operation in ("pow", "mul") and hidden is not None and hidden.operation == "tanh"


def is_logsumexp(fault: Fault) -> bool:
    """An exponential, or a sum of these, whose logarithm is taken."""
    is_sum = fault.kind == "exponential" or (fault.kind in ("sum", "addition") and made_by(fault, "exp") is not None)
    return is_sum and any(made.operation in ("log", "log1p") for made in fault.passes)


def is_below_root(fault: Fault) -> bool:
    """Whether a square root lies between the constant and the fault, or is the fault."""
    return any(made.operation in ROOTS or made.exponent in (0.5, -0.5) for made in _behind_constant(fault))


def is_below_reciprocal_root(fault: Fault) -> bool:
    """As above, for one operation that takes root and reciprocal, whose gradient has the power -3/2."""
    return any(made.operation == "rsqrt" or made.exponent == -0.5 for made in _behind_constant(fault))


def _behind_constant(fault: Fault) -> list[Made]:
    """The operations from the fault to the constant that may be too small."""
    found = flushed_constant(fault)
    chain = [fault.made, *fault.sources]
    return chain[: chain.index(found[0])] if found is not None and found[0] in chain else []


def large_mask(fault: Fault) -> float | None:
    """The size of a mask that is beyond the largest number before scores are added to it."""
    sizes = [operand.largest for operand in fault.operands if operand.largest > 1.5 * fault.format.largest]
    return max(sizes) if sizes else None


def flushes(fault: Fault) -> bool:
    """A zero, or an infinity, of operands that the format has changed before."""
    return fault.kind in ("log 0", "0 / 0", "x / 0", "overflow", "quotient") and bool(fault.sources)


def chain(fault: Fault) -> list[Made]:
    """The operation and those before it, behind the last products and layers."""
    return [fault.made, *(made for made in fault.sources if made.operation not in PRODUCTS)]


def is_score(fault: Fault) -> bool:
    """A product of two tensors of which neither is a weight, as queries and keys are."""
    is_product = fault.kind == "sum of products" and fault.made.operation in named(Trait.SCORES)
    return is_product and not fault.has_weight
