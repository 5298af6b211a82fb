// A place in the tokens of PTX text, and what the parser expects there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/lexer.hpp"

namespace halfscope::ptx {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : tokens_(tokens_of(text)) {}

  [[nodiscard]] const Token& peek(std::size_t ahead = 0) const;
  [[nodiscard]] bool at(std::string_view text) const { return peek().text == text; }
  [[nodiscard]] bool at_end() const { return peek().kind == TokenKind::end; }
  /// Line of the next token.
  [[nodiscard]] int line() const { return peek().line; }

  Token take();
  /// Whether the next token is `text`; then it is taken.
  bool accept(std::string_view text);
  /// Takes `text`; throws ParseError where something else stands.
  void expect(std::string_view text);
  /// Takes a word; `what` names it in the error.
  std::string_view take_word(std::string_view what);
  /// Takes an integer or the bits of a floating-point literal, with its sign, as 64 bits.
  std::uint64_t take_number(std::string_view what);
  [[nodiscard]] bool at_number() const;

  /// Throws ParseError: the line of the token taken last, then `message`.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  int taken_line_ = 1;
};

/// Throws ParseError: `line`, then `message`.
[[noreturn]] void fail_at(int line, const std::string& message);

}  // namespace halfscope::ptx
