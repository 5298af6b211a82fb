// The order in which a file has the elements of a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// StoredTensor::axes of elements whose axes, the slowest first, are `axes`: empty where only axes of one
/// element are out of the shape's order, or there is no element.
[[nodiscard]] std::vector<std::size_t> order_of_axes(const std::vector<std::int64_t>& shape,
                                                     std::vector<std::size_t> axes);

/// The order of Fortran: the last axis is the slowest.
[[nodiscard]] std::vector<std::size_t> column_major(const std::vector<std::int64_t>& shape);

/// Walks through a tensor in the order of the file.
class RowMajorIndex {
 public:
  explicit RowMajorIndex(const StoredTensor& tensor);

  /// The place of the next element in the order of the shape.
  [[nodiscard]] std::size_t next();

 private:
  struct Axis {
    std::int64_t extent = 0, at = 0;
    std::size_t stride = 0;  ///< in the order of the shape
  };
  std::vector<Axis> axes_;  ///< the fastest first
  std::size_t place_ = 0;
};

}  // namespace halfscope
