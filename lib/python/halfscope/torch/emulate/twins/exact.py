"""A step computed twice, in emulated formats and in FP32."""

from __future__ import annotations

from halfscope.torch.events.observer import Twin
from halfscope.torch.events.place import Region
from halfscope.torch.events.ran import Call, Ran
from halfscope.torch.operations.counterparts import Counterparts, map_arguments
from halfscope.torch.operations.operators import is_random, target_of


class Exact(Counterparts, Twin):
    """The FP32 counterpart of every tensor of a step, in a copy of its storage."""

    def before(self, call: Call) -> None:
        """FP32's result, of operations that are neither random nor an update's, nor outside with what is the same."""
        func, args, kwargs, place = call.func, call.args, call.kwargs, call.place
        if is_random(func) or (place is not None and place.region is Region.UPDATE):
            return
        if place is None and not self.has_any((args, kwargs)):
            return
        self.register_written(func, args, kwargs)
        own_args, own_kwargs = map_arguments(func, (args, kwargs), self.own, self.beside)
        call.note_exact(func(*own_args, **own_kwargs))

    def ran(self, ran: Ran) -> None:
        if ran.has_exact and target_of(ran.func, ran.args, ran.kwargs) is None:
            self.keep(ran.result, ran.exact, (ran.args, tuple(ran.kwargs.values())))
