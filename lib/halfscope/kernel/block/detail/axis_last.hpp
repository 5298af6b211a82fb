// Brings one axis of an array to its end, as blocks run along the last one, and back.
#pragma once

#include <cstdint>
#include <span>

namespace halfscope::detail {

/// An array around one of its axes: (outer, length, inner), row-major.
struct AroundAxis {
  std::int64_t outer = 1, length = 1, inner = 1;
};

/// (outer, length, inner) to (outer, inner, length).
template <typename T>
void bring_axis_last(std::span<const T> in, const AroundAxis& shape, std::span<T> out) {
  for (std::int64_t o = 0; o < shape.outer; ++o) {
    const std::int64_t start = o * shape.length * shape.inner;
    for (std::int64_t at = 0; at < shape.length; ++at) {
      for (std::int64_t i = 0; i < shape.inner; ++i)
        out[static_cast<std::size_t>(start + i * shape.length + at)] =
            in[static_cast<std::size_t>(start + at * shape.inner + i)];
    }
  }
}

/// (outer, inner, length) to (outer, length, inner), for an array of `shape`.
template <typename T>
void take_axis_back(std::span<const T> in, const AroundAxis& shape, std::span<T> out) {
  bring_axis_last(in, {shape.outer, shape.inner, shape.length}, out);
}

}  // namespace halfscope::detail
