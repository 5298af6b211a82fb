// Numbers of settings, read from text within their ranges.
#pragma once

#include <cstdint>
#include <string_view>

namespace halfscope {

/// Valid values of a number, both ends included.
struct FieldRange {
  double low = 0;
  double high = 0;
  const char* text = nullptr;  ///< the range in words; null: its two numbers
};

/// The value of the setting `key`, written as text. Throws InvalidArgument, with the range, where it is none.
[[nodiscard]] double parse_number(std::string_view key, std::string_view text, const FieldRange& range);
[[nodiscard]] std::int64_t parse_whole_number(std::string_view key, std::string_view text,
                                              const FieldRange& range);

}  // namespace halfscope
