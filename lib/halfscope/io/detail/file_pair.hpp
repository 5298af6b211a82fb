// Two tensors of one shape, in one file or two, read beside each other.
#pragma once

#include <algorithm>
#include <vector>

#include <halfscope/io/detail/tensor_parts.hpp>
#include <halfscope/io/file_updates.hpp>

namespace halfscope {

/// `values` becomes the elements [first, first + count) of the tensor.
inline void read_range(const TensorInFile& from, std::int64_t first, std::int64_t count,
                       std::vector<float>& values) {
  values.clear();
  from.file.read(from.index, first, count, [&](std::span<const float> piece) {
    values.insert(values.end(), piece.begin(), piece.end());
  });
}

/// Elements of each file that are in memory at a time.
constexpr std::int64_t pair_block = std::int64_t{1} << 16;

/// Calls take(a, b) with the elements of `part` of both tensors, up to `pair_block` of them at a time.
template <typename Take>
void read_beside(const TensorInFile& one, const TensorInFile& other, const TensorPart& part, Take&& take) {
  std::vector<float> a, b;
  for (std::int64_t done = 0; done < part.count; done += pair_block) {
    const std::int64_t count = std::min(pair_block, part.count - done);
    read_range(one, part.first + done, count, a);
    read_range(other, part.first + done, count, b);
    take(a, b);
  }
}

/// Parts of `tensor` in which `other` can be read too: 16 blocks where both are read at any place.
[[nodiscard]] inline std::vector<TensorPart> common_parts(const TensorInFile& tensor,
                                                          const TensorInFile& other) {
  constexpr std::int64_t elements = 16 * pair_block;
  const StoredTensor& stored = tensor.tensor();
  const bool anywhere = other.tensor().access == Access::random && stored.access == Access::random;
  std::vector<TensorPart> parts;
  append_parts(tensor.index, stored, anywhere ? elements : std::max(elements, stored.elements), parts);
  return parts;
}

}  // namespace halfscope
