// Words of a text: what counts as one, and how often each occurs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope {

/// The token that ends a line.
inline constexpr std::string_view end_of_line_token = "<eos>";

/// A line with its tokens.
struct TokenLine {
  std::int64_t number = 0;  ///< in its text, from 1
  std::string label;        ///< a verse's ("Ge1:1"), at the line's start; empty without one
  std::vector<std::string> tokens;
};
/// The lines of a text that have tokens, without their ends. Throws as `tokenise` does.
[[nodiscard]] std::vector<TokenLine> tokenise_lines(std::string_view text, const std::string& source);

/// The tokens of a UTF-8 text, line by line: words, each of . , ; : ? ! by itself, and `end_of_line_token`
/// after every line that has any. A word is a run of apostrophes and of Unicode's letters, with the marks
/// that combine with them, in lower case. A verse label ("Ge1:1 ") at a line's start is left out. Throws
/// InvalidArgument, naming `source` and the line, for NUL bytes and for what is not UTF-8.
[[nodiscard]] std::vector<std::string> tokenise(std::string_view text, const std::string& source);

/// False for punctuation and the end of a line.
[[nodiscard]] bool is_word(std::string_view token);

/// Tokens as numbers: the most frequent words have their own (of equally frequent ones, the first in byte
/// order), every other word is token 0.
struct Vocabulary {
  std::vector<std::string> words{};    ///< word of token 1, 2, ...: the most frequent first
  std::vector<std::int32_t> tokens{};  ///< the text
  std::int64_t types = 0;              ///< different words of the text

  /// Tokens are in [0, size()).
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(words.size()) + 1; }
};
/// At most `size` different tokens (at least 2), token 0 among them.
[[nodiscard]] Vocabulary number_words(const std::vector<std::string>& words, std::int64_t size);

}  // namespace halfscope
