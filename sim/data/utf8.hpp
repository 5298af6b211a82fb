// UTF-8 texts: their code points, which of them are letters, and lower case.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace halfscope {

/// One code point and its length in bytes; a length of 0 says that the bytes are not UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
};
/// The code point at the start of `text`, which is not empty. Overlong forms, surrogates and numbers above
/// U+10FFFF are not UTF-8 (RFC 3629).
[[nodiscard]] CodePoint decode_utf8(std::string_view text);
void append_utf8(std::string& text, char32_t value);

/// Letters of the Latin (with Latin-1 and Extended-A), Greek and Cyrillic alphabets in lower case; any other
/// code point as it is.
[[nodiscard]] char32_t lower_case(char32_t value);

/// ASCII letters, and every code point beyond ASCII that is no punctuation, symbol or space of the blocks
/// Latin-1, General Punctuation and CJK Symbols.
[[nodiscard]] bool is_letter(char32_t value);

}  // namespace halfscope
