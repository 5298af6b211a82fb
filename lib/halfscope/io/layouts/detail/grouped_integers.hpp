// Integers less a zero point, times a scale, both for a group of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <halfscope/io/layouts/detail/block_layout.hpp>
#include <halfscope/io/layouts/detail/code_source.hpp>
#include <halfscope/io/layouts/detail/packed_integers.hpp>
#include <halfscope/io/layouts/detail/quantized_tensor.hpp>

namespace halfscope {

struct GroupedParts {
  std::string name, method;    ///< "GPTQ, 4 bits"
  std::string_view library{};  ///< see CodeKind
  std::vector<std::int64_t> shape{};
  std::vector<std::size_t> axes{};  ///< see StoredTensor: the integers come in this order
  PackedIntegers integers{};        ///< in the order of the file
  CodeSource scales{};
  BlockLayout layout{};  ///< group of each integer, in the order of the file
  /// Group of each row or of each column, where they are not in order; or empty.
  std::vector<std::int32_t> row_groups{}, column_groups{};
  std::optional<PackedIntegers> zeros{};  ///< a matrix like the scales
  int zero_offset = 0;                    ///< added to every zero point, or the zero point of all
  int zero_mask = -1;                     ///< bits of the sum that count
  float last_factor = 1;                  ///< multiplies the product, which is rounded before
};

[[nodiscard]] std::unique_ptr<QuantizedTensor> grouped_integers(GroupedParts parts);

}  // namespace halfscope
