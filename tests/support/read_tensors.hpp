// Whole tensors out of a tensor file, for tests that compare them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/tensor_file.hpp>

#include "tests/support/catch.hpp"

namespace halfscope {

/// Elements [first, first + count) of tensor `index`; checks that no piece is larger than promised.
[[nodiscard]] inline std::vector<float> elements_of(const TensorFile& file, std::size_t index,
                                                    std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  file.read(index, first, count, [&](std::span<const float> piece) {
    CHECK(piece.size() <= 16384);
    values.insert(values.end(), piece.begin(), piece.end());
  });
  return values;
}

[[nodiscard]] inline std::vector<float> elements_of(const TensorFile& file, std::size_t index = 0) {
  return elements_of(file, index, 0, file.tensors().at(index).elements);
}

}  // namespace halfscope
