// Scales of a square matrix, one for each row by their shape, which may be those of its columns.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace halfscope {

/// Reads the codes of a matrix as numbers, from an element on.
using ReadCodes = std::function<void(std::int64_t first, std::span<float> values)>;

/// Why the scales of a square matrix may be those of its columns: each column reaches the largest code, and
/// not each row. Empty where a row does, and for other shapes.
[[nodiscard]] std::string why_maybe_of_columns(const std::vector<std::int64_t>& shape,
                                               const std::vector<std::int64_t>& scales,
                                               const ReadCodes& read);

}  // namespace halfscope
