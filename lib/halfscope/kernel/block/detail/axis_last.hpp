// Brings one axis of an array to its end, as blocks run along the last one, and back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>

namespace halfscope::detail {

/// An array around one of its axes: (outer, length, inner), row-major.
struct AroundAxis {
  std::int64_t outer = 1, length = 1, inner = 1;
};

/// An array of `shape` around `axis`, which counts from the end where it is negative; a number without axes
/// has one of length 1. Empty where there is no such axis.
template <typename Extents>
[[nodiscard]] std::optional<AroundAxis> around_axis(const Extents& shape, std::int64_t axis) {
  const std::int64_t axes = std::max<std::int64_t>(1, std::ssize(shape));
  if (axis < -axes || axis >= axes) return std::nullopt;
  const std::int64_t place = (axis + axes) % axes;
  AroundAxis around;
  for (std::int64_t i = 0; i < std::ssize(shape); ++i) {
    std::int64_t& part = i < place ? around.outer : i == place ? around.length : around.inner;
    part *= static_cast<std::int64_t>(shape[static_cast<std::size_t>(i)]);
  }
  return around;
}

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
