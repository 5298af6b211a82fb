// Columns of a terminal: how many a text takes, how many there are, and texts cut or wrapped to them.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace halfscope {

inline constexpr std::size_t any_width = std::numeric_limits<std::size_t>::max();

/// Columns that `text`, UTF-8 without control characters, takes: 2 for a wide character, 0 for an accent that
/// stands on the one before.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Columns of the terminal that stdout is; `any_width` where it is none, so that pipes get everything.
[[nodiscard]] std::size_t output_width();

/// `text` in at most `width` columns, its middle replaced by "..." where it is longer: names differ at their
/// beginning and at their end.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

/// `text` with line ends at blanks, so that its lines take at most `width` columns where words allow it;
/// every line but the first begins with `indent`, the first with the blanks that `text` begins with.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::string_view indent = "");

}  // namespace halfscope
