// Tokens of PTX text: words with their dots, numbers, quoted text and single signs.
#include "tests/ptx/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/ptx/fault.hpp"

namespace halfscope::ptx {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
constexpr bool is_word_part(char c) {
  return is_word_start(c) || is_digit(c);
}
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  Token next() {
    while (skip_space() || skip_comment()) {
    }
    if (rest_.empty()) return {TokenKind::end, {}, line_};
    const char c = rest_.front();
    if (is_word_start(c)) return take(TokenKind::word, length_of_word());
    if (is_digit(c)) return take(TokenKind::number, length_of_word());
    if (c == '"') return take(TokenKind::text, length_of_text());
    if (std::string_view(",;:[]{}()<>@!|+-=").find(c) == std::string_view::npos) {
      throw ParseError(fmt::format("PTX line {}: character '{}' is not known", line_, c));
    }
    return take(TokenKind::sign, 1);
  }

 private:
  Token take(TokenKind kind, std::size_t length) {
    const Token token{kind, rest_.substr(0, length), line_};
    rest_.remove_prefix(length);
    return token;
  }

  bool skip_space() {
    if (rest_.empty() || !is_space(rest_.front())) return false;
    line_ += rest_.front() == '\n' ? 1 : 0;
    rest_.remove_prefix(1);
    return true;
  }

  bool skip_comment() {
    if (rest_.starts_with("//")) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      return true;
    }
    if (!rest_.starts_with("/*")) return false;
    const std::size_t close = rest_.find("*/", 2);
    if (close == std::string_view::npos) {
      throw ParseError(fmt::format("PTX line {}: comment has no end", line_));
    }
    line_ +=
        static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(close), '\n'));
    rest_.remove_prefix(close + 2);
    return true;
  }

  [[nodiscard]] std::size_t length_of_word() const {
    return static_cast<std::size_t>(std::find_if_not(rest_.begin(), rest_.end(), is_word_part) -
                                    rest_.begin());
  }

  [[nodiscard]] std::size_t length_of_text() const {
    const std::size_t close = rest_.find('"', 1);
    if (close == std::string_view::npos) {
      throw ParseError(fmt::format("PTX line {}: text has no closing quotation mark", line_));
    }
    return close + 1;
  }

  std::string_view rest_;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  do {
    tokens.push_back(lexer.next());
  } while (tokens.back().kind != TokenKind::end);
  return tokens;
}

}  // namespace halfscope::ptx
