// Tokens of PTX text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace halfscope::ptx {

enum class TokenKind : std::uint8_t {
  word,    ///< opcode, directive, register, label or name, with its dots
  number,  ///< digits, with their prefix, not their sign
  text,    ///< between quotation marks, with them
  sign,    ///< one character
  end
};

/// A token; `text` points into the text that was taken apart.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  int line = 0;
};

/// All tokens of `text`, comments left out, then one `end`. Throws ParseError at a character that PTX has
/// not, and at a comment or a quotation mark that is not closed.
[[nodiscard]] std::vector<Token> tokens_of(std::string_view text);

}  // namespace halfscope::ptx
