// A place in the tokens of PTX text: numbers in their notations, and errors with their line.
#include "tests/ptx/cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

std::string_view shown(const Token& token) {
  return token.kind == TokenKind::end ? std::string_view("the end") : token.text;
}

/// Digits of `base`, all of them; false where there are others or too many.
bool read_digits(std::string_view digits, int base, std::uint64_t& value) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  return error == std::errc{} && stop == end;
}

/// 12, 12U, 0x1F, and the bits of 0f3F800000 and 0d3FF0000000000000.
bool read_number(std::string_view text, std::uint64_t& value) {
  if (text.starts_with("0f") || text.starts_with("0F")) {
    return text.size() == 10 && read_digits(text.substr(2), 16, value);
  }
  if (text.starts_with("0d") || text.starts_with("0D")) {
    return text.size() == 18 && read_digits(text.substr(2), 16, value);
  }
  if (text.ends_with('U')) text.remove_suffix(1);
  if (text.starts_with("0x") || text.starts_with("0X")) return read_digits(text.substr(2), 16, value);
  return read_digits(text, 10, value);
}

}  // namespace

void fail_at(int line, const std::string& message) {
  throw ParseError(fmt::format("PTX line {}: {}", line, message));
}

void Cursor::fail(const std::string& message) const {
  fail_at(taken_line_, message);
}

const Token& Cursor::peek(std::size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

Token Cursor::take() {
  const Token token = peek();
  taken_line_ = token.line;
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool Cursor::accept(std::string_view text) {
  if (!at(text)) return false;
  take();
  return true;
}

void Cursor::expect(std::string_view text) {
  if (!accept(text)) fail_at(line(), fmt::format("expected '{}', found '{}'", text, shown(peek())));
}

std::string_view Cursor::take_word(std::string_view what) {
  if (peek().kind != TokenKind::word)
    fail_at(line(), fmt::format("expected {}, found '{}'", what, shown(peek())));
  return take().text;
}

bool Cursor::at_number() const {
  return peek().kind == TokenKind::number || (at("-") && peek(1).kind == TokenKind::number);
}

std::uint64_t Cursor::take_number(std::string_view what) {
  const bool negative = accept("-");
  std::uint64_t value = 0;
  if (peek().kind != TokenKind::number || !read_number(peek().text, value)) {
    fail_at(line(), fmt::format("expected {}, found '{}'", what, shown(peek())));
  }
  take();
  return negative ? 0 - value : value;
}

}  // namespace halfscope::ptx
