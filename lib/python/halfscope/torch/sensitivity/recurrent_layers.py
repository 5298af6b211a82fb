"""Recurrent layers step by step, their products called one by one: LSTM, GRU and the plain cells of torch.nn.RNN.

A layer's input is multiplied for all steps at once, its state step by step, as PyTorch does on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

Linear = Callable[..., torch.Tensor]
State = tuple[torch.Tensor, ...]
Cell = Callable[[Linear, torch.Tensor, State, tuple], State]


def _lstm(linear: Linear, gates: torch.Tensor, state: State, weights: tuple) -> State:
    """weights: of the state, its bias, and of a projection where there is one."""
    last, cell = state
    enter, forget, new, out = (gates + linear(last, *weights[:2])).chunk(4, -1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    last = out.sigmoid() * cell.tanh()
    return (linear(last, weights[2]) if len(weights) > 2 else last), cell


def _gru(linear: Linear, gates: torch.Tensor, state: State, weights: tuple) -> State:
    (last,) = state
    own, others = gates.chunk(3, -1), linear(last, *weights[:2]).chunk(3, -1)
    reset, update = ((own[at] + others[at]).sigmoid() for at in range(2))
    new = (own[2] + reset * others[2]).tanh()
    return (new + update * (last - new),)


def _plain(activation: str, linear: Linear, gates: torch.Tensor, state: State, weights: tuple) -> State:
    return (getattr(gates + linear(state[0], *weights[:2]), activation)(),)


_CELLS: dict[str, Cell] = {
    "lstm": _lstm, "gru": _gru, "rnn_tanh": partial(_plain, "tanh"), "rnn_relu": partial(_plain, "relu")
}  # fmt: skip


@dataclass(frozen=True)
class RecurrentLayer:
    """Arguments of torch.lstm and its like, without the packed form."""

    cell: Cell
    input: torch.Tensor
    state: State
    weights: tuple[torch.Tensor, ...]
    biases: bool
    layers: int
    directions: int
    batch_first: bool

    def __call__(self, linear: Linear) -> tuple[torch.Tensor, ...]:
        """The sequence of states (time, batch, out), and the last states of all layers; as PyTorch returns them."""
        steps, last = (self.input.transpose(0, 1) if self.batch_first else self.input), []
        for layer in range(self.layers):
            parts = [
                self._direction(linear, steps, layer * self.directions + at, at == 1) for at in range(self.directions)
            ]
            last += [state for _, state in parts]
            steps = torch.cat([outputs for outputs, _ in parts], -1)
        output = steps.transpose(0, 1) if self.batch_first else steps
        return output, *(torch.stack(each) for each in zip(*last))

    def _direction(
        self, linear: Linear, steps: torch.Tensor, number: int, is_reversed: bool
    ) -> tuple[torch.Tensor, State]:
        weight, of_state, *others = self._weights_of(number)
        bias, state_bias, *projection = others if self.biases else (None, None, *others)
        gates, outputs = linear(steps, weight, bias), []
        state: State = tuple(each[number] for each in self.state)
        for at in reversed(range(len(steps))) if is_reversed else range(len(steps)):
            state = self.cell(linear, gates[at], state, (of_state, state_bias, *projection))
            outputs.append(state[0])
        return torch.stack(outputs[::-1] if is_reversed else outputs), state

    def _weights_of(self, number: int) -> tuple[torch.Tensor, ...]:
        each = len(self.weights) // (self.layers * self.directions)
        return self.weights[number * each : (number + 1) * each]


def recurrent_layer(func: Any, args: tuple, kwargs: dict[str, Any]) -> RecurrentLayer | None:
    """The layer that a function of PyTorch computes; None for other functions, for packed sequences and for dropout."""
    cell = _CELLS.get(getattr(func, "__name__", ""))
    if cell is None or kwargs or len(args) != 9 or not isinstance(args[3], bool):
        return None
    input, state, weights, biases, layers, dropout, train, bidirectional, batch_first = args
    if dropout and train:
        return None
    states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    return RecurrentLayer(cell, input, states, tuple(weights), biases, layers, 1 + bidirectional, batch_first)
