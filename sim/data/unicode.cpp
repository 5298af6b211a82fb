// Code points and their classes, as utf8proc knows them.
#include "sim/data/unicode.hpp"

#include <utf8proc.h>

#include <array>

namespace halfscope {

CodePoint first_code_point(std::string_view text) {
  CodePoint point;
  point.bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &point.value);
  return point;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    if (point.bytes < 1) return false;
    text.remove_prefix(static_cast<std::size_t>(point.bytes));
  }
  return true;
}

void append_utf8(std::string& text, std::int32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t count = utf8proc_encode_char(code_point, bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
}

std::int32_t lower_case(std::int32_t code_point) {
  return utf8proc_tolower(code_point);
}

bool is_letter(std::int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
}

bool is_decimal_digit(std::int32_t code_point) {
  return utf8proc_category(code_point) == UTF8PROC_CATEGORY_ND;
}

bool is_punctuation(std::int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO;
}

}  // namespace halfscope
