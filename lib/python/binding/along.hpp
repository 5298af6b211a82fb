// Arrays of a Python caller as matrices of rows along one axis, as blocks lie.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <halfscope/core/error.hpp>
#include <halfscope/format/block_format.hpp>
#include <halfscope/kernel/block/detail/axis_last.hpp>

namespace halfscope::python {

using Extents = std::vector<std::size_t>;

/// An array as a matrix whose rows run along one of its axes.
class Along {
 public:
  /// Throws InvalidArgument where `shape` has no such axis.
  Along(const Extents& shape, std::int64_t axis, const char* function) : shape_(shape) {
    if (shape_.empty()) shape_.push_back(1);
    const auto axes = std::ssize(shape_);
    const std::optional<detail::AroundAxis> around = detail::around_axis(shape_, axis);
    if (!around) {
      throw InvalidArgument(fmt::format("{}: axis {} of an array with {} ax{}s; give one from {} to {}",
                                        function, axis, axes, axes == 1 ? "i" : "e", -axes, axes - 1));
    }
    axis_ = (axis + axes) % axes;
    around_ = *around;
  }

  [[nodiscard]] MatrixShape matrix() const { return {around_.outer * around_.inner, around_.length}; }
  /// The extents of what has `length` elements in the place of the axis.
  [[nodiscard]] Extents with_length(std::int64_t length) const {
    Extents extents = shape_;
    extents[static_cast<std::size_t>(axis_)] = static_cast<std::size_t>(length);
    return extents;
  }

  /// The matrix of `values`, which `moved` holds where the axis is not the last.
  template <typename T>
  [[nodiscard]] std::span<const T> rows_of(std::span<const T> values, std::vector<T>& moved) const {
    if (around_.inner == 1) return values;
    moved.resize(values.size());
    detail::bring_axis_last(values, around_, std::span(moved));
    return moved;
  }
  /// Takes a matrix with rows of `length` elements back into the array's order.
  template <typename T>
  void take_back(std::span<T> rows, std::int64_t length) const {
    if (around_.inner == 1) return;
    const std::vector<T> copy(rows.begin(), rows.end());
    detail::take_axis_back(std::span<const T>(copy), {around_.outer, length, around_.inner}, rows);
  }

 private:
  Extents shape_;
  std::int64_t axis_ = 0;
  detail::AroundAxis around_{};
};

}  // namespace halfscope::python
