// Tensors whose elements lie apart in a file, as views of a storage do.
#pragma once

#include <cstdint>
#include <vector>

#include <halfscope/io/detail/elements.hpp>
#include <halfscope/io/detail/input_file.hpp>
#include <halfscope/io/tensor_file.hpp>

namespace halfscope {

/// An axis of more than one element; the stride counts elements.
struct StrideAxis {
  std::int64_t extent = 0, stride = 0;
};

/// A view whose axes are sorted by stride, so that the file is read forwards.
struct StridedView {
  std::vector<StrideAxis> axes;    ///< the slowest first; empty where the elements lie side by side
  std::vector<std::size_t> order;  ///< StoredTensor::axes
};

/// The view of the given shape and strides, which are as many and not negative.
[[nodiscard]] StridedView strided_view(const std::vector<std::int64_t>& shape,
                                       const std::vector<std::int64_t>& strides);

/// Hands over the elements [first, first + count) of a view whose first element is at byte `begin`, see
/// TensorFile::read_stored.
void read_strided(const InputFile& file, std::uint64_t begin, const std::vector<StrideAxis>& axes,
                  const ElementRange& range, const StoredSink& sink);

}  // namespace halfscope
