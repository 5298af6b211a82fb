// A payload of codes times scales, one for each block of rows and columns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <halfscope/io/layouts/detail/block_layout.hpp>
#include <halfscope/io/layouts/detail/code_source.hpp>
#include <halfscope/io/layouts/detail/file_parts.hpp>
#include <halfscope/io/layouts/detail/quantized_tensor.hpp>

namespace halfscope {

/// Parts of a tensor that has `shape`; one scale may hold for all of it, besides those of the blocks.
struct ScaledParts {
  std::string name;
  std::vector<std::int64_t> shape;
  CodeSource payload, scales;
  std::optional<WholeScale> whole{};
};

/// Takes the parts, or leaves them out with a line where the scales do not fit.
void add_scaled_codes(FileParts& parts, ScaledParts tensor);

/// The one number of `name`; nothing, with a line, where it has another shape.
[[nodiscard]] std::optional<float> read_one_number(FileParts& parts, const CodeSource& source);

/// Consecutive scales of a tensor, by their index in all of it.
struct ScaleRange {
  std::int64_t first = 0;
  std::vector<float> values{};
  [[nodiscard]] float at(std::int64_t index) const { return values[static_cast<std::size_t>(index - first)]; }
};

}  // namespace halfscope
