// UTF-8 texts, one code point after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halfscope {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// One code point and its length in bytes; a length below 1 says that the bytes are not UTF-8.
struct CodePoint {
  std::int32_t value = 0;
  std::ptrdiff_t bytes = 0;
};

/// The first code point of a text that is not empty.
[[nodiscard]] CodePoint first_code_point(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);
void append_utf8(std::string& text, std::int32_t code_point);

[[nodiscard]] std::int32_t lower_case(std::int32_t code_point);
/// Letters, and the marks that combine with them.
[[nodiscard]] bool is_letter(std::int32_t code_point);
/// Decimal digits of any script.
[[nodiscard]] bool is_decimal_digit(std::int32_t code_point);
/// Punctuation and symbols.
[[nodiscard]] bool is_punctuation(std::int32_t code_point);

}  // namespace halfscope
