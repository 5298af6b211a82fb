// Cuts a sentence into tokens.
#include "sim/data/sentence_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <halfscope/core/error.hpp>

#include "sim/data/unicode.hpp"

namespace halfscope {
namespace {

constexpr std::int32_t typographic_apostrophe = 0x2019;

/// From `place` on, the first character that is none of `characters`.
std::size_t skip_all(std::string_view text, std::size_t place, std::string_view characters) {
  return std::min(text.find_first_not_of(characters, place), text.size());
}

/// Length of a directive of printf, Python or Qt at the start of the text ("%-5.2lf", "%(name)s", "%1"), or
/// 0.
std::size_t directive_length(std::string_view text) {
  std::size_t i = 1;
  if (text.substr(i).starts_with('(')) i = text.find(')', i);
  if (i >= text.size()) return 0;
  if (text[i] == ')') ++i;
  const std::size_t width = skip_all(text, i, "-+#'"), after_width = skip_all(text, width, "0123456789*.$"),
                    conversion = skip_all(text, after_width, "hlqLjzt");
  constexpr std::string_view conversions = "diouxXeEfFgGaAcsCSpnm";
  if (conversion < text.size() && conversions.find(text[conversion]) != std::string_view::npos)
    return conversion + 1;
  const std::size_t after_digits = skip_all(text, width, "0123456789");
  return after_digits > width ? after_digits : 0;
}

/// Length of "<b>", "</b>" or "<!-- -->" at the start of the text, or 0.
std::size_t tag_length(std::string_view text) {
  if (text.size() < 3 || !(is_letter(text[1]) || text[1] == '/' || text[1] == '!')) return 0;
  const std::size_t end = text.find_first_of("<>\n", 1);
  return end != std::string_view::npos && text[end] == '>' ? end + 1 : 0;
}

/// Length of "{0}" or "{name}" at the start of the text, or 0.
std::size_t braces_length(std::string_view text) {
  constexpr std::string_view names = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  const std::size_t end = skip_all(text, 1, names);
  return end < text.size() && text[end] == '}' ? end + 1 : 0;
}

std::size_t placeholder_length(std::string_view text) {
  switch (text[0]) {
    case '%':
      return directive_length(text);
    case '<':
      return tag_length(text);
    case '{':
      return braces_length(text);
    default:
      return 0;
  }
}

CodePoint checked_code_point(std::string_view text) {
  if (text[0] == '\0') throw InvalidArgument("a NUL byte, so that this is no text");
  const CodePoint point = first_code_point(text);
  if (point.bytes < 1) {
    throw InvalidArgument(
        fmt::format("the byte 0x{:02x}, which is not UTF-8 there", static_cast<unsigned char>(text[0])));
  }
  return point;
}

/// Collects tokens of one sentence.
class SentenceTokens {
 public:
  [[nodiscard]] std::vector<std::string> of(std::string_view text) {
    while (!text.empty()) text.remove_prefix(add_first(text));
    end_run();
    return std::move(tokens_);
  }

 private:
  enum class Run : std::uint8_t { none, word, number };

  /// Adds what the text starts with, and returns its length.
  std::size_t add_first(std::string_view text) {
    if (const std::size_t length = placeholder_length(text); length > 0) {
      end_run();
      tokens_.emplace_back(placeholder_token);
      return length;
    }
    const CodePoint point = checked_code_point(text);
    const auto bytes = static_cast<std::size_t>(point.bytes);
    add(point.value, text.substr(bytes));
    return bytes;
  }

  void add(std::int32_t value, std::string_view rest) {
    if (value == '_') return;
    if (is_letter(value)) return append(Run::word, lower_case(value));
    if (is_decimal_digit(value)) return append(Run::number, value);
    const bool apostrophe = value == '\'' || value == typographic_apostrophe;
    if (apostrophe && run_ == Run::word && !rest.empty() && is_letter(checked_code_point(rest).value)) {
      token_ += '\'';
      return end_run();
    }
    end_run();
    if (!is_punctuation(value)) return;
    append_utf8(token_, apostrophe ? '\'' : value);
    end_run();
  }

  void append(Run run, std::int32_t value) {
    if (run_ != run) end_run();
    run_ = run;
    append_utf8(token_, value);
  }

  void end_run() {
    if (!token_.empty()) tokens_.push_back(std::move(token_));
    token_.clear();
    run_ = Run::none;
  }

  Run run_ = Run::none;
  std::string token_;
  std::vector<std::string> tokens_;
};

}  // namespace

std::vector<std::string> sentence_tokens(std::string_view sentence) {
  return SentenceTokens().of(sentence);
}

bool is_word_token(std::string_view token) {
  return token != placeholder_token && !token.empty() && is_letter(first_code_point(token).value);
}

}  // namespace halfscope
